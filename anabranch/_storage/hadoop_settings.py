"""What the settings of Hadoop's connectors say of one bucket, as options of obstore.

Pure. Knows the settings by which Spark reaches a bucket: who asks (keys, a token, a principal), and where (endpoint,
region). Guarantees: the key, the secret and the token of one answer come from one place, of the bucket alone or of all
buckets; what is not known here is left out; an answer that is not whole is none.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_AMAZON = re.compile(r"s3(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-\d+))?\.amazonaws\.com")
_ANONYMOUS = {"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"}
_BY_KEYS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_PRINCIPAL = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_LOGIN = "login.microsoftonline.com"
NAMESERVICES = (
    "dfs.nameservices",
    "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address",
    "dfs.client.failover.",
    "fs.viewfs.",
)

Settings = Mapping[str, str]


def translate_settings(scheme: str, authority: str, settings: Settings) -> dict[str, str]:
    """What settings of Hadoop say of a bucket, as options of `anabranch._storage.open.open_store`.

    Args:
        scheme: of the bucket's canonical URL: ``s3``, ``abfss``, ``gs``, ``hdfs`` or ``viewfs``.
        authority: the bucket, or container and account.
        settings: without ``spark.hadoop.`` before them.

    Example:
        >>> translated("s3", "lake", {"fs.s3a.access.key": "KEY", "fs.s3a.secret.key": "SECRET"})
        {'access_key_id': 'KEY', 'secret_access_key': 'SECRET'}
    """
    if scheme == "s3":
        return _s3(authority, settings)
    if scheme == "abfss":
        return _azure(authority, settings)
    if scheme == "gs":
        return _google(settings)
    return {key: value for key, value in settings.items() if key.startswith(NAMESERVICES)}


# -- S3 ----------------------------------------------------------------------------------------------------------------


def _s3(bucket: str, settings: Settings) -> dict[str, str]:
    own, every = _within(settings, f"fs.s3a.bucket.{bucket}."), _within(settings, "fs.s3a.")
    said = {**every, **own}
    return {**_s3_who(own, every, said.get("aws.credentials.provider", "")), **_s3_where(bucket, said)}


def _s3_who(own: Settings, every: Settings, providers: str) -> dict[str, str]:
    named = [each.strip().rpartition(".")[2] for each in providers.split(",") if each.strip()]
    if named and named[0] in _ANONYMOUS:
        return {"skip_signature": "true"}
    if named and not _BY_KEYS.intersection(named):
        return {}  # the connector does not look at keys then
    for said in (own, every):
        key, secret, token = (said.get(name) for name in ("access.key", "secret.key", "session.token"))
        if key and secret:
            temporary = not named or "TemporaryAWSCredentialsProvider" in named
            tokens = {"session_token": token} if token and temporary else {}
            return {"access_key_id": key, "secret_access_key": secret, **tokens}
        if key or secret or token:
            return {}
    return {}


def _s3_where(bucket: str, said: Settings) -> dict[str, str]:
    region, given = said.get("endpoint.region", ""), said.get("endpoint", "")
    secure = said.get("connection.ssl.enabled", "true").lower() != "false"
    server = urlsplit(given if "://" in given else f"{'https' if secure else 'http'}://{given}")
    amazon = _AMAZON.fullmatch(server.hostname or "")
    regions = {"region": region or (amazon and amazon["region"]) or ""}
    found = {name: value for name, value in regions.items() if value}
    if not server.hostname or amazon:
        return found
    netloc, path_style = server.netloc, said.get("path.style.access", "false").lower() == "true"
    virtual = not path_style and _is_domain(server.hostname) and "." not in bucket
    found["endpoint"] = f"{server.scheme}://{f'{bucket}.' if virtual else ''}{netloc}{server.path.rstrip('/')}"
    found["virtual_hosted_style_request"] = str(virtual).lower()
    return found | ({"allow_http": "true"} if server.scheme == "http" else {})


def _is_domain(host: str) -> bool:
    """Whether a bucket's name may stand before it, as the connector has it where nobody asks for paths."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


# -- Azure and Google --------------------------------------------------------------------------------------------------


def _azure(authority: str, settings: Settings) -> dict[str, str]:
    def setting(name: str) -> str:
        spelled = (f"fs.azure.{name}{suffix}" for suffix in suffixes(authority))
        return next((settings[key] for key in spelled if settings.get(key)), "")

    kind = setting("account.auth.type").lower() or "sharedkey"
    key, token = setting("account.key"), setting("sas.fixed.token")
    if kind == "sharedkey":
        return {"account_key": key} if key else {}
    if kind == "sas":
        return {"sas_key": token.removeprefix("?")} if token else {}
    if kind == "oauth" and setting("account.oauth.provider.type") == _PRINCIPAL:
        return _principal(*(setting(f"account.oauth2.client.{name}") for name in ("id", "secret", "endpoint")))
    return {}


def _principal(client_id: str, secret: str, endpoint: str) -> dict[str, str]:
    server = urlsplit(endpoint)
    tenant = server.path.strip("/").partition("/")[0]
    if not (client_id and secret and tenant and server.hostname):
        return {}
    found = {"client_id": client_id, "client_secret": secret, "tenant_id": tenant}
    return found if server.hostname == _LOGIN else {**found, "authority_host": f"{server.scheme}://{server.netloc}"}


def suffixes(authority: str) -> tuple[str, ...]:
    """What may stand behind a setting's name: container and account, the account, or nothing; in the order in which
    they count.
    """
    container, _, host = authority.partition("@")
    return (f".{container}.{host}", f".{host}", "")


def _google(settings: Settings) -> dict[str, str]:
    kind = settings.get("fs.gs.auth.type", "").upper()
    found = _google_where(settings)
    if kind == "UNAUTHENTICATED" or (not kind and settings.get("fs.gs.auth.null.enable", "").lower() == "true"):
        return {"skip_signature": "true", **_nobody(found), **found}
    file = settings.get("fs.gs.auth.service.account.json.keyfile") or settings.get(
        "google.cloud.auth.service.account.json.keyfile"
    )
    by_file = file and kind in ("", "SERVICE_ACCOUNT_JSON_KEYFILE")
    return {"service_account": file, **found} if file and by_file else found


def _nobody(where: Settings) -> dict[str, str]:
    """An account without a name, for a server that asks for none: obstore writes nothing without an account."""
    if "base_url" not in where:
        return {}
    account = {"client_email": "", "private_key": "", "private_key_id": ""}
    return {"service_account_key": json.dumps({"gcs_base_url": where["base_url"], "disable_oauth": True, **account})}


def _google_where(settings: Settings) -> dict[str, str]:
    server = settings.get("fs.gs.storage.root.url", "").rstrip("/")
    if not server or urlsplit(server).hostname == "storage.googleapis.com":
        return {}
    return {"base_url": server, **({"allow_http": "true"} if server.startswith("http://") else {})}


def _within(settings: Settings, prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value.strip() for key, value in settings.items() if key.startswith(prefix)}
