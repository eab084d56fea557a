"""The meaning of a service's failure: whether the store refused, and what its user can do about it.

Knows obstore's exceptions and the words of S3, Azure and Google Cloud; sends nothing. Guarantee: where the words are
unknown, a put's outcome is unknown, which is the safe side.
"""

from __future__ import annotations

import re

from obstore.exceptions import BaseError, GenericError, PermissionDeniedError, UnauthenticatedError

from anabranch._storage.service_sentences import DENIALS, code_of, sentence, was_never_sent, words
from anabranch.errors import NoCredentials, NoSuchBucket, StoreError, StorePermissionDenied, WrongRegion
from anabranch.errors.secrets import without_secrets

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_UNDECIDED = {408, 409, 425, 429}
_NO_CREDENTIALS = re.compile(r"169\.254\.\d+\.\d+|metadata\.google\.internal|fd00:ec2::254")
"""Addresses at which a machine requests its own role if it has no credentials, before any request to the store."""
_ROLE_REQUEST_FAILED = re.compile(
    r"Error performing (?:PUT|GET) http://(?:169\.254\.169\.254|metadata\.google\.internal)"
    r"/(?:latest|metadata|computeMetadata)/"
)
"""Matches the failure of that very request, not of one to a store with such an address or name."""
_NO_BUCKET = re.compile(
    r"<Code>(?:NoSuchBucket|ContainerNotFound)</Code>|The specified (?:bucket|container) does not exist"
)
_REGION = re.compile(r"incorrectly configured region|<Code>PermanentRedirect</Code>|the region '[^']*' is wrong")
_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or for a session "
    "spark.hadoop.fs.s3a.access.key and .secret.key, or give storage options.",
    "abfss": "set AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or a service principal, or for a session "
    "spark.hadoop.fs.azure.account.key.<account>.dfs.core.windows.net, or give storage options.",
    "gs": "set GOOGLE_SERVICE_ACCOUNT to the file of a service account's key, or for a session "
    "spark.hadoop.fs.gs.auth.service.account.json.keyfile, or give storage options.",
}
_CREDENTIALS["az"] = f"set AZURE_STORAGE_ACCOUNT_NAME, and {_CREDENTIALS['abfss'].removeprefix('set ')}"


def to_store_error(name: str, root: str, error: Exception) -> StoreError:
    """The error of a failed request that has changed nothing."""
    text = str(error)
    if _NO_CREDENTIALS.search(text):
        instead = _CREDENTIALS.get(root.partition(":")[0], "give storage options.")
        return NoCredentials(name=name, root=root, instead=instead)
    if _NO_BUCKET.search(text):
        return NoSuchBucket(name=name, root=root)
    if root.startswith("s3:") and _REGION.search(text):
        return WrongRegion(name=name, root=root)
    if code_of(words(error)) in DENIALS:
        return StorePermissionDenied(name=name, root=root, reason=reason(root, error))
    status = _STATUS.search(text)
    refused = status is not None and status[1] in ("401", "403")  # a list's refusal is no PermissionDeniedError
    if refused or isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        return StorePermissionDenied(name=name, root=root, reason=f"{reason(root, error)} Check the credentials.")
    return StoreError(name=name, root=root, reason=reason(root, error))


def is_refusal(error: Exception) -> bool:
    """Whether the store itself refused, or got no request, so that nothing happened.

    A ``GenericError`` may be anything from a lost reply to a full refusal. Only an HTTP status decides, or missing
    credentials, or a request that our own client did not send; if obstore ever words these differently, refusals become
    unknown outcomes.
    """
    if not isinstance(error, GenericError):
        return isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or not isinstance(error, BaseError)
    if _ROLE_REQUEST_FAILED.search(str(error)) or was_never_sent(words(error)):
        return True
    status = _STATUS.search(str(error))
    code = int(status[1]) if status else 0
    return code == 501 or (400 <= code < 500 and code not in _UNDECIDED)


def reason(root: str, error: Exception) -> str:
    """The reason of a failed request, in a sentence for a message."""
    return sentence(root, words(error))


def safe_cause(error: Exception) -> Exception | None:
    """The error to chain as the cause of ours, unless its text, which tracebacks show, holds a secret."""
    return error if without_secrets(str(error)) == str(error) else None
