"""Entries for arrays: parts of a text, elements by their place, sizes, and whether an element is in one.

What settings decide is left to Spark: a place that an array does not have, and the size of an array that is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.patterns import Pattern, pattern_of
from anabranch._protocol.expressions.table import Datum, Fit, Given, Unfit, add, constant_of, of_values
from anabranch._protocol.expressions.texts import check_searched
from anabranch._protocol.schema.types import INTEGERS, VOID, Array
from anabranch._protocol.unsupported import Unsupported


def _split_fit(given: Sequence[Given]) -> Fit:
    """Where a pattern matches the empty text, Java and RE2 go on from different places."""
    if len(given) != 2 or given[0].type not in ("string", VOID):
        raise Unfit("it is computed here for a text and a pattern")
    pattern = pattern_of(constant_of(given[1], "string"))
    if pattern.finds_nothing:
        raise Unfit("a pattern that matches the empty text")
    return Fit(Array("string", contains_null=False), ("string",), (pattern,))


def _split(values: Datum, pattern: Pattern) -> Datum:
    check_searched(values, pattern)
    parts = pc.split_pattern_regex(values, pattern.regular)
    return parts.cast(pa.list_(pa.field("element", pa.string(), nullable=False)))


add("split", _split_fit, of_values(_split))


def _array_of(given: Given) -> Array:
    if not isinstance(given.type, Array):
        raise Unfit("it is computed here for an array")
    return given.type


def _element_fit(given: Sequence[Given]) -> Fit:
    array = _array_of(given[0])
    if len(given) != 2 or given[1].type not in INTEGERS[:3]:
        raise Unfit("it is computed here for an array and a place in it")
    return Fit(array.element, (array, "integer"))


def _element(arrays: Datum, places: Datum) -> Datum:
    """By places counted from 0."""
    return _elements(arrays, places, lambda places, lengths: places)


def _element_at(arrays: Datum, places: Datum) -> Datum:
    """By places counted from 1, or from the end where they are negative."""
    return _elements(arrays, places, lambda places, lengths: np.where(places > 0, places - 1, places + lengths))


def _elements(arrays: Datum, places: Datum, from_zero: Callable[[Any, Any], Any]) -> Datum:
    arrays, places = _as_rows(arrays, places)
    is_known = pc.and_(pc.is_valid(arrays), pc.is_valid(places)).to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(arrays), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    asked = pc.fill_null(places, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    at = from_zero(asked, lengths)
    if np.any(is_known & ((at < 0) | (at >= lengths))):
        raise Unsupported("an array has no element at some place")
    starts = np.asarray(arrays.offsets)[:-1].astype(np.int64)
    return arrays.values.take(pa.array(starts + at, pa.int64(), mask=~is_known))


def _as_rows(*values: Datum) -> list[pa.Array]:
    count = next(len(each) for each in values if not isinstance(each, pa.Scalar))
    return [pa.repeat(each, count) if isinstance(each, pa.Scalar) else each for each in values]


add("[]", _element_fit, of_values(_element))
add("element_at", _element_fit, of_values(_element_at))


def _size_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1:
        raise Unfit("it is computed here for an array")
    return Fit("integer", (_array_of(given[0]),))


def _size(arrays: Datum) -> Datum:
    if arrays.null_count:
        raise Unsupported("an array of which the size is asked for is NULL")
    return pc.list_value_length(arrays)


add("size, cardinality, array_size", _size_fit, of_values(_size))


def _contains_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2:
        raise Unfit("it is computed here for an array and an element")
    array = _array_of(given[0])
    kinds = ("string", "boolean", "date", *INTEGERS)
    if array.element not in kinds or given[1].type != array.element:
        raise Unfit("elements of such types are compared by Spark")
    return Fit("boolean", (array, array.element))


def _contains(arrays: Datum, element: Datum) -> Datum:
    """NULL for a NULL that is looked for, and where an element is NULL and none is the one."""
    arrays, wanted = _as_rows(arrays, element)
    offsets = np.asarray(arrays.offsets).astype(np.int64)
    elements = arrays.values.slice(offsets[0], offsets[-1] - offsets[0])
    rows = np.repeat(np.arange(len(arrays)), np.diff(offsets))
    is_wanted = pc.equal(elements, wanted.take(pa.array(rows)))
    has = np.bincount(rows[pc.fill_null(is_wanted, False).to_numpy(zero_copy_only=False)], minlength=len(arrays)) > 0
    has_null = np.bincount(rows[elements.is_null().to_numpy(zero_copy_only=False)], minlength=len(arrays)) > 0
    is_known = pc.and_(pc.is_valid(arrays), pc.is_valid(wanted)).to_numpy(zero_copy_only=False) & (has | ~has_null)
    return pa.array(has, pa.bool_(), mask=~is_known)


add("array_contains", _contains_fit, of_values(_contains))
