"""A morning's work on Spark Connect: run as a script, in a process of its own, since a process has one kind of session.

Its last line is what was seen, as JSON; the words before it are the server's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable


def main(folder: Path) -> dict[str, Any]:
    """Go through the doors."""
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = anabranch.install(builder.getOrCreate())
    path = str(folder / "t")
    return {
        "session": type(spark).__module__,
        **by_path(spark, path),
        **by_name(spark),
        **said(spark, path),
        **refused(spark, path),
    }


def by_path(spark: SparkSession, path: str) -> dict[str, Any]:
    """Each verb of a table that is named by its path."""
    rows = spark.range(100).withColumn("x", F.col("id") * 2).withColumn("p", F.col("id") % 3)
    rows.write.format("delta").partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete(F.col("id") == 4)
    table.update("id = 5", {"x": "x + 1"})
    source = rows.filter("id < 3").withColumn("id", F.col("id") + 98)
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merged = merge.execute().first().asDict()
    itself = table.alias("t").merge(table.toDF().alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": "s.x + 1"})
    return {
        "merged": [merged["num_updated_rows"], merged["num_inserted_rows"]],
        "by itself": itself.execute().first()["num_updated_rows"],
        "statement": spark.sql(f"DELETE FROM delta.`{path}` WHERE id = :id", {"id": 7}).first()[0],
        "moved": table.optimize().executeZOrderBy("id", "x").count(),
        "sum": table.toDF().agg(F.sum("x")).first()[0],
        "count": spark.read.format("delta").load(path).count(),
        "then": anabranch.read(spark, path, where="id < 5", version=0).count(),
        "history": [row["operation"] for row in table.history().collect()],
        "clean": anabranch.check(path, deep=True).is_clean,
    }


def by_name(spark: SparkSession) -> dict[str, Any]:
    """Tables with names, and a view over one."""
    spark.sql("CREATE TABLE a USING delta AS SELECT id, id * 2 AS x FROM range(10)")
    spark.range(10).write.format("delta").saveAsTable("b")
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM a WHERE id > 1")
    spark.sql("INSERT INTO a VALUES (100, 1)")
    spark.range(1).selectExpr("id", "id AS x").writeTo("a").append()
    joined = spark.sql("SELECT count(*) FROM a JOIN b ON a.id = b.id").first()[0]
    seen = {"joined": joined, "view": spark.sql("SELECT count(*) FROM v").first()[0], "named": spark.table("a").count()}
    spark.sql("DROP TABLE a")
    return {**seen, "left": [each.name for each in spark.catalog.listTables() if not each.isTemporary]}


def said(spark: SparkSession, path: str) -> dict[str, Any]:
    """What the session says is done."""
    prefix, seen = "spark.databricks.delta.", []
    spark.conf.set(prefix + "commitInfo.userMetadata", "a note")
    spark.conf.set(prefix + "write.txnAppId", "nightly")
    spark.conf.set(prefix + "write.txnVersion", "1")
    for _ in range(2):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 8")
        seen.append(anabranch.history(path)[0]["version"])
    for name in ("commitInfo.userMetadata", "write.txnAppId", "write.txnVersion"):
        spark.conf.unset(prefix + name)
    return {"done once": seen[0] == seen[1], "note": anabranch.history(path)[0]["userMetadata"]}


def refused(spark: SparkSession, path: str) -> dict[str, Any]:
    """An error is ours, and in one piece."""
    try:
        DeltaTable.forPath(spark, path).delete("nope = 1")
    except anabranch.errors.InvalidCondition as error:
        said = str(error)
        return {"refused": "nope" in said and "at org.apache" not in said}
    return {"refused": None}


if __name__ == "__main__":
    print("\n" + json.dumps(main(Path(sys.argv[1]))), flush=True)
