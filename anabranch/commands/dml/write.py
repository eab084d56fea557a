"""Writes a DataFrame: appends, overwrites or creates a table, by the engine's own bulk writer.

Knows what each kind of overwrite replaces: every row, the rows that a condition selects, or the partitions of the new
rows. Conflicts are checked as for a DELETE of exactly those, together with an INSERT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import AppTransaction, Metadata, Protocol
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.rules.table_rules import Rules, rules_of
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.session_settings import current
from anabranch._protocol.settings import REPLACES_BY_DATA
from anabranch._protocol.stats.skipping import must_match
from anabranch._protocol.steps import Step
from anabranch._storage.contract import Store
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, IdentityUse
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.auto_compaction import compact_after
from anabranch.commands.dml.identity_values import columns_to_generate, provided_columns, reserve
from anabranch.commands.dml.insert import MODES, Insert, run_insert
from anabranch.commands.dml.matched_rows import MatchedRows, Matching
from anabranch.commands.dml.new_rows import NewRows, StagedRows
from anabranch.commands.dml.new_table import MetadataChange, NewTable, with_session_defaults
from anabranch.commands.dml.replaced_rows import (
    EveryRow,
    NothingReplaced,
    ReplacedRows,
    SelectedRows,
    WrittenPartitions,
)
from anabranch.commands.engine import Backend, Engine
from anabranch.commands.idempotence import application_of
from anabranch.commands.opening import Location, SecretFree, file_set, filter_files, live_rows, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.sources import VersionsRead, versions_read
from anabranch.commands.staging import Staging
from anabranch.commands.watching import report_step, watch
from anabranch.errors import IncompatibleOptions, InvalidOption, NonPartitionColumn, ReplaceWhereMismatch

SchemaChange = Literal["merge", "overwrite"]


@dataclass(frozen=True)
class StreamBatch:
    """A batch of a streaming query, which is written exactly once: the query's id, the batch's number, the output mode,
    and whether values of other types are cast to the table's.
    """

    query: str
    number: int
    mode: str
    casts: bool = False


@dataclass(frozen=True)
class Write(SecretFree):
    """Write a source's rows to ``table``.

    Modes: ``append`` (a blind append: it conflicts with nothing), ``overwrite`` (replaces every row), ``error`` and
    ``ignore`` (create the table only). If the source reads the same table, the write counts as having read all of that
    version.

    Attributes:
        replace_where: an overwrite replaces the rows that this condition selects, and adds only such rows.
        matching: an overwrite replaces the rows that its source matches. ``source`` is then ``matching.to_write`` of
            the source of ``matching``.
        dynamic: an overwrite replaces the partitions of its rows; on a table without partitions, every row.
        txn: the application transaction; if the log records its number already, nothing is written.
        reads_target: the version of this table from which the rows were computed, for sources that do not show it.
        schema_change: ``merge`` adds the columns that only the rows have; ``overwrite`` lets an overwrite of the whole
            table replace its columns, its partitioning and its clustering, which become empty if ``partition_by`` and
            ``cluster_by`` are None. A write that changes the schema is not blind.
        description: the description of a new table.
        replaces: an overwrite also replaces all metadata, as REPLACE TABLE does.
        creates: the table need not exist.
        as_select: the history names a creation CREATE TABLE AS SELECT instead of WRITE.
        optimized: whether to write few files; None: as the session or the table specifies.
        batch: the batch of a streaming query to which the rows belong; it numbers the write as ``txn`` does.
        reads_anew: a second run computes the source's rows again.
        codec, most_rows: the compression of files, and the maximum number of rows in one; None: as the table specifies,
            and no maximum.

    Example:
        >>> Write("/data/flights", df, "append").run(engine)
    """

    table: Location
    source: Any = field(repr=False)
    mode: str = "error"
    partition_by: tuple[str, ...] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    user_metadata: str | None = None
    replace_where: Condition | None = None
    matching: Matching | None = None
    dynamic: bool = False
    txn: AppTransaction | None = None
    reads_target: int | None = None
    schema_change: SchemaChange | None = None
    cluster_by: tuple[Path, ...] | None = None
    description: str | None = None
    replaces: bool = False
    optimized: bool | None = None
    creates: bool = True
    as_select: bool = False
    codec: str | None = None
    most_rows: int | None = None
    batch: StreamBatch | None = None
    reads_anew: bool = field(default=False, compare=False)
    storage_options: Mapping[str, str] | None = None

    @watch("WRITE")
    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        None if the mode is ``ignore`` and there is a table, or if ``txn`` was committed before.

        Raises:
            SchemaMismatch: a column does not fit the table.
            ReplaceWhereMismatch: ``replace_where`` does not select some row.
            TableAlreadyExists: mode ``error`` and there is a table.
            DeltaConcurrentModificationException: it conflicts with a winner.
        """
        engine, runtime = require_engine(engine, self), context.runtime
        self._check()
        log = open_log(self.table, self.storage_options)
        base = context.snapshot_if_any(log) if self.matching is None else context.snapshot(log)
        self._check_conditions(base, engine)
        self._check_replaced(log.table, base)
        rows = _SourceRows(self, engine, log, runtime)
        info = CommitInfo(self._operation(), self._parameters(), user_metadata=self.user_metadata)
        insert = Insert(
            log,
            self.mode,
            self._new_table(engine),
            rows,
            info,
            txn=application_of(self._txn),
            at=base,
            change=self._metadata_change,
            casts=self.casts,
        )
        committed = run_insert(insert, context)
        compact_after(committed, base, log, engine, runtime)
        return committed

    def _check_conditions(self, base: Snapshot | None, engine: Engine) -> None:
        """Check that the condition of the rows that it replaces fits the table."""
        if base is None:
            return
        no_files = file_set(base, base.files.slice(0, 0))
        if self.replace_where is not None:
            engine.check(no_files, self.replace_where, None)
        if self.matching is not None:
            engine.check_merge(no_files, self.matching.plan, self.matching.source)

    def _new_table(self, engine: Engine) -> NewTable:
        """The table that it creates, or whose definition replaces the table's."""
        columns = lambda: all_nullable(engine.describe(self.source))  # noqa: E731
        new = NewTable(columns, self.partition_by, self.properties, None, self.description, self.cluster_by)
        return with_session_defaults(replace(new, partition_columns=self.partition_by or ())) if self.replaces else new

    @property
    def _txn(self) -> AppTransaction | None:
        return self.txn if self.batch is None else AppTransaction(self.batch.query, self.batch.number)

    @property
    def casts(self) -> bool:
        """Whether values of other types are cast to the table's."""
        return self.batch is not None and self.batch.casts

    @property
    def may_replace_columns(self) -> bool:
        """Whether it replaces every row of the table, so that ``schema_change`` may be ``overwrite``."""
        return self.mode == "overwrite" and self._part is None

    @property
    def _part(self) -> str | None:
        """The option that says which part of the table an overwrite replaces; None if it replaces all of it."""
        if self.replace_where is not None:
            return "replaceWhere"
        if self.matching is not None:
            return self.matching.option
        return "partitionOverwriteMode=dynamic" if self.dynamic else None

    def _operation(self) -> str:
        """The name of the operation in the history."""
        if self.batch is not None:
            return "STREAMING UPDATE"
        if self.replaces:
            return "CREATE OR REPLACE TABLE AS SELECT" if self.creates else "REPLACE TABLE AS SELECT"
        return "CREATE TABLE AS SELECT" if self.as_select else "WRITE"

    def _check(self) -> None:
        if self.mode not in MODES:
            raise InvalidOption(option="mode", value=self.mode, reason="it takes " + ", ".join(MODES) + ".")
        if self.replace_where is not None and self.mode != "overwrite":
            reason = f"it needs mode overwrite, and this is mode {self.mode}."
            raise InvalidOption(option="replaceWhere", value=self.replace_where.text, reason=reason)
        if self.replace_where is not None and self.dynamic:
            reason = "partitionOverwriteMode=dynamic says in another way what is replaced."
            raise InvalidOption(option="replaceWhere", value=self.replace_where.text, reason=reason)

        if self.matching is not None and self.mode != "overwrite":
            reason = f"it needs mode overwrite, and this is mode {self.mode}."
            raise InvalidOption(option=self.matching.option, value=self.matching.where.text, reason=reason)
        if self._replaces_schema and self.matching is not None:
            raise IncompatibleOptions(option="overwriteSchema", other=self.matching.option, value="true", reason="")
        if self._replaces_schema and self._part is not None:
            reason = f"{self._part} keeps rows, which the new columns may not fit; use mergeSchema to add columns."
            raise InvalidOption(option="overwriteSchema", value="true", reason=reason)

    def _check_replaced(self, table: str, at: Snapshot | None) -> None:
        """Raises an error if ``replace_where`` names other than partition columns and the session forbids that."""
        if self.replace_where is None or current().replaces_by_data:
            return
        columns = (self.partition_by or ()) if at is None else at.partition_columns
        predicate_columns = self.replace_where.columns
        other = (
            ["a column that is not known"] if predicate_columns is None else sorted(predicate_columns - set(columns))
        )
        if other:
            raise NonPartitionColumn(
                table=table,
                predicate=self.replace_where.text,
                column=other[0],
                columns=", ".join(columns) or "none",
                setting=REPLACES_BY_DATA,
            )

    @property
    def _replaces_schema(self) -> bool:
        return self.schema_change == "overwrite" and self.mode == "overwrite"

    @property
    def _metadata_change(self) -> MetadataChange | None:
        """Its change of the table's metadata; only an overwrite replaces columns."""
        if self.replaces:
            return "replace"
        return self.schema_change if self._replaces_schema or self.schema_change == "merge" else None

    def _parameters(self) -> dict[str, str]:
        """The parameters in the history: those of a batch, or those besides mode and partitioning."""
        if self.batch is not None:
            mode, query = self.batch.mode.capitalize(), self.batch.query
            return {"outputMode": mode, "queryId": query, "epochId": str(self.batch.number)}
        if self.mode != "overwrite":
            return {}
        if self.matching is not None:
            return dict(self.matching.parameters)
        where = {"predicate": self.replace_where.text} if self.replace_where is not None else {}
        return {**where, "isDynamicPartitionOverwrite": "true"} if self.dynamic else where


class _SourceRows(NewRows):
    """The rows of a write's source. They are staged in one job folder, or in two after a lost creation race."""

    def __init__(self, write: Write, engine: Engine, log: Log, runtime: Runtime) -> None:
        self._write, self._engine, self._log, self._runtime = write, engine, log, runtime
        checks = current().checks_replaced or not current().replaces_by_data
        self._checked = write.replace_where if checks else None
        self._writer = str(runtime.new_id())
        self._staging: Staging | None = None
        self._matched: MatchedRows | None = None

    def versions_read(self, base: Snapshot | None) -> VersionsRead:
        """The versions of the table that the source and ``replace_where`` read."""
        write, matching = self._write, self._write.matching
        return versions_read(
            self._engine,
            base,
            source=write.source if matching is None else matching.source,
            where=write.replace_where if matching is None else matching.where,
            matching=None if matching is None else matching.plan,
            declared=write.reads_target,
            held=not write.reads_anew,
        )

    def replaced_rows(self, base: Snapshot) -> ReplacedRows:
        """The rows that an overwrite replaces: of a condition, that its source matches, of partitions, or every row."""
        where, dynamic = self._write.replace_where, self._write.dynamic
        if self._write.mode != "overwrite":
            return NothingReplaced()
        if where is not None:
            return SelectedRows(where, base, self._engine, self._new_staging(base.store))
        if self._write.matching is not None:
            staging = self._new_staging(base.store)
            self._matched = MatchedRows(self._write.matching, base, self._engine, staging)
            return self._matched
        return WrittenPartitions(base) if dynamic and base.partition_columns else EveryRow(base)

    def stage(self, metadata: Metadata, protocol: Protocol) -> StagedRows:
        """Write the rows into a new folder. Raises ReplaceWhereMismatch: ``replace_where`` does not select some row."""
        rows = self._write.source if self._matched is None else self._matched.hold()
        staging = self._staging = self._new_staging(self._log.store)
        staging.start()
        report_step("writing")
        source, provided = self._with_identities(rows, metadata.schema, staging)
        steps, table = list[Step](), self._log.table
        writer, rules = self._engine.telling(steps.append), self._rules(metadata, protocol)
        schema, columns = metadata.schema, metadata.partition_columns
        staging.note(writer.write(source, schema, columns, table, staging.folder, rules))
        adds = staging.collect(metadata)
        if self._checked is not None:
            check_selected(adds, metadata, self._checked, table, self._engine)
        return StagedRows(adds, IdentityUse(frozenset({self._writer}), provided), tuple(steps))

    def discard(self) -> None:
        """Remove the current folder."""
        if self._staging is not None:
            self._staging.discard()

    def finish(self) -> None:
        """Remove temporary files, and close the job folder's markers."""
        if self._staging is not None:
            self._staging.sweep()
            self._staging.finish()

    def _rules(self, metadata: Metadata, protocol: Protocol) -> Rules:
        """The table's rules with the write's own options."""
        rules, write = rules_of(metadata, writer_features(protocol)), self._write
        return replace(
            rules,
            optimized_asked=write.optimized,
            codec=write.codec or rules.codec,
            most_rows=write.most_rows,
            casts=write.casts,
            replaceable=write.may_replace_columns,
        )

    def _new_staging(self, store: Store) -> Staging:
        return Staging(store, str(self._runtime.new_id()))

    def _with_identities(self, source: Any, schema: Struct, staging: Staging) -> tuple[Any, frozenset[str]]:
        """The source with values for the identity columns that it lacks, reserved for exactly its number of rows; and
        those for which it has its own.
        """
        engine, table = self._engine, self._log.table
        given = engine.describe(source).names if identities(schema) else ()
        missing, provided = columns_to_generate(schema, given, table), provided_columns(schema, given)
        if not missing:
            return source, provided
        held = engine.hold(source, schema, table, staging.folder)
        names = [identity.column for identity in missing]
        values = reserve(self._log, names, held.rows, self._writer, self._runtime)
        return engine.with_numbers(held, values), provided


def check_selected(adds: pa.Table, metadata: Metadata, where: Condition, table: str, engine: Backend) -> None:
    """Raises ReplaceWhereMismatch unless a condition is TRUE for every row of these new files; it runs the condition on
    the files themselves.
    """
    schema, columns = metadata.schema, metadata.partition_columns
    undecided = filter_files(adds, pc.invert(must_match(where.predicate, adds, schema, columns)))
    selected = engine.find(FileSet(table, schema, columns, undecided, {}), where) if len(undecided) else {}
    count = (live_rows(undecided) or 0) - count_of(selected)
    if count:
        raise ReplaceWhereMismatch(table=table, predicate=where.text, count=count, rows=live_rows(adds))
