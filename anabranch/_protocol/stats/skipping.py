"""Data skipping: which files can hold rows for which a predicate is TRUE, and which hold only such rows.

Knows predicates, partition values and statistics. Knows nothing of snapshots, stores or SQL text. Pure. Guarantee: a
file that `could_match` drops holds no row for which the predicate is TRUE, and one that `must_match` picks holds no
others; uncertain facts are never used. Everything is decided on columns, never file by file.

Why this holds: NOT is pushed to the leaves first (`truth_form`), so each leaf asks only whether it can be TRUE, and is
NULL exactly where its column is. Traps on the way, each with a test: NaN is greater than every number but most writers
leave it out of their maxima; -0.0 equals 0.0; strings and timestamps are cut; a deletion vector leaves bounds wide, and
of null counts only "none" and "all" true; a literal is only compared where Spark's common type rounds neither side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.partitions import has_zone, map_column, read_values
from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Name,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    Value,
    names_of,
    negate,
    truth_form,
)
from anabranch._protocol.schema.leaves import leaf_at
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.stats.literals import domain, limit, members
from anabranch._protocol.stats.statistics import ColumnStats, stats_columns

_ANY_ZONE = timedelta(hours=18)
"""No zone is further from UTC (java.time.ZoneOffset)."""


def could_match(
    predicate: Predicate, files: pa.Table, schema: Struct, partition_columns: Collection[str]
) -> pa.BooleanArray:
    """For each file whether it can hold a row for which the predicate is TRUE.

    Args:
        predicate: over columns of ``schema``.
        files: a table with the columns of `anabranch._protocol.actions.FILES`; deletion vectors are not looked into.
        schema: the table's schema.
        partition_columns: their values are taken from the log, exactly.

    Returns:
        One boolean per file, without nulls; false only where the file can be left out. For several questions about the
        same files, keep a `FileFacts`.
    """
    return FileFacts(files, schema, partition_columns).could_match(predicate)


def must_match(
    predicate: Predicate, files: pa.Table, schema: Struct, partition_columns: Collection[str]
) -> pa.BooleanArray:
    """For each file whether the predicate is TRUE for every row in it; arguments and result as `could_match`."""
    return FileFacts(files, schema, partition_columns).must_match(predicate)


# -- facts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of one column in each file; null, or false, where nothing is.

    ``low`` and ``high`` bound every value that is not NULL, in Spark's order, in which NaN is the highest;
    ``number_high`` bounds those that are not NaN either. ``no_nulls`` and ``all_null`` are true only when certain.
    """

    field: Field
    low: pa.Array
    high: pa.Array
    number_high: pa.Array
    no_nulls: pa.Array
    all_null: pa.Array

    def followed_by(self, later: ColumnFacts, kept: pa.BooleanArray | None) -> ColumnFacts:
        """The facts of the kept files, followed by those of new ones."""
        names = ("low", "high", "number_high", "no_nulls", "all_null")
        pairs = [(getattr(self, name), getattr(later, name)) for name in names]
        parts = [(ours if kept is None else ours.filter(kept), theirs) for ours, theirs in pairs]
        return ColumnFacts(self.field, *map(pa.concat_arrays, parts))


class FileFacts:
    """The partition values and statistics of some files, read once per column on first use.

    Example:
        >>> facts = FileFacts(snapshot.files, snapshot.schema, snapshot.partition_columns)
        >>> facts.could_match(Compare("id", "=", 7))
    """

    def __init__(self, files: pa.Table, schema: Struct, partition_columns: Collection[str]) -> None:
        self.files, self.schema, self.partition_columns = files, schema, frozenset(partition_columns)
        self._known: dict[Name, ColumnFacts | None] = {}

    def could_match(self, predicate: Predicate) -> pa.BooleanArray:
        """As the function of this name."""
        wanted = truth_form(predicate)
        if self._unread(wanted):
            alive = _could(
                wanted, self.files.num_rows, lambda name: self.column(name) if name in self.partition_columns else None
            )
            if alive.true_count * 4 < self.files.num_rows:  # reading the statistics of all would cost more
                rest = FileFacts(self.files.filter(alive), self.schema, self.partition_columns)
                return _scatter(alive, rest._evaluate(_could, wanted))
        return self._evaluate(_could, wanted)

    def must_match(self, predicate: Predicate) -> pa.BooleanArray:
        """As the function of this name."""
        return self._evaluate(_must, truth_form(predicate))

    def column(self, name: Name) -> ColumnFacts | None:
        """The facts of one column or member; None for a struct, and for what the schema does not have."""
        self._read([name])
        return self._known[name]

    def remember(self, older: FileFacts, kept: pa.BooleanArray | None) -> None:
        """Take over the facts of files that an older version had, so that only new ones are read; ``kept`` is a mask of
        those that remain, None: all. They come first here, in their order.
        """
        if (older.schema, older.partition_columns) != (self.schema, self.partition_columns):
            return
        count = older.files.num_rows if kept is None else kept.true_count
        new = FileFacts(self.files.slice(count), self.schema, self.partition_columns)
        known = dict(older._known)
        new._read(known)
        for name, facts in known.items():
            later = new._known[name]
            self._known[name] = None if facts is None or later is None else facts.followed_by(later, kept)

    def _evaluate(self, rule: _Rule, wanted: Predicate) -> pa.BooleanArray:
        self._read(names_of(wanted))
        return rule(wanted, self.files.num_rows, self._known.__getitem__)

    def _unread(self, wanted: Predicate) -> bool:
        """Whether statistics would have to be read although partition values may suffice."""
        names = names_of(wanted)
        stated = names - self.partition_columns - set(self._known)
        return bool(stated) and not self.partition_columns.isdisjoint(names)

    def _read(self, names: Iterable[Name]) -> None:
        missing = sorted(set(names) - set(self._known), key=str)
        for name in [each for each in missing if isinstance(each, str) and each in self.partition_columns]:
            self._known[name] = _partition_facts(self.files, self.schema.field(name))
        stated = [name for name in missing if name not in self.partition_columns]
        if stated:
            self._known.update(_stated_facts(self.files, self.schema, stated))


def _partition_facts(files: pa.Table, field: Field) -> ColumnFacts | None:
    """One exact value per file, unless its text is invalid."""
    if not isinstance(field.type, str):
        return None
    texts = map_column(files["partitionValues"], field.physical_name)
    values, valid = read_values(texts, field.type)
    no_nulls, all_null = pc.and_(valid, values.is_valid()), pc.and_(valid, values.is_null())
    low, high = _as_bounds(values, texts, field)
    return ColumnFacts(field, low, high, high, no_nulls, all_null)


def _as_bounds(values: pa.Array, texts: pa.Array, field: Field) -> tuple[pa.Array, pa.Array]:
    arrow = domain(field)
    if arrow is None:
        return pa.nulls(len(values)), pa.nulls(len(values))
    known = pc.cast(values, arrow)
    if pa.types.is_floating(arrow):
        known = pc.add(known, 0.0)  # -0.0 becomes 0.0; NaN stays unknown, since Arrow finds it neither less nor more
    if field.type != "timestamp":
        return known, known
    exact, slack = has_zone(texts), pa.scalar(_ANY_ZONE, pa.duration("us"))
    return pc.if_else(exact, known, pc.subtract(known, slack)), pc.if_else(exact, known, pc.add(known, slack))


def _stated_facts(files: pa.Table, schema: Struct, names: Collection[Name]) -> dict[Name, ColumnFacts | None]:
    leaves = {name: leaf for name in names if (leaf := leaf_at(schema, name)) is not None}
    stats = stats_columns(files["stats"], schema, list(leaves))
    found: dict[Name, ColumnFacts | None] = dict.fromkeys(names)
    for name, leaf in leaves.items():
        found[name] = _column_facts(leaf.field, stats.columns[name], stats.num_records)
    return found


def _column_facts(field: Field, stated: ColumnStats, rows: pa.Array) -> ColumnFacts:
    """The certain facts in statistics: with wide bounds, null counts other than none and all carry no information."""
    high = pa.nulls(len(rows), stated.maximum.type) if field.type in ("float", "double") else stated.maximum
    none, every = _certain(pc.equal(stated.null_count, 0)), _certain(pc.equal(stated.null_count, rows))
    if not isinstance(field.type, str):  # some writers count the NULLs, and the empty places, inside lists and maps
        every = _constant(False, len(rows))
    return ColumnFacts(field, stated.minimum, high, stated.maximum, none, every)


# -- rules -------------------------------------------------------------------------------------------------------------

_Lookup = Callable[[Name], ColumnFacts | None]
_Rule = Callable[[Predicate, int, _Lookup], pa.BooleanArray]


def _could(wanted: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether the predicate, in truth form, can be TRUE for a row of each file."""
    if isinstance(wanted, And):
        return reduce(pc.and_, (_could(part, rows, facts) for part in wanted.ps), _constant(True, rows))
    if isinstance(wanted, Or):
        return reduce(pc.or_, (_could(part, rows, facts) for part in wanted.ps), _constant(False, rows))
    return pc.invert(_never_true(wanted, rows, facts))


def _must(wanted: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether the predicate, in truth form, is TRUE for every row of each file."""
    if isinstance(wanted, And):
        return reduce(pc.and_, (_must(part, rows, facts) for part in wanted.ps), _constant(True, rows))
    if isinstance(wanted, Or):
        return reduce(pc.or_, (_must(part, rows, facts) for part in wanted.ps), _constant(False, rows))
    never_false = _never_true(negate(wanted), rows, facts)
    if isinstance(wanted, Always | Unknown | IsNull):
        return never_false
    known = facts(_column_of(wanted))
    return pc.and_(never_false, known.no_nulls) if known else _constant(False, rows)


def _never_true(leaf: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether no row of each file makes the leaf TRUE."""
    if isinstance(leaf, Always | Unknown):
        return _constant(leaf == Always(False), rows)
    known = facts(_column_of(leaf))
    if known is None:
        return _constant(False, rows)
    match leaf:
        case IsNull():
            return known.no_nulls
        case Not(IsNull()):
            return known.all_null
    outside = _outside(leaf, known)
    return pc.or_(known.all_null, _constant(outside, rows) if isinstance(outside, bool) else outside)


def _outside(leaf: Predicate, known: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether the bounds of each file leave no value for which a leaf that is NULL on NULL is TRUE."""
    match leaf:
        case Compare(_, "=", value):
            return _none_among((value,), known)
        case Compare(_, "!=", value):
            return _all_among((value,), known)
        case Compare(_, op, value):
            return _none_beside(op, value, known)
        case In(_, values):
            return _none_among(values, known)
        case Not(In(_, values)):
            return _all_among(values, known)
        case StartsWith(_, prefix):
            return _none_starts(prefix, known)
        case Not(StartsWith(_, prefix)):
            return _all_start(prefix, known)
    return False


def _none_beside(op: str, value: Value, known: ColumnFacts) -> pa.BooleanArray | bool:
    found = limit(known.field, op, value)
    if found is None or isinstance(found, bool):
        return found is False
    narrowed, point = found
    bound, fails = {
        "<": (known.low, pc.greater_equal),
        "<=": (known.low, pc.greater),
        ">": (known.high, pc.less_equal),
        ">=": (known.high, pc.less),
    }[narrowed]
    return _certain(fails(bound, pa.scalar(point, bound.type)))


def _none_among(values: Iterable[Value], known: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether no value of ``values`` lies between the bounds."""
    found = members(known.field, values)
    if not found:
        return found is not None
    points = pa.array(found, domain(known.field))
    if len(points) == 1:
        below, above = pc.less(known.number_high, points[0]), pc.greater(known.low, points[0])
        return pc.or_(_certain(below), _certain(above))
    index = _first_at_least(points, known.low)
    candidate = points.take(pa.array(np.minimum(index, len(points) - 1)))
    return pc.or_(pa.array(index == len(points)), _certain(pc.greater(candidate, known.number_high)))


def _first_at_least(points: pa.Array, low: pa.Array) -> np.ndarray:
    """For each lower bound the index of the first of the ascending points that is not below it; null bounds get 0."""
    left, right = np.zeros(len(low), np.int64), np.full(len(low), len(points), np.int64)
    for _ in range(len(points).bit_length()):
        middle = (left + right) // 2
        probe = points.take(pa.array(np.minimum(middle, len(points) - 1)))
        below = _certain(pc.less(probe, low)).to_numpy(zero_copy_only=False) & (left < right)
        left, right = np.where(below, middle + 1, left), np.where(below, right, middle)
    return left


def _all_among(values: Iterable[Value], known: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether the bounds leave one value only, and it is one of ``values``."""
    found = members(known.field, values)
    if not found:
        return False
    one = _certain(pc.equal(known.low, known.high))
    return pc.and_(one, _certain(pc.is_in(known.low, value_set=pa.array(found, domain(known.field)))))


def _none_starts(prefix: str, known: ColumnFacts) -> pa.BooleanArray | bool:
    if not _is_prefix(prefix, known.field):
        return False
    after = pc.and_(pc.greater(known.low, prefix), pc.invert(pc.starts_with(known.low, prefix)))
    return pc.or_(_certain(after), _certain(pc.less(known.high, prefix)))


def _all_start(prefix: str, known: ColumnFacts) -> pa.BooleanArray | bool:
    """All strings between two that have the prefix have it too."""
    if not _is_prefix(prefix, known.field):
        return False
    return _certain(pc.and_(pc.starts_with(known.low, prefix), pc.starts_with(known.high, prefix)))


def _is_prefix(prefix: str, field: Field) -> bool:
    return field.type == "string" and bool(members(field, (prefix,)))


def _column_of(leaf: Predicate) -> Name:
    (name,) = names_of(leaf)
    return name


def _constant(value: bool, rows: int) -> pa.BooleanArray:
    return pa.array(np.full(rows, value))


def _certain(mask: pa.BooleanArray) -> pa.BooleanArray:
    return pc.fill_null(mask, False)


def _scatter(chosen: pa.BooleanArray, values: pa.BooleanArray) -> pa.BooleanArray:
    """``values`` at the places of ``chosen``, false elsewhere."""
    spread = chosen.to_numpy(zero_copy_only=False).copy()
    spread[spread] = values.to_numpy(zero_copy_only=False)
    return pa.array(spread)
