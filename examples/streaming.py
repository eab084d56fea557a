"""A stream in three layers, as one writes it for delta-spark; the line that imports `DeltaTable` alone differs.

Sensors deliver readings as files of JSON, some twice and some late. Bronze takes each file once; silver has each
reading once, by MERGE in `foreachBatch`; gold has sums by sensor and hour, from silver's change data feed. Each start
goes on where the last one ended.

    python examples/streaming.py plant --deliveries 3
    python examples/streaming.py plant --deliveries 2
"""

import argparse
import json
import random
from pathlib import Path

from pyspark.sql import functions as F

from anabranch import DeltaTable, session  # on delta-spark: from delta_spark import DeltaTable, session

SENSORS, READINGS = 8, 100
READING = "reading BIGINT, sensor INT, at TIMESTAMP, value DOUBLE"


# -- the plant ---------------------------------------------------------------------------------------------------------


def deliver(folder, number):
    """The next file of readings: new ones, and some of the file before once more."""
    dice, landing = random.Random(number), Path(folder, "landing")
    landing.mkdir(parents=True, exist_ok=True)
    first = max(0, number * READINGS - READINGS // 4)
    readings = [reading(i) for i in range(first, (number + 1) * READINGS)]
    dice.shuffle(readings)
    (landing / f"{number:05}.json").write_text("\n".join(map(json.dumps, readings)) + "\n")


def reading(number):
    """One line of a file; the same each time."""
    minute = number // 4
    at = f"2024-05-01 {minute // 60 % 24:02}:{minute % 60:02}:00"
    return {"reading": number, "sensor": number % SENSORS, "at": at, "value": float(number * 37 % 100)}


# -- the job -----------------------------------------------------------------------------------------------------------


def tables(spark, folder):
    """Make silver and gold, where they are not there yet."""
    columns = spark.createDataFrame([], READING).schema
    silver = DeltaTable.createIfNotExists(spark).location(f"{folder}/silver").addColumns(columns)
    silver.property("delta.enableChangeDataFeed", "true").execute()
    gold = DeltaTable.createIfNotExists(spark).location(f"{folder}/gold").addColumn("sensor", "INT")
    gold.addColumn("hour", "TIMESTAMP").addColumn("readings", "BIGINT").addColumn("total", "DOUBLE").execute()


def to_bronze(spark, folder):
    """Each file's readings, as they came."""
    rows = spark.readStream.schema(READING).json(f"{folder}/landing")
    return written(rows.writeStream.format("delta"), folder, "bronze").start(f"{folder}/bronze")


def to_silver(spark, folder):
    """Each reading once, however often it came."""

    def upsert(batch, number):
        silver = DeltaTable.forPath(batch.sparkSession, f"{folder}/silver").alias("s")
        new = batch.dropDuplicates(["reading"]).alias("b")
        silver.merge(new, "s.reading = b.reading").whenNotMatchedInsertAll().execute()

    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(f"{folder}/bronze")
    return written(rows.writeStream.foreachBatch(upsert), folder, "silver").start()


def to_gold(spark, folder):
    """Sums by sensor and hour, from what silver's feed says came and went."""

    def add(batch, number):
        # A batch that Spark runs again, after a crash, finds its number in gold's log, and adds nothing.
        batch.sparkSession.conf.set("spark.databricks.delta.write.txnAppId", "gold")
        batch.sparkSession.conf.set("spark.databricks.delta.write.txnVersion", str(number))
        sign = F.when(F.col("_change_type").isin("delete", "update_preimage"), -1).otherwise(1)
        hour = F.date_trunc("hour", "at").alias("hour")
        sums = [F.sum(sign).alias("readings"), F.sum(sign * F.col("value")).alias("total")]
        new = batch.groupBy("sensor", hour).agg(*sums)
        gold = DeltaTable.forPath(batch.sparkSession, f"{folder}/gold").alias("g")
        merge = gold.merge(new.alias("n"), "g.sensor = n.sensor AND g.hour = n.hour")
        merge = merge.whenMatchedUpdate(set={"readings": "g.readings + n.readings", "total": "g.total + n.total"})
        merge.whenNotMatchedInsertAll().execute()

    rows = spark.readStream.format("delta").option("readChangeFeed", True).load(f"{folder}/silver")
    return written(rows.writeStream.foreachBatch(add), folder, "gold").start()


def written(stream, folder, layer):
    """The query of a layer, which ends when all that is there has gone through."""
    return stream.option("checkpointLocation", f"{folder}/checkpoints/{layer}").trigger(availableNow=True)


def main(arguments=None):
    """Deliver some files, and let them flow from layer to layer."""
    parser = argparse.ArgumentParser(description="A stream in three layers.")
    parser.add_argument("folder")
    parser.add_argument("--deliveries", type=int, default=3)
    asked = parser.parse_args(arguments)
    spark, folder = session("streaming"), asked.folder
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    tables(spark, folder)
    there = len(list(Path(folder, "landing").glob("*.json")))
    for number in range(there, there + asked.deliveries):
        deliver(folder, number)
        for layer in (to_bronze, to_silver, to_gold):
            layer(spark, folder).awaitTermination()
    gold = spark.read.format("delta").load(f"{folder}/gold")
    gold.orderBy("sensor", "hour").show(5)


if __name__ == "__main__":
    main()
