"""Converts typed statistics and partition values of a checkpoint to the texts that the log has elsewhere.

Knows PROTOCOL.md, sections "Checkpoints" (``stats_parsed``, ``partitionValues_parsed``) and "Per-file Statistics". Pure
and columnar. Guarantee: the result equals the writer's ``stats``; a value without such a text is left out, never
altered.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.partitions import write_value
from anabranch._protocol.schema.types import from_arrow

_SECOND_OF_FOUR_DIGIT_YEARS = r"^\d{4}-"
_SPECIAL = r'["\\\x00-\x1f]'
_NONFINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def stats_texts(parsed: pa.StructArray) -> pa.Array:
    """The ``stats`` of each file as JSON, null where it has none.

    Example:
        >>> stats_texts(pa.array([{"numRecords": 3, "minValues": {"d": date(2020, 1, 31)}}])).to_pylist()
        ['{"numRecords":3,"minValues":{"d":"2020-01-31"}}']
    """
    return _objects(parsed)


def partition_maps(parsed: pa.StructArray) -> pa.Array:
    """``partitionValues`` from typed values: a map of every partition column to its text, null for null."""
    fields = list(parsed.type)
    types = [str(from_arrow(pa.schema([field])).fields[0].type) for field in fields]
    texts = [_partition_texts(pc.struct_field(parsed, [i]), type_) for i, type_ in enumerate(types)]
    rows = [
        None if not valid else [(field.name, value) for field, value in zip(fields, row, strict=True)]
        for valid, row in zip(
            parsed.is_valid().to_pylist(), zip(*texts, strict=True) if texts else [()] * len(parsed), strict=True
        )
    ]
    return pa.array(rows, pa.map_(pa.string(), pa.string()))


def _objects(values: pa.StructArray) -> pa.Array:
    """Each struct as a JSON object of the members that have a text; null for null."""
    members: list[pa.Array] = []
    for i, field in enumerate(values.type):
        texts = _texts(pc.struct_field(values, [i]))
        if texts is not None:
            name = json.dumps(field.name, ensure_ascii=False)
            members.append(pc.fill_null(pc.binary_join_element_wise(f"{name}:", texts, ",", ""), ""))
    inside = pc.binary_join_element_wise("{", *members, pa.array([""] * len(values), pa.string()), "")
    whole = pc.binary_join_element_wise(pc.replace_substring_regex(inside, ",$", ""), "}", "")
    return pc.if_else(values.is_valid(), whole, pa.scalar(None, pa.string()))


def _texts(values: pa.Array) -> pa.Array | None:
    """Each value as JSON, null for null; None for a type that statistics do not have."""
    type_ = values.type
    if pa.types.is_struct(type_):
        return _objects(values)
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_decimal(type_):
        return values.cast(pa.string())
    if pa.types.is_floating(type_):
        return _numbers(values)
    if pa.types.is_date(type_):
        return _quote(_in_four_digits(values.cast(pa.date32()).cast(pa.string())))
    if pa.types.is_timestamp(type_):
        return _timestamps(values)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _strings(values.cast(pa.string()))
    return None


def _numbers(values: pa.Array) -> pa.Array:
    """Numbers with the shortest digits; NaN and infinities as Java's JSON spells them."""
    texts = values.cast(pa.string())
    if pc.all(pc.is_finite(values)).as_py() is not False:
        return texts
    return pa.array([None if text is None else _NONFINITE.get(text, text) for text in texts.to_pylist()], pa.string())


def _timestamps(values: pa.Array) -> pa.Array:
    """Timestamps to the microsecond; an instant in UTC with a Z, a local time without."""
    zone = "Z" if values.type.tz else ""
    plain = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.timestamp("us"))
    texts = pc.strftime(plain, format="%Y-%m-%dT%H:%M:%S")
    return _quote(pc.binary_join_element_wise(_in_four_digits(texts), zone, ""))


def _in_four_digits(texts: pa.Array) -> pa.Array:
    """The texts, null for years that the text of a date cannot have."""
    return pc.if_else(pc.match_substring_regex(texts, _SECOND_OF_FOUR_DIGIT_YEARS), texts, pa.scalar(None, pa.string()))


def _strings(values: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(values, _SPECIAL)).as_py():
        return _quote(values)
    quoted = [None if text is None else json.dumps(text, ensure_ascii=False) for text in values.to_pylist()]
    return pa.array(quoted, pa.string())


def _quote(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _partition_texts(values: pa.Array, data_type: str) -> list[str | None]:
    encoded = values.dictionary_encode()
    texts = [write_value(value, data_type) for value in encoded.dictionary.to_pylist()]
    return [None if i is None else texts[i] for i in encoded.indices.to_pylist()]
