"""Appends rows in memory (Arrow, pandas, dicts) without an engine: one small file per partition and one commit.

Knows Arrow tables. A blind append: it reads protocol and metadata only, never an ``add``, and conflicts with nothing.
One put writes and syncs each small file, so it needs no job folder and no marker.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._arrow.fitting import fit_to_rules
from anabranch._arrow.reading import map_ahead
from anabranch._arrow.site import site_without_spark
from anabranch._log.log import Log
from anabranch._protocol.actions import AppTransaction, Metadata, Protocol, files_table
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.materialised_partitions import folder_keys
from anabranch._protocol.parquet_files import nan_free, parquet_bytes
from anabranch._protocol.partitions import hive_segment, split, write_values
from anabranch._protocol.properties import Properties
from anabranch._protocol.rules.table_rules import Rules, rules_of
from anabranch._protocol.schema.column_mapping import file_schema, is_mapped, relabel
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import (
    Field,
    Struct,
    check_depth,
    from_arrow,
)
from anabranch._protocol.schema.voids import check_writable, columns_in_files, without_voids
from anabranch._protocol.steps import WRITE_ROWS, Step
from anabranch._storage.store_settings import bind_context
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.open_transaction import open_transaction
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, IdentityUse
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.dml.identity_values import columns_to_generate, provided_columns, reserve
from anabranch.commands.dml.insert import Insert, run_insert
from anabranch.commands.dml.new_rows import NewRows, StagedRows
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.engine import Engine
from anabranch.commands.idempotence import application_of
from anabranch.commands.jobs import shared_job
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.staging import describe_file, remove
from anabranch.commands.watching import watch
from anabranch.errors import (
    AnabranchError,
    InvalidOption,
    PutOutcomeUnknown,
    StagedFilesVacuumed,
    StoreError,
)
from anabranch.errors.rows import NOT_SHOWN, may_show_rows, shows

_NESTED = (list, tuple, dict)
_FEW_FILES = 8
"""Maximum number of files that are written one after the other, without threads."""
_TIMES_STAGED = 10
"""Maximum number of times that an append writes its files, if VACUUMs remove them each time."""
_KINDS = "an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists"


@dataclass(frozen=True)
class Append(SecretFree):
    """Append rows to ``table``; create it, with the schema of the rows, if it does not exist.

    Attributes:
        rows: Arrow, pandas or dicts.
        txn: the application transaction; if the log records its number already, nothing is written.
        schema_change: ``merge`` adds the columns and members that only the rows have, and widens types where the table
            allows it; then the append is not blind.

    Example:
        >>> Append("/data/flights", [{"carrier": "UA", "flight": 1545}]).run().version
        0
    """

    table: Location
    rows: Any = field(repr=False)
    partition_by: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] | None = None
    user_metadata: str | None = None
    txn: AppTransaction | None = None
    cluster_by: tuple[Path, ...] | None = None
    schema_change: Literal["merge"] | None = None

    @watch("APPEND")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult:
        """Run it; returns the commit of the rows.

        If ``txn`` was committed before, it writes nothing and returns the newest version, with 0 attempts.

        Raises:
            SchemaMismatch: a column does not fit the table.
            RowViolation: a row breaks a rule of the table.
            NotBuilt: the table has a rule that only Spark can check.
            ConcurrentTransactionException: the same application wrote meanwhile.
            MetadataChangedException: the columns change, and others changed them meanwhile.
            CommitOutcomeUnknown: the store never answered.
        """
        if self.schema_change not in (None, "merge"):
            reason = "it takes merge or None: an append keeps the rows of the table, and so its columns."
            raise InvalidOption(option="schema_change", value=f"{self.schema_change}", reason=reason)
        rows = self.as_table(self.rows)
        return replace(self, rows=rows if open_transaction() is None else _copy_of(rows))._run(engine, context)

    @rerunnable
    def _run(self, engine: Engine | None, context: RunContext) -> CommitResult:
        table: pa.Table = self.rows
        for _ in range(_TIMES_STAGED - 1):
            with suppress(StagedFilesVacuumed):  # the rows are still in memory
                return self._once(table, context)
        return self._once(table, context)

    def as_table(self, rows: Any) -> pa.Table:
        """Rows for this table as an Arrow table. Raises InvalidOption, InvalidSchema: see `as_arrow`."""
        return as_arrow(rows, self._shows)

    def _shows(self) -> bool:
        """Whether an error may quote the rows, by the table's properties or those of its creation."""
        log = open_log(self.table, self.storage_options)
        return shows(self.properties) and (log.newest() is None or may_show_rows(log.table))

    def _once(self, table: pa.Table, context: RunContext) -> CommitResult:
        log = open_log(self.table, self.storage_options)
        schema = lambda: all_nullable(from_arrow(table.schema))  # noqa: E731
        new = NewTable(schema, self.partition_by, self.properties, cluster_by=self.cluster_by)
        info = CommitInfo("WRITE", user_metadata=self.user_metadata)
        rows = _ArrowRows(table, log, context.runtime)
        # Values of other types are fitted to the table's, so that only a value that does not fit is refused.
        txn = application_of(self.txn)
        insert = Insert(log, "append", new, rows, info, txn=txn, change=self.schema_change, casts=True)
        committed = run_insert(insert, context)
        return committed or CommitResult(log.snapshot().version, rebased_over=(), attempts=0)


def _copy_of(rows: pa.Table) -> pa.Table:
    """The rows in memory of their own: inside a transaction the program may change its rows before they are appended
    again.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


class _ArrowRows(NewRows):
    """The rows of one append, and their small files."""

    def __init__(self, rows: pa.Table, log: Log, runtime: Runtime) -> None:
        self._rows, self._log, self._runtime = rows, log, runtime
        self._names: list[str] = []
        self._job = shared_job(log.store)
        self._folder = [] if self._job is None else [self._job.folder, self._job.next_part()]
        self._writer = str(runtime.new_id())

    def stage(self, metadata: Metadata, protocol: Protocol) -> StagedRows:
        """Put the files of the rows, fitted to the table; those of a statement among several into the folder of its
        job, so that VACUUM spares them.
        """
        if self._job is not None:
            self._job.start()
        schema, table = metadata.schema, self._log.table
        rows = fit_to_rules(table, self._with_identity_values(schema), schema, rules_of(metadata))
        identity = IdentityUse(frozenset({self._writer}), provided_columns(schema, self._rows.column_names))
        return StagedRows(self._write(rows, metadata, protocol), identity, (Step(WRITE_ROWS),))

    def _with_identity_values(self, schema: Struct) -> pa.Table:
        """The rows with reserved values for the identity columns that they lack."""
        rows = self._rows
        missing = columns_to_generate(schema, rows.column_names, self._log.table)
        names = [identity.column for identity in missing]
        for name, values in reserve(self._log, names, len(rows), self._writer, self._runtime).items():
            rows = rows.append_column(name, pa.array(values, pa.int64()))
        return rows

    def _write(self, rows: pa.Table, metadata: Metadata, protocol: Protocol) -> pa.Table:
        """Write one file per partition, on a few threads if they are many, and describe them."""
        rules = rules_of(metadata, writer_features(protocol))
        keys, codec = folder_keys(metadata, materialised=rules.materialised), rules.compression
        split = split_by_partition(rows, metadata, materialised=rules.materialised)
        parts = [part for part in split if len(part[1])]
        named_parts = [(self._name(values, metadata, keys, codec), values, part) for values, part in parts]

        def write(named_part: tuple[str, Mapping[str, str | None], pa.Table]) -> dict[str, Any]:
            return self._write_one(*named_part, metadata, rules)

        threads = site_without_spark(self._log.store).threads if len(named_parts) > _FEW_FILES else 0
        return files_table([row for _, row in map_ahead(bind_context(write), named_parts, threads, waits=True)])

    def _put(self, name: str, data: bytes) -> None:
        """Put a file, and note its name for `discard`, unless the store certainly refused it."""
        self._names.append(name)
        try:
            self._log.store.put(name, data)
        except PutOutcomeUnknown:
            raise
        except StoreError:
            self._names.remove(name)
            raise

    def discard(self) -> None:
        """Remove the files that were, or may have been, written."""
        remove(self._log.store, self._names)

    def _name(self, values: Mapping[str, str | None], metadata: Metadata, keys: Iterable[str], codec: str) -> str:
        return "/".join(
            [
                *self._folder,
                *self._folders(values, metadata, keys),
                f"part-00000-{self._runtime.new_id()}-c000.{codec}.parquet",
            ]
        )

    def _write_one(
        self, name: str, values: Mapping[str, str | None], rows: pa.Table, metadata: Metadata, rules: Rules
    ) -> dict[str, Any]:
        data = parquet_bytes(to_file_rows(rows, metadata), rules.compression, rules.pages)
        self._put(name, data)
        footer = pq.read_metadata(io.BytesIO(data))
        return describe_file(
            self._log.store,
            metadata,
            name=name,
            values=dict(values),
            modified_ms=self._runtime.now_ms(),
            size=len(data),
            footer=footer,
            nan_free=nan_free(rows),
        )

    def _folders(self, values: Mapping[str, str | None], metadata: Metadata, keys: Iterable[str]) -> list[str]:
        length = Properties(metadata.configuration).prefix_length
        if length:
            return [self._runtime.new_id().hex[:length]]
        named = zip(keys, metadata.partition_keys, strict=True)
        return [hive_segment(folder, values[key]) for folder, key in named]


def to_file_rows(rows: pa.Table, metadata: Metadata) -> pa.Table:
    """Converts rows with some of a table's columns to the form of its files: without voids, with physical names. Raises
    UnwritableVoid: a void is nested where no file can hold it.
    """
    schema = Struct(tuple(map(metadata.schema.field, rows.column_names)))
    check_writable(schema)
    rows, schema = without_voids(rows), columns_in_files(schema)
    return relabel(rows, file_schema(schema)) if is_mapped(metadata.configuration) else rows


def as_arrow(rows: Any, shows: Callable[[], bool] = may_show_rows) -> pa.Table:
    """Converts rows of any kind that `Append` accepts to an Arrow table; ``shows`` decides whether an error may quote
    them.

    Raises:
        InvalidOption: the rows are of another kind. InvalidSchema: they are nested too deep.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if type(rows).__module__.partition(".")[0] == "pandas":
        return _build_table(lambda: pa.Table.from_pandas(_with_named_index(rows), preserve_index=False), shows)
    if type(rows).__module__.startswith("pyspark."):  # it supports Arrow too, but may read this table
        raise InvalidOption(option="rows", value="a DataFrame of Spark", reason="write it by df.write, in mode append.")
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, Mapping):
        _check_nesting(rows.values())
        return _build_table(lambda: pa.table(dict(rows)), shows)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        items = list(rows)
        _check_nesting(items)
        if all(isinstance(row, Mapping) for row in items):  # also true without rows, which add nothing
            names = dict.fromkeys(name for row in items for name in row)  # Arrow would use only the first row's
            return _build_table(lambda: pa.table({name: [row.get(name) for row in items] for name in names}), shows)
    raise InvalidOption(option="rows", value=type(rows).__name__, reason=f"it takes {_KINDS}.")


def _with_named_index(rows: Any) -> Any:
    """A pandas DataFrame with the named levels of its index as columns; an unnamed index only numbers the rows."""
    names = [name for name in rows.index.names if name is not None]
    return rows.reset_index(level=names) if names else rows


def _check_nesting(values: Iterable[Any]) -> None:
    """Raises InvalidSchema if values are nested deeper than types may be: Arrow infers types by recursion, and endless
    nesting would end the process.
    """
    pending = [(item, 0) for item in values if isinstance(item, _NESTED)]
    while pending:
        value, level = pending.pop()
        check_depth(level)
        items = value.values() if isinstance(value, dict) else value
        pending.extend((item, level + 1) for item in items if isinstance(item, _NESTED))


def _build_table(build: Any, shows: Callable[[], bool]) -> pa.Table:
    try:
        return build()
    except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError, RecursionError) as error:
        cause = error if shows() else NOT_SHOWN
        reason = f"they are not a table ({cause}). It takes {_KINDS}."
        raise InvalidOption(option="rows", value="these rows", reason=reason) from None


def split_by_partition(
    rows: pa.Table, metadata: Metadata, *, materialised: bool
) -> Iterator[tuple[Mapping[str, str | None], pa.Table]]:
    """The rows of each partition, without partition columns unless they are ``materialised``, and the partition's
    values in the log's form, by physical name.
    """
    columns = metadata.partition_columns
    texts = [
        _partition_texts(rows.column(name), metadata.schema.field(name), shows(metadata.configuration))
        for name in columns
    ]
    # Materialised partition values come after the other columns.
    data = rows.drop_columns(list(columns))
    if materialised:
        data = rows.select([*data.column_names, *columns])
    yield from split(data, dict(zip(metadata.partition_keys, texts, strict=True)))


def _partition_texts(column: pa.ChunkedArray, target: Field, shown: bool) -> pa.Array:
    try:
        return write_values(column, str(target.type))
    except (AnabranchError, ValueError, OverflowError) as error:
        reason = f"a partition value cannot be written ({error if shown else NOT_SHOWN})."
        raise InvalidOption(option="rows", value=target.name, reason=reason) from (error if shown else None)
