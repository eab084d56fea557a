"""A MERGE of millions of rows into hundreds of files with deletion vectors, and a large write that sleeps:
``python -m tests.cluster.large_merge MASTER FOLDER``. Its last line is what was seen on the driver, as JSON.

A process of its own, whose memory can be measured, and whose Spark refuses results in which rows could come through.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._storage.local import LocalStore
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.testing import at_phase
from tests.support.spark_options import QUICK_JAVA

FILES, ROWS, MERGED = 200, 1_000_000, 5_000_000
"""The files of the table, its rows, and the rows of the source, of which half a million are about rows of the table."""

MOST_RESULTS = 8 << 20
"""What Spark lets the results of one job be, in bytes: a fifth of what one number for each row of the source takes."""


def main(master: str, folder: Path) -> dict[str, Any]:
    """Do it, and say what was seen."""
    (folder / "events").mkdir()
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.maxResultSize": str(MOST_RESULTS),
        "spark.executor.memory": "768m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.parquet.compression.codec": "snappy",  # by which numbers take their room
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # else Spark sends up to 10 MB through the driver by itself
    }
    spark = anabranch.install(anabranch.session("large", master, **settings))
    path = str(folder / "t")
    spark.range(0, ROWS, 1, FILES).selectExpr("id", "id AS x").write.format("delta").save(path)
    DeltaTable.forPath(spark, path).delete("id % 97 = 0")
    seen = {
        "files": anabranch.files(path).num_rows,
        "with vectors": len(anabranch.files(path)["vector"].drop_null()),
        "merge": measured(lambda: merged(spark, path)),
        "write": measured(lambda: slept(spark, path)),
    }
    seen["rows"] = spark.read.format("delta").load(path).count()
    seen["clean"] = anabranch.check(path).is_clean
    spark.stop()
    seen["results"] = results(folder / "events")
    return seen


def merged(spark: SparkSession, path: str) -> Any:
    source = spark.range(0, MERGED, 1, 8).selectExpr("IF(id % 2 = 0, id, id + 10000000) AS id", "-1L AS x")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    metrics = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first().asDict()
    return {name: metrics[name] for name in ("num_updated_rows", "num_inserted_rows")}


def slept(spark: SparkSession, path: str) -> Any:
    """A write of two large files that are staged again, since a VACUUM has announced that it takes the job for dead."""
    vacuum, kept = Vacuum(path, 0, check_retention=False, dead_after_seconds=0.0), LocalStore.delete
    rows = spark.range(0, 6_000_000, 1, 2).selectExpr("id + 100000000 AS id", "xxhash64(id) AS x")
    LocalStore.delete = lambda self, name: None  # type: ignore[method-assign,assignment]
    try:
        with at_phase("put", vacuum.run):
            rows.write.format("delta").mode("append").save(path)
    finally:
        LocalStore.delete = kept  # type: ignore[method-assign]
    files = anabranch.files(path).to_pylist()
    return sorted(file["size"] for file in files if not file["path"].startswith("job-"))


def measured(run: Callable[[], Any]) -> dict[str, Any]:
    """What it gives, and by how many bytes this process grew meanwhile at most."""
    Path("/proc/self/clear_refs").write_text("5")
    before, given = _memory("VmRSS"), run()
    return {"gave": given, "grew": _memory("VmHWM") - before}


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def results(folder: Path) -> dict[str, int]:
    """The bytes of the results that tasks sent to the driver: those of the largest stage, and of all."""
    stages: dict[int, int] = {}
    for file in folder.rglob("*"):
        lines = file.read_text(errors="replace").splitlines() if file.name.startswith("events_") else []
        for event in map(json.loads, lines):
            if event["Event"] == "SparkListenerTaskEnd" and (metrics := event.get("Task Metrics")):
                stages[event["Stage ID"]] = stages.get(event["Stage ID"], 0) + metrics["Result Size"]
    return {"largest": max(stages.values()), "all": sum(stages.values())}


if __name__ == "__main__":
    print("\n" + json.dumps(main(sys.argv[1], Path(sys.argv[2]))), flush=True)
