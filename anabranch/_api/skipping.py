"""Skipping by DataFrames: ``df.where("id = 57")`` opens only the files that may hold such a row, as SQL does.

What `anabranch._api.install` puts around `filter`, `alias`, `select` and `drop` of DataFrames. Guarantee: the rows are
those of Spark's own method; a condition that cannot be read leaves out no file. A frame stays one of a table's rows
for as long as its columns mean the table's. A frame that is a union is made anew where files are left out: only if all
conditions that it was filtered by before mean what they meant then.
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
from anabranch._spark.reading.pruned_frames import Scanned, Step
from anabranch._spark.sessions.cached_rows import is_held
from anabranch._sql.conditions import context_of, resolve_condition
from anabranch.commands.queries.read import count_from_log, files_to_read
from anabranch.errors import AnabranchError
from anabranch.errors.process_state import PerObject, hold

_BARE = re.compile(r"\w+|\*")


@dataclass(frozen=True)
class _Said:
    """A condition, under a name of the frame and settings of the session, and what it says of the table's rows."""

    condition: Any = field(compare=False)
    alias: str | None
    settings: Mapping[str, str]
    predicate: Predicate


@dataclass(frozen=True)
class _Origin:
    """Where a frame's rows come from: a version, the conditions so far, and the name of the frame."""

    snapshot: Snapshot
    scanned: Scanned
    alias: str | None = None
    said: tuple[_Said, ...] = ()


_origins: PerObject[DataFrame, _Origin] = hold("frames of tables' rows", "they go with the frame")(PerObject())


def rows_of(spark: SparkSession, snapshot: Snapshot, files: FileSet, *, as_of: bool = False) -> DataFrame:
    """The rows of a version, and of its files, as a frame whose filters skip files."""
    rows, scanned = SparkEngine(spark).scan_for_pruning(files, as_of=as_of)
    _origins[rows] = _Origin(snapshot, scanned)
    return rows


def pinned_version(rows: DataFrame) -> tuple[str, int] | None:
    """The table and version whose rows a frame has, as far as that is known without Spark."""
    origin = _origins.get(rows)
    return None if origin is None else (origin.snapshot.table, origin.snapshot.version)


def filtering(plain: Any) -> Any:
    """``df.filter``, which ``df.where`` calls as well."""

    @wraps(plain)
    def filter_(self: DataFrame, condition: Any) -> DataFrame:
        found: DataFrame = plain(self, condition)
        origin = _origins.get(self)
        return (
            found if origin is None else _skipping(origin, self, found, condition, lambda rows: plain(rows, condition))
        )

    return filter_


def aliasing(plain: Any) -> Any:
    """``df.alias``, by which later conditions may call the columns."""

    @wraps(plain)
    def alias_(self: DataFrame, alias: str) -> DataFrame:
        return _propagate_origin(self, plain(self, alias), lambda rows: plain(rows, alias), alias)

    return alias_


def choosing(plain: Any) -> Any:
    """``df.select`` and ``df.drop``, where they are told of columns by their names alone."""

    @wraps(plain)
    def choose(self: DataFrame, *columns: Any) -> DataFrame:
        found: DataFrame = plain(self, *columns)
        named = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns
        is_bare = all(isinstance(each, str) and _BARE.fullmatch(each) for each in named)
        if self not in _origins or not is_bare or not _has_only(found, self):
            return found
        return _propagate_origin(self, found, lambda rows: plain(rows, *columns))

    return choose


def counting(plain: Any) -> Any:
    """``df.count``, from the log where it says how many rows there are. Rows that are to be kept are read."""

    @wraps(plain)
    def count(self: DataFrame) -> int:
        origin = _origins.get(self)
        known = None if origin is None or is_held(self) else _known_count(origin)
        found: int = plain(self) if known is None else known
        return found

    return count


def _known_count(origin: _Origin) -> int | None:
    """How many rows a frame has, as far as the log says it."""
    if not _still_holds(origin):
        return None
    try:
        return count_from_log(origin.snapshot, And(tuple(each.predicate for each in origin.said)))
    except AnabranchError:
        return None


def _has_only(found: DataFrame, before: DataFrame) -> bool:
    """Whether a frame has only columns of the one that it was made of, and no variable of the session."""
    try:
        return {name.lower() for name in found.columns} <= {name.lower() for name in before.columns}
    except PySparkException:  # a subquery, whose outer columns nobody knows yet
        return False


def _propagate_origin(before: DataFrame, found: DataFrame, step: Step, alias: str | None = None) -> DataFrame:
    origin = _origins.get(before)
    if origin is not None:
        _origins[found] = replace(origin, scanned=origin.scanned.then(before, step), alias=alias or origin.alias)
    return found


def _skipping(origin: _Origin, before: DataFrame, found: DataFrame, condition: Any, step: Step) -> DataFrame:
    """The filtered frame, or one of the same rows that opens fewer files."""
    said = _read_condition(origin, condition, origin.alias)
    after = replace(origin, said=(*origin.said, said), scanned=origin.scanned.then(before, step))
    may_skip = names_of(said.predicate) and (not origin.scanned.is_union or _still_holds(origin))
    paths = _could_match(after) if may_skip else None
    fewer = None if paths is None else after.scanned.only(found, paths)
    if paths is not None and fewer is not None:
        found, after = fewer, replace(after, scanned=replace(after.scanned, count=len(paths)))
    _origins[found] = after
    return found


def _still_holds(origin: _Origin) -> bool:
    """Whether the conditions so far, which Spark is to read again, mean what they meant when they were said."""
    return all(
        is_whole(each.predicate) and _read_condition(origin, each.condition, each.alias) == each for each in origin.said
    )


def _could_match(origin: _Origin) -> list[str] | None:
    """The files that may hold such rows; None where that cannot be said, which the query itself may not need."""
    where = And(tuple(each.predicate for each in origin.said))
    try:
        return list(files_to_read(origin.snapshot, where)["path"].to_pylist())
    except AnabranchError:
        return None


def _read_condition(origin: _Origin, condition: Any, alias: str | None) -> _Said:
    """What a condition says of the table's rows, as far as it can be read."""
    engine = SparkEngine(origin.scanned.spark)
    return _Said(condition, alias, engine.settings(), _predicate(origin.snapshot, engine, condition, alias))


def _predicate(snapshot: Snapshot, engine: SparkEngine, condition: Any, alias: str | None) -> Predicate:
    try:
        if isinstance(condition, str):
            if "${" in condition:  # Spark fills it in
                return Unknown()
            names = () if alias is None else (alias,)
            return block_predicate(condition, names, context_of(snapshot, engine), sole=True)
        return resolve_condition(condition, snapshot, engine, alias=alias).predicate
    except AnabranchError:
        return Unknown()
