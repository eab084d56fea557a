"""Tasks: the pieces of a batch in the form that executors read (`anabranch._streaming.arrow_rows`).

Knows the locations of files, the names of their columns, and how Spark divides files among tasks. Guarantee: each row
of each piece is in exactly one task; a task consists of plain values and Arrow's own.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.changes import check_feed_columns
from anabranch._log.file_locations import locate_in_store
from anabranch._protocol.actions import Metadata
from anabranch._protocol.change_feed import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, FIELDS
from anabranch._protocol.partitions import has_zone, read_value
from anabranch._protocol.schema.column_mapping import physical_schema
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._protocol.timestamps import zone_of
from anabranch._storage.contract import Store
from anabranch._storage.store_settings import bucket_options
from anabranch._streaming.pieces import Piece
from anabranch._streaming.reading import Splits, StreamRead
from anabranch.commands.field_id_names import is_by_id, layouts_of
from anabranch.errors import CorruptVector, InvalidPartitionValue, UnknownStore

_MOST_SHARES = 1000
"""Maximum number of shares of a file, whatever size the log has for it."""
_MOST_ROWS = 1 << 32
"""Maximum number of rows in a data file; a vector with a position behind that is corrupt."""
_ROWS_AT_ONCE = 1 << 20
_REACHABLE = ("s3", "gs", "abfss")
"""Kinds of buckets that Arrow reads on executors."""


def columns_of(read: StreamRead) -> Struct:
    """The columns of a stream: the table's, and those of the change feed. Raises InvalidOption: one is in both."""
    columns = read.columns.schema
    if not read.feed:
        return columns
    check_feed_columns(read.table, columns)
    return Struct((*columns, *FIELDS))


def tasks_of(read: StreamRead, store: Store, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Divides the pieces among tasks.

    Raises:
        InvalidPartitionValue: a partition value is not of its column's type.
        CorruptVector: a vector has a position that no file has.
        CorruptLog, FileOutsideTable: the log names a file that is not the table's.
    """
    metadata, columns = read.columns, all_nullable(columns_of(read))
    frame = {"wanted": to_arrow(columns), "physical": to_arrow(physical_schema(columns))}
    files = [_file(read, metadata, store, piece) for piece in pieces]
    if is_by_id(metadata):
        _with_layouts(store, metadata, columns, files)
    return [{**frame, "files": packed} for packed in _pack_files(files, read.splits)]


def _with_layouts(store: Store, metadata: Metadata, columns: Struct, files: list[dict[str, Any]]) -> None:
    """Adds the names of columns in files that name them differently."""
    layouts = layouts_of(store, metadata, [file["path"] for file in files])
    for file in files:
        if (layout := layouts.get(file["path"])) is not None:
            named = Struct((*layout, *tuple(columns)[len(layout) :]))
            file["physical"] = to_arrow(physical_schema(all_nullable(named)))


def _file(read: StreamRead, metadata: Metadata, store: Store, piece: Piece) -> dict[str, Any]:
    mask, beyond = _mask(store.url, piece)
    return {
        **_place(store, piece.path),
        "table": store.url,
        "path": piece.path,
        "version": piece.version,
        "size": piece.size,
        "constants": {**_partition_values(read, metadata, store.url, piece), **_feed_values(piece)},
        "mask": mask,
        "beyond": beyond,
        "share": (0, 1),
    }


def _place(store: Store, path: str) -> dict[str, Any]:
    """A file's bucket (None for this machine's disks), its name there, and the session's options of the bucket. Raises
    UnknownStore: executors cannot read it.
    """
    folder, name = locate_in_store(store, path)
    scheme, _, rest = folder.url.partition("://")
    bucket, _, inside = rest.partition("/")
    if scheme == "file":
        return {"store": None, "name": f"/{inside}/{name}"}
    if scheme not in _REACHABLE:
        raise UnknownStore(location=folder.url, reason="a stream reads files, s3, gs and abfss only.")
    options = bucket_options(scheme, bucket, {})
    return {"store": f"{scheme}://{bucket}", "name": f"{inside}/{name}" if inside else name, "said": options}


def _mask(table: str, piece: Piece) -> tuple[tuple[bytes, int] | None, bool]:
    """The shown rows as compressed bits with their number, and whether the rows behind them are shown. Raises
    CorruptVector: a position is one that no file has.
    """
    positions = piece.hidden if piece.only is None else piece.only
    if positions and positions.max() >= _MOST_ROWS:
        raise CorruptVector(table=table, file=piece.path, reason=f"it has the position {positions.max()}.")
    if piece.only is not None:
        return _bits(piece.only, shown=True), False
    return (_bits(piece.hidden, shown=False), True) if piece.hidden else (None, True)


def _bits(positions: BitMap64, *, shown: bool) -> tuple[bytes, int]:
    length = positions.max() + 1 if positions else 0
    packed, packer = list[bytes](), zlib.compressobj(1)
    for first in range(0, length, _ROWS_AT_ONCE):
        behind = min(first + _ROWS_AT_ONCE, length)
        bits = np.full(behind - first, not shown)
        bits[np.asarray((positions & BitMap64(range(first, behind))).to_array(), np.int64) - first] = shown
        packed.append(packer.compress(np.packbits(bits, bitorder="little").tobytes()))
    return b"".join([*packed, packer.flush()]), length


def _feed_values(piece: Piece) -> dict[str, Any]:
    if piece.shown is None:
        return {}
    moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=piece.shown.timestamp)
    values = {COMMIT_VERSION: piece.shown.version, COMMIT_TIMESTAMP: moment}
    return values if piece.shown.change is None else {CHANGE_TYPE: piece.shown.change, **values}


def _partition_values(read: StreamRead, metadata: Metadata, table: str, piece: Piece) -> dict[str, Any]:
    """The values of partition columns, by their names in files."""
    by_name = {field.physical_name: field for field in metadata.schema}
    texts = {name: text for name, text in piece.values.items() if name in by_name}
    return {name: _value(read, table, piece.path, by_name[name], text) for name, text in texts.items()}


def _value(read: StreamRead, table: str, path: str, field: Field, text: str | None) -> Any:
    try:
        value = read_value(text, str(field.type))
        if field.type == "timestamp" and value is not None and not has_zone(pa.array([text]))[0].as_py():
            return value.replace(tzinfo=zone_of(read.zone))  # in the session's zone, as in delta-spark
        return value
    except ValueError:
        facts = {"file": path, "column": field.name, "type": field.type, "value": text}
        raise InvalidPartitionValue(table=table, **facts) from None


# -- tasks -------------------------------------------------------------------------------------------------------------


def _pack_files(files: Sequence[Mapping[str, Any]], splits: Splits) -> Iterator[list[Mapping[str, Any]]]:
    """Groups the files as Spark does: a group ends where the next file's bytes would be too many."""
    total = sum(file["size"] + splits.open_bytes for file in files)
    most = min(splits.most_bytes, max(splits.open_bytes, total // max(splits.tasks, 1)))
    group, size = list[Mapping[str, Any]](), 0
    for file in sorted(_shares(files, most), key=lambda file: -file["size"] / file["share"][1]):
        read = file["size"] // file["share"][1]
        if group and size + read > most:
            yield group
            group, size = [], 0
        group.append(file)
        size += read + splits.open_bytes
    if group:
        yield group


def _shares(files: Sequence[Mapping[str, Any]], most: int) -> Iterator[Mapping[str, Any]]:
    for file in files:
        count = min(max(1, -(-file["size"] // most)), _MOST_SHARES)
        yield from ({**file, "share": (part, count)} for part in range(count))
