"""Tracks which Python objects represent one Spark session, and which sessions are installed.

PySpark often creates a new object for a session: for ``SparkSession(sc)``, ``getActiveSession()``, each batch of a
stream. Knows nothing of the doors. Guarantees: an installed session is recognised through each of its objects, and so
are its clones; a new session is not installed. Only `uninstall` ends an installation. Each object queries its session
once per installation, and a process in which nothing is installed queries none.

`install` leaves a setting in the session. Clones inherit it with all others; no other process reads it, since its name
belongs to this process alone. To learn whether an object represents a known session, or a clone of it, a new value is
set through one object and read through the other.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakSet

from pyspark.sql import SparkSession

from anabranch._spark.sessions.session import has_own_delta
from anabranch.errors.process_state import PerObject, hold

SETTING = f"spark.anabranch.installed.{uuid.uuid4().hex[:12]}"
_CLONE = "clone "
_NOTHING: frozenset[str] = frozenset()
_logger = logging.getLogger("anabranch")
_V = TypeVar("_V")


@dataclass(eq=False)
class Session:
    """A Spark session, for as long as an object that represents it lives.

    Attributes:
        objects: the objects that represent it.
        formats: the formats that are ours in it; empty if it is not installed.
        mark: the newest value set in it; None if it was never installed.
        is_clone: whether it is installed only because it is the clone of an installed session.
        asked_at: the number of installations when it was last queried.
    """

    objects: WeakSet[SparkSession] = field(default_factory=WeakSet)
    formats: frozenset[str] = _NOTHING
    mark: str | None = None
    is_clone: bool = False
    asked_at: int = 0


@dataclass(eq=False)
class _Count:
    """The number of installations in this process, and the marks given out."""

    installations: int = 0
    marks: Iterator[int] = field(default_factory=itertools.count)


_count = hold("how many sessions were installed", "it is one number")(_Count())
_sessions: PerObject[SparkSession, Session] = hold("installed sessions", "they are installed")(PerObject())


def session_of(spark: SparkSession) -> Session:
    """The session that an object represents."""
    session = _sessions.get(spark)
    if session is not None and (session.formats or session.asked_at == _count.installations):
        return session
    with _sessions.lock:
        return _look_up_or_add(spark)


def formats_of(spark: SparkSession) -> frozenset[str]:
    """The formats that are ours in a session; empty if it is not installed."""
    return session_of(spark).formats


def note_installed(spark: SparkSession) -> None:
    """Record that a session is installed. The setting is written only if the session does not have it already."""
    with _sessions.lock:
        session = session_of(spark)
        formats = _formats(spark)
        if session.formats != formats or session.is_clone or spark.conf.get(SETTING, None) != session.mark:
            _mark(session, spark, is_clone=False)
        session.formats = formats
        _count.installations += 1


def note_uninstalled(spark: SparkSession) -> None:
    """Record that a session is no longer installed; its clones remain as they are."""
    with _sessions.lock:
        session = session_of(spark)
        if session.formats:
            spark.conf.unset(SETTING)
            session.formats, session.mark = _NOTHING, None


def leave_mark(spark: SparkSession) -> None:
    """Restore the mark of an installed session, in case all settings were reset."""
    with _sessions.lock:
        session = session_of(spark)
        if session.formats:
            _mark(session, spark, is_clone=session.is_clone)


def are_installed() -> bool:
    """Whether any session is installed itself, rather than as a clone."""
    return any(session.formats and not session.is_clone for session in list(_sessions.values()))


def _look_up_or_add(spark: SparkSession) -> Session:
    session = _sessions.get(spark)
    if session is None:
        session = _sessions[spark] = Session(WeakSet([spark]))
    if session.formats or not _count.installations:
        return session
    try:
        session = _recognize(spark, session)
    except Exception as error:  # the session has ended, or its server is away; using it will raise that error
        _logger.debug("a session does not return its settings: %s", type(error).__name__)
        return session
    session.asked_at = _count.installations
    return session


def _recognize(spark: SparkSession, session: Session) -> Session:
    mark = spark.conf.get(SETTING, None)
    if mark is None:
        return session
    formats = _formats(spark)
    twin = next(
        (candidate for candidate in list(_sessions.values()) if candidate.formats and candidate.mark == mark), None
    )
    _mark(session, spark, is_clone=twin is not None or mark.startswith(_CLONE))
    if twin is None or not _reads(twin, session.mark):
        session.formats = formats
        return session
    _mark(twin, spark, is_clone=twin.is_clone)
    twin.objects.update(session.objects)
    for twin_object in list(twin.objects):
        _sessions[twin_object] = twin
    return twin


def _reads(session: Session, mark: str | None) -> bool:
    """Whether a value that was set through another session's object is set in this session."""
    return any(session_object.conf.get(SETTING, None) == mark for session_object in list(session.objects)[:1])


def _mark(session: Session, spark: SparkSession, *, is_clone: bool) -> None:
    session.mark, session.is_clone = f"{_CLONE if is_clone else ''}{next(_count.marks)}", is_clone
    spark.conf.set(SETTING, session.mark)


def _formats(spark: SparkSession) -> frozenset[str]:
    return frozenset({"anabranch"} if has_own_delta(spark) else {"anabranch", "delta"})


class PerSession(MutableMapping[SparkSession, _V], Generic[_V]):
    """A mapping from sessions to values. Each object of a session finds the entry, which lives as long as any of
    them.

    Attributes:
        lock: to be held while several operations belong together.
    """

    def __init__(self) -> None:
        self._values: PerObject[Session, _V] = PerObject()
        self.lock = self._values.lock

    def __getitem__(self, spark: SparkSession) -> _V:
        return self._values[session_of(spark)]

    def __setitem__(self, spark: SparkSession, value: _V) -> None:
        self._values[session_of(spark)] = value

    def __delitem__(self, spark: SparkSession) -> None:
        del self._values[session_of(spark)]

    def __iter__(self) -> Iterator[SparkSession]:
        return iter([session_object for session in list(self._values) for session_object in list(session.objects)[:1]])

    def __len__(self) -> int:
        return len(self._values)
