"""Real delta-spark behind a pipe: reads requests as JSON lines from its standard input, answers each with one line.

Runs under another environment's Python, which has neither this project nor its packages: the standard library and
PySpark only. Started by ``tests/support/delta_spark.py``.

A request is ``{"sql": text, "rows": path or null, "args": values of parameters or null}``: the statement is run, and
what it returns is written there as an Arrow file. The answer is ``{}``, or ``{"error": class, "condition": name,
"text": message}``.
"""

import json
import os
import sys
from pathlib import Path


def build(jars: str, folder: str, more: dict):
    """A local session as delta-spark's documentation sets it up, with what it leaves behind in ``folder``."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(sorted(map(str, Path(jars).glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": "1g",
        # Many small jobs, never a long one: half the time of the JVM's own choice.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder = SparkSession.builder.master("local[1]").appName("delta-spark")
    for key, value in {**settings, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def answer(spark, request):
    import pyarrow as pa

    try:
        frame = spark.sql(request["sql"], args=request.get("args"))
        if request["rows"]:
            table = frame.toArrow()
            with pa.OSFile(request["rows"], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    except Exception as error:  # whatever it is, the test decides
        condition = error.getCondition() if hasattr(error, "getCondition") else None
        return {"error": type(error).__name__, "condition": condition or "", "text": str(error)[:4000]}
    return {}


def main(jars: str, folder: str, more: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark and its JVM print must not stand between the answers
    spark = build(jars, folder, json.loads(more))
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
