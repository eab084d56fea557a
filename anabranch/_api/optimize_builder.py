"""``DeltaOptimizeBuilder``, name for name as in ``delta.tables``.

A door: it collects which partitions are meant, makes one command, and shows what that did as Delta does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from anabranch._api.arguments import flat
from anabranch._protocol.layout.clustering import Path, paths_of
from anabranch._spark.columns.types import frame_from_rows
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import speaks
from anabranch._spark.sessions.settings import honours
from anabranch._sql.conditions import check_named, resolve_condition
from anabranch.commands.context import Progress, RunContext, ignore_progress
from anabranch.commands.maintenance.optimize import Optimize, Optimized
from anabranch.commands.maintenance.optimize_result import RESULT, WORKERS, result_row
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidArgument, InvalidOption

__all__ = ["DeltaOptimizeBuilder", "run_optimize"]


@speaks
@dataclass(eq=False)
class DeltaOptimizeBuilder:
    """Lays out a table's files anew; `where` gives this same builder, as delta-spark's does.

    Example:
        >>> table.optimize().where("day = '2024-01-31'").executeCompaction().show()
    """

    spark: SparkSession
    path: Location
    partitions: str | None = None
    _file_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only the partitions that a condition over partition columns selects; of several all have to hold."""
        if not isinstance(partitionFilter, str):
            raise InvalidArgument(option="partitionFilter", value=partitionFilter, reason="it takes SQL text.")
        before = self.partitions
        self.partitions = partitionFilter if before is None else f"({before}\n) AND ({partitionFilter}\n)"
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
        done = run_optimize(self.spark, Optimize(self.path, zorder_by=columns), self.partitions)
        row = result_row(done, open_log(self.path).table, columns)
        return frame_from_rows(self.spark, [row], RESULT)


def run_optimize(
    spark: SparkSession, command: Optimize | Purge, where: str | None = None, progress: Progress = ignore_progress
) -> Optimized:
    """Run one of the commands that move rows, on the partitions that SQL text selects; ``progress`` hears of its steps.

    Raises:
        InvalidCondition: the condition names other columns than those that partition the table; and as the command.
    """
    snapshot, engine = open_log(command.table).snapshot(), SparkEngine(spark)
    if isinstance(command, Optimize):
        check_named(snapshot.schema, command.zorder_by, snapshot.table, engine)
    partitions = command.where if where is None else resolve_condition(where, snapshot, engine)
    return replace(command, where=partitions, workers=WORKERS).run(engine, RunContext(at=snapshot, progress=progress))
