"""Keeps DataFrames of tables cached by Spark for as long as a session wants them.

Spark finds cached rows by the plan that makes them, and our plans name the files of one version. So the cached
DataFrame itself is kept here, under the state that it shows. Knows nothing of versions: the caller states which state
of a table is meant. Guarantee: rows of another state are never returned; when a newer state is requested, the older one
is released.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._spark.sessions.known_sessions import PerSession
from anabranch.errors import InvalidOption
from anabranch.errors.process_state import hold

_LEVELS = {name: level for name, level in vars(StorageLevel).items() if isinstance(level, StorageLevel)}
DEFAULT = StorageLevel.MEMORY_AND_DISK_DESER


@dataclass(frozen=True)
class CachedRows:
    """Cached rows of a table.

    Attributes:
        owner: the table, whatever its state.
        state: the state that ``rows`` show.
        level: where the rows are stored.
    """

    owner: Hashable
    state: Hashable
    rows: DataFrame
    level: StorageLevel


_kept: PerSession[dict[str, CachedRows]] = hold(
    "cached tables", "a session's own, as many as it has asked for and has not given up"
)(PerSession())


def level_of(name: str | None) -> StorageLevel:
    """The storage level of a name; Spark's default for None. Raises InvalidOption if there is no such level."""
    if name is None:
        return DEFAULT
    level = _LEVELS.get(name.upper())
    if level is None or not (level.useDisk or level.useMemory):
        reason = f"it takes one of {', '.join(sorted(set(_LEVELS) - {'NONE'}))}."
        raise InvalidOption(option="storageLevel", value=name, reason=reason)
    return level


def cache_rows(spark: SparkSession, table: str, entry: CachedRows) -> None:
    """Cache rows of a table, in place of those cached before."""
    with _kept.lock:
        release(spark, table)
        entry.rows.persist(entry.level)
        _kept.setdefault(spark, {})[table] = entry


def release(spark: SparkSession, table: str) -> None:
    """Release the cached rows of a table, if any."""
    with _kept.lock:
        entry = _kept.get(spark, {}).pop(table, None)
        if entry is not None:
            entry.rows.unpersist()


def is_cached(spark: SparkSession, table: str) -> bool:
    """Whether rows of a table are cached, and Spark was not told by other means to drop them."""
    entry = _kept.get(spark, {}).get(table)
    return entry is not None and not _is_cleared(entry.rows)


def find_cached_rows(
    spark: SparkSession, table: str, owner: Hashable, state: Hashable, newer: Callable[[], DataFrame] | None
) -> DataFrame | None:
    """The cached rows of a table in this state; None if there are none.

    Args:
        newer: makes the rows, if this is the newest state, which then replaces an older one.
    """
    entry = _kept.get(spark, {}).get(table)
    if entry is None:
        return None
    if _is_cleared(entry.rows) or (newer is not None and entry.owner != owner):
        release(spark, table)
        return None
    if (entry.owner, entry.state) == (owner, state):
        return _apart(entry.rows)
    if newer is None:
        return None
    rows = newer()
    cache_rows(spark, table, CachedRows(owner, state, rows, entry.level))
    return _apart(rows)


def is_persisted(rows: DataFrame) -> bool:
    """Whether Spark caches these rows, or will as soon as they are read."""
    return bool(rows.storageLevel.useMemory or rows.storageLevel.useDisk)


def _is_cleared(rows: DataFrame) -> bool:
    """Whether Spark was told by other means to drop them."""
    return not is_persisted(rows)


def _apart(rows: DataFrame) -> DataFrame:
    """The same rows under a plan around the cached one. Spark drops the cache of a view's own plan as soon as the view
    is dropped, and a statement receives its DataFrames as views.
    """
    return rows.where(F.lit(True))
