"""REORG … APPLY (PURGE): files without what is deleted or dropped in them.

Knows which files hold deleted rows, or columns that the table no longer has. Judged as OPTIMIZE: the rows are the same
afterwards, and each is recorded where it went. The old bytes go with the next VACUUM.

Source: Databricks documentation, "REORG TABLE" and "Purge metadata-only deletes to force data rewrite".
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features.row_tracking import without_hidden_columns
from anabranch._protocol.schema.column_mapping import file_schema, is_mapped
from anabranch._transaction.phases import reach
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.field_id_names import layout_of, schema_of
from anabranch.commands.maintenance.optimize import Optimized, outcome_of, select_files
from anabranch.commands.moving import Batch, Move
from anabranch.commands.opening import Location, Masked, only, open_log
from anabranch.commands.rewriting import PURGE
from anabranch.commands.watching import watched


@dataclass(frozen=True)
class Purge(Masked):
    """Write anew each file of ``table`` in which rows are deleted, or columns are left that were dropped.

    Attributes:
        where: over partition columns only: which partitions.
        workers: how many files are written at once.

    Example:
        >>> Purge("/data/flights").run(engine).metrics["numRemovedFiles"]
    """

    table: Location
    where: Condition = EVERY_ROW
    workers: int = 1

    @watched("REORG")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Optimized:
        """Run it at the version for which ``where`` was understood, or at the newest.

        Raises:
            InvalidCondition: the condition names other columns than those that partition the table.
            DeltaConcurrentModificationException: its metadata or protocol was changed meanwhile.
        """
        engine, base = require_engine(engine, self), context.snapshot(open_log(self.table))
        check_changeable(base, "REORG", changes_rows=False)
        reach("read")
        files = select_files(base, self.where)
        chosen = only(files, _to_purge(base, files))
        batches = [Batch(chosen.slice(i, 1)) for i in range(len(chosen))]
        where = {} if self.where is EVERY_ROW else {"predicate": compact_json([self.where.text])}
        move = Move(base, batches, "REORG", {**PURGE, **where}, workers=self.workers)
        log = Log(base.store)
        return outcome_of(log, move.run(engine, log, context), len(files))


def _to_purge(base: Snapshot, files: pa.Table) -> pa.BooleanArray:
    """Whether each file holds deleted rows, or columns that were dropped; without names of their own none can be."""
    marked = pc.is_valid(files["deletionVector"]).combine_chunks()
    if not is_mapped(base.metadata.configuration):
        return marked
    return pc.or_(marked, pa.array([_holds_more(base, path) for path in files["path"].to_pylist()], pa.bool_()))


def _holds_more(base: Snapshot, path: str) -> bool:
    """Whether a file has a column, or a member of one, that the table has not."""
    there = schema_of(base.store, base.metadata, path)
    wanted = file_schema(layout_of(base.metadata, there, base.table, path))
    known = [*wanted, *(pa.field(name, pa.null()) for name in base.metadata.partition_keys)]
    return _more(list(without_hidden_columns(there, base.metadata)), known)


def _more(there: list[pa.Field], wanted: list[pa.Field]) -> bool:
    by_name = {field.name: field for field in wanted}
    return any(each.name not in by_name or _more_inside(each.type, by_name[each.name].type) for each in there)


def _more_inside(there: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(there) and pa.types.is_struct(wanted):
        return _more(list(there), list(wanted))
    if pa.types.is_map(there) and pa.types.is_map(wanted):
        return _more_inside(there.key_type, wanted.key_type) or _more_inside(there.item_type, wanted.item_type)
    if pa.types.is_list(there) and pa.types.is_list(wanted):
        return _more_inside(there.value_type, wanted.value_type)
    return False
