"""Members: a struct column of which only some members are set.

Knows how single values, each in a column of its own, become the new value of the column that they belong to. Knows
nothing of files. Guarantees: members that are not set keep their values; where the struct was NULL, they are NULL. A
struct that was NULL stays NULL where all that is set comes from one value, and that is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.schema.assignments import Path
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.lengths import enforce_lengths
from anabranch._spark.columns.type_fit import cast_for_assignment
from anabranch._spark.columns.types import column


@dataclass(frozen=True)
class Given:
    """What is assigned to columns and members.

    Attributes:
        new: path -> the column with the value assigned there.
        types: the types of those columns.
        table: for messages.
        partial: see `anabranch._spark.columns.type_fit.cast_for_assignment`.
        wholes: path of a struct -> the value from which all that is assigned in it comes.
    """

    new: Mapping[Path, str]
    types: T.StructType
    table: str
    partial: bool = False
    wholes: Mapping[Path, Column] = field(default_factory=dict)


def rebuilt(field: Field, old: Column, given: Given) -> Column:
    """A column's new value, of which at least a member is assigned.

    Raises:
        SchemaMismatch: no value of an assigned type could fit.
    """
    value = _rebuilt(field, (field.name,), old, given)
    # The column alone says how long its texts may be.
    return value if (field.name,) in given.new else enforce_lengths(field, value, given.table)


def is_set(field: Field, new: Mapping[Path, str]) -> bool:
    """Whether a column, or some member of it, is assigned."""
    return any(path[0] == field.name for path in new)


def _rebuilt(field: Field, path: Path, old: Column, given: Given) -> Column:
    new = given.new
    if path in new:
        named, found = replace(field, name=".".join(path)), given.types[new[path]].dataType
        return cast_for_assignment(named, column(new[path]), found, given.table, partial=given.partial)
    if not any(each[: len(path)] == path for each in new):
        return old
    assert isinstance(field.type, Struct), "only structs have members"
    members = [
        _rebuilt(each, (*path, each.name), old.getField(each.name), given).alias(each.name) for each in field.type
    ]
    value, whole = F.struct(*members), given.wholes.get(path)
    return value if whole is None else F.when(whole.isNotNull() | old.isNotNull(), value)
