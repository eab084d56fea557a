"""OPTIMIZE: the same rows in fewer files, or in an order in which more of them can be skipped.

Knows which files are worth writing anew; how that is done and placed, `moving` does. Guarantees: no reader sees a
difference but in speed; what is as it should be is left alone, so that a second run does nothing; no writer of rows
fails because of it, nor it because of one.

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
from anabranch._transaction.commit import Committed
from anabranch._transaction.phases import reach
from anabranch._transaction.relocation import relocation_of
from anabranch._transaction.retry import Runtime
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.moving import Batch, Move
from anabranch.commands.opening import Location, Masked, only, open_log
from anabranch.commands.watching import watched
from anabranch.errors import AnabranchError, InvalidCondition, InvalidOption
from anabranch.errors.html import ShownAsTable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Optimized(ShownAsTable):
    """What OPTIMIZE did: where it stands, None where there was nothing to do; ``metrics`` in Delta's names."""

    committed: Committed | None
    metrics: Mapping[str, int]
    considered: int = 0
    batches: int = 0
    partitions: int = 0
    removed: tuple[int, ...] = ()
    """The sizes of the files that were taken away."""
    added: tuple[int, ...] = ()
    """The sizes of those that took their place."""


@dataclass(frozen=True)
class Optimize(Masked):
    """Lay out the files of ``table`` anew where that is worth it.

    Attributes:
        where: over partition columns only: which partitions.
        zorder_by: the columns by whose values rows are laid together, of tables that have no clustering columns.
        full: lay out all files of a clustered table anew, also those that were laid out before.
        auto: whether a writer runs it after its commit, by the table's properties.
        workers: how many batches are written at once.

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

    @watched("OPTIMIZE")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Optimized:
        """Run it at the version for which ``where`` was understood, or at the newest.

        Raises:
            InvalidOption, InvalidCondition: the table cannot be laid out so.
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
        return outcome_of(log, move.run(engine, log, context), len(files))

    def plan_batches(self, base: Snapshot, runtime: Runtime) -> tuple[pa.Table, list[Batch]]:
        """The files that it looks at, and those of them that it writes anew together. Raises as `run` does."""
        check_changeable(base, "OPTIMIZE", changes_rows=False)
        columns = self._layout_columns(base)
        files = select_files(base, self.where)
        return files, self._batches(base, files, columns, runtime)

    def _layout_columns(self, base: Snapshot) -> tuple[Path, ...]:
        """The columns to lay rows out by."""
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
        return [Batch(each.files, curve, each.outputs, cube.tags(runtime.new_id())) for each in groups]

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
    names others, or cannot be understood.
    """
    if where is EVERY_ROW:
        return base.files
    if where.columns is None or where.columns - set(base.partition_columns):
        others = sorted((where.columns or frozenset()) - set(base.partition_columns))
        names = f"non-partition column '{others[0]}'" if others else "what cannot be told from its text"
        known = ", ".join(base.partition_columns)
        reason = f"Predicate references {names}. Only the partition columns may be referenced: [{known}]."
        raise InvalidCondition(expression=where.text, table=base.table, reason=reason)
    could, must = base.facts.could_match(where.predicate), base.facts.must_match(where.predicate)
    if could != must:
        reason = "it cannot be told from the partition values alone which partitions it selects."
        raise InvalidCondition(expression=where.text, table=base.table, reason=reason)
    return only(base.files, could)


def outcome_of(log: Log, committed: Committed | None, considered: int) -> Optimized:
    """What was done, in numbers, as the log has it: others may have moved a part of it meanwhile. It is done, whether
    that can be read or not.
    """
    commit = None
    if committed is not None:
        try:
            commit = log.read(committed.version, log.snapshot().partition_keys)
        except AnabranchError as error:
            _logger.warning("version %s of %s stands, and cannot be described: %s", committed.version, log.table, error)
    if committed is None or commit is None:
        return Optimized(committed, {}, considered)
    said = commit.head.info.get("operationMetrics") or {}
    relocation = relocation_of(commit)
    partitions = {tuple(each) for each in commit.removes["partitionValues"].to_pylist()}
    return Optimized(
        committed,
        {name: int(value) for name, value in said.items()},
        considered,
        len(relocation.groups) if relocation is not None else 0,
        len(partitions),
        tuple(sorted(commit.removes["size"].to_pylist())),
        tuple(sorted(commit.adds["size"].to_pylist())),
    )
