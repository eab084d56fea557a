"""Packs the live rows of data files into one, by Arrow, on executors or here.

Imports pyarrow and numpy only: this module travels to executors by value, where nothing of ours is installed. What to
do comes as plain values (`anabranch._spark.writing.arrow_packing`). Guarantees: a file is written only if Arrow reads
each source exactly as Spark does, and writes each column as Spark does; what is not known to be so ends the attempt.
Rows go from row group to row group, so that memory is bounded, and are read on a thread beside the one that writes. No
two attempts write one file.

Deletion vectors come as bits, one for each row up to the last deleted one. Files are local ones.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._arrow.ahead import ahead
from anabranch._arrow.dictionaries import compact_dictionaries, with_dictionaries
from anabranch._protocol.unsupported import Unsupported

ASIDE = "_temporary"
"""The folder of attempts, in that of the job: by this name Spark's own attempts lie there, and no reader sees it."""
_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacyDateTime"
_CORRECTED_SINCE = b"3.0.0"
_OLDEST_ARROW = 17
BATCH_ROWS = 1 << 17
BATCH_BYTES = 32 << 20
"""Of rows that are read at once; wide ones are fewer."""
PROBED_ROWS = 1 << 7
"""So many rows are looked at to learn how wide they are."""
_LEVELS = {"zstd": 3, "gzip": 6}
"""Those of Spark's writer; Arrow's own are others."""


PLACE_BITS = 40
"""A position in a file is below 2 to this power, and so many files may be listed that their places fit above."""


class CalledOff(Exception):
    """Nobody waits for this any more."""


def write_packed_file(task: Mapping[str, Any]) -> tuple[str, int]:
    """Write the live rows of the task's files, one file behind the other, as one new file, where no reader sees it.

    Args:
        task: ``folder`` is where; ``files`` says of each file where it is (``path``), which rows are deleted and by
            what its rows are known (``first_id``, ``version``); ``wanted`` are the columns as they are stored, in an
            Arrow schema; ``hidden`` the names of those with ids, if any; ``codec``; ``group_bytes``; ``says`` is
            what the footer says; ``is_called_off``, if it is there, is asked now and then whether to go on.

    Returns:
        Its path and the number of rows; no path where there is no row.

    Raises:
        Unsupported, or anything that Arrow or the system raises: the attempt has failed, and left nothing.
    """
    check(task)
    task = with_dictionaries(task)
    path = new_path(task["folder"])
    try:
        with ahead(live(task)) as batches:
            rows = write_batches(path, task, batches)
    except BaseException:
        remove(path)
        raise
    if not rows:
        remove(path)
    return (path if rows else ""), rows


def running(tasks: Sequence[Mapping[str, Any]]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark maps over the numbers of tasks: for each, what `write_packed_file` gave, or why it gave nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                path, rows, refused = None, 0, None
                try:
                    path, rows = write_packed_file(tasks[number])
                except Exception as error:
                    refused = type(error).__name__  # its words may hold values of rows
                columns = [pa.array([number], pa.int64()), pa.array([path], pa.string())]
                columns += [pa.array([rows], pa.int64()), pa.array([refused], pa.string())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "path", "rows", "refused"])

    return run


def new_path(folder: str) -> str:
    """A path in a folder for one attempt alone, where no reader looks."""
    aside = os.path.join(folder, ASIDE)
    os.makedirs(aside, exist_ok=True)
    return os.path.join(aside, f"anabranch-{uuid.uuid4()}.parquet")


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    if os.path.exists(path):
        os.remove(path)


def write_batches(path: str, task: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> int:
    """Write these rows, in row groups of about so many bytes as Arrow holds them: how many there were."""
    wanted: pa.Schema = task["wanted"]
    rows = held = 0
    group: list[pa.RecordBatch] = []
    with pa.OSFile(path, "wb") as sink, _writer(sink, task) as writer:
        for batch in batches:
            group.append(batch)
            rows, held = rows + batch.num_rows, held + batch.nbytes
            if held >= task["group_bytes"]:
                _write_group(writer, group, wanted)
                group, held = [], 0
        if group:
            _write_group(writer, group, wanted)
        writer.add_key_value_metadata(task["says"])
    return rows


def _write_group(writer: pq.ParquetWriter, group: Sequence[pa.RecordBatch], wanted: pa.Schema) -> None:
    table = compact_dictionaries(pa.Table.from_batches(group, wanted))
    writer.write_table(table, row_group_size=table.num_rows)


def _writer(sink: Any, task: Mapping[str, Any]) -> pq.ParquetWriter:
    codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(task["codec"], task["codec"])
    return pq.ParquetWriter(
        sink,
        task["wanted"],
        version="2.6",
        data_page_version="1.0",
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


def live(task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The live rows of a task's files, one file behind the other."""
    for file in task["files"]:
        with pa.OSFile(file["path"]) as opened:  # no map into memory: a file that is cut short would end the process
            source = pq.ParquetFile(opened, read_dictionary=file.get("dictionaries"))
            for batch in _live_of(source, file, task):
                if task.get("is_called_off", bool)():
                    raise CalledOff
                yield batch


def _live_of(source: pq.ParquetFile, file: Mapping[str, Any], task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    wanted: pa.Schema = task["wanted"]
    there = set(source.schema_arrow.names)
    names = [name for name in wanted.names if name in there]
    kept, first = _live_mask(file["deleted"]), 0
    for group in range(source.metadata.num_row_groups):
        end = first + source.metadata.row_group(group).num_rows
        for batch in _batches(source, group, names):
            found = _to_stored_batch(batch, first, file, task)
            shown = None if kept is None else kept[first : first + len(found)]
            first += len(found)
            if shown is not None and not shown.all():
                rest = np.ones(len(found) - len(shown), dtype=bool)
                found = found.filter(pa.array(np.concatenate([shown, rest])))
            if len(found):
                _refuse_nan(found)
                yield found
        if first != end:
            raise Unsupported("a row group has another number of rows than its footer says")


def _batches(source: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a row group; without any of them its rows alone."""
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
    """How many rows of a row group fit into memory together, by the first ones: of values that a file holds once, for
    many rows, its footer does not say how long they are. Those of one length tell it by their types.

    Args:
        leaves: the columns that are read, each with those of its leaves that are.
    """
    known, kinds = source.metadata.row_group(group), source.schema_arrow  # which is made anew each time
    widths = {name: _width(kinds.field(name).type) for name in leaves}
    width = max(known.total_byte_size / max(1, known.num_rows), sum(each or 0 for each in widths.values()))
    unknown = [leaf for name, each in widths.items() if each is None for leaf in leaves[name]]
    if unknown and known.num_rows > PROBED_ROWS:
        first = next(_columns(source, group, unknown, PROBED_ROWS))
        width = max(width, sum(each or 0 for each in widths.values()) + first.nbytes / len(first))
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1, width))))


def _width(kind: pa.DataType) -> float | None:
    """How many bytes a value takes; None where that depends on the value. Of a dictionary there is one for all rows."""
    kind = kind.index_type if pa.types.is_dictionary(kind) else kind
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else None


def _live_mask(deleted: bytes | None) -> Any:
    """Which rows are live, as far as any is deleted; None: all."""
    if deleted is None:
        return None
    return ~np.unpackbits(np.frombuffer(zlib.decompress(deleted), np.uint8), bitorder="little").astype(bool)


def _to_stored_batch(
    batch: pa.RecordBatch, first: int, file: Mapping[str, Any], task: Mapping[str, Any]
) -> pa.RecordBatch:
    """The stored columns; those that the file lacks are NULL, and rows without ids of their own get those by place."""
    columns = {field.name: _column(batch, field) for field in task["wanted"]}
    if task["hidden"]:
        row_id, version = task["hidden"]
        ids = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        own = pc.add(ids, pa.scalar(file["first_id"], pa.int64()))
        columns[row_id] = pc.coalesce(columns[row_id], own)
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


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether these are one type, with the same names and NULLs inside."""
    return one.equals(other, check_metadata=True)


def _refuse_nan(batch: pa.RecordBatch) -> None:
    """Raises Unsupported: there is a NaN. Arrow leaves it out of minimum and maximum, so that Spark, for which it is
    the greatest number, would skip rows.
    """
    for values in batch.columns:
        for leaf in _leaves(values):
            if pc.any(pc.is_nan(leaf)).as_py():
                raise Unsupported("there is a NaN")


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The floating numbers in a column, at any depth."""
    kind = values.type
    if pa.types.is_floating(kind):
        yield values
    elif pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_list(kind):
        yield from _leaves(values.values)


# -- what a file must be like ------------------------------------------------------------------------------------------


def check(task: Mapping[str, Any]) -> None:
    """Raises Unsupported unless Arrow reads the files of a task as Spark does."""
    if int(pa.__version__.partition(".")[0]) < _OLDEST_ARROW:
        raise Unsupported("pyarrow is too old")
    for file in task["files"]:
        with pa.OSFile(file["path"]) as opened:
            check_file(pq.ParquetFile(opened), task["wanted"])


def check_file(source: pq.ParquetFile, wanted: pa.Schema, *, members: bool = False) -> None:
    """Raises Unsupported unless Arrow reads the wanted columns of a file as Spark does; with ``members`` a struct may
    be some of its own, and numbers may be narrower, as they were before a column became wider.
    """
    said = source.metadata.metadata or {}
    if _LEGACY in said or said.get(_VERSION, _CORRECTED_SINCE) < _CORRECTED_SINCE:
        raise Unsupported("days are counted by the Julian calendar")
    schema = source.schema
    leaves = [schema.column(i) for i in range(len(schema))]
    paths = [leaf.path for leaf in leaves]
    if len(set(paths)) < len(paths) or any(leaf.physical_type == "INT96" for leaf in leaves):
        raise Unsupported("a column is there twice, or is of INT96")
    held = source.schema_arrow  # which is made anew each time
    names = held.names
    by_fold = {name.lower(): name for name in names}
    if len(by_fold) < len(names):
        raise Unsupported("names differ in case only")
    present = (field for field in wanted if by_fold.get(field.name.lower()) == field.name)
    expected = [path for field in present for path in paths_of(field.type, field.name)]
    if not set(expected) <= set(paths):
        raise Unsupported("a nested column is laid out otherwise")
    for field in wanted:
        found = by_fold.get(field.name.lower())
        if found is None:
            continue  # its values are NULL
        there = _some_of(held.field(found).type, field.type) if members else held.field(found).type
        is_read = members and _is_widened(there, field.type)
        if found != field.name or not (is_read or _alike(there, field.type)):
            raise Unsupported("a column has another type, or another name")


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


def _some_of(there: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """A struct with the wanted members only, without any whose name is there twice; all else as it is."""
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(there)):
        return there
    folded = [each.name.lower() for each in there]
    found = [(each, there.field(each.name)) for each in wanted if folded.count(each.name.lower()) == 1]
    return pa.struct([pa.field(each.name, _some_of(member.type, each.type)) for each, member in found])


def _is_widened(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file are narrower numbers of the same kind, each of which has its place in a column."""
    kinds = pa.types
    if kinds.is_signed_integer(there) and kinds.is_signed_integer(wanted):
        return bool(there.bit_width < wanted.bit_width)
    return bool(kinds.is_float32(there) and kinds.is_float64(wanted))


def _alike(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a file are those of the column, one by one: in type, in the names and order of members."""
    kinds = pa.types
    if kinds.is_struct(wanted):
        same = kinds.is_struct(there) and [field.name for field in there] == [field.name for field in wanted]
        return bool(same) and all(_alike(a.type, b.type) for a, b in zip(there, wanted, strict=True))
    if kinds.is_map(wanted):
        same = kinds.is_map(there) and _alike(there.key_type, wanted.key_type)
        return bool(same) and _alike(there.item_type, wanted.item_type)
    if kinds.is_list(wanted):
        return bool(kinds.is_list(there)) and _alike(there.value_type, wanted.value_type)
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(there)) and there.unit == "us" and (there.tz is None) == (wanted.tz is None)
    return bool(there.equals(wanted)) or str(there) == _LARGE.get(str(wanted))


_LARGE = {"string": "large_string", "binary": "large_binary"}
