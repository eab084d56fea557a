"""Parquet files that this process writes: their bytes, and the facts that Arrow's footer cannot express.

Pure. Knows what readers of statistics must know about floating-point numbers: Arrow leaves NaN out of the bounds of a
column, and Spark orders it as the greatest number.
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

from anabranch._protocol.compression import DEFAULT_CODEC, arrow_options
from anabranch._protocol.nested_arrays import leaf_arrays
from anabranch._protocol.predicates import Name

_FEW, _SAMPLE, _MOST_DISTINCT = 1000, 8192, 0.9
_NAN_FREE = "anabranch.nanFree"
"""The footer key of columns without NaN. Tools that copy a footer's metadata may copy it, so it counts only in files
that our own transaction has just written.
"""


@dataclass(frozen=True)
class WrittenFile:
    """A file that this process has written, and that survives a power failure.

    Attributes:
        name: its name in the store.
        size: in bytes.
        modified_ms: when it was written, in milliseconds since 1970.
        footer: its Parquet footer.
    """

    name: str
    size: int
    modified_ms: int
    footer: pq.FileMetaData


WrittenFiles: TypeAlias = Sequence[WrittenFile] | None
"""The written files; None if only a folder listing shows them, because Spark wrote them."""


def parquet_bytes(rows: pa.Table, codec: str = DEFAULT_CODEC, pages: str = "1.0") -> bytes:
    """Rows as one Parquet file; a column with a NaN gets no bounds, since Spark would skip its row by them."""
    sink = io.BytesIO()
    leaves = [leaf for name in rows.column_names for leaf in _leaves_of(name, rows[name])]
    pq.write_table(
        rows,
        sink,
        **arrow_options(codec),
        data_page_version=pages,
        coerce_timestamps="us",
        allow_truncated_timestamps=True,
        write_statistics=_leaves_without_nan(leaves),
        use_dictionary=_repeating_leaves(leaves),
    )
    return sink.getvalue()


def _leaves_of(name: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    """The leaves of a column, by their names in a Parquet file, with their values, chunk by chunk."""
    for chunk in (pa.array([], column.type), *column.chunks):
        yield from leaf_arrays(chunk, name)


def _repeating_leaves(leaves: Sequence[tuple[str, pa.Array]]) -> list[str]:
    """The leaves whose values repeat, as far as a sample shows: for other leaves a dictionary takes more room than the
    values, and most of the time to write them.
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
    """The leaves without NaN."""
    unbounded = {
        path for path, values in leaves if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
    }
    return [path for path in dict.fromkeys(path for path, _ in leaves) if path not in unbounded]


def nan_free(rows: pa.Table) -> frozenset[Name]:
    """The floating-point columns, and members of structs, without NaN: only those get bounds."""
    return frozenset(
        path[0] if len(path) == 1 else path
        for path in _floats(rows.schema)
        if not pc.any(pc.is_nan(_at(rows.column(path[0]), path[1:]))).as_py()
    )


def nan_free_metadata(columns: Iterable[Name]) -> dict[str, str]:
    """The footer metadata for columns, and members of structs, without NaN."""
    return {_NAN_FREE: json.dumps([column if isinstance(column, str) else list(column) for column in columns])}


def read_nan_free(footer: pq.FileMetaData) -> frozenset[Name] | None:
    """The columns without NaN according to the footer of a new file of ours (`nan_free_metadata`); None in any other
    file.
    """
    recorded = (footer.metadata or {}).get(_NAN_FREE.encode())
    return (
        None
        if recorded is None
        else frozenset(column if isinstance(column, str) else tuple(column) for column in json.loads(recorded))
    )


def _floats(fields: Iterable[pa.Field], enclosing: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _floats(field.type, (*enclosing, field.name))
        elif pa.types.is_floating(field.type):
            yield (*enclosing, field.name)


def _at(column: pa.ChunkedArray, path: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.struct_field(column, list(path)) if path else column
