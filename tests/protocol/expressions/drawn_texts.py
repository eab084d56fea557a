"""Texts of expressions, drawn by a seed from all that the grammar has, with few parentheses and any blanks."""

from __future__ import annotations

import random

SIGNS = "+ - * / % div || & | ^ << >> >>> = == <=> <> != < <= > >= AND OR and Or".split()  # noqa: SIM905
NAMES = ["a", "b", "t.c", "s.m.n", "`odd name`", "date", "end", "year", "interval_x", "day", "2020_x", "select_1"]
LITERALS = [
    *("1", "-1", "- 1", "1.5", "-.5", "1e3", "2L", "3S", "4Y", "1.5D", "2BD", "2147483647", "-2147483648", "0x"),
    *("'x'", "'a' 'b'", "''", "NULL", "true", "FALSE", "X'00ff'", "'it''s'", "'\\n'", "r'\\d'", '"dq"'),
    *("DATE '2020-01-01'", "date'2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "INTERVAL 1 DAY"),
    *("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL -1 HOUR 2 MINUTES"),
]
FUNCTIONS = [
    "abs",
    "lower",
    "coalesce",
    "if",
    "left",
    "right",
    "date_add",
    "year",
    "`abs`",
    "substring",
    "position",
    "not",
]
TYPES = [
    *("int", "BIGINT", "decimal(10,2)", "string", "date", "timestamp", "array<int>", "varchar(3)"),
    *("map<string,array<struct<x:int,y:decimal(3,2)>>>", "struct<a int, `b c`: string>"),
]
FORMS = [
    "{} + {}", "({})", "NOT {}", "! {}", "not\n{}", "!{}", "-{}", "+{}", "~{}", "- {}", "{} IS NULL", "{} IS NOT NULL",
    "{} is true", "{} IS NOT FALSE", "{} is unknown", "{} IS DISTINCT FROM {}", "{} IS NOT DISTINCT FROM {}",
    "{} IN ({})", "{} NOT IN ({}, {})", "{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}", "{} LIKE {}",
    "{} NOT ILIKE {} ESCAPE '!'", "{} RLIKE {}", "{} NOT REGEXP {}", "{} LIKE ANY ({}, {})", "{} NOT LIKE ALL ({}, {})",
    "{} NOT ILIKE SOME ({}, {})",
    "CASE WHEN {} THEN {} END", "CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", "CASE ({}) WHEN {} THEN {} END",
    "{}[{}]", "{}.m", "trim(BOTH 'x' FROM {})", "trim(FROM {})", "trim({} FROM {})", "extract(YEAR FROM {})",
    "substring({} FROM 1 FOR 2)", "substring({}, 1)", "overlay({} PLACING 'x' FROM 2)", "position('x' IN {})",
    "timestampdiff(DAY, a, {})", "dateadd(MONTH, 1, {})", "exists(a, x -> x > {})", "aggregate(a, 0, (x, y) -> x + {})",
    "date_add(day, {})",
]  # fmt: skip


def drawn_text(draw: random.Random, depth: int) -> str:
    """A text of at most this depth."""
    if depth <= 0 or draw.random() < 0.15:
        return draw.choice(NAMES if draw.random() < 0.6 else LITERALS)

    def part() -> str:
        return drawn_text(draw, depth - 1)

    kind = draw.random()
    if kind < 0.4:
        blank = draw.choice([" ", "  ", "\n", "\t"])
        return f"{part()}{blank}{draw.choice(SIGNS)}{blank}{part()}"
    if kind < 0.5:
        how = draw.choice(["CAST({} AS {})", "try_cast({} AS {})", "{}::{}"])
        return how.format(part(), draw.choice(TYPES))
    if kind < 0.6:
        return f"{draw.choice(FUNCTIONS)}({', '.join(part() for _ in range(draw.randint(0, 3)))})"
    form = draw.choice(FORMS)
    return form.format(*(part() for _ in range(form.count("{}"))))
