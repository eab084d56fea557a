"""Data skipping for DataFrames: ``df.where("id = 57")`` opens only the files that may hold such a row, as SQL does.

`anabranch._api.install` wraps `filter`, `alias`, `select` and `drop` of DataFrames with these functions. Guarantee:
the rows are those of Spark's own method; a condition that cannot be read skips no file. A frame is tracked as long as
its columns mean the table's. A union is rebuilt to skip files only if all earlier conditions still mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._expressions.blocks import block_predicate
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.predicates import And, Predicate, Unknown, is_whole, names_of
from anabranch._spark.engine import SparkEngine
from anabranch._spark.reading.pruned_frames import ScanOrigin, Step
from anabranch._spark.sessions.cached_rows import is_persisted
from anabranch._sql.conditions import context_of, resolve_condition
from anabranch.commands.queries.read import count_from_log, files_to_read
from anabranch.errors import AnabranchError
from anabranch.errors.process_state import PerObject, hold

_BARE = re.compile(r"\w+|\*")


@dataclass(frozen=True)
class _ReadCondition:
    """A condition on a frame, with the frame's alias, the session's settings and the predicate on the table's rows."""

    condition: Any = field(compare=False)
    alias: str | None
    settings: Mapping[str, str]
    predicate: Predicate


@dataclass(frozen=True)
class _Origin:
    """Where a frame's rows come from: a version, the conditions so far, and the frame's alias."""

    snapshot: Snapshot
    scanned: ScanOrigin
    alias: str | None = None
    conditions: tuple[_ReadCondition, ...] = ()


_origins: PerObject[DataFrame, _Origin] = hold("frames of tables' rows", "they go with the frame")(PerObject())


def frame_of_version(spark: SparkSession, snapshot: Snapshot, files: FileSet, *, as_of: bool = False) -> DataFrame:
    """The rows of a version's files, as a frame whose filters skip files."""
    rows, scanned = SparkEngine(spark).scan_for_pruning(files, as_of=as_of)
    _origins[rows] = _Origin(snapshot, scanned)
    return rows


def pinned_version(rows: DataFrame) -> tuple[str, int] | None:
    """The table and version that a frame reads, if known without Spark."""
    origin = _origins.get(rows)
    return None if origin is None else (origin.snapshot.table, origin.snapshot.version)


def wrap_filter(plain: Any) -> Any:
    """Wraps ``df.filter``, which ``df.where`` calls as well."""

    @wraps(plain)
    def filter_(self: DataFrame, condition: Any) -> DataFrame:
        filtered: DataFrame = plain(self, condition)
        origin = _origins.get(self)
        return (
            filtered
            if origin is None
            else _skip_files(origin, self, filtered, condition, lambda rows: plain(rows, condition))
        )

    return filter_


def wrap_alias(plain: Any) -> Any:
    """Wraps ``df.alias``, which names the frame for later conditions."""

    @wraps(plain)
    def alias_(self: DataFrame, alias: str) -> DataFrame:
        return _carry_origin(self, plain(self, alias), lambda rows: plain(rows, alias), alias)

    return alias_


def wrap_select(plain: Any) -> Any:
    """Wraps ``df.select`` and ``df.drop`` for arguments that are plain column names."""

    @wraps(plain)
    def choose(self: DataFrame, *columns: Any) -> DataFrame:
        chosen: DataFrame = plain(self, *columns)
        names = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns
        is_bare = all(isinstance(name, str) and _BARE.fullmatch(name) for name in names)
        if self not in _origins or not is_bare or not _has_only(chosen, self):
            return chosen
        return _carry_origin(self, chosen, lambda rows: plain(rows, *columns))

    return choose


def wrap_count(plain: Any) -> Any:
    """Wraps ``df.count``: counts from the log where it has row counts. Cached frames are read."""

    @wraps(plain)
    def count(self: DataFrame) -> int:
        origin = _origins.get(self)
        logged = None if origin is None or is_persisted(self) else _count_from_log(origin)
        rows: int = plain(self) if logged is None else logged
        return rows

    return count


def _count_from_log(origin: _Origin) -> int | None:
    """The number of rows in a frame, if the log has it."""
    if not _still_holds(origin):
        return None
    try:
        return count_from_log(origin.snapshot, And(tuple(condition.predicate for condition in origin.conditions)))
    except AnabranchError:
        return None


def _has_only(frame: DataFrame, before: DataFrame) -> bool:
    """Whether a frame has only columns of the frame it derives from, and no variable of the session."""
    try:
        return {name.lower() for name in frame.columns} <= {name.lower() for name in before.columns}
    except PySparkException:  # a subquery whose outer columns are still unknown
        return False


def _carry_origin(before: DataFrame, frame: DataFrame, step: Step, alias: str | None = None) -> DataFrame:
    origin = _origins.get(before)
    if origin is not None:
        _origins[frame] = replace(origin, scanned=origin.scanned.then(before, step), alias=alias or origin.alias)
    return frame


def _skip_files(origin: _Origin, before: DataFrame, filtered: DataFrame, condition: Any, step: Step) -> DataFrame:
    """The filtered frame, or one with the same rows that opens fewer files."""
    read = _read_condition(origin, condition, origin.alias)
    after = replace(origin, conditions=(*origin.conditions, read), scanned=origin.scanned.then(before, step))
    may_skip = names_of(read.predicate) and (not origin.scanned.is_union or _still_holds(origin))
    paths = _could_match(after) if may_skip else None
    fewer = None if paths is None else after.scanned.only(filtered, paths)
    if paths is not None and fewer is not None:
        filtered, after = fewer, replace(after, scanned=replace(after.scanned, count=len(paths)))
    _origins[filtered] = after
    return filtered


def _still_holds(origin: _Origin) -> bool:
    """Whether the earlier conditions, which Spark would read again, still mean what they meant."""
    return all(
        is_whole(earlier.predicate) and _read_condition(origin, earlier.condition, earlier.alias) == earlier
        for earlier in origin.conditions
    )


def _could_match(origin: _Origin) -> list[str] | None:
    """The files that may hold matching rows; None if unknown, in which case the query may still work."""
    where = And(tuple(condition.predicate for condition in origin.conditions))
    try:
        return list(files_to_read(origin.snapshot, where)["path"].to_pylist())
    except AnabranchError:
        return None


def _read_condition(origin: _Origin, condition: Any, alias: str | None) -> _ReadCondition:
    """Reads a condition as a predicate on the table's rows, as far as possible."""
    engine = SparkEngine(origin.scanned.spark)
    return _ReadCondition(condition, alias, engine.settings(), _predicate(origin.snapshot, engine, condition, alias))


def _predicate(snapshot: Snapshot, engine: SparkEngine, condition: Any, alias: str | None) -> Predicate:
    try:
        if isinstance(condition, str):
            if "${" in condition:  # Spark substitutes variables
                return Unknown()
            names = () if alias is None else (alias,)
            return block_predicate(condition, names, context_of(snapshot, engine), sole=True)
        return resolve_condition(condition, snapshot, engine, alias=alias).predicate
    except AnabranchError:
        return Unknown()
