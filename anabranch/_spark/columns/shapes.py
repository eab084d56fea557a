"""Converts nested values to another type, matching members by name.

Knows Spark's structs, arrays and maps. Knows nothing of files. Guarantee: a value that is NULL stays NULL, and a member
that the value lacks is NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch._protocol.schema.types import Array, DataType, Map, Struct
from anabranch._spark.columns.types import spark_type

Convert = Callable[[Column, DataType, DataType], Column]
"""Converts a value from one primitive type to another, different one."""


def _cast(value: Column, source: DataType, target: DataType) -> Column:
    return value.cast(spark_type(target))


def convert_value(value: Column, source: DataType, target: DataType, convert: Convert = _cast) -> Column:
    """Convert a value to a type into which it fits (`anabranch._protocol.schema.evolution.misfit`)."""
    return _members(value, source, target, convert).cast(spark_type(target))


def _members(value: Column, source: DataType, target: DataType, convert: Convert) -> Column:
    """The value with the target's members in the target's order; a cast then does the rest by position."""
    if _alike(source, target, convert is _cast):
        return value
    if isinstance(source, Struct) and isinstance(target, Struct):
        members = [_member(value, source, member.name, member.type, convert).alias(member.name) for member in target]
        return F.when(value.isNotNull(), F.struct(*members))
    if isinstance(source, Array) and isinstance(target, Array):
        element, target_element = source.element, target.element
        return F.transform(value, lambda item: _members(item, element, target_element, convert))
    if isinstance(source, Map) and isinstance(target, Map):
        before, after = source, target
        keyed = F.transform_keys(value, lambda key, _: _members(key, before.key, after.key, convert))
        return F.transform_values(keyed, lambda _, item: _members(item, before.value, after.value, convert))
    return convert(value, source, target)


def _member(value: Column, source: Struct, name: str, member_type: DataType, convert: Convert) -> Column:
    member = source.find(name)
    if member is None:
        return F.lit(None).cast(spark_type(member_type))
    return _members(value.getField(member.name), member.type, member_type, convert)


def _alike(source: DataType, target: DataType, is_cast: bool) -> bool:
    """Whether both have the same members in the same order, so that a cast is enough."""
    if isinstance(source, Struct) and isinstance(target, Struct):
        names = [name.lower() for name in source.names] == [name.lower() for name in target.names]
        return names and all(_alike(a.type, b.type, is_cast) for a, b in zip(source, target, strict=True))
    if isinstance(source, Array) and isinstance(target, Array):
        return _alike(source.element, target.element, is_cast)
    if isinstance(source, Map) and isinstance(target, Map):
        return _alike(source.key, target.key, is_cast) and _alike(source.value, target.value, is_cast)
    return is_cast or source == target
