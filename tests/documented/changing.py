"""Changing rows: `delete` and `update`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from tests.documented.given import Given, Seen, detail_of, documents, operations, refused, rows_of

EVENTS = [("2016-12-31", "clck"), ("2017-01-01", "clck"), ("2017-01-02", "view"), (None, "view")]


def ids(found: object) -> list[int]:
    return [row[0] for row in rows_of(found)]


@documents("DeltaTable.delete")
def rows_are_deleted_by_text_by_column_and_all(given: Given) -> Iterator[Seen]:
    table = given.made("date string, eventType string", *EVENTS)
    yield "what it gives", table.delete("date < '2017-01-01'"), None
    yield "by text", ids(table), ["2017-01-01", "2017-01-02", None]
    table.delete(F.col("date") < "2017-01-02")
    yield "by a Column", ids(table), ["2017-01-02", None]
    table.delete(condition="date = '1999-01-01'")
    yield "no row", ids(table), ["2017-01-02", None]
    yield "a condition that is NULL", table.delete("date > NULL"), None
    yield "keeps its row", ids(table), ["2017-01-02", None]
    table.delete()
    yield "all", ids(table), []
    yield "the history", operations(table)[0], "DELETE"


@documents("DeltaTable.delete", "DeltaTable.alias")
def a_delete_may_speak_by_the_alias(given: Given) -> Iterator[Seen]:
    table = given.flights().alias("t")
    table.delete("t.id = 1 OR T.delay > 30")
    yield "text", ids(table), [2, 3]
    table.delete(F.col("t.id") == 2)
    yield "a Column", ids(table), [3]
    table.delete("carrier = 'UA'")
    yield "a bare name", ids(table), []
    wrong = refused(lambda: table.delete("u.id = 1"), AnalysisException)
    yield "another name", wrong, "AnalysisException"


@documents("DeltaTable.delete")
def wrong_conditions_of_a_delete_are_told(given: Given) -> Iterator[Seen]:
    table = given.flights()
    yield "a number", refused(lambda: table.delete(5), TypeError), "TypeError"
    yield "a bool", refused(lambda: table.delete(True), TypeError), "TypeError"
    yield "an unknown column", refused(lambda: table.delete("nobody = 1"), AnalysisException), "AnalysisException"
    yield (
        "an unknown Column",
        refused(lambda: table.delete(F.col("nobody") == 1), AnalysisException),
        "AnalysisException",
    )
    yield "no condition", refused(lambda: table.delete("id + 1"), AnalysisException), "AnalysisException"
    yield "no SQL", refused(lambda: table.delete("id ="), ParseException), "ParseException"
    yield "nothing was deleted", ids(table), [1, 2, 3, 4]
    yield "nor committed", len(operations(table)), 1


@documents("DeltaTable.update")
def rows_are_updated_by_text_and_columns(given: Given) -> Iterator[Seen]:
    table = given.made("date string, eventType string", *EVENTS)
    done = table.update(condition="eventType = 'clck'", set={"eventType": "'click'"})
    yield "what it gives", done, None
    yield "by text", [row[1] for row in rows_of(table)], ["click", "click", "view", "view"]
    table.update(condition=F.col("eventType") == "click", set={"eventType": F.lit("clicked")})
    yield "by Columns", [row[1] for row in rows_of(table)], ["clicked", "clicked", "view", "view"]
    table.update(F.col("date").isNull(), {"date": "'none'", "eventType": F.upper("eventType")})
    yield "by position, both kinds", rows_of(table)[3], ["none", "VIEW"]
    table.update(set={"date": "eventType", "eventType": F.col("date")})
    yield "every row, from the old values", rows_of(table)[0], ["VIEW", "none"]
    yield "the history", operations(table)[0], "UPDATE"


@documents("DeltaTable.update", "DeltaTable.alias")
def an_update_may_speak_by_the_alias(given: Given) -> Iterator[Seen]:
    table = given.flights().alias("t")
    table.update("t.id = 1", {"delay": "t.delay + 1", "t.carrier": "concat(t.carrier, '!')"})
    yield "text", rows_of(table)[0], [1, "UA!", 11]
    table.update(F.col("t.id") == 2, {"delay": F.col("t.delay") * 2, "carrier": F.lower(F.col("t.carrier"))})
    yield "Columns", rows_of(table)[1], [2, "aa", 40]
    table.update("id = 3", {"delay": "id"})
    yield "bare names", rows_of(table)[2], [3, "UA", 3]


@documents("DeltaTable.update")
def members_of_structs_are_set_alone(given: Given) -> Iterator[Seen]:
    table = given.made("id long, s struct<a: int, b: string>", (1, (1, "x")), (2, (2, "y")))
    table.update("id = 1", {"s.a": "s.a + 10"})
    yield "one member", rows_of(table.toDF().select("id", "s.a", "s.b")), [[1, 11, "x"], [2, 2, "y"]]


@documents("DeltaTable.update")
def values_become_of_the_columns_type(given: Given) -> Iterator[Seen]:
    table = given.flights()
    table.update("id = 1", {"delay": "'7'", "carrier": "5"})
    yield "cast", rows_of(table)[0], [1, "5", 7]
    overflow = refused(lambda: table.update("id = 2", {"delay": "3000000000"}), Exception)
    yield "too large", overflow, "Exception"
    yield "nothing was changed", rows_of(table)[1], [2, "AA", 20]


@documents("DeltaTable.update")
def wrong_arguments_of_an_update_are_told(given: Given) -> Iterator[Seen]:
    table = given.flights()
    types = {
        "a set that is no dict": lambda: table.update("id = 1", ["x"]),
        "a set that is text": lambda: table.update("id = 1", "delay = 1"),
        "a key that is no text": lambda: table.update("id = 1", {1: "1"}),
        "a value that is a number": lambda: table.update("id = 1", {"delay": 1}),
        "a value that is nothing": lambda: table.update("id = 1", {"delay": None}),
        "a condition that is a number": lambda: table.update(1, {"delay": "1"}),
    }
    for what, command in types.items():
        yield what, refused(command, TypeError), "TypeError"
    yield "no set", refused(lambda: table.update("id = 1"), ValueError), "ValueError"
    yield "nothing at all", refused(lambda: table.update(), ValueError), "ValueError"
    unknown = refused(lambda: table.update("id = 1", {"nobody": "1"}), AnalysisException)
    yield "an unknown column", unknown, "AnalysisException"
    inside = refused(lambda: table.update("id = 1", {"delay": "nobody"}), AnalysisException)
    yield "an unknown column in a value", inside, "AnalysisException"
    yield "no SQL", refused(lambda: table.update("id = 1", {"delay": "1 +"}), ParseException), "ParseException"
    yield "nothing was committed", len(operations(table)), 1
    yield "one file", detail_of(table, "numFiles"), [1]
