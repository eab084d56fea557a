"""Every verb on one store, with Spark reading and writing the rows: ``… -m tests.clouds.verbs URL MASTER SETTINGS``.

A process of its own, since a connector has to be there when the JVM starts. It ends with an error at the first verb
that does not do what it does on a disk.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors


def main(url: str, master: str, configuration: str) -> None:
    """Run all of them on tables below this URL, in a session with these settings; the master may be ``connect``."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": tempfile.mkdtemp()}
    spark = session(master, settings | json.loads(configuration))
    verbs = Verbs(spark, url)
    for verb in (verbs.rows, verbs.merge, verbs.upkeep, verbs.versions, verbs.copies, verbs.changes, verbs.streams):
        verb()
        print(verb.__name__, "done", flush=True)
    if "://" in url and not url.startswith("hdfs:"):
        missing(spark, url)
    assert "://" in url or verbs.is_hdfs != Path(url).exists()  # only what is meant for a disk is on the disk
    print("all done")


def session(master: str, settings: dict[str, str]) -> SparkSession:
    """A session with these settings; of Spark Connect, on a server of this process."""
    if master != "connect":
        return anabranch.session("clouds", master, **settings)
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return anabranch.install(builder.getOrCreate())


class Verbs:
    """The verbs, each on what the one before has left: a table with a blank and a percent sign in its path."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.spark, self.url = spark, url
        self.path = f"{url}/a table of 50%"
        self.table = f"delta.`{self.path}`"

    @property
    def is_hdfs(self) -> bool:
        found = DeltaTable.forPath(self.spark, self.path).detail().first()["location"]
        return str(found).startswith("hdfs:")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.sql(text).collect())

    def seen(self) -> list[tuple[Any, ...]]:
        """The rows of the table, at its newest version."""
        return self.sql(f"SELECT id, g, s FROM {self.table}")

    def rows(self) -> None:
        self.sql(f"CREATE TABLE {self.table} (id BIGINT, g STRING, s STRING) USING delta PARTITIONED BY (g)")
        anabranch.append(self.path, [{"id": i, "g": "a/b", "s": "arrow"} for i in range(3)], spark=self.spark)
        frame = self.spark.range(3, 6).selectExpr("id", "'50% é' AS g", "'frame' AS s")
        frame.write.format("delta").mode("append").save(self.path)
        self.sql(f"INSERT INTO {self.table} VALUES (6, NULL, 'insert')")
        self.sql(f"DELETE FROM {self.table} WHERE id = 1")
        self.sql(f"UPDATE {self.table} SET s = 'updated' WHERE id IN (2, 5)")
        assert self.seen() == [
            (0, "a/b", "arrow"),
            (2, "a/b", "updated"),
            (3, "50% é", "frame"),
            (4, "50% é", "frame"),
            (5, "50% é", "updated"),
            (6, None, "insert"),
        ]

    def merge(self) -> None:
        source = "(SELECT id, 'new' AS g, 'merged' AS s FROM range(5, 8))"
        found = self.sql(
            f"MERGE INTO {self.table} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s "
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE"
        )
        assert found == [(4, 2, 1, 1)]
        assert [row[0] for row in self.seen()] == [2, 3, 4, 5, 6, 7]
        self.spark.range(1).selectExpr("40L AS id", "'new' AS g", "'over' AS s").write.format("delta").mode(
            "overwrite"
        ).option("replaceWhere", "g = 'new'").save(self.path)
        assert self.seen()[-1] == (40, "new", "over")

    def upkeep(self) -> None:
        before = self.seen()
        self.sql(f"OPTIMIZE {self.table} ZORDER BY (id)")
        self.sql(f"DELETE FROM {self.table} WHERE id = 3")
        self.sql(f"REORG TABLE {self.table} APPLY (PURGE)")
        self.sql(f"ALTER TABLE {self.table} ADD COLUMN more INT")
        self.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        DeltaTable.forPath(self.spark, self.path).vacuum(0)
        self.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
        assert self.seen() == [row for row in before if row[0] != 3]
        assert DeltaTable.forPath(self.spark, self.path).check(deep=True).is_clean

    def versions(self) -> None:
        table = DeltaTable.forPath(self.spark, self.path)
        newest = table.history(1).first()["version"]
        before = self.seen()
        self.sql(f"DELETE FROM {self.table}")
        assert self.seen() == []
        assert self.spark.read.format("delta").option("versionAsOf", newest).load(self.path).count() == len(before)
        table.restoreToVersion(newest)
        assert self.seen() == before
        for i in range(11):
            anabranch.append(self.path, [{"id": 100 + i, "g": "c"}], spark=self.spark)
        assert len(self.seen()) == len(before) + 11  # read behind a checkpoint

    def copies(self) -> None:
        self.sql(f"CREATE TABLE delta.`{self.url}/shallow` SHALLOW CLONE {self.table}")
        self.sql(f"CREATE TABLE delta.`{self.url}/deep` CLONE {self.table}")
        for name in ("shallow", "deep"):
            assert self.sql(f"SELECT id, g, s FROM delta.`{self.url}/{name}`") == self.seen()
        self.sql("CREATE TABLE kept (id BIGINT) USING delta")
        self.sql("INSERT INTO kept VALUES (9)")
        assert self.sql("SELECT * FROM kept") == [(9,)]
        self.sql("DROP TABLE kept")
        self.spark.range(4).write.parquet(f"{self.url}/files")
        self.sql(f"CONVERT TO DELTA parquet.`{self.url}/files`")
        self.sql(f"CREATE TABLE named USING delta LOCATION '{self.url}/files'")
        self.sql("INSERT INTO named VALUES (9)")
        assert self.sql("SELECT * FROM named") == [(0,), (1,), (2,), (3,), (9,)]
        self.sql("DROP TABLE named")
        assert self.sql(f"SELECT count(*) FROM delta.`{self.url}/files`") == [(5,)]

    def changes(self) -> None:
        self.sql(f"ALTER TABLE {self.table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        self.sql(f"UPDATE {self.table} SET s = 'x' WHERE id = 100")
        newest = DeltaTable.forPath(self.spark, self.path).history(1).first()["version"]
        found = anabranch.changes(self.path, newest, spark=self.spark).collect()
        assert sorted(row["_change_type"] for row in found) == ["update_postimage", "update_preimage"]

    def streams(self) -> None:
        """A table is read as a stream by Arrow on the executors, which has no client of HDFS there."""
        if self.is_hdfs:
            rates = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
            written = rates.writeStream.format("delta").option("checkpointLocation", f"{self.url}/checkpoint")
            query = written.trigger(processingTime="0 seconds").start(f"{self.url}/streamed")
            while not query.recentProgress:
                query.awaitTermination(1)
            query.stop()
            assert self.sql(f"SELECT count(*) > 0 FROM delta.`{self.url}/streamed`") == [(True,)]
            read = self.spark.readStream.format("delta").load(self.path).writeStream.format("noop")
            with pytest.raises(StreamingQueryException, match="STORE_UNKNOWN"):
                read.trigger(availableNow=True).start().awaitTermination()
            return
        rows = self.spark.readStream.format("delta").load(self.path)
        for _ in range(2):
            query = rows.writeStream.format("delta").option("checkpointLocation", f"{self.url}/checkpoint")
            query.trigger(availableNow=True).start(f"{self.url}/streamed").awaitTermination()
        assert self.sql(f"SELECT id, g, s FROM delta.`{self.url}/streamed`") == self.seen()


def missing(spark: SparkSession, url: str) -> None:
    """A bucket that is not there is one sentence, whichever side asks first."""
    scheme, _, rest = url.partition("://")
    nowhere = f"{scheme}://nosuch{rest.partition('/')[0]}/table"
    with pytest.raises(errors.NoSuchBucket):
        spark.range(1).write.format("delta").save(nowhere)
    with pytest.raises(errors.NoSuchBucket):
        spark.read.format("delta").load(nowhere)


if __name__ == "__main__":
    main(*sys.argv[1:])
