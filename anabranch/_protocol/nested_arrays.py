"""The innermost values of Arrow columns, at any depth of structs, lists and maps.

Imports pyarrow only: this module travels to executors by value. Guarantee: each value stands in one leaf; the paths are
those that Arrow's Parquet writer gives the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def leaf_arrays(values: pa.Array, path: str = "") -> Iterator[tuple[str, pa.Array]]:
    """The leaves of a column, each with its path in a Parquet file, which begins with the column's ``path``.

    Example:
        >>> [path for path, _ in leaf_arrays(pa.array([{"a": [1]}]), "s")]
        ['s.a.list.element']
    """
    kind = values.type
    if pa.types.is_struct(kind):
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from leaf_arrays(part, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        yield from leaf_arrays(values.keys, f"{path}.key_value.key")
        yield from leaf_arrays(values.items, f"{path}.key_value.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from leaf_arrays(values.values, f"{path}.list.element")
    else:
        yield path, values
