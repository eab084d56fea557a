"""Known sessions: which Python objects stand for one session of Spark, and which sessions are installed.

PySpark makes an object anew for a session wherever it meets one: for ``SparkSession(sc)``, ``getActiveSession()``, each
batch of a stream. Knows nothing of the doors. Guarantees: a session that is installed is so by whichever object it is
reached, and its clones are; a new session is not. Nothing but `uninstall` takes that away. Each object asks its session
once, and a process in which nothing is installed asks nothing.

`install` leaves a setting in the session, which its clones get with all others and which no other process reads, since
its name is of this process alone. Whether an object stands for a session that is known, or for a clone of it, shows
when a new value is set through the one and read through the other.
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
    """A session of Spark, for as long as an object lives that stands for it.

    Attributes:
        objects: what stands for it.
        formats: the formats that are ours in it; none where it is not installed.
        mark: the newest value that was set in it; None where it was never installed.
        is_clone: whether it was installed since it is the clone of one that was.
        asked_at: how many installations there had been when it was asked last.
    """

    objects: WeakSet[SparkSession] = field(default_factory=WeakSet)
    formats: frozenset[str] = _NOTHING
    mark: str | None = None
    is_clone: bool = False
    asked_at: int = 0


@dataclass(eq=False)
class _Count:
    """Of all installations of this process."""

    installations: int = 0
    marks: Iterator[int] = field(default_factory=itertools.count)


_count = hold("how many sessions were installed", "it is one number")(_Count())
_sessions: PerObject[SparkSession, Session] = hold("installed sessions", "they are installed")(PerObject())


def session_of(spark: SparkSession) -> Session:
    """The session for which an object stands."""
    found = _sessions.get(spark)
    if found is not None and (found.formats or found.asked_at == _count.installations):
        return found
    with _sessions.lock:
        return _look_up_or_add(spark)


def formats_of(spark: SparkSession) -> frozenset[str]:
    """The formats that are ours in a session; none where it is not installed."""
    return session_of(spark).formats


def note_installed(spark: SparkSession) -> None:
    """Let a session be installed, by whichever object it is reached from now on. One that is told so by the same object
    again gets no setting.
    """
    with _sessions.lock:
        found = session_of(spark)
        formats = _formats(spark)
        if found.formats != formats or found.is_clone or spark.conf.get(SETTING, None) != found.mark:
            _mark(found, spark, is_clone=False)
        found.formats = formats
        _count.installations += 1


def note_uninstalled(spark: SparkSession) -> None:
    """Let a session be installed no longer, by none of its objects; its clones stay as they are."""
    with _sessions.lock:
        found = session_of(spark)
        if found.formats:
            spark.conf.unset(SETTING)
            found.formats, found.mark = _NOTHING, None


def leave_mark(spark: SparkSession) -> None:
    """Set what marks an installed session anew, which somebody may have taken away with all other settings."""
    with _sessions.lock:
        found = session_of(spark)
        if found.formats:
            _mark(found, spark, is_clone=found.is_clone)


def are_installed() -> bool:
    """Whether any session is installed by itself, and not as a clone."""
    return any(each.formats and not each.is_clone for each in list(_sessions.values()))


def _look_up_or_add(spark: SparkSession) -> Session:
    found = _sessions.get(spark)
    if found is None:
        found = _sessions[spark] = Session(WeakSet([spark]))
    if found.formats or not _count.installations:
        return found
    try:
        found = _recognize(spark, found)
    except Exception as error:  # the session has ended, or its server is away, which it tells by itself when it is used
        _logger.debug("a session does not tell its settings: %s", type(error).__name__)
        return found
    found.asked_at = _count.installations
    return found


def _recognize(spark: SparkSession, found: Session) -> Session:
    mark = spark.conf.get(SETTING, None)
    if mark is None:
        return found
    formats = _formats(spark)
    known = next((each for each in list(_sessions.values()) if each.formats and each.mark == mark), None)
    _mark(found, spark, is_clone=known is not None or mark.startswith(_CLONE))
    if known is None or not _reads(known, found.mark):
        found.formats = formats
        return found
    _mark(known, spark, is_clone=known.is_clone)
    known.objects.update(found.objects)
    for each in list(known.objects):
        _sessions[each] = known
    return known


def _reads(known: Session, mark: str | None) -> bool:
    """Whether a value that was set in another object's session is set in this one."""
    return any(each.conf.get(SETTING, None) == mark for each in list(known.objects)[:1])


def _mark(found: Session, spark: SparkSession, *, is_clone: bool) -> None:
    found.mark, found.is_clone = f"{_CLONE if is_clone else ''}{next(_count.marks)}", is_clone
    spark.conf.set(SETTING, found.mark)


def _formats(spark: SparkSession) -> frozenset[str]:
    return frozenset({"anabranch"} if has_own_delta(spark) else {"anabranch", "delta"})


class PerSession(MutableMapping[SparkSession, _V], Generic[_V]):
    """What is kept of sessions, by whichever object they are reached, for as long as any of these lives.

    Attributes:
        lock: to be held where several steps belong together.
    """

    def __init__(self) -> None:
        self._kept: PerObject[Session, _V] = PerObject()
        self.lock = self._kept.lock

    def __getitem__(self, spark: SparkSession) -> _V:
        return self._kept[session_of(spark)]

    def __setitem__(self, spark: SparkSession, value: _V) -> None:
        self._kept[session_of(spark)] = value

    def __delitem__(self, spark: SparkSession) -> None:
        del self._kept[session_of(spark)]

    def __iter__(self) -> Iterator[SparkSession]:
        return iter([each for session in list(self._kept) for each in list(session.objects)[:1]])

    def __len__(self) -> int:
        return len(self._kept)
