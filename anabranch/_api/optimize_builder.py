"""``DeltaOptimizeBuilder``, with the names of ``delta.tables``.

Collects the condition on partitions, runs one command, and shows its result as Delta does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from anabranch._api.arguments import column_names
from anabranch._protocol.layout.clustering import Path, paths_of
from anabranch._spark.columns.types import frame_from_rows
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.settings import honours
from anabranch._sql.conditions import check_named, resolve_condition
from anabranch.commands.context import Progress, RunContext, ignore_progress
from anabranch.commands.maintenance.optimize import Optimize, OptimizeResult
from anabranch.commands.maintenance.optimize_result import RESULT, WORKERS, result_row
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidArgument, InvalidOption

__all__ = ["DeltaOptimizeBuilder", "run_optimize"]


@uses_session_settings
@dataclass(eq=False)
class DeltaOptimizeBuilder:
    """Rewrites a table's files; `where` returns this same builder, as delta-spark's does.

    Example:
        >>> table.optimize().where("day = '2024-01-31'").executeCompaction().show()
    """

    spark: SparkSession
    path: Location
    partitions: str | None = None
    _file_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Selects partitions by a condition over partition columns; several conditions are combined with AND."""
        if not isinstance(partitionFilter, str):
            raise InvalidArgument(option="partitionFilter", value=partitionFilter, reason="it takes SQL text.")
        before = self.partitions
        self.partitions = partitionFilter if before is None else f"({before}\n) AND ({partitionFilter}\n)"
        return self

    def executeCompaction(self) -> DataFrame:
        """Combines small files, and files with many deleted rows, into larger ones; orders a clustered table by its
        clustering columns.

        Returns:
            one row: the table and Delta's metrics.

        Raises:
            InvalidCondition: the condition names other columns than those that partition the table.
            MetadataChangedException, ProtocolChangedException: the table was altered meanwhile.
        """
        return self._run(())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Puts rows with similar values of these columns into the same files, so that queries of any of them skip
        files.

        Returns:
            as `executeCompaction`.

        Raises:
            InvalidOption: a column does not exist, or cannot be used for skipping; and as `executeCompaction`.
        """
        names = column_names(cols)
        if not names:
            raise InvalidOption(option="ZORDER BY", value="nothing", reason="it takes the names of columns.")
        return self._run(paths_of([*names]))

    @honours("OPTIMIZE")
    def _run(self, columns: tuple[Path, ...]) -> DataFrame:
        result = run_optimize(self.spark, Optimize(self.path, zorder_by=columns), self.partitions)
        row = result_row(result, open_log(self.path).table, columns)
        return frame_from_rows(self.spark, [row], RESULT)


def run_optimize(
    spark: SparkSession, command: Optimize | Purge, where: str | None = None, progress: Progress = ignore_progress
) -> OptimizeResult:
    """Runs a command that moves rows, on the partitions that SQL text selects; calls ``progress`` for its steps.

    Raises:
        InvalidCondition: the condition names columns other than partition columns; and as the command.
    """
    snapshot, engine = open_log(command.table).snapshot(), SparkEngine(spark)
    if isinstance(command, Optimize):
        check_named(snapshot.schema, command.zorder_by, snapshot.table, engine)
    partitions = command.where if where is None else resolve_condition(where, snapshot, engine)
    return replace(command, where=partitions, workers=WORKERS).run(engine, RunContext(at=snapshot, progress=progress))
