"""Statistics: the JSON of each file in the log, one by one and as columns.

Knows PROTOCOL.md, section "Per-file Statistics", and how known writers deviate from it. Knows no predicates. Pure.
Guarantee: reading never fails (unreadable statistics count as absent), and a returned bound is true for every known
writer: maxima that a writer truncated are raised or dropped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.leaves import Leaf, leaf_at
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.stats.literals import domain

_TOP = "\U0010ffff"


# -- the JSON of one file ----------------------------------------------------------------------------------------------


class _Number(str):
    """A JSON number in its original spelling, so that no digit of it is lost."""

    __slots__ = ()


def num_records(stats: str | None) -> int | None:
    """The physical number of rows in the statistics; None if they lack it."""
    count = _object(stats).get("numRecords")
    return count if type(count) is int and count >= 0 else None


def with_wide_bounds(stats: str | None) -> str:
    """The same statistics with ``tightBounds`` false, as a file's `add` needs once it has a deletion vector.

    Nothing else changes, and no digit of any number.

    Example:
        >>> with_wide_bounds('{"numRecords":3,"maxValues":{"price":1.10}}')
        '{"numRecords":3,"maxValues":{"price":1.10},"tightBounds":false}'
    """
    return stats_json({**_object(stats), "tightBounds": False})


def with_num_records(stats: str | None, count: int) -> str:
    """The same statistics with the physical number of rows, for files whose writer omitted it."""
    return stats_json({**_object(stats), "numRecords": count})


def _object(stats: str | None) -> dict[str, Any]:
    try:
        parsed = json.loads(stats or "{}", parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def stats_json(value: Any) -> str:
    """Compact JSON of dicts, lists and scalars; a `Decimal` becomes a number with all its digits."""
    if isinstance(value, dict):
        return "{" + ",".join([f"{stats_json(name)}:{stats_json(item)}" for name, item in value.items()]) + "}"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return (_AS_IT_IS if _is_unicode(value) else _ESCAPED)(value)
    if isinstance(value, list):
        return "[" + ",".join(map(stats_json, value)) + "]"
    return f"{value:f}" if isinstance(value, Decimal) else _AS_IT_IS(value)


_AS_IT_IS, _ESCAPED = json.JSONEncoder(ensure_ascii=False).encode, json.JSONEncoder().encode


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: a lone surrogate cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


# -- to columns --------------------------------------------------------------------------------------------------------

_ROWS_AT_ONCE = 1 << 18
_BYTES_AT_ONCE = 1 << 28
_BLOCK = 1 << 20
_FEW_ROWS = 8
_ROWS_BY_HAND = 1 << 10
_OF_COLUMNS = ("minValues", "maxValues", "nullCount")
_Members = Mapping[str, Mapping[tuple[str, ...], pa.ChunkedArray]]
"""For each statistic, the leaf columns by their paths of physical names."""
_MAX_WIDENED_BY = timedelta(milliseconds=1)
_MOMENT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_SHAPES = {
    "date": r"^\d{4}-\d{2}-\d{2}$",
    "timestamp": _MOMENT + r"(Z|[+-]\d{2}:?\d{2})$",
    "timestamp_ntz": rf"{_MOMENT}$|^\d{{4}}-\d{{2}}-\d{{2}}$",
}


@dataclass(frozen=True)
class ColumnStats:
    """The statistics of one column, one value per file; null where a file has none.

    ``minimum`` and ``maximum`` have the column's `anabranch._protocol.stats.literals.domain` as type (Arrow's null type
    if there is none). They enclose every value that is neither NULL nor NaN. ``maximum`` of a timestamp is 1 ms above
    the written one, because writers truncate its digits. ``null_count`` is int64; with a deletion vector only 0 and
    ``num_records`` are meaningful.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array


@dataclass(frozen=True)
class StatsTable:
    """The statistics of files as columns, one row per file; null where a file has none."""

    num_records: pa.Array
    columns: Mapping[Name, ColumnStats]


def stats_columns(stats: pa.Array | pa.ChunkedArray, schema: Struct, columns: Collection[Name]) -> StatsTable:
    """Parse the statistics JSON of many files to typed columns, in one pass of Arrow's JSON reader.

    Args:
        stats: one JSON text or null per file.
        schema: the table's schema, with types, and with physical names if columns are mapped.
        columns: columns, or paths of members of structs, in the schema's spelling; structs and unknown names are
            omitted from the result.

    An unreadable text counts as null, never as an error.
    """
    leaves = {name: leaf for name in columns if (leaf := leaf_at(schema, name)) is not None}
    wire_schema = _wire_schema(leaves.values())
    parts = [_parse_texts(part, wire_schema, _ROWS_AT_ONCE) for part in _slices(stats)]
    table = pa.concat_tables(parts) if parts else wire_schema.empty_table()
    members = {statistic: dict(_members(table[statistic])) for statistic in _OF_COLUMNS}
    column_stats = {name: _column_stats(table.num_rows, members, leaf) for name, leaf in leaves.items()}
    return StatsTable(_plain(table["numRecords"]), column_stats)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _slices(stats: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in stats.chunks if isinstance(stats, pa.ChunkedArray) else [stats]:
        texts = _readable(chunk if pa.types.is_string(chunk.type) else pc.cast(chunk, pa.string()))
        mean = texts.nbytes // max(len(texts), 1) + 1
        step = max(_ROWS_BY_HAND, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // mean))
        yield from (texts.slice(start, step) for start in range(0, len(texts), step))


def _readable(texts: pa.Array) -> pa.Array:
    """The same texts, null where the bytes are not UTF-8, which Arrow's kernels assume."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([_try_decode(text) for text in pc.cast(texts, pa.binary()).to_pylist()], pa.string())
    return texts


def _try_decode(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _wire_schema(leaves: Collection[Leaf]) -> pa.Schema:
    bounds = _nest_in_structs((leaf.keys, _wire_type(leaf.field)) for leaf in leaves if domain(leaf.field) is not None)
    counts = _nest_in_structs((leaf.keys, pa.int64()) for leaf in leaves)
    return pa.schema([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)])


def _nest_in_structs(leaves: Iterable[tuple[Sequence[str], pa.DataType]]) -> pa.StructType:
    """The struct that has each of these types at its path."""
    members: dict[str, list[tuple[Sequence[str], pa.DataType]]] = {}
    for path, arrow in leaves:
        members.setdefault(path[0], []).append((path[1:], arrow))
    return pa.struct(
        [(name, _nest_in_structs(inner) if inner[0][0] else inner[0][1]) for name, inner in members.items()]
    )


def _wire_type(field: Field) -> pa.DataType:
    """The JSON type of a bound. A ``float`` must be read as one: 0.1 means the float next to it."""
    if field.type == "float":
        return pa.float32()
    return pa.string() if field.type in _SHAPES else domain(field)


def _parse_texts(texts: pa.Array, schema: pa.Schema, rows: int) -> pa.Table:
    """Parse texts, one row per text. Batches that Arrow refuses are split, and finally read text by text. So are a few
    texts, for which starting Arrow's reader would cost more.
    """
    table = _read_lines(texts, schema) if len(texts) > _FEW_ROWS else _read_by_hand(texts, schema)
    if table is not None:
        return table
    if rows == _ROWS_BY_HAND:
        return _read_by_hand(texts, schema)
    parts = range(0, len(texts), _ROWS_BY_HAND)
    return pa.concat_tables([_parse_texts(texts.slice(start, _ROWS_BY_HAND), schema, _ROWS_BY_HAND) for start in parts])


def _read_lines(texts: pa.Array, schema: pa.Schema) -> pa.Table | None:
    """Parse the texts as one buffer of JSON lines with Arrow's reader; None if it refuses any of them."""
    # Each line begins an object, so the row count equals the text count only if each text is one row.
    objects = pc.if_else(pc.fill_null(pc.starts_with(texts, "{"), False), texts, "{}")
    lines = pc.binary_join_element_wise(objects, "", "\n")
    ends = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
    buffer = lines.buffers()[2].slice(int(ends[0]), int(ends[-1] - ends[0]))
    block = max(_BLOCK, int(np.diff(ends).max()) + 1)
    try:
        table = pj.read_json(
            pa.BufferReader(buffer),  # noqa: TID251 - a kernel of Arrow made it
            read_options=pj.ReadOptions(block_size=block),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


def _read_by_hand(texts: pa.Array, schema: pa.Schema) -> pa.Table:
    rows = [_object(text) for text in texts.to_pylist()]
    columns = [_value_array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _value_array(values: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(arrow):
        return pa.array([_value(value, arrow) for value in values], arrow)
    objects = [value if isinstance(value, dict) else {} for value in values]
    fields = [arrow.field(i) for i in range(arrow.num_fields)]
    members = [_value_array([row.get(field.name) for row in objects], field.type) for field in fields]
    return pa.StructArray.from_arrays(members, fields=fields) if fields else pa.array(objects, arrow)


def _value(value: Any, arrow: pa.DataType) -> Any:
    """Convert a JSON value to this Arrow type; None if it is of another type."""
    kind = {str: "text", bool: "truth", int: "number", _Number: "number"}.get(type(value))
    wanted_kind = "text" if pa.types.is_string(arrow) else "truth" if pa.types.is_boolean(arrow) else "number"
    if kind != wanted_kind or (kind == "text" and not _is_unicode(value)):
        return None
    if kind != "number":
        return value
    number = float(value) if pa.types.is_floating(arrow) else Decimal(value) if pa.types.is_decimal(arrow) else value
    try:
        return pa.scalar(number, arrow).as_py()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _members(column: pa.ChunkedArray, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    """The leaves of a struct. Each struct is flattened once, since finding one member costs as much as all."""
    if not pa.types.is_struct(column.type):
        yield keys, column
        return
    for field, member in zip(column.type, column.flatten(), strict=True):
        yield from _members(member, (*keys, field.name))


def _column_stats(rows: int, members: _Members, leaf: Leaf) -> ColumnStats:
    keys, field, arrow = leaf.keys, leaf.field, domain(leaf.field)
    counts = _plain(members["nullCount"][keys])
    # a float widened to a double: the shortest digits in old statistics are not its value
    if arrow is None or (field.type == "double" and "delta.typeChanges" in field.metadata):
        nothing = pa.nulls(rows, arrow or pa.null())
        return ColumnStats(nothing, nothing, counts)
    low, high = (_cast_bound(_plain(members[bound][keys]), field) for bound in ("minValues", "maxValues"))
    return ColumnStats(low, _widen_maximum(high, field), counts)


def _cast_bound(values: pa.Array, field: Field) -> pa.Array:
    if field.type in ("float", "double"):
        numbers = pc.add(pc.cast(values, pa.float64()), 0.0)  # -0.0 becomes 0.0, so that equal numbers have equal bits
        return pc.if_else(pc.is_finite(numbers), numbers, None)
    return _from_text(values, field) if field.type in _SHAPES else values


def _from_text(texts: pa.Array, field: Field) -> pa.Array:
    arrow = domain(field)
    try:
        return pc.cast(texts, arrow)
    except pa.ArrowInvalid:
        shaped = pc.if_else(pc.match_substring_regex(texts, _SHAPES[str(field.type)]), texts, None)
    try:
        return pc.cast(shaped, arrow)
    except pa.ArrowInvalid:  # some day 32, or hour 25
        return pa.array([_cast_one(text, arrow) for text in shaped.to_pylist()], arrow)


def _cast_one(text: str | None, arrow: pa.DataType) -> Any:
    try:
        return pa.scalar(text).cast(arrow).as_py()
    except pa.ArrowInvalid:
        return None


def _widen_maximum(high: pa.Array, field: Field) -> pa.Array:
    if field.type in ("timestamp", "timestamp_ntz"):
        return pc.add(high, pa.scalar(_MAX_WIDENED_BY, pa.duration("us")))
    if field.type == "string" and pc.any(pc.ends_with(high, "\ufffd")).as_py():
        return _above_old_tie_breaker(high)
    return high


def _above_old_tie_breaker(high: pa.Array) -> pa.Array:
    """Make maxima true in the order of UTF-8 that older versions of delta-spark truncated, with U+FFFD after the
    prefix.

    They compared UTF-16 units: the truncated character may be beyond U+FFFD, and half of one may have become a question
    mark.
    """
    raised = pc.utf8_replace_slice(high, -1, 2**31 - 1, _TOP)
    true = pc.if_else(pc.ends_with(high, "?\ufffd"), None, raised)
    return pc.if_else(pc.ends_with(high, "\ufffd"), true, high)
