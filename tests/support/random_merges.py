"""Random MERGEs: tables, sources and commands of every shape, each expression spelled for Spark and for DuckDB.

Knows the values and the SQL of both engines; nothing of Delta. Values come from small domains, so that keys meet, meet
twice and are missing; every type has its awkward ones (NULL, NaN, -0.0, days before 1970, microseconds, empty texts).
What the two engines mean differently (rounding, division by zero, overflow) is not drawn, but for one cast that is
refused.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = Mapping[str, Any]

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "v": pa.int32(),
        "d": pa.decimal128(10, 2),
        "f": pa.float64(),
        "day": pa.date32(),
        "moment": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "word": pa.string(),
        "info": pa.struct({"a": pa.int32(), "b": pa.string()}),
        "tags": pa.list_(pa.int32()),
    }
)
COLUMNS = tuple(SCHEMA.names)
FLAT = COLUMNS[:8]
"""Those that are no structs and no lists."""
NARROW = {"k": pa.int32(), "v": pa.int16(), "d": pa.decimal128(7, 2), "f": pa.float32()}
"""Types that a source may have instead, all values of which fit the table's."""
PARTITIONINGS = ((), (), ("day",), ("k",), ("moment",), ("v", "d"))

NO_NUMBER = -999
"""What DuckDB puts where a text is no number. Its own error would come for rows on which no clause acts, too."""


@dataclass(frozen=True)
class Text:
    """One expression in both spellings."""

    spark: str
    duck: str

    @staticmethod
    def of(pattern: str, *parts: Text) -> Text:
        """A pattern that both spell alike, with ``{}`` for each part."""
        return Text(pattern.format(*(part.spark for part in parts)), pattern.format(*(part.duck for part in parts)))


@dataclass(frozen=True)
class RandomClause:
    """One WHEN clause; ``values`` is None for a star."""

    when: str
    action: str
    condition: Text | None = None
    values: Mapping[str, Text] | None = None
    columns: Sequence[str] = COLUMNS

    @property
    def assigned(self) -> Mapping[str, Text]:
        """The values, a star written out for the columns of the table."""
        return {name: Text.of(f"s.{name}") for name in self.columns} if self.values is None else self.values


@dataclass(frozen=True)
class RandomMerge:
    """A command with its source, whose columns come in any order and may be narrower than the table's.

    Attributes:
        as_columns: whether expressions are given as Columns, else as text.
    """

    rows: Sequence[Row]
    columns: Sequence[str]
    narrow: bool
    on: Text
    clauses: Sequence[RandomClause]
    as_columns: bool

    @property
    def source(self) -> pa.Table:
        """The source's rows."""
        types = NARROW if self.narrow else {}
        schema = pa.schema([(name, types.get(name, SCHEMA.field(name).type)) for name in self.columns])
        return pa.Table.from_pylist([dict(row) for row in self.rows], schema=schema)

    def __str__(self) -> str:
        lines = [f"source: {[dict(row) for row in self.rows]}{' narrow' * self.narrow}", f"ON {self.on.spark}"]
        for each in self.clauses:
            condition = f" AND {each.condition.spark}" if each.condition else ""
            values = "" if each.action == "delete" else {name: text.spark for name, text in each.assigned.items()}
            lines.append(f"WHEN {each.when}{condition} THEN {each.action} {values}")
        return "\n".join(lines)


@dataclass(frozen=True)
class RandomTable:
    """A table: the rows of each of its files at first, its partitioning and whether it has deletion vectors."""

    files: Sequence[Sequence[Row]]
    partition_by: tuple[str, ...]
    vectors: bool
    columns: Sequence[str] = COLUMNS


def arrow(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> pa.Table:
    """Rows of the table as Arrow."""
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


# -- values ------------------------------------------------------------------------------------------------------------

_UTC = dt.UTC
_DAYS = [dt.date(1969, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 2, 29)]
_MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 1, 1),
    dt.datetime(2024, 1, 1, 0, 0, 0, 1),
]
_VALUES: dict[str, list[Any]] = {
    "k": [None, 1, 2, 3, 4, 5],
    "v": [None, -1, 0, 1, 2, 7],
    "d": [None, *map(Decimal, ("-1.50", "0.00", "0.10", "2.00", "99999.99"))],
    "f": [None, -0.0, 0.0, 0.1, 2.0, math.nan, math.inf],
    "day": [None, *_DAYS],
    "moment": [None, *(each.replace(tzinfo=_UTC) for each in _MOMENTS)],
    "local": [None, *_MOMENTS],
    "word": [None, "", "a", "B", "é", "it's", "7"],
    "info": [None, {"a": 1, "b": "a"}, {"a": None, "b": "a"}, {"a": 2, "b": None}],
    "tags": [None, [], [1], [1, None], [2, 1]],
}
_row = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in _VALUES.items()})


@st.composite
def tables(draw: st.DrawFn) -> RandomTable:
    """Tables of one to three files."""
    files = draw(st.lists(st.lists(_row, min_size=2, max_size=6), min_size=1, max_size=3))
    return RandomTable(files, draw(st.sampled_from(PARTITIONINGS)), draw(st.integers(0, 3)) > 0)


@st.composite
def flat_tables(draw: st.DrawFn) -> RandomTable:
    """The same without structs and lists."""
    found = draw(tables())
    return RandomTable(found.files, found.partition_by, found.vectors, FLAT)


# -- expressions -------------------------------------------------------------------------------------------------------

_NUMBERS = ("k", "v", "d", "f")
_LITERALS: dict[str, list[Text]] = {
    "number": [Text.of(each) for each in ("0", "1", "2", "-1", "1.5", "0.1")],
    "day": [Text.of("DATE '2024-01-01'"), Text.of("DATE '1970-01-01'")],
    "moment": [Text("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMPTZ '2024-01-01 00:00:00+00'")],
    "local": [Text("TIMESTAMP_NTZ '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00'")],
    "word": [Text.of("'a'"), Text.of("''"), Text("'it\\'s'", "'it''s'"), Text.of("'é'")],
}


@st.composite
def terms(draw: st.DrawFn, name: str, sides: str) -> Text:
    """A value that fits the column ``name``, over the columns of these sides."""
    own = Text.of(f"{draw(st.sampled_from(sides))}.{name}")
    other = Text.of(f"{draw(st.sampled_from(sides))}.{name}")
    number = Text.of(f"{draw(st.sampled_from(sides))}.v")
    word = Text.of(f"{draw(st.sampled_from(sides))}.word")
    chosen: dict[str, list[Text]] = {
        "k": [number, Text.of("coalesce({}, 0)", own), Text.of("{} + {}", own, number)],
        "v": [Text.of("{} + 1", own), Text.of("-{}", own), Text.of("7"), Text.of("{} * {}", own, other)],
        "d": [number, Text.of("{} + 0.5", own), Text.of("-{}", own), Text.of("1.25")],
        "f": [number, Text.of("{} * 2", own), Text.of("coalesce({}, {})", own, other)],
        "day": [Text(f"date_add({own.spark}, 1)", f"{own.duck} + 1"), *_LITERALS["day"]],
        "moment": [Text.of("{} + INTERVAL '1' HOUR", own), *_LITERALS["moment"]],
        "local": [Text.of("{} - INTERVAL '1' DAY", own), *_LITERALS["local"]],
        "word": [Text.of("upper({})", own), Text.of("{} || '!' || {}", own, other), *_LITERALS["word"]],
        "info": [
            Text(
                f"named_struct('a', {number.spark}, 'b', {word.spark})",
                f"struct_pack(a := {number.duck}, b := {word.duck})",
            ),
            Text.of("CASE WHEN {}.a > 0 THEN {} END", own, other),
        ],
        "tags": [Text(f"array({number.spark}, 9)", f"[{number.duck}, 9]"), Text.of("coalesce({}, {})", own, other)],
    }
    if name == "k" and draw(st.integers(0, 9)) == 0:
        cast = f"ifnull(TRY_CAST({word.duck} AS BIGINT), CASE WHEN {word.duck} IS NOT NULL THEN {NO_NUMBER} END)"
        return Text(f"CAST({word.spark} AS BIGINT)", cast)
    return draw(st.sampled_from([own, own, Text.of("NULL"), *chosen[name]]))


@st.composite
def _comparisons(draw: st.DrawFn, sides: str) -> Text:
    left_side, right_side = draw(st.sampled_from(sides)), draw(st.sampled_from(sides))
    operator = draw(st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">=", "<=>"]))
    kind = draw(st.sampled_from(["number", "number", "day", "moment", "local", "word", "nested"]))
    if kind == "number":
        left, others = draw(st.sampled_from(_NUMBERS)), _NUMBERS
    elif kind == "nested":
        left = draw(st.sampled_from(["info", "tags", "info.a", "info.b"]))
        others, operator = (left,), operator if operator in ("<>", "<=>") else "="
    else:
        left, others = kind, (kind,)
    columns = [Text.of(f"{right_side}.{other}") for other in others]
    right = draw(st.sampled_from([*columns, *_LITERALS.get(kind, ())]))
    return _compared(Text.of(f"{left_side}.{left}"), operator, right)


def _compared(left: Text, operator: str, right: Text) -> Text:
    if operator == "<=>":
        return Text(f"{left.spark} <=> {right.spark}", f"{left.duck} IS NOT DISTINCT FROM {right.duck}")
    return Text.of(f"{{}} {operator} {{}}", left, right)


@st.composite
def conditions(draw: st.DrawFn, sides: str, depth: int = 2) -> Text:
    """A condition over the columns of these sides."""
    shape = draw(
        st.sampled_from(["compare"] * 4 + ["null", "in", "between", "size"] + ["and", "or", "not"] * bool(depth))
    )
    side = draw(st.sampled_from(sides))
    if shape in ("and", "or"):
        parts = [draw(conditions(sides, depth - 1)) for _ in range(2)]
        return Text.of(f"({{}} {shape.upper()} {{}})", *parts)
    if shape == "not":
        return Text.of("NOT ({})", draw(conditions(sides, depth - 1)))
    if shape == "null":
        name = draw(st.sampled_from([*COLUMNS, "info.b"]))
        return Text.of(f"{side}.{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL")
    if shape == "in":
        return Text.of(f"{side}.{draw(st.sampled_from(_NUMBERS))} {draw(st.sampled_from(['', 'NOT ']))}IN (1, 2, 0)")
    if shape == "between":
        return Text.of(f"{side}.day BETWEEN DATE '2000-01-01' AND DATE '2024-01-31'")
    if shape == "size":
        return Text(f"array_size({side}.tags) > 1", f"len({side}.tags) > 1")
    return draw(_comparisons(sides))


_ONS = [
    Text.of("t.k = s.k"),
    Text.of("t.k = s.k"),
    Text("t.k <=> s.k", "t.k IS NOT DISTINCT FROM s.k"),
    Text.of("t.k = s.k AND t.day = s.day"),
    Text.of("t.day = s.day AND t.day = DATE '2024-01-01' AND t.v = s.v"),
    Text.of("t.word = s.word"),
    Text.of("t.d = s.d"),
    Text.of("t.f = s.f"),
    Text.of("t.moment = s.moment AND s.k > 1"),
    Text.of("t.info = s.info"),
    Text.of("t.tags = s.tags"),
    Text.of("t.k = s.k OR t.v = s.v"),
    Text.of("t.v < s.v AND t.k >= s.k"),
    Text.of("t.k = s.v"),
    Text.of("t.k = s.d"),
    Text.of("t.k = 1"),
    Text.of("s.k = t.k AND s.v = 1"),
    Text.of("true"),
    Text.of("false"),
]
_ons = st.one_of(
    st.sampled_from(_ONS[:4]),
    st.sampled_from(_ONS),
    conditions("s").map(lambda also: Text.of("t.k = s.k AND {}", also)),
    conditions("t").map(lambda also: Text.of("{} AND t.k = s.k", also)),
    conditions("ts"),
)


# -- commands ----------------------------------------------------------------------------------------------------------


@st.composite
def _values(draw: st.DrawFn, sides: str) -> Mapping[str, Text]:
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True))
    return {name: draw(terms(name, sides)) for name in names}


@st.composite
def _clauses(draw: st.DrawFn, when: str, sides: str, actions: Sequence[str], most: int) -> list[RandomClause]:
    """Clauses of one kind: each but the last has a condition."""
    count = draw(st.integers(0, most))
    found = []
    for i in range(count):
        action = draw(st.sampled_from(actions))
        has_condition = i < count - 1 or draw(st.booleans())
        has_star = "s" in sides and draw(st.booleans())
        values = None if action == "delete" or has_star else draw(_values(sides))
        found.append(RandomClause(when, action, draw(conditions(sides)) if has_condition else None, values))
    return found


@st.composite
def merges(draw: st.DrawFn) -> RandomMerge:
    """Commands with at least one clause; about half of the sources have each key once at most."""
    source = draw(st.lists(_row, min_size=draw(st.sampled_from([0, 2, 4])), max_size=6))
    if draw(st.booleans()):
        source = list({row["k"]: row for row in source}.values())
    clauses = [
        *draw(_clauses("matched", "ts", ("update", "update", "delete"), 3)),
        *draw(_clauses("not matched", "s", ("insert",), 2)),
        *draw(_clauses("not matched by source", "t", ("update", "delete"), 2)),
    ] or [RandomClause("not matched", "insert")]
    return RandomMerge(
        source, draw(st.permutations(COLUMNS)), draw(st.booleans()), draw(_ons), clauses, draw(st.booleans())
    )


_FLAT_ONS = [
    Text.of("t.k = s.k"),
    Text.of("t.k = s.k"),
    Text.of("t.k = s.k AND s.day = t.day"),
    Text.of("s.word = t.word"),
    Text.of("t.moment = s.moment"),
    Text.of("t.local = s.local AND t.k = s.k"),
    Text.of("t.d = s.d"),
    Text.of("t.v = s.v AND t.word = s.word"),
    Text("t.k <=> s.k", "t.k IS NOT DISTINCT FROM s.k"),
    Text("t.v = s.v AND s.word <=> t.word", "t.v = s.v AND s.word IS NOT DISTINCT FROM t.word"),
    Text(
        "equal_null(t.k, s.k) AND s.day <=> t.day", "t.k IS NOT DISTINCT FROM s.k AND s.day IS NOT DISTINCT FROM t.day"
    ),
]
_flat_conditions = conditions("s").filter(lambda text: not any(name in text.spark for name in COLUMNS[len(FLAT) :]))


@st.composite
def merges_by_keys(draw: st.DrawFn) -> RandomMerge:
    """Commands on flat tables that match by keys alone, and take columns of the source as they are."""
    whole = draw(merges())
    taken = draw(st.lists(st.sampled_from(FLAT), min_size=1, max_size=3, unique=True))
    some = {name: Text.of(f"s.{name}") for name in taken}
    matched: list[list[RandomClause]] = [
        [],
        [RandomClause("matched", "delete")],
        [RandomClause("matched", "update", None, None, FLAT)],
        [RandomClause("matched", "update", None, some, FLAT)],
    ]
    once = RandomClause("not matched", "insert", None, None, FLAT)
    asked = RandomClause("not matched", "insert", draw(_flat_conditions), None, FLAT)
    inserts = draw(st.sampled_from([[], [once], [asked], [asked, once]]))
    clauses = [*draw(st.sampled_from(matched)), *inserts] or [once]
    columns = [name for name in whole.columns if name in FLAT]
    return RandomMerge(whole.rows, columns, whole.narrow, draw(st.sampled_from(_FLAT_ONS)), clauses, False)
