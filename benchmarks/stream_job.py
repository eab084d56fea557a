"""A stream from one Delta table to another, on the session that it is given; a program of its own, since it runs in
delta-spark's environment too, which has neither this project nor its packages.

``python stream_job.py ENGINE SOURCE FOLDER FILES_PER_BATCH [SETTINGS]`` prints one line of JSON: the seconds of the
whole query, and the milliseconds of each batch. A query on a few rows goes before, so that no JVM is measured cold.
"""

import json
import sys
import time
from pathlib import Path


def session(engine: str, settings: dict):
    """A session that reads and writes Delta tables: the one line in which the engines differ."""
    if engine == "anabranch":
        import anabranch

        master = settings.pop("spark.master")
        return anabranch.session("benchmarks", master, **settings)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("benchmarks")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def flow(spark, source: str, folder: str, files: int) -> dict:
    """Let all rows of a table flow into a new one, so many files at a time."""
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", files).load(source)
    sink = rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint")
    began = time.perf_counter()
    query = sink.trigger(availableNow=True).start(f"{folder}/sink")
    query.awaitTermination()
    seconds = time.perf_counter() - began
    told = [each for each in query.recentProgress if each["numInputRows"]]
    return {"seconds": seconds, "batches_ms": [each["batchDuration"] for each in told]}


def main(engine: str, source: str, folder: str, files: str, settings: str) -> None:
    """Run it twice: on a small table first, then on the one that counts."""
    spark = session(engine, json.loads(settings))
    warm = f"{folder}/warm"
    for start in range(0, 30, 10):
        spark.range(start, start + 10).coalesce(1).write.format("delta").mode("append").save(f"{warm}/table")
    flow(spark, f"{warm}/table", warm, 1)
    found = flow(spark, source, folder, int(files))
    found["rows"] = spark.read.format("delta").load(f"{folder}/sink").count()
    print(json.dumps(found), flush=True)
    Path(folder, "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
