"""The result of OPTIMIZE and REORG: one row with the metrics of delta-spark, under its names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch._protocol.layout.clustering import Path
from anabranch.commands.maintenance.optimize import OptimizeResult

WORKERS = 4
"""Number of batches written at once; Spark shares its cores between them."""

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
    f"autoCompactParallelismStats: STRUCT<{', '.join(f'{task}Parallelism: BIGINT' for task in _TASKS)}>, "
    "deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT, numDeletionVectorRowsRemoved: BIGINT>, "
    "numTableColumns: BIGINT, numTableColumnsWithStats: BIGINT>"
)
"""The columns of the result: the metrics of delta-spark, under its names; metrics that are not measured are NULL."""


def result_row(done: OptimizeResult, table: str, columns: Sequence[Path] = ()) -> dict[str, Any]:
    """The result as one row of `RESULT`."""
    has_changed = done.committed is not None
    vectors = {
        "numDeletionVectorsRemoved": done.metrics.get("numDeletionVectorsRemoved", 0),
        "numDeletionVectorRowsRemoved": done.metrics.get("numDeletionVectorRowsRemoved", 0),
    }
    metrics = {
        "numFilesAdded": len(done.added),
        "numFilesRemoved": len(done.removed),
        "filesAdded": _sizes(done.added),
        "filesRemoved": _sizes(done.removed),
        "partitionsOptimized": done.partitions if has_changed else 0,
        "zOrderStats": _zorder(done) if columns else None,
        "numBatches": done.batches if has_changed else 0,
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


def _zorder(done: OptimizeResult) -> dict[str, Any]:
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
