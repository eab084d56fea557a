"""Members: a struct column of which only some members are set.

Knows how single values, each in a column of its own, become the new value of the column that they belong to. Knows
nothing of files. Guarantee: members that are not set keep their values; where the struct was NULL, they are NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch.protocol.schema.assignments import Path
from anabranch.protocol.schema.types import Field, Struct
from anabranch.spark.lengths import limited
from anabranch.spark.type_fit import assigned
from anabranch.spark.types import column


def rebuilt(
    field: Field, old: Column, new: Mapping[Path, str], types: T.StructType, table: str, *, partial: bool = False
) -> Column:
    """A column's new value.

    Args:
        new: path -> the column with the value assigned there; at least one path begins with the field's name.
        types: the types of those columns.
        table: for messages.
        partial: see `anabranch.spark.type_fit.assigned`.

    Raises:
        SchemaMismatch: no value of an assigned type could fit.
    """
    value = _rebuilt(field, (field.name,), old, new, types, table, partial)
    return (
        value if (field.name,) in new else limited(field, value, table)
    )  # the column alone says how long its texts may be


def is_set(field: Field, new: Mapping[Path, str]) -> bool:
    """Whether a column, or some member of it, is assigned."""
    return any(path[0] == field.name for path in new)


def _rebuilt(
    field: Field, path: Path, old: Column, new: Mapping[Path, str], types: T.StructType, table: str, partial: bool
) -> Column:
    if path in new:
        named = replace(field, name=".".join(path))
        return assigned(named, column(new[path]), types[new[path]].dataType, table, partial=partial)
    if not any(each[: len(path)] == path for each in new):
        return old
    assert isinstance(field.type, Struct), "only structs have members"
    members = [
        _rebuilt(each, (*path, each.name), old.getField(each.name), new, types, table, partial).alias(each.name)
        for each in field.type
    ]
    return F.struct(*members)
