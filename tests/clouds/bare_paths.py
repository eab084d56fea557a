"""Every verb by every door, by paths without a scheme: ``… -m tests.clouds.bare_paths HDFS FOLDER MASTER SETTINGS``.

HDFS is the session's default, and the process works in an empty folder of the disk. After each step the rows are read
on HDFS by the whole URL, without the session, and the disk is looked at. The process ends with an error that names each
step that failed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._spark.sessions.working_folder import working_folder
from tests.clouds.verbs import session

Step = tuple[str, Callable[[], Any], Any]
"""What is done, and the ids that the door's table has afterwards; None: the same as before."""
_FEED = "delta.enableChangeDataFeed"
_MANY, _PARTS = 12_000, 4


def main(default: str, folder: str, master: str, configuration: str) -> None:
    """Go through all doors, by paths from the root and by paths from the user's folder."""
    os.chdir(folder)
    top = f"data of {Path(folder).parent.name}"
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": f"/{top}/warehouse"}
    spark = session(master, settings | json.loads(configuration))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    failed, home = [], working_folder(spark)
    assert home.startswith(f"{default.rstrip('/')}/user/"), home
    for base, whole in ((f"/{top}", f"{default.rstrip('/')}/{top}"), (top, f"{home}/{top}")):
        for kind in (Frames, Handles, Statements, Functions, ManyRows):
            door = kind(spark, base, whole)
            for what, why in door.outcomes((Path("/", top), Path(folder))):
                print(f"{base}: {kind.__name__}: {what}: {why or 'done'}", flush=True)
                failed += [(base, kind.__name__, what, why)] if why else []
    assert not failed, failed
    print("all done")


class Door:
    """Steps on a table at ``base/<door>``, which lies at ``whole/<door>``."""

    def __init__(self, spark: SparkSession, base: str, whole: str) -> None:
        self.spark, self.base, self.whole = spark, base, whole
        self.name = type(self).__name__.lower()
        self.path, self.is_absolute = f"{base}/{self.name}", base.startswith("/")

    def steps(self) -> Iterator[Step]:
        raise NotImplementedError

    def outcomes(self, places: Sequence[Path]) -> Iterator[tuple[str, str]]:
        """Each step, and why it failed, if it did; ``places`` are folders of the disk that stay empty, or away."""
        now: Sequence[int] = ()
        for what, act, ids in self.steps():
            now = now if ids is None else ids
            try:
                act()
                self.holds(self.name, now)
                left = [str(each) for place in places for each in place.rglob("*")]
                yield what, f"left on the disk: {left[:3]}" if left else ""
            except Exception as error:
                yield what, f"{type(error).__name__}: {str(error)[:500]}"

    def holds(self, name: str, ids: Sequence[int]) -> None:
        """Raises AssertionError: other rows are in a table on HDFS. NotATable: it is not there."""
        found = anabranch.table(f"{self.whole}/{name}").to_arrow(columns=["id"])
        same(sorted(found["id"].to_pylist()), [*ids])

    def lies_on_hdfs(self, detail: Any) -> None:
        location = str(detail["location"])
        assert location.startswith("hdfs://"), location

    def plain_files(self, name: str) -> None:
        self.spark.range(3).write.parquet(f"{self.base}/{name}")


class Frames(Door):
    """Spark's readers and writers."""

    def steps(self) -> Iterator[Step]:
        before = [0, 1, 2, 3, 4]
        yield "create", lambda: self.save(range(4), "errorifexists", **{_FEED: "true"}), [0, 1, 2, 3]
        yield "append", lambda: self.save(range(4, 5), "append"), before
        yield "replaceWhere", lambda: self.save(range(3, 4), "overwrite", replaceWhere="id >= 3"), [0, 1, 2, 3]
        yield "overwrite", lambda: self.save(range(2), "overwrite"), [0, 1]
        yield "read", lambda: same(self.read(), [0, 1]), None
        yield "read of the option path", lambda: same(ids_of(self.reader(path=self.path).load()), [0, 1]), None
        of_hadoop = f"hdfs:///{self.whole.split('/', 3)[3]}/{self.name}"
        yield "of the default's scheme", lambda: same(ids_of(self.reader().load(of_hadoop)), [0, 1]), None
        yield "versionAsOf", lambda: same(self.read(versionAsOf="1"), before), None
        yield "path@v1", lambda: same(ids_of(self.reader().load(f"{self.path}@v1")), before), None
        yield "change feed", lambda: same(len(self.read(readChangeFeed="true", startingVersion="0")), 14), None
        yield "stream into", self.write_stream, None
        yield "stream from", self.read_stream, None
        yield "saveAsTable", self.save_as_table, None
        if self.is_absolute:
            table = f"delta.`{self.path}`"
            yield "writeTo", lambda: self.spark.range(2, 3).writeTo(table).append(), [0, 1, 2]
            yield "insertInto", lambda: self.spark.range(3, 4).write.insertInto(table), [0, 1, 2, 3]
            yield "table", lambda: same(ids_of(self.spark.read.table(table)), [0, 1, 2, 3]), None
            yield "mergeInto", lambda: self.merge_into(table), [0, 1, 2, 3, 4]

    def save(self, ids: range, mode: str, **options: str) -> None:
        self.spark.range(ids.start, ids.stop).write.format("delta").mode(mode).options(**options).save(self.path)

    def reader(self, **options: str) -> Any:
        return self.spark.read.format("delta").options(**options)

    def read(self, **options: str) -> list[int]:
        return ids_of(self.reader(**options).load(self.path))

    def write_stream(self) -> None:
        rates = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        written = rates.selectExpr("value AS id").writeStream.format("delta").trigger(processingTime="0 seconds")
        query = written.option("checkpointLocation", f"{self.base}/checkpoint").start(f"{self.base}/streamed")
        while not query.recentProgress:
            query.awaitTermination(1)
        query.stop()
        found = ids_of(self.reader().load(f"{self.base}/streamed"))
        assert found
        self.holds("streamed", found)

    def read_stream(self) -> None:
        """Arrow has no client of HDFS on executors: it is refused there, and no disk is looked at."""
        read = self.spark.readStream.format("delta").load(self.path).writeStream.format("noop")
        with pytest.raises(StreamingQueryException, match="STORE_UNKNOWN"):
            read.trigger(availableNow=True).start().awaitTermination()

    def save_as_table(self) -> None:
        self.spark.range(2).write.format("delta").option("path", f"{self.base}/saved").saveAsTable("saved")
        self.spark.sql("INSERT INTO saved VALUES (9)")
        self.holds("saved", [0, 1, 9])
        same(ids_of(self.spark.table("saved")), [0, 1, 9])
        self.spark.sql("DROP TABLE saved")

    def merge_into(self, table: str) -> None:
        rows = self.spark.range(3, 5).alias("s")
        rows.mergeInto(table, F.expr(f"`{self.path}`.id = s.id")).whenNotMatched().insertAll().merge()


class Handles(Door):
    """`DeltaTable`."""

    def steps(self) -> Iterator[Step]:
        files = f"{self.name} of files"
        yield "create", self.create, []
        yield "append", lambda: self.spark.range(6).write.format("delta").mode("append").save(self.path), range(6)
        yield "toDF", lambda: same(ids_of(self.table.toDF()), [*range(6)]), None
        yield "isDeltaTable", lambda: same(DeltaTable.isDeltaTable(self.spark, self.path), True), None
        yield "update", lambda: self.table.update("id = 5", {"id": "id + 1"}), [0, 1, 2, 3, 4, 6]
        yield "delete", lambda: self.table.delete("id = 0"), [1, 2, 3, 4, 6]
        yield "merge", self.merge, [2, 3, 4, 6, 7]
        yield "compact", lambda: self.table.optimize().executeCompaction(), None
        yield "Z-order", lambda: self.table.optimize().executeZOrderBy("id"), None
        yield "vacuum", lambda: self.table.vacuum(0), None
        yield "history", lambda: same(self.newest(), self.table.history().count() - 1), None
        yield "detail", lambda: self.lies_on_hdfs(self.table.detail().first()), None
        yield "delete all", lambda: self.table.delete(), []
        yield "restore", lambda: self.table.restoreToVersion(self.newest() - 1), [2, 3, 4, 6, 7]
        yield "shallow clone", lambda: self.clone("shallow", isShallow=True), None
        yield "deep clone", lambda: self.clone("deep", isShallow=False), None
        yield "convert", lambda: self.convert(files), None
        yield "check", lambda: same(self.table.check(deep=True).is_clean, True), None
        yield "add a feature", lambda: self.table.addFeatureSupport("columnMapping"), None
        yield "replace", lambda: DeltaTable.replace(self.spark).location(self.path).addColumn("id", "INT").execute(), []

    @property
    def table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path)

    def create(self) -> None:
        for make in (DeltaTable.create, DeltaTable.createIfNotExists):
            make(self.spark).location(self.path).addColumn("id", "BIGINT").execute()

    def newest(self) -> int:
        return int(self.table.history(1).first()["version"])

    def merge(self) -> None:
        rows = self.spark.createDataFrame([(1,), (7,)], "id BIGINT").alias("s")
        merge = self.table.alias("t").merge(rows, "t.id = s.id")
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()

    def clone(self, name: str, *, isShallow: bool) -> None:
        self.table.clone(f"{self.base}/{name}", isShallow=isShallow)
        self.holds(name, [2, 3, 4, 6, 7])

    def convert(self, name: str) -> None:
        self.plain_files(name)
        DeltaTable.convertToDelta(self.spark, f"parquet.`{self.base}/{name}`")
        self.holds(name, [0, 1, 2])


class Statements(Door):
    """SQL. A path behind ``delta.`` is absolute, for Spark takes any other for a name; in quotes it may be relative."""

    def steps(self) -> Iterator[Step]:
        sql, table, quoted = self.spark.sql, self.place(self.name), f"'{self.path}'"
        source = "(SELECT * FROM VALUES (1L), (7L) AS v(id)) s ON t.id = s.id"
        clauses = "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        yield "CREATE", lambda: sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({_FEED} = true)"), []
        yield "INSERT", lambda: sql(f"INSERT INTO {table} SELECT id FROM range(6)"), range(6)
        yield "SELECT", lambda: same(self.ids(table), [*range(6)]), None
        yield "UPDATE", lambda: sql(f"UPDATE {table} SET id = 6 WHERE id = 5"), [0, 1, 2, 3, 4, 6]
        yield "DELETE", lambda: sql(f"DELETE FROM {table} WHERE id = 0"), [1, 2, 3, 4, 6]
        yield "MERGE", lambda: sql(f"MERGE INTO {table} t USING {source} {clauses}"), [2, 3, 4, 6, 7]
        feed = f"table_changes_by_path('{self.path}', 0)"
        yield "changes", lambda: same(len(self.ids(feed)), 11), None
        yield "VERSION AS OF", lambda: same(self.ids(f"{table} VERSION AS OF 1"), [*range(6)]), None
        yield "OPTIMIZE", lambda: sql(f"OPTIMIZE {table}"), None
        yield "OPTIMIZE ''", lambda: sql(f"OPTIMIZE {quoted}"), None
        yield "ZORDER", lambda: sql(f"OPTIMIZE {table} ZORDER BY (id)"), None
        yield "DELETE", lambda: sql(f"DELETE FROM {table} WHERE id = 7"), [2, 3, 4, 6]
        yield "REORG", lambda: sql(f"REORG TABLE {table} APPLY (PURGE)"), None
        yield "ALTER", lambda: sql(f"ALTER TABLE {table} ADD COLUMN more INT"), None
        yield "VACUUM", lambda: sql(f"VACUUM {table} RETAIN 0 HOURS"), None
        yield "VACUUM ''", lambda: sql(f"VACUUM {quoted} RETAIN 0 HOURS"), None
        for each in (table, quoted):
            yield f"HISTORY {each[:1]}", lambda of=each: same(self.newest(of) > 8, True), None
            yield f"DETAIL {each[:1]}", lambda of=each: self.lies_on_hdfs(sql(f"DESCRIBE DETAIL {of}").first()), None
        yield "DELETE all", lambda: sql(f"DELETE FROM {table}"), []
        back = f"RESTORE TABLE {table} TO VERSION AS OF"
        yield "RESTORE", lambda: sql(f"{back} {self.newest(table) - 1}"), [2, 3, 4, 6]
        for kind in ("SHALLOW", "DEEP"):
            yield f"{kind} CLONE", lambda kind=kind: self.clone(table, kind), None
        yield "AS SELECT", lambda: sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1L AS id"), [1]
        yield "CONVERT", lambda: self.convert(f"{self.name} of files"), None
        yield "LOCATION", self.locate, None
        yield "of a name only", self.manage, None

    def place(self, name: str) -> str:
        """A table by its absolute path."""
        return f"delta.`/{self.whole.split('/', 3)[3]}/{name}`"

    def ids(self, table: str) -> list[int]:
        return ids_of(self.spark.sql(f"SELECT * FROM {table}"))

    def newest(self, table: str) -> int:
        return int(self.spark.sql(f"DESCRIBE HISTORY {table}").first()["version"])

    def clone(self, table: str, kind: str) -> None:
        self.spark.sql(f"CREATE TABLE {self.place(kind)} {kind} CLONE {table}")
        self.holds(kind, [2, 3, 4, 6])

    def convert(self, name: str) -> None:
        self.plain_files(name)
        self.spark.sql(f"CONVERT TO DELTA {self.place(name).replace('delta.', 'parquet.')}")
        self.holds(name, [0, 1, 2])

    def locate(self) -> None:
        self.spark.sql(f"CREATE TABLE located (id BIGINT) USING delta LOCATION '{self.base}/located'")
        self.spark.sql("INSERT INTO located VALUES (9)")
        self.holds("located", [9])
        same(self.ids("located"), [9])
        self.spark.sql("DROP TABLE located")

    def manage(self) -> None:
        """The warehouse has no scheme, either."""
        self.spark.sql("CREATE TABLE kept USING delta AS SELECT 9L AS id")
        self.lies_on_hdfs(self.spark.sql("DESCRIBE DETAIL kept").first())
        same(self.ids("kept"), [9])
        self.spark.sql("DROP TABLE kept")


class Functions(Door):
    """Functions that take a session, and tables for Arrow that have one."""

    def steps(self) -> Iterator[Step]:
        def read(*args: Any, **named: Any) -> list[int]:
            return ids_of(anabranch.read(self.path, *args, **named, spark=self.spark))

        yield (
            "append",
            lambda: anabranch.append(self.path, rows_of(0, 1, 2), spark=self.spark, properties={_FEED: "true"}),
            [0, 1, 2],
        )
        yield "session first", lambda: anabranch.append(self.spark, self.path, rows_of(3)), [0, 1, 2, 3]
        yield "appender", self.by_appender, [0, 1, 2, 3, 4]
        yield "read", lambda: same(read(), [0, 1, 2, 3, 4]), None
        yield "read where", lambda: same(read("id > 2"), [3, 4]), None
        yield "read a version", lambda: same(read(version=0), [0, 1, 2]), None
        yield "changes", lambda: same(len(ids_of(anabranch.changes(self.path, 0, spark=self.spark))), 5), None
        yield "to_arrow", lambda: same(sorted(self.table.to_arrow()["id"].to_pylist()), [0, 1, 2, 3, 4]), None
        yield "table append", lambda: self.table.append(rows_of(5)), [0, 1, 2, 3, 4, 5]
        yield "table update", lambda: self.table.update("id = 5", {"id": "6"}), [0, 1, 2, 3, 4, 6]
        yield "table delete", lambda: self.table.delete("id = 0"), [1, 2, 3, 4, 6]
        yield "table merge", self.merge, [2, 3, 4, 6, 7]
        yield "compact", lambda: self.table.optimize().compact(), None
        yield "z_order", lambda: self.table.optimize().z_order("id"), None
        yield "table vacuum", lambda: self.table.vacuum(), None
        yield "table history", lambda: same(self.table.history(1)[0]["version"] > 6, True), None
        yield "table detail", lambda: self.lies_on_hdfs(self.table.detail()), None
        yield "table check", lambda: same(self.table.check(deep=True).is_clean, True), None
        yield "table restore", lambda: self.table.restore(0), [0, 1, 2]
        yield "table overwrite", lambda: self.table.overwrite(rows_of(8)), [8]

    @property
    def table(self) -> anabranch.Table:
        return anabranch.table(self.path, spark=self.spark)

    def by_appender(self) -> None:
        with anabranch.appender(self.path, spark=self.spark) as appender:
            appender.append(rows_of(4))

    def merge(self) -> None:
        merge = self.table.merge(rows_of(1, 7), "source.id = target.id")
        merge.when_matched_delete().when_not_matched_insert_all().execute()


class ManyRows(Door):
    """More rows than the driver writes by itself: executors write the files, and find rows in them."""

    def steps(self) -> Iterator[Step]:
        half, rows = range(_MANY), range(2 * _MANY)
        odd, negative = rows[1::2], [-1 - each for each in reversed(rows[::2])]
        yield "write", lambda: self.append(half), half
        yield "by executors", lambda: same(self.table.detail().first()["numFiles"], _PARTS), None
        yield "append", lambda: self.append(rows[_MANY:]), rows
        yield "update", lambda: self.table.update("id % 2 = 0", {"id": "-1 - id"}), [*negative, *odd]
        yield "delete", lambda: self.table.delete("id < 0"), odd
        yield "merge", lambda: self.merge(rows), rows
        yield "compact", lambda: self.table.optimize().executeCompaction(), None
        yield "Z-order", lambda: self.table.optimize().executeZOrderBy("id"), None
        yield "read", lambda: same(anabranch.read(self.path, spark=self.spark).count(), len(rows)), None
        yield "vacuum", lambda: self.table.vacuum(0), None

    @property
    def table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path)

    def frame(self, ids: range) -> DataFrame:
        return self.spark.range(ids.start, ids.stop, 1, _PARTS)

    def append(self, ids: range) -> None:
        self.frame(ids).write.format("delta").mode("append").save(self.path)

    def merge(self, ids: range) -> None:
        merge = self.table.alias("t").merge(self.frame(ids).alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def rows_of(*ids: int) -> list[dict[str, int]]:
    return [{"id": each} for each in ids]


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def same(found: Any, wanted: Any) -> None:
    """Raises AssertionError, with both."""
    assert found == wanted, f"{found} instead of {wanted}"


if __name__ == "__main__":
    main(*sys.argv[1:])
