"""Entries for arrays: splitting a text, elements by position, sizes, and whether an array contains an element.

Cases that settings decide are left to Spark: a position outside the array, and the size of an array that is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.patterns import Pattern
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    add,
    as_arrays,
    of_values,
)
from anabranch._protocol.expressions.texts import check_searched, nonempty_pattern
from anabranch._protocol.schema.types import INTEGERS, VOID, Array
from anabranch._protocol.unsupported import Unsupported


def _split_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type not in ("string", VOID):
        raise ArgumentsNotSupported("the arguments must be a text and a pattern")
    return Fit(Array("string", contains_null=False), ("string",), (nonempty_pattern(arguments[1]),))


def _split(values: Datum, pattern: Pattern) -> Datum:
    check_searched(values, pattern)
    parts = pc.split_pattern_regex(values, pattern.regular)
    return parts.cast(pa.list_(pa.field("element", pa.string(), nullable=False)))


add("split", _split_fit, of_values(_split))


def _array_of(argument: Argument) -> Array:
    if not isinstance(argument.type, Array):
        raise ArgumentsNotSupported("the argument must be an array")
    return argument.type


def _element_fit(arguments: Sequence[Argument]) -> Fit:
    array = _array_of(arguments[0])
    if len(arguments) != 2 or arguments[1].type not in INTEGERS[:3]:
        raise ArgumentsNotSupported("the arguments must be an array and a position")
    return Fit(array.element, (array, "integer"))


def _element_at_fit(arguments: Sequence[Argument]) -> Fit:
    """Spark refuses the position 0 as it plans, also where no row comes to it."""
    if len(arguments) == 2 and arguments[1].constant == (0,):
        raise ArgumentsNotSupported("positions begin at 1")
    return _element_fit(arguments)


def _element(arrays: Datum, places: Datum) -> Datum:
    """Elements by positions counted from 0."""
    return _elements(arrays, places, lambda places, lengths: places)


def _element_at(arrays: Datum, places: Datum) -> Datum:
    """Elements by positions counted from 1, or from the end if negative."""
    return _elements(arrays, places, lambda places, lengths: np.where(places > 0, places - 1, places + lengths))


def _elements(arrays: Datum, places: Datum, from_zero: Callable[[Any, Any], Any]) -> Datum:
    arrays, places = as_arrays(arrays, places)
    is_known = pc.and_(pc.is_valid(arrays), pc.is_valid(places)).to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(arrays), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    positions = pc.fill_null(places, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    indices = from_zero(positions, lengths)
    if np.any(is_known & ((indices < 0) | (indices >= lengths))):
        raise Unsupported("an array has no element at a position")
    starts = np.asarray(arrays.offsets)[:-1].astype(np.int64)
    return arrays.values.take(pa.array(starts + indices, pa.int64(), mask=~is_known))


add("[]", _element_fit, of_values(_element))
add("element_at", _element_at_fit, of_values(_element_at))


def _size_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 1:
        raise ArgumentsNotSupported("the argument must be an array")
    return Fit("integer", (_array_of(arguments[0]),))


def _size(arrays: Datum) -> Datum:
    if arrays.null_count:
        raise Unsupported("the size of an array that is NULL depends on a setting")
    return pc.list_value_length(arrays)


add("size, cardinality, array_size", _size_fit, of_values(_size))


def _contains_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2:
        raise ArgumentsNotSupported("the arguments must be an array and an element")
    array = _array_of(arguments[0])
    kinds = ("string", "boolean", "date", *INTEGERS)
    if array.element not in kinds or arguments[1].type != array.element:
        raise ArgumentsNotSupported("elements of this type can only be compared by Spark")
    return Fit("boolean", (array, array.element))


def _contains(arrays: Datum, element: Datum) -> Datum:
    """NULL if the searched element is NULL, or if the array lacks it and has a NULL."""
    arrays, searched = as_arrays(arrays, element)
    offsets = np.asarray(arrays.offsets).astype(np.int64)
    elements = arrays.values.slice(offsets[0], offsets[-1] - offsets[0])
    rows = np.repeat(np.arange(len(arrays)), np.diff(offsets))
    is_wanted = pc.equal(elements, searched.take(pa.array(rows)))
    has = np.bincount(rows[pc.fill_null(is_wanted, False).to_numpy(zero_copy_only=False)], minlength=len(arrays)) > 0
    has_null = np.bincount(rows[elements.is_null().to_numpy(zero_copy_only=False)], minlength=len(arrays)) > 0
    is_known = pc.and_(pc.is_valid(arrays), pc.is_valid(searched)).to_numpy(zero_copy_only=False) & (has | ~has_null)
    return pa.array(has, pa.bool_(), mask=~is_known)


add("array_contains", _contains_fit, of_values(_contains))
