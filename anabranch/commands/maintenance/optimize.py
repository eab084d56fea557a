"""OPTIMIZE writes the same rows into fewer files, or in an order in which queries skip more files.

Decides which files are worth rewriting; `moving` rewrites and commits them. Guarantees: readers notice only the speed;
files that are well laid out stay, so a second run does nothing; no writer of rows fails because of it, nor it because
of one.

Source: Databricks documentation, "Optimize data file layout" and "Data skipping"; PROTOCOL.md, "Clustered Table".
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout import packing
from anabranch._protocol.layout.clustering import Path, check_zorder, resolve_columns, sql_names
from anabranch._protocol.layout.cubes import PROVIDER, Cube, layout
from anabranch._protocol.layout.curves import Curve, Kind
from anabranch._protocol.schema.leaves import format_column_list
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.phases import reach
from anabranch._transaction.relocation import relocation_of
from anabranch._transaction.retry import Runtime
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.moving import Batch, Move
from anabranch.commands.opening import Location, SecretFree, filter_files, open_log
from anabranch.commands.watching import watch
from anabranch.errors import AnabranchError, InvalidCondition, InvalidOption
from anabranch.errors.html import ShownAsTable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OptimizeResult(ShownAsTable):
    """What OPTIMIZE did: its commit, None if there was nothing to do; ``metrics`` have Delta's names."""

    committed: CommitResult | None
    metrics: Mapping[str, int]
    considered: int = 0
    batches: int = 0
    partitions: int = 0
    removed: tuple[int, ...] = ()
    """The sizes of the files that were removed."""
    added: tuple[int, ...] = ()
    """The sizes of the files that replaced them."""


@dataclass(frozen=True)
class Optimize(SecretFree):
    """Rewrite the files of ``table`` that are worth it.

    Attributes:
        where: a condition over partition columns that selects partitions.
        zorder_by: the columns of a Z-order, for tables without clustering columns.
        full: rewrite all files of a clustered table, also those that were laid out before.
        auto: whether a writer runs it after its commit, because of the table's properties.
        workers: number of batches written at once.

    Example:
        >>> Optimize("/data/flights").run(engine).metrics["numRemovedFiles"]
    """

    table: Location
    where: Condition = EVERY_ROW
    zorder_by: tuple[Path, ...] = ()
    full: bool = False
    auto: bool = False
    workers: int = 1
    storage_options: Mapping[str, str] | None = None

    @watch("OPTIMIZE")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> OptimizeResult:
        """Run it at the version for which ``where`` was parsed, or at the newest.

        Raises:
            InvalidOption, InvalidCondition: the table cannot be laid out that way.
            DeltaConcurrentModificationException: its metadata or protocol was changed meanwhile.
        """
        engine, base = require_engine(engine, self), context.snapshot(open_log(self.table, self.storage_options))
        files, batches = self.plan_batches(base, context.runtime)
        reach("read")
        provider = PROVIDER if base.clustering_columns else None
        move = Move(
            base, batches, "OPTIMIZE", self._parameters(base), provider, base.properties.recorded_moves, self.workers
        )
        log = Log(base.store)
        return result_of(log, move.run(engine, log, context), len(files))

    def plan_batches(self, base: Snapshot, runtime: Runtime) -> tuple[pa.Table, list[Batch]]:
        """The files that it considers, and the batches that it rewrites. Raises the errors of `run`."""
        check_changeable(base, "OPTIMIZE", changes_rows=False)
        columns = self._layout_columns(base)
        files = select_files(base, self.where)
        return files, self._batches(base, files, columns, runtime)

    def _layout_columns(self, base: Snapshot) -> tuple[Path, ...]:
        """The columns by which rows are laid out."""
        clustered = base.clustering_columns
        if clustered and self.zorder_by:
            by = ", ".join(sql_names(clustered))
            reason = (
                f"OPTIMIZE of a table with clustering cannot specify ZORDER BY; without it the order is that of {by}."
            )
            raise InvalidOption(option="ZORDER BY", value=sql_names(self.zorder_by), reason=reason)
        if self.full and not clustered:
            raise InvalidOption(option="FULL", value="true", reason="the table has no clustering columns.")
        if clustered and self.where is not EVERY_ROW:
            raise InvalidOption(
                option="WHERE", value=self.where.text, reason="the table is clustered, not partitioned."
            )
        check_zorder(columns := resolve_columns(self.zorder_by, base.schema, "ZORDER BY"), base.metadata)
        return clustered or columns

    def _batches(self, base: Snapshot, files: pa.Table, columns: Sequence[Path], runtime: Runtime) -> list[Batch]:
        target = packing.target_size(base.properties, pc.sum(base.files["size"]).as_py() or 0)
        if not columns:
            return [Batch(group) for group in packing.plan(files, target)]
        kind: Kind = "hilbert" if base.clustering_columns else "zorder"
        cube = Cube(tuple(format_column_list([column]) for column in columns), kind)
        groups = layout(files, cube, target, full=self.full)
        curve = Curve(cube.columns, kind)
        return [Batch(group.files, curve, group.outputs, cube.tags(runtime.new_id())) for group in groups]

    def _parameters(self, base: Snapshot) -> dict[str, str]:
        predicate = [] if self.where is EVERY_ROW else [self.where.text]
        return {
            "predicate": compact_json(predicate),
            "zOrderBy": compact_json(sql_names(self.zorder_by)),
            "clusterBy": compact_json(sql_names(base.clustering_columns)),
            "auto": str(self.auto).lower(),
        }


def select_files(base: Snapshot, where: Condition) -> pa.Table:
    """The live files of the partitions that a condition over partition columns selects. Raises InvalidCondition: it
    names other columns, or cannot be decided by partition values.
    """
    if where is EVERY_ROW:
        return base.files
    if where.columns is None or where.columns - set(base.partition_columns):
        other_columns = sorted((where.columns or frozenset()) - set(base.partition_columns))
        names = (
            f"non-partition column '{other_columns[0]}'"
            if other_columns
            else "columns that are not known from its text"
        )
        partition_names = ", ".join(base.partition_columns)
        reason = f"Predicate references {names}. Only the partition columns may be referenced: [{partition_names}]."
        raise InvalidCondition(expression=where.text, table=base.table, reason=reason)
    could, must = base.facts.could_match(where.predicate), base.facts.must_match(where.predicate)
    if could != must:
        reason = "the partition values alone do not decide which partitions it selects."
        raise InvalidCondition(expression=where.text, table=base.table, reason=reason)
    return filter_files(base.files, could)


def result_of(log: Log, committed: CommitResult | None, considered: int) -> OptimizeResult:
    """The result, with the numbers of the commit: other transactions may have moved some of the files meanwhile. A
    failure to read the commit is only logged.
    """
    commit = None
    if committed is not None:
        try:
            commit = log.read(committed.version, log.snapshot().partition_keys)
        except AnabranchError as error:
            _logger.warning("version %s of %s stands, and cannot be described: %s", committed.version, log.table, error)
    if committed is None or commit is None:
        return OptimizeResult(committed, {}, considered)
    metrics = commit.head.info.get("operationMetrics") or {}
    relocation = relocation_of(commit)
    partitions = {tuple(values) for values in commit.removes["partitionValues"].to_pylist()}
    return OptimizeResult(
        committed,
        {name: int(value) for name, value in metrics.items()},
        considered,
        len(relocation.groups) if relocation is not None else 0,
        len(partitions),
        tuple(sorted(commit.removes["size"].to_pylist())),
        tuple(sorted(commit.adds["size"].to_pylist())),
    )
