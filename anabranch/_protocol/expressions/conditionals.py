"""Entries that choose among values: CASE, IF, COALESCE and their like.

A value is computed for the rows that choose it: what fails for the others is no failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.comparisons import compare
from anabranch._protocol.expressions.meeting import common, comparison_type
from anabranch._protocol.expressions.table import Datum, Fit, Given, Site, Unfit, add, of_values
from anabranch._protocol.schema.types import VOID, DataType, arrow_type

Part = Callable[[Datum], Datum]
"""Computes an argument for the rows under a mask, or for all."""


def _choice_fit(given: Sequence[Given], least: int = 1) -> Fit:
    if len(given) < least:
        raise Unfit(f"it takes {least} arguments or more")
    kind = common(given)
    _refuse_void(kind)
    return Fit(kind, (kind,) * len(given))


def _refuse_void(kind: DataType) -> None:
    if kind == VOID:
        raise Unfit("all values are NULL")


def _case_fit(given: Sequence[Given]) -> Fit:
    """Of conditions and values by turns, and perhaps the value of ELSE."""
    conditions, values = given[0 : len(given) - 1 : 2], [*given[1::2], *(given[-1:] if len(given) % 2 else ())]
    if any(each.type != "boolean" for each in conditions):
        raise Unfit("a condition that is no truth value")
    kind = common(values)
    _refuse_void(kind)
    takes = [kind if i % 2 or (i == len(given) - 1 and len(given) % 2) else "boolean" for i in range(len(given))]
    return Fit(kind, tuple(takes))


def _if_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 3:
        raise Unfit("it takes three arguments")
    return _case_fit([Given("boolean") if given[0].type == VOID else given[0], *given[1:]])


def _case(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    kind, left = arrow_type(gives), np.ones(site.count, np.bool_)
    pieces: list[tuple[Any, Datum]] = []
    for condition, value in zip(parts[0::2], parts[1::2], strict=False):
        if not left.any():
            break
        chosen = _spread(condition(pa.array(left)), left)
        pieces.append((chosen, value(pa.array(chosen)) if chosen.any() else None))
        left &= ~chosen
    if len(parts) % 2 and left.any():
        pieces.append((left, parts[-1](pa.array(left))))
    return _combine_groups(pieces, kind, site.count)


def _spread(truths: Datum, among: Any) -> Any:
    """Which of all rows are TRUE, from the truth values of some of them."""
    chosen = np.zeros(len(among), np.bool_)
    if isinstance(truths, pa.Scalar):
        truths = pa.repeat(truths, int(among.sum()))
    chosen[among] = pc.fill_null(truths, False).to_numpy(zero_copy_only=False)
    return chosen


def _combine_groups(pieces: Sequence[tuple[Any, Datum]], kind: pa.DataType, count: int) -> Datum:
    """One array of the values of several groups of rows, each with its mask; NULL where no group is."""
    order, arrays, start = np.zeros(count, np.int64), [pa.nulls(1, kind)], 1
    for mask, values in pieces:
        size = int(mask.sum())
        if size == 0:
            continue
        array = pa.repeat(values, size) if isinstance(values, pa.Scalar) else values
        order[mask] = np.arange(start, start + size)
        arrays.append(array.cast(kind))
        start += size
    return pa.concat_arrays(arrays).take(pa.array(order))


def _coalesce(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    kind, left = arrow_type(gives), np.ones(site.count, np.bool_)
    pieces: list[tuple[Any, Datum]] = []
    for part in parts:
        if not left.any():
            break
        values = part(pa.array(left))
        values = pa.repeat(values, int(left.sum())) if isinstance(values, pa.Scalar) else values
        chosen = _spread(pc.is_valid(values), left)
        pieces.append((chosen, values.filter(pc.is_valid(values))))
        left &= ~chosen
    return _combine_groups(pieces, kind, site.count)


add("case", _case_fit, _case, is_lazy=True)
add("if", _if_fit, _case, is_lazy=True)
add("coalesce", _choice_fit, _coalesce, is_lazy=True)


def _two_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2:
        raise Unfit("it takes two arguments")
    return _choice_fit(given)


add("nvl, ifnull", _two_fit, _coalesce, is_lazy=True)


def _nvl2_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 3 or given[0].type is None:
        raise Unfit("it takes three arguments")
    kind = common(given[1:])
    _refuse_void(kind)
    return Fit(kind, (given[0].type, kind, kind))


def _nvl2(parts: Sequence[Part], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    return _case([lambda mask: pc.is_valid(parts[0](mask)), *parts[1:]], gives, options, site)


add("nvl2", _nvl2_fit, _nvl2, is_lazy=True)


def _nullif_fit(given: Sequence[Given]) -> Fit:
    """It is of the first one's type, whatever the other is."""
    if len(given) != 2 or given[0].type in (None, VOID) or comparison_type(given) != given[0].type:
        raise Unfit("the values are of several types")
    assert given[0].type is not None
    return Fit(given[0].type, (given[0].type,) * 2)


def _nullif(value: Datum, other: Datum) -> Datum:
    are_equal = pc.fill_null(compare("=", value, other), False)
    return pc.if_else(are_equal, pa.scalar(None, value.type), value)


add("nullif", _nullif_fit, of_values(_nullif))


def _several_fit(given: Sequence[Given]) -> Fit:
    fit = _choice_fit(given, least=2)
    if not isinstance(fit.gives, str):
        raise Unfit("only values of plain types are compared here")
    return fit


def _extreme(sign: str) -> Callable[..., Datum]:
    """The value that no other one is greater, or less, than; NULLs count for nothing."""

    def extreme(found: Datum, *others: Datum) -> Datum:
        for other in others:
            is_better = pc.or_(pc.fill_null(compare(sign, other, found), False), pc.is_null(found))
            found = pc.if_else(is_better, other, found)
        return found

    return of_values(extreme)


add("greatest", _several_fit, _extreme(">"))
add("least", _several_fit, _extreme("<"))
