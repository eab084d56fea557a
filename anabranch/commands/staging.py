"""Staging: a transaction's new files, from the first byte to the commit that references them.

Knows folders and Parquet footers. A bulk write goes to its own folder under the table, that of its job
(`anabranch.commands.jobs`) or one inside, so that no rename is needed, failed attempts are never adopted, and two
writers never share a temporary folder. Guarantee: what `collect` returns is durable, and is all that was written;
staged files are removed only when it is known that no commit references them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.footers import read_footer
from anabranch._protocol.actions import Metadata, files_table
from anabranch._protocol.change_feed import FOLDER as CHANGE_FOLDER
from anabranch._protocol.features.row_tracking import hidden_names, without_hidden_columns
from anabranch._protocol.features.table_features import features_of_types
from anabranch._protocol.iceberg import flags, lacks_numbers
from anabranch._protocol.layout.paths import encode
from anabranch._protocol.parquet_files import WrittenFiles, read_nan_free
from anabranch._protocol.partitions import partition_arrays, partition_folders
from anabranch._protocol.predicates import Name
from anabranch._protocol.properties import Properties
from anabranch._protocol.schema.column_mapping import has_ids
from anabranch._protocol.schema.types import Field
from anabranch._protocol.schema.variants import shredded_column
from anabranch._protocol.stats.footers import footer_stats
from anabranch._storage.contract import Entry, Store
from anabranch._storage.trees import check_inside, remove_empty_tree
from anabranch.commands.field_id_names import is_by_id
from anabranch.commands.heartbeat import EVERY_SECONDS
from anabranch.commands.jobs import Job, shared_job
from anabranch.errors import (
    ExecutionFailed,
    NotFound,
    NotNullViolated,
    StoreError,
    UnsupportedFeature,
)

_logger = logging.getLogger(__name__)
_READERS = 8
_WRITE_IDS = "spark.sql.parquet.fieldId.write.enabled"


@dataclass(eq=False)
class Staging:
    """The folder of one transaction's new files, named by ``txn_id``; it exists once it is started.

    Attributes:
        job: the running job that it is, or, in a transaction of several statements, a part of.
        part: the folder in that of the job; none where it is the job's own.
    """

    store: Store
    txn_id: str
    beat_seconds: float = EVERY_SECONDS
    job: Job = field(default=None, repr=False)  # type: ignore[assignment]
    part: str = field(init=False, repr=False)
    _started: bool = field(default=False, init=False, repr=False)
    _noted: dict[str, WrittenFiles] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        shared = self.job or shared_job(self.store)
        self.job = shared or Job(self.store, self.txn_id, self.beat_seconds)
        self.part = "" if shared is None else shared.next_part()

    @property
    def folder(self) -> str:
        """The name of the folder in the store."""
        return f"{self.job.folder}/{self.part}" if self.part else self.job.folder

    @property
    def change_folder(self) -> str:
        """The name of the folder of change data."""
        return f"{CHANGE_FOLDER}/{self.folder}"

    def open_change_folder(self) -> str:
        """The folder of change data, checked before Spark writes to it, since Spark follows links. Raises StoreError: a
        link leads out of the table.
        """
        check_inside(self.store, self.change_folder)
        return self.change_folder

    def start(self) -> None:
        """Start the job, if it does not run yet."""
        self._started = True
        self.job.start()

    def check_alive(self) -> None:
        """Raises StagedFilesVacuumed if a VACUUM counted the job as dead: its files may be gone, and the command has to
        run again.
        """
        self.job.check_alive()

    def note(self, written: WrittenFiles, *, changes: bool = False) -> None:
        """Record files written to the folder, or to that of ``changes``, for `collect`. If a writer does not report its
        files (None), `collect` lists the folder.
        """
        folder = self.change_folder if changes else self.folder
        before = self._noted.get(folder, ())
        self._noted[folder] = None if before is None or written is None else [*before, *written]

    def collect_changes(self, metadata: Metadata, already: Iterable[str] = ()) -> pa.Table:
        """The files of change data written since, made durable, as a `FILES` table without statistics.

        Arguments and errors are those of `collect`.
        """
        return self._alive(lambda: self._collect_changes(metadata, set(already)))

    def collect(self, metadata: Metadata, already: Iterable[str] = ()) -> pa.Table:
        """The files written since, made durable, as a `FILES` table with statistics from their footers; ``already`` are
        the paths that earlier calls returned.

        Raises:
            NotNullViolated: a NOT NULL column holds a NULL.
            UnsupportedFeature: Spark shredded a variant, against its setting.
            InvalidPartitionValue: a partition value cannot be read back, such as the year 10000.
            StagedFilesVacuumed: a VACUUM counted this job as dead.
        """
        return self._alive(lambda: self._collect(metadata, set(already)))

    def _alive(self, collect: Callable[[], pa.Table]) -> pa.Table:
        """Collects, and checks that no VACUUM counted the job as dead meanwhile."""
        try:
            files = collect()
        except NotFound:
            self.check_alive()
            raise
        if not self.part:  # a shared job is looked at once, before its transaction is committed
            self.check_alive()
        return files

    def _collect_changes(self, metadata: Metadata, collected_paths: set[str]) -> pa.Table:
        files = self._find_data_files(self.change_folder, collected_paths)
        rows: list[Mapping[str, Any]] = [
            {
                "path": encode(entry.name),
                "partitionValues": _values(metadata, entry.name, self.change_folder),
                "size": entry.size,
                "modificationTime": entry.modified_ms,
            }
            for entry, _ in files
        ]
        return files_table(rows)

    def _find_data_files(self, folder: str, collected_paths: set[str]) -> list[tuple[Entry, pq.FileMetaData]]:
        """The data files of a folder that hold rows, with their footers, made durable; without ``known`` paths."""
        noted = self._noted.pop(folder, None)
        if noted is not None:
            return [(Entry(file.name, file.size, file.modified_ms, None), file.footer) for file in noted]
        inside = len(folder) + 1
        entries_in_folder = self.store.list_all(folder + "/")
        entries = [
            entry
            for entry in entries_in_folder
            if is_data_file(entry.name[inside:]) and encode(entry.name) not in collected_paths
        ]
        pairs = zip(entries, self._footers(entries), strict=True)
        files = [(entry, footer) for entry, footer in pairs if footer.num_rows]
        self.store.sync([entry.name for entry, _ in files])
        return files

    def _collect(self, metadata: Metadata, collected_paths: set[str]) -> pa.Table:
        data_files = self._find_data_files(self.folder, collected_paths)
        _refuse_shredded((footer for _, footer in data_files), metadata, self.store.url)
        rows: list[Mapping[str, Any]] = [self._describe(metadata, entry, footer) for entry, footer in data_files]
        files = files_table(rows)
        partition_arrays(files, metadata.schema, metadata.partition_columns, self.store.url)
        return files

    def _footers(self, entries: list[Entry]) -> list[pq.FileMetaData]:
        if len(entries) <= 1:  # most small changes: starting threads would cost more than the read
            return [read_footer(self.store, entry) for entry in entries]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(lambda entry: read_footer(self.store, entry), entries))

    def _describe(self, metadata: Metadata, entry: Entry, footer: pq.FileMetaData) -> dict[str, Any]:
        return describe_file(
            self.store,
            metadata,
            name=entry.name,
            values=_values(metadata, entry.name, self.folder),
            modified_ms=entry.modified_ms,
            size=entry.size,
            footer=footer,
            nan_free=read_nan_free(footer),
        )

    def sweep(self) -> None:
        """Remove the hidden scratch folders of an engine; what cannot be removed is left."""
        inside = len(self.folder) + 1
        try:
            hidden = [
                entry.name for entry in self.store.list_all(self.folder + "/") if _is_scratch(entry.name[inside:])
            ]
        except StoreError as error:
            _logger.warning("what lies hidden in %s of %s was left there: %s", self.folder, self.store.url, error)
            return
        remove(self.store, hidden)

    def finish(self) -> None:
        """Mark the folder's files as committed; a shared job ends with its transaction."""
        if not self.part:
            self.job.finish()

    def discard(self) -> None:
        """Remove the folder with its content; only for a transaction that is known not to be in the log.

        What cannot be removed is left to VACUUM, so that the user sees the error that ended the transaction.
        """
        if not self._started:
            return
        if not self.part:
            self.job.stop()
        try:
            for folder in (self.folder, self.change_folder):
                remove(self.store, [entry.name for entry in self.store.list_all(folder + "/")])
                remove_empty_tree(self.store, folder)
        except StoreError as error:
            _logger.warning("%s, which nothing names, was left in %s: %s", self.folder, self.store.url, error)


def remove(store: Store, names: Iterable[str]) -> None:
    """Remove files that no commit references; those that cannot be removed are left to VACUUM."""
    for name in names:
        try:
            store.delete(name)
        except StoreError as error:
            _logger.warning("%s, which nothing names, was left in %s: %s", name, store.url, error)


def _values(metadata: Metadata, name: str, folder: str) -> dict[str, str | None]:
    """The partition values in the names of a file's folders below ``folder``: one folder for each partition column, in
    their order, whatever its key is.
    """
    values = partition_folders(name[len(folder) + 1 :]) if metadata.partition_keys else ()
    return dict(zip(metadata.partition_keys, values, strict=True))


def _is_scratch(name: str) -> bool:
    """Whether a file lies in a scratch folder, whose name begins with ``_`` and is not a partition's."""
    first, slash, _ = name.partition("/")
    return bool(slash) and first.startswith("_") and "=" not in first


def _refuse_shredded(footers: Iterable[pq.FileMetaData], metadata: Metadata, table: str) -> None:
    """Raises UnsupportedFeature if a variant is shredded: that would need a feature of its own (PROTOCOL.md)."""
    if "variantType" not in features_of_types(metadata.schema):
        return
    for footer in footers:
        column = shredded_column(footer, metadata.schema)
        if column is not None:
            reason = f"Spark split {column} into columns: set spark.sql.variant.writeShredding.enabled = false."
            raise UnsupportedFeature(table=table, kind="writer", feature="variantShredding", reason=reason)


def is_data_file(name: str) -> bool:
    """Whether a file is a finished data file; hidden folders hold abandoned attempts."""
    *folders, base = name.split("/")
    hidden = [part for part in folders if part.startswith((".", "_")) and "=" not in part]
    return base.endswith(".parquet") and not base.startswith((".", "_")) and not hidden


def describe_file(
    store: Store,
    metadata: Metadata,
    *,
    name: str,
    values: dict[str, str | None],
    modified_ms: int,
    size: int,
    footer: pq.FileMetaData,
    nan_free: frozenset[Name] | None = None,
) -> dict[str, Any]:
    """The row of a `FILES` table for one new Parquet file. ``nan_free`` are the floating-point columns that hold no
    NaN; None if unknown. Raises NotNullViolated: a NOT NULL column holds a NULL.
    """
    check_not_null(store.url, metadata, values, footer, nan_free)
    check_ids(store.url, metadata, footer)
    return {
        "path": encode(name),
        "partitionValues": values,
        "size": size,
        "modificationTime": modified_ms,
        "stats": file_stats(metadata, footer, nan_free or frozenset()),
    }


def file_stats(metadata: Metadata, footer: pq.FileMetaData, nan_free: frozenset[Name] = frozenset()) -> str:
    """The statistics of a new file, for the columns that the table's properties select."""
    columns = Properties(metadata.configuration).indexed_columns()
    return footer_stats(footer, metadata.schema, columns, metadata.partition_columns, nan_free=nan_free)


def check_ids(table: str, metadata: Metadata, footer: pq.FileMetaData) -> None:
    """Raises ExecutionFailed unless a new file has the field ids that readers need in mode ``id`` or with Iceberg
    compatibility; a setting of Spark may omit them.
    """
    is_iceberg = flags(metadata.configuration)
    if not is_by_id(metadata) and not is_iceberg:
        return
    file_schema, hidden = footer.schema.to_arrow_schema(), hidden_names(metadata)
    lacks = bool(is_iceberg) and lacks_numbers(file_schema, metadata.configuration, hidden)
    if lacks or not has_ids(without_hidden_columns(file_schema, metadata)):
        reason = f"files would lack Parquet field ids; see that {_WRITE_IDS} is true."
        raise ExecutionFailed(what=f"the write to {table}", reason=reason)


def check_not_null(
    table: str,
    metadata: Metadata,
    values: dict[str, str | None],
    footer: pq.FileMetaData,
    nan_free: frozenset[Name] | None = None,
) -> None:
    """Check NOT NULL by the footer, whatever the engine did; a footer has no counts inside nested columns. Raises
    NotNullViolated: a NOT NULL column holds a NULL.
    """
    for column in metadata.schema.fields:
        count = 0 if column.nullable else _nulls(column, metadata, values, footer, nan_free)
        if count:
            row = f"it is NULL in {count} of them"
            raise NotNullViolated(table=table, column=column.name, count=count, row=row)


def _nulls(
    column: Field,
    metadata: Metadata,
    values: dict[str, str | None],
    footer: pq.FileMetaData,
    nan_free: frozenset[Name] | None,
) -> int:
    if column.name in metadata.partition_columns:
        return int(footer.num_rows) if values.get(column.physical_name) is None else 0
    if not isinstance(column.type, str):
        return 0
    leaf = f"{column.physical_name}.metadata" if column.type == "variant" else column.physical_name
    chunks = [
        group.column(index).statistics
        for group in (footer.row_group(number) for number in range(footer.num_row_groups))
        for index in range(group.num_columns)
        if group.column(index).path_in_schema == leaf
    ]
    if not chunks:
        return int(footer.num_rows)  # the column is not in the file at all
    # Our own footers have no statistics of a column that holds a NaN; its rows were checked before they were written.
    has_nan = nan_free is not None and column.type in ("float", "double") and column.name not in nan_free
    unknown = 0 if has_nan else 1
    return sum(chunk.null_count if chunk is not None and chunk.has_null_count else unknown for chunk in chunks)
