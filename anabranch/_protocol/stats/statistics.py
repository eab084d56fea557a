"""Statistics: the JSON of each file in the log, one by one and as columns.

Knows PROTOCOL.md, section "Per-file Statistics", and how known writers deviate from it. Knows no predicates. Pure.
Guarantee: reading never fails (unreadable statistics count as absent, whatever they hold), and a returned bound is true
for every known writer: where one cut its maxima too short, they are raised or dropped.
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
    """The physical number of rows that the statistics state, None where they do not."""
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
    """The same statistics with the physical number of rows, for files whose writer left it out."""
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
        return "{" + ",".join([f"{stats_json(name)}:{stats_json(each)}" for name, each in value.items()]) + "}"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return (_AS_IT_IS if _is_unicode(value) else _ESCAPED)(value)
    if isinstance(value, list):
        return "[" + ",".join(map(stats_json, value)) + "]"
    return f"{value:f}" if isinstance(value, Decimal) else _AS_IT_IS(value)


_AS_IT_IS, _ESCAPED = json.JSONEncoder(ensure_ascii=False).encode, json.JSONEncoder().encode


def _is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: a lone surrogate cannot."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


# -- to columns --------------------------------------------------------------------------------------------------------

_ROWS_AT_ONCE = 1 << 18
_BYTES_AT_ONCE = 1 << 28
_BLOCK = 1 << 20
_FEW_ROWS = 8
_ROWS_BY_HAND = 1 << 10
_OF_COLUMNS = ("minValues", "maxValues", "nullCount")
_Members = Mapping[str, Mapping[tuple[str, ...], pa.ChunkedArray]]
"""The leaves of each of these, by their paths of physical names."""
_MAX_WIDENED_BY = timedelta(milliseconds=1)
_MOMENT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_SHAPES = {
    "date": r"^\d{4}-\d{2}-\d{2}$",
    "timestamp": _MOMENT + r"(Z|[+-]\d{2}:?\d{2})$",
    "timestamp_ntz": rf"{_MOMENT}$|^\d{{4}}-\d{{2}}-\d{{2}}$",
}


@dataclass(frozen=True)
class ColumnStats:
    """What the statistics of each file state of one column; null where they state nothing.

    ``minimum`` and ``maximum`` are of the column's `anabranch._protocol.stats.literals.domain` (Arrow's null type where
    there is none). Every value that is neither NULL nor NaN lies between them, both included; of NaN they say nothing.
    ``maximum`` of a timestamp is 1 ms later than stated, since writers cut the digits after it. ``null_count`` is
    int64; with a deletion vector only 0 and ``num_records`` mean anything.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array


@dataclass(frozen=True)
class StatsTable:
    """The statistics of files as columns, one row per file; null where a file states nothing."""

    num_records: pa.Array
    columns: Mapping[Name, ColumnStats]


def stats_columns(stats: pa.Array | pa.ChunkedArray, schema: Struct, columns: Collection[Name]) -> StatsTable:
    """The statistics JSON of many files as typed columns, read in one pass of Arrow's JSON reader.

    Args:
        stats: one JSON text or null per file.
        schema: the table's schema; gives types, and physical names where columns are mapped.
        columns: columns, or paths of members of structs, in the schema's spelling; those that are structs, and those
            that the schema does not have, are left out of the result.

    A text that cannot be read counts as null, never as an error.
    """
    leaves = {name: leaf for name in columns if (leaf := leaf_at(schema, name)) is not None}
    wanted = _wire_schema(leaves.values())
    parts = [_parse_texts(part, wanted, _ROWS_AT_ONCE) for part in _slices(stats)]
    table = pa.concat_tables(parts) if parts else wanted.empty_table()
    members = {each: dict(_members(table[each])) for each in _OF_COLUMNS}
    found = {name: _column_stats(table.num_rows, members, leaf) for name, leaf in leaves.items()}
    return StatsTable(_plain(table["numRecords"]), found)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _slices(stats: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in stats.chunks if isinstance(stats, pa.ChunkedArray) else [stats]:
        texts = _readable(chunk if pa.types.is_string(chunk.type) else pc.cast(chunk, pa.string()))
        mean = texts.nbytes // max(len(texts), 1) + 1
        step = max(_ROWS_BY_HAND, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // mean))
        yield from (texts.slice(start, step) for start in range(0, len(texts), step))


def _readable(texts: pa.Array) -> pa.Array:
    """The same texts, null where the bytes are not UTF-8, which Arrow's own kernels assume."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([_try_decode(each) for each in pc.cast(texts, pa.binary()).to_pylist()], pa.string())
    return texts


def _try_decode(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _wire_schema(leaves: Collection[Leaf]) -> pa.Schema:
    bounds = _nest_in_structs((each.keys, _wire_type(each.field)) for each in leaves if domain(each.field) is not None)
    counts = _nest_in_structs((each.keys, pa.int64()) for each in leaves)
    return pa.schema([("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)])


def _nest_in_structs(leaves: Iterable[tuple[Sequence[str], pa.DataType]]) -> pa.StructType:
    """The struct that holds each of these types at its path."""
    members: dict[str, list[tuple[Sequence[str], pa.DataType]]] = {}
    for path, arrow in leaves:
        members.setdefault(path[0], []).append((path[1:], arrow))
    return pa.struct(
        [(name, _nest_in_structs(inner) if inner[0][0] else inner[0][1]) for name, inner in members.items()]
    )


def _wire_type(field: Field) -> pa.DataType:
    """The JSON type of a bound. A ``float`` must be read as one: 0.1 stands for the float next to it."""
    if field.type == "float":
        return pa.float32()
    return pa.string() if field.type in _SHAPES else domain(field)


def _parse_texts(texts: pa.Array, wanted: pa.Schema, rows: int) -> pa.Table:
    """One row per text. What Arrow refuses is split and in the end read text by text, as a few texts always are:
    Arrow's reader would cost more before its first byte.
    """
    table = _read_lines(texts, wanted) if len(texts) > _FEW_ROWS else _read_by_hand(texts, wanted)
    if table is not None:
        return table
    if rows == _ROWS_BY_HAND:
        return _read_by_hand(texts, wanted)
    parts = range(0, len(texts), _ROWS_BY_HAND)
    return pa.concat_tables([_parse_texts(texts.slice(start, _ROWS_BY_HAND), wanted, _ROWS_BY_HAND) for start in parts])


def _read_lines(texts: pa.Array, wanted: pa.Schema) -> pa.Table | None:
    """The texts as one buffer of JSON lines through Arrow's reader; None where it refuses any of them."""
    # Each line begins an object, so that as many rows as texts means one row for each text.
    objects = pc.if_else(pc.fill_null(pc.starts_with(texts, "{"), False), texts, "{}")
    lines = pc.binary_join_element_wise(objects, "", "\n")
    ends = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
    buffer = lines.buffers()[2].slice(int(ends[0]), int(ends[-1] - ends[0]))
    block = max(_BLOCK, int(np.diff(ends).max()) + 1)
    try:
        table = pj.read_json(
            pa.BufferReader(buffer),  # noqa: TID251 - a kernel of Arrow made it
            read_options=pj.ReadOptions(block_size=block),
            parse_options=pj.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(texts) else None


def _read_by_hand(texts: pa.Array, wanted: pa.Schema) -> pa.Table:
    rows = [_object(text) for text in texts.to_pylist()]
    columns = [_value_array([row.get(each.name) for row in rows], each.type) for each in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def _value_array(values: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(arrow):
        return pa.array([_value(each, arrow) for each in values], arrow)
    objects = [each if isinstance(each, dict) else {} for each in values]
    fields = [arrow.field(i) for i in range(arrow.num_fields)]
    members = [_value_array([each.get(field.name) for each in objects], field.type) for field in fields]
    return pa.StructArray.from_arrays(members, fields=fields) if fields else pa.array(objects, arrow)


def _value(value: Any, arrow: pa.DataType) -> Any:
    """A JSON value as one of this Arrow type, None where it is not one."""
    kind = {str: "text", bool: "truth", int: "number", _Number: "number"}.get(type(value))
    wanted = "text" if pa.types.is_string(arrow) else "truth" if pa.types.is_boolean(arrow) else "number"
    if kind != wanted or (kind == "text" and not _is_unicode(value)):
        return None
    if kind != "number":
        return value
    number = float(value) if pa.types.is_floating(arrow) else Decimal(value) if pa.types.is_decimal(arrow) else value
    try:
        return pa.scalar(number, arrow).as_py()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _members(column: pa.ChunkedArray, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    """The leaves of a struct; each struct is taken apart once, since to find one member costs as much as all."""
    if not pa.types.is_struct(column.type):
        yield keys, column
        return
    for field, member in zip(column.type, column.flatten(), strict=True):
        yield from _members(member, (*keys, field.name))


def _column_stats(rows: int, members: _Members, leaf: Leaf) -> ColumnStats:
    keys, field, arrow = leaf.keys, leaf.field, domain(leaf.field)
    counts = _plain(members["nullCount"][keys])
    # a float that became a double: the shortest digits in old statistics are not its value
    if arrow is None or (field.type == "double" and "delta.typeChanges" in field.metadata):
        nothing = pa.nulls(rows, arrow or pa.null())
        return ColumnStats(nothing, nothing, counts)
    low, high = (_cast_bound(_plain(members[each][keys]), field) for each in ("minValues", "maxValues"))
    return ColumnStats(low, _widen_maximum(high, field), counts)


def _cast_bound(stated: pa.Array, field: Field) -> pa.Array:
    if field.type in ("float", "double"):
        numbers = pc.add(pc.cast(stated, pa.float64()), 0.0)  # -0.0 becomes 0.0, so that equal numbers have equal bits
        return pc.if_else(pc.is_finite(numbers), numbers, None)
    return _from_text(stated, field) if field.type in _SHAPES else stated


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
    """Maxima as older versions of delta-spark cut them, with U+FFFD after the prefix, made true in the order of UTF-8.

    They compared UTF-16 units: the character cut off may be beyond U+FFFD, and half of one may have become a question
    mark.
    """
    raised = pc.utf8_replace_slice(high, -1, 2**31 - 1, _TOP)
    true = pc.if_else(pc.ends_with(high, "?\ufffd"), None, raised)
    return pc.if_else(pc.ends_with(high, "\ufffd"), true, high)
