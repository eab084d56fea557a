"""What a service's failure means to who sees it."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from anabranch import errors
from anabranch.storage.service_errors import is_refusal, typed

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
    found = typed("name", root, GenericError(text))
    assert type(found) is kind
    assert said in str(found)
    assert not set("<>\n") & set(str(found).replace("<account>", ""))
    assert "169.254" not in str(found)


def test_a_token_that_the_service_repeats_is_not_shown() -> None:
    answer = f"{NON_2XX}: 400: <Error><Code>ExpiredToken</Code><Token-0>pl4nted-s3cret</Token-0></Error>"
    for text in (answer, answer.replace("Token-0", "Token"), f"https://host/b: {answer}"):
        assert "pl4nted" not in str(typed("name", "s3://b/t", GenericError(text)))


def test_what_is_denied_says_so() -> None:
    assert type(typed("name", "s3://b/t", PermissionDeniedError("no"))) is errors.StorePermissionDenied
    assert isinstance(typed("name", "s3://b/t", GenericError(NO_ROLE)), errors.StorePermissionDenied)


def test_without_credentials_nothing_was_asked_so_nothing_is_unknown() -> None:
    assert is_refusal(GenericError(NO_ROLE))
    assert not is_refusal(GenericError("Generic S3 error: client error (Connect): connection closed"))


def test_a_lost_reply_of_a_store_at_such_an_address_stays_unknown() -> None:
    for url in ("http://169.254.7.7:9000/bucket/name", "http://host/bucket/metadata.google.internal"):
        assert not is_refusal(GenericError(f"Generic S3 error: Error performing PUT {url}: connection closed"))
