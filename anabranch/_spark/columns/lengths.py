"""Enforces the lengths of char and varchar columns.

Guarantee: the same as Spark. A text that is too long loses trailing blanks, down to the length and no further; if it is
still too long the query fails. A char is padded with blanks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch._protocol.schema.lengths import Inside, Length, Limits, limits_of
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._spark.columns.types import spark_type
from anabranch._spark.frames.violations import error_sentence, raise_in_query
from anabranch.errors import LengthExceeded

_Text: TypeAlias = Callable[[Column, Length, str], Column]


def enforce_lengths(field: Field, value: Column, table: str) -> Column:
    """The value of a column, which already has its type, with the column's lengths enforced; ``table`` is for
    messages.
    """
    limits = limits_of(field)
    return value if limits is None else _map_texts(value, field.type, limits, field.name, partial(_text, table=table))


def pad_chars(field: Field, value: Column) -> Column:
    """The value of a column as Spark reads it: each char inside is padded with blanks, in case another writer did not.
    If the column itself is a char, Spark pads it by its metadata.
    """
    limits = limits_of(field)
    return value if limits is None else _map_texts(value, field.type, limits, field.name, _pad_text)


def _map_texts(value: Column, data_type: DataType, limits: Limits, name: str, text: _Text) -> Column:
    """Apply ``text`` to each text inside a value that has a length."""
    if isinstance(limits, Length):
        return text(value, limits, name)
    if isinstance(data_type, Struct):
        members = [
            _map_texts(value.getField(member.name), member.type, inner, f"{name}.{member.name}", text).alias(
                member.name
            )
            if (inner := limits.get(member.name)) is not None
            else value.getField(member.name).alias(member.name)
            for member in data_type
        ]
        return F.when(value.isNotNull(), F.struct(*members)).cast(spark_type(data_type))
    if isinstance(data_type, Array):
        return _map_elements(value, data_type.element, limits.get(Inside.ELEMENTS), f"{name}.element", text)
    if isinstance(data_type, Map):
        keys = _map_elements(F.map_keys(value), data_type.key, limits.get(Inside.KEYS), f"{name}.key", text)
        values = _map_elements(F.map_values(value), data_type.value, limits.get(Inside.VALUES), f"{name}.value", text)
        return F.map_from_arrays(keys, values)
    return value


def _map_elements(values: Column, data_type: DataType, limits: Limits | None, name: str, text: _Text) -> Column:
    return (
        values
        if limits is None
        else F.transform(values, lambda element: _map_texts(element, data_type, limits, name, text))
    )


def _pad_text(value: Column, limit: Length, name: str) -> Column:
    if not limit.padded:
        return value
    return F.when(F.char_length(value) < limit.length, F.rpad(value, limit.length, " ")).otherwise(value)


def _text(value: Column, limit: Length, name: str, table: str) -> Column:
    length = F.char_length(value)
    cut = F.substring(value, 1, limit.length)
    blank_rest = F.char_length(F.rtrim(F.substring(value, limit.length + 1, 1 << 30))) == 0
    facts = error_sentence(LengthExceeded, column=name, limit=str(limit))
    failed = raise_in_query(LengthExceeded, facts, {name: value}, table).cast("string")
    # If the value is NULL, CASE WHEN takes ELSE, which is NULL.
    padded = F.rpad(value, limit.length, " ") if limit.padded else value
    return F.when((length > limit.length) & blank_rest, cut).when(length > limit.length, failed).otherwise(padded)
