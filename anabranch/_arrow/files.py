"""Packs the live rows of data files into one, by Arrow, on executors or in this process.

Imports pyarrow and numpy only: this module travels to executors by value, where this package is not installed. Tasks
come as plain values (`anabranch._spark.writing.arrow_packing`). Guarantees: a file is written only if Arrow reads each
source exactly as Spark does, and writes each column as Spark does; any doubt ends the attempt. Rows go from row group
to row group, so that memory is bounded, and one thread reads while another writes. No two attempts write to one file.

Deletion vectors come as bits, one for each row up to the last deleted one. Files are local.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._arrow.ahead import read_ahead
from anabranch._arrow.dictionaries import compact_dictionaries, with_dictionaries
from anabranch._arrow.instants import (
    are_same_instants,
    may_count_julian_days,
    open_parquet,
    refuse_old_days,
)
from anabranch._arrow.members import common_members, with_members
from anabranch._protocol.nested_arrays import leaf_arrays
from anabranch._protocol.unsupported import Unsupported

ASIDE = "_temporary"
"""The folder of attempts within the job's folder; Spark's own attempts use the same name, and no reader looks there."""
_OLDEST_ARROW = 17
BATCH_ROWS = 1 << 17
BATCH_BYTES = 32 << 20
"""Maximum bytes of rows that are read at once; a batch of wide rows has fewer rows."""
PROBED_ROWS = 1 << 7
"""Number of rows that are read to estimate the width of a row."""
_LEVELS = {"zstd": 3, "gzip": 6}
"""Compression levels of Spark's writer, which differ from Arrow's defaults."""


PLACE_BITS = 40
"""Number of bits of a position in a file; the bits above hold the number of the file."""


class Cancelled(Exception):
    """The caller no longer waits for the result."""


def write_packed_file(task: Mapping[str, Any]) -> tuple[str, int]:
    """Write the live rows of the task's files, one file after the other, as one new file, where no reader sees it.

    Args:
        task: ``folder``, where to write; ``files``, for each file its ``path``, its deleted rows (``deleted``) and the
            default ids of its rows (``first_id``, ``version``); ``wanted``, the stored columns as an Arrow schema;
            ``hidden``, the names of the id columns, if any; ``codec``; ``group_bytes``; ``says``, the key-value
            metadata of the footer; ``is_called_off``, optional, polled to learn whether to stop.

    Returns:
        The new file's path and number of rows; an empty path if there are no rows.

    Raises:
        Unsupported, or anything that Arrow or the system raises: the attempt has failed, and left nothing behind.
    """
    check(task)
    task = with_dictionaries(task)
    path = new_path(task["folder"])
    try:
        with read_ahead(live_batches(task)) as batches:
            rows = write_batches(path, task, batches)
    except BaseException:
        remove(path)
        raise
    if not rows:
        remove(path)
    return (path if rows else ""), rows


def running(tasks: Sequence[Mapping[str, Any]]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for Spark to map over task numbers: it yields the result of `write_packed_file`, or its error."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                path, rows, refused = None, 0, None
                try:
                    path, rows = write_packed_file(tasks[number])
                except Exception as error:
                    refused = type(error).__name__  # the error's text may contain values of rows
                columns = [pa.array([number], pa.int64()), pa.array([path], pa.string())]
                columns += [pa.array([rows], pa.int64()), pa.array([refused], pa.string())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "path", "rows", "refused"])

    return run


def new_path(folder: str) -> str:
    """A path in a folder for a single attempt, where no reader looks."""
    aside = os.path.join(folder, ASIDE)
    os.makedirs(aside, exist_ok=True)
    return os.path.join(aside, f"anabranch-{uuid.uuid4()}.parquet")


def remove(path: str) -> None:
    """Remove a file if it exists."""
    if os.path.exists(path):
        os.remove(path)


def write_batches(path: str, task: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> int:
    """Write these rows, in row groups of about ``group_bytes`` in Arrow, and return their number."""
    schema: pa.Schema = task["wanted"]
    rows = group_bytes = 0
    group: list[pa.RecordBatch] = []
    with pa.OSFile(path, "wb") as sink, _writer(sink, task) as writer:
        for batch in batches:
            group.append(batch)
            rows, group_bytes = rows + batch.num_rows, group_bytes + batch.nbytes
            if group_bytes >= task["group_bytes"]:
                _write_group(writer, group, schema)
                group, group_bytes = [], 0
        if group:
            _write_group(writer, group, schema)
        writer.add_key_value_metadata(task["says"])
    return rows


def _write_group(writer: pq.ParquetWriter, group: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    table = compact_dictionaries(pa.Table.from_batches(group, schema))
    writer.write_table(table, row_group_size=table.num_rows)


def _writer(sink: Any, task: Mapping[str, Any]) -> pq.ParquetWriter:
    codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(task["codec"], task["codec"])
    return pq.ParquetWriter(
        sink,
        task["wanted"],
        version="2.6",
        data_page_version=task.get("pages", "1.0"),
        compression=codec,
        compression_level=_LEVELS.get(codec),
        use_dictionary=True,
        write_statistics=True,
        store_schema=False,
        store_decimal_as_integer=True,
        use_compliant_nested_type=True,
        write_page_index=True,
        write_page_checksum=True,
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def live_batches(task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The live rows of a task's files, one file after the other."""
    for file in task["files"]:
        with pa.OSFile(file["path"]) as opened:  # not memory-mapped: truncation of a mapped file would kill the process
            source = open_parquet(opened, read_dictionary=file.get("dictionaries"))
            for batch in _live_of(source, file, task):
                if task.get("is_called_off", bool)():
                    raise Cancelled
                yield batch


def _live_of(source: pq.ParquetFile, file: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    schema: pa.Schema = task["wanted"]
    present = set(source.schema_arrow.names)
    names = [name for name in schema.names if name in present]
    live_mask, first, is_julian = _live_mask(file["deleted"]), 0, may_count_julian_days(source.metadata)
    for group in range(source.metadata.num_row_groups):
        end = first + source.metadata.row_group(group).num_rows
        for batch in _batches(source, group, names):
            stored = _to_stored_batch(batch, first, file, task)
            is_live = None if live_mask is None else live_mask[first : first + len(stored)]
            first += len(stored)
            if is_live is not None and not is_live.all():
                rest = np.ones(len(stored) - len(is_live), dtype=bool)
                stored = stored.filter(pa.array(np.concatenate([is_live, rest])))
            if len(stored):
                _refuse_nan(stored)
                if is_julian:
                    refuse_old_days(stored)
                yield stored
        if first != end:
            raise Unsupported("a row group has another number of rows than its footer says")


def _batches(source: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a row group; if there are none, a column of NULLs with its number of rows."""
    if names:
        yield from _columns(source, group, names, rows_at_once(source, group, {name: [name] for name in names}))
        return
    left = source.metadata.row_group(group).num_rows
    while left:
        count = min(left, BATCH_ROWS)
        yield pa.RecordBatch.from_arrays([pa.nulls(count)], ["none"])
        left -= count


def _columns(source: pq.ParquetFile, group: int, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    return iter(source.iter_batches(rows, row_groups=[group], columns=names, use_threads=False))


def rows_at_once(source: pq.ParquetFile, group: int, leaves: Mapping[str, Sequence[str]]) -> int:
    """How many rows of a row group fit into memory together, estimated from the first rows: dictionary encoding hides
    the width of values from the footer. For fixed-width types the type alone decides.

    Args:
        leaves: the columns to read, each with its leaves to read.
    """
    row_group, kinds = source.metadata.row_group(group), source.schema_arrow  # `schema_arrow` is built on every access
    widths = {name: _width(kinds.field(name).type) for name in leaves}
    width = max(row_group.total_byte_size / max(1, row_group.num_rows), sum(size or 0 for size in widths.values()))
    unknown = [leaf for name, size in widths.items() if size is None for leaf in leaves[name]]
    if unknown and row_group.num_rows > PROBED_ROWS:
        first = next(_columns(source, group, unknown, PROBED_ROWS))
        width = max(width, sum(size or 0 for size in widths.values()) + first.nbytes / len(first))
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1, width))))


def _width(kind: pa.DataType) -> float | None:
    """Bytes of a value, or of an index for a dictionary; None if it depends on the value."""
    kind = kind.index_type if pa.types.is_dictionary(kind) else kind
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else None


def _live_mask(deleted: bytes | None) -> Any:
    """Which rows are live, up to the last deleted row; None: all."""
    if deleted is None:
        return None
    return ~np.unpackbits(np.frombuffer(zlib.decompress(deleted), np.uint8), bitorder="little").astype(bool)


def _to_stored_batch(
    batch: pa.RecordBatch, first: int, file: Mapping[str, Any], task: Mapping[str, Any]
) -> pa.RecordBatch:
    """The stored columns. Those that the file lacks are NULL, and rows without explicit ids get default ones by
    position.
    """
    columns = {field.name: _column(batch, field) for field in task["wanted"]}
    if task["hidden"]:
        row_id, version = task["hidden"]
        ids = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        default_ids = pc.add(ids, pa.scalar(file["first_id"], pa.int64()))
        columns[row_id] = pc.coalesce(columns[row_id], default_ids)
        columns[version] = pc.coalesce(columns[version], pa.scalar(file["version"], pa.int64()))
    if "origin" in task:
        places = np.arange(first, first + batch.num_rows, dtype=np.int64)
        columns[task["origin"]] = pa.array(places | file["number"] << PLACE_BITS)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=task["wanted"])


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    values = batch.column(at)
    return values if _same(values.type, field.type) else values.cast(field.type)


def _same(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether two types are equal, including names and nullability inside."""
    return first.equals(second, check_metadata=True)


def _refuse_nan(batch: pa.RecordBatch) -> None:
    """Raises Unsupported if there is a NaN. Arrow leaves NaN out of minimum and maximum, so that Spark, for which it is
    the greatest number, would skip rows.
    """
    for values in batch.columns:
        for _, leaf in leaf_arrays(values):
            if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py():
                raise Unsupported("there is a NaN")


# -- checks of source files --------------------------------------------------------------------------------------------


def check(task: Mapping[str, Any]) -> None:
    """Raises Unsupported unless Arrow reads the files of a task as Spark does."""
    if int(pa.__version__.partition(".")[0]) < _OLDEST_ARROW:
        raise Unsupported("pyarrow is too old")
    for file in task["files"]:
        with pa.OSFile(file["path"]) as opened:
            check_file(open_parquet(opened), task["wanted"])


def check_file(source: pq.ParquetFile, wanted: pa.Schema, *, members: bool = False) -> None:
    """Raises Unsupported unless Arrow reads the wanted columns of a file as Spark does; `open_parquet` has opened it.
    With ``members``, a struct may have only some of the file's members and others besides, and numbers in the file may
    be narrower, as before a column was widened.
    """
    arrow_schema = source.schema_arrow  # built on every access
    leaves = leaves_in(source) if any(pa.types.is_nested(field.type) for field in wanted) else {}
    names = arrow_schema.names
    by_fold = {name.lower(): name for name in names}
    if len(by_fold) < len(names):
        raise Unsupported("names differ in case only")
    for field in wanted:
        if field.name.lower() in by_fold:  # else its values are NULL
            if field.name not in names:
                raise Unsupported("a column has another name")
            _check_type(arrow_schema.field(field.name).type, field, leaves.keys(), members=members)


def _check_type(file_type: pa.DataType, field: pa.Field, paths: Set[str], *, members: bool) -> None:
    wanted = field.type
    if members:
        wanted = common_members(wanted, file_type)
        file_type = with_members(file_type, wanted)
    if pa.types.is_nested(wanted) and not set(paths_of(wanted, field.name)) <= paths:
        raise Unsupported("a nested column has another layout")
    if not _alike(file_type, wanted, widened=members):
        raise Unsupported("a column has another type")


def leaves_in(source: pq.ParquetFile) -> dict[str, str]:
    """The leaves of a file by the paths that Spark would give them. Lists and maps are told by their structure: other
    writers, such as delta-rs, give their groups other names. Leaves of another structure are left out.

    Source: Parquet's rules for lists and maps.

    Raises:
        Unsupported: a column occurs twice.
    """
    schema = source.schema
    paths = [schema.column(i).path for i in range(len(schema))]
    if len(set(paths)) < len(paths):
        raise Unsupported("a column occurs twice")
    own = [path for field in source.schema_arrow for path in paths_of(field.type, field.name)]
    if len(own) != len(paths):
        own = paths
    return {ours: theirs for ours, theirs in zip(own, paths, strict=True) if ours.count(".") == theirs.count(".")}


def paths_of(kind: pa.DataType, path: str) -> Iterator[str]:
    """The leaves of a column in a file, as Spark lays it out."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from paths_of(field.type, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        yield from paths_of(kind.key_type, f"{path}.key_value.key")
        yield from paths_of(kind.item_type, f"{path}.key_value.value")
    elif pa.types.is_list(kind):
        yield from paths_of(kind.value_type, f"{path}.list.element")
    else:
        yield path


def _is_widened(file_type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file are of a type that may become that of a column, so that all of them fit into it."""
    kinds = pa.types
    if kinds.is_date32(file_type):
        return bool(kinds.is_timestamp(wanted) and wanted.tz is None)
    if kinds.is_decimal128(file_type) and kinds.is_decimal128(wanted):
        more = wanted.scale - file_type.scale
        return bool(0 <= more <= wanted.precision - file_type.precision)
    if kinds.is_signed_integer(file_type) and kinds.is_float64(wanted):
        return bool(file_type.bit_width <= 32)
    if kinds.is_signed_integer(file_type) and kinds.is_signed_integer(wanted):
        return bool(file_type.bit_width < wanted.bit_width)
    if kinds.is_signed_integer(file_type) and kinds.is_decimal128(wanted):
        return wanted.precision - wanted.scale >= len(str(1 << (file_type.bit_width - 1))) and wanted.scale >= 0
    return bool(kinds.is_float32(file_type) and kinds.is_float64(wanted))


def _alike(file_type: pa.DataType, wanted: pa.DataType, *, widened: bool) -> bool:
    """Whether values of a file have the column's type, with the same names and order of members; or one that was
    ``widened`` to it.
    """
    kinds = pa.types
    if widened and _is_widened(file_type, wanted):
        return True
    if kinds.is_struct(wanted):
        same = kinds.is_struct(file_type) and [field.name for field in file_type] == [field.name for field in wanted]
        return bool(same) and all(
            _alike(a.type, b.type, widened=widened) for a, b in zip(file_type, wanted, strict=True)
        )
    if kinds.is_map(wanted):
        same = kinds.is_map(file_type) and _alike(file_type.key_type, wanted.key_type, widened=widened)
        return bool(same) and _alike(file_type.item_type, wanted.item_type, widened=widened)
    if kinds.is_list(wanted):
        return bool(kinds.is_list(file_type)) and _alike(file_type.value_type, wanted.value_type, widened=widened)
    if kinds.is_timestamp(wanted):
        return are_same_instants(file_type, wanted)
    if kinds.is_duration(wanted) and kinds.is_int64(file_type):  # RFC #7077: no annotation
        return True
    return bool(file_type.equals(wanted)) or str(file_type) in _OTHER_LAYOUTS.get(str(wanted), ())


_OTHER_LAYOUTS = {"string": ("large_string", "string_view"), "binary": ("large_binary", "binary_view")}
"""Types that a file names for its texts and bytes, as Polars and delta-rs do; the values are the same."""
