"""REORG … APPLY (PURGE) rewrites files without their deleted rows and dropped columns.

Knows which files hold deleted rows, or columns that the table no longer has. Conflicts are checked as for OPTIMIZE: the
rows stay the same, and the commit records where each moved. The next VACUUM removes the old files.

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
from anabranch._protocol.schema.column_mapping import file_shape, is_mapped
from anabranch._transaction.phases import reach
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.field_id_names import layout_of, schema_of
from anabranch.commands.maintenance.optimize import OptimizeResult, result_of, select_files
from anabranch.commands.moving import Batch, Move
from anabranch.commands.opening import Location, SecretFree, filter_files, open_log
from anabranch.commands.rewriting import PURGE
from anabranch.commands.watching import watch


@dataclass(frozen=True)
class Purge(SecretFree):
    """Rewrite each file of ``table`` that holds deleted rows or dropped columns.

    Attributes:
        where: a condition over partition columns that selects partitions.
        workers: number of files written at once.

    Example:
        >>> Purge("/data/flights").run(engine).metrics["numRemovedFiles"]
    """

    table: Location
    where: Condition = EVERY_ROW
    workers: int = 1

    @watch("REORG")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> OptimizeResult:
        """Run it at the version for which ``where`` was parsed, or at the newest.

        Raises:
            InvalidCondition: the condition names columns that are not partition columns.
            DeltaConcurrentModificationException: its metadata or protocol was changed meanwhile.
        """
        engine, base = require_engine(engine, self), context.snapshot(open_log(self.table))
        check_changeable(base, "REORG", changes_rows=False)
        reach("read")
        files = select_files(base, self.where)
        purgeable = filter_files(files, _to_purge(base, files))
        batches = [Batch(purgeable.slice(i, 1)) for i in range(len(purgeable))]
        where = {} if self.where is EVERY_ROW else {"predicate": compact_json([self.where.text])}
        move = Move(base, batches, "REORG", {**PURGE, **where}, workers=self.workers)
        log = Log(base.store)
        return result_of(log, move.run(engine, log, context), len(files))


def _to_purge(base: Snapshot, files: pa.Table) -> pa.BooleanArray:
    """Whether each file holds deleted rows or dropped columns; without column mapping no column can be dropped."""
    marked = pc.is_valid(files["deletionVector"]).combine_chunks()
    if not is_mapped(base.metadata.configuration):
        return marked
    return pc.or_(marked, pa.array([_holds_more(base, path) for path in files["path"].to_pylist()], pa.bool_()))


def _holds_more(base: Snapshot, path: str) -> bool:
    """Whether a file has a column, or a member of one, that the table does not have."""
    in_file = schema_of(base.store, base.metadata, path)
    in_table = file_shape(layout_of(base.metadata, in_file, base.table, path))
    expected = [*in_table, *(pa.field(name, pa.null()) for name in base.metadata.partition_keys)]
    return _has_more(list(without_hidden_columns(in_file, base.metadata)), expected)


def _has_more(fields: list[pa.Field], expected: list[pa.Field]) -> bool:
    by_name = {field.name: field for field in expected}
    return any(field.name not in by_name or _type_has_more(field.type, by_name[field.name].type) for field in fields)


def _type_has_more(type_: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_struct(type_) and pa.types.is_struct(expected):
        return _has_more(list(type_), list(expected))
    if pa.types.is_map(type_) and pa.types.is_map(expected):
        return _type_has_more(type_.key_type, expected.key_type) or _type_has_more(type_.item_type, expected.item_type)
    if pa.types.is_list(type_) and pa.types.is_list(expected):
        return _type_has_more(type_.value_type, expected.value_type)
    return False
