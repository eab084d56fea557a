"""Reads Parquet files of the log by columns and, if they are large, by ranges.

Guarantee: the result comes from one put of the file, never from a mixture of two; a file that is truncated, garbled or
inconsistent raises ``CorruptLog`` with its name, pages are verified where their writer left a checksum, and columns
that were not requested are not read. A file that takes more memory than `size_limits` allows is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.footers import footer_in, read_tail
from anabranch._log.parquet_memory import TooLarge, check_memory
from anabranch._log.row_groups import RowGroups
from anabranch._log.size_limits import MAX_CHECKPOINT_MEMORY, largest_unfolded_bytes
from anabranch._storage.contract import Entry, Store
from anabranch._storage.native import file_with, native_file
from anabranch.errors import CorruptLog, NotFound

READ_WHOLE_BYTES = 1 << 20
"""A file up to this size is fetched at once."""
_ROWS = 1 << 16


class LogParquet:
    """One Parquet file of the log, as a listing (or another file of the log) describes it; ``checkpoint`` is the name
    of the checkpoint that it belongs to, for errors. Raises CorruptLog: the file is missing, truncated or not Parquet.

    Attributes:
        is_replaced: whether the file was replaced since it was described, as some engines write a checkpoint again.
            Then the new file is read; the caller checks whether it is of the same table.
    """

    def __init__(self, store: Store, entry: Entry, checkpoint: str) -> None:
        self._store, self._entry, self._checkpoint = store, entry, checkpoint
        self._whole, self.is_replaced = entry.size <= READ_WHOLE_BYTES, False
        self._open()

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """Its top-level columns and their types."""
        return {field.name: field.type for field in self._parquet.schema_arrow}

    @property
    def rows(self) -> int:
        """The number of rows in its footer."""
        return int(self._parquet.metadata.num_rows)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Read these columns (``add.path`` is a member of one), and nothing else of the file.

        Row groups in which they are all null by the footer are skipped: most checkpoints have the few actions that are
        not files together, before or after a million rows of files.

        Raises:
            CorruptLog: they cannot be read.
        """
        try:
            table = self._read(columns)
        except (*_UNREADABLE, NotFound) as error:
            if self._whole or self._is_unchanged():
                raise self._corrupt(f"it cannot be read ({error}).") from None
        else:
            if self._whole or self._is_unchanged():
                return table
        self._whole = True  # it was replaced while its ranges were read, as some engines do with checkpoints
        self._open()
        return self.read(columns)

    def refuse(self, reason: str) -> CorruptLog:
        """The error for wrong content of this file."""
        return self._corrupt(reason)

    def _read(self, columns: Sequence[str]) -> pa.Table:
        groups = self._groups.holding({name.partition(".")[0] for name in columns})
        source, parquet = self._source, self._parquet
        if not self._whole:
            spans = self._groups.spans(groups, columns)
            source = file_with(self._store, self._entry.name, self._entry.size, spans)
            parquet = _reader(source, self._parquet.metadata)
        self._check_unfolded(source, groups, columns)
        table = _read_in_batches(parquet, groups, columns)
        if len(table) != self._groups.rows(groups):
            raise ValueError(f"it holds {len(table)} rows where its footer states {self._groups.rows(groups)}")
        return table

    def _check_unfolded(self, source: pa.NativeFile, groups: Sequence[int], columns: Sequence[str]) -> None:
        max_bytes = largest_unfolded_bytes(self._entry.size)
        try:
            check_memory(source, self._parquet.metadata, self._groups.chunks(groups, columns), max_bytes)
        except TooLarge:
            reason = (
                f"it has {self._entry.size} bytes and takes more than {max_bytes} in memory; the environment variable "
            )
            raise self._corrupt(f"{reason}{MAX_CHECKPOINT_MEMORY} sets how many it may take.") from None

    def values(self, column: str) -> int | None:
        """The number of non-NULL values of a column (``add.path``) by the footer; None where it does not state it."""
        try:
            return self._groups.values(column)
        except ValueError as error:
            raise self._corrupt(f"it is not a whole Parquet file ({error}).") from None

    def _open(self) -> None:
        try:
            tail = self._all_bytes() if self._whole else read_tail(self._store, self._entry)
            self._source = native_file(tail if self._whole else b"")
            if self._whole:
                self._parquet = _reader(self._source)
            else:
                self._parquet = _reader(self._source, pq.read_metadata(native_file(tail)))
            self._groups = RowGroups(footer_in(tail, self._entry.name), self._parquet.metadata.num_row_groups)
            self._groups.check()
        except NotFound:
            raise self._corrupt("the file is missing.") from None
        except _UNREADABLE as error:
            raise self._corrupt(f"it is not a whole Parquet file ({error}).") from None

    def _all_bytes(self) -> bytes:
        try:
            return self._store.get(self._entry.name, etag=self._entry.etag)
        except NotFound:
            current = self._store.head(self._entry.name)
            if current is None:
                raise
        self._entry, self.is_replaced = current, True
        return self._store.get(current.name, etag=current.etag)

    def _is_unchanged(self) -> bool:
        current = self._store.head(self._entry.name)
        if current is None:
            raise self._corrupt("the file was removed while it was read.")
        has_etag = self._entry.etag is not None
        return current.size == self._entry.size and (current.etag == self._entry.etag or not has_etag)

    def _corrupt(self, reason: str) -> CorruptLog:
        return CorruptLog(table=self._store.url, file=self._entry.name, reason=reason, checkpoint=self._checkpoint)


_UNREADABLE = (pa.ArrowException, OSError, OverflowError, MemoryError, ValueError, UnicodeDecodeError)


def _read_in_batches(parquet: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Read the rows in chunks of `_ROWS`. In one piece each text column would grow by copies as it is read, into fresh
    memory each time, which costs more than decoding.
    """
    batches = list(parquet.iter_batches(_ROWS, row_groups=groups, columns=list(columns)))
    return pa.Table.from_batches(batches) if batches else parquet.read_row_groups(groups, columns=list(columns))


def _reader(source: pa.NativeFile, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(source, metadata=footer, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
