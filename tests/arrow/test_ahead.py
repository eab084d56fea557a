"""What is read on a thread beside the one that writes it: in order, bounded, and without a thread that is left."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from anabranch._arrow.ahead import AHEAD, read_ahead
from anabranch._protocol.unsupported import Unsupported
from tests.support.patience import until


def numbered(numbers: Iterator[int], seen: list[int]) -> Iterator[pa.RecordBatch]:
    for number in numbers:
        seen.append(number)
        yield pa.RecordBatch.from_pydict({"n": [number]})


def reads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "anabranch-read"]


def assert_read_ahead(batches: Iterator[pa.RecordBatch], seen: list[int], most: int) -> None:
    """Besides what was taken, so many are read, one of which has no room, and never more."""
    for taken in range(1, 20):
        next(batches)
        until(lambda taken=taken: len(seen) >= taken + most)  # type: ignore[misc]
        assert len(seen) == taken + most


def test_what_is_read_ahead_comes_whole_and_in_its_order() -> None:
    with read_ahead(numbered(iter(range(50)), [])) as batches:
        assert [batch["n"][0].as_py() for batch in batches] == list(range(50))
    assert not reads()


@pytest.mark.slow
def test_only_a_few_batches_are_read_ahead_and_none_once_nobody_wants_them() -> None:
    seen = list[int]()
    with read_ahead(numbered(itertools.count(), seen)) as batches:
        assert_read_ahead(batches, seen, AHEAD + 1)
    assert not reads()


@pytest.mark.slow
def test_no_more_than_a_row_group_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._arrow.ahead.AHEAD_BYTES", 20)
    seen = list[int]()
    with read_ahead(numbered(itertools.count(), seen)) as batches:
        assert_read_ahead(batches, seen, 3 + 1)


def test_an_error_of_the_reader_comes_in_the_place_of_its_batch() -> None:
    def numbers() -> Iterator[int]:
        yield from (1, 2)
        raise Unsupported("there is a NaN")

    found = list[int]()
    with pytest.raises(Unsupported, match="NaN"), read_ahead(numbered(numbers(), [])) as batches:
        found.extend(batch["n"][0].as_py() for batch in batches)
    assert found == [1, 2]
    assert not reads()


def test_an_error_of_the_writer_ends_the_reader() -> None:
    with pytest.raises(ZeroDivisionError), read_ahead(numbered(itertools.count(), [])) as batches:
        next(batches)["n"][0].as_py() / 0
    assert not reads()
