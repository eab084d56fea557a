"""Converts a service's answer to a sentence for its user: which key, right, setting or server is at fault.

Pure. Knows the words of obstore's errors and the codes of S3. Guarantees: no sentence holds XML or HTML; a right is
named only where the request determines it; an unknown answer stays in the service's own words.
"""

from __future__ import annotations

import re

DENIALS = {
    "SignatureDoesNotMatch": "the secret does not belong to the key (SignatureDoesNotMatch): check both, and that they "
    "are of this service.",
    "InvalidAccessKeyId": "the service does not know this key (InvalidAccessKeyId): check the key and the endpoint.",
    "AccessDenied": "these credentials may not do that (AccessDenied).",
}
"""Sentences for the codes that blame the credentials."""
_BARE_REFUSAL = (
    "the service refuses (403), and says no more to such a request: the key or its secret is wrong, or s3:GetObject is "
    "missing, or, for a name that is not there, s3:ListBucket."
)
_ENDPOINTS = {
    "s3": "AWS_ENDPOINT_URL, or for a session spark.hadoop.fs.s3a.endpoint",
    "abfss": "AZURE_STORAGE_ENDPOINT",
    "az": "AZURE_STORAGE_ENDPOINT",
    "gs": "GOOGLE_BASE_URL, or for a session spark.hadoop.fs.gs.storage.root.url",
}
_ALLOWING = {"s3": "AWS_ALLOW_HTTP", "abfss": "AZURE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}

_REQUEST = re.compile(r"Error performing (?P<method>[A-Z]+) (?P<server>https?://[^/?\s]+)(?P<rest>\S*)")
_LISTING = "Error performing list request"
_DELETE_FAILED = re.compile(r"DeleteObjects request failed for key .*\(code: (\w+)\)\.?$", re.DOTALL)
_ANSWER = re.compile(r"Server returned non-2xx status code: (?P<status>\d{3})[^:<\n]*:?(?P<body>.*)", re.DOTALL)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_MARKUP = re.compile(r"<(?:\?xml|!doctype|html|error)\b", re.IGNORECASE)
_UNANSWERED = re.compile(r"HTTP error: error sending request\.?$")
_NOT_BUILT = re.compile(
    r"Generic \w+ error: (?:Error performing list request: )?Error performing [A-Z]+ http://\S+ in \S+ - "
    r"HTTP error: builder error\.?"
)
"""The client refused the first request, to a server without TLS; the error of a later one would count its retries."""


def words(error: Exception) -> str:
    """obstore's message, without the details for its authors."""
    return str(error).partition("\n\nDebug source")[0].strip()


def was_never_sent(text: str) -> bool:
    """Whether our client refused the request: its server has no TLS, and plain http is not allowed.

    Example:
        >>> was_never_sent("Generic S3 error: Error performing PUT http://h/b/n in 2µs - HTTP error: builder error")
        True
    """
    return _NOT_BUILT.fullmatch(text) is not None


def code_of(text: str) -> str | None:
    """The code of the service's answer, if it has one in the form of S3."""
    answer = _ANSWER.search(text)
    match = _CODE.search(answer["body"]) if answer is not None else _DELETE_FAILED.search(text)
    return match[1] if match is not None else None


def sentence(root: str, text: str) -> str:
    """A sentence, or two, for a message.

    Args:
        root: the canonical URL of the store.
        text: `words` of the error.
    """
    scheme, request, answer = root.partition(":")[0], _REQUEST.search(text), _ANSWER.search(text)
    if was_never_sent(text):
        variable = f", or {_ALLOWING[scheme]}=true" if scheme in _ALLOWING else ""
        return f"plain http has to be allowed, by the storage option allow_http{variable}; nothing was sent."
    if request is not None and _UNANSWERED.search(text):
        return f"{request['server']} does not answer: check {_describe_endpoint(scheme)} and the network."
    if (code := code_of(text)) in DENIALS:
        return f"{DENIALS[code]}{_missing_right(scheme, text) if code == 'AccessDenied' else ''}"
    is_bare = answer is not None and answer["status"] == "403" and not answer["body"].strip()
    if scheme == "s3" and request is not None and request["method"] == "HEAD" and is_bare:
        return _BARE_REFUSAL
    return _end_sentence(_without_markup(text))


def _describe_endpoint(scheme: str) -> str:
    return f"the endpoint ({_ENDPOINTS[scheme]})" if scheme in _ENDPOINTS else "the location"


def _missing_right(scheme: str, text: str) -> str:
    """The right of S3 that a denied request needs; nothing where it is uncertain."""
    request = _REQUEST.search(text)
    if scheme != "s3":
        return ""
    if _LISTING in text:
        return " A list needs s3:ListBucket."
    method, rest = (request["method"], request["rest"]) if request is not None else ("", "")
    if _DELETE_FAILED.search(text) or (method == "POST" and rest.endswith("?delete")):
        return " Deleting needs s3:DeleteObject."
    if (method == "PUT" and "?" not in rest) or (method == "POST" and "?uploads" in rest):
        return " Writing needs s3:PutObject."
    if method in ("GET", "HEAD"):
        return " Reading needs s3:GetObject, and s3:ListBucket to learn that a name is not there."
    return ""


def _without_markup(text: str) -> str:
    """The text, with a document replaced by its code and message."""
    markup = _MARKUP.search(text)
    if markup is None:
        return text
    document = text[markup.start() :]
    parts = [match[1].strip() for match in (_CODE.search(document), _MESSAGE.search(document)) if match is not None]
    return ": ".join([text[: markup.start()].rstrip(": \n"), *filter(None, parts)])


def _end_sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text.rstrip(': ')}."
