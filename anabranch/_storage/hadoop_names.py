"""Which settings of Hadoop's connectors Spark and our client can both follow, and obstore's options as such settings.

Pure. Guarantee: a setting that only one side could follow is named, so that the two sides never silently differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anabranch._storage.hadoop_settings import NAMESERVICES, Settings, suffixes, translate_settings
from anabranch._storage.obstore_options import CREDENTIAL_OPTIONS, SERVICES, canonical_option

_CONNECTOR = (
    r"threads\.|connection\.(?:maximum|timeout|establish|request|ttl|idle)|attempts\.|retry\.|fast\.upload|multipart\."
    r"|block\.size|buffer\.dir|readahead\.|experimental\.|committer\.|paging\.|read\.|write\.|io\.|input\.|socket\."
    r"|change\.detection|directory\.|performance\.|vectored\.|inputstream\.|outputstream\.|list\.|project\.id"
    r"|bucket\.probe|account\.hns\.enabled|fns\.|networking\.|ssl\."
)
_SPARK_ONLY = re.compile(
    r"fs\.(?:AbstractFileSystem\.)?\w+\.impl(?:\.disable\.cache)?|"
    rf"fs\.(?:s3a|azure|gs)\.(?:bucket\.[a-z0-9.-]+?\.)?(?:{_CONNECTOR}).*"
)
"""Settings of how a connector works, which change neither credentials nor the server, nor what is written."""
_S3 = {
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "connection.ssl.enabled",
    "aws.credentials.provider",
}
_AZURE = {
    "account.key",
    "account.auth.type",
    "sas.fixed.token",
    "account.oauth.provider.type",
    "account.oauth2.client.id",
    "account.oauth2.client.secret",
    "account.oauth2.client.endpoint",
}
_GOOGLE = {
    "fs.gs.auth.type",
    "fs.gs.auth.null.enable",
    "fs.gs.auth.service.account.enable",
    "fs.gs.auth.service.account.json.keyfile",
    "google.cloud.auth.service.account.json.keyfile",
    "fs.gs.storage.root.url",
}
_CREDENTIAL_KINDS = re.compile(r"(?:aws\.credentials\.provider|auth\.type|oauth\.provider\.type)(?:\.|$)")
"""Settings whose value selects a source of credentials; our client does not know all of them."""
FAMILIES = {"s3": ("fs.s3a.", "fs.s3."), "abfss": ("fs.azure.",), "gs": ("fs.gs.", "google.cloud.")}
"""Prefixes of the settings of a kind of bucket."""
_HDFS_PREFIXES = ("dfs.", "fs.hdfs.", "fs.viewfs.")
_PROVIDER = "org.apache.hadoop.fs.s3a.{}AWSCredentialsProvider"
_CLIENT_ONLY = {
    "timeout",
    "connect_timeout",
    "read_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "user_agent",
}
"""Options of how our client works, which have no meaning for Spark's connector."""


def family_of(scheme: str) -> tuple[str, ...]:
    """The prefixes of the settings of a kind of file system."""
    return FAMILIES.get(scheme, _HDFS_PREFIXES)


def unsupported_settings(scheme: str, authority: str, given: Settings, all_of_them: Settings) -> list[str]:
    """The settings in ``given`` that concern a bucket and that our client cannot follow; those of other buckets or
    services are left out.

    Args:
        scheme: of the bucket's canonical URL.
        authority: the bucket, or container and account.
        all_of_them: the given settings and those of the session, which have lower precedence.
    """
    options = translate_settings(scheme, authority, all_of_them)
    has_credentials = bool(CREDENTIAL_OPTIONS.get(SERVICES.get(scheme, ""), frozenset()).intersection(options))
    own = [key for key in given if key.startswith(family_of(scheme)) and not _is_of_another(scheme, authority, key)]
    return [
        key
        for key in own
        if not (_SPARK_ONLY.fullmatch(key) or _is_known(scheme, authority, key))
        or (_CREDENTIAL_KINDS.search(key) and not has_credentials)
    ]


def find_missing_setting(scheme: str, authority: str, settings: Settings) -> str | None:
    """The setting that others of a bucket require, such as the secret of a key; None where none is missing."""
    if scheme != "s3":
        return None
    for prefix in (f"fs.s3a.bucket.{authority}.", "fs.s3a."):
        named = {name for name in ("access.key", "secret.key", "session.token") if settings.get(prefix + name)}
        for name in ("access.key", "secret.key"):
            if named and name not in named:
                return prefix + name
    return None


def _is_known(scheme: str, authority: str, key: str) -> bool:
    if scheme == "s3":
        return key.removeprefix(f"fs.s3a.bucket.{authority}.").removeprefix("fs.s3a.") in _S3
    if scheme == "abfss":
        name = key.removeprefix("fs.azure.")
        return any(name.removesuffix(suffix) in _AZURE for suffix in suffixes(authority))
    return key in _GOOGLE if scheme == "gs" else key.startswith(NAMESERVICES)


def _is_of_another(scheme: str, authority: str, key: str) -> bool:
    if scheme == "s3":
        return key.startswith("fs.s3a.bucket.") and not key.startswith(f"fs.s3a.bucket.{authority}.")
    host = authority.partition("@")[2]
    return scheme == "abfss" and ".core." in key and not key.endswith(f".{host}")


# -- the other way round -----------------------------------------------------------------------------------------------


def for_spark(scheme: str, authority: str, options: Settings) -> tuple[dict[str, str], list[str]]:
    """Options of obstore as settings of one bucket for Spark's connector, and the options that it has no setting for.

    Example:
        >>> for_spark("s3", "lake", {"AWS_REGION": "eu-west-1", "proxy_url": "http://proxy"})
        ({'fs.s3a.bucket.lake.endpoint.region': 'eu-west-1'}, ['proxy_url'])
    """
    service = SERVICES.get(scheme, "")
    by_name = {canonical_option(service, key): (key, str(value)) for key, value in options.items()}
    remaining = {name: value for name, (_, value) in by_name.items()}
    settings = {"s3": _s3, "abfss": _azure, "gs": _google}.get(scheme, _no_settings)(authority, remaining)
    unsupported = [key for name, (key, _) in by_name.items() if name in remaining and name not in _CLIENT_ONLY]
    return settings, unsupported


def _s3(bucket: str, remaining: dict[str, str]) -> dict[str, str]:
    """The settings; the options that they replace are removed from ``remaining``."""
    settings: dict[str, str | None] = {
        "access.key": remaining.pop("access_key_id", None),
        "secret.key": remaining.pop("secret_access_key", None),
        "session.token": remaining.pop("session_token", None),
        "endpoint.region": remaining.pop("region", None) or remaining.pop("default_region", None),
    }
    if settings["access.key"]:
        settings["aws.credentials.provider"] = _PROVIDER.format("Temporary" if settings["session.token"] else "Simple")
    if remaining.get("skip_signature", "").lower() == "true":
        settings["aws.credentials.provider"] = (
            _PROVIDER.format("Anonymous") if remaining.pop("skip_signature") else None
        )
    if remaining.get("virtual_hosted_style_request", "false").lower() == "false":
        remaining.pop("virtual_hosted_style_request", None)
        settings["endpoint"] = remaining.pop("endpoint", None)
        settings["path.style.access"] = "true" if settings["endpoint"] else None
    remaining.pop("allow_http", None)  # the endpoint's scheme decides
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in settings.items() if value}


def _azure(authority: str, remaining: dict[str, str]) -> dict[str, str]:
    host = authority.partition("@")[2]
    if remaining.get("account_name") == host.partition(".")[0]:
        remaining.pop("account_name")
    key, token = remaining.pop("account_key", None), remaining.pop("sas_key", None)
    settings = {"account.key": key} if key else {"sas.fixed.token": token, "account.auth.type": "SAS"} if token else {}
    return {f"fs.azure.{name}.{host}": value for name, value in settings.items() if value}


def _google(bucket: str, remaining: dict[str, str]) -> dict[str, str]:
    settings = {
        "auth.service.account.json.keyfile": remaining.pop("service_account", None),
        "storage.root.url": remaining.pop("base_url", None),
    }
    remaining.pop("allow_http", None)
    return {f"fs.gs.{name}": value for name, value in settings.items() if value}


def _no_settings(authority: str, remaining: Mapping[str, str]) -> dict[str, str]:
    return {}
