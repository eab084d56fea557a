"""A covering part of the grid on real Spark: each command of ours, each sort of winner and each place at least once.

Ours goes through the door that users take; the winner's commit is the other engine's, which is quicker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._api.optimize_builder import run_optimize
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.merges import Clause, SourceColumn
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.testing import Row, at_phase
from tests.support.worlds import World
from tests.transaction import test_grid_of_maintenance as maintenance
from tests.transaction.test_grid import MINE, WINNERS, Kind, Outcome, expected, world
from tests.transaction.test_grid_of_maintenance import MINES, MOVES, after, bag, meeting

pytestmark = pytest.mark.spark

ROW, STRICT = Kind("WriteSerializable", "row", True), Kind("Serializable", "row", True, "partitioned")
FILE, PLAIN = Kind("WriteSerializable", "file", True, "partitioned"), Kind("Serializable", "row", False)
CLUSTERED = Kind("WriteSerializable", "row", True, "clustered")
CELLS = [
    ("insert", "overwrite", "same row", ROW),
    ("update", "update", "same row", ROW),
    ("update", "update", "other row of the file", STRICT),
    ("update", "update", "moved out", ROW),
    ("update", "merge", "moved in", STRICT),
    ("update", "insert", "moved in", ROW),
    ("update", "insert", "moved in", STRICT),
    ("update", "delete", "other row of the file", FILE),
    ("delete", "delete", "same row", STRICT),
    ("delete", "update", "moved in", ROW),
    ("delete", "overwrite", "same row", ROW),
    ("delete", "update", "other file", PLAIN),
    ("delete", "insert", "other rows", STRICT),
    ("merge", "merge", "other row of the file", ROW),
    ("merge", "merge", "same new key", ROW),
    ("merge", "insert", "same new key", ROW),
    ("merge", "insert", "same new key", STRICT),
    ("merge", "delete", "other file", FILE),
    ("merge", "update", "same new key", PLAIN),
    ("overwrite", "insert", "other rows", ROW),
    ("overwrite", "update", "other file", STRICT),
    ("update", "update", "other row of the file", CLUSTERED),
    ("merge", "merge", "same new key", CLUSTERED),
]


class OnSpark(World):
    """The table by the doors of Spark."""

    spark: SparkSession

    @property
    def table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path).alias("t")

    def frame(self, rows: list[Row]) -> DataFrame:
        return self.spark.createDataFrame([tuple(row.values()) for row in rows], "id long, p long, x long, y long")

    def append(self, *rows: Row) -> Any:
        self.frame(list(rows)).write.format("delta").mode("append").save(self.path)

    def overwrite(self, *rows: Row) -> None:
        self.frame(list(rows)).write.format("delta").mode("overwrite").save(self.path)

    def update(self, where: str | None, **values: Any) -> Any:
        self.table.update(where, {name: str(value) for name, value in values.items()})

    def delete(self, where: str | None = None) -> Any:
        self.table.delete(where)

    def merge(self, rows: list[Row], *clauses: Clause, by: str = "id", also: str | None = None) -> Any:
        builder = self.table.merge(self.frame(rows).alias("s"), f"t.{by} = s.{by}")
        for clause in clauses:
            values = {
                name: f"s.{v.name}" if isinstance(v, SourceColumn) else str(v) for name, v in clause.values.items()
            }
            inserts = clause.when == "not matched"
            builder = builder.whenNotMatchedInsert(values=values) if inserts else builder.whenMatchedUpdate(set=values)
        builder.execute()

    def optimize(self, *zorder_by: str, where: str | None = None, full: bool = False) -> Any:
        return run_optimize(self.spark, Optimize(self.path, zorder_by=paths_of(zorder_by), full=full), where)

    def reorg(self, where: str | None = None) -> Any:
        return run_optimize(self.spark, Purge(self.path), where)


def on_spark(spark: SparkSession, path: str) -> OnSpark:
    made = OnSpark(path)
    made.spark = anabranch.install(spark)
    return made


@pytest.mark.parametrize(("ours", "winner", "where", "kind"), CELLS, ids=lambda each: str(each).replace(" ", "_"))
def test_a_cell_of_the_grid_on_spark(
    spark: SparkSession, tmp_path: Path, ours: str, winner: str, where: str, kind: Kind
) -> None:
    made = world(tmp_path, kind)
    found: Outcome = None
    try:
        with at_phase("staged", lambda: WINNERS[winner, where](made)):
            MINE[ours](on_spark(spark, made.path))
    except errors.DeltaConcurrentModificationException as refused:
        found = type(refused)
    assert found in expected(ours, winner, where, kind)
    made.assert_clean()


MOVED = [
    ("delete", "ZORDER", ROW),
    ("merge", "OPTIMIZE", FILE),
    ("update", "REORG", STRICT),
    ("overwrite", "ZORDER", CLUSTERED),
    ("merge", "ZORDER", CLUSTERED),
    ("update", "OPTIMIZE", PLAIN),
    ("insert", "ZORDER", PLAIN),
]


@pytest.mark.parametrize(("change", "move", "kind"), MOVED, ids=lambda each: str(each).replace(" ", "_"))
def test_moves_and_changes_on_spark(spark: SparkSession, tmp_path: Path, change: str, move: str, kind: Kind) -> None:
    """In both orders; a part of what was moved cannot be taken away without vectors, in one of them."""
    for ours, other in ((MINE[change], MOVES[move]), (MOVES[move], MINE[change])):
        made = maintenance.world(tmp_path, kind)
        found = meeting(on_spark(spark, made.path), ours, other, "staged")
        refused = ours is MINE[change] and not kind.vectors and change != "insert"
        assert found == (errors.ConcurrentDeleteReadException if refused else None)
        assert bag(made.rows()) == after([] if refused else [MINES[change]])
        made.assert_clean()


def test_the_cells_cover_each_command_winner_and_place() -> None:
    assert {ours for ours, *_ in CELLS} == set(MINE)
    assert {winner for _, winner, *_ in CELLS} == {winner for winner, _ in WINNERS}
    assert {where for *_, where, _ in CELLS} == {where for _, where in WINNERS}
