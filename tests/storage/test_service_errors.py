"""What a service's failure means to who sees it."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from anabranch import errors
from anabranch._storage import open_store
from anabranch._storage.service_errors import is_refusal, reason, to_store_error

NON_2XX = "Server returned non-2xx status code"
NO_ROLE = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token: client error (Connect)"
NO_BUCKET = f"Generic S3 error: {NON_2XX}: 404 Not Found: <Error><Code>NoSuchBucket</Code></Error>"
NO_CONTAINER = f"Generic MicrosoftAzure error: {NON_2XX}: 404: <Code>ContainerNotFound</Code>"
MALFORMED = f"Generic S3 error: {NON_2XX}: 400: AuthorizationHeaderMalformed:"
REGION = (
    "Generic S3 error: Received redirect without LOCATION, this normally indicates an incorrectly configured region"
)


@pytest.mark.parametrize(
    ("root", "text", "kind", "said"),
    [
        ("s3://b/t", NO_ROLE, errors.NoCredentials, "AWS_ACCESS_KEY_ID"),
        ("gs://b/t", f"http://metadata.google.internal/x: {NON_2XX}: 404", errors.NoCredentials, "GOOGLE_SERVICE"),
        ("abfss://c@a.dfs.core.windows.net/t", NO_ROLE, errors.NoCredentials, "AZURE_STORAGE_ACCOUNT_KEY"),
        ("az://c/t", NO_ROLE, errors.NoCredentials, "AZURE_STORAGE_ACCOUNT_NAME"),
        ("s3://b/t", NO_BUCKET, errors.NoSuchBucket, "s3://b/t"),
        ("az://c/t", NO_CONTAINER, errors.NoSuchBucket, "az://c/t"),
        ("gs://b/t", "The specified bucket does not exist.", errors.NoSuchBucket, "gs://b/t"),
        ("s3://b/t", REGION, errors.WrongRegion, "AWS_REGION"),
        ("gs://b/t", REGION, errors.StoreError, "LOCATION"),
        ("az://b/t", REGION, errors.StoreError, "LOCATION"),
        (
            "s3://b/t",
            f"{MALFORMED} the region 'us-east-1' is wrong; expecting 'eu-west-1'",
            errors.WrongRegion,
            "region",
        ),
        ("s3://b/t", f"{MALFORMED} a non-empty Access Key must be provided", errors.StoreError, "Access Key"),
        ("s3://b/t", f"{NON_2XX}: 403 Forbidden: AccessDenied", errors.StorePermissionDenied, "AccessDenied"),
        ("s3://b/t", "PUT /t/NoSuchBucket/x: lost", errors.StoreError, "lost"),
        ("s3://b/t", "something else\n\nDebug source: x", errors.StoreError, "something else."),
    ],
)
def test_what_the_user_can_do_is_said_in_one_sentence(root: str, text: str, kind: type[Exception], said: str) -> None:
    found = to_store_error("name", root, GenericError(text))
    assert type(found) is kind
    assert said in str(found)
    assert not set("<>\n") & set(str(found).replace("<account>", ""))
    assert "169.254" not in str(found)


def test_a_token_that_the_service_repeats_is_not_shown() -> None:
    answer = f"{NON_2XX}: 400: <Error><Code>ExpiredToken</Code><Token-0>pl4nted-s3cret</Token-0></Error>"
    for text in (answer, answer.replace("Token-0", "Token"), f"https://host/b: {answer}"):
        assert "pl4nted" not in str(to_store_error("name", "s3://b/t", GenericError(text)))


def test_what_is_denied_says_so() -> None:
    assert type(to_store_error("name", "s3://b/t", PermissionDeniedError("no"))) is errors.StorePermissionDenied
    assert isinstance(to_store_error("name", "s3://b/t", GenericError(NO_ROLE)), errors.StorePermissionDenied)


def test_without_credentials_nothing_was_asked_so_nothing_is_unknown() -> None:
    assert is_refusal(GenericError(NO_ROLE))
    assert not is_refusal(GenericError("Generic S3 error: client error (Connect): connection closed"))


def test_a_lost_reply_of_a_store_at_such_an_address_stays_unknown() -> None:
    for url in ("http://169.254.7.7:9000/bucket/name", "http://host/bucket/metadata.google.internal"):
        assert not is_refusal(GenericError(f"Generic S3 error: Error performing PUT {url}: connection closed"))


# -- S3's refusals -----------------------------------------------------------------------------------------------------

URL = "http://127.0.0.1:9000/bucket"
GET, HEAD, PUT, DELETE = f"GET {URL}/t/n", f"HEAD {URL}/t/n", f"PUT {URL}/t/n", f"POST {URL}?delete"
UPLOAD, COMPLETE, ABORT = f"POST {URL}/t/n?uploads=", f"POST {URL}/t/n?uploadId=1", f"DELETE {URL}/t/n?uploadId=1"
LIST = f"GET {URL}?list-type=2&prefix=t%2F"


def refused(request: str, code: str, message: str = "It is so.") -> str:
    document = f"<Error><Code>{code}</Code><Message>{message}</Message><StringToSign>AWS4\nx</StringToSign></Error>"
    return (
        f"The operation lacked the necessary privileges to complete for path t/n: Error performing {request} in 2ms - "
        f'{NON_2XX}: 403 Forbidden: <?xml version="1.0" encoding="UTF-8"?>\n{document}'
    )


def said_of(text: str, root: str = "s3://bucket/t") -> str:
    found = to_store_error("n", root, GenericError(f"{text}\n\nDebug source: <x>"))
    assert type(found) is errors.StorePermissionDenied
    assert not set("<>\n") & set(str(found))
    assert "folder" not in str(found)
    return str(found)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("SignatureDoesNotMatch", "the secret does not belong to the key"),
        ("InvalidAccessKeyId", "the service does not know this key"),
        ("AccessDenied", "these credentials may not do that"),
        ("RequestTimeTooSkewed", "RequestTimeTooSkewed: It is so. Check the credentials."),
    ],
)
def test_a_refusal_is_a_sentence_and_no_document(code: str, said: str) -> None:
    assert said in said_of(refused(PUT, code))
    assert len(said_of(refused(PUT, code))) < 400


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (refused(GET, "AccessDenied"), "s3:GetObject"),
        (refused(PUT, "AccessDenied"), "s3:PutObject"),
        (refused(UPLOAD, "AccessDenied"), "s3:PutObject"),
        (refused(DELETE, "AccessDenied"), "s3:DeleteObject"),
        (f"Generic S3 error: Error performing list request: {refused(LIST, 'AccessDenied')}", "s3:ListBucket"),
        ("Generic S3 error: DeleteObjects request failed for key t/n: Denied (code: AccessDenied)", "s3:DeleteObject"),
        (refused(HEAD, "")[: refused(HEAD, "").index("<")], "s3:GetObject is missing"),
    ],
)
def test_the_right_that_a_denied_request_needs_is_named(text: str, right: str) -> None:
    assert right in said_of(text)


@pytest.mark.parametrize("request_", [COMPLETE, ABORT, f"PUT {URL}/t/n?partNumber=1&uploadId=1"])
def test_no_right_is_named_where_it_is_not_certain(request_: str) -> None:
    assert "s3:" not in said_of(refused(request_, "AccessDenied")).replace("s3://", "")


def test_rights_of_amazon_are_not_named_of_another_service() -> None:
    assert "s3:" not in said_of(refused(PUT, "AccessDenied"), "gs://bucket/t")


def test_a_page_of_a_proxy_is_not_shown() -> None:
    page = f"Generic S3 error: Error performing {PUT} in 2ms - {NON_2XX}: 502 Bad Gateway: <html><body>x</body></html>"
    assert str(to_store_error("n", "s3://b/t", GenericError(page))).endswith("502 Bad Gateway.")


# -- requests without an answer ----------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_named_and_the_outcome_stays_unknown() -> None:
    text = (
        f"Generic S3 error: Error performing {PUT} in 9s, after 10 retries, max_retries: 10, retry_timeout: 180s  - "
        "HTTP error: error sending request"
    )
    said = reason("s3://bucket/t", GenericError(text))
    assert said.startswith("http://127.0.0.1:9000 does not answer: check the endpoint (AWS_ENDPOINT_URL")
    told = errors.StoreError(name="a", root="s3://lake", reason=said)
    assert "http://127.0.0.1:9000 does not answer: check" in str(told)  # a message's mask leaves the port there
    assert not is_refusal(GenericError(text))


NOT_ALLOWED = {
    "access_key_id": "k",
    "secret_access_key": "s",
    "region": "us-east-1",
    "endpoint": "http://127.0.0.1:9",
}


def test_without_leave_plain_http_is_not_sent_so_nothing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    store = open_store("s3://bucket/t", NOT_ALLOWED)
    parts = lambda name, data: store.put_stream(name, [data, data])  # noqa: E731
    for put in (store.put, store.put_if_absent, parts):
        with pytest.raises(errors.StoreError, match="AWS_ALLOW_HTTP=true; nothing was sent") as refusal:
            put("name", b"x")
        assert type(refusal.value) is errors.StoreError
    for read in (store.get, store.head, store.list_all, store.delete):
        with pytest.raises(errors.StoreError, match="AWS_ALLOW_HTTP=true"):
            read("name")


@pytest.mark.parametrize(
    "text",
    [
        f"Generic S3 error: Error performing {PUT} in 9s, after 1 retries, max_retries: 10, retry_timeout: 180s  - "
        "HTTP error: builder error",
        f"Generic S3 error: Error performing {PUT.replace('http:', 'https:')} in 9ms - HTTP error: builder error",
        f"Generic S3 error: Error performing {PUT} in 9ms - HTTP error: request or response body error",
        f"Generic S3 error: Error performing {PUT} in 9ms - HTTP error: error following redirect",
    ],
)
def test_what_may_have_been_sent_stays_unknown(text: str) -> None:
    assert not is_refusal(GenericError(text))
