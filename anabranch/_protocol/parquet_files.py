"""Parquet files that this process writes: their bytes, and what a footer of Arrow's cannot say.

Pure. Knows what a reader of statistics has to know of floating-point numbers: Arrow leaves NaN out of the bounds of a
column, and Spark holds it for the greatest number.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._protocol.predicates import Name

_FEW, _SAMPLE, _MOST_DISTINCT = 1000, 8192, 0.9
_NAN_FREE = "anabranch.nanFree"
"""The key by which a footer of ours says so. Tools that copy what a footer says may copy this too, so it counts only in
files that our own transaction has just written.
"""


@dataclass(frozen=True)
class WrittenFile:
    """A file that this process has written, and that survives a power cut.

    Attributes:
        name: its name in the store.
        size: in bytes.
        modified_ms: when it was written, in milliseconds since 1970.
        footer: what it says of itself.
    """

    name: str
    size: int
    modified_ms: int
    footer: pq.FileMetaData


Written: TypeAlias = Sequence[WrittenFile] | None
"""What was written; None where only the folder tells, since Spark wrote it."""


def parquet_bytes(rows: pa.Table, codec: str = "snappy") -> bytes:
    """Rows as one Parquet file; of what holds a NaN it says no bounds, by which Spark would skip the row."""
    sink = io.BytesIO()
    spelled = {"lz4_raw": "lz4", "uncompressed": "none"}.get(codec, codec)  # Arrow writes the raw format as lz4
    leaves = [leaf for name in rows.column_names for leaf in _leaves_of(name, rows[name])]
    pq.write_table(
        rows,
        sink,
        compression=spelled,
        coerce_timestamps="us",
        allow_truncated_timestamps=True,
        write_statistics=_leaves_without_nan(leaves),
        use_dictionary=_repeating_leaves(leaves),
    )
    return sink.getvalue()


def _leaves_of(name: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    """The leaves of a column, as a Parquet file names them, with their values, chunk by chunk."""
    for chunk in (pa.array([], column.type), *column.chunks):
        yield from _leaves(name, chunk)


def _repeating_leaves(leaves: Sequence[tuple[str, pa.Array]]) -> list[str]:
    """The leaves whose values are there more than once, as far as a sample shows: a dictionary of those that are not
    takes more room than they do, and most of the time that it takes to write them.
    """
    largest = dict[str, pa.Array]()
    for path, values in leaves:
        if path not in largest or len(values) > len(largest[path]):
            largest[path] = values
    return [path for path, values in largest.items() if _repeats(values)]


def _repeats(values: pa.Array) -> bool:
    if len(values) <= _FEW:
        return True
    places = np.linspace(0, len(values) - 1, min(_SAMPLE, len(values)), dtype=np.int64)
    return bool(pc.count_distinct(values.take(pa.array(places))).as_py() < _MOST_DISTINCT * len(places))


def _leaves_without_nan(leaves: Sequence[tuple[str, pa.Array]]) -> list[str]:
    """The leaves that hold no NaN."""
    unbounded = {
        path for path, values in leaves if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
    }
    return [path for path in dict.fromkeys(path for path, _ in leaves) if path not in unbounded]


def _leaves(path: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    kind = values.type
    if pa.types.is_struct(kind):
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", part)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", values.values)
    else:
        yield path, values


def nan_free(rows: pa.Table) -> frozenset[Name]:
    """The floating-point columns, and members of structs, that hold no NaN: only those get bounds."""
    return frozenset(
        path[0] if len(path) == 1 else path
        for path in _floats(rows.schema)
        if not pc.any(pc.is_nan(_at(rows.column(path[0]), path[1:]))).as_py()
    )


def saying_nan_free(columns: Iterable[Name]) -> dict[str, str]:
    """What a footer says where these columns, and members of structs, hold no NaN."""
    return {_NAN_FREE: json.dumps([each if isinstance(each, str) else list(each) for each in columns])}


def read_nan_free(footer: pq.FileMetaData) -> frozenset[Name] | None:
    """The columns of which a new file of ours says that they hold no NaN (`saying_nan_free`); None of another's."""
    said = (footer.metadata or {}).get(_NAN_FREE.encode())
    return (
        None if said is None else frozenset(each if isinstance(each, str) else tuple(each) for each in json.loads(said))
    )


def _floats(fields: Iterable[pa.Field], around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for each in fields:
        if pa.types.is_struct(each.type):
            yield from _floats(each.type, (*around, each.name))
        elif pa.types.is_floating(each.type):
            yield (*around, each.name)


def _at(column: pa.ChunkedArray, path: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.struct_field(column, list(path)) if path else column
