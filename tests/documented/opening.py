"""Opening a table: `forPath`, `forName`, `isDeltaTable`, `toDF`, `alias`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import functions as F

from tests.documented.given import Given, Seen, documents, refused, rows_of

FLIGHTS = [[1, "UA", 10], [2, "AA", 20], [3, "UA", None], [4, None, 40]]


@documents("DeltaTable.forPath", "DeltaTable.toDF")
def a_table_is_opened_by_its_path(given: Given) -> Iterator[Seen]:
    given.flights()
    spark, path, DeltaTable = given.spark, given.path(), given.DeltaTable  # noqa: N806
    table = DeltaTable.forPath(spark, path)
    yield "its class", isinstance(table, DeltaTable), True
    yield "its rows", rows_of(table), FLIGHTS
    yield "its columns", table.toDF().columns, ["id", "carrier", "delay"]
    yield "by keywords", rows_of(DeltaTable.forPath(sparkSession=spark, path=path, hadoopConf={})), FLIGHTS
    nothing, parquet = given.path("nothing"), given.path("parquet")
    given.frame("id long", (1,)).write.parquet(parquet)
    yield "no folder", refused(lambda: DeltaTable.forPath(spark, nothing), AnalysisException), "AnalysisException"
    yield "no Delta table", refused(lambda: DeltaTable.forPath(spark, parquet), AnalysisException), "AnalysisException"


@documents("DeltaTable.forPath")
def settings_of_the_file_system_may_be_given(given: Given) -> Iterator[Seen]:
    given.flights()
    spark, path, DeltaTable = given.spark, given.path(), given.DeltaTable  # noqa: N806
    table = DeltaTable.forPath(spark, path, {"fs.s3a.access.key": "key", "dfs.replication": "1"})
    table.delete("id = 1")
    yield "rows", rows_of(table), FLIGHTS[1:]
    other = refused(lambda: DeltaTable.forPath(spark, path, {"spark.x": "1"}), IllegalArgumentException)
    yield "other settings", other, "IllegalArgumentException"


@documents("DeltaTable.forName")
def a_table_is_opened_by_its_name(given: Given) -> Iterator[Seen]:
    given.flights()
    spark, DeltaTable, name = given.spark, given.DeltaTable, f"{given.name}_named"  # noqa: N806
    DeltaTable.create(spark).tableName(name).addColumn("id", "INT").execute()
    yield "a name", rows_of(DeltaTable.forName(spark, name)), []
    yield "a name with its schema", rows_of(DeltaTable.forName(spark, f"default.{name}")), []
    yield "a path", rows_of(DeltaTable.forName(spark, f"delta.`{given.path()}`")), FLIGHTS
    spark.range(3).createOrReplaceTempView(f"{given.name}_view")
    view = refused(lambda: DeltaTable.forName(spark, f"{given.name}_view"), AnalysisException)
    yield "a view", view, "AnalysisException"
    nothing = refused(lambda: DeltaTable.forName(spark, f"{given.name}_none"), AnalysisException)
    yield "no name", nothing, "AnalysisException"


@documents("DeltaTable.isDeltaTable")
def whether_there_is_a_table_is_asked(given: Given) -> Iterator[Seen]:
    given.flights()
    spark, DeltaTable = given.spark, given.DeltaTable  # noqa: N806
    given.frame("id long", (1,)).write.parquet(given.path("parquet"))
    yield "a table", DeltaTable.isDeltaTable(spark, given.path()), True
    yield "another folder", DeltaTable.isDeltaTable(spark, given.path("parquet")), False
    yield "no folder", DeltaTable.isDeltaTable(spark, given.path("nothing")), False
    yield "by keywords", DeltaTable.isDeltaTable(sparkSession=spark, identifier=given.path()), True


@documents("DeltaTable.toDF")
def rows_are_those_of_the_call(given: Given) -> Iterator[Seen]:
    table = given.flights()
    first = table.toDF()
    yield "before", first.count(), 4
    table.delete("id = 1")
    yield "the same DataFrame", first.count(), 4
    yield "a new one", table.toDF().count(), 3
    table.delete("id = 2")
    yield "another one", table.toDF().count(), 2


@documents("DeltaTable.alias", "DeltaTable.toDF")
def an_alias_is_a_name_for_the_rows(given: Given) -> Iterator[Seen]:
    table = given.flights()
    named = table.alias("t")
    yield "its class", isinstance(named, given.DeltaTable), True
    yield "a column by the alias", rows_of(named.toDF().select("t.id")), [[1], [2], [3], [4]]
    yield "a Column by the alias", rows_of(named.toDF().where(F.col("t.delay") > 15).select("id")), [[2], [4]]
    wrong = refused(lambda: table.toDF().select("t.id").collect(), AnalysisException)
    yield "the other handle", wrong, "AnalysisException"
