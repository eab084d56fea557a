"""CONVERT TO DELTA makes a folder of Parquet files a table in place, by one commit.

Knows folders, footers and partitions; needs no engine. Guarantees: it writes, moves and removes no data file, whatever
happens; version 0 names every data file of the folder, as it was when its footer was read; if anything about the folder
is in doubt, nothing is committed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.file_names import FOLDER
from anabranch._log.footers import read_whole_footer
from anabranch._log.log import Log
from anabranch._log.segment import Segment
from anabranch._log.snapshot import Ancestor, Snapshot, State
from anabranch._protocol.actions import Metadata, compact_json, files_table
from anabranch._protocol.iceberg import flags
from anabranch._protocol.layout.paths import is_text
from anabranch._protocol.partitions import folders_of, parse_hive_path, read_value, write_value
from anabranch._protocol.schema.column_mapping import MODE
from anabranch._protocol.schema.parquet_columns import MergeConflict, columns_of, merge_columns, with_partitions
from anabranch._protocol.schema.types import Struct, check_storable
from anabranch._protocol.stats.statistics import stats_json
from anabranch._storage.contract import Entry, Store
from anabranch._storage.trees import links
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.dml.new_table import NewTable, first_protocol, new_metadata, with_session_defaults
from anabranch.commands.engine import Engine
from anabranch.commands.field_id_names import is_by_id
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.staging import describe_file
from anabranch.commands.watching import track_progress, watch
from anabranch.errors import (
    ConversionRefused,
    EmptyDirectory,
    InvalidOption,
    InvalidPartitionValue,
    InvalidProperty,
    NotFound,
    SchemaMergeFailed,
    UnexpectedPartition,
    UnreadableFooter,
)
from anabranch.errors.rows import cause, detail, note
from anabranch.errors.visible import visible

_READERS = 16
_IDENTIFIER = re.compile(r"(?P<format>\w+)\s*\.\s*`(?P<path>(?:[^`]|``)+)`", re.DOTALL)
_STREAMED = "_spark_metadata"


@dataclass(frozen=True)
class Convert(SecretFree):
    """Make a Delta table of the Parquet files under ``table``.

    ``partitions`` are the columns of the folders ``name=value``, in order. Without ``statistics`` the log records the
    number of rows of each file, and no bounds.

    Example:
        >>> Convert("/data/flights", Struct((Field("day", "date"),))).run()
    """

    table: Location
    partitions: Struct = field(default_factory=Struct)
    properties: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] | None = None
    statistics: bool = True

    @watch("CONVERT")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if there is a Delta table already, which stays unchanged.

        Raises:
            EmptyDirectory: there is no data file. UnreadableFooter: a file is not a Parquet file.
            UnexpectedPartition, InvalidPartitionValue: the folders do not match ``partitions``.
            SchemaMergeFailed, UnsupportedType: the columns of the files differ, or no table can have them.
            InvalidProperty: the properties do not suit a table of such files.
            ConversionRefused: the folder is not one table's, or was written meanwhile.
            ProtocolChangedException: another writer created the table meanwhile.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        if log.exists():
            return None
        _check_partitions(self.partitions)
        note(log.table, -1, self.properties)
        entries = _data_files(log.store)
        values = [_partition_values(log.table, entry.name, self.partitions) for entry in entries]
        footers = _footers(log.store, entries)
        reach("read")
        ours = self._transaction(log, runtime, entries, values, footers)
        reach("staged")
        _check_unchanged(log.store, entries)
        return commit(ours, log, NoRows(), context.policy(), runtime)

    def as_table(self, runtime: Runtime) -> Snapshot:
        """The folder as the table that it would become, for reading only; nothing is written.

        Raises:
            the errors of `run`; ConversionRefused: also if it is a Delta table already.
        """
        log = open_log(self.table, self.storage_options)
        if log.exists():
            reason = "it is a Delta table, whose log says which of its files count. Name it delta.`path`."
            raise ConversionRefused(table=log.table, reason=reason)
        _check_partitions(self.partitions)
        entries = _data_files(log.store)
        values = [_partition_values(log.table, entry.name, self.partitions) for entry in entries]
        ours = self._transaction(log, runtime, entries, values, _footers(log.store, entries))
        _check_unchanged(log.store, entries)
        metadata, protocol = ours.declarations.metadata, ours.declarations.protocol
        assert metadata is not None
        assert protocol is not None
        state = State(protocol, metadata, {}, {}, runtime.now_ms())
        files = Ancestor(ours.changes.adds, metadata.partition_keys)
        return Snapshot(log.store, Segment(0, None, (), entries[0]), state, files)

    def _transaction(
        self,
        log: Log,
        runtime: Runtime,
        entries: Sequence[Entry],
        values: Sequence[dict[str, str | None]],
        footers: Sequence[pq.FileMetaData],
    ) -> Transaction:
        columns = with_partitions(_columns(log.table, entries, footers), self.partitions)
        new = with_session_defaults(NewTable(columns, self.partitions.names, self.properties))
        metadata = new_metadata(new, runtime, named=True)
        _check_columns_by_name(metadata)
        inputs = zip(entries, values, footers, strict=True)
        adds: list[Mapping[str, Any]] = [
            describe_file(
                log.store,
                metadata,
                name=entry.name,
                values=partition_values,
                modified_ms=entry.modified_ms,
                size=entry.size,
                footer=footer,
            )
            for entry, partition_values, footer in inputs
        ]
        if not self.statistics:
            counts = (stats_json({"numRecords": footer.num_rows}) for footer in footers)
            adds = [{**add, "stats": count} for add, count in zip(adds, counts, strict=True)]
        return Transaction.on(
            None,
            str(runtime.new_id()),
            CommitInfo("CONVERT", _parameters(self, len(entries)), metrics={"numConvertedFiles": len(entries)}),
            table=log.table,
            changes=Changes(adds=files_table(adds)),
            declarations=Declarations(metadata=metadata, protocol=first_protocol(log.table, new, metadata)),
        )


def _check_columns_by_name(metadata: Metadata) -> None:
    """Raises InvalidProperty unless columns are matched by name: files that no Delta writer wrote have no field ids."""
    for key in (MODE,) if is_by_id(metadata) else flags(metadata.configuration):
        reason = "the files have no field ids; convert without it."
        raise InvalidProperty(property=key, value=metadata.configuration[key], reason=reason)


def parquet_path(identifier: str) -> tuple[str, str]:
    """Format and path of an identifier such as ``parquet.`/data/flights```, the format in lower case.

    Raises:
        InvalidOption: it is not such an identifier, or its format cannot be converted.
    """
    match = _IDENTIFIER.fullmatch(identifier.strip()) if isinstance(identifier, str) else None
    if match is None:
        raise InvalidOption(option="identifier", value=identifier, reason="it is written parquet.`/the/path`.")
    form, path = match["format"].lower(), match["path"].replace("``", "`")
    if form not in ("parquet", "delta"):
        reason = f"only Parquet files can be converted, and it names {form}."
        raise InvalidOption(option="identifier", value=identifier, reason=reason)
    return form, path


# -- files -------------------------------------------------------------------------------------------------------------


def _data_files(store: Store) -> list[Entry]:
    """Every file of the folder that Spark would read, sorted by name.

    Raises:
        EmptyDirectory: there is none. ConversionRefused: the folder may hold files that are not the table's, or not all
            of the table's.
    """
    _refuse_links(store)
    entries = store.list_all()
    for entry in entries:
        _refuse_foreign(store, entry.name.split("/")[:-1])
    data_files = [entry for entry in entries if not _is_hidden(entry)]
    if not data_files:
        raise EmptyDirectory(table=store.url)
    for entry in data_files:
        if not is_text(entry.name):
            reason = f"the name of {visible(entry.name)} is no UTF-8, so that no log can hold it. Rename it."
            raise ConversionRefused(table=store.url, reason=reason)
    return data_files


def _refuse_foreign(store: Store, folders: list[str]) -> None:
    """Refuse folders whose files are not all the table's: a stream's output, or another Delta table inside."""
    shown = list(takewhile(lambda name: not _is_hidden_folder(name), folders))
    first_hidden = folders[len(shown)] if len(shown) < len(folders) else None
    if first_hidden == _STREAMED:
        reason = f"a stream wrote it, and {_STREAMED} says which files count. Read it, and write it as a new table."
        raise ConversionRefused(table=store.url, reason=reason)
    if first_hidden == FOLDER and shown:
        raise ConversionRefused(table=store.url, reason=f"there is a Delta table inside it, at {'/'.join(shown)}.")


def _refuse_links(store: Store) -> None:
    """Refuse symbolic links: their target is outside the folder, or in it under two names."""
    links_in_folder = links(store, lambda folder: _is_hidden_folder(folder.rpartition("/")[2]))
    shown = [name for name in links_in_folder if not _is_hidden_folder(name.rpartition("/")[2])]
    if shown:
        reason = f"{min(shown)} is a symbolic link. Put into its place what it leads to, or remove it."
        raise ConversionRefused(table=store.url, reason=reason)


def _is_hidden(entry: Entry) -> bool:
    *folders, base = entry.name.split("/")
    marker = entry.size == 0 and base.endswith("_$folder$")  # how old Hadoop makes a folder in a bucket
    return marker or base.startswith(("_", ".")) or any(_is_hidden_folder(name) for name in folders)


def _is_hidden_folder(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _check_unchanged(store: Store, entries: Sequence[Entry]) -> None:
    """Make the files durable. Raises ConversionRefused if any file was added, removed or changed."""
    try:
        store.sync([entry.name for entry in entries])
        is_same = _identities(_data_files(store)) == _identities(entries)
    except (NotFound, EmptyDirectory):
        is_same = False
    if not is_same:
        reason = "files came, went or changed while it was read. Run it again when nobody writes there."
        raise ConversionRefused(table=store.url, reason=reason)


def _identities(entries: Sequence[Entry]) -> set[tuple[Any, ...]]:
    return {(entry.name, entry.size, entry.etag, entry.modified_ms) for entry in entries}


def _footers(store: Store, entries: Sequence[Entry]) -> list[pq.FileMetaData]:
    with ThreadPoolExecutor(_READERS) as pool:
        read = pool.map(lambda entry: _footer(store, entry), entries)
        return list(track_progress("footers read", read, len(entries)))


def _footer(store: Store, entry: Entry) -> pq.FileMetaData:
    try:
        return read_whole_footer(store, entry)
    except (pa.ArrowException, ValueError, struct.error, OSError) as error:
        raise UnreadableFooter(table=store.url, file=entry.name, reason=_sentence(error)) from cause(error)


def _sentence(error: Exception) -> str:
    return detail(error, str).strip().rstrip(".") + "."


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns(table: str, entries: Sequence[Entry], footers: Sequence[pq.FileMetaData]) -> Struct:
    """The merged columns of all files, in the order in which they first appear."""
    columns = Struct()
    for entry, footer in zip(entries, footers, strict=True):
        try:
            columns = merge_columns(columns, columns_of(footer))
        except MergeConflict as mismatch:
            raise SchemaMergeFailed(
                table=table, file=entry.name, column=mismatch.column, reason=mismatch.reason
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFooter(table=table, file=entry.name, reason=_sentence(error)) from cause(error)
    return columns


def _check_partitions(partitions: Struct) -> None:
    names = [name.lower() for name in partitions.names]
    for column in partitions:
        if not isinstance(column.type, str) or names.count(column.name.lower()) > 1:
            reason = "a column of folders is named once, and has a type that is not nested."
            raise InvalidOption(option="partitionSchema", value=column.name, reason=reason)
        check_storable(column.type, column.name)


def _partition_values(table: str, name: str, partitions: Struct) -> dict[str, str | None]:
    """The partition strings of a file, from its folders, in the protocol's spelling: not every reader accepts ``007``
    as a number or ``2024-1-5`` as a date. A timestamp stays unchanged: the zone of its writer is unknown.

    Raises:
        UnexpectedPartition: the folders name other columns. InvalidPartitionValue: a value does not fit its type.
    """
    folders = folders_of(name)
    folder_columns = [column for column, _ in folders if column is not None]
    unpartitioned = [text for column, text in folders if column is None] if partitions.names else []
    if unpartitioned or [column.lower() for column in folder_columns] != [
        column.lower() for column in partitions.names
    ]:
        actual = ", ".join(folder_columns + unpartitioned) or "none"
        expected = ", ".join(partitions.names) or "none"
        raise UnexpectedPartition(table=table, file=name, found=actual, expected=expected)
    values = parse_hive_path(name, partitions.names)
    for column in partitions:
        try:
            read = read_value(values[column.name], str(column.type))
            if column.type != "timestamp":
                values[column.name] = write_value(read, str(column.type))
        except ValueError:
            value = values[column.name]
            facts = {"file": name, "column": column.name, "type": column.type, "value": value}
            raise InvalidPartitionValue(table=table, **facts) from None
    return values


def _parameters(command: Convert, files: int) -> dict[str, str]:
    return {
        "numFiles": str(files),
        "partitionedBy": compact_json(list(command.partitions.names)),
        "collectStats": compact_json(command.statistics),
        "sourceFormat": "parquet",
    }
