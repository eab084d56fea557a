"""Packing: which files go together, and that it comes to an end."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.actions import files_table
from anabranch._protocol.layout.packing import AUTO_TARGET, MIB, auto_compaction_target, bins_due, plan, target_size
from anabranch._protocol.properties import Properties, check_properties
from anabranch.errors import InvalidProperty

TARGET = 100
RECORDS = 1000


def file(name: str, size: int, deleted: int = 0, day: str | None = "1", time: int = 0) -> dict[str, Any]:
    row: dict[str, Any] = {"path": name, "partitionValues": {"day": day}, "size": size, "modificationTime": time}
    row["stats"] = json.dumps({"numRecords": RECORDS})
    if deleted:
        vector = {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "sizeInBytes": 1}
        row["deletionVector"] = {**vector, "cardinality": deleted}
    return row


def names(bins: Sequence[pa.Table]) -> list[list[str]]:
    return [each["path"].to_pylist() for each in bins]


def planned(*rows: dict[str, Any], target: int = TARGET) -> list[list[str]]:
    return names(plan(files_table(rows), target))


def test_small_files_of_a_partition_go_together_the_older_ones_first() -> None:
    rows = [file("b", 10, time=2), file("c", 20, time=1), file("a", 10, time=2), file("d", 10, day="2")]
    assert planned(*rows) == [["c", "a", "b"]]


def test_a_partition_of_null_is_not_one_of_the_text() -> None:
    assert planned(file("a", 1, day=None), file("b", 1, day="None")) == []


def test_a_file_of_half_the_target_is_left_alone() -> None:
    assert planned(file("a", 50), file("b", 49), file("c", 200)) == []
    assert planned(file("a", 50), file("b", 49), file("c", 49)) == [["b", "c"]]


@pytest.mark.parametrize(("deleted", "expected"), [(50, []), (51, [["a"]])])
def test_a_file_alone_is_written_anew_if_more_than_five_in_a_hundred_rows_are_deleted(
    deleted: int, expected: list[list[str]]
) -> None:
    assert planned(file("a", 1000, deleted)) == expected
    assert planned(file("a", 10, deleted)) == expected


def test_a_files_live_part_counts() -> None:
    assert planned(file("a", 120, 500), file("b", 120, 700), file("c", 20)) == [["a", "b"]]


FILES = st.lists(
    st.tuples(st.integers(0, 250), st.sampled_from([0, 0, 1, 50, 51, 500, RECORDS]), st.sampled_from(["1", "2", None])),
    max_size=40,
).map(lambda rows: [file(f"f{i}", *row, time=i % 3) for i, row in enumerate(rows)])


@pytest.mark.slow
@given(FILES, st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_given_does_not_matter(rows: list[dict[str, Any]], dice: random.Random) -> None:
    mixed = list(rows)
    dice.shuffle(mixed)
    assert planned(*rows) == planned(*mixed)


@given(FILES)
def test_a_file_is_in_one_bin_at_most_and_bins_are_of_one_partition_and_no_larger_than_wanted(
    rows: list[dict[str, Any]],
) -> None:
    by_name = {each["path"]: each for each in rows}
    bins = planned(*rows)
    assert len(list(chain(*bins))) == len(set(chain(*bins)))
    for each in bins:
        assert len({by_name[name]["partitionValues"]["day"] for name in each}) == 1
        assert len(each) == 1 or sum(live(by_name[name]) for name in each) <= TARGET


def live(row: dict[str, Any]) -> int:
    deleted = row["deletionVector"]["cardinality"] if "deletionVector" in row else 0
    return max(1, int(row["size"] * (1 - deleted / RECORDS)))


@pytest.mark.slow
@given(FILES)
def test_planning_what_came_of_a_plan_gives_nothing(rows: list[dict[str, Any]]) -> None:
    by_name = {each["path"]: each for each in rows}
    bins = planned(*rows)
    gone = set(chain(*bins))
    new = [
        file(f"new{i}", sum(live(by_name[n]) for n in each), day=by_name[each[0]]["partitionValues"]["day"], time=9)
        for i, each in enumerate(bins)
    ]
    assert planned(*[each for name, each in by_name.items() if name not in gone], *new) == []


@pytest.mark.parametrize(
    ("table", "expected"),
    [(0, 256), (2 << 40, 256), (3 << 40, 307.2), (7 << 40, 716.8), (10 << 40, 1024), (1 << 50, 1024)],
)
def test_files_grow_with_the_table_as_it_is_documented(table: int, expected: float) -> None:
    assert target_size(Properties({}), table) / MIB == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "size"), [("104857600", 100 * MIB), ("100mb", 100 * MIB), ("1 GB", 1024 * MIB), ("5k", 5120), ("7b", 7)]
)
def test_a_table_may_say_how_large_its_files_are_to_be(text: str, size: int) -> None:
    assert target_size(Properties({"delta.targetFileSize": text}), 10 << 40) == size


@pytest.mark.parametrize("text", ["0", "big", "-1", "1.5gb", "10 xb", "mb"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidProperty):
        check_properties({"delta.targetFileSize": text})


@pytest.mark.parametrize(
    ("mode", "target"), [("false", None), ("true", AUTO_TARGET), ("legacy", AUTO_TARGET), ("auto", 256 * MIB)]
)
def test_automatic_compaction_has_a_target_of_its_own(mode: str, target: int | None) -> None:
    assert auto_compaction_target(Properties({"delta.autoOptimize.autoCompact": mode}), 1 << 30) == target
    assert auto_compaction_target(Properties({}), 1 << 30) is None


def test_automatic_compaction_waits_for_enough_small_files_in_a_partition() -> None:
    rows = [file(f"{i:02}", 1) for i in range(49)] + [file(f"x{i:02}", 1, day="2") for i in range(3)]
    assert bins_due(files_table(rows), TARGET) == []
    assert names(bins_due(files_table([*rows, file("more", 1)]), TARGET)) == [[*(f"{i:02}" for i in range(49)), "more"]]
