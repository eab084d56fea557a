"""Texts of expressions of known types over rows of edge values, drawn by a seed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from anabranch._protocol.schema.types import Array, Field, Struct, arrow_type

INF, NAN = float("inf"), float("nan")
UTC = dt.UTC

COLUMNS = Struct(
    (
        Field("by", "byte"),
        Field("sh", "short"),
        Field("i", "integer"),
        Field("j", "integer"),
        Field("l", "long"),
        Field("m", "long"),
        Field("f", "float"),
        Field("d", "double"),
        Field("e", "double"),
        Field("n", "decimal(10,2)"),
        Field("o", "decimal(38,10)"),
        Field("p", "decimal(5,0)"),
        Field("q", "decimal(18,2)"),
        Field("b", "boolean"),
        Field("c", "boolean"),
        Field("s", "string"),
        Field("t", "string"),
        Field("da", "date"),
        Field("db", "date"),
        Field("ts", "timestamp"),
        Field("tn", "timestamp_ntz"),
        Field("st", Struct((Field("x", "long"), Field("y", "string")))),
        Field("ai", Array("integer")),
        Field("at", Array("string")),
    )
)

_TEXTS = [
    *(
        "a\0b",
        "🙂a\U0001d7d8b",
        "ba",
        "",
        " ",
        "a",
        "Ab",
        "abc",
        " abc  ",
        "ABC",
        "a%b",
        "a_b",
        "a.b",
        "a*b",
        "a\nb",
        "a\\b",
        "é",
        "É",
        "ß",
        "Ærø",
    ),
    *("o'neil mARY-ann", "ǆ aß"),
    *("ΑΣ", "σς", "İ", "ı", "ǆ", "🙂", "a🙂b", "e\u0301", "\u200b", "\u3000x", "漢字", "0", "-1", "12", "007", "1.5"),
    *(
        "true",
        "2020-02-29",
        "2021-02-29",
        "0001-01-01",
        "9999-12-31",
        "x" * 300,
        "\t a",
        "'",
        '"',
        "[a]",
        "(",
        "$",
        "^",
    ),
]
_DATES = [
    *(dt.date(1, 1, 1), dt.date(1500, 2, 28), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1900, 2, 28)),
    *(dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2020, 2, 29), dt.date(2020, 12, 31)),
    *(dt.date(2021, 1, 3), dt.date(2023, 3, 26), dt.date(2024, 12, 30), dt.date(9999, 12, 31)),
]
_TIMES = [
    *(dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10, 1, 2, 3), dt.datetime(1900, 1, 1, 0, 0, 0, 1)),
    *(
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1970, 1, 1),
        dt.datetime(2020, 2, 29, 12, 30, 15, 500),
    ),
    *(dt.datetime(2023, 3, 26, 1, 30), dt.datetime(2023, 10, 29, 2, 30), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
]
_POOLS: dict[str, Sequence[Any]] = {
    "by": [0, 1, -1, 5, 127, -128, 100],
    "sh": [0, 1, -1, 7, 32767, -32768, 300],
    "i": [0, 1, -1, 2, 3, 10, -7, 2**31 - 1, -(2**31), 100, 65536],
    "l": [0, 1, -1, 2, 3, -7, 10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1000],
    "f": [0.0, -0.0, 1.5, -2.25, 3.0, INF, -INF, NAN, 16777216.0, 0.125],
    "d": [
        0.0,
        -0.0,
        1.5,
        -2.5,
        3.0,
        0.1,
        INF,
        -INF,
        NAN,
        1e300,
        2.675,
        1.005,
        -0.285,
        1e14,
        0.5,
        -1e-9,
        9007199254740993.0,
        2.0**63,
        -(2.0**63),
        5e-324,
    ],
    "n": [
        Decimal(x) for x in ("0.00", "1.25", "-1.25", "2.50", "99999999.99", "-99999999.99", "0.05", "0.15", "-0.01")
    ],
    "o": [
        Decimal(x) for x in ("0.0000000000", "1.5000000000", "-1234567890123456789012345678.0000000001", "0.0000000050")
    ],
    "q": [
        Decimal(x)
        for x in ("0.00", "19.99", "-0.01", "90071992547409.91", "90071992547409.92", "-90071992547409.93", "0.05")
    ]
    + [Decimal("9999999999999999.99"), Decimal("-5764607523034234.89")],
    "p": [Decimal(x) for x in ("0", "1", "-1", "99999", "-99999", "15", "25")],
    "b": [True, False],
    "s": _TEXTS,
    "da": _DATES,
    "tn": _TIMES,
    "ts": [each.replace(tzinfo=UTC) for each in _TIMES],
}
_LIKE = {"j": "i", "m": "l", "e": "d", "c": "b", "t": "s", "db": "da"}


def rows(draw: random.Random, count: int) -> pa.Table:
    """Rows of edge values, of which a tenth is NULL."""

    def value(name: str) -> Any:
        if draw.random() < 0.1:
            return None
        if name == "st":
            return {"x": value("l"), "y": value("s")}
        if name in ("ai", "at"):
            return [value("i" if name == "ai" else "s") for _ in range(draw.choice((0, 1, 2, 2, 3)))]
        return draw.choice(_POOLS[_LIKE.get(name, name)])

    arrays = [pa.array([value(each.name) for _ in range(count)], arrow_type(each.type)) for each in COLUMNS]
    return pa.table(arrays, names=list(COLUMNS.names))


class Texts:
    """Draws texts. ``only`` names functions of which one has to stand at the top."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def any(self, depth: int) -> str:
        """A text of any type."""
        return self._draw.choice(list(self._kinds().values()))(depth)

    def _kinds(self) -> dict[str, Callable[[int], str]]:
        return {
            "boolean": self.truth,
            "whole": self.whole,
            "number": self.number,
            "text": self.text,
            "date": self.date,
            "moment": self.moment,
        }

    def _pick(self, depth: int, leaves: Sequence[str], forms: Sequence[Callable[[int], str]]) -> str:
        if depth <= 0 or self._draw.random() < 0.12:
            return self._draw.choice(leaves)
        return self._draw.choice(forms)(depth - 1)

    def whole(self, depth: int) -> str:
        """A whole number."""
        w, n, s, d, c = self.whole, self.number, self.text, self.date, self._draw.choice
        return self._pick(
            depth,
            [
                "by",
                "sh",
                "i",
                "j",
                "l",
                "m",
                "st.x",
                "0",
                "1",
                "-1",
                "2",
                "7",
                "100",
                "3L",
                "2147483647",
                "NULL",
                "-2147483648",
            ],
            [
                lambda k: f"({w(k)} {c('+-*')} {w(k)})",
                lambda k: f"({w(k)} % {w(k)})",
                lambda k: f"({w(k)} div {w(k)})",
                lambda k: f"{c(['mod', 'pmod'])}({w(k)}, {w(k)})",
                lambda k: f"(- {w(k)})",
                lambda k: f"abs({w(k)})",
                lambda k: f"length({s(k)})",
                lambda k: f"char_length({s(k)})",
                lambda k: f"octet_length({s(k)})",
                lambda k: f"instr({s(k)}, {self._plain_text()})",
                lambda k: f"ascii({s(k)})",
                lambda k: f"{c(['locate', 'position'])}({self._plain_text()}, {s(k)})",
                lambda k: f"locate({self._plain_text()}, {s(k)}, {c(['-1', '0', '1', '2', '300', *ENDS])})",
                lambda k: f"position({self._plain_text()} IN {s(k)})",
                lambda k: f"{c(OF_DATES)}({d(k)})",
                lambda k: f"{c(['year', 'quarter', 'month', 'day', 'hour', 'minute', 'second'])}({self.moment(k)})",
                lambda k: f"extract({c(['YEAR', 'MONTH', 'DAY', 'DOW', 'DOY'])} FROM {d(k)})",
                lambda k: f"datediff({d(k)}, {d(k)})",
                self.difference,
                self.counted,
                lambda k: f"cast({c([n, w])(k)} AS {c(['int', 'bigint', 'smallint', 'tinyint'])})",
                lambda k: f"cast({s(k)} AS {c(['int', 'bigint'])})",
                lambda k: f"cast({self.truth(k)} AS int)",
                lambda k: f"{c(['floor', 'ceil'])}({n(k)})",
                lambda k: f"round({w(k)})",
                lambda k: f"{c(['hash', 'xxhash64'])}({', '.join(self._hashed(k) for _ in range(c((1, 2, 3))))})",
                lambda k: f"{c(['size', 'cardinality'])}({self._array(k)})",
                lambda k: f"ai[{c(['0', '1', 'by'])}]",
                lambda k: f"element_at(ai, {c(['1', '-1', '2'])})",
                *self._choosing(w),
            ],
        )

    def number(self, depth: int) -> str:
        """A number of any kind."""
        n, w, c = self.number, self.whole, self._draw.choice
        return self._pick(
            depth,
            ["d", "e", "f", "n", "o", "p", "q", "i", "1.5", "0.1", "2.0D", "-0.25", "NULL", "100.00", "0.5D"],
            [
                lambda k: f"({n(k)} {c('+-*/')} {n(k)})",
                lambda k: f"({n(k)} % {n(k)})",
                lambda k: f"pmod({n(k)}, {n(k)})",
                lambda k: f"(- {n(k)})",
                lambda k: f"abs({n(k)})",
                lambda k: f"{c(['sign', 'signum'])}({n(k)})",
                lambda k: f"{c(['round', 'bround'])}({n(k)}, {c(['0', '1', '2', '5'])})",
                lambda k: f"cast({n(k)} AS {c(['double', 'decimal(12,4)', 'decimal(38,18)', 'decimal(4,1)'])})",
                lambda k: f"cast({w(k)} AS {c(['double', 'decimal(12,4)', 'decimal(20,0)'])})",
                lambda k: f"cast({self.text(k)} AS {c(['double', 'decimal(4,1)', 'decimal(38,10)', 'decimal(3,0)'])})",
                lambda k: f"cast(round({c(['d', 'e', 'd / 100', 'e * 1.005D'])}, {c('0123')}) AS decimal(20,3))",
                lambda k: f"{c(['floor', 'ceil'])}({n(k)})",
                *self._choosing(n),
            ],
        )

    def truth(self, depth: int) -> str:
        """A condition."""
        q, n, w, s, d, c = self.truth, self.number, self.whole, self.text, self.date, self._draw.choice
        signs = ["=", "<=>", "!=", "<", "<=", ">", ">="]
        return self._pick(
            depth,
            ["b", "c", "TRUE", "FALSE", "NULL", "(b = c)"],
            [
                lambda k: f"({n(k)} {c(signs)} {n(k)})",
                lambda k: f"({w(k)} {c(signs)} {w(k)})",
                lambda k: f"({s(k)} {c(signs)} {s(k)})",
                lambda k: f"({d(k)} {c(signs)} {d(k)})",
                lambda k: f"({self.moment(k)} {c(signs)} {self.moment(k)})",
                lambda k: f"({q(k)} {c(['AND', 'OR', '=', '<=>'])} {q(k)})",
                lambda k: f"(NOT {q(k)})",
                lambda k: f"({c([n, w, s, d, q])(k)} IS {c(['', 'NOT '])}NULL)",
                lambda k: f"({q(k)} IS {c(['', 'NOT '])}{c(['TRUE', 'FALSE', 'UNKNOWN'])})",
                lambda k: f"({w(k)} {c(['', 'NOT '])}IN ({w(k)}, {w(0)}, {w(0)}))",
                lambda k: f"({n(k)} IN ({n(0)}, {n(0)}))",
                lambda k: f"({s(k)} {c(['', 'NOT '])}IN ({s(k)}, {self._plain_text()}, 'abc'))",
                lambda k: f"({d(k)} IN ({d(0)}, {d(0)}))",
                lambda k: f"({n(k)} {c(['', 'NOT '])}BETWEEN {n(k)} AND {n(k)})",
                lambda k: f"({s(k)} BETWEEN {s(k)} AND {s(k)})",
                lambda k: f"({d(k)} BETWEEN {d(k)} AND {d(k)})",
                lambda k: f"({self.moment(k)} {c(signs)} {c(MOMENTS)})",
                lambda k: f"({c(MOMENTS)} {c(signs)} {self.moment(k)})",
                lambda k: f"({self.moment(k)} {c(['', 'NOT '])}BETWEEN {c(MOMENTS)} AND {c(MOMENTS)})",
                lambda k: f"({self.moment(k)} IN ({c(MOMENTS)}, {c(MOMENTS)}))",
                lambda k: f"({c(MOMENTS)} {c(['', 'NOT '])}IN ({self.moment(k)}, {c([*MOMENTS, 'ts', 'tn'])}))",
                lambda k: f"({c(WHOLE_TEXTS)} IN ({w(k)}, {w(0)}))",
                lambda k: f"({self.moment(k)} {c(signs)} {d(k)})",
                lambda k: f"({d(k)} {c(signs)} {c(MOMENTS)})",
                lambda k: f"({d(k)} IN ({c(MOMENTS)}, {c(MOMENTS)}, {d(0)}))",
                lambda k: f"({w(k)} {c(signs)} {c(WHOLE_TEXTS)})",
                lambda k: f"({w(k)} IN ({c(WHOLE_TEXTS)}, {c(WHOLE_TEXTS)}))",
                lambda k: f"({s(k)} {c(['', 'NOT '])}LIKE {c(PATTERNS)})",
                lambda k: f"({s(k)} {c(['', 'NOT '])}ILIKE {c([*PATTERNS, *GREAT])})",
                lambda k: f"({s(k)} {c(['', 'NOT '])}{c(['RLIKE', 'REGEXP'])} {c(REGULAR)})",
                lambda k: f"{c(['rlike', 'regexp', 'regexp_like'])}({s(k)}, {c(REGULAR)})",
                lambda k: f"{c(['startswith', 'endswith', 'contains'])}({s(k)}, {self._plain_text()})",
                lambda k: f"isnan({c(['d', 'e', 'f'])})",
                lambda k: f"{c(['isnull', 'isnotnull'])}({n(k)})",
                lambda k: f"cast({w(k)} AS boolean)",
                lambda k: f"equal_null({n(k)}, {n(k)})",
                lambda k: f"array_contains(ai, {c(['i', 'j', '1', '0'])})",
                lambda k: f"array_contains({self._array(k)}, {c([s(k), self._plain_text()])})",
                *self._choosing(q),
            ],
        )

    def _array(self, depth: int) -> str:
        """An array of texts."""
        return self._draw.choice(["at", f"split({self.text(depth)}, {self._draw.choice(SPLITTING)})"])

    def _hashed(self, depth: int) -> str:
        """A value of any type that is hashed."""
        forms = [*self._kinds().values(), lambda _: self._draw.choice(["by", "f", "d", "n", "p", "NULL", "st.x"])]
        return self._draw.choice(forms)(depth)

    def _plain_text(self) -> str:
        return self._draw.choice(["''", "'a'", "'b'", "' '", "'ab'", "'é'", "'🙂'", "'x'", "'.'"])

    def text(self, depth: int) -> str:
        """A text."""
        s, w, d, c, p = self.text, self.whole, self.date, self._draw.choice, self._plain_text
        number = ["0", "1", "2", "3", "-1", "-2", "-4", "10"]
        return self._pick(
            depth,
            ["s", "t", "st.y", "'a'", "'Ab c'", "''", "'É'", "NULL", "'2020-02-29'", "'12'"],
            [
                lambda k: f"{c(['lower', 'upper', 'lcase', 'ucase', 'initcap', 'trim', 'reverse'])}({s(k)})",
                lambda k: f"{c(['ltrim', 'rtrim'])}({s(k)})",
                lambda k: f"trim({c(['BOTH', 'LEADING', 'TRAILING'])} FROM {s(k)})",
                lambda k: f"substring({s(k)}, {c(number)}, {c(number)})",
                lambda k: f"substring({s(k)}, {c(number)})",
                lambda k: f"substring({s(k)} FROM {c(number)} FOR {c(number)})",
                lambda k: f"{c(['left', 'right'])}({s(k)}, {c(number)})",
                lambda k: f"({s(k)} || {c([s, w])(k)})",
                lambda k: f"concat({s(k)}, {p()}, {s(k)})",
                lambda k: f"concat_ws({p()}, {s(k)}, {s(k)})",
                lambda k: f"replace({s(k)}, {p()}, {p()})",
                lambda k: f"replace({s(k)}, {p()})",
                lambda k: f"translate({s(k)}, {c(LETTERS)}, {c(LETTERS)})",
                lambda k: f"regexp_replace({s(k)}, {c(REGULAR)}, {p()})",
                lambda k: f"{c(['lpad', 'rpad'])}({s(k)}, {c(number)}, {p()})",
                lambda k: f"repeat({s(k)}, {c(['0', '1', '2', '-1'])})",
                lambda k: f"split_part({s(k)}, {p()}, {c(['1', '2', '-1', '0'])})",
                lambda k: f"cast({c([w, self.number, d, self.truth, self.moment])(k)} AS string)",
                lambda k: f"date_format({c([d, self.moment])(k)}, {c(FORMATS)})",
                lambda k: f"{c(['md5', 'sha1'])}({s(k)})",
                lambda k: f"{self._array(k)}[{c('012')}]",
                lambda k: f"element_at({self._array(k)}, {c(['1', '2', '-1', '-2'])})",
                lambda k: f"sha2({s(k)}, {c(['0', '224', '256', '384', '512', '1'])})",
                *self._choosing(s),
            ],
        )

    def date(self, depth: int) -> str:
        """A date."""
        d, w, c = self.date, self.whole, self._draw.choice
        units = ["'YEAR'", "'MM'", "'quarter'", "'WEEK'", "'mon'"]
        return self._pick(
            depth,
            ["da", "db", "DATE '2020-01-31'", "DATE '1582-10-15'", "NULL", "DATE'0001-01-01'"],
            [
                lambda k: f"{c(['date_add', 'date_sub'])}({d(k)}, {w(k)})",
                lambda k: f"add_months({d(k)}, {w(k)})",
                lambda k: f"last_day({d(k)})",
                lambda k: f"date_from_unix_date({c([w(k), c(EPOCH_DAYS)])})",
                lambda k: f"trunc({d(k)}, {c(units)})",
                lambda k: f"cast({self.moment(k)} AS date)",
                lambda k: f"{c(['to_date', 'date'])}({c([self.moment, d])(k)})",
                lambda k: f"cast({self.text(k)} AS date)",
                lambda k: self._read(k, ["to_date"]),
                lambda k: f"({d(k)} {c('+-')} {w(k)})",
                lambda k: f"({d(k)} {c('+-')} {c(DAYS)})",
                lambda k: f"({c(DAYS)} + {d(k)})",
                *self._choosing(d),
            ],
        )

    def moment(self, depth: int) -> str:
        """A timestamp."""
        m, c = self.moment, self._draw.choice
        units = ["'YEAR'", "'month'", "'DAY'", "'hour'", "'MINUTE'", "'WEEK'", "'QUARTER'", "'second'"]
        return self._pick(
            depth,
            ["ts", "tn", *(f"{each.upper()} '2020-02-29 12:30:15.5'" for each in CLOCKS)],
            [
                lambda k: f"date_trunc({c(units)}, {m(k)})",
                lambda k: f"cast({m(k)} AS {c(CLOCKS)})",
                lambda k: f"cast({self.date(k)} AS {c(CLOCKS)})",
                lambda k: f"cast({c([*MOMENTS, 's'])} AS {c(CLOCKS)})",
                lambda k: f"{c(['timestamp', 'to_timestamp'])}({c([m(k), self.date(k), c([*MOMENTS, 's'])])})",
                lambda k: f"({m(k)} {c('+-')} {c([*DAYS, *SPANS])})",
                self.moved,
                self.since_the_epoch,
                lambda k: self._read(k, ["to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"]),
                lambda k: f"{c(['to_timestamp_ltz', 'to_timestamp_ntz'])}({c([m(k), self.date(k)])})",
                lambda k: f"({c(SPANS)} + {m(k)})",
                lambda k: f"{c(['coalesce', 'greatest'])}({m(k)}, {self.date(k)})",
                *self._choosing(m),
            ],
        )

    def widened(self, depth: int) -> str:
        """A decimal that becomes a double, by a cast or beside one."""
        c = self._draw.choice
        exact = c(["n", "o", "p", "q", "q", f"cast({self.whole(depth)} AS decimal({c(['20,0', '38,18'])}))"])
        forms = [f"cast({exact} AS double)", f"double({exact})", f"({exact} {c('+-*/')} {c('de')})"]
        return c([*forms, f"({exact} {c(['=', '<', '>='])} {c('de')})", f"coalesce({exact}, {c('de')})"])

    def counted(self, depth: int) -> str:
        """The number of units from the epoch to a moment."""
        c, moment = self._draw.choice, self.moment(depth - 1)
        units = ["unix_seconds", "unix_millis", "unix_micros", "unix_timestamp", "to_unix_timestamp"]
        cast = f"cast({c([moment, 'ts'])} AS {c(['bigint', 'int', 'smallint', 'tinyint'])})"
        return c(
            [f"{c(units)}({moment})", cast, f"{c(['bigint', 'int'])}({moment})", f"unix_date({self.date(depth - 1)})"]
        )

    def since_the_epoch(self, depth: int) -> str:
        """A moment so many units after the epoch."""
        c = self._draw.choice
        count = c([self.whole(depth - 1), self.counted(depth - 2), c(EPOCH_COUNTS)])
        units = ["timestamp_seconds", "timestamp_millis", "timestamp_micros"]
        cast = f"cast({count} AS {c(['timestamp', 'timestamp_ltz'])})"
        calls = [f"{c(['timestamp', 'to_timestamp'])}({count})", f"timestamp_seconds({c(['d', 'e', 'd * 1e9D'])})"]
        calls += [f"date_from_unix_date({c([self.whole(depth - 1), c(EPOCH_DAYS)])})"]
        return c([f"{c(units)}({count})", f"{c(units)}({count})", cast, *calls])

    def moved(self, depth: int) -> str:
        """A moment moved by a number of units."""
        c = self._draw.choice
        count = c([c(COUNTS), c(COUNTS), self.whole(depth)])
        return f"{c(['dateadd', 'date_add', 'timestampadd'])}({c(UNITS)}, {count}, {self._dated(depth)})"

    def difference(self, depth: int) -> str:
        """The number of units between two moments."""
        c = self._draw.choice
        between = f"{self._dated(depth)}, {self._dated(depth)}"
        return f"{c(['datediff', 'date_diff', 'timestampdiff'])}({c(UNITS[:-1])}, {between})"

    def _dated(self, depth: int) -> str:
        """A date, a timestamp, or a text of one."""
        c = self._draw.choice
        return c([self.moment(depth), self.moment(depth), self.date(depth), c(["ts", "tn", "da", *MOMENTS])])

    def _read(self, depth: int, names: Sequence[str]) -> str:
        """A text that is read by a pattern, which mostly is the one that spelled it."""
        c = self._draw.choice
        form, text = c(SPELLED) if self._draw.random() < 0.3 else (c(FORMATS), "")
        spelled = text or f"date_format({c([self.date, self.moment])(depth)}, {form})"
        return f"{c(names)}({c([spelled, spelled, self.text(depth)])}, {form})"

    def _choosing(self, of: Callable[[int], str]) -> list[Callable[[int], str]]:
        q, c = self.truth, self._draw.choice
        return [
            lambda k: f"CASE WHEN {q(k)} THEN {of(k)} WHEN {q(k)} THEN {of(k)} ELSE {of(k)} END",
            lambda k: f"CASE WHEN {q(k)} THEN {of(k)} END",
            lambda k: f"CASE {of(k)} WHEN {of(k)} THEN {of(k)} ELSE {of(k)} END",
            lambda k: f"if({q(k)}, {of(k)}, {of(k)})",
            lambda k: f"{c(['coalesce', 'nvl', 'ifnull'])}({of(k)}, {of(k)})",
            lambda k: f"nvl2({of(k)}, {of(k)}, {of(k)})",
            lambda k: f"nullif({of(k)}, {of(k)})",
            lambda k: f"{c(['greatest', 'least'])}({of(k)}, {of(k)}, {of(k)})",
        ]


CLOCKS = ["timestamp", "timestamp_ntz", "timestamp_ltz"]
MOMENTS = [f"'{each}'" for each in ("2020-02-29", "1970-01-01", "2020-02-29 12:30:15", "2020-02-29 12:30:15.0005")]
MOMENTS += [
    "'1970-01-01 00:00:00'",
    "'1970-01-01 00:00:00.0'",
    "'1970-01-01T02:30:00+0530'",
    "'1970-01-01 00:00:00Z'",
    "'1582-10-10 01:02:03'",
    "'2021-02-29 00:00:00'",
    "NULL",
]
WHOLE_TEXTS = ["'0'", "'-7'", "'100'", "'007'", "'128'", "'2147483647'", "'9223372036854775808'", "'1.0'"]
DAYS = ["INTERVAL 1 DAY", "INTERVAL '30' DAYS", "INTERVAL -2 WEEKS", "INTERVAL '3 days'", "INTERVAL 13 MONTHS"]
DAYS += [
    "INTERVAL 0 HOURS",
    "INTERVAL '1 day -24 hours'",
    "INTERVAL '-1' YEAR",
    "INTERVAL 1 YEAR 1 MONTH",
    "INTERVAL '1 week -1 day'",
    "INTERVAL 4000 YEARS",
]
SPANS = ["INTERVAL 5 HOURS", "INTERVAL 24 HOURS", "INTERVAL 1 DAY 3 SECONDS", "INTERVAL '90 minutes'"]
SPANS += ["INTERVAL -7 MICROSECONDS", "INTERVAL 2 HOURS 5 MILLISECONDS", "INTERVAL '1' HOUR"]
UNITS = ["YEAR", "QUARTER", "MONTH", "week", "DAY", "Hour", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"]
UNITS += ["DAYOFYEAR"]
COUNTS = ["0", "1", "-1", "- 3", "7", "13", "-400", "100000", "3L", "i", "by", "l", "NULL", "2147483647", "3000000000L"]
EPOCH_COUNTS = ["i", "l", "by", "sh", "l * 1000003L", "i * 1000000007L", "-1", "253402300799L", "253402300800L", "NULL"]
EPOCH_COUNTS += ["-62135596800L", "-62135596801L", "i % 86400"]
EPOCH_DAYS = ["i % 3000000", "sh", "by", "2932896", "2932897", "-719162", "-719163", "l"]
ENDS = ["2147483647", "-2147483648"]
OF_DATES = ["year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear", "weekday"]
PATTERNS = ["'%'", "''", "'a%'", "'%b'", "'_'", "'a_c'", "'%é%'", "'a.b'", "'%*%'", "'__'", "'%🙂%'", "'['", "'a\nb'"]
FORMATS = ["'yyyy-MM-dd'", "'yyyy'", "'yyyyMMdd HHmmss'", "'dd/MM/yyyy'", "'HH:mm:ss'", "'mm.ss, MM'", "'yyyy-MM '"]
SPELLED = [("'yyyy-MM'", "'2020-02'"), ("'dd.MM.yyyy HH'", "'29.02.2020 23'"), ("'yyyyMMdd'", "'20210229'")]
SPELLED += [("'HH:mm:ss.SSS'", "'01:02:03.004'"), ("'yyyy-MM-dd HH:mm:ss.SSSSSS'", "'1582-10-10 00:00:00.000001'")]
SPELLED += [("'MM/dd/yyyy'", "'1/2/2020'"), ("'yyyy'", "'0000'"), ("'yyyy'", "'12020'"), ("'dd MM'", "'30 02'")]
SPLITTING = ["' '", "'a'", "'[ab]'", "'b.'", "'é'", "r'\\.'", "'x+'", "'c$'", "'^a'"]
LETTERS = ["''", "'a'", "'ab'", "'ba🙂'", "'aa'", "'é🙂'", "'🙂bc'", "'\0a'", "'xyz'", "' .*'"]
GREAT = ["'%A%'", "'aB%'", "'É'", "'%ß'", "'α_'", "'%Σ'", "'İ%'", "'_Æ%'"]
REGULAR = ["'^a'", "'b$'", "'.'", "'^.$'", "'[^a-z ]'", "'^[0-9]{1,3}$'", "'(a|Ab).?c'", "'^(?:a|b|c)*$'", "' +[ab]'"]
REGULAR += [
    "'é|漢'",
    "'^..$'",
    "'a.+b'",
    "r'^\\d+$'",
    "r'a\\.b'",
    "r'\\W'",
    "r'[\\w.-]+$'",
    "'[%_]'",
    "r'\\$'",
    "'x{90}'",
]
REGULAR += ["'[é漢]'", "'Æ.*?ø'", "'\u0301$'", "r'^\\D*$'"]
