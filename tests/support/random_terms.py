"""Random conditions on functions of columns, with what they are for a row, worked out without the package.

A condition is a tree of plain values: ``text`` writes it in SQL, ``truth`` evaluates it in a time zone as Spark does
(three-valued), from a row of Python values.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._expressions import Context
from anabranch._expressions import condition as understood
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._protocol.stats.footers import footer_stats
from anabranch._protocol.stats.skipping import could_match, must_match

UTC = dt.UTC
SCHEMA = Struct(
    (
        Field("d", "date"),
        Field("t", "timestamp"),
        Field("n", "timestamp_ntz"),
        Field("i", "integer"),
        Field("s", "string"),
        Field("in", Struct((Field("l", "long"), Field("T.x", "timestamp")))),
        Field("b", "boolean"),
    )
)
COLUMNS = {"d": "date", "t": "timestamp", "n": "timestamp_ntz", "in.`t.x`": "timestamp"}
WORDS = ["", "a", "ab", "b", "a" * 31 + "\U0001f600b", "a" * 32 + "z", "\U0010ffff" * 34]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK"]
Rows = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Term:
    """A column and what is applied to it, outermost last, with the type of the outcome."""

    column: str
    steps: tuple[tuple[str, str], ...]
    type: str

    def text(self) -> str:
        found = self.column
        for function, unit in self.steps:
            found = function.format(found, unit)
        return found


@dataclass(frozen=True)
class Condition:
    """``op`` with its terms, literals and inner conditions."""

    op: str
    term: Term | None = None
    literals: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Condition, ...] = field(default=())

    def text(self) -> str:
        shown = [text for text, _ in self.literals]
        if self.op in ("AND", "OR"):
            return "(" + f" {self.op} ".join(part.text() for part in self.parts) + ")"
        if self.op == "NOT":
            return f"NOT {self.parts[0].text()}"
        assert self.term is not None
        term = self.term.text()
        if self.op == "FLAG":
            return term
        if self.op == "IN":
            return f"({term} IN ({', '.join(shown)}))"
        if self.op == "BETWEEN":
            return f"({term} BETWEEN {shown[0]} AND {shown[1]})"
        return f"({term} IS NULL)" if self.op == "NULL" else f"({term} {self.op} {shown[0]})"


# -- making ------------------------------------------------------------------------------------------------------------

_NEAR = [dt.datetime(2019, 12, 29), dt.datetime(2020, 1, 1), dt.datetime(2020, 3, 29, 2), dt.datetime(2020, 10, 25, 2)]
_NEAR += [dt.datetime(2011, 12, 30), dt.datetime(2020, 3, 8, 2), dt.datetime(2020, 11, 1, 1), dt.datetime(1999, 7, 1)]
_STEPS = [0, 1, -1, 999, 1000, 3_600_000_000, -3_600_000_000, 86_400_000_000, 5_400_000_000, -43_200_000_000]


def moment(runtime: random.Random) -> dt.datetime:
    """A local time near something that may go wrong."""
    return runtime.choice(_NEAR) + dt.timedelta(microseconds=runtime.choice(_STEPS))


def row(runtime: random.Random) -> dict[str, Any]:
    """A row of `SCHEMA`; every column may be NULL."""
    values = {
        "d": moment(runtime).date(),
        "t": moment(runtime).replace(tzinfo=UTC),
        "n": moment(runtime),
        "i": runtime.choice([-(2**31), -1, 0, 1, 2, 2019, 2020, 2**31 - 1]),
        "s": runtime.choice(WORDS),
        "in": {"l": runtime.choice([-(2**63), 0, 5, 2**53 + 1, 2**63 - 1]), "T.x": moment(runtime).replace(tzinfo=UTC)},
        "b": runtime.random() < 0.5,
    }
    return {name: None if runtime.random() < 0.1 else value for name, value in values.items()}


def condition(runtime: random.Random, depth: int = 2, *, wraps: bool = False) -> Condition:
    """A random condition over `SCHEMA`; with arithmetic, which fails under ANSI rules, if it ``wraps``."""
    if depth and runtime.random() < 0.5:
        op = runtime.choice(["AND", "OR", "NOT"])
        count = 1 if op == "NOT" else 2
        return Condition(op, parts=tuple(condition(runtime, depth - 1, wraps=wraps) for _ in range(count)))
    if runtime.random() < 0.15:
        return Condition(runtime.choice(["LIKE", "NOT LIKE"]), Term("s", (), "string"), (_pattern(runtime),))
    if runtime.random() < 0.05:
        return Condition("FLAG", Term("b", (), "boolean"))
    term = _term(runtime, wraps)
    op = runtime.choice([*OPERATORS, *OPERATORS, "<=>", "IN", "BETWEEN", "NULL"])
    kind = runtime.choice(_KINDS[term.type])
    if op in ("IN", "<=>") and kind == "text" and term.type in ("timestamp", "timestamp_ntz"):
        op = "="
    count = {"IN": runtime.randint(1, 3), "BETWEEN": 2, "NULL": 0}.get(op, 1)
    return Condition(op, term, tuple(_literal(runtime, kind) for _ in range(count)))


def _pattern(runtime: random.Random) -> tuple[str, Any]:
    """A pattern, and the regular expression that it stands for."""
    word = runtime.choice([*WORDS, "a" * 31, "a" * 32])
    pattern = word + runtime.choice(["", "%", "%", "%%", "_%", "%z"])
    return f"'{pattern}'", ("pattern", pattern.replace("%", ".*").replace("_", "."))


def _term(runtime: random.Random, wraps: bool) -> Term:
    plain = runtime.choice(["moment", "moment", "moment", "number", "string"])
    if plain == "string":
        return Term("s", (), "string")
    if plain == "number":
        column = runtime.choice(["i", "`in`.l"])
        to = runtime.choice(["BIGINT", "DECIMAL(22,2)", *(["DOUBLE"] if column == "i" else [])])
        steps = tuple(_arithmetic(runtime) for _ in range(runtime.choice([0, 1, 1, 2]) * wraps))
        cast = (("CAST({0} AS {1})", to),) if runtime.random() < 0.6 else ()
        return Term(column, (*steps, *cast), "number")
    column = runtime.choice(list(COLUMNS))
    return _applied(runtime, Term(column.replace("in.", "`in`."), (), COLUMNS[column]), runtime.randint(0, 2))


def _arithmetic(runtime: random.Random) -> tuple[str, str]:
    shape = runtime.choice(["({0} + {1})", "({0} - {1})", "({1} - {0})", "({1} + {0})", "({0} * {1})", "(- {0})"])
    return shape, str(runtime.choice([-7, -1, 0, 1, 2, 3, 1000]))


def _applied(runtime: random.Random, term: Term, times: int) -> Term:
    if not times or term.type == "number":
        return term
    choices = ["date", "timestamp", "timestamp_ntz", "to_date", "year", "trunc", "date_trunc", "date()"]
    choice = runtime.choice([*choices, *(["date_add", "date_sub"] if term.type == "date" else [])])
    steps: dict[str, tuple[str, str, str]] = {
        "date": ("CAST({0} AS {1})", "DATE", "date"),
        "timestamp": ("CAST({0} AS {1})", "TIMESTAMP", "timestamp"),
        "timestamp_ntz": ("CAST({0} AS {1})", "TIMESTAMP_NTZ", "timestamp_ntz"),
        "to_date": ("to_date({0})", "", "date"),
        "date()": ("date({0})", "", "date"),
        "year": ("year({0})", "", "number"),
        "date_add": ("date_add({0}, {1})", str(runtime.choice([-400, -1, 0, 1, 30])), "date"),
        "date_sub": ("date_sub({0}, {1})", str(runtime.choice([-400, -1, 0, 1, 30])), "date"),
        "trunc": ("trunc({0}, '{1}')", runtime.choice(UNITS), "date"),
        "date_trunc": ("date_trunc('{1}', {0})", runtime.choice([*UNITS, "DAY", "HOUR"]), "timestamp"),
    }
    function, unit, data_type = steps[choice]
    return _applied(runtime, Term(term.column, (*term.steps, (function, unit)), data_type), times - 1)


_MOMENT_KINDS = ["date", "timestamp", "timestamp_ntz", "text", "utc"]
_KINDS = {
    "string": ["string"],
    "number": ["number", "number", "decimal"],
    "date": ["date", "timestamp", "timestamp_ntz", "date text"],
    "timestamp": _MOMENT_KINDS,
    "timestamp_ntz": _MOMENT_KINDS,
}


def _literal(runtime: random.Random, kind: str) -> tuple[str, Any]:
    """A literal's text, and its value: a pair of kind and value."""
    at = moment(runtime)
    clock = at.isoformat(sep=" ")
    match kind:
        case "string":
            word = runtime.choice(WORDS)
            return f"'{word}'", ("string", word)
        case "number":
            number = runtime.choice([-1, 0, 1, 2, 5, 1999, 2011, 2019, 2020, 2**31, 2**53 + 1, 2**63 - 1])
            return str(number), ("number", number)
        case "decimal":
            number = runtime.choice([0.5, 2019.5, 2020.0, -0.5])
            return str(number), ("number", number)
        case "date":
            return f"DATE '{at.date()}'", ("date", at.date())
        case "date text":
            return f"'{at.date()}'", ("date", at.date())
        case "text":
            return f"'{clock}'", ("text", at)
        case "utc":
            return f"TIMESTAMP '{clock} UTC'", ("timestamp", at.replace(tzinfo=UTC))
    return f"{kind.upper()} '{clock}'", (kind, at)


# -- meaning -----------------------------------------------------------------------------------------------------------


def truth(condition: Condition, row: Mapping[str, Any], zone: ZoneInfo) -> bool | None:
    """What the condition is for a row, in a session of this zone."""
    inner = [truth(part, row, zone) for part in condition.parts]
    match condition.op:
        case "NOT":
            return None if inner[0] is None else not inner[0]
        case "AND":
            return False if False in inner else None if None in inner else True
        case "OR":
            return True if True in inner else None if None in inner else False
    assert condition.term is not None
    value = _value(condition.term, row, zone)
    if condition.op == "NULL":
        return value is None
    if value is None:
        return False if condition.op == "<=>" else None
    if condition.op == "FLAG":
        return bool(value)
    if condition.op.endswith("LIKE"):
        matches = re.fullmatch(condition.literals[0][1][1], value, re.DOTALL) is not None
        return matches if condition.op == "LIKE" else not matches
    signs = [_compared(condition.term.type, value, literal, zone) for _, literal in condition.literals]
    if condition.op == "IN":
        return any(left == right for left, right in signs)
    if condition.op == "BETWEEN":
        return signs[0][0] >= signs[0][1] and signs[1][0] <= signs[1][1]
    return OPERATORS["=" if condition.op == "<=>" else condition.op](*signs[0])


def _value(term: Term, row: Mapping[str, Any], zone: ZoneInfo) -> Any:
    path = term.column.replace("`", "").replace("t.x", "T#x").split(".")
    value: Any = row
    for name in path:
        value = None if value is None else value[name.replace("#", ".")]
    for function, unit in term.steps:
        if value is not None and function.startswith("("):
            value = _calculated(function, int(unit), value, 31 if term.column == "i" else 63)
        elif value is not None:
            value = _step(function, unit, value, zone)
    return value


def _calculated(function: str, number: int, value: int, bits: int) -> int:
    """As without ANSI rules, under which what is too large wraps."""
    shape = function.replace("{0}", "x").replace("{1}", "n")
    exact = {"(x + n)": value + number, "(n + x)": value + number, "(x * n)": value * number}
    exact |= {"(x - n)": value - number, "(n - x)": number - value, "(- x)": -value}
    return (exact[shape] + (1 << bits)) % (1 << bits + 1) - (1 << bits)


def _step(function: str, unit: str, value: Any, zone: ZoneInfo) -> Any:
    if function.startswith("CAST") and unit in ("BIGINT", "DOUBLE", "DECIMAL(22,2)"):
        return value
    if function.startswith(("date_add", "date_sub")):
        return value + dt.timedelta(days=int(unit) * (1 if function.startswith("date_add") else -1))
    if function.startswith("year"):
        return _local(value, zone).year
    if function.startswith("trunc"):
        return _truncated(unit, _local(value, zone)).date()
    if function.startswith("date_trunc"):
        local = _instant(value, zone).astimezone(zone)
        naive = local.replace(tzinfo=None)
        if unit == "HOUR":
            return local.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
        return _truncated(unit, naive).replace(tzinfo=zone, fold=0).astimezone(UTC)
    if unit == "TIMESTAMP":
        return _instant(value, zone)
    return _local(value, zone) if unit == "TIMESTAMP_NTZ" else _local(value, zone).date()


def _instant(value: Any, zone: ZoneInfo) -> dt.datetime:
    """As Java finds it: in an hour that is dropped later, in one that is doubled the first."""
    if isinstance(value, dt.datetime):
        return value if value.tzinfo else value.replace(tzinfo=zone, fold=0).astimezone(UTC)
    return dt.datetime.combine(value, dt.time()).replace(tzinfo=zone, fold=0).astimezone(UTC)


def _local(value: Any, zone: ZoneInfo) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.astimezone(zone).replace(tzinfo=None, fold=0) if value.tzinfo else value
    return dt.datetime.combine(value, dt.time())


def _truncated(unit: str, local: dt.datetime) -> dt.datetime:
    day = dt.datetime(local.year, local.month, local.day)
    match unit:
        case "YEAR":
            return day.replace(month=1, day=1)
        case "QUARTER":
            return day.replace(month=(local.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            return day.replace(day=1)
        case "WEEK":
            return day - dt.timedelta(days=day.weekday())
    return day


def _compared(data_type: str, value: Any, literal: tuple[str, Any], zone: ZoneInfo) -> tuple[Any, Any]:
    """Both as the one type in which Spark compares them."""
    kind, other = literal
    if data_type == "string":
        return value.encode(), other.encode()
    if data_type == "number" or kind == data_type == "date":
        return value, other
    if kind == "timestamp":
        other = _instant(other, zone)
    if "timestamp" in (data_type, kind):
        return _instant(value, zone), _instant(other, zone)
    return _local(value, zone), _local(other, zone)


# -- files -------------------------------------------------------------------------------------------------------------

Truths = Callable[[Condition, Mapping[str, Any]], bool | None]


def stats_of(rows: Rows, runtime: random.Random) -> str | None:
    """What our own writer states of a file of these rows, or a part of it."""
    table = pa.Table.from_pylist(list(rows), to_arrow(SCHEMA))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    text = footer_stats(pq.read_metadata(io.BytesIO(sink.getvalue())), SCHEMA)
    lot = runtime.random()
    if lot < 0.7:
        return text
    return None if lot < 0.75 else json.dumps(_less(json.loads(text), runtime))


def _less(stated: dict[str, Any], runtime: random.Random) -> dict[str, Any]:
    kept = {name: value for name, value in stated.items() if runtime.random() < 0.8}
    return {name: _less(value, runtime) if isinstance(value, dict) else value for name, value in kept.items()}


def files_of(stats: list[str | None]) -> pa.Table:
    """Files with these statistics, and no partition values."""
    maps = pa.array([[]] * len(stats), pa.map_(pa.string(), pa.string()))
    paths = pa.array([f"{i}.parquet" for i in range(len(stats))], pa.string())
    return pa.table({"path": paths, "partitionValues": maps, "stats": pa.array(stats, pa.string())})


def context_in(zone: str) -> Context:
    """A session of this time zone, in which all functions are Spark's own."""
    return Context("t", SCHEMA, dt.datetime(2026, 3, 1, tzinfo=UTC), zone, lambda names: True)


def check(wanted: Condition, files: list[Rows], stated: pa.Table, zone: str, truths: Truths) -> None:
    """Hold that no file is left out that holds a row for which a condition is TRUE, nor taken whole with others."""
    predicate = understood(wanted.text(), context_in(zone)).predicate
    could = could_match(predicate, stated, SCHEMA, []).to_pylist()
    must = must_match(predicate, stated, SCHEMA, []).to_pylist()
    for rows, may, shall in zip(files, could, must, strict=True):
        found = [truths(wanted, row) for row in rows]
        assert may or True not in found, (wanted.text(), zone, rows)
        assert not shall or all(each is True for each in found), (wanted.text(), zone, rows)
