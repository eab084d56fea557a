"""A round of each verb on Spark, which loads the classes that tests use: `class_archive` runs it, in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch._spark.sessions.session import build


def statements(table: str, other: str) -> Iterator[str]:
    """SQL of each verb."""
    yield f"CREATE TABLE {table} (id BIGINT, v INT, s STRING, d DECIMAL(7, 2), day DATE, at TIMESTAMP) USING delta"
    yield f"INSERT INTO {table} VALUES (1, 1, 'a', 1.5, DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00')"
    yield f"INSERT INTO {table} SELECT id, 1, concat('c', id), 1.0, current_date(), now() FROM range(5)"
    yield f"UPDATE {table} SET s = upper(concat(s, 'x')), v = v + 1 WHERE id % 2 = 1"
    yield f"DELETE FROM {table} WHERE lower(s) LIKE 'c2%' OR id IN (SELECT max(id) FROM {table})"
    yield (
        f"MERGE INTO {table} t USING (SELECT id, count(*) AS v FROM {table} GROUP BY id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    yield f"CREATE TABLE {other} USING delta PARTITIONED BY (v) AS SELECT * FROM {table}"
    yield f"SELECT t.v, sum(t.id) FROM {table} t JOIN {other} o ON t.id = o.id GROUP BY t.v ORDER BY 1"
    yield f"DESCRIBE HISTORY {table}"
    yield f"OPTIMIZE {other} ZORDER BY (id)"
    yield f"VACUUM {table}"


def frames(spark: SparkSession, folder: str) -> None:
    """DataFrames by readers, writers, functions of Python and streams."""
    rows = spark.createDataFrame(pa.table({"id": [1, 2], "word": ["a", "b"]}))
    rows.withColumn("n", F.udf(len, "int")("word")).write.format("delta").mode("overwrite").save(f"{folder}/frames")
    found = anabranch.read(f"{folder}/frames", spark=spark)
    found.mapInArrow(lambda batches: batches, found.schema).toPandas()
    found.createOrReplaceTempView("found")
    spark.sql("CACHE TABLE found")
    spark.sql("SELECT row_number() OVER (ORDER BY id) FROM found").collect()
    table: Any = anabranch.DeltaTable.forPath(spark, f"{folder}/frames").alias("t")
    table.merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + 1"}).execute()
    stream = spark.readStream.format("delta").load(f"{folder}/frames")
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start(f"{folder}/streamed").awaitTermination()


def main(folder: str) -> None:
    """One round in a folder."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    spark = anabranch.install(build("round of verbs", "local[2]", conf))
    for text in statements(f"delta.`{folder}/one`", f"delta.`{folder}/other`"):
        spark.sql(text).collect()
    frames(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
