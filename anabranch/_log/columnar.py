"""Parses the file actions of commit files into Arrow tables.

Knows the JSON of ``add`` and ``remove`` lines. Pure: bytes in, tables out. Normally there is no object per file: the
lines go through Arrow's JSON reader as one buffer (a few lines go through `small_commits`, which is faster). Arrow
cannot read JSON maps, so the keys of ``partitionValues`` and ``tags`` are found first, read as struct fields and
converted to maps column by column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from anabranch._log.small_commits import small_file_actions
from anabranch._protocol.actions import ADDS, DROPS
from anabranch._storage.native import native_file

_SCHEMAS = {"add": ADDS, "remove": DROPS}
_TAGGED = re.compile(rb'^.*"tags"\s*:\s*\{.*$', re.MULTILINE)
_SMALL_BYTES = 16 * 1024
_FIRST_LINES = 16
_MAX_KEYS = 64
"""Up to this many keys of a map become temporary columns; Arrow's cost grows with the square of their number."""
_MAX_BLOCK_BYTES = (1 << 31) - 1
_REQUIRED = {"add": ("path", "size"), "remove": ("path",)}


def file_actions(lines: bytes, partition_keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """The ``add`` and ``remove`` actions of newline-separated JSON objects, in order, each with its line's number in a
    column ``line``; ``partition_keys`` are the keys that ``partitionValues`` may have. Raises ValueError: a line is not
    JSON, has a field of another type than in the protocol, or lacks path or size.
    """
    if not lines.isascii():
        lines.decode()  # Arrow's reader accepts bytes that are not UTF-8
    if not lines or lines.isspace():
        return _with_lines(ADDS.empty_table(), np.empty(0, np.int64)), _with_lines(
            DROPS.empty_table(), np.empty(0, np.int64)
        )
    if len(lines) <= _SMALL_BYTES and (small := small_file_actions(lines, partition_keys)) is not None:
        return small
    if (sampled := _sample_fields(lines)) is not None:
        with suppress(pa.ArrowInvalid):
            return _read_actions(lines, partition_keys, sampled, "error")
    return _read_actions(
        lines, partition_keys, {kind: frozenset(schema.names) for kind, schema in _SCHEMAS.items()}, "ignore"
    )


def _sample_fields(lines: bytes) -> dict[str, set[str]] | None:
    """The fields of the actions in the first lines; None where one is not a field of the protocol.

    Arrow fills each requested field, and each of its members, line by line. So only these fields are requested, which
    suffices if no other line has more.
    """
    fields: dict[str, set[str]] = {kind: set() for kind in _SCHEMAS}
    for text in lines[:_SMALL_BYTES].split(b"\n")[:_FIRST_LINES]:
        try:
            for kind, body in json.loads(text).items():
                fields[kind].update(body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            break
    is_known = all(names <= set(_SCHEMAS[kind].names) for kind, names in fields.items())
    return fields if is_known and any(fields.values()) else None


def _read_actions(
    lines: bytes, partition_keys: Collection[str], fields: Mapping[str, Collection[str]], unexpected: str
) -> tuple[pa.Table, pa.Table]:
    """The actions with these fields; the others are NULL. Raises ArrowInvalid where an ``unexpected`` field is an
    "error".
    """
    tags = _tag_keys(lines) if any("tags" in names for names in fields.values()) else []
    keys = {"partitionValues": sorted(partition_keys), "tags": tags}
    many = {name: keys for name, keys in keys.items() if len(keys) > _MAX_KEYS}
    table = _table(lines, {**keys, **{name: [] for name in many}}, fields, unexpected)
    if len(table) != _count_lines(lines):  # Arrow reads the rest of a line as one more
        raise ValueError("a line holds several actions, or an action several lines")
    adds, removes = (_fill_large_maps(_actions(table, kind), kind, lines, many) for kind in _SCHEMAS)
    return adds, removes


def _count_lines(lines: bytes) -> int:
    """The number of lines that are not blank."""
    every = lines.count(b"\n") + (not lines.endswith(b"\n"))
    is_dense = b"\n\n" not in lines and b"\n\r" not in lines and b"\n " not in lines and b"\n\t" not in lines
    dense = is_dense and not lines[:1].isspace()
    return every if dense else sum(1 for text in lines.split(b"\n") if text.strip())


def _fill_large_maps(actions: pa.Table, kind: str, lines: bytes, many: Mapping[str, list[str]]) -> pa.Table:
    """The actions with maps of more than `_MAX_KEYS` keys (``many``), read line by line."""
    if not many:
        return actions
    texts = [text for text in lines.split(b"\n") if text.strip()]
    numbers = actions["line"].to_pylist()
    bodies = [json.loads(texts[number])[kind] for number in numbers]
    for name, keys in many.items():
        field = actions.schema.field(name)
        maps = pa.array([_pairs(body.get(name), name, keys) for body in bodies], field.type)
        actions = actions.set_column(actions.column_names.index(name), field, maps)
    return actions


def _pairs(values: Any, name: str, keys: list[str]) -> list[tuple[str, str | None]] | None:
    """Partition values: every column, perhaps null. Tags: those with a value, sorted by name."""
    if values is None:
        return None
    if not isinstance(values, dict) or not all(isinstance(value, str | None) for value in values.values()):
        raise ValueError(f"{name} are no texts by name")
    if name == "partitionValues":
        return [(key, values.get(key)) for key in keys]
    return [(key, values[key]) for key in sorted(values) if values[key] is not None]


def _table(
    lines: bytes, keys: Mapping[str, list[str]], selected: Mapping[str, Collection[str]], unexpected: str
) -> pa.Table:
    fields = {
        kind: [_json_field(f, keys) for f in schema if f.name in selected[kind]] for kind, schema in _SCHEMAS.items()
    }
    explicit = pa.schema([(kind, pa.struct(members)) for kind, members in fields.items()])
    options = pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior=unexpected)
    reading = pj.ReadOptions(use_threads=False, block_size=min(len(lines) + 1, _MAX_BLOCK_BYTES))
    return pj.read_json(native_file(lines), read_options=reading, parse_options=options)


def _json_field(field: pa.Field, keys: Mapping[str, list[str]]) -> pa.Field:
    if not pa.types.is_map(field.type):
        return field
    return pa.field(field.name, pa.struct([(key, pa.string()) for key in keys[field.name]]))


def _actions(table: pa.Table, kind: str) -> pa.Table:
    column = table[kind].combine_chunks()
    numbers = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    column = column.take(pa.array(numbers)) if len(numbers) < len(column) else column
    schema = _SCHEMAS[kind]
    actions_table = pa.Table.from_arrays(
        _share_null_buffers([_column(column, field) for field in schema]), schema=schema
    )
    for name in _REQUIRED[kind]:
        if actions_table[name].null_count:
            raise ValueError(f"an action {kind} has no {name}")
    return _with_lines(actions_table, numbers)


def _share_null_buffers(columns: list[pa.Array]) -> list[pa.Array]:
    """The same columns; those without any value share one buffer of zeros, since most tables have many such columns."""
    empty = [i for i, values in enumerate(columns) if values.null_count == len(values)]
    nothing = pa.nulls(len(columns[0]), pa.struct([(str(i), columns[i].type) for i in empty]))
    return [nothing.field(str(i)) if i in empty else values for i, values in enumerate(columns)]


def _column(actions: pa.StructArray, field: pa.Field) -> pa.Array:
    index = actions.type.get_field_index(field.name)
    if index < 0:
        return pa.nulls(len(actions), field.type)
    values = pc.struct_field(actions, [index])
    if pa.types.is_map(field.type):
        return struct_to_map(values, keep_nulls=field.name == "partitionValues")
    return values


def _with_lines(table: pa.Table, numbers: np.ndarray[Any, Any]) -> pa.Table:
    return table.append_column("line", pa.array(numbers, pa.int64()))


def struct_to_map(values: pa.StructArray, *, keep_nulls: bool) -> pa.Array:
    """A map<string,string> array from a struct of strings; a field without value is left out, or kept as null."""
    rows, keys = len(values), [field.name for field in values.type]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    cells = values.flatten()
    present = np.ones((rows, len(keys)), bool) if keep_nulls else _validity(cells, rows)
    present &= valid[:, None]
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    # row-major order: cell (row, key) stands at key * rows + row of the concatenated columns
    row_of, key_of = np.nonzero(present)
    items = pa.concat_arrays(cells).take(pa.array(key_of * rows + row_of)) if cells else pa.array([], pa.string())
    names = pa.array(keys, pa.string()).take(pa.array(key_of)) if keys else pa.array([], pa.string())
    mask = pa.array(np.concatenate([~valid, [False]]))
    starts = pc.if_else(mask, pa.scalar(None, pa.int32()), pa.array(offsets))
    return pa.MapArray.from_arrays(starts, names, items)


def _validity(cells: list[pa.Array], rows: int) -> np.ndarray[Any, Any]:
    columns = [cell.is_valid().to_numpy(zero_copy_only=False) for cell in cells]
    return np.column_stack(columns) if columns else np.ones((rows, 0), bool)


def _tag_keys(lines: bytes) -> list[str]:
    keys: set[str] = set()
    for match in _TAGGED.finditer(lines) if b'"tags"' in lines else ():
        action = json.loads(match[0])
        tags = [body.get("tags") for kind in _SCHEMAS if isinstance(body := action.get(kind), dict)]
        keys.update(*(t for t in tags if isinstance(t, dict)))
    return sorted(keys)
