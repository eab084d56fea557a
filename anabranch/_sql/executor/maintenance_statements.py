"""Runs OPTIMIZE, REORG, VACUUM, RESTORE, CLONE, GENERATE and FSCK, and returns the rows that Delta shows."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.settings import VACUUMS_LITE
from anabranch._spark.columns.types import frame_from_rows
from anabranch._spark.sessions.session import checks_retention
from anabranch._spark.sessions.settings import setting
from anabranch._sql.conditions import check_named, resolve_condition
from anabranch._sql.executor.parquet_tables import files_of
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.parts import Expression, Path, Table
from anabranch.commands.context import RunContext
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.fsck import MISSING, Fsck
from anabranch.commands.maintenance.generate import Generate
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.optimize_result import RESULT as OPTIMIZED
from anabranch.commands.maintenance.optimize_result import WORKERS, result_row
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.maintenance.restore import RESULT, Restore
from anabranch.commands.maintenance.upgrade_uniform import UpgradeUniform
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidOption

_IGNORES_MISSING = "spark.sql.files.ignoreMissingFiles"
_CLONE_METRICS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
"""The columns that CLONE returns, and the metrics in them."""


def optimize(statement: v.OptimizeTable, run: StatementContext) -> DataFrame:
    """OPTIMIZE; returns the table and Delta's metrics."""
    snapshot = run.newest(statement.table)
    result = optimize_command(statement, snapshot, run).run(run.engine, RunContext(at=snapshot))
    return frame_from_rows(run.spark, [result_row(result, snapshot.table, statement.zorder)], OPTIMIZED)


def optimize_command(statement: v.OptimizeTable, snapshot: Snapshot, run: StatementContext) -> Optimize:
    """Return the command of an OPTIMIZE."""
    where = _where(statement.where, snapshot, run)
    check_named(snapshot.schema, statement.zorder, snapshot.table, run.engine)
    return Optimize(statement.table.location, where, statement.zorder, statement.full, workers=WORKERS)


def _where(where: Expression | None, snapshot: Snapshot, run: StatementContext) -> Condition:
    return EVERY_ROW if where is None else resolve_condition(where.source, snapshot, run.engine, filled=True)


def reorg(statement: v.ReorgTable, run: StatementContext) -> DataFrame:
    """REORG TABLE: APPLY (PURGE) returns the same columns as OPTIMIZE, APPLY (UPGRADE UNIFORM (…)) no rows."""
    if statement.iceberg_version is None:
        snapshot = run.newest(statement.table)
        where = _where(statement.where, snapshot, run)
        result = Purge(statement.table.location, where, WORKERS).run(run.engine, RunContext(at=snapshot))
        return frame_from_rows(run.spark, [result_row(result, snapshot.table)], OPTIMIZED)
    if statement.where is not None:
        raise InvalidOption(
            option="WHERE", value=statement.where.text, reason="UPGRADE UNIFORM applies to the whole table."
        )
    UpgradeUniform(statement.table.location, statement.iceberg_version).run(run.engine)
    return run.nothing()


def vacuum(statement: v.VacuumTable, run: StatementContext) -> DataFrame:
    """VACUUM; returns the table's path, with DRY RUN the paths of the files that it would delete."""
    checks = checks_retention(run.spark)
    lite = statement.lite if statement.lite is not None else setting(run.spark, VACUUMS_LITE, False)
    command = Vacuum(statement.table.location, statement.hours, statement.dry_run, lite, checks)
    result = command.run()
    paths = [f"{result.table}/{file.name}" for file in result.files] if statement.dry_run else [result.table]
    return run.frame_from_columns({"path": paths}, pa.schema([("path", pa.string())]))


def restore(statement: v.RestoreTable, run: StatementContext) -> DataFrame:
    """RESTORE; returns Delta's numbers of files and bytes."""
    result = restore_command(statement, run).run()
    return run.engine.rows(pa.Table.from_pylist([result.row], schema=RESULT))


def restore_command(statement: v.RestoreTable, run: StatementContext) -> Restore:
    """Return the command, the same as of ``DeltaTable.restoreToVersion`` and ``restoreToTimestamp``."""
    version, moment = run.version_and_moment(statement.table)
    ignores = (run.spark.conf.get(_IGNORES_MISSING, None) or "").lower() == "true"
    return Restore(statement.table.location, version, moment, ignores, run.zone_of(moment))


def clone(statement: v.CloneTable, run: StatementContext) -> DataFrame:
    """CLONE; returns Delta's numbers of files and bytes."""
    log = open_log(statement.table.location)
    if statement.if_not_exists and log.exists():
        return _clone_result({}, run)
    if not statement.creates:
        log.snapshot()
    command = Clone(
        "",
        os.fspath(statement.table.location),
        statement.shallow,
        replace=statement.replaces,
        properties=dict(statement.properties),
    )
    return _clone_result(_set_source(command, statement.source, run).run().metrics, run)


def _set_source(command: Clone, source: Table | Path, run: StatementContext) -> Clone:
    """Set the source of a clone: a version of a Delta table, or Parquet files."""
    if isinstance(source, Table):
        version, moment = run.version_and_moment(source)
        return replace(command, source=source.location, version=version, timestamp=moment, zone=run.zone_of(moment))
    location, partitions = files_of(run.spark, source)
    return replace(command, source=location, parquet=partitions)


def _clone_result(metrics: Any, run: StatementContext) -> DataFrame:
    return run.row_of_counts(**{column: int(metrics.get(name, 0)) for column, name in _CLONE_METRICS.items()})


def generate(statement: v.GenerateManifest, run: StatementContext) -> DataFrame:
    """GENERATE; returns no rows."""
    Generate(statement.table.location, statement.mode).run()
    return run.nothing()


def repair(statement: v.RepairTable, run: StatementContext) -> DataFrame:
    """FSCK REPAIR TABLE; returns a row for each missing file."""
    result = Fsck(statement.table.location, statement.dry_run).run()
    return run.engine.rows(pa.Table.from_pylist(result.rows, schema=MISSING))
