"""MERGE: `merge` and `DeltaMergeBuilder`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.documented.given import Given, Seen, documents, operations, refused, rows_of, types_of

METRICS = ["num_affected_rows bigint", "num_updated_rows bigint", "num_deleted_rows bigint", "num_inserted_rows bigint"]
EVENTS = [("2024-01-01", 1, "a", 1, 0), ("2024-01-02", 2, "b", 5, 0), ("2024-01-03", 3, "c", 9, 2)]


def events(given: Given, name: str = "table") -> Any:
    return given.made("date string, eventId long, data string, count int, missed_count int", *EVENTS, name=name)


def updates(given: Given) -> DataFrame:
    return given.frame("date string, eventId long, data string", ("2024-02-01", 2, "new"), ("2024-02-02", 4, "d"))


MERGED = [
    ["2024-01-01", 1, "a", 1, 1],
    ["2024-01-02", 2, "new", 6, 0],
    ["2024-01-03", 3, "c", 9, 3],
    ["2024-02-02", 4, "d", 1, 0],
]


@documents(
    "DeltaTable.merge",
    "DeltaMergeBuilder.whenMatchedUpdate",
    "DeltaMergeBuilder.whenNotMatchedInsert",
    "DeltaMergeBuilder.whenNotMatchedBySourceUpdate",
    "DeltaMergeBuilder.execute",
)
def the_documented_example_in_text(given: Given) -> Iterator[Seen]:
    table = events(given)
    builder = table.alias("events").merge(
        source=updates(given).alias("updates"), condition="events.eventId = updates.eventId"
    )
    builder = builder.whenMatchedUpdate(set={"data": "updates.data", "count": "events.count + 1"})
    values = {"date": "updates.date", "eventId": "updates.eventId", "data": "updates.data"}
    builder = builder.whenNotMatchedInsert(values={**values, "count": "1", "missed_count": "0"})
    builder = builder.whenNotMatchedBySourceUpdate(set={"missed_count": "events.missed_count + 1"})
    yield "nothing happens yet", rows_of(table), [list(row) for row in EVENTS]
    done = builder.execute()
    yield "its rows", rows_of(table), MERGED
    yield "what it gives", types_of(done), METRICS
    yield "its numbers", rows_of(done), [[4, 3, 0, 1]]
    yield "the history", operations(table)[0], "MERGE"


@documents(
    "DeltaTable.merge",
    "DeltaMergeBuilder.whenMatchedUpdate",
    "DeltaMergeBuilder.whenNotMatchedInsert",
    "DeltaMergeBuilder.whenNotMatchedBySourceUpdate",
)
def the_documented_example_in_columns(given: Given) -> Iterator[Seen]:
    table, col, lit = events(given), F.col, F.lit
    builder = table.alias("events").merge(
        source=updates(given).alias("updates"), condition=F.expr("events.eventId = updates.eventId")
    )
    builder = builder.whenMatchedUpdate(set={"data": col("updates.data"), "count": col("events.count") + 1})
    values = {"date": col("updates.date"), "eventId": col("updates.eventId"), "data": col("updates.data")}
    builder = builder.whenNotMatchedInsert(values={**values, "count": lit("1"), "missed_count": lit("0")})
    builder.whenNotMatchedBySourceUpdate(set={"missed_count": col("events.missed_count") + 1}).execute()
    yield "its rows", rows_of(table), MERGED


@documents(
    "DeltaMergeBuilder.whenMatchedUpdate",
    "DeltaMergeBuilder.whenMatchedDelete",
    "DeltaMergeBuilder.whenNotMatchedInsert",
    "DeltaMergeBuilder.whenNotMatchedBySourceUpdate",
    "DeltaMergeBuilder.whenNotMatchedBySourceDelete",
)
def the_first_clause_whose_condition_is_true_acts(given: Given) -> Iterator[Seen]:
    table = given.made("id long, x int", *[(i, i * 10) for i in range(1, 9)])
    source = given.frame("id long, x int", (1, 1), (2, None), (3, 3), (4, 4), (11, 1), (12, 2), (13, None))
    builder = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    builder = builder.whenMatchedDelete("s.x = 1").whenMatchedUpdate("s.x > 3", {"x": "t.x + s.x"})
    builder = builder.whenMatchedUpdate(condition=F.col("s.x").isNull(), set={"t.x": "-1"})
    builder = builder.whenNotMatchedInsert("s.x = 1", {"id": "s.id", "x": "100"})
    builder = builder.whenNotMatchedInsert(condition="s.x = 2", values={"id": "s.id"})
    builder = builder.whenNotMatchedBySourceDelete(F.col("t.x") == 50)
    builder = builder.whenNotMatchedBySourceUpdate("t.x < 80", {"x": "-t.x"}).whenNotMatchedBySourceDelete()
    done = builder.execute()
    yield "its rows", rows_of(table), [[11, 100], [12, None], [2, -1], [3, 30], [4, 44], [6, -60], [7, -70]]
    yield "its numbers", rows_of(done), [[9, 4, 3, 2]]


@documents("DeltaMergeBuilder.whenMatchedUpdateAll", "DeltaMergeBuilder.whenNotMatchedInsertAll")
def whole_rows_are_taken_from_the_source(given: Given) -> Iterator[Seen]:
    table = given.flights()
    source = given.frame(
        "delay int, id long, carrier string, more string", (5, 1, "XX", "m"), (6, 2, "YY", "m"), (7, 9, "ZZ", "m")
    )
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll(
        "s.delay = 5"
    ).whenNotMatchedInsertAll().execute()
    expected = [[1, "XX", 5], [2, "AA", 20], [3, "UA", None], [4, None, 40], [9, "ZZ", 7]]
    yield "by their names", rows_of(table), expected
    lacking = table.alias("t").merge(source.drop("carrier").alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    yield "a source that lacks one", refused(lacking.execute, AnalysisException), "AnalysisException"
    inserts = table.alias("t").merge(source.alias("s"), F.lit(False)).whenNotMatchedInsertAll(F.col("s.id") == 2)
    inserts.execute()
    yield "inserts with a condition", rows_of(table)[2], [2, "YY", 6]


@documents("DeltaMergeBuilder.withSchemaEvolution")
def a_merge_may_add_columns(given: Given) -> Iterator[Seen]:
    table = given.made("id long, x int", (1, 10), (2, 20))
    source = given.frame("id long, more string", (2, "two"), (3, "three"))
    builder = table.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    yield "its columns", given.opened().toDF().columns, ["id", "x", "more"]
    yield "its rows", rows_of(given.opened()), [[1, 10, None], [2, 20, "two"], [3, None, "three"]]


@documents("DeltaTable.merge", "DeltaMergeBuilder.execute")
def names_without_an_alias_may_do(given: Given) -> Iterator[Seen]:
    table = given.flights()
    source = given.frame("key long", (1,), (3,))
    table.merge(source, "id = key").whenMatchedDelete().execute()
    yield "its rows", rows_of(table), [[2, "AA", 20], [4, None, 40]]
    ambiguous = table.merge(given.frame("id long", (2,)), "id = id").whenMatchedDelete()
    yield "a name of both", refused(ambiguous.execute, AnalysisException), "AnalysisException"


@documents("DeltaMergeBuilder.execute")
def two_sources_of_one_row_are_refused(given: Given) -> Iterator[Seen]:
    table = given.flights()
    source = given.frame("id long, delay int", (1, 1), (1, 2))
    merged = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    update = merged.whenMatchedUpdate(set={"delay": "s.delay"})
    found = refused(update.execute, UnsupportedOperationException)
    yield "an update", found, "UnsupportedOperationException"
    yield "nothing was changed", rows_of(table)[0], [1, "UA", 10]
    merged.whenMatchedDelete().execute()
    yield "a delete alone", [row[0] for row in rows_of(table)], [2, 3, 4]


@documents(
    "DeltaTable.merge",
    "DeltaMergeBuilder.whenMatchedUpdate",
    "DeltaMergeBuilder.whenMatchedUpdateAll",
    "DeltaMergeBuilder.whenMatchedDelete",
    "DeltaMergeBuilder.whenNotMatchedInsert",
    "DeltaMergeBuilder.whenNotMatchedInsertAll",
    "DeltaMergeBuilder.whenNotMatchedBySourceUpdate",
    "DeltaMergeBuilder.whenNotMatchedBySourceDelete",
)
def wrong_arguments_of_a_merge_are_told(given: Given) -> Iterator[Seen]:
    table, source = given.flights().alias("t"), given.frame("id long", (1,)).alias("s")
    merged = table.merge(source, "t.id = s.id")
    types = {
        "a source that is a table": lambda: table.merge(table, "t.id = s.id"),
        "a source that is text": lambda: table.merge("s", "t.id = s.id"),
        "a condition that is a number": lambda: table.merge(source, 1),
        "matched: a set that is no dict": lambda: merged.whenMatchedUpdate(set=["x"]),
        "matched: a key that is no text": lambda: merged.whenMatchedUpdate(set={1: "1"}),
        "matched: a value that is a number": lambda: merged.whenMatchedUpdate(set={"delay": 1}),
        "matched: a condition that is a number": lambda: merged.whenMatchedUpdate(1, {"delay": "1"}),
        "matched: all, a condition that is a number": lambda: merged.whenMatchedUpdateAll(1),
        "matched: delete, a condition that is a number": lambda: merged.whenMatchedDelete(1),
        "not matched: values that are no dict": lambda: merged.whenNotMatchedInsert(values="x"),
        "not matched: a value that is a number": lambda: merged.whenNotMatchedInsert(values={"id": 1}),
        "not matched: all, a condition that is a number": lambda: merged.whenNotMatchedInsertAll(1),
        "by source: a set that is no dict": lambda: merged.whenNotMatchedBySourceUpdate(set=1),
        "by source: delete, a condition that is a number": lambda: merged.whenNotMatchedBySourceDelete(1),
    }
    for what, command in types.items():
        yield what, refused(command, TypeError), "TypeError"
    nothing = {
        "no source": lambda: table.merge(None, "t.id = s.id"),
        "no condition": lambda: table.merge(source, None),
        "matched: no set": lambda: merged.whenMatchedUpdate(),
        "not matched: no values": lambda: merged.whenNotMatchedInsert("s.id = 1"),
        "by source: no set": lambda: merged.whenNotMatchedBySourceUpdate("t.id = 1"),
    }
    for what, command in nothing.items():
        yield what, refused(command, ValueError), "ValueError"


@documents("DeltaTable.merge", "DeltaMergeBuilder.execute")
def wrong_merges_are_told(given: Given) -> Iterator[Seen]:
    table, source = given.flights().alias("t"), given.frame("id long", (1,)).alias("s")
    merged = table.merge(source, "t.id = s.id")
    wrong = {
        "no clause": lambda: merged.execute(),
        "a clause behind one without a condition": lambda: (
            merged.whenMatchedDelete().whenMatchedUpdate(set={"delay": "1"}).execute()
        ),
        "an unknown column in the condition": lambda: (
            table.merge(source, "t.nobody = s.id").whenMatchedDelete().execute()
        ),
        "an unknown column that is set": lambda: merged.whenMatchedUpdate(set={"nobody": "1"}).execute(),
        "an unknown column in a value": lambda: merged.whenMatchedUpdate(set={"delay": "nobody"}).execute(),
        "the source where it has no row": lambda: merged.whenNotMatchedBySourceUpdate(set={"delay": "s.id"}).execute(),
        "the table where it has no row": lambda: merged.whenNotMatchedInsert(values={"id": "t.id"}).execute(),
        "a condition that is none": lambda: table.merge(source, "t.id + s.id").whenMatchedDelete().execute(),
    }
    for what, command in wrong.items():
        yield what, refused(command, AnalysisException), "AnalysisException"
    yield "nothing was committed", len(operations(table)), 1
