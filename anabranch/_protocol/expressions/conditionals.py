"""Entries that choose among values: CASE, IF, COALESCE and their like.

A value is computed only for the rows that choose it, so an error of another row does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.common_types import common_type, comparison_type
from anabranch._protocol.expressions.comparisons import compare
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Site,
    add,
    as_array,
    of_values,
)
from anabranch._protocol.schema.types import VOID, DataType, arrow_type

Part = Callable[[Datum], Datum]
"""Computes an argument for the rows under a mask, or for all rows."""


def _choice_fit(arguments: Sequence[Argument], least: int = 1) -> Fit:
    if len(arguments) < least:
        raise ArgumentsNotSupported(f"it takes {least} arguments or more")
    kind = common_type(arguments)
    _refuse_void(kind)
    return Fit(kind, (kind,) * len(arguments))


def _refuse_void(kind: DataType) -> None:
    if kind == VOID:
        raise ArgumentsNotSupported("all values are NULL")


def _case_fit(arguments: Sequence[Argument]) -> Fit:
    """Fits conditions and values by turns, with an optional value of ELSE at the end."""
    conditions, values = (
        arguments[0 : len(arguments) - 1 : 2],
        [*arguments[1::2], *(arguments[-1:] if len(arguments) % 2 else ())],
    )
    if any(condition.type != "boolean" for condition in conditions):
        raise ArgumentsNotSupported("a condition is not a boolean")
    kind = common_type(values)
    _refuse_void(kind)
    takes = [
        kind if i % 2 or (i == len(arguments) - 1 and len(arguments) % 2) else "boolean" for i in range(len(arguments))
    ]
    return Fit(kind, tuple(takes))


def _if_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 3:
        raise ArgumentsNotSupported("it takes three arguments")
    return _case_fit([Argument("boolean") if arguments[0].type == VOID else arguments[0], *arguments[1:]])


def _case(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    kind, remaining = arrow_type(gives), np.ones(site.count, np.bool_)
    pieces: list[tuple[Any, Datum]] = []
    for condition, value in zip(parts[0::2], parts[1::2], strict=False):
        if not remaining.any():
            break
        is_chosen = _spread(condition(pa.array(remaining)), remaining)
        pieces.append((is_chosen, value(pa.array(is_chosen)) if is_chosen.any() else None))
        remaining &= ~is_chosen
    if len(parts) % 2 and remaining.any():
        pieces.append((remaining, parts[-1](pa.array(remaining))))
    return _combine_groups(pieces, kind, site.count)


def _spread(truths: Datum, among: Any) -> Any:
    """A mask over all rows, from the truth values of the rows of ``among``."""
    is_chosen = np.zeros(len(among), np.bool_)
    is_chosen[among] = pc.fill_null(as_array(truths, int(among.sum())), False).to_numpy(zero_copy_only=False)
    return is_chosen


def _combine_groups(pieces: Sequence[tuple[Any, Datum]], kind: pa.DataType, count: int) -> Datum:
    """Combine the values of several groups of rows, each with its mask, into one array; NULL for rows of no group."""
    order, arrays, start = np.zeros(count, np.int64), [pa.nulls(1, kind)], 1
    for mask, values in pieces:
        size = int(mask.sum())
        if size == 0:
            continue
        order[mask] = np.arange(start, start + size)
        arrays.append(as_array(values, size).cast(kind))
        start += size
    return pa.concat_arrays(arrays).take(pa.array(order))


def _coalesce(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    kind, remaining = arrow_type(gives), np.ones(site.count, np.bool_)
    pieces: list[tuple[Any, Datum]] = []
    for part in parts:
        if not remaining.any():
            break
        values = as_array(part(pa.array(remaining)), int(remaining.sum()))
        is_chosen = _spread(pc.is_valid(values), remaining)
        pieces.append((is_chosen, values.filter(pc.is_valid(values))))
        remaining &= ~is_chosen
    return _combine_groups(pieces, kind, site.count)


add("case", _case_fit, _case, is_lazy=True)
add("if", _if_fit, _case, is_lazy=True)
add("coalesce", _choice_fit, _coalesce, is_lazy=True)


def _two_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2:
        raise ArgumentsNotSupported("it takes two arguments")
    return _choice_fit(arguments)


add("nvl, ifnull", _two_fit, _coalesce, is_lazy=True)


def _nvl2_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 3 or arguments[0].type is None:
        raise ArgumentsNotSupported("it takes three arguments")
    kind = common_type(arguments[1:])
    _refuse_void(kind)
    return Fit(kind, (arguments[0].type, kind, kind))


def _nvl2(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    return _case([lambda mask: pc.is_valid(parts[0](mask)), *parts[1:]], gives, options, site)


add("nvl2", _nvl2_fit, _nvl2, is_lazy=True)


def _nullif_fit(arguments: Sequence[Argument]) -> Fit:
    """The type is the first argument's, whatever the second is."""
    if len(arguments) != 2 or arguments[0].type in (None, VOID) or comparison_type(arguments) != arguments[0].type:
        raise ArgumentsNotSupported("the values have different types")
    assert arguments[0].type is not None
    return Fit(arguments[0].type, (arguments[0].type,) * 2)


def _nullif(value: Datum, other: Datum) -> Datum:
    are_equal = pc.fill_null(compare("=", value, other), False)
    return pc.if_else(are_equal, pa.scalar(None, value.type), value)


add("nullif", _nullif_fit, of_values(_nullif))


def _several_fit(arguments: Sequence[Argument]) -> Fit:
    fit = _choice_fit(arguments, least=2)
    if not isinstance(fit.gives, str):
        raise ArgumentsNotSupported("only values of primitive types can be compared")
    return fit


def _extreme(sign: str) -> Callable[..., Datum]:
    """The value that no other one is greater, or less, than; NULLs are ignored."""

    def extreme(best: Datum, *others: Datum) -> Datum:
        for other in others:
            is_better = pc.or_(pc.fill_null(compare(sign, other, best), False), pc.is_null(best))
            best = pc.if_else(is_better, other, best)
        return best

    return of_values(extreme)


add("greatest", _several_fit, _extreme(">"))
add("least", _several_fit, _extreme("<"))
