"""Reads rows of data files by Arrow in this process, row group by row group on a few threads.

Knows where Arrow reads files just as Spark does, and refuses all else (`anabranch._arrow.files`). Guarantees: batches
hold the columns that were asked for, under the table's names and in Arrow's types for them, and the positions of their
rows; memory is bounded by a batch for each thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._arrow.data_files import DataFile, data_files, reading
from anabranch._arrow.dictionaries import small_in
from anabranch._arrow.files import check_file, paths_of, rows_at_once
from anabranch._arrow.site import Site
from anabranch._protocol.layout.file_sets import FileSet, check_vectors
from anabranch._protocol.partitions import names_no_instant, partition_arrays
from anabranch._protocol.schema.column_mapping import file_schema
from anabranch._protocol.schema.lengths import pads
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.schema.voids import has_void
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.told import bind_context

MOST_BYTES = 128 << 20
"""Of rows that are held here at once, as Arrow holds them."""
MANY_ROWS = 1 << 16
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Part:
    """A row group of a file.

    Attributes:
        first: the position of its first row.
        rows: how many it has.
        constants: the values of its partition columns.
    """

    file: DataFile
    group: int
    first: int
    rows: int
    constants: Mapping[str, Any]


Seen = Callable[[Part, pa.RecordBatch, int], Any]
"""What is made of a batch, whose first row has this position in its file; None: nothing. Texts may come as dictionaries
with indices (`plain`).
"""


def read(
    site: Site,
    files: FileSet,
    columns: Sequence[str],
    seen: Seen,
    is_wanted: Callable[[Part], bool] = lambda part: True,
    most_bytes: int | None = None,
) -> Iterator[tuple[str, Any]]:
    """What ``seen`` makes of the batches of these files, with the file's path as in the log: file after file, and of
    each in the order of rows. Deleted rows are among them.

    Args:
        is_wanted: row groups for which it is False are left out.
        most_bytes: of row groups that are read ahead of the caller, so that what is made of them is bounded; one is
            always. None: as many as there are threads.

    Raises:
        Unsupported, or anything that Arrow or the system raises: nothing is known.
        InvalidPartitionValue, CorruptLog, CorruptVector, MissingDataFile, UnknownStore: the files cannot be read.
    """
    check_vectors(files)
    stored = Struct(tuple(files.schema.field(name) for name in columns if name not in files.partition_columns))
    if has_void(stored) or any(map(pads, stored)):
        raise Unsupported("Spark changes such columns as it reads them")
    work = bind_context(lambda part: _read_part(part, stored, seen, files))
    wanted = filter(is_wanted, _parts(site, files, columns, stored))
    made = map_ahead(work, wanted, site.threads, size_of=_size, most_bytes=most_bytes)
    yield from ((part.file.log, each) for part, several in made for each in several)


def _size(part: Part) -> int:
    """How many bytes a row group takes when it is unpacked, about."""
    return int(part.file.footer.row_group(part.group).total_byte_size)


def map_ahead(
    work: Callable[[_Given], _Made],
    given: Iterable[_Given],
    threads: int,
    *,
    waits: bool = False,
    size_of: Callable[[_Given], int] = lambda each: 0,
    most_bytes: int | None = None,
) -> Iterator[tuple[_Given, _Made]]:
    """Each of what is given with what some threads make of it, in their order; few are taken ahead of the caller, and
    of more than one no more than so many bytes. Who is interrupted, or stops asking, waits for none that is not begun
    yet, and for those that are only if it ``waits``.
    """
    if not threads:
        yield from ((each, work(each)) for each in given)
        return
    ahead, held = deque[tuple[_Given, Future[_Made]]](), 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="anabranch-rows")
    try:
        for each in given:
            ahead.append((each, pool.submit(work, each)))
            held += size_of(each)
            while len(ahead) > threads or (most_bytes is not None and held > most_bytes and len(ahead) > 1):
                first, made = ahead.popleft()
                held -= size_of(first)
                yield first, made.result()
        for first, made in ahead:
            yield first, made.result()
    except BaseException:
        pool.shutdown(wait=waits, cancel_futures=True)
        raise
    pool.shutdown()


def _read_part(part: Part, stored: Struct, seen: Seen, files: FileSet) -> list[Any]:
    found, batches = list[Any](), _batches(part, stored)
    while True:
        with reading(files, part.file.log):
            one = next(batches, None)
        if one is None:
            return found
        made = seen(part, *one)
        found += [] if made is None else [made]


def _parts(site: Site, files: FileSet, columns: Sequence[str], stored: Struct) -> Iterator[Part]:
    """The row groups of files of which Arrow is known to read these columns as Spark does."""
    constants = _constants(files, [name for name in columns if name in files.partition_columns])
    wanted = file_schema(stored)
    for file, values in zip(data_files(site.store, files), constants, strict=True):
        check_file(file.parquet, wanted, members=True)
        first = 0
        for group in range(file.footer.num_row_groups):
            rows = file.footer.row_group(group).num_rows
            yield Part(file, group, first, rows, values)
            first += rows


def _constants(files: FileSet, names: Sequence[str]) -> list[dict[str, pa.Scalar]]:
    """For each file the values of these partition columns."""
    fields = [files.schema.field(name) for name in names]
    if any(_depends_on_zone(files, each) or pads(each) for each in fields):
        raise Unsupported("Spark changes such partition values as it reads them")
    arrays = partition_arrays(files.files, files.schema, names, files.root)
    return [{name: arrays[name][i] for name in names} for i in range(len(files.files))]


def _depends_on_zone(files: FileSet, field: Field) -> bool:
    return field.type == "timestamp" and names_no_instant(files.files, field.physical_name)


def _batches(part: Part, stored: Struct) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The rows of a row group, batch by batch, each with the position of its first row."""
    first, end = part.first, part.first + part.rows
    there = set(part.file.parquet.schema_arrow.names)
    wanted = file_schema(Struct(tuple(each for each in stored if each.physical_name in there)))
    by_name = {each.name: [*paths_of(each.type, each.name)] for each in wanted}
    leaves = [path for each in by_name.values() for path in each]
    if not by_name:
        yield from _without_columns(part, stored)
        return
    texts = [each.physical_name for each in stored if each.type == "string" and each.physical_name in there]
    footer = part.file.footer
    with part.file.open_row_group(part.group, leaves) as opened:
        source = _parquet(opened, footer)
        count = rows_at_once(source, part.group, by_name)
        repeated = small_in(opened, footer, part.group, texts) if texts and part.rows >= MANY_ROWS else ()
        source = _parquet(opened, footer, repeated) if repeated else source
        for batch in source.iter_batches(count, row_groups=[part.group], columns=leaves, use_threads=False):
            yield _to_table_columns(batch, stored, part.constants), first
            first += batch.num_rows
    if first != end:
        raise Unsupported("a row group has another number of rows than its footer says")


def _parquet(opened: pa.NativeFile, footer: pq.FileMetaData, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
    """A file to be read, without Arrow's threads for input: this may run in one of them, and would wait for another
    where a reader of batches is read by Arrow.
    """
    return pq.ParquetFile(opened, metadata=footer, read_dictionary=list(dictionaries) or None, pre_buffer=False)


def _without_columns(part: Part, stored: Struct) -> Iterator[tuple[pa.RecordBatch, int]]:
    """As `_batches`, of a file that has none of the columns."""
    for done in range(0, part.rows, MANY_ROWS):
        rows = pa.RecordBatch.from_arrays([pa.nulls(min(MANY_ROWS, part.rows - done))], [""])
        yield _to_table_columns(rows, stored, part.constants), part.first + done


def _to_table_columns(batch: pa.RecordBatch, stored: Struct, constants: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch under the table's names; columns that the file lacks are NULL, and texts may be held once for many.
    Where no column is asked for there is one without a name, which says how many rows there are.
    """
    if not len(stored) and not constants:
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], [""])
    columns = [_column(batch, each) for each in stored]
    columns += [pa.repeat(value, batch.num_rows) for value in constants.values()]
    return pa.RecordBatch.from_arrays(columns, [*stored.names, *constants])


def plain(batch: pa.RecordBatch, fields: Struct) -> pa.RecordBatch:
    """These columns of a batch, each text by itself; the batch itself where there are none."""
    if not len(fields):
        return batch
    return pa.RecordBatch.from_arrays(
        [batch.column(each.name).cast(arrow_type(each.type)) for each in fields], list(fields.names)
    )


def _names_in(kind: pa.DataType) -> Iterator[str]:
    """The names of all members of a struct."""
    for each in kind if pa.types.is_struct(kind) else ():
        yield each.name
        yield from _names_in(each.type)


def _column(batch: pa.RecordBatch, field: Field) -> pa.Array:
    at, wanted = batch.schema.get_field_index(field.physical_name), arrow_type(field.type)
    if at < 0:
        return pa.nulls(batch.num_rows, wanted)
    values = batch.column(at)
    if isinstance(field.type, Struct) and [*_names_in(values.type)] != [*_names_in(wanted)]:
        raise Unsupported("a file has other names for members of a struct")  # a cast would find none of them
    if values.type.equals(wanted) or pa.types.is_dictionary(values.type):
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowInvalid:  # such as a NULL struct whose members are NOT NULL; the file itself was read
        raise Unsupported(f"Arrow does not cast values of the column {field.name}") from None
