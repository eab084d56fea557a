"""Assigns values to some members of a struct column.

Knows how single values, each in a column of its own, become the new value of the column that they belong to. Knows
nothing of files. Guarantees: members without an assignment keep their values, or are NULL if the struct was NULL. A
NULL struct stays NULL if all assigned values come from one struct, and that is NULL.
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
class Assignments:
    """Values assigned to columns and members.

    Attributes:
        new: path -> the column with the value assigned there.
        types: the types of those columns.
        table: for messages.
        partial: see `anabranch._spark.columns.type_fit.cast_for_assignment`.
        wholes: path of a struct -> the value from which all assignments in it come.
    """

    new: Mapping[Path, str]
    types: T.StructType
    table: str
    partial: bool = False
    wholes: Mapping[Path, Column] = field(default_factory=dict)


def rebuild_column(field: Field, old: Column, given: Assignments) -> Column:
    """The new value of a column that has an assignment itself or in a member.

    Raises:
        SchemaMismatch: no value of an assigned type can fit.
    """
    value = _rebuilt(field, (field.name,), old, given)
    # Only the column, and not a single value, knows the lengths of its texts.
    return value if (field.name,) in given.new else enforce_lengths(field, value, given.table)


def is_set(field: Field, new: Mapping[Path, str]) -> bool:
    """Whether a column, or a member of it, has an assignment."""
    return any(path[0] == field.name for path in new)


def _rebuilt(field: Field, path: Path, old: Column, given: Assignments) -> Column:
    new = given.new
    if path in new:
        full_field, source_type = replace(field, name=".".join(path)), given.types[new[path]].dataType
        return cast_for_assignment(full_field, column(new[path]), source_type, given.table, partial=given.partial)
    if not any(assigned_path[: len(path)] == path for assigned_path in new):
        return old
    assert isinstance(field.type, Struct), "only structs have members"
    members = [
        _rebuilt(member, (*path, member.name), old.getField(member.name), given).alias(member.name)
        for member in field.type
    ]
    value, whole = F.struct(*members), given.wholes.get(path)
    return value if whole is None else F.when(whole.isNotNull() | old.isNotNull(), value)
