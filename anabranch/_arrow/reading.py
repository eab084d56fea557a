"""Reads rows of data files with Arrow in this process, row group by row group, on a few threads.

Knows where Arrow reads files just as Spark does, and refuses everything else (`anabranch._arrow.files`). Guarantees:
batches hold the requested columns, under the table's names and in the Arrow types of the table's columns, with the
positions of their rows; memory is bounded by a batch for each thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._arrow.data_files import DataFile, data_files, reading
from anabranch._arrow.dictionaries import columns_with_small_dictionaries
from anabranch._arrow.files import check_file, paths_of, rows_at_once
from anabranch._arrow.instants import may_count_julian_days, open_parquet, refuse_old_days
from anabranch._arrow.members import is_part
from anabranch._arrow.site import Site
from anabranch._protocol.layout.file_sets import FileSet, check_vectors
from anabranch._protocol.partitions import names_no_instant, partition_arrays
from anabranch._protocol.schema.column_mapping import (
    file_schema,
    is_renamed,
    relabel_values,
    without_keys,
)
from anabranch._protocol.schema.lengths import pads
from anabranch._protocol.schema.types import PHYSICAL_NAME, Field, Struct, arrow_type
from anabranch._protocol.schema.voids import has_void
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.store_settings import bind_context

MOST_BYTES = 128 << 20
"""Maximum size of the rows in memory at once, in bytes in Arrow."""
MANY_ROWS = 1 << 16
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file.

    Attributes:
        first: position of its first row.
        rows: number of rows.
        constants: values of its partition columns.
    """

    file: DataFile
    group: int
    first: int
    rows: int
    constants: Mapping[str, Any]


BatchReader = Callable[[RowGroup, pa.RecordBatch, int], Any]
"""What a reader makes of a batch; the number is the position in the file of the batch's first row. None drops the
batch. Texts may come as dictionaries with indices (`plain`).
"""


def read(
    site: Site,
    files: FileSet,
    columns: Sequence[str],
    seen: BatchReader,
    is_wanted: Callable[[RowGroup], bool] = lambda part: True,
    most_bytes: int | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yields the results of ``seen`` for the batches of these files, each with the file's path as in the log; file by
    file, in the order of rows. Batches include deleted rows.

    Args:
        is_wanted: row groups for which it is False are left out.
        most_bytes: maximum bytes of row groups that are read ahead of the caller, which bounds the results too; at
            least one is read ahead. None: one for each thread.

    Raises:
        Unsupported, or anything that Arrow or the system raises: the results so far must be discarded.
        InvalidPartitionValue, CorruptLog, CorruptVector, MissingDataFile, UnknownStore: the files cannot be read.
    """
    check_vectors(files)
    stored = Struct(tuple(files.schema.field(name) for name in columns if name not in files.partition_columns))
    if has_void(stored) or any(map(pads, stored)):
        raise Unsupported("Spark changes such columns as it reads them")
    expected = file_schema(stored)
    work = bind_context(lambda part: _read_part(part, stored, expected, seen, files))
    parts = filter(is_wanted, _parts(site, files, columns, expected))
    results_by_part = map_ahead(work, parts, site.threads, size_of=_size, most_bytes=most_bytes)
    yield from ((part.file.log, result) for part, results in results_by_part for result in results)


def _size(part: RowGroup) -> int:
    """Approximate size of a decompressed row group, in bytes."""
    return int(part.file.footer.row_group(part.group).total_byte_size)


def map_ahead(
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    threads: int,
    *,
    waits: bool = False,
    size_of: Callable[[_Item], int] = lambda item: 0,
    most_bytes: int | None = None,
) -> Iterator[tuple[_Item, _Result]]:
    """Yields each item with its result, in order. Threads compute a few items ahead of the caller, at most
    ``most_bytes`` of them unless it is a single one; a single item needs no thread. When the caller stops or is
    interrupted, items that have not begun are cancelled; those that have are awaited only if it ``waits``.
    """
    remaining = iter(items)
    first_items = list(islice(remaining, 2 if threads else 0))
    items = chain(first_items, remaining)
    if len(first_items) < 2:
        yield from ((item, work(item)) for item in items)
        return
    ahead, bytes_ahead = deque[tuple[_Item, Future[_Result]]](), 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="anabranch-rows")
    try:
        for item in items:
            ahead.append((item, pool.submit(work, item)))
            bytes_ahead += size_of(item)
            while len(ahead) > threads or (most_bytes is not None and bytes_ahead > most_bytes and len(ahead) > 1):
                first, future = ahead.popleft()
                bytes_ahead -= size_of(first)
                yield first, future.result()
        for first, future in ahead:
            yield first, future.result()
    except BaseException:
        pool.shutdown(wait=waits, cancel_futures=True)
        raise
    pool.shutdown()


def _read_part(part: RowGroup, stored: Struct, expected: pa.Schema, seen: BatchReader, files: FileSet) -> list[Any]:
    results, batches = list[Any](), _batches(part, stored, expected)
    while True:
        with reading(files, part.file.log):
            batch = next(batches, None)
        if batch is None:
            return results
        result = seen(part, *batch)
        results += [] if result is None else [result]


def _parts(site: Site, files: FileSet, columns: Sequence[str], expected: pa.Schema) -> Iterator[RowGroup]:
    """The row groups of files in which Arrow reads these columns just as Spark does."""
    constants = _constants(files, [name for name in columns if name in files.partition_columns])
    for file, values in zip(data_files(site.store, files), constants, strict=True):
        check_file(file.parquet, expected, members=True)
        first = 0
        for group in range(file.footer.num_row_groups):
            rows = file.footer.row_group(group).num_rows
            yield RowGroup(file, group, first, rows, values)
            first += rows


def _constants(files: FileSet, names: Sequence[str]) -> list[dict[str, pa.Scalar]]:
    """For each file, the values of these partition columns."""
    fields = [files.schema.field(name) for name in names]
    if any(_depends_on_zone(files, field) or pads(field) for field in fields):
        raise Unsupported("Spark changes such partition values as it reads them")
    arrays = partition_arrays(files.files, files.schema, names, files.root)
    return [{name: arrays[name][i] for name in names} for i in range(len(files.files))]


def _depends_on_zone(files: FileSet, field: Field) -> bool:
    return field.type == "timestamp" and names_no_instant(files.files, field.physical_name)


def _batches(part: RowGroup, stored: Struct, expected: pa.Schema) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The rows of a row group, batch by batch, each with the position of its first row; ``expected`` are the columns as
    files of today have them.
    """
    first, end = part.first, part.first + part.rows
    present = set(part.file.parquet.schema_arrow.names)
    by_name = {field.name: _leaves_of(field, part.file) for field in expected if field.name in present}
    leaves = [path for paths in by_name.values() for path in paths]
    if not by_name:
        yield from _without_columns(part, stored)
        return
    texts = [field.physical_name for field in stored if field.type == "string" and field.physical_name in present]
    footer = part.file.footer
    is_julian = may_count_julian_days(footer)
    with part.file.open_row_group(part.group, leaves) as opened:
        source = _parquet(opened, footer)
        count = rows_at_once(source, part.group, by_name)
        repeated = (
            columns_with_small_dictionaries(opened, footer, part.group, texts)
            if texts and part.rows >= MANY_ROWS
            else ()
        )
        source = _parquet(opened, footer, repeated) if repeated else source
        for batch in source.iter_batches(count, row_groups=[part.group], columns=leaves, use_threads=False):
            if is_julian:
                refuse_old_days(batch)
            yield _to_table_columns(batch, stored, part.constants), first
            first += batch.num_rows
    if first != end:
        raise Unsupported("a row group has another number of rows than its footer says")


def _leaves_of(field: pa.Field, file: DataFile) -> list[str]:
    """The leaves of a column that a file has."""
    if not pa.types.is_nested(field.type):
        return [field.name]
    return [file.leaves[path] for path in paths_of(field.type, field.name) if path in file.leaves]


def _parquet(opened: pa.NativeFile, footer: pq.FileMetaData, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
    """Open a file without Arrow's own input threads: this code may itself run on one of them, and would deadlock when
    Arrow consumes a batch reader.
    """
    return open_parquet(opened, metadata=footer, read_dictionary=list(dictionaries) or None, pre_buffer=False)


def _without_columns(part: RowGroup, stored: Struct) -> Iterator[tuple[pa.RecordBatch, int]]:
    """As `_batches`, for a file that has none of the columns."""
    for offset in range(0, part.rows, MANY_ROWS):
        rows = pa.RecordBatch.from_arrays([pa.nulls(min(MANY_ROWS, part.rows - offset))], [""])
        yield _to_table_columns(rows, stored, part.constants), part.first + offset


def _to_table_columns(batch: pa.RecordBatch, stored: Struct, constants: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch under the table's names. Columns that the file lacks are NULL; texts may be dictionary-encoded. If no
    column is requested, there is one without a name, which carries the number of rows.
    """
    if not len(stored) and not constants:
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], [""])
    columns = [_column(batch, field) for field in stored]
    columns += [pa.repeat(value, batch.num_rows) for value in constants.values()]
    return pa.RecordBatch.from_arrays(columns, [*stored.names, *constants])


def plain(batch: pa.RecordBatch, fields: Struct) -> pa.RecordBatch:
    """These columns of a batch, without dictionary encoding; the batch itself if there are no columns."""
    if not len(fields):
        return batch
    return pa.RecordBatch.from_arrays(
        [batch.column(field.name).cast(arrow_type(field.type)) for field in fields], list(fields.names)
    )


def _column(batch: pa.RecordBatch, field: Field) -> pa.Array:
    at, expected = batch.schema.get_field_index(field.physical_name), arrow_type(field.type)
    if at < 0:
        return pa.nulls(batch.num_rows, expected)
    values = batch.column(at)
    if isinstance(field.type, str) and (values.type.equals(expected) or pa.types.is_dictionary(values.type)):
        return values
    try:
        return _under_own_names(values, field).cast(expected)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # such as a NULL struct whose members are NOT NULL
        raise Unsupported(f"Arrow does not cast values of the column {field.name}") from None


def _under_own_names(values: pa.Array, field: Field) -> pa.Array:
    """The values of a column of a file, with the members of structs named as in the table."""
    if isinstance(field.type, str):
        return values
    stored = file_schema(Struct((field,))).field(0).type
    if not is_part(values.type, stored):
        raise Unsupported("a file has other names for members of a struct")  # a cast would make them NULL
    own_names = file_schema(without_keys(Struct((field,)), [PHYSICAL_NAME])).field(0).type
    return relabel_values(values.cast(stored), own_names) if is_renamed(field.type) else values
