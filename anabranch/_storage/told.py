"""What a session, and who calls its methods, says of file systems, for as long as a block runs.

Knows Hadoop's settings as they come, the environment, and which of them counts. It keeps nothing beyond the block, so
that no session ever uses what another one said. Guarantees: where the environment has credentials of a service, what a
session says of it is not used, and is refused where it names a server and the environment names none; what is given for
one call counts more than both, and is refused where a variable would be mixed with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anabranch._storage.hadoop_names import FAMILIES, family_of, lacks, unsupported_settings
from anabranch._storage.hadoop_settings import translate_settings
from anabranch._storage.obstore_options import SERVICES, WHERE, WHO, plain
from anabranch.errors import InvalidOption, NotBuilt

_HADOOP = ("HADOOP_CONF_DIR", "HADOOP_HOME")
_KEY_FILE = "service_account"
_BESIDES_KEYS = frozenset(
    {"web_identity_token_file", "role_arn", "container_credentials_relative_uri", "container_credentials_full_uri"}
)
"""What of S3's environment is not looked at where there are keys."""
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Told:
    """What is said within a block.

    Attributes:
        by: the session.
        session: gives its settings that begin with one of these, without ``spark.hadoop.`` before them.
        given: further ones, for one table or call.
        folder: gives the URL of the folder in which a path without a scheme begins; None: as this process has it.
    """

    by: Any = field(repr=False)
    session: Callable[[tuple[str, ...]], Mapping[str, str]] = field(repr=False)
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: Callable[[], str] | None = field(default=None, repr=False)
    known: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    known_folders: list[str] = field(default_factory=list, repr=False)

    def settings(self, scheme: str) -> Mapping[str, str]:
        """Those of a kind of file system; the session is asked once."""
        if scheme not in self.known:
            self.known[scheme] = self.session(family_of(scheme))
        return {**self.known[scheme], **self.given}

    def working_folder(self) -> str | None:
        """The session's working folder, with its file system; it is asked once."""
        if not self.known_folders and self.folder is not None:
            self.known_folders.append(self.folder())
        return self.known_folders[0] if self.known_folders else None


_current: ContextVar[Told | None] = ContextVar("anabranch_told", default=None)


@contextmanager
def telling(
    by: Any,
    session: Callable[[tuple[str, ...]], Mapping[str, str]],
    given: Mapping[str, str] | None = None,
    folder: Callable[[], str] | None = None,
) -> Iterator[None]:
    """Within the block, buckets are opened as a session says, and as is given for them, and paths without a scheme lie
    where they lie for it; of one session inside of another the inner one counts.
    """
    outer = _current.get()
    if outer is not None and outer.by is by and not given:
        yield
        return
    token = _current.set(Told(by, session, dict(given or {}), folder))
    try:
        yield
    finally:
        _current.reset(token)


def bind_context(work: Callable[..., _Found]) -> Callable[..., _Found]:
    """The same work, for other threads: they hear nothing of what is said here, unless it is handed on. Whatever may
    open a store in a thread of a pool needs it: it would ask another server else, which knows no such file.
    """
    context = copy_context()
    return lambda *args: context.copy().run(work, *args)


def working_folder() -> str | None:
    """The URL of the folder in which a path without a scheme begins here; None: as this process has it."""
    told = _current.get()
    return None if told is None else told.working_folder()


def export_settings(scheme: str) -> dict[str, dict[str, str]]:
    """What is said here of one kind of bucket, for a process that knows no session: arguments of `adopt_settings`."""
    told, family = _current.get(), FAMILIES.get(scheme, ())
    if told is None or not family:
        return {}
    said = {"settings": told.settings(scheme), "given": told.given}
    return {of: {key: value for key, value in each.items() if key.startswith(family)} for of, each in said.items()}


def adopt_settings(settings: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Say it for the rest of this thread: of a process that reads one table."""
    _current.set(Told(None, lambda _: settings, given))


def call_options() -> dict[str, str]:
    """What is given for one call, which Spark's readers and writers take as options."""
    told = _current.get()
    return {} if told is None else dict(told.given)


def bucket_options(scheme: str, authority: str, options: Mapping[str, str]) -> dict[str, str]:
    """What is said of a bucket, as options of obstore, beside those that a caller has.

    Args:
        scheme: of its canonical URL.
        authority: the bucket, or container and account.
        options: the caller's; where they say who asks, or where, what the session says is not used.

    Raises:
        InvalidOption, NotBuilt: what is given for one call cannot be followed.
        InvalidOption: the session names a server of its own, and the environment has keys, but names no server.
    """
    told, service = _current.get(), SERVICES.get(scheme, "hdfs")
    who, where = WHO.get(service, frozenset()), WHERE.get(service, frozenset())
    mine = {plain(service, key) for key in options}
    if told is None or (not told.given and (mine & (who | where) or (service == "hdfs" and options))):
        return {}
    alone = _translate_given(scheme, authority, told)
    said = translate_settings(scheme, authority, told.settings(scheme))
    if service == "hdfs":
        said = {} if not alone and any(map(os.environ.get, _HADOOP)) else said
    elif (who | where) & alone.keys():
        _check_unmixed(scheme, _environment_options(service) & (who | where), said)
    else:
        _check_same_server(service, _environment_options(service), said)
        said = _of_session(_with_a_file(said), _environment_options(service), who, where) | alone
    return {key: value for key, value in said.items() if key not in mine}


def _of_session(said: dict[str, str], spoken: set[str], who: frozenset[str], where: frozenset[str]) -> dict[str, str]:
    """What a session says, as far as it counts beside the environment: as a whole, or not at all."""
    if spoken & who or (spoken & where and where.intersection(said)):
        return {}
    return {key: value for key, value in said.items() if key not in spoken}


def _check_same_server(service: str, spoken: set[str], said: Mapping[str, str]) -> None:
    """Raises InvalidOption: the environment's keys would go to Amazon's, where the session names another server."""
    if service == "aws" and "endpoint" in said and "access_key_id" in spoken and not spoken & WHERE[service]:
        reason = (
            "the environment has AWS_ACCESS_KEY_ID, which counts more than the session, but no server, so its keys "
            "would go to Amazon's: set AWS_ENDPOINT_URL, too, or unset the keys."
        )
        raise InvalidOption(option="spark.hadoop.fs.s3a.endpoint", value=said["endpoint"], reason=reason)


def _translate_given(scheme: str, authority: str, told: Told) -> dict[str, str]:
    """What is given for this call, as options. Raises NotBuilt, InvalidOption: our client cannot follow it."""
    if not told.given:
        return {}
    for name in unsupported_settings(scheme, authority, told.given, told.settings(scheme)):
        instead = "Leave it out, or set it for Spark and our client by themselves: docs/concepts/stores.md."
        raise NotBuilt(what=f"the setting {name} for one call", instead=instead)
    if (missing := lacks(scheme, authority, told.given)) is not None:
        raise InvalidOption(option=missing, value=None, reason="a key and its secret are given together.")
    return translate_settings(scheme, authority, told.given)


def _check_unmixed(scheme: str, spoken: set[str], said: Mapping[str, str]) -> None:
    """Raises InvalidOption: a variable would be used together with what is given for this call."""
    ignored = _BESIDES_KEYS if "access_key_id" in said else frozenset()
    if mixed := sorted(spoken - said.keys() - ignored):
        reason = "the environment says this of the same service, and it would be used together with what is given."
        raise InvalidOption(option=f"a setting of {scheme}", value=mixed[0], reason=reason)


def _environment_options(service: str) -> set[str]:
    """The options of a service that the environment has."""
    prefix = f"{service.upper()}_"
    return {plain(service, name) for name, value in os.environ.items() if name.startswith(prefix) and value}


def _with_a_file(said: dict[str, str]) -> dict[str, str]:
    """Without the file of a key that is not on this machine: with Spark Connect it may be on the server's."""
    is_there = _KEY_FILE not in said or os.path.isfile(said[_KEY_FILE])
    return said if is_there else {key: value for key, value in said.items() if key != _KEY_FILE}
