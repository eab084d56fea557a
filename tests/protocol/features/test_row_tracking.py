"""Row tracking: which tables do it, which numbers files get, and what the mark says."""

from __future__ import annotations

import json
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.actions import DomainMetadata, Metadata, Protocol, files_table
from anabranch._protocol.features.row_tracking import (
    COMMIT_VERSION_COLUMN,
    ENABLED,
    MOST,
    NOTHING,
    ROW_ID_COLUMN,
    SUSPENDED,
    HiddenColumns,
    assign_row_ids,
    assigns,
    domain_of,
    highest,
    mark_of,
    tracking_columns,
    with_columns,
)
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch.errors import InvalidOption, InvalidProperty

LISTED = Protocol(1, 7, None, frozenset({"rowTracking", "domainMetadata"}))
PLAIN = Protocol(1, 7, None, frozenset({"domainMetadata"}))
NAMED = {ROW_ID_COLUMN: "_row-id-col-1", COMMIT_VERSION_COLUMN: "_row-commit-version-col-2"}


def metadata(**configuration: str) -> Metadata:
    return Metadata("t", schema_json(Struct((Field("id", "long"),))), configuration=configuration)


def files(*rows: tuple[int, int | None]) -> Any:
    """Files by their number of rows and first id."""
    return files_table(
        [{"path": str(i), "stats": json.dumps({"numRecords": n}), "baseRowId": b} for i, (n, b) in enumerate(rows)]
    )


def test_a_listed_feature_numbers_files_and_the_property_makes_rows_keep_their_ids() -> None:
    assert assigns(LISTED, metadata())
    assert not assigns(PLAIN, metadata())
    assert not assigns(LISTED, metadata(**{SUSPENDED: "True"}))
    on = metadata(**{ENABLED: "true"}, **NAMED)
    assert tracking_columns(LISTED, on) == HiddenColumns("_row-id-col-1", "_row-commit-version-col-2")
    assert tracking_columns(PLAIN, on) is tracking_columns(LISTED, metadata(**NAMED)) is None
    assert tracking_columns(LISTED, metadata(**{ENABLED: "true"})) is None


def test_names_are_chosen_once() -> None:
    numbers = count()
    chosen = with_columns(metadata(**{ENABLED: "true"}), lambda: next(numbers))
    assert chosen.configuration[ROW_ID_COLUMN] == "_row-id-col-0"
    assert chosen.configuration[COMMIT_VERSION_COLUMN] == "_row-commit-version-col-1"
    assert with_columns(chosen, lambda: next(numbers)) is chosen
    assert with_columns(metadata(), lambda: next(numbers)) == metadata()
    replaced = with_columns(metadata(**{ENABLED: "true"}), lambda: next(numbers), old=chosen)
    assert replaced.configuration == chosen.configuration
    assert next(numbers) == 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidProperty):
        with_columns(metadata(**{ENABLED: "true", SUSPENDED: "true"}), lambda: "x")
    with pytest.raises(InvalidOption):
        with_columns(metadata(**{ENABLED: "true", ROW_ID_COLUMN: "ID"}), lambda: "x")


def test_a_mark_is_read_as_it_was_stated() -> None:
    assert mark_of(domain_of(41)) == 41
    assert domain_of(41).to_json()["configuration"] == '{"rowIdHighWaterMark":41}'
    spaced = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark" : 7, "other": 1}')
    assert mark_of(spaced) == 7


@pytest.mark.parametrize("text", ["", "7", "{}", '{"rowIdHighWaterMark":"7"}', '{"rowIdHighWaterMark":true}', "[1]"])
def test_a_mark_that_says_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        mark_of(DomainMetadata("delta.rowTracking", text))


COUNTS = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=6)


@given(COUNTS, st.integers(NOTHING, 50))
def test_numbers_lie_above_the_mark_and_no_two_files_share_one(counts: list[tuple[int, bool]], mark: int) -> None:
    base, known = 1000, []
    for rows, has in counts:
        known.append((rows, base if has else None))
        base += rows
    found, after = assign_row_ids(files(*known), mark, 9)
    fresh = [i for i, (_, first) in enumerate(known) if first is None]
    assert [
        b for b, (_, first) in zip(found["baseRowId"].to_pylist(), known, strict=True) if first not in (None, b)
    ] == []
    ranges = [(found["baseRowId"][i].as_py(), known[i][0]) for i in fresh]
    assert all(first > mark for first, _ in ranges)
    assert all(first + rows == then for (first, rows), (then, _) in pairwise(ranges))
    assert after == mark + sum(rows for _, rows in ranges)
    assert set(found["defaultRowCommitVersion"].to_pylist()) <= {9}
    assert highest(files(*known)) == max([b + n - 1 for n, b in known if b is not None], default=NOTHING)


def test_the_last_numbers_are_given_and_no_more() -> None:
    found, mark = assign_row_ids(files((2, None)), MOST - 2, 1)
    assert (found["baseRowId"].to_pylist(), mark) == ([MOST - 1], MOST)
    with pytest.raises(OverflowError):
        assign_row_ids(files((3, None)), MOST - 2, 1)
