"""SQL, ``DeltaTable`` and the functions and command line make one and the same command of one wish, for every verb.

Each door is opened for real; the command that it has made is taken from its ``run``, which does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch import DeltaTable
from anabranch._cli import app
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.maintenance.generate import Generate
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.maintenance.restore import Restore
from anabranch.commands.maintenance.vacuum import Vacuum

pytestmark = pytest.mark.spark

COMMANDS = (
    *(Clone, Convert, Create, Replace, Delete, DropFeature, Fsck, Generate, Merge, Optimize, Purge, Restore, Update),
    *(Vacuum, Write),
)


class Made(Exception):
    """A command that was about to run."""

    def __init__(self, command: Any) -> None:
        super().__init__(type(command).__name__)
        self.command = command


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


def made(door: Callable[[], Any]) -> Any:
    """The command that a door makes; rows, which are no part of what was wished, apart."""
    with pytest.raises(Made) as found:
        door()
    command = found.value.command
    assert is_dataclass(command)
    return replace(command, source=None) if isinstance(command, Merge | Write) else command


def typed(*words: str) -> Callable[[], Any]:
    """The command line."""

    def door() -> None:
        error = CliRunner().invoke(app, list(words)).exception
        if error is not None:
            raise error

    return door


class Doors:
    """Every way to say each thing; ``p`` is the table's path, ``t`` its name in SQL, ``d`` the table."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.p, self.t, self.d = spark, path, f"delta.`{path}`", DeltaTable.forPath(spark, path)
        self.rows: DataFrame = spark.sql("SELECT 1L AS id, 'x' AS s")

    def sql(self, text: str) -> Callable[[], Any]:
        return lambda: anabranch.sql(self.spark, text.replace("@T", self.t).replace("@P", self.p))

    def ways(self) -> dict[str, list[Callable[[], Any]]]:
        return {**self.of_rows(), **self.of_tables(), **self.of_upkeep()}

    def of_rows(self) -> dict[str, list[Callable[[], Any]]]:
        d, merge = self.d, lambda: self.d.alias("t").merge(self.rows.alias("u"), "t.id = u.id")
        rows = self.rows.write.format("delta")
        return {
            "delete": [self.sql("DELETE FROM @T WHERE id > 3 AND s = 'x'"), lambda: d.delete("id > 3 AND s = 'x'")],
            "delete all": [self.sql("DELETE FROM @T"), lambda: d.delete()],
            "update": [
                self.sql("UPDATE @T AS t SET t.s = upper(s), id = id + 1 WHERE id = 1"),
                lambda: d.update("id = 1", {"s": "upper(s)", "id": "id + 1"}),
            ],
            "merge": [
                self.sql(
                    "MERGE INTO @T t USING (SELECT 1L AS id, 'x' AS s) u ON t.id = u.id "
                    "WHEN MATCHED AND u.s = 'y' THEN DELETE WHEN MATCHED THEN UPDATE SET t.s = u.s "
                    "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND id < 0 THEN UPDATE SET s = 'gone'"
                ),
                lambda: (
                    merge()
                    .whenMatchedDelete("u.s = 'y'")
                    .whenMatchedUpdate(set={"t.s": "u.s"})
                    .whenNotMatchedInsertAll()
                    .whenNotMatchedBySourceUpdate("id < 0", {"s": "'gone'"})
                    .execute()
                ),
            ],
            "append": [self.sql("INSERT INTO @T SELECT 1L, 'x'"), lambda: rows.mode("append").save(self.p)],
            "overwrite": [self.sql("INSERT OVERWRITE @T SELECT 1L, 'x'"), lambda: rows.mode("overwrite").save(self.p)],
            "replace where": [
                self.sql("INSERT INTO @T REPLACE WHERE id = 1 SELECT 1L, 'x'"),
                lambda: rows.mode("overwrite").option("replaceWhere", "id = 1").save(self.p),
            ],
        }

    def of_tables(self) -> dict[str, list[Callable[[], Any]]]:
        spark, new, flights = self.spark, f"{self.p}_new", f"{self.p}_parquet"
        columns = (
            f"delta.`{new}` (id BIGINT NOT NULL, p DATE COMMENT 'day') PARTITIONED BY (p) TBLPROPERTIES ('a' = 'b')"
        )

        def built(builder: Any) -> Callable[[], Any]:
            builder = builder.location(new).addColumn("id", "BIGINT", nullable=False)
            return builder.addColumn("p", "DATE", comment="day").partitionedBy("p").property("a", "b").execute  # type: ignore[no-any-return]

        return {
            "create": [self.sql(f"CREATE TABLE {columns}"), built(DeltaTable.create(spark))],
            "create if not exists": [
                self.sql(f"CREATE TABLE IF NOT EXISTS {columns}"),
                built(DeltaTable.createIfNotExists(spark)),
            ],
            "replace": [self.sql(f"REPLACE TABLE {columns}"), built(DeltaTable.replace(spark))],
            "create or replace": [
                self.sql(f"CREATE OR REPLACE TABLE {columns}"),
                built(DeltaTable.createOrReplace(spark)),
            ],
            "convert": [
                self.sql(f"CONVERT TO DELTA parquet.`{flights}` PARTITIONED BY (day DATE)"),
                lambda: DeltaTable.convertToDelta(spark, f"parquet.`{flights}`", "day DATE"),
            ],
            "clone": [
                self.sql("CREATE TABLE delta.`@P_c` SHALLOW CLONE @T VERSION AS OF 0 TBLPROPERTIES ('a' = 'b')"),
                lambda: self.d.cloneAtVersion(0, f"{self.p}_c", isShallow=True, properties={"a": "b"}),
                lambda: anabranch.clone(self.p, f"{self.p}_c", shallow=True, version=0, properties={"a": "b"}),
                typed("clone", self.p, f"{self.p}_c", "--shallow", "--version", "0", "--set", "a=b"),
            ],
            "clone over": [
                self.sql("CREATE OR REPLACE TABLE delta.`@P_c` CLONE @T"),
                lambda: self.d.clone(f"{self.p}_c", replace=True),
                lambda: anabranch.clone(self.p, f"{self.p}_c", shallow=False, replace=True),
                typed("clone", self.p, f"{self.p}_c", "--replace"),
            ],
            "drop feature": [
                self.sql("ALTER TABLE @T DROP FEATURE deletionVectors TRUNCATE HISTORY"),
                lambda: self.d.dropFeatureSupport("deletionVectors", True),
            ],
        }

    def of_upkeep(self) -> dict[str, list[Callable[[], Any]]]:
        d, p = self.d, self.p
        return {
            "optimize": [self.sql("OPTIMIZE @T"), lambda: d.optimize().executeCompaction(), typed("optimize", p)],
            "zorder": [
                self.sql("OPTIMIZE @T ZORDER BY (id, s)"),
                lambda: d.optimize().executeZOrderBy("id", "s"),
                typed("optimize", p, "--zorder-by", "id,s"),
            ],
            "purge": [self.sql("REORG TABLE @T APPLY (PURGE)"), typed("reorg", p)],
            "vacuum": [
                self.sql("VACUUM @T RETAIN 200 HOURS"),
                lambda: d.vacuum(200.0),
                lambda: anabranch.vacuum(p, 200.0),
                typed("vacuum", p, "--retain-hours", "200", "--json"),
            ],
            "vacuum lite": [
                self.sql("VACUUM @T LITE DRY RUN"),
                lambda: anabranch.vacuum(p, dry_run=True, lite=True),
                typed("vacuum", p, "--dry-run", "--lite", "--json"),
            ],
            "restore": [
                self.sql("RESTORE TABLE @T TO VERSION AS OF 0"),
                lambda: d.restoreToVersion(0),
                lambda: anabranch.restore(p, 0),
                typed("restore", p, "--version", "0"),
            ],
            "restore to a moment": [
                self.sql("RESTORE TABLE @T TO TIMESTAMP AS OF '2024-01-31'"),
                lambda: d.restoreToTimestamp("2024-01-31"),
            ],
            "generate": [
                self.sql("GENERATE symlink_format_manifest FOR TABLE @T"),
                lambda: d.generate("symlink_format_manifest"),
                lambda: anabranch.generate(p),
                typed("generate", p),
            ],
            "fsck": [
                self.sql("FSCK REPAIR TABLE @T DRY RUN"),
                lambda: anabranch.fsck(p, dry_run=True),
                typed("fsck", p),
            ],
        }


def test_every_door_makes_the_same_command(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": 1, "s": "x"}])
    doors = Doors(session, path)

    def run(self: Any, *given: Any, **named: Any) -> Any:
        raise Made(self)

    for command in COMMANDS:
        monkeypatch.setattr(command, "run", run)
    seen, wrong = set(), []
    for verb, ways in doors.ways().items():
        first, *others = [made(way) for way in ways]
        seen.add(type(first))
        wrong += [f"{verb}: {first}\n    and not {other}" for other in others if other != first]
        wrong += [] if others else [f"{verb} has one door only"]
    assert not wrong, "\n".join(["", *wrong])
    assert seen == set(COMMANDS)
    assert len(anabranch.history(path)) == 1
