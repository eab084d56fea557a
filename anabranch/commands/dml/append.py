"""Appending rows that are at hand (Arrow, pandas, dicts), without an engine: one small file per partition and one
commit.

Knows Arrow tables. A blind append: it reads protocol and metadata only, never an ``add``, and conflicts with nothing.
Small files are written and fsynced by one put each, so they need no job folder and no marker.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._arrow.fitting import fit_to_rules
from anabranch._arrow.reading import map_ahead
from anabranch._arrow.site import alone
from anabranch._log.log import Log
from anabranch._protocol.actions import AppTransaction, Metadata, files_table
from anabranch._protocol.iceberg import folder_keys, materialises
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.parquet_files import nan_free, parquet_bytes
from anabranch._protocol.partitions import hive_segment, split, write_values
from anabranch._protocol.properties import Properties
from anabranch._protocol.rules.table_rules import rules_of
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
from anabranch._storage.told import bind_context
from anabranch._transaction.commit import Committed
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.dml.identity_values import own_numbers, reserve, to_generate
from anabranch.commands.dml.insert import Insert, run_insert
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.commands.staging import describe_file, remove
from anabranch.commands.watching import watched
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
"""So many files are written one after the other."""
_TIMES_STAGED = 10
"""So often an append writes its files before it gives up, where VACUUMs remove them each time."""
_KINDS = "an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists"


@dataclass(frozen=True)
class Append(Masked):
    """Append rows to ``table``, or create it with them (schema from the rows) where there is none.

    Attributes:
        rows: Arrow, pandas or dicts.
        txn: how far an application will have written; where it has already, nothing is done.

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

    @watched("APPEND")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed:
        """Run it; returns the version at which the rows stand.

        Where ``txn`` was committed before nothing is done, in no attempts, and that is the newest version.

        Raises:
            SchemaMismatch: a column does not fit the table.
            RowViolation: a row breaks a rule of the table.
            NotBuilt: the table has a rule that only Spark can hold.
            ConcurrentTransactionException: the same application wrote meanwhile.
            CommitOutcomeUnknown: the store never answered.
        """
        table = self.as_table(self.rows)
        for _ in range(_TIMES_STAGED - 1):
            with suppress(StagedFilesVacuumed):  # the rows are still at hand
                return self._once(table, context)
        return self._once(table, context)

    def as_table(self, rows: Any) -> pa.Table:
        """Rows for this table as an Arrow table. Raises InvalidOption, InvalidSchema: see `as_arrow`."""
        return as_arrow(rows, self._shows)

    def _shows(self) -> bool:
        """Whether an error may quote the rows, by the table's properties, or those that it would be made with."""
        log = open_log(self.table, self.storage_options)
        return shows(self.properties) and (log.newest() is None or may_show_rows(log.table))

    def _once(self, table: pa.Table, context: RunContext) -> Committed:
        log = open_log(self.table, self.storage_options)
        files = _SmallFiles(log, context.runtime)

        def stage(metadata: Metadata) -> pa.Table:
            rows, rules = files.with_identity_values(table, metadata), rules_of(metadata)
            return files.write(fit_to_rules(log.table, rows, metadata.schema, rules), metadata)

        schema = lambda: all_nullable(from_arrow(table.schema))  # noqa: E731
        insert = Insert(
            log=log,
            mode="append",
            new=NewTable(schema, self.partition_by, self.properties, cluster_by=self.cluster_by),
            stage=stage,
            discard=files.discard,
            finish=lambda: None,
            user_metadata=self.user_metadata,
            txn=self.txn,
            writer=files.writer,
            own_numbers=lambda: files.own_numbers,
            steps=lambda: [Step(WRITE_ROWS)],
        )
        committed = run_insert(insert, context)
        return committed or Committed(log.snapshot().version, rebased_over=(), attempts=0)


class _SmallFiles:
    """The files of one append."""

    def __init__(self, log: Log, runtime: Runtime) -> None:
        self._log, self._runtime = log, runtime
        self._names: list[str] = []
        self.writer = str(runtime.new_id())
        self.own_numbers: frozenset[str] = frozenset()

    def with_identity_values(self, rows: pa.Table, metadata: Metadata) -> pa.Table:
        """The rows with reserved values for the identity columns that they lack."""
        missing = to_generate(metadata.schema, rows.column_names, self._log.table)
        self.own_numbers = own_numbers(metadata.schema, rows.column_names)
        names = [each.column for each in missing]
        for name, values in reserve(self._log, names, len(rows), self.writer, self._runtime).items():
            rows = rows.append_column(name, pa.array(values, pa.int64()))
        return rows

    def write(self, rows: pa.Table, metadata: Metadata) -> pa.Table:
        """Write one file per partition, on a few threads where they are many, and describe them."""
        parts = [each for each in split_by_partition(rows, metadata) if len(each[1])]
        codec = rules_of(metadata).codec
        named = [(self._name(values, metadata, codec), values, part) for values, part in parts]

        def write(each: tuple[str, Mapping[str, str | None], pa.Table]) -> dict[str, Any]:
            return self._write_one(*each, metadata, codec)

        threads = alone(self._log.store).threads if len(named) > _FEW_FILES else 0
        return files_table([row for _, row in map_ahead(bind_context(write), named, threads, waits=True)])

    def _put(self, name: str, data: bytes) -> None:
        """Put a file; what the store refused for certain is not there to be removed."""
        self._names.append(name)
        try:
            self._log.store.put(name, data)
        except PutOutcomeUnknown:
            raise
        except StoreError:
            self._names.remove(name)
            raise

    def discard(self) -> None:
        """Remove the files that were written, or may have been."""
        remove(self._log.store, self._names)

    def _name(self, values: Mapping[str, str | None], metadata: Metadata, codec: str) -> str:
        return "/".join([*self._folders(values, metadata), f"part-00000-{self._runtime.new_id()}-c000.{codec}.parquet"])

    def _write_one(
        self, name: str, values: Mapping[str, str | None], rows: pa.Table, metadata: Metadata, codec: str
    ) -> dict[str, Any]:
        data = parquet_bytes(to_file_rows(rows, metadata), codec)
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

    def _folders(self, values: Mapping[str, str | None], metadata: Metadata) -> list[str]:
        length = Properties(metadata.configuration).prefix_length
        if length:
            return [self._runtime.new_id().hex[:length]]
        keys = zip(folder_keys(metadata), metadata.partition_keys, strict=True)
        return [hive_segment(folder, values[key]) for folder, key in keys]


def to_file_rows(rows: pa.Table, metadata: Metadata) -> pa.Table:
    """Rows with a table's columns, or some of them, as its files hold them: without voids, and under other names.
    Raises UnwritableVoid: void stands where no file could hold such rows.
    """
    schema = Struct(tuple(map(metadata.schema.field, rows.column_names)))
    check_writable(schema)
    rows, schema = without_voids(rows), columns_in_files(schema)
    return relabel(rows, file_schema(schema)) if is_mapped(metadata.configuration) else rows


def as_arrow(rows: Any, shows: Callable[[], bool] = may_show_rows) -> pa.Table:
    """Rows of any of the kinds that `Append` takes as one Arrow table; ``shows`` says whether an error may quote them.

    Raises:
        InvalidOption: they are of no such kind. InvalidSchema: they are nested too deep.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if type(rows).__module__.partition(".")[0] == "pandas":
        return _build_table(lambda: pa.Table.from_pandas(_with_named_index(rows), preserve_index=False), shows)
    if type(rows).__module__.startswith("pyspark."):  # it speaks Arrow too, but may read the very table
        raise InvalidOption(option="rows", value="a DataFrame of Spark", reason="write it by df.write, in mode append.")
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, Mapping):
        _check_nesting(rows.values())
        return _build_table(lambda: pa.table(dict(rows)), shows)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        listed = list(rows)
        _check_nesting(listed)
        if all(isinstance(row, Mapping) for row in listed):  # of no rows too, which are nothing to add
            names = dict.fromkeys(name for row in listed for name in row)  # Arrow would only look at the first row's
            return _build_table(lambda: pa.table({name: [row.get(name) for row in listed] for name in names}), shows)
    raise InvalidOption(option="rows", value=type(rows).__name__, reason=f"it takes {_KINDS}.")


def _with_named_index(rows: Any) -> Any:
    """A pandas DataFrame whose index is columns, as far as it has names; without one it only numbers the rows."""
    named = [name for name in rows.index.names if name is not None]
    return rows.reset_index(level=named) if named else rows


def _check_nesting(values: Iterable[Any]) -> None:
    """Arrow looks for the types of values by recursion, which ends the process where they are nested without end.
    Raises InvalidSchema: they are nested deeper than types may be.
    """
    left = [(each, 0) for each in values if isinstance(each, _NESTED)]
    while left:
        value, level = left.pop()
        check_depth(level)
        inside = value.values() if isinstance(value, dict) else value
        left.extend((each, level + 1) for each in inside if isinstance(each, _NESTED))


def _build_table(build: Any, shows: Callable[[], bool]) -> pa.Table:
    try:
        return build()
    except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError, RecursionError) as error:
        why = error if shows() else NOT_SHOWN
        reason = f"they are not a table ({why}). It takes {_KINDS}."
        raise InvalidOption(option="rows", value="these rows", reason=reason) from None


def split_by_partition(rows: pa.Table, metadata: Metadata) -> Iterator[tuple[Mapping[str, str | None], pa.Table]]:
    """The rows of each partition, without partition columns unless files hold them, and its values as the log writes
    them: by physical name.
    """
    columns = metadata.partition_columns
    texts = [
        _partition_texts(rows.column(name), metadata.schema.field(name), shows(metadata.configuration))
        for name in columns
    ]
    # Where partition values are materialised, they stand behind the other columns.
    data = rows.drop_columns(list(columns))
    if materialises(metadata.configuration):
        data = rows.select([*data.column_names, *columns])
    yield from split(data, dict(zip(metadata.partition_keys, texts, strict=True)))


def _partition_texts(column: pa.ChunkedArray, target: Field, shown: bool) -> pa.Array:
    try:
        return write_values(column, str(target.type))
    except (AnabranchError, ValueError, OverflowError) as error:
        reason = f"a partition value cannot be written ({error if shown else NOT_SHOWN})."
        raise InvalidOption(option="rows", value=target.name, reason=reason) from (error if shown else None)
