"""Translates the settings of Hadoop's connectors for one bucket to options of obstore.

Pure. Knows the settings by which Spark reaches a bucket: credentials (keys, a token, a principal) and server (endpoint,
region). Guarantees: the key, the secret and the token of one result come from one place, of the bucket alone or of all
buckets; unknown settings are left out; an incomplete set of credentials counts as none.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_AMAZON = re.compile(r"s3(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-\d+))?\.amazonaws\.com")
_ANONYMOUS = {"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"}
_KEY_PROVIDERS = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
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
    """The options of `anabranch._storage.open.open_store` for Hadoop's settings of a bucket.

    Args:
        scheme: of the bucket's canonical URL: ``s3``, ``abfss``, ``gs``, ``hdfs`` or ``viewfs``.
        authority: the bucket, or container and account.
        settings: without the prefix ``spark.hadoop.``.

    Example:
        >>> translate_settings("s3", "lake", {"fs.s3a.access.key": "KEY", "fs.s3a.secret.key": "SECRET"})
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
    own, shared = _select_prefix(settings, f"fs.s3a.bucket.{bucket}."), _select_prefix(settings, "fs.s3a.")
    merged = {**shared, **own}
    return {**_s3_credentials(own, shared, merged.get("aws.credentials.provider", "")), **_s3_server(bucket, merged)}


def _s3_credentials(own: Settings, shared: Settings, providers: str) -> dict[str, str]:
    named = [p.strip().rpartition(".")[2] for p in providers.split(",") if p.strip()]
    if named and named[0] in _ANONYMOUS:
        return {"skip_signature": "true"}
    if named and not _KEY_PROVIDERS.intersection(named):
        return {}  # the connector does not look at keys then
    for candidate in (own, shared):
        key, secret, token = (candidate.get(name) for name in ("access.key", "secret.key", "session.token"))
        if key and secret:
            temporary = not named or "TemporaryAWSCredentialsProvider" in named
            tokens = {"session_token": token} if token and temporary else {}
            return {"access_key_id": key, "secret_access_key": secret, **tokens}
        if key or secret or token:
            return {}
    return {}


def _s3_server(bucket: str, bucket_settings: Settings) -> dict[str, str]:
    region, endpoint = bucket_settings.get("endpoint.region", ""), bucket_settings.get("endpoint", "")
    secure = bucket_settings.get("connection.ssl.enabled", "true").lower() != "false"
    server = urlsplit(endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}")
    amazon = _AMAZON.fullmatch(server.hostname or "")
    regions = {"region": region or (amazon and amazon["region"]) or ""}
    options = {name: value for name, value in regions.items() if value}
    if not server.hostname or amazon:
        return options
    netloc, path_style = server.netloc, bucket_settings.get("path.style.access", "false").lower() == "true"
    virtual = not path_style and _is_domain(server.hostname) and "." not in bucket
    options["endpoint"] = f"{server.scheme}://{f'{bucket}.' if virtual else ''}{netloc}{server.path.rstrip('/')}"
    options["virtual_hosted_style_request"] = str(virtual).lower()
    return options | ({"allow_http": "true"} if server.scheme == "http" else {})


def _is_domain(host: str) -> bool:
    """Whether a bucket's name may precede the host, which the connector does unless path style is requested."""
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
    options = {"client_id": client_id, "client_secret": secret, "tenant_id": tenant}
    return options if server.hostname == _LOGIN else {**options, "authority_host": f"{server.scheme}://{server.netloc}"}


def suffixes(authority: str) -> tuple[str, ...]:
    """Suffixes of a setting's name, by precedence: container and account, the account, or nothing."""
    container, _, host = authority.partition("@")
    return (f".{container}.{host}", f".{host}", "")


def _google(settings: Settings) -> dict[str, str]:
    kind = settings.get("fs.gs.auth.type", "").upper()
    options = _google_server(settings)
    if kind == "UNAUTHENTICATED" or (not kind and settings.get("fs.gs.auth.null.enable", "").lower() == "true"):
        return {"skip_signature": "true", **_anonymous_account(options), **options}
    file = settings.get("fs.gs.auth.service.account.json.keyfile") or settings.get(
        "google.cloud.auth.service.account.json.keyfile"
    )
    by_file = file and kind in ("", "SERVICE_ACCOUNT_JSON_KEYFILE")
    return {"service_account": file, **options} if file and by_file else options


def _anonymous_account(where: Settings) -> dict[str, str]:
    """An account without a name, for a server that requires none: obstore writes nothing without an account."""
    if "base_url" not in where:
        return {}
    account = {"client_email": "", "private_key": "", "private_key_id": ""}
    return {"service_account_key": json.dumps({"gcs_base_url": where["base_url"], "disable_oauth": True, **account})}


def _google_server(settings: Settings) -> dict[str, str]:
    server = settings.get("fs.gs.storage.root.url", "").rstrip("/")
    if not server or urlsplit(server).hostname == "storage.googleapis.com":
        return {}
    return {"base_url": server, **({"allow_http": "true"} if server.startswith("http://") else {})}


def _select_prefix(settings: Settings, prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value.strip() for key, value in settings.items() if key.startswith(prefix)}
