"""Sets of positions to words and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from anabranch._arrow.marks import bitmap, positions_of, words_of

ROWS = st.sets(st.integers(0, 300_000), max_size=200)


@given(ROWS)
def test_words_hold_the_rows(rows: set[int]) -> None:
    words = words_of(BitMap64(rows))
    assert BitMap64(rows) == positions_of(np.arange(len(words)), words)


@given(ROWS)
def test_a_row_is_one_bit_of_one_word(rows: set[int]) -> None:
    words = words_of(BitMap64(rows)).view(np.uint64)
    assert all(int(words[row // 64]) >> (row % 64) & 1 for row in rows)
    assert sum(int(word).bit_count() for word in words) == len(rows)


@given(st.dictionaries(st.integers(0, 2**40), st.integers(-(2**63), 2**63 - 1).filter(bool), max_size=20))
def test_words_that_come_back_with_their_numbers_are_the_rows_they_were(words: dict[int, int]) -> None:
    numbers = sorted(words)
    rows = positions_of(np.array(numbers, np.int64), np.array([words[n] for n in numbers], np.int64))
    assert set(rows) == {64 * n + bit for n in numbers for bit in range(64) if words[n] >> bit & 1}


def test_a_bitmap_of_no_rows_is_empty() -> None:
    assert bitmap(np.zeros(0, np.int64)) == BitMap64()
    assert len(words_of(BitMap64())) == 0
