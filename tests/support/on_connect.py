"""A morning's work on Spark Connect: run as a script, in a process of its own, since a process has one kind of session.

    python -m tests.support.on_connect FOLDER FAILING STARTS COMPILED

It goes through at most so many of the doors that fail, and of those to places without a table; starts a stream so many
times; and its queries are compiled unless COMPILED is 0. Its last line is what was seen, as JSON; the words before it
are the server's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from traceback import format_exception
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from tests.support.failing_rows import doors, prepare, said, shows
from tests.support.patience import until
from tests.support.planted import SECRET
from tests.support.readers import deltalake_rows
from tests.support.tiers import thinned

Door = tuple[str, Callable[[], Any]]

PLACES = (f"memory://KEY:{SECRET}@lake/t", f"memory://lake/t?sv=2024&sig={SECRET}", f"nowhere://lake/t?token={SECRET}")


UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def main(folder: Path, failing_doors: int, starts: int, compiled: bool) -> dict[str, Any]:
    """Go through the doors."""
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
    for name, value in ({} if compiled else UNCOMPILED).items():
        builder = builder.config(name, value)
    spark = anabranch.install(builder.getOrCreate())
    path = str(folder / "t")
    return {
        "session": type(spark).__module__,
        **by_path(spark, path),
        **cloned(spark, path),
        **by_name(spark),
        **told(spark, path),
        **refused(spark, path),
        **kept_back(spark, folder, failing_doors),
        **streamed(spark, folder, starts),
        **skipped(spark, folder),
    }


def by_path(spark: SparkSession, path: str) -> dict[str, Any]:
    """Each verb of a table that is named by its path."""
    rows = spark.range(100).withColumn("x", F.col("id") * 2).withColumn("p", F.col("id") % 2)
    rows.write.format("delta").partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete(F.col("id") == 4)
    table.update("id = 5", {"x": "x + 1"})
    itself = table.toDF().filter("id < 3").withColumn("id", F.col("id") + 98)
    merge = table.alias("t").merge(itself.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merged = merge.execute().first().asDict()
    moved = table.optimize().executeZOrderBy("id", "x").count()
    then = anabranch.read(path, where="id < 5", version=0, spark=spark)
    frames = (table.toDF(), spark.read.format("delta").load(path), then)
    return {
        "merged with itself": [merged["num_updated_rows"], merged["num_inserted_rows"]],
        "moved": moved,
        "sums and counts": in_one([frame.agg(F.sum("x"), F.count("*")) for frame in frames]),
        "history": [row["operation"] for row in table.history().collect()],
        "clean": anabranch.check(path, deep=True).is_clean,
    }


def in_one(frames: list[Any]) -> list[list[Any]]:
    """The rows of several frames, by one query."""
    return [list(row) for row in reduce(DataFrame.unionAll, frames).collect()]


def cloned(spark: SparkSession, path: str) -> dict[str, Any]:
    """A clone of the session, where PySpark can make one: it is installed, and the session stays so when it is not."""
    clone = spark.cloneSession() if hasattr(spark, "cloneSession") else spark
    seen = clone.read.format("delta").load(path).count() > 0
    if clone is not spark:
        anabranch.uninstall(clone)
    return {"cloned": seen and spark.read.format("delta").load(path).count() > 0}


def by_name(spark: SparkSession) -> dict[str, Any]:
    """Tables with names, and a view over one."""
    spark.sql("CREATE TABLE a USING delta AS SELECT id, id * 2 AS x FROM range(10)")
    spark.range(10).write.format("delta").saveAsTable("b")
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM a WHERE id > 1")
    spark.sql("INSERT INTO a VALUES (100, 1)")
    spark.range(1).selectExpr("id", "id AS x").writeTo("a").append()
    joined, view = spark.sql("SELECT count(*) FROM a JOIN b ON a.id = b.id"), spark.sql("SELECT count(*) FROM v")
    seen = in_one([joined, view, spark.table("a").agg(F.count("*"))])
    spark.sql("DROP TABLE a")
    left = [each.name for each in spark.catalog.listTables() if not each.isTemporary]
    return {"joined, view and named": seen, "left": left}


def told(spark: SparkSession, path: str) -> dict[str, Any]:
    """What the session says is done."""
    prefix, seen = "spark.databricks.delta.", []
    spark.conf.set(prefix + "commitInfo.userMetadata", "a note")
    spark.conf.set(prefix + "write.txnAppId", "nightly")
    spark.conf.set(prefix + "write.txnVersion", "1")
    for _ in range(2):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = :id", {"id": 8})
        seen.append(anabranch.history(path)[0]["version"])
    for name in ("commitInfo.userMetadata", "write.txnAppId", "write.txnVersion"):
        spark.conf.unset(prefix + name)
    return {"done once": seen[0] == seen[1], "note": anabranch.history(path)[0]["userMetadata"]}


def streamed(spark: SparkSession, folder: Path, starts: int) -> dict[str, Any]:
    """A stream from one table to another, which goes on where it was."""
    source, sink = str(folder / "source"), str(folder / "sink")
    for number in range(starts):
        anabranch.append(source, [{"id": number}])
        rows = spark.readStream.format("delta").load(source)
        stream = rows.writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoint"))
        stream.trigger(availableNow=True)
        until(partial(_has_ended, stream, sink), "the end of the stream")
    found = sorted(row["id"] for row in deltalake_rows(sink))
    return {"streamed": found, "batches": [row["operation"] for row in anabranch.history(sink)]}


def _has_ended(stream: Any, sink: str) -> bool:
    """Run the stream to its end; False where the machine was too busy to start a worker of Python in the ten seconds
    that Spark gives it. Such a query has lost nothing, and is started again on its checkpoint.
    """
    try:
        stream.start(sink).awaitTermination()
    except PySparkException as error:
        if "connect back" not in str(error):
            raise
        return False
    return True


def skipped(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Filters of a table of four files, of which only that with the row 25 can be read; before Spark 4.2 all can, since
    none is skipped.
    """
    table, damaged = folder / "damaged", spark.version >= "4.2"
    for first in range(0, 40, 10):
        anabranch.append(table, [{"id": first + i} for i in range(10)])
    (kept,) = anabranch.files(table, "id = 25")["path"].to_pylist()
    for each in set(anabranch.files(table)["path"].to_pylist()) - {kept}:
        (table / each).write_bytes(b"x" * (table / each).stat().st_size) if damaged else None
    frame = spark.read.format("delta").load(str(table))
    ways = [
        frame.where("id = 25"),
        frame.where(F.col("id") == 25),
        frame.where(frame["id"] == 25).select(frame["id"]),
        frame.alias("t").where("t.id = 25"),
    ]
    return {"skipped": [id_ for (id_,) in in_one(ways)]}


def refused(spark: SparkSession, path: str) -> dict[str, Any]:
    """An error is ours, and in one piece."""
    try:
        DeltaTable.forPath(spark, path).delete("nope = 1")
    except anabranch.errors.InvalidCondition as error:
        said = str(error)
        return {"refused": "nope" in said and "at org.apache" not in said}
    return {"refused": None}


def kept_back(spark: SparkSession, folder: Path, most: int) -> dict[str, Any]:
    """The doors whose errors show a row of a table that keeps its rows to itself, or the secret of a location."""
    path, quiet = str(folder / "quiet"), {"anabranch.rowsInErrors": "false"}
    prepare(spark, path, quiet)
    rows = {door: failing(run) for door, run in spread([*doors(spark, path, quiet).items()], most)}
    visited = [(f"{door} of {place}", run) for place in PLACES for door, run in visits(spark, place, path).items()]
    places = {door: failing(run) for door, run in spread(visited, most)}
    errors = {**rows, **places}
    return {
        "not refused": [door for door, error in errors.items() if error is None],
        "rows shown": [door for door, error in rows.items() if error is not None and shows(said(error))],
        "secrets shown": [door for door, error in places.items() if SECRET in "".join(format_exception(error))],
    }


def spread(doors: list[Door], most: int) -> list[Door]:
    """At most so many, evenly spread."""
    return list(thinned({"": doors}, lambda _: most))


def visits(spark: SparkSession, place: str, path: str) -> dict[str, Callable[[], Any]]:
    """Ways to a place where no table is."""
    name = f"delta.`{place}`"
    return {
        "forPath": lambda: DeltaTable.forPath(spark, place),
        "load": lambda: spark.read.format("delta").load(place).collect(),
        "query": lambda: spark.sql(f"SELECT * FROM {name}").collect(),
        "delete": lambda: spark.sql(f"DELETE FROM {name}"),
        "clone": lambda: spark.sql(f"CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {name}"),
        "convert": lambda: spark.sql(f"CONVERT TO DELTA parquet.`{place}`"),
    }


def failing(run: Callable[[], Any]) -> BaseException | None:
    """The error of a call."""
    try:
        run()
    except Exception as error:
        return error
    return None


if __name__ == "__main__":
    print("\n" + json.dumps(main(Path(sys.argv[1]), *map(int, sys.argv[2:4]), sys.argv[4] != "0")), flush=True)
