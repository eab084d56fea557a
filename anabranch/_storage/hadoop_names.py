"""Which settings of Hadoop's connectors both sides of a bucket can follow, and options of obstore as such settings.

Pure. Guarantee: what only one side could follow is named, so that nobody takes the two for alike where they are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anabranch._storage.hadoop_settings import NAMESERVICES, Settings, suffixes, translate_settings
from anabranch._storage.obstore_options import SERVICES, WHO, plain

_CONNECTOR = (
    r"threads\.|connection\.(?:maximum|timeout|establish|request|ttl|idle)|attempts\.|retry\.|fast\.upload|multipart\."
    r"|block\.size|buffer\.dir|readahead\.|experimental\.|committer\.|paging\.|read\.|write\.|io\.|input\.|socket\."
    r"|change\.detection|directory\.|performance\.|vectored\.|inputstream\.|outputstream\.|list\.|project\.id"
    r"|bucket\.probe|account\.hns\.enabled|fns\.|networking\.|ssl\."
)
_OF_SPARK_ALONE = re.compile(
    r"fs\.(?:AbstractFileSystem\.)?\w+\.impl(?:\.disable\.cache)?|"
    rf"fs\.(?:s3a|azure|gs)\.(?:bucket\.[a-z0-9.-]+?\.)?(?:{_CONNECTOR}).*"
)
"""Settings of how a connector works, which change neither who asks nor where, nor what is written."""
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
_KINDS = re.compile(r"(?:aws\.credentials\.provider|auth\.type|oauth\.provider\.type)(?:\.|$)")
"""Settings whose value says how credentials are found; our client does not know all of the ways."""
FAMILIES = {"s3": ("fs.s3a.", "fs.s3."), "abfss": ("fs.azure.",), "gs": ("fs.gs.", "google.cloud.")}
"""How the settings of a kind of bucket begin."""
_OF_HDFS = ("dfs.", "fs.hdfs.", "fs.viewfs.")
_SIMPLE = "org.apache.hadoop.fs.s3a.{}AWSCredentialsProvider"
_OURS_ALONE = {
    "timeout",
    "connect_timeout",
    "read_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "user_agent",
}
"""Options of how our client works, which Spark's connector need not know."""


def family_of(scheme: str) -> tuple[str, ...]:
    """How the settings begin that say something of a kind of file system."""
    return FAMILIES.get(scheme, _OF_HDFS)


def unsupported_settings(scheme: str, authority: str, given: Settings, all_of_them: Settings) -> list[str]:
    """Those of the given settings that concern a bucket and that our client cannot follow; what speaks of other buckets
    or services is none of them.

    Args:
        scheme: of the bucket's canonical URL.
        authority: the bucket, or container and account.
        all_of_them: the given ones and those of the session, which count less.
    """
    said = translate_settings(scheme, authority, all_of_them)
    is_known_who = bool(WHO.get(SERVICES.get(scheme, ""), frozenset()).intersection(said))
    own = [key for key in given if key.startswith(family_of(scheme)) and not _is_of_another(scheme, authority, key)]
    return [
        key
        for key in own
        if not (_OF_SPARK_ALONE.fullmatch(key) or _is_known(scheme, authority, key))
        or (_KINDS.search(key) and not is_known_who)
    ]


def lacks(scheme: str, authority: str, settings: Settings) -> str | None:
    """The setting without which others of a bucket say nothing, such as the secret of a key; None where none lacks."""
    if scheme != "s3":
        return None
    for of in (f"fs.s3a.bucket.{authority}.", "fs.s3a."):
        named = {name for name in ("access.key", "secret.key", "session.token") if settings.get(of + name)}
        for name in ("access.key", "secret.key"):
            if named and name not in named:
                return of + name
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
    """Options of obstore as settings of that bucket alone for Spark's connector, and those that it cannot be told.

    Example:
        >>> for_spark("s3", "lake", {"AWS_REGION": "eu-west-1", "proxy_url": "http://proxy"})
        ({'fs.s3a.bucket.lake.endpoint.region': 'eu-west-1'}, ['proxy_url'])
    """
    service = SERVICES.get(scheme, "")
    left = {plain(service, key): (key, str(value)) for key, value in options.items()}
    given = {name: value for name, (_, value) in left.items()}
    told = {"s3": _s3, "abfss": _azure, "gs": _google}.get(scheme, _nothing)(authority, given)
    untold = [key for name, (key, _) in left.items() if name in given and name not in _OURS_ALONE]
    return told, untold


def _s3(bucket: str, given: dict[str, str]) -> dict[str, str]:
    """The settings; what they say is taken out of what was given."""
    said: dict[str, str | None] = {
        "access.key": given.pop("access_key_id", None),
        "secret.key": given.pop("secret_access_key", None),
        "session.token": given.pop("session_token", None),
        "endpoint.region": given.pop("region", None) or given.pop("default_region", None),
    }
    if said["access.key"]:
        said["aws.credentials.provider"] = _SIMPLE.format("Temporary" if said["session.token"] else "Simple")
    if given.get("skip_signature", "").lower() == "true":
        said["aws.credentials.provider"] = _SIMPLE.format("Anonymous") if given.pop("skip_signature") else None
    if given.get("virtual_hosted_style_request", "false").lower() == "false":
        given.pop("virtual_hosted_style_request", None)
        said["endpoint"] = given.pop("endpoint", None)
        said["path.style.access"] = "true" if said["endpoint"] else None
    given.pop("allow_http", None)  # the endpoint says it
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in said.items() if value}


def _azure(authority: str, given: dict[str, str]) -> dict[str, str]:
    host = authority.partition("@")[2]
    if given.get("account_name") == host.partition(".")[0]:
        given.pop("account_name")
    key, token = given.pop("account_key", None), given.pop("sas_key", None)
    said = {"account.key": key} if key else {"sas.fixed.token": token, "account.auth.type": "SAS"} if token else {}
    return {f"fs.azure.{name}.{host}": value for name, value in said.items() if value}


def _google(bucket: str, given: dict[str, str]) -> dict[str, str]:
    said = {
        "auth.service.account.json.keyfile": given.pop("service_account", None),
        "storage.root.url": given.pop("base_url", None),
    }
    given.pop("allow_http", None)
    return {f"fs.gs.{name}": value for name, value in said.items() if value}


def _nothing(authority: str, given: Mapping[str, str]) -> dict[str, str]:
    return {}
