"""Upkeep: `optimize` and `DeltaOptimizeBuilder`, `vacuum`, `generate`, `convertToDelta`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.documented.given import Given, Seen, detail_of, documents, operations, refused, rows_of, types_of

_SIZES = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
_FILES, _CUBES = "struct<num:bigint,size:bigint>", "struct<numFiles:bigint,size:bigint>"
METRICS = (
    f"numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{_SIZES},filesRemoved:{_SIZES},partitionsOptimized:bigint,"
    f"zOrderStats:struct<strategyName:string,inputCubeFiles:{_FILES},inputOtherFiles:{_FILES},inputNumCubes:bigint,"
    f"mergedFiles:{_FILES},numOutputCubes:bigint,mergedNumCubes:bigint>,"
    f"clusteringStats:struct<inputZCubeFiles:{_CUBES},inputOtherFiles:{_CUBES},inputNumZCubes:bigint,"
    f"mergedFiles:{_CUBES},numOutputZCubes:bigint>,numBins:bigint,numBatches:bigint,totalConsideredFiles:bigint,"
    "totalFilesSkipped:bigint,preserveInsertionOrder:boolean,numFilesSkippedToReduceWriteAmplification:bigint,"
    "numBytesSkippedToReduceWriteAmplification:bigint,startTimeMs:bigint,endTimeMs:bigint,"
    "totalClusterParallelism:bigint,totalScheduledTasks:bigint,"
    "autoCompactParallelismStats:struct<maxClusterActiveParallelism:bigint,minClusterActiveParallelism:bigint,"
    "maxSessionActiveParallelism:bigint,minSessionActiveParallelism:bigint>,"
    "deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,numDeletionVectorRowsRemoved:bigint>,"
    "numTableColumns:bigint,numTableColumnsWithStats:bigint"
)


def parted(given: Given) -> Any:
    """A table of two partitions with three files each."""
    for i in range(3):
        given.write(given.frame("date string, x long", ("2021-11-18", i), ("2021-11-19", i)), by="date")
    return given.DeltaTable.forPath(given.spark, given.path())


def data_files(folder: str) -> int:
    return len([each for each in Path(folder).rglob("*.parquet") if "_delta_log" not in each.parts])


@documents("DeltaTable.optimize", "DeltaOptimizeBuilder.where", "DeltaOptimizeBuilder.executeCompaction")
def files_are_compacted(given: Given) -> Iterator[Seen]:
    table = parted(given)
    before = rows_of(table)
    done = table.optimize().where("date='2021-11-18'").executeCompaction()
    yield "the columns", done.columns, ["path", "metrics"]
    [row] = done.selectExpr("metrics.numFilesAdded", "metrics.numFilesRemoved", "metrics.partitionsOptimized").collect()
    yield "one partition", row, [1, 3, 1]
    yield "its files", detail_of(table, "numFiles"), [4]
    [row] = (
        table.optimize().executeCompaction().selectExpr("metrics.numFilesAdded", "metrics.numFilesRemoved").collect()
    )
    yield "the rest", row, [1, 3]
    [row] = (
        table.optimize().executeCompaction().selectExpr("metrics.numFilesAdded", "metrics.numFilesRemoved").collect()
    )
    yield "nothing is left to do", row, [0, 0]
    yield "its rows", rows_of(table), before
    yield "the history", operations(table)[:3], ["OPTIMIZE", "OPTIMIZE", "WRITE"]


@documents("DeltaOptimizeBuilder.executeCompaction")
def all_metrics_of_a_compaction_are_there(given: Given) -> Iterator[Seen]:
    done = parted(given).optimize().executeCompaction()
    yield "what it gives", types_of(done), ["path string", f"metrics struct<{METRICS}>"]


@documents("DeltaOptimizeBuilder.executeZOrderBy", "DeltaOptimizeBuilder.where")
def rows_are_laid_in_z_order(given: Given) -> Iterator[Seen]:
    table = parted(given)
    before = rows_of(table)
    counts = ("metrics.numFilesAdded", "metrics.numFilesRemoved", "metrics.zOrderStats.strategyName")
    done = table.optimize().where("date = '2021-11-19'").executeZOrderBy("x")
    yield "one partition", rows_of(done.selectExpr(*counts)), [[1, 3, "all"]]
    yield "a list, all of it again", rows_of(table.optimize().executeZOrderBy(["x"]).selectExpr(*counts[:1])), [[2]]
    yield "a tuple, once more", rows_of(table.optimize().executeZOrderBy(("x",)).selectExpr(*counts[:1])), [[2]]
    yield "its rows", rows_of(table), before


@documents("DeltaTable.optimize", "DeltaOptimizeBuilder.where", "DeltaOptimizeBuilder.executeZOrderBy")
def wrong_arguments_of_optimize_are_told(given: Given) -> Iterator[Seen]:
    table = parted(given)
    filters = {"a filter of another column": "x = 1", "a filter of no column": "nobody = 1"}
    for what, where in filters.items():
        found = refused(lambda where=where: table.optimize().where(where).executeCompaction(), AnalysisException)
        yield what, found, "AnalysisException"
    for what, column in {"an unknown column": "nobody", "a partition column": "date"}.items():
        found = refused(lambda name=column: table.optimize().executeZOrderBy(name), IllegalArgumentException)
        yield what, found, "IllegalArgumentException"
    yield "a number", refused(lambda: table.optimize().executeZOrderBy(1), TypeError), "TypeError"
    yield "a list with a number", refused(lambda: table.optimize().executeZOrderBy(["x", 1]), TypeError), "TypeError"
    builder = table.optimize()
    same = builder.where("date = '2021-11-18'") is builder
    [row] = builder.executeCompaction().selectExpr("metrics.numFilesRemoved").collect()
    yield "a filter in a statement of its own", [same, *row], [True, 3]


@documents("DeltaTable.vacuum")
def files_that_no_version_needs_are_removed(given: Given) -> Iterator[Seen]:
    table = parted(given)
    table.optimize().executeCompaction()
    for what, command in {"by default": lambda: table.vacuum(), "after hours": lambda: table.vacuum(200.5)}.items():
        done = command()
        yield f"what it gives, {what}", [done.columns, done.count()], [[], 0]
    yield "all files are younger", data_files(given.path()), 8
    short = refused(lambda: table.vacuum(0), IllegalArgumentException)
    yield "less than is retained", short, "IllegalArgumentException"
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    given.spark.conf.set(check, "false")
    try:
        table.vacuum(retentionHours=0)
    finally:
        given.spark.conf.unset(check)
    yield "its files", data_files(given.path()), 2
    yield "its rows", len(rows_of(table)), 6
    yield "the history", operations(table)[:2], ["VACUUM END", "VACUUM START"]
    yield "no number", refused(lambda: table.vacuum("soon"), ValueError), "ValueError"


@documents("DeltaTable.generate")
def manifests_are_written(given: Given) -> Iterator[Seen]:
    table = given.made("id long", (1,), (2,), **{"delta.enableDeletionVectors": "false"})
    yield "what it gives", table.generate("symlink_format_manifest"), None
    manifest = Path(given.path(), "_symlink_format_manifest", "manifest")
    lines = manifest.read_text().splitlines()
    yield "the manifest", [line.endswith(".parquet") for line in lines], [True]
    yield "in capitals", table.generate("SYMLINK_FORMAT_MANIFEST"), None
    wrong = refused(lambda: table.generate("nothing"), IllegalArgumentException)
    yield "another mode", wrong, "IllegalArgumentException"


@documents("DeltaTable.convertToDelta")
def a_folder_of_parquet_becomes_a_table(given: Given) -> Iterator[Seen]:
    spark, convert = given.spark, given.DeltaTable.convertToDelta
    rows = given.frame("id int, part int, day string", (1, 1, "a"), (2, 2, "b"))
    rows.select("id").write.parquet(given.path("plain"))
    table = convert(spark, f"parquet.`{given.path('plain')}`")
    yield "its class", isinstance(table, given.DeltaTable), True
    yield "without partitions", rows_of(table), [[1], [2]]
    yield "the history", operations(table), ["CONVERT"]
    yield "converted twice", rows_of(convert(spark, f"parquet.`{given.path('plain')}`")), [[1], [2]]
    rows.write.partitionBy("part", "day").parquet(given.path("parts"))
    table = convert(spark, f"parquet.`{given.path('parts')}`", "part int, day string")
    yield "partitions in text", rows_of(table), [[1, 1, "a"], [2, 2, "b"]]
    rows.drop("day").write.partitionBy("part").parquet(given.path("other"))
    schema = StructType([StructField("part", IntegerType(), True)])
    table = convert(sparkSession=spark, identifier=f"parquet.`{given.path('other')}`", partitionSchema=schema)
    yield "partitions as a StructType", rows_of(table), [[1, 1], [2, 2]]
    rows.drop("day").write.partitionBy("part").parquet(given.path("wrong"))
    place = f"parquet.`{given.path('wrong')}`"
    lacks = refused(lambda: convert(spark, place), AnalysisException)
    yield "partitions that are not named", lacks, "AnalysisException"
    other = StructType([StructField("nobody", StringType())])
    yield "other partitions", refused(lambda: convert(spark, place, other), AnalysisException), "AnalysisException"
    empty = f"parquet.`{given.path('nothing')}`"
    yield "no folder", refused(lambda: convert(spark, empty), AnalysisException), "AnalysisException"
