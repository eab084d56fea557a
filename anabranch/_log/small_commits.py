"""Parses a few file actions one by one.

Arrow's JSON reader costs a millisecond before it reads a byte, and most commits are a few lines. Guarantee: the result
is that of `anabranch._log.columnar`; anything odd (a type that is not the protocol's, a duplicate key, a number that
does not fit) is left to that module, which also raises the errors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from anabranch._protocol.actions import ADDS, DROPS, table_of

_TYPES = {pa.string(): str, pa.int64(): int, pa.int32(): int, pa.bool_(): bool}
_LINE = pa.field("line", pa.int64())
_SCHEMAS = {"add": ADDS.append(_LINE), "remove": DROPS.append(_LINE)}
_NONE = {kind: pa.Table.from_batches([], schema) for kind, schema in _SCHEMAS.items()}  # see `empty_files`
_Row = dict[str, Any]
_Shape = type | dict[str, Any] | None
"""The shape of a value: a scalar of a Python type, an object with members of these shapes, or (None) texts by name."""


class _Odd(Exception):
    """Something that `anabranch._log.columnar` must decide."""


def small_file_actions(lines: bytes, partition_keys: Collection[str]) -> tuple[pa.Table, pa.Table] | None:
    """As `anabranch._log.columnar.file_actions`, or None where anything is odd."""
    partitions = sorted(partition_keys)
    try:
        parsed = [json.loads(text, object_pairs_hook=_object) for text in lines.split(b"\n") if text.strip()]
        return _table(parsed, "add", ("path", "size"), partitions), _table(parsed, "remove", ("path",), partitions)
    except (_Odd, ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException):
        return None


def _object(pairs: list[tuple[str, Any]]) -> _Row:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Odd
    return members


def _table(parsed: list[Any], kind: str, required: Collection[str], partitions: list[str]) -> pa.Table:
    numbered = [(i, _body(action, kind)) for i, action in enumerate(parsed)]
    present = [(i, body) for i, body in numbered if body is not None]
    if not present:
        return _NONE[kind]
    rows = [{**_read(body, _SHAPES[kind], partitions), "line": i} for i, body in present]
    if any(row[name] is None for row in rows for name in required):
        raise _Odd
    return table_of(rows, _SCHEMAS[kind])


def _body(action: Any, kind: str) -> _Row | None:
    if not isinstance(action, dict):
        raise _Odd
    body = action.get(kind)
    if body is not None and not isinstance(body, dict):
        raise _Odd
    return body


def _shape(data_type: pa.DataType) -> _Shape:
    if pa.types.is_map(data_type):
        return None
    if pa.types.is_struct(data_type):
        return _shapes(data_type)
    return _TYPES[data_type]


def _shapes(fields: Iterable[pa.Field]) -> dict[str, _Shape]:
    return {field.name: _shape(field.type) for field in fields}


_SHAPES = {"add": _shapes(ADDS), "remove": _shapes(DROPS)}


def _read(body: _Row, shapes: Mapping[str, _Shape], partitions: list[str]) -> _Row:
    return {name: _value(body.get(name), name, shape, partitions) for name, shape in shapes.items()}


def _value(value: Any, name: str, shape: _Shape, partitions: list[str]) -> Any:
    if value is None or type(value) is shape:
        return value
    if shape is None:
        return _pairs(value, partitions if name == "partitionValues" else None)
    if isinstance(shape, dict) and isinstance(value, dict):
        return _read(value, shape, partitions)
    raise _Odd


def _pairs(value: Any, columns: list[str] | None) -> list[tuple[str, str | None]]:
    """Partition values: every column, perhaps null. Tags: those with a value, by name."""
    if not isinstance(value, Mapping) or any(not isinstance(text, str | None) for text in value.values()):
        raise _Odd
    if columns is not None:
        return [(name, value.get(name)) for name in columns]
    return [(name, value[name]) for name in sorted(value) if value[name] is not None]
