"""A few file actions, read one by one.

Arrow's JSON reader costs a millisecond before it reads a byte, and most commits are a few lines. Guarantee: what this
gives is what `anabranch.log.columnar` would give; whatever is in any way odd (a type that is not the protocol's, a key
twice, a number that does not fit) is left to that, which also knows the errors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from anabranch.protocol.actions import ADDS, DROPS

_TYPES = {pa.string(): str, pa.int64(): int, pa.int32(): int, pa.bool_(): bool}
_LINE = pa.field("line", pa.int64())
_NONE = {"add": ADDS.append(_LINE).empty_table(), "remove": DROPS.append(_LINE).empty_table()}
_Row = dict[str, Any]


class _Odd(Exception):
    """Something that the slower way must decide."""


def few_file_actions(lines: bytes, partition_columns: Collection[str]) -> tuple[pa.Table, pa.Table] | None:
    """As `anabranch.log.columnar.file_actions`, or None where anything is odd."""
    partitions = sorted(partition_columns)
    try:
        parsed = [json.loads(text, object_pairs_hook=_object) for text in lines.split(b"\n") if text.strip()]
        adds = _table(parsed, "add", ADDS, ("path", "size"), partitions)
        return adds, _table(parsed, "remove", DROPS, ("path",), partitions)
    except (_Odd, ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException):
        return None


def _object(pairs: list[tuple[str, Any]]) -> _Row:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Odd
    return found


def _table(
    parsed: list[Any], kind: str, schema: pa.Schema, required: Collection[str], partitions: list[str]
) -> pa.Table:
    numbered = [(i, _body(action, kind)) for i, action in enumerate(parsed)]
    found = [(i, body) for i, body in numbered if body is not None]
    if not found:
        return _NONE[kind]
    rows = [{field.name: _value(body.get(field.name), field, partitions) for field in schema} for _, body in found]
    if any(row[name] is None for row in rows for name in required):
        raise _Odd
    numbers = pa.array([i for i, _ in found], pa.int64())
    return pa.Table.from_pylist(rows, schema=schema).append_column("line", numbers)


def _body(action: Any, kind: str) -> _Row | None:
    if not isinstance(action, dict):
        raise _Odd
    body = action.get(kind)
    if body is not None and not isinstance(body, dict):
        raise _Odd
    return body


def _value(value: Any, field: pa.Field, partitions: list[str]) -> Any:
    if value is None:
        return None
    if pa.types.is_map(field.type):
        return _pairs(value, partitions if field.name == "partitionValues" else None)
    if pa.types.is_struct(field.type):
        members = [field.type.field(i) for i in range(field.type.num_fields)]
        return {each.name: _value(_member(value, each.name), each, partitions) for each in members}
    if type(value) is not _TYPES[field.type]:
        raise _Odd
    return value


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise _Odd
    return value.get(name)


def _pairs(value: Any, wanted: list[str] | None) -> list[tuple[str, str | None]]:
    """Partition values: each column, perhaps null. Tags: those that have a value, by name."""
    if not isinstance(value, Mapping) or any(not isinstance(each, str | None) for each in value.values()):
        raise _Odd
    if wanted is not None:
        return [(name, value.get(name)) for name in wanted]
    return [(name, value[name]) for name in sorted(value) if value[name] is not None]
