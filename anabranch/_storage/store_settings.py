"""The file system settings of a session and of a call, for as long as a block runs.

Knows Hadoop's settings, the environment, and which of them takes precedence. It keeps nothing beyond the block, so no
session uses the settings of another. Guarantees: where the environment has credentials of a service, the session's
settings of that service are ignored, and refused where they name a server and the environment names none; the settings
of a call take precedence over both, and are refused where an environment variable would be mixed with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anabranch._storage.hadoop_names import FAMILIES, family_of, find_missing_setting, unsupported_settings
from anabranch._storage.hadoop_settings import translate_settings
from anabranch._storage.obstore_options import CREDENTIAL_OPTIONS, SERVER_OPTIONS, SERVICES, canonical_option
from anabranch.errors import InvalidOption, NotBuilt

_HADOOP = ("HADOOP_CONF_DIR", "HADOOP_HOME")
_KEY_FILE = "service_account"
_UNUSED_WITH_KEYS = frozenset(
    {"web_identity_token_file", "role_arn", "container_credentials_relative_uri", "container_credentials_full_uri"}
)
"""Options of S3 in the environment that are ignored where there are keys."""
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class StoreSettings:
    """The settings within a block.

    Attributes:
        by: the session.
        session: returns the session's settings that begin with one of these prefixes, without ``spark.hadoop.``.
        given: further settings, for one table or call.
        folder: returns the URL of the folder that relative paths start from; None: this process's working folder.
    """

    by: Any = field(repr=False)
    session: Callable[[tuple[str, ...]], Mapping[str, str]] = field(repr=False)
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Callable[[], str] | None = field(default=None, repr=False)
    cached_settings: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    cached_folders: list[str] = field(default_factory=list, repr=False)

    def settings(self, scheme: str) -> Mapping[str, str]:
        """The settings of a kind of file system; the session is queried once."""
        if scheme not in self.cached_settings:
            self.cached_settings[scheme] = self.session(family_of(scheme))
        return {**self.cached_settings[scheme], **self.given}

    def working_folder(self) -> str | None:
        """The session's working folder, with its file system; the session is queried once."""
        if not self.cached_folders and self.folder is not None:
            self.cached_folders.append(self.folder())
        return self.cached_folders[0] if self.cached_folders else None


_current: ContextVar[StoreSettings | None] = ContextVar("anabranch_told", default=None)


@contextmanager
def use_settings(
    by: Any,
    session: Callable[[tuple[str, ...]], Mapping[str, str]],
    given: Mapping[str, str] | None = None,
    folder: Callable[[], str] | None = None,
) -> Iterator[None]:
    """Apply the settings of a session and of a call within the block: to open buckets, and to resolve paths without a
    scheme. Of nested sessions the inner one counts.
    """
    outer = _current.get()
    if outer is not None and outer.by is by and not given:
        yield
        return
    token = _current.set(StoreSettings(by, session, dict(given or {}), folder))
    try:
        yield
    finally:
        _current.reset(token)


def bind_context(work: Callable[..., _Result]) -> Callable[..., _Result]:
    """The same work for other threads, which do not inherit the context. Whatever may open a store in a pool
    needs it; otherwise it would query another server, which does not know the file.
    """
    context = copy_context()
    return lambda *args: context.copy().run(work, *args)


def working_folder() -> str | None:
    """The URL of the folder that relative paths start from; None: this process's working folder."""
    context = _current.get()
    return None if context is None else context.working_folder()


def export_settings(scheme: str) -> dict[str, dict[str, str]]:
    """The settings of one kind of bucket, for a process without a session: arguments of `adopt_settings`."""
    context, family = _current.get(), FAMILIES.get(scheme, ())
    if context is None or not family:
        return {}
    settings = {"settings": context.settings(scheme), "given": context.given}
    return {
        kind: {key: value for key, value in values.items() if key.startswith(family)}
        for kind, values in settings.items()
    }


def adopt_settings(settings: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Apply settings for the rest of this thread, in a process that reads one table."""
    _current.set(StoreSettings(None, lambda _: settings, given))


def call_options() -> dict[str, str]:
    """The settings of one call, which Spark's readers and writers take as options."""
    context = _current.get()
    return {} if context is None else dict(context.given)


def bucket_options(scheme: str, authority: str, options: Mapping[str, str]) -> dict[str, str]:
    """The settings of a bucket as obstore options, except those that the caller has set.

    Args:
        scheme: of its canonical URL.
        authority: the bucket, or container and account.
        options: the caller's; where they set credentials or a server, the session's settings are ignored.

    Raises:
        InvalidOption, NotBuilt: a setting of the call cannot be followed.
        InvalidOption: the session names a server of its own, and the environment has keys, but names no server.
    """
    context, service = _current.get(), SERVICES.get(scheme, "hdfs")
    who, where = CREDENTIAL_OPTIONS.get(service, frozenset()), SERVER_OPTIONS.get(service, frozenset())
    mine = {canonical_option(service, key) for key in options}
    if context is None or (not context.given and (mine & (who | where) or (service == "hdfs" and options))):
        return {}
    call_settings = _translate_call_settings(scheme, authority, context)
    translated = translate_settings(scheme, authority, context.settings(scheme))
    if service == "hdfs":
        translated = {} if not call_settings and any(map(os.environ.get, _HADOOP)) else translated
    elif (who | where) & call_settings.keys():
        _check_unmixed(scheme, _environment_options(service) & (who | where), translated)
    else:
        _check_same_server(service, _environment_options(service), translated)
        translated = (
            _choose_session_options(_drop_missing_key_file(translated), _environment_options(service), who, where)
            | call_settings
        )
    return {key: value for key, value in translated.items() if key not in mine}


def _choose_session_options(
    options: dict[str, str], environment: set[str], who: frozenset[str], where: frozenset[str]
) -> dict[str, str]:
    """A session's options that count beside the environment: all or none of them."""
    if environment & who or (environment & where and where.intersection(options)):
        return {}
    return {key: value for key, value in options.items() if key not in environment}


def _check_same_server(service: str, environment: set[str], options: Mapping[str, str]) -> None:
    """Raises InvalidOption: the environment's keys would go to Amazon's, where the session names another server."""
    if (
        service == "aws"
        and "endpoint" in options
        and "access_key_id" in environment
        and not environment & SERVER_OPTIONS[service]
    ):
        reason = (
            "the environment has AWS_ACCESS_KEY_ID, which counts more than the session, but no server, so its keys "
            "would go to Amazon's: set AWS_ENDPOINT_URL, too, or unset the keys."
        )
        raise InvalidOption(option="spark.hadoop.fs.s3a.endpoint", value=options["endpoint"], reason=reason)


def _translate_call_settings(scheme: str, authority: str, context: StoreSettings) -> dict[str, str]:
    """The settings of the call as options. Raises NotBuilt, InvalidOption: our client cannot follow them."""
    if not context.given:
        return {}
    for name in unsupported_settings(scheme, authority, context.given, context.settings(scheme)):
        instead = "Leave it out, or set it for Spark and our client by themselves: docs/concepts/stores.md."
        raise NotBuilt(what=f"the setting {name} for one call", instead=instead)
    if (missing := find_missing_setting(scheme, authority, context.given)) is not None:
        raise InvalidOption(option=missing, value=None, reason="a key and its secret are given together.")
    return translate_settings(scheme, authority, context.given)


def _check_unmixed(scheme: str, environment: set[str], options: Mapping[str, str]) -> None:
    """Raises InvalidOption: an environment variable would be mixed with the settings of the call."""
    ignored = _UNUSED_WITH_KEYS if "access_key_id" in options else frozenset()
    if mixed := sorted(environment - options.keys() - ignored):
        reason = "the environment sets this for the same service, and it would be mixed with the settings of the call."
        raise InvalidOption(option=f"a setting of {scheme}", value=mixed[0], reason=reason)


def _environment_options(service: str) -> set[str]:
    """The options of a service that the environment has."""
    prefix = f"{service.upper()}_"
    return {canonical_option(service, name) for name, value in os.environ.items() if name.startswith(prefix) and value}


def _drop_missing_key_file(options: dict[str, str]) -> dict[str, str]:
    """Without a key file that is not on this machine: with Spark Connect it may be on the server's."""
    exists = _KEY_FILE not in options or os.path.isfile(options[_KEY_FILE])
    return options if exists else {key: value for key, value in options.items() if key != _KEY_FILE}
