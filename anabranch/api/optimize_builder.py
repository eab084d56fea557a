"""``DeltaOptimizeBuilder``, name for name as in ``delta.tables``.

A door: it collects which partitions are meant, makes one command, and shows what that did as Delta does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.api.table_builder import flat
from anabranch.commands.maintenance.moving import Told
from anabranch.commands.maintenance.optimize import Optimize, Optimized
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidArgument, InvalidOption
from anabranch.protocol.layout.clustering import Path, paths_of
from anabranch.spark.engine import SparkEngine
from anabranch.spark.settings import honours
from anabranch.statements.conditions import check_named, understood

__all__ = ["RESULT", "DeltaOptimizeBuilder", "optimized", "shown"]

WORKERS = 4
"""So many batches are written at once; Spark shares its cores between them."""

_SIZES = "STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE, totalFiles: BIGINT, totalSize: BIGINT>"
_FILES, _CUBES = "STRUCT<num: BIGINT, size: BIGINT>", "STRUCT<numFiles: BIGINT, size: BIGINT>"
_TASKS = ("maxClusterActive", "minClusterActive", "maxSessionActive", "minSessionActive")
RESULT = (
    "path: STRING, metrics: STRUCT<numFilesAdded: BIGINT, numFilesRemoved: BIGINT, "
    f"filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: BIGINT, "
    f"zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_FILES}, inputOtherFiles: {_FILES}, "
    f"inputNumCubes: BIGINT, mergedFiles: {_FILES}, numOutputCubes: BIGINT, mergedNumCubes: BIGINT>, "
    f"clusteringStats: STRUCT<inputZCubeFiles: {_CUBES}, inputOtherFiles: {_CUBES}, inputNumZCubes: BIGINT, "
    f"mergedFiles: {_CUBES}, numOutputZCubes: BIGINT>, "
    "numBins: BIGINT, numBatches: BIGINT, totalConsideredFiles: BIGINT, totalFilesSkipped: BIGINT, "
    "preserveInsertionOrder: BOOLEAN, numFilesSkippedToReduceWriteAmplification: BIGINT, "
    "numBytesSkippedToReduceWriteAmplification: BIGINT, startTimeMs: BIGINT, endTimeMs: BIGINT, "
    "totalClusterParallelism: BIGINT, totalScheduledTasks: BIGINT, "
    f"autoCompactParallelismStats: STRUCT<{', '.join(f'{each}Parallelism: BIGINT' for each in _TASKS)}>, "
    "deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT, numDeletionVectorRowsRemoved: BIGINT>, "
    "numTableColumns: BIGINT, numTableColumnsWithStats: BIGINT>"
)
"""What OPTIMIZE shows: the metrics of delta-spark, under its names; those that are not known here are NULL."""


@dataclass(eq=False)
class DeltaOptimizeBuilder:
    """Lays out a table's files anew; `where` gives this same builder, as delta-spark's does.

    Example:
        >>> table.optimize().where("day = '2024-01-31'").executeCompaction().show()
    """

    spark: SparkSession
    path: Location
    partitions: str | None = None

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only the partitions that a condition over partition columns selects."""
        if not isinstance(partitionFilter, str):
            raise InvalidArgument(option="partitionFilter", value=partitionFilter, reason="it takes SQL text.")
        self.partitions = partitionFilter
        return self

    def executeCompaction(self) -> DataFrame:
        """Write small files, and such with many deleted rows, together into larger ones; a clustered table is laid out
        by its clustering columns.

        Returns:
            one row: the table and Delta's metrics.

        Raises:
            InvalidCondition: the condition names other columns than those that partition the table.
            MetadataChangedException, ProtocolChangedException: the table was altered meanwhile.
        """
        return self._run(())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Lay rows that are near in these columns into the same files, so that queries of any of them skip the most.

        Returns:
            as `executeCompaction`.

        Raises:
            InvalidOption: there is no such column, or nothing could be skipped by it; and as `executeCompaction`.
        """
        names = flat(cols)
        if not names:
            raise InvalidOption(option="ZORDER BY", value="nothing", reason="it takes the names of columns.")
        return self._run(paths_of([*names]))

    @honours("OPTIMIZE")
    def _run(self, columns: tuple[Path, ...]) -> DataFrame:
        done = optimized(self.spark, Optimize(self.path, zorder_by=columns), self.partitions)
        row = shown(done, open_log(self.path).table, columns)
        return self.spark.createDataFrame([row], RESULT)


def optimized(
    spark: SparkSession, command: Optimize | Purge, where: str | None = None, told: Told | None = None
) -> Optimized:
    """Run one of the commands that move rows, on the partitions that SQL text selects; ``told`` hears of its progress.

    Raises:
        InvalidCondition: the condition names other columns than those that partition the table; and as the command.
    """
    snapshot, engine = open_log(command.table).snapshot(), SparkEngine(spark)
    if isinstance(command, Optimize):
        check_named(snapshot.schema, command.zorder_by, snapshot.table, engine)
    partitions = command.where if where is None else understood(where, snapshot, engine)
    return replace(command, where=partitions, workers=WORKERS).run(engine, at=snapshot, told=told)


def shown(done: Optimized, table: str, columns: Sequence[Path] = ()) -> dict[str, Any]:
    """What was done, as one row of `RESULT`."""
    changed = done.committed is not None
    vectors = {
        "numDeletionVectorsRemoved": done.metrics.get("numDeletionVectorsRemoved", 0),
        "numDeletionVectorRowsRemoved": done.metrics.get("numDeletionVectorRowsRemoved", 0),
    }
    metrics = {
        "numFilesAdded": len(done.added),
        "numFilesRemoved": len(done.removed),
        "filesAdded": _sizes(done.added),
        "filesRemoved": _sizes(done.removed),
        "partitionsOptimized": done.partitions if changed else 0,
        "zOrderStats": _zorder(done) if columns else None,
        "numBatches": done.batches if changed else 0,
        "totalConsideredFiles": done.considered,
        "totalFilesSkipped": done.considered - len(done.removed),
        "preserveInsertionOrder": not columns,
        "deletionVectorStats": vectors,
    }
    return {"path": table, "metrics": metrics}


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    total = sum(sizes)
    average = total / len(sizes) if sizes else 0.0
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": average,
        "totalFiles": len(sizes),
        "totalSize": total,
    }


def _zorder(done: Optimized) -> dict[str, Any]:
    moved = {"num": len(done.removed), "size": sum(done.removed)}
    return {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": moved,
        "inputNumCubes": 0,
        "mergedFiles": moved,
        "numOutputCubes": done.partitions,
        "mergedNumCubes": None,
    }
