"""Variants in data files: whether one is shredded, that is, split into typed columns.

Knows PROTOCOL.md, sections "Variant data in Parquet" and "Variant Shredding". Pure: takes the footer as a value.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from anabranch._protocol.schema.editing import inside_of
from anabranch._protocol.schema.types import DataType, Struct

_SHREDDED = "typed_value"
_STEPS = {"element": "element", "item": "element", "key": "key", "value": "value"}
"""The names that Parquet writers use inside a list or map; the name of the repeated group comes between them."""


def shredded_column(footer: pq.FileMetaData, schema: Struct) -> str | None:
    """The first column of a file with a shredded variant; None if there is none.

    Example:
        >>> shredded_column(pq.read_metadata("part-0.parquet"), schema)
        'v'
    """
    for i in range(footer.num_columns):
        path = footer.schema.column(i).path.split(".")
        if _SHREDDED in path and _leads_into_variant(path[: path.index(_SHREDDED)], schema):
            return path[0]
    return None


def _leads_into_variant(path: Sequence[str], data_type: DataType) -> bool:
    if not path:
        return data_type == "variant"
    if isinstance(data_type, Struct):
        inner = next((field.type for field in data_type if field.physical_name == path[0]), None)
        return inner is not None and _leads_into_variant(path[1:], inner)
    inside = inside_of(data_type)
    step = _STEPS.get(path[1]) if len(path) > 1 else None
    return step in inside and _leads_into_variant(path[2:], inside[step])
