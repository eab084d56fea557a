"""Curves: the laws that make them curves."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.layout.curves import MOST_COLUMNS, bits_per_column, hilbert, places, zorder

GRIDS = [(1, 4), (2, 1), (2, 4), (3, 2), (3, 3), (4, 2), (5, 1)]


@pytest.mark.parametrize(("columns", "bits"), GRIDS)
@pytest.mark.parametrize("curve", [zorder, hilbert])
def test_a_curve_visits_each_cell_once(curve: Any, columns: int, bits: int) -> None:
    cells = product(range(1 << bits), repeat=columns)
    assert sorted(curve(cell, bits) for cell in cells) == list(range(1 << bits * columns))


@pytest.mark.parametrize(("columns", "bits"), GRIDS)
def test_neighbours_on_the_hilbert_curve_differ_by_one_in_one_column(columns: int, bits: int) -> None:
    way = sorted(product(range(1 << bits), repeat=columns), key=lambda cell: hilbert(cell, bits))
    steps = [sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one, other in pairwise(way)]
    assert set(steps) == {1}


@given(st.lists(st.tuples(st.integers(0, 511), st.integers(0, 511)), min_size=1))
def test_the_z_order_never_goes_back_when_all_columns_go_up(cells: list[tuple[int, int]]) -> None:
    for one, other in product(cells, repeat=2):
        if one[0] <= other[0] and one[1] <= other[1]:
            assert zorder(one, 9) <= zorder(other, 9)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, MOST_COLUMNS])
@pytest.mark.parametrize(("kind", "curve"), [("zorder", zorder), ("hilbert", hilbert)])
def test_the_table_of_places_holds_what_is_computed_cell_by_cell(kind: Any, curve: Any, columns: int) -> None:
    bits, table = bits_per_column(columns), places(kind, columns)
    assert len(table) == 1 << bits * columns
    for number in range(0, len(table), 997):
        cell = [number >> bits * (columns - 1 - i) & (1 << bits) - 1 for i in range(columns)]
        assert table[number].as_py() == curve(cell, bits)
