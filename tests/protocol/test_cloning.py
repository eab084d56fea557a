"""Which files a clone has already, by what the log says of them and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch._protocol.actions import files_table
from anabranch._protocol.cloning import absolute_row, plan_deep, plan_shallow, row_of_copy
from anabranch._protocol.layout.deletion_vectors import Descriptor

ROOT, TARGET = "file:///data/origin é", "file:///data/clone"
VECTOR = Descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 4)
OTHER = Descriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)


def row(path: str = "a.parquet", vector: Descriptor | None = None, **more: Any) -> dict[str, Any]:
    given = {"path": path, "partitionValues": {"p": None}, "size": 5, "modificationTime": 7, **more}
    return dict(files_table([{**given, "deletionVector": None if vector is None else vector.to_row()}]).to_pylist()[0])


def copies_of(source: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a deep clone of these files holds."""
    needed = plan_deep(source, ROOT, []).copies
    own = Descriptor("u", "job-1ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 1)
    return [
        files_table(
            [row_of_copy(each, f"job-1/{i}.parquet", 100, own if each.row["deletionVector"] else None)]
        ).to_pylist()[0]
        for i, each in enumerate(needed)
    ]


def test_a_file_is_named_by_an_absolute_uri_and_its_vector_too() -> None:
    found = absolute_row(row("p=a%20b/x.parquet", VECTOR, tags={"anabranch.clonedFrom": "y", "kept": "z"}), ROOT)
    assert found["path"] == "file:/data/origin%20é/p=a%20b/x.parquet"
    assert found["deletionVector"]["storageType"] == "p"
    assert found["deletionVector"]["pathOrInlineDv"].startswith("file:/data/origin%20é/ab/deletion_vector_")
    assert found["tags"] == {"kept": "z"}
    assert absolute_row(row(vector=OTHER), ROOT)["deletionVector"] == OTHER.to_row()


def test_a_file_that_lies_at_the_target_is_named_as_its_own() -> None:
    assert absolute_row(row("file:/data/clone/b%201.parquet"), ROOT, TARGET)["path"] == "b%201.parquet"


def test_a_shallow_clone_has_what_it_names_with_the_same_vector() -> None:
    first = plan_shallow([row(vector=VECTOR), row("b.parquet")], ROOT, TARGET, [])
    assert (len(first.adds), first.removes) == (2, frozenset())
    again = plan_shallow([row(vector=VECTOR), row("b.parquet")], ROOT, TARGET, first.adds)
    assert (again.adds, again.removes, again.other) == ([], frozenset(), frozenset())
    later = plan_shallow([row(vector=OTHER), row("c.parquet")], ROOT, TARGET, first.adds)
    assert len(later.adds) == len(later.removes) == 2
    assert later.adds[0]["path"] in later.removes


def test_a_deep_clone_has_its_copies_while_nobody_touched_them() -> None:
    source = [row(vector=VECTOR), row("b.parquet"), row("c.parquet", OTHER)]
    again = plan_deep(source, ROOT, copies_of(source))
    assert (again.copies, again.removes) == ([], frozenset())


@pytest.mark.parametrize(
    ("changed", "keeps_file"),
    [
        ({"deletionVector": None}, True),
        ({"deletionVector": OTHER.to_row()}, True),
        ({"tags": None}, False),
        ({"size": 6}, False),
        ({"partitionValues": [("p", "x")]}, False),
    ],
)
def test_a_copy_that_was_changed_is_made_anew_as_far_as_needed(changed: dict[str, Any], keeps_file: bool) -> None:
    source = [row(vector=VECTOR)]
    (had,) = copies_of(source)
    again = plan_deep(source, ROOT, [{**had, **changed}])
    assert [each.had for each in again.copies] == [{**had, **changed} if keeps_file else None]
    assert again.removes == {had["path"]}


def test_a_copy_has_its_own_time_and_is_known_by_that_of_its_original() -> None:
    (had,) = copies_of([row()])
    assert had["modificationTime"] == 100
    assert plan_deep([row()], ROOT, [had]).copies == []
    assert [each.had for each in plan_deep([row(modificationTime=8)], ROOT, [had]).copies] == [None]
    assert [each.had for each in plan_deep([row(modificationTime=100)], ROOT, [had]).copies] == [None]


def test_a_copy_from_before_copies_had_times_of_their_own_is_known_by_its_time() -> None:
    (had,) = copies_of([row()])
    before = {**had, "modificationTime": 7, "tags": [tag for tag in had["tags"] if tag[0] != "anabranch.clonedTime"]}
    again = plan_deep([row()], ROOT, [before])
    assert (again.copies, again.removes) == ([], frozenset())
    assert [each.had for each in plan_deep([row(modificationTime=8)], ROOT, [before]).copies] == [None]


def test_a_file_whose_row_ids_are_not_the_source_s_is_another_one() -> None:
    (had,) = copies_of([row(baseRowId=3)])
    assert plan_deep([row(baseRowId=3)], ROOT, [had]).copies == []
    assert plan_deep([row(baseRowId=None)], ROOT, [had]).copies == []
    assert [each.had for each in plan_deep([row(baseRowId=4)], ROOT, [had]).copies] == [None]


def test_of_two_copies_of_one_file_one_goes() -> None:
    (had,) = copies_of([row()])
    again = plan_deep([row()], ROOT, [had, {**had, "path": "job-2/0.parquet"}])
    assert (again.copies, len(again.removes)) == ([], 1)
