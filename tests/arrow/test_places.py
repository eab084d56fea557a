"""Places on a curve, and the order by them: against a plain count of what is not above a value."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch._arrow import places as arrow_places
from anabranch._arrow.places import bounds_of, curve_places, output_bounds, range_numbers, sort_indexes, splits_of

MAKERS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "few numbers": (pa.int64(), lambda dice: dice.randrange(50)),
    "bytes from end to end": (pa.int8(), lambda dice: dice.choice([-128, 127, dice.randrange(-128, 128)])),
    "numbers from end to end": (pa.int64(), lambda dice: dice.choice([-(2**63), 2**63 - 1, dice.randrange(9)])),
    "fractions": (pa.float64(), lambda dice: dice.choice([-0.0, 0.0, -1.5, dice.random(), float("inf")])),
    "days": (pa.date32(), lambda dice: dt.date(2020, 1, 1) + dt.timedelta(days=dice.randrange(400))),
    "times": (pa.timestamp("us"), lambda dice: dt.datetime(1900, 1, 1) + dt.timedelta(hours=dice.randrange(10**6))),
    "texts": (pa.string(), lambda dice: dice.choice(["", "é\U0001f40b", str(dice.randrange(99))])),
    "bytes": (pa.binary(), lambda dice: dice.randbytes(dice.randrange(3))),
    "truths": (pa.bool_(), lambda dice: dice.random() < 0.5),
    "decimals": (pa.decimal128(9, 2), lambda dice: Decimal(dice.randrange(-500, 500)).scaleb(-2)),
}


def column(what: str, nulls: float, seed: int = 0, count: int = 300) -> pa.Array:
    kind, make = MAKERS[what]
    dice = random.Random(seed)
    return pa.array([None if dice.random() < nulls else make(dice) for _ in range(count)], kind)


@pytest.mark.parametrize("nulls", [0, 0.2, 1])
@pytest.mark.parametrize("what", MAKERS)
def test_the_number_of_a_range_is_how_many_bounds_are_not_above_a_value(what: str, nulls: float) -> None:
    values = column(what, nulls)
    bounds = bounds_of(column(what, 0, seed=1, count=40), 7)
    found = range_numbers(values, bounds).tolist()
    limits = bounds.to_pylist()
    assert found == [
        0 if value is None else 1 + sum(limit <= value for limit in limits) for value in values.to_pylist()
    ]


@pytest.mark.parametrize("what", MAKERS)
def test_rows_are_ordered_by_their_keys_nulls_first_and_alike_ones_stay(what: str) -> None:
    keys = column(what, 0.2).to_pylist()
    expected = sorted(range(len(keys)), key=lambda row: (keys[row] is not None, keys[row] or _least(keys), row))
    assert sort_indexes(column(what, 0.2)).tolist() == expected


def _least(keys: list[Any]) -> Any:
    """What stands for NULL, and for what counts as false: the same value, so that it is compared with its like."""
    return type(next(key for key in keys if key is not None))() if not isinstance(keys[0], dt.date) else dt.date.min


@pytest.mark.parametrize("most", [4, 1 << 18, 1 << 20])
def test_places_are_ordered_as_any_numbers(most: int) -> None:
    """By digits where they are places of a curve."""
    places = np.random.default_rng(0).integers(0, most, 5_000).astype(np.int32)
    assert sort_indexes(pa.array(places)).tolist() == np.argsort(places, kind="stable").tolist()


@pytest.mark.parametrize("keys", [[3, -1, 2, -(2**31), -1], [-1], []])
def test_numbers_below_zero_are_no_places_and_are_ordered_all_the_same(keys: list[int]) -> None:
    assert sort_indexes(pa.array(keys, pa.int32())).tolist() == np.argsort(keys, kind="stable").tolist()


def test_a_cell_is_looked_up_on_the_curve() -> None:
    values, bounds = [pa.array([5, None, 1]), pa.array(["b", "a", None])], [pa.array([3]), pa.array(["b"])]
    assert curve_places(values, bounds, 2, np.arange(16) * 10).tolist() == [(2 << 2 | 2) * 10, 10, (1 << 2) * 10]


@pytest.mark.parametrize("every", [1, 3, 1_000])
@pytest.mark.parametrize("outputs", [1, 2, 7, 400])
@pytest.mark.parametrize("nulls", [0, 0.7])
def test_outputs_begin_at_rows_of_the_sample_with_equal_shares_between_them(
    every: int, outputs: int, nulls: float
) -> None:
    keys = column("few numbers", nulls)
    sample = np.arange(0, len(keys), every)
    order, looked_at = sort_indexes(keys), keys.take(pa.array(sample))
    splits = splits_of(looked_at, outputs)
    found = output_bounds(keys, order, looked_at.take(pa.array(splits)), sample[splits]).tolist()
    starts = sorted({len(sample) * i // outputs for i in range(1, outputs)} - {0})
    in_order = [row for row in order.tolist() if row % every == 0]
    assert found == [0, *(order.tolist().index(in_order[start]) for start in starts), len(keys)]


def test_a_text_that_the_sample_knows_by_its_beginning_comes_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark compares them: the beginning with the whole."""
    monkeypatch.setattr(arrow_places, "SAMPLE_LENGTH", 1)
    keys = pa.array(["a", "bb", "ba", "b", "c"])
    looked_at = arrow_places.shorten(keys)
    assert looked_at.to_pylist() == ["a", "b", "b", "b", "c"]
    order = sort_indexes(keys)
    assert order.tolist() == [0, 3, 2, 1, 4]
    split = pa.array(["b"])
    assert output_bounds(keys, order, split, np.array([2])).tolist() == [0, 1, 5]
    assert output_bounds(keys, order, split, np.array([4])).tolist() == [0, 2, 5]
