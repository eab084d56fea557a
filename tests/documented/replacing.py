"""Overwrites that replace what their own rows match: the options `replaceOn`, `replaceUsing` and `targetAlias` of a
writer, in drawn cases. What is expected comes from a model of a few lines, with SQL's three values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame

from tests.documented.given import Given, Seen, documents, operations, refused, rows_of

Row = tuple[Any, ...]
COLUMNS = "a int, b int, note string"
USING = [("a",), ("b",), ("a", "b"), ("B", "A")]
ON: list[tuple[str, Callable[[Row, Row], bool]]] = [
    ("t.a <=> s.a", lambda t, s: t[0] == s[0]),
    ("t.a <=> s.a AND t.b <=> s.b", lambda t, s: t[:2] == s[:2]),
    ("t.a = s.a AND t.b > s.b", lambda t, s: None not in (*t[:2], *s[:2]) and t[0] == s[0] and t[1] > s[1]),
    ("t.a = s.b OR t.b IS NULL", lambda t, s: (t[0] is not None and t[0] == s[1]) or t[1] is None),
    ("t.a + s.b = 3", lambda t, s: None not in (t[0], s[1]) and t[0] + s[1] == 3),
    ("s.a = 1", lambda t, s: s[0] == 1),
    ("T.b IN (0, 2)", lambda t, s: t[1] in (0, 2)),
    ("true", lambda t, s: True),
    ("CAST(NULL AS BOOLEAN)", lambda t, s: False),
]
DRAWN = 12
VECTORS = {"delta.enableDeletionVectors": "true"}
"""Without them delta-spark 4.4.0 raises DELTA_FILE_TO_OVERWRITE_NOT_FOUND in some of the drawn cases."""


def drawn_rows(dice: random.Random, note: str) -> list[Row]:
    value = lambda: dice.choice((None, 0, 1, 2, 3))  # noqa: E731
    return [(value(), value(), note) for _ in range(dice.randrange(6))]


def equal(names: tuple[str, ...]) -> Callable[[Row, Row], bool]:
    places = ["ab".index(name.lower()) for name in names]
    return lambda t, s: all(t[i] is not None and t[i] == s[i] for i in places)


def replaced(table: list[Row], rows: list[Row], matches: Callable[[Row, Row], bool]) -> list[list[Any]]:
    kept = [row for row in table if not any(matches(row, new) for new in rows)]
    return sorted(map(list, [*kept, *rows]), key=repr)


def overwrite(given: Given, rows: DataFrame, name: str, **options: str) -> None:
    rows.write.format("delta").mode("overwrite").options(**options).save(given.path(name))


def drawn_table(given: Given, dice: random.Random, name: str) -> tuple[Any, list[Row]]:
    rows = [*drawn_rows(dice, "old"), (1, None, "first")]
    return given.made(COLUMNS, *rows, name=name, by=dice.choice(("", "a")), **VECTORS), rows


@documents()
def drawn_rows_replace_those_with_equal_columns(given: Given) -> Iterator[Seen]:
    for seed in range(DRAWN):
        dice, name = random.Random(seed), f"using{seed}"
        table, old = drawn_table(given, dice, name)
        names, new = dice.choice(USING), drawn_rows(dice, "new")
        overwrite(given, given.frame(COLUMNS, *new), name, replaceUsing=", ".join(names))
        found = rows_of(given.opened(name))
        yield f"{seed}: {names} of {old} by {new}", found, replaced(old, new, equal(names))
        yield f"{seed}: the history", operations(table)[0], "WRITE"


@documents()
def drawn_rows_replace_those_that_satisfy_a_condition(given: Given) -> Iterator[Seen]:
    for seed in range(DRAWN):
        dice, name = random.Random(100 + seed), f"on{seed}"
        _, old = drawn_table(given, dice, name)
        (on, matches), new = ON[seed % len(ON)], drawn_rows(dice, "new")
        overwrite(given, given.frame(COLUMNS, *new).alias("s"), name, replaceOn=on, targetAlias="t")
        yield f"{seed}: {on} of {old} by {new}", rows_of(given.opened(name)), replaced(old, new, matches)


@documents()
def the_history_names_the_condition_and_counts_the_rows(given: Given) -> Iterator[Seen]:
    table = given.made("a int, b int", (1, 1), (2, 2), (3, 3), **VECTORS)
    rows = given.frame("a int, b int", (1, 9), (4, 9))
    overwrite(given, rows, "table", replaceUsing="a, b")
    overwrite(given, rows.alias("s"), "table", replaceOn="t.a = s.a", targetAlias="t")
    history = table.history(2).select("operationParameters", "operationMetrics").collect()
    (on, on_counts), (using, _) = history
    yield "the columns", using["replaceUsingCols"], "(a, b)"
    yield "the condition", on["replaceOnCond"], "t.a = s.a"
    yield "the mode", [on["mode"], using["mode"]], ["Overwrite", "Overwrite"]
    yield "what went by the condition", on_counts["numDeletedRows"], "3"
    yield "the rows", rows_of(table), [[1, 9], [2, 2], [3, 3], [4, 9]]


@documents()
def wrong_requests_are_refused(given: Given) -> Iterator[Seen]:
    table, rows = given.made("a int, b int", (1, 1)), given.frame("a int, b int", (1, 9))
    kinds = (AnalysisException, IllegalArgumentException)

    def by(**options: str) -> str:
        found = refused(lambda: overwrite(given, rows.alias("s"), "table", **options), *kinds)
        return "refused" if found in {kind.__name__ for kind in kinds} else found

    yield "both", by(replaceOn="true", replaceUsing="a"), "refused"
    yield "a filter as well", by(replaceUsing="a", replaceWhere="a = 1"), "refused"
    yield "partitions as well", by(replaceUsing="a", partitionOverwriteMode="dynamic"), "refused"
    yield "other columns as well", by(replaceUsing="a", overwriteSchema="true"), "refused"
    yield "no change of data", by(replaceUsing="a", dataChange="false"), "refused"
    yield "a name of both", by(replaceOn="a = 1"), "refused"
    yield "a name of none", by(replaceOn="t.a = s.a"), "refused"
    yield "an unknown column", by(replaceUsing="c"), "refused"
    yield "an empty name", by(replaceUsing="a,"), "refused"
    yield "nothing was written", rows_of(table), [[1, 1]]
