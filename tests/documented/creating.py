"""Making a table: `create`, `createIfNotExists`, `replace`, `createOrReplace`, and `DeltaTableBuilder`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tests.documented.given import Given, Seen, detail_of, documents, operations, refused, rows_of, types_of


def fields(table: Any) -> list[list[Any]]:
    """Name, type, nullability and comment of each column."""
    return [[f.name, f.dataType.simpleString(), f.nullable, f.metadata.get("comment")] for f in table.toDF().schema]


@documents(
    "DeltaTable.create",
    "DeltaTableBuilder.location",
    "DeltaTableBuilder.addColumn",
    "DeltaTableBuilder.comment",
    "DeltaTableBuilder.property",
    "DeltaTableBuilder.execute",
)
def a_table_is_made_at_a_location(given: Given) -> Iterator[Seen]:
    builder = given.DeltaTable.create(given.spark).location(given.path()).comment("of flights")
    builder = builder.addColumn("id", "BIGINT", nullable=False, comment="the number").addColumn("x", IntegerType())
    builder = builder.addColumn(colName="s", dataType="struct<a: int, b: array<string>>", nullable=True)
    table = builder.property("my.own", "yes").property("delta.appendOnly", "true").execute()
    yield "its class", isinstance(table, given.DeltaTable), True
    yield (
        "its columns",
        fields(table),
        [
            ["id", "bigint", False, "the number"],
            ["x", "int", True, None],
            ["s", "struct<a:int,b:array<string>>", True, None],
        ],
    )
    yield "its rows", rows_of(table), []
    yield "its comment", detail_of(table, "description"), ["of flights"]
    [properties] = detail_of(table, "properties")
    yield "its properties", [properties.get("my.own"), properties.get("delta.appendOnly")], ["yes", "true"]
    yield "the history", operations(table), ["CREATE TABLE"]
    refusal = refused(table.delete, UnsupportedOperationException)
    yield "it is append-only", refusal, "UnsupportedOperationException"


@documents("DeltaTable.create", "DeltaTableBuilder.tableName", "DeltaTableBuilder.execute")
def a_table_is_made_with_a_name(given: Given) -> Iterator[Seen]:
    DeltaTable, name = given.DeltaTable, f"{given.name}_made"  # noqa: N806
    DeltaTable.create().tableName(name).addColumn("id", "INT").execute()
    given.spark.sql(f"INSERT INTO {name} VALUES (1)")
    yield "a name", rows_of(DeltaTable.forName(given.spark, name)), [[1]]
    named = DeltaTable.create(given.spark).tableName(f"default.{name}_2").location(given.path())
    named.addColumn("id", "INT").execute()
    given.spark.sql(f"INSERT INTO {name}_2 VALUES (2)")
    yield "a name and a location", rows_of(DeltaTable.forPath(given.spark, given.path())), [[2]]
    neither = DeltaTable.create(given.spark).addColumn("id", "INT")
    yield "neither", refused(neither.execute, AnalysisException), "AnalysisException"


@documents("DeltaTable.create", "DeltaTable.createIfNotExists", "DeltaTable.replace", "DeltaTable.createOrReplace")
def what_is_there_counts(given: Given) -> Iterator[Seen]:
    DeltaTable, spark = given.DeltaTable, given.spark  # noqa: N806

    def columns(begun: Any, place: str, column: str) -> list[str]:
        return begun.location(given.path(place)).addColumn(column, "INT").execute().toDF().columns

    yield "created", columns(DeltaTable.createIfNotExists(spark), "a", "one"), ["one"]
    yield "kept", columns(DeltaTable.createIfNotExists(spark), "a", "one"), ["one"]
    yield "kept as it is", columns(DeltaTable.createIfNotExists(spark), "a", "two"), ["one"]
    again = refused(lambda: columns(DeltaTable.create(spark), "a", "three"), AnalysisException)
    yield "created twice", again, "AnalysisException"
    given.write(given.frame("one int", (1,)), "a")
    yield "replaced", columns(DeltaTable.replace(spark), "a", "four"), ["four"]
    table = DeltaTable.forPath(spark, given.path("a"))
    yield "without its rows", rows_of(table), []
    yield "the history", operations(table)[0], "REPLACE TABLE"
    yield "created, not replaced", columns(DeltaTable.createOrReplace(spark), "b", "six"), ["six"]
    again = refused(lambda: columns(DeltaTable.createOrReplace(spark), "b", "five"), AnalysisException)
    yield "replaced at a location by other columns", again, "nothing was refused"
    nothing = refused(lambda: columns(DeltaTable.replace(spark), "c", "seven"), AnalysisException)
    yield "nothing to replace", nothing, "AnalysisException"
    yield "nothing was made", DeltaTable.isDeltaTable(spark, given.path("c")), False


@documents("DeltaTable.replace", "DeltaTableBuilder.tableName")
def a_table_with_a_name_is_replaced(given: Given) -> Iterator[Seen]:
    DeltaTable, spark, name = given.DeltaTable, given.spark, f"{given.name}_replaced"  # noqa: N806
    nothing = DeltaTable.replace(spark).tableName(name).addColumn("id", "INT")
    yield "nothing to replace", refused(nothing.execute, AnalysisException), "AnalysisException"
    DeltaTable.createOrReplace(spark).tableName(name).addColumn("id", "INT").execute()
    frame = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], ["key", "value"])
    table = DeltaTable.replace(spark).tableName(name).addColumns(frame.schema).execute()
    yield "its new columns", types_of(table.toDF()), ["key string", "value bigint"]
    twice = DeltaTable.create(spark).tableName(name).addColumn("id", "INT")
    yield "created twice", refused(twice.execute, AnalysisException), "AnalysisException"
    kept = DeltaTable.createIfNotExists(spark).tableName(name).addColumn("id", "INT").execute()
    yield "kept", kept.toDF().columns, ["key", "value"]


@documents("DeltaTableBuilder.addColumns")
def columns_come_from_a_schema(given: Given) -> Iterator[Seen]:
    schema = StructType([StructField("key", StringType(), False, {"comment": "k"}), StructField("value", LongType())])
    begun = given.DeltaTable.create(given.spark).location(given.path("a"))
    expected = [["key", "string", False, "k"], ["value", "bigint", True, None]]
    yield "a StructType", fields(begun.addColumns(schema).execute()), expected
    begun = given.DeltaTable.create(given.spark).location(given.path("b")).addColumns(cols=schema.fields)
    yield (
        "a list, and one more",
        fields(begun.addColumn("more", "DATE").execute()),
        [
            *expected,
            ["more", "date", True, None],
        ],
    )


@documents("DeltaTableBuilder.partitionedBy", "DeltaTableBuilder.clusterBy")
def columns_lay_the_files_out(given: Given) -> Iterator[Seen]:
    def begun(place: str) -> Any:
        builder = given.DeltaTable.create(given.spark).location(given.path(place))
        return builder.addColumn("a", "INT").addColumn("b", "INT").addColumn("c", "INT")

    columns = ("partitionColumns", "clusteringColumns")
    yield "partitions", detail_of(begun("a").partitionedBy("a", "b").execute(), *columns), [["a", "b"], []]
    yield "a list", detail_of(begun("b").partitionedBy(["b"]).execute(), *columns), [["b"], []]
    yield "a tuple", detail_of(begun("c").partitionedBy(("b", "a")).execute(), *columns), [["b", "a"], []]
    yield "clusters", detail_of(begun("d").clusterBy("a", "b").execute(), *columns), [[], ["a", "b"]]
    yield "a list of clusters", detail_of(begun("e").clusterBy(["c"]).execute(), *columns), [[], ["c"]]
    both = begun("f").partitionedBy("a").clusterBy
    yield "both", refused(lambda: both("b").execute(), AnalysisException), "AnalysisException"
    unknown = begun("g").partitionedBy("z")
    yield "no such column", refused(unknown.execute, AnalysisException), "AnalysisException"


@documents("DeltaTableBuilder.addColumn", "IdentityGenerator.start", "IdentityGenerator.step")
def columns_are_generated(given: Given) -> Iterator[Seen]:
    numbers = given.tables.IdentityGenerator
    builder = given.DeltaTable.create(given.spark).location(given.path()).addColumn("x", "INT")
    builder = builder.addColumn("twice", "INT", generatedAlwaysAs="x * 2", comment="of x")
    builder = builder.addColumn("n", "BIGINT", generatedAlwaysAs=numbers(start=10, step=5))
    builder = builder.addColumn("m", LongType(), generatedByDefaultAs=numbers())
    table = builder.execute()
    given.write(given.frame("x int", (1,), (2,)))
    yield "numbers and values", rows_of(table), [[1, 2, 10, 1], [2, 4, 15, 2]]
    given.write(given.frame("x int, m long", (3, 77)))
    yield "a number that is given", rows_of(table)[2][3], 77
    wrong = given.frame("x int, twice int", (4, 9))
    yield "a wrong value", refused(lambda: given.write(wrong), Exception), "Exception"
    given_number = given.frame("x int, n long", (5, 9))
    yield "no number may be given", refused(lambda: given.write(given_number), AnalysisException), "AnalysisException"
    yield "the generator", [numbers().start, numbers().step, numbers(3, -1).start, numbers(3, -1).step], [1, 1, 3, -1]


@documents("DeltaTableBuilder.tableName", "DeltaTableBuilder.location", "DeltaTableBuilder.addColumn")
def each_step_gives_this_builder(given: Given) -> Iterator[Seen]:
    builder = given.DeltaTable.create(given.spark)
    builder.location(given.path())
    for name in ("a", "b"):
        builder.addColumn(name, "INT")
    builder.partitionedBy("a")
    builder.comment("said")
    builder.property("my.own", "yes")
    table = builder.execute()
    yield "its columns", table.toDF().columns, ["a", "b"]
    yield "its comment and partitions", detail_of(table, "description", "partitionColumns"), ["said", ["a"]]
    yield "this builder", builder.addColumn("c", "INT") is builder, True


@documents(
    "DeltaTableBuilder.tableName",
    "DeltaTableBuilder.location",
    "DeltaTableBuilder.comment",
    "DeltaTableBuilder.addColumn",
    "DeltaTableBuilder.addColumns",
    "DeltaTableBuilder.partitionedBy",
    "DeltaTableBuilder.clusterBy",
    "DeltaTableBuilder.property",
)
def wrong_arguments_of_the_builder_are_told(given: Given) -> Iterator[Seen]:
    numbers = given.tables.IdentityGenerator

    def new() -> Any:
        return given.DeltaTable.create(given.spark)

    wrong = {
        "tableName": lambda: new().tableName(1),
        "location": lambda: new().location(1),
        "comment": lambda: new().comment(1),
        "a column's name": lambda: new().addColumn(1, "INT"),
        "a column's type": lambda: new().addColumn("a", 1),
        "whether NULL is allowed": lambda: new().addColumn("a", "INT", nullable=1),
        "what it is generated as": lambda: new().addColumn("a", "INT", generatedAlwaysAs=1),
        "what it is generated as by default": lambda: new().addColumn("a", "BIGINT", generatedByDefaultAs="1"),
        "a column's comment": lambda: new().addColumn("a", "INT", comment=1),
        "addColumns": lambda: new().addColumns(1),
        "a list of addColumns": lambda: new().addColumns([1]),
        "partitionedBy": lambda: new().partitionedBy(1),
        "a list of partitionedBy": lambda: new().partitionedBy(["a", 1]),
        "clusterBy": lambda: new().clusterBy(1),
        "a property's key": lambda: new().property(1, "a"),
        "a property's value": lambda: new().property("a", 1),
    }
    for what, command in wrong.items():
        yield what, refused(command, TypeError), "TypeError"
    both = {"generatedAlwaysAs": numbers(), "generatedByDefaultAs": numbers()}
    twice = refused(lambda: new().addColumn("a", "BIGINT", **both), ValueError)
    yield "generated in two ways", twice, "ValueError"
    still = refused(lambda: new().addColumn("a", "BIGINT", generatedAlwaysAs=numbers(step=0)), ValueError)
    yield "a step of 0", still, "ValueError"
