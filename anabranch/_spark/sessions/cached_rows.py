"""Cached rows: DataFrames of tables that Spark keeps in memory or on disk, for as long as a session wants them.

Spark finds cached rows by the plan that makes them, and a plan of ours names the files of one version. So what is kept
is that very DataFrame, under what it shows. Knows nothing of versions: who asks says which state of a table is meant.
Guarantee: rows of another state are never given; where a newer one is asked for, the older one is let go of.
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
class Kept:
    """What is kept of a table.

    Attributes:
        owner: which table it is, whatever its state.
        state: what of it ``rows`` show.
        level: where they are kept.
    """

    owner: Hashable
    state: Hashable
    rows: DataFrame
    level: StorageLevel


_kept: PerSession[dict[str, Kept]] = hold(
    "cached tables", "a session's own, as many as it has asked for and has not given up"
)(PerSession())


def level_of(name: str | None) -> StorageLevel:
    """The storage level of a name; Spark's own default for None. Raises InvalidOption: there is none such."""
    if name is None:
        return DEFAULT
    found = _LEVELS.get(name.upper())
    if found is None or not (found.useDisk or found.useMemory):
        reason = f"it takes one of {', '.join(sorted(set(_LEVELS) - {'NONE'}))}."
        raise InvalidOption(option="storageLevel", value=name, reason=reason)
    return found


def keep(spark: SparkSession, table: str, found: Kept) -> None:
    """Keep rows of a table from now on, in the place of what was kept of it."""
    with _kept.lock:
        let_go(spark, table)
        found.rows.persist(found.level)
        _kept.setdefault(spark, {})[table] = found


def let_go(spark: SparkSession, table: str) -> None:
    """Keep nothing of a table; nothing happens where nothing is kept."""
    with _kept.lock:
        found = _kept.get(spark, {}).pop(table, None)
        if found is not None:
            found.rows.unpersist()


def is_kept(spark: SparkSession, table: str) -> bool:
    """Whether any rows of a table are kept, and Spark was not told by other means to forget them."""
    found = _kept.get(spark, {}).get(table)
    return found is not None and not _is_cleared(found.rows)


def find_kept_rows(
    spark: SparkSession, table: str, owner: Hashable, state: Hashable, newer: Callable[[], DataFrame] | None
) -> DataFrame | None:
    """The kept rows of a table in this state; None where there are none.

    Args:
        newer: makes the rows, if this is the newest state, which is then kept in the place of an older one.
    """
    found = _kept.get(spark, {}).get(table)
    if found is None:
        return None
    if _is_cleared(found.rows) or (newer is not None and found.owner != owner):
        let_go(spark, table)
        return None
    if (found.owner, found.state) == (owner, state):
        return _apart(found.rows)
    if newer is None:
        return None
    rows = newer()
    keep(spark, table, Kept(owner, state, rows, found.level))
    return _apart(rows)


def is_held(rows: DataFrame) -> bool:
    """Whether Spark keeps these rows, or will as soon as they are read."""
    return bool(rows.storageLevel.useMemory or rows.storageLevel.useDisk)


def _is_cleared(rows: DataFrame) -> bool:
    """Whether Spark was told by other means to forget them."""
    return not is_held(rows)


def _apart(rows: DataFrame) -> DataFrame:
    """The same rows by a plan around the one that is cached: Spark forgets what it has cached of a view's very plan as
    soon as that view is dropped, and a statement gets its DataFrames as views.
    """
    return rows.where(F.lit(True))
