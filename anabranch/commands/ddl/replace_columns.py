"""ALTER TABLE … REPLACE COLUMNS declares all columns of a table anew. It writes no row.

Knows which changes delta-spark allows (`anabranch._protocol.replacing`), and what else in a table refers to dropped
columns. The guarantees of `anabranch.commands.ddl.alter` and `anabranch.commands.ddl.rename_and_drop_columns` hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.features.table_features import upgrade_for_metadata
from anabranch._protocol.replacing import paths_to_drop, replace_columns
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.schema.types import Struct, check_storable
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, NewColumn, run_alteration
from anabranch.commands.ddl.change_column import why_type_refused
from anabranch.commands.ddl.rename_and_drop_columns import check_droppable, unlist_stats_columns
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree
from anabranch.commands.rerunning import rerunnable
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class ReplaceColumns(SecretFree):
    """ALTER TABLE … REPLACE COLUMNS (…): gives the table these columns, in this order.

    Columns are matched by name, ignoring case; they may get another position and comment, a wider type, and lose NOT
    NULL. Columns may be added at the end, or dropped under a column mapping, but not both at once.

    Example:
        >>> ReplaceColumns("/data/flights", Struct((Field("carrier", "string"), Field("id", "long")))).run()
    """

    table: Location
    columns: Struct

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table has these columns already.

        Raises:
            InvalidOption: a change is not allowed; it names the column.
            InvalidProperty: a column is dropped without column mapping. ColumnInUse: a rule refers to the column.
            UnsupportedType, UnsupportedFeature: a column of that type is not supported.
            MetadataChangedException: the table was written meanwhile.
        """
        for field in self.columns:
            check_storable(field.type, field.name)
        return run_alteration(self.table, lambda base: self._on(base, context.runtime), context)

    def _on(self, base: Snapshot, runtime: Runtime) -> Alteration:
        for identity in identities(base.schema):
            reason = (
                "ALTER TABLE REPLACE COLUMNS is not supported for a table with IDENTITY columns: change the others one "
                "by one."
            )
            condition = "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"
            raise InvalidOption(
                option="REPLACE COLUMNS", value=identity.column, reason=reason, delta_condition=condition
            )
        schema = replace_columns(base.schema, self.columns, partial(why_type_refused, base))
        dropped = check_droppable(base, list(paths_to_drop(base.schema, self.columns)))
        if set(schema.names) <= set(base.partition_columns):
            reason = "only columns would be left by which the table is partitioned."
            raise InvalidOption(option="REPLACE COLUMNS", value=", ".join(schema.names) or "none", reason=reason)
        metadata = base.metadata
        if schema != base.schema:
            metadata = base.metadata.with_schema(schema, runtime.new_id)
            metadata = replace(metadata, configuration=unlist_stats_columns(metadata.configuration, dropped))
        shown = [NewColumn(field).to_history()["column"] for field in self.columns]
        parameters = {"columns": compact_json(shown)}
        return Alteration("REPLACE COLUMNS", parameters, metadata, upgrade_for_metadata(base.protocol, metadata))
