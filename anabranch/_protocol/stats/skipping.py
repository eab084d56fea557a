"""Data skipping: which files can hold rows for which a predicate is TRUE, and which hold only such rows.

Knows predicates, partition values and statistics. Knows nothing of snapshots, stores or SQL text. Pure. Guarantee: a
file that `could_match` drops holds no row for which the predicate is TRUE, and a file that `must_match` picks holds no
other rows; uncertain facts are never used. Each rule evaluates all files at once, on columns.

Why this holds: NOT is pushed to the leaves first (`truth_form`), so each leaf only decides whether it can be TRUE, and
is NULL exactly where its column is. Traps on the way, each with a test: NaN is greater than every number but most
writers leave it out of their maxima; -0.0 equals 0.0; strings and timestamps are truncated; a deletion vector leaves
bounds wide, and of null counts only "none" and "all" true; a literal is only compared where Spark's common type rounds
neither side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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
"""The largest possible offset of a time zone from UTC (java.time.ZoneOffset)."""


def could_match(
    predicate: Predicate, files: pa.Table, schema: Struct, partition_columns: Collection[str]
) -> pa.BooleanArray:
    """Return, per file, whether it can hold a row for which the predicate is TRUE.

    Args:
        predicate: over columns of ``schema``.
        files: a table with the columns of `anabranch._protocol.actions.FILES`; deletion vectors are ignored.
        schema: the table's schema.
        partition_columns: columns whose exact values are in the log.

    Returns:
        One boolean per file, without nulls; false only where the file can be skipped. To evaluate several predicates on
        the same files, keep a `FileFacts`.
    """
    return FileFacts(files, schema, partition_columns).could_match(predicate)


def must_match(
    predicate: Predicate, files: pa.Table, schema: Struct, partition_columns: Collection[str]
) -> pa.BooleanArray:
    """Return, per file, whether the predicate is TRUE for every row; arguments and result as `could_match`."""
    return FileFacts(files, schema, partition_columns).must_match(predicate)


def rows_could_match(
    predicate: Predicate, columns: Mapping[Name, tuple[Field, pa.Array]], rows: int
) -> pa.BooleanArray:
    """Return, per row, whether the predicate can be TRUE for it: a row is a file of one row, whose bounds are known.

    Args:
        columns: the values of columns, with their fields; of any other column nothing is known.
        rows: the number of rows.
    """
    facts = {name: _exact_facts(field, values) for name, (field, values) in columns.items()}
    return _could(truth_form(predicate), rows, facts.get)


# -- facts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about one column, one value per file; null, or false, where a fact is unknown.

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
        """Return the facts of the kept files, followed by those of new files."""
        names = ("low", "high", "number_high", "no_nulls", "all_null")
        pairs = [(getattr(self, name), getattr(later, name)) for name in names]
        parts = [(ours if kept is None else ours.filter(kept), theirs) for ours, theirs in pairs]
        return ColumnFacts(self.field, *map(pa.concat_arrays, parts))


class FileFacts:
    """The partition values and statistics of files, read once per column on first use.

    Example:
        >>> facts = FileFacts(snapshot.files, snapshot.schema, snapshot.partition_columns)
        >>> facts.could_match(Compare("id", "=", 7))
    """

    def __init__(self, files: pa.Table, schema: Struct, partition_columns: Collection[str]) -> None:
        self.files, self.schema, self.partition_columns = files, schema, frozenset(partition_columns)
        self._known: dict[Name, ColumnFacts | None] = {}

    def could_match(self, predicate: Predicate) -> pa.BooleanArray:
        """Like the function of this name."""
        leaves = truth_form(predicate)
        if self._unread(leaves):
            alive = _could(
                leaves, self.files.num_rows, lambda name: self.column(name) if name in self.partition_columns else None
            )
            if alive.true_count * 4 < self.files.num_rows:  # reading the statistics of all would cost more
                rest = FileFacts(self.files.filter(alive), self.schema, self.partition_columns)
                return _scatter(alive, rest._evaluate(_could, leaves))
        return self._evaluate(_could, leaves)

    def must_match(self, predicate: Predicate) -> pa.BooleanArray:
        """Like the function of this name."""
        return self._evaluate(_must, truth_form(predicate))

    def column(self, name: Name) -> ColumnFacts | None:
        """Return the facts of one column or member; None for a struct, and for a name that is not in the schema."""
        self._read([name])
        return self._known[name]

    def remember(self, older: FileFacts, kept: pa.BooleanArray | None) -> None:
        """Take over the facts of files that an older version had, so that only new files are read. ``kept`` is a mask
        of the files that remain, None: all of them. They precede the new files, in their order.
        """
        if (older.schema, older.partition_columns) != (self.schema, self.partition_columns):
            return
        count = older.files.num_rows if kept is None else kept.true_count
        new = FileFacts(self.files.slice(count), self.schema, self.partition_columns)
        older_facts = dict(older._known)
        new._read(older_facts)
        for name, facts in older_facts.items():
            later = new._known[name]
            self._known[name] = None if facts is None or later is None else facts.followed_by(later, kept)

    def _evaluate(self, rule: _Rule, predicate: Predicate) -> pa.BooleanArray:
        self._read(names_of(predicate))
        return rule(predicate, self.files.num_rows, self._known.__getitem__)

    def _unread(self, predicate: Predicate) -> bool:
        """Whether this reads statistics although partition values may suffice."""
        names = names_of(predicate)
        unread = names - self.partition_columns - set(self._known)
        return bool(unread) and not self.partition_columns.isdisjoint(names)

    def _read(self, names: Iterable[Name]) -> None:
        missing = sorted(set(names) - set(self._known), key=str)
        for name in [column for column in missing if isinstance(column, str) and column in self.partition_columns]:
            self._known[name] = _partition_facts(self.files, self.schema.field(name))
        in_stats = [name for name in missing if name not in self.partition_columns]
        if in_stats:
            self._known.update(_statistics_facts(self.files, self.schema, in_stats))


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
    bounds = _in_domain(values, field)
    if field.type != "timestamp" or domain(field) is None:
        return bounds, bounds
    exact, slack = has_zone(texts), pa.scalar(_ANY_ZONE, pa.duration("us"))
    return pc.if_else(exact, bounds, pc.subtract(bounds, slack)), pc.if_else(exact, bounds, pc.add(bounds, slack))


def _in_domain(values: pa.Array, field: Field) -> pa.Array:
    """Values as bounds; null where they have no order."""
    arrow = domain(field)
    if arrow is None:
        return pa.nulls(len(values))
    bounds = pc.cast(values, arrow)
    # -0.0 becomes 0.0; NaN stays unknown, since Arrow finds it neither less nor more
    return pc.add(bounds, 0.0) if pa.types.is_floating(arrow) else bounds


def _exact_facts(field: Field, values: pa.Array) -> ColumnFacts:
    """One value per row."""
    bounds = _in_domain(values, field)
    return ColumnFacts(field, bounds, bounds, bounds, values.is_valid(), values.is_null())


def _statistics_facts(files: pa.Table, schema: Struct, names: Collection[Name]) -> dict[Name, ColumnFacts | None]:
    leaves = {name: leaf for name in names if (leaf := leaf_at(schema, name)) is not None}
    stats = stats_columns(files["stats"], schema, list(leaves))
    facts: dict[Name, ColumnFacts | None] = dict.fromkeys(names)
    for name, leaf in leaves.items():
        facts[name] = _column_facts(leaf.field, stats.columns[name], stats.num_records)
    return facts


def _column_facts(field: Field, stats: ColumnStats, rows: pa.Array) -> ColumnFacts:
    """The certain facts in statistics; with wide bounds, only the null counts "none" and "all" carry information."""
    high = pa.nulls(len(rows), stats.maximum.type) if field.type in ("float", "double") else stats.maximum
    none, every = _certain(pc.equal(stats.null_count, 0)), _certain(pc.equal(stats.null_count, rows))
    if not isinstance(field.type, str):  # some writers count the NULLs, and the empty places, inside lists and maps
        every = _constant(False, len(rows))
    return ColumnFacts(field, stats.minimum, high, stats.maximum, none, every)


# -- rules -------------------------------------------------------------------------------------------------------------

_Lookup = Callable[[Name], ColumnFacts | None]
_Rule = Callable[[Predicate, int, _Lookup], pa.BooleanArray]


def _could(predicate: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether the predicate, in truth form, can be TRUE for a row of each file."""
    if isinstance(predicate, And):
        return reduce(pc.and_, (_could(part, rows, facts) for part in predicate.ps), _constant(True, rows))
    if isinstance(predicate, Or):
        return reduce(pc.or_, (_could(part, rows, facts) for part in predicate.ps), _constant(False, rows))
    return pc.invert(_never_true(predicate, rows, facts))


def _must(predicate: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether the predicate, in truth form, is TRUE for every row of each file."""
    if isinstance(predicate, And):
        return reduce(pc.and_, (_must(part, rows, facts) for part in predicate.ps), _constant(True, rows))
    if isinstance(predicate, Or):
        return reduce(pc.or_, (_must(part, rows, facts) for part in predicate.ps), _constant(False, rows))
    never_false = _never_true(negate(predicate), rows, facts)
    if isinstance(predicate, Always | Unknown | IsNull):
        return never_false
    column = facts(_column_of(predicate))
    return pc.and_(never_false, column.no_nulls) if column else _constant(False, rows)


def _never_true(leaf: Predicate, rows: int, facts: _Lookup) -> pa.BooleanArray:
    """Whether the leaf is TRUE for no row, per file."""
    if isinstance(leaf, Always | Unknown):
        return _constant(leaf == Always(False), rows)
    column = facts(_column_of(leaf))
    if column is None:
        return _constant(False, rows)
    match leaf:
        case IsNull():
            return column.no_nulls
        case Not(IsNull()):
            return column.all_null
    outside = _outside(leaf, column)
    return pc.or_(column.all_null, _constant(outside, rows) if isinstance(outside, bool) else outside)


def _outside(leaf: Predicate, column: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether the bounds of each file leave no value for which a leaf that is NULL on NULL is TRUE."""
    match leaf:
        case Compare(_, "=", value):
            return _none_among((value,), column)
        case Compare(_, "!=", value):
            return _all_among((value,), column)
        case Compare(_, op, value):
            return _none_in_range(op, value, column)
        case In(_, values):
            return _none_among(values, column)
        case Not(In(_, values)):
            return _all_among(values, column)
        case StartsWith(_, prefix):
            return _none_start_with(prefix, column)
        case Not(StartsWith(_, prefix)):
            return _all_start_with(prefix, column)
    return False


def _none_in_range(op: str, value: Value, column: ColumnFacts) -> pa.BooleanArray | bool:
    comparison = limit(column.field, op, value)
    if comparison is None or isinstance(comparison, bool):
        return comparison is False
    narrowed, point = comparison
    bound, fails = {
        "<": (column.low, pc.greater_equal),
        "<=": (column.low, pc.greater),
        ">": (column.high, pc.less_equal),
        ">=": (column.high, pc.less),
    }[narrowed]
    return _certain(fails(bound, pa.scalar(point, bound.type)))


def _none_among(values: Iterable[Value], column: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether no value of ``values`` lies between the bounds."""
    candidates = members(column.field, values)
    if not candidates:
        return candidates is not None
    points = pa.array(candidates, domain(column.field))
    if len(points) == 1:
        below, above = pc.less(column.number_high, points[0]), pc.greater(column.low, points[0])
        return pc.or_(_certain(below), _certain(above))
    index = _first_at_least(points, column.low)
    candidate = points.take(pa.array(np.minimum(index, len(points) - 1)))
    return pc.or_(pa.array(index == len(points)), _certain(pc.greater(candidate, column.number_high)))


def _first_at_least(points: pa.Array, low: pa.Array) -> np.ndarray:
    """For each lower bound, the index of the first ascending point that is not below it; null bounds get 0."""
    left, right = np.zeros(len(low), np.int64), np.full(len(low), len(points), np.int64)
    for _ in range(len(points).bit_length()):
        middle = (left + right) // 2
        probe = points.take(pa.array(np.minimum(middle, len(points) - 1)))
        below = _certain(pc.less(probe, low)).to_numpy(zero_copy_only=False) & (left < right)
        left, right = np.where(below, middle + 1, left), np.where(below, right, middle)
    return left


def _all_among(values: Iterable[Value], column: ColumnFacts) -> pa.BooleanArray | bool:
    """Whether the bounds leave a single value, which is one of ``values``."""
    candidates = members(column.field, values)
    if not candidates:
        return False
    one = _certain(pc.equal(column.low, column.high))
    return pc.and_(one, _certain(pc.is_in(column.low, value_set=pa.array(candidates, domain(column.field)))))


def _none_start_with(prefix: str, column: ColumnFacts) -> pa.BooleanArray | bool:
    if not _is_prefix(prefix, column.field):
        return False
    after = pc.and_(pc.greater(column.low, prefix), pc.invert(pc.starts_with(column.low, prefix)))
    return pc.or_(_certain(after), _certain(pc.less(column.high, prefix)))


def _all_start_with(prefix: str, column: ColumnFacts) -> pa.BooleanArray | bool:
    """Every string between two strings with the prefix has the prefix too."""
    if not _is_prefix(prefix, column.field):
        return False
    return _certain(pc.and_(pc.starts_with(column.low, prefix), pc.starts_with(column.high, prefix)))


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
