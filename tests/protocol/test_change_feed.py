"""Which rows a version inserted and deleted, by its actions and vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from anabranch._protocol.actions import ADDS, DROPS
from anabranch._protocol.change_feed import (
    DELETE,
    INSERT,
    VersionChanges,
    changes_from_cdc,
    changes_nothing,
    derive_changes,
    unreadable,
)
from anabranch._protocol.schema.types import PHYSICAL_NAME, Array, Field, Map, Struct

ROWS = 6
Vector = frozenset[int]
Live = Mapping[str, Vector]


def action(path: str, vector: Vector, changes: bool = True) -> dict[str, Any]:
    """A file with this vector, which stands in its own descriptor."""
    name = ",".join(map(str, sorted(vector)))
    found = {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 1, "cardinality": len(vector)}
    values = [("p", "1")]
    row = {"path": path, "partitionValues": values, "size": 9, "dataChange": changes}
    return {**row, "deletionVector": found} if vector else row


def vector_in(row: Mapping[str, Any]) -> BitMap64:
    found = row["deletionVector"]
    return BitMap64(map(int, found["pathOrInlineDv"].split(","))) if found else BitMap64()


def changes_of(adds: list[dict[str, Any]], removes: list[dict[str, Any]]) -> VersionChanges:
    tables = (pa.Table.from_pylist(rows, schema=schema) for rows, schema in ((adds, ADDS), (removes, DROPS)))
    return derive_changes(3, 7_000, *tables, vector_in)


def rows_of(found: VersionChanges) -> Counter[tuple[str, str, int]]:
    rows = Counter[tuple[str, str, int]]()
    for each in found.whole.to_pylist():
        hidden = found.hidden.get(each["path"], BitMap64())
        rows.update((each["change"], each["path"], i) for i in range(ROWS) if i not in hidden)
    for each, some in zip(found.partly.to_pylist(), found.rows, strict=True):
        rows.update((each["change"], each["path"], i) for i in some)
    return rows


def every(change: str, path: str, *but: int) -> Counter[tuple[str, str, int]]:
    return Counter((change, path, i) for i in range(ROWS) if i not in but)


def test_what_is_added_is_inserted_and_what_is_removed_is_deleted() -> None:
    found = changes_of([action("a", frozenset())], [action("b", frozenset({2}))])
    assert rows_of(found) == every(INSERT, "a") + every(DELETE, "b", 2)
    assert (found.version, found.timestamp, found.paths) == (3, 7_000, {"a", "b"})
    assert found.whole["partitionValues"].to_pylist() == [[("p", "1")]] * 2


def test_a_file_that_stays_changes_only_where_its_vectors_differ() -> None:
    found = changes_of([action("a", frozenset({1, 2}))], [action("a", frozenset({0, 1}))])
    assert rows_of(found) == Counter({(DELETE, "a", 2): 1, (INSERT, "a", 0): 1})
    assert len(found.whole) == 0


@pytest.mark.parametrize(("before", "after", "change"), [((), (4,), DELETE), ((4,), (), INSERT)])
def test_a_vector_that_comes_deletes_and_one_that_goes_brings_back(
    before: tuple[int, ...], after: tuple[int, ...], change: str
) -> None:
    found = changes_of([action("a", frozenset(after))], [action("a", frozenset(before))])
    assert rows_of(found) == Counter({(change, "a", 4): 1})


def test_what_says_that_no_data_changed_gives_nothing() -> None:
    found = changes_of([action("new", frozenset(), changes=False)], [action("old", frozenset({1}), changes=False)])
    assert not rows_of(found)
    assert not found.paths


def test_files_of_change_data_say_all_themselves() -> None:
    said = [{"path": "_change_data/c", "partitionValues": {"p": "2"}, "size": 5, "dataChange": False}]
    found = changes_from_cdc(1, 2, said)
    assert found.written.to_pylist() == [{"path": "_change_data/c", "partitionValues": [("p", "2")], "size": 5}]
    assert found.paths == {"_change_data/c"}


COUNTS = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}


@pytest.mark.parametrize(
    ("operation", "metrics", "nothing"),
    [
        ("MERGE", COUNTS, True),
        ("MERGE", {**COUNTS, "numTargetRowsUpdated": "1"}, False),
        ("MERGE", {"numTargetRowsInserted": "0"}, False),
        ("DELETE", COUNTS, False),
        ("MERGE", None, False),
    ],
)
def test_only_a_merge_that_counted_no_row_changed_nothing(operation: str, metrics: Any, nothing: bool) -> None:
    assert changes_nothing({"operation": operation, "operationMetrics": metrics}) is nothing


# -- any history -------------------------------------------------------------------------------------------------------

some_rows = st.frozensets(st.integers(0, ROWS - 1))
states = st.dictionaries(st.sampled_from("abcde"), some_rows, max_size=4)


@pytest.mark.slow
@given(before=states, after=states, compacted=states)
def test_the_changes_lead_from_any_version_to_any_other(before: Live, after: Live, compacted: Live) -> None:
    removes = [action(path, rows) for path, rows in before.items() if after.get(path) != rows]
    adds = [action(path, rows) for path, rows in after.items() if before.get(path) != rows]
    moved = [action(f"moved {path}", rows, changes=False) for path, rows in compacted.items()]
    found = rows_of(changes_of(adds + moved, removes))
    assert set(found.values()) <= {1}, "a row changes once in a version"
    live = live_rows(before)
    for change, path, row in found:
        live[path, row] += 1 if change == INSERT else -1
    assert +live == live_rows(after)
    assert not -live


def live_rows(state: Live) -> Counter[tuple[str, int]]:
    return Counter((path, i) for path, gone in state.items() for i in range(ROWS) if i not in gone)


# -- columns -----------------------------------------------------------------------------------------------------------

OLDER = Struct((Field("id", "long"), Field("s", Struct((Field("x", "date"),)))))


@pytest.mark.parametrize(
    "newer",
    [
        OLDER,
        Struct((*OLDER, Field("more", "string"))),
        Struct((Field("id", "long", nullable=False), Field("s", Struct((Field("x", "date"), Field("y", "long")))))),
        Struct((Field("id", "long", metadata={"comment": "a key"}), OLDER.fields[1])),
    ],
)
def test_older_rows_are_read_where_columns_only_came(newer: Struct) -> None:
    assert unreadable(OLDER, newer) is None


@pytest.mark.parametrize(
    ("newer", "why"),
    [
        (Struct(OLDER.fields[1:]), "id was dropped or renamed"),
        (Struct((Field("ID", "long"), OLDER.fields[1])), "id was dropped or renamed"),
        (Struct((Field("id", "long", metadata={PHYSICAL_NAME: "col-1"}), OLDER.fields[1])), "id was dropped"),
        (Struct((Field("id", "string"), OLDER.fields[1])), "id is no longer of the type long"),
        (Struct((Field("id", "long"), Field("s", Struct((Field("y", "date"),))))), "s.x was dropped or renamed"),
        (Struct((Field("id", "long"), Field("s", "string"))), "s is no longer of the type struct"),
    ],
)
def test_older_rows_are_not_read_as_what_they_are_not(newer: Struct, why: str) -> None:
    assert str(unreadable(OLDER, newer)).startswith(why)


def test_the_types_inside_arrays_and_maps_count_too() -> None:
    one, other = Struct((Field("x", "long"),)), Struct((Field("x", "integer"),))
    for wrap in (Array, lambda inner: Map("string", inner), lambda inner: Map(inner, "string")):
        assert unreadable(Struct((Field("c", wrap(one)),)), Struct((Field("c", wrap(one)),))) is None
        assert unreadable(Struct((Field("c", wrap(one)),)), Struct((Field("c", wrap(other)),))) is not None
