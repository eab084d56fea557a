"""Skipping by DataFrames: ``df.where("id = 57")`` opens only the files that may hold such a row, as SQL does.

What `anabranch.api.install` puts around `filter`, `alias`, `select` and `drop` of DataFrames. Guarantee: the rows are
those of Spark's own method; a condition that cannot be read leaves out no file. A frame stays one of a table's rows
for as long as its columns mean the table's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.commands.queries.read import kept
from anabranch.errors import AnabranchError
from anabranch.errors.process_state import PerObject, hold
from anabranch.expressions.blocks import block_predicate
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.predicates import And, Predicate, Unknown, names_of
from anabranch.spark.engine import SparkEngine
from anabranch.spark.pruned_frames import Scanned, Step
from anabranch.statements.conditions import context_of, understood

_NOTHING = And(())
_BARE = re.compile(r"\w+|\*")


@dataclass(frozen=True)
class _Origin:
    """Where a frame's rows come from: a version, the conditions so far, and the name of the frame."""

    snapshot: Snapshot
    scanned: Scanned
    alias: str | None = None
    where: Predicate = _NOTHING


_origins: PerObject[DataFrame, _Origin] = hold("frames of tables' rows", "they go with the frame")(PerObject())


def rows_of(spark: SparkSession, snapshot: Snapshot, files: FileSet, *, as_of: bool = False) -> DataFrame:
    """The rows of a version, and of its files, as a frame whose filters skip files."""
    rows, scanned = SparkEngine(spark).scanned(files, as_of=as_of)
    _origins[rows] = _Origin(snapshot, scanned)
    return rows


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
        return _passed_on(self, plain(self, alias), lambda rows: plain(rows, alias), alias)

    return alias_


def choosing(plain: Any) -> Any:
    """``df.select`` and ``df.drop``, where they are told of columns by their names alone."""

    @wraps(plain)
    def choose(self: DataFrame, *columns: Any) -> DataFrame:
        found: DataFrame = plain(self, *columns)
        named = columns[0] if len(columns) == 1 and isinstance(columns[0], list) else columns
        if not all(isinstance(each, str) and _BARE.fullmatch(each) for each in named):
            return found
        return _passed_on(self, found, lambda rows: plain(rows, *columns))

    return choose


def _passed_on(before: DataFrame, found: DataFrame, step: Step, alias: str | None = None) -> DataFrame:
    origin = _origins.get(before)
    if origin is not None:
        _origins[found] = replace(origin, scanned=origin.scanned.then(before, step), alias=alias or origin.alias)
    return found


def _skipping(origin: _Origin, before: DataFrame, found: DataFrame, condition: Any, step: Step) -> DataFrame:
    """The filtered frame, or one of the same rows that opens fewer files."""
    said = _predicate(origin, condition)
    after = replace(origin, where=And((origin.where, said)), scanned=origin.scanned.then(before, step))
    paths = _could_match(after) if names_of(said) else None
    fewer = None if paths is None else after.scanned.only(found, paths)
    if paths is not None and fewer is not None:
        found, after = fewer, replace(after, scanned=replace(after.scanned, count=len(paths)))
    _origins[found] = after
    return found


def _could_match(origin: _Origin) -> list[str] | None:
    """The files that may hold such rows; None where that cannot be said, which the query itself may not need."""
    try:
        return list(kept(origin.snapshot, origin.where)["path"].to_pylist())
    except AnabranchError:
        return None


def _predicate(origin: _Origin, condition: Any) -> Predicate:
    """What a condition says of the table's rows, as far as it can be read."""
    engine = SparkEngine(origin.scanned.spark)
    try:
        if isinstance(condition, str):
            if "${" in condition:  # Spark fills it in
                return Unknown()
            names = () if origin.alias is None else (origin.alias,)
            return block_predicate(condition, names, context_of(origin.snapshot, engine), sole=True)
        return understood(condition, origin.snapshot, engine, alias=origin.alias).predicate
    except AnabranchError:
        return Unknown()
