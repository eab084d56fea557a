"""A MERGE by `<=>` without Spark: rows whose key is NULL match each other, also among those that came in meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch.errors import AmbiguousMerge, ConcurrentAppendException, ConcurrentDeleteReadException
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows
from tests.support.tiers import examples

Row = dict[str, Any]
KINDS: dict[str, dict[str, Any]] = {
    "vectors": {},
    "no vectors": {"properties": {"delta.enableDeletionVectors": "false"}},
    "a partition": {"partition_by": "id"},
    "feed": {"properties": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}},
}
SPELLINGS = [
    "source.id <=> target.id",
    "equal_null(target.id, source.id)",
    "target.id IS NOT DISTINCT FROM source.id",
]
FILES = [[(1, 10), (2, 20)], [(None, 30), (3, 40)], [(4, 50)]]


def made(folder: Path, files: Any = FILES, **options: Any) -> Table:
    """A table of these files."""
    path = str(folder / "t")
    for rows in files:
        anabranch.append(path, given(*rows), **options)
        options = {}
    return anabranch.table(path)


def given(*rows: tuple[int | None, int]) -> pa.Table:
    return pa.table({"id": pa.array([key for key, _ in rows], pa.int64()), "v": [value for _, value in rows]})


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    """The rows as another reader sees them too, of a table that is clean."""
    assert table.check(deep=True).is_clean
    found = sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)
    assert found == sorted((tuple(row.values()) for row in deltalake_rows(table.snapshot().table)), key=repr)
    return found


def upsert(table: Table, *rows: tuple[int | None, int], on: str = SPELLINGS[0]) -> Any:
    return table.merge(given(*rows), on).when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.parametrize("on", SPELLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_null_matches_null(tmp_path: Path, kind: str, on: str) -> None:
    table = made(tmp_path, **KINDS[kind])
    upsert(table, (None, 31), (2, 21), (9, 90), on=on)
    assert rows_of(table) == sorted([(1, 10), (2, 21), (None, 31), (3, 40), (4, 50), (9, 90)], key=repr)


def test_without_null_in_the_source_no_null_of_the_table_matches(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert upsert(table, (1, 11), (9, 90)).rows == 2
    assert (None, 30) in rows_of(table)


def test_null_of_the_source_is_inserted_if_the_table_has_none(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1])
    for value in (5, 6):
        upsert(table, (None, value))
        assert rows_of(table) == sorted([(1, 10), (2, 20), (None, value)], key=repr)


def test_a_key_that_old_files_lack_is_null_there(tmp_path: Path) -> None:
    table = made(tmp_path)
    anabranch.append(str(tmp_path / "t"), [{"id": 7, "v": 70, "k": 1}], schema_change="merge")
    source = pa.table({"k": pa.array([None], pa.int64())})
    assert table.merge(source, "source.k <=> target.k").when_matched_delete().execute().rows == 5
    assert rows_of(table) == [(7, 70, 1)]


def test_null_is_equal_to_nothing_in_a_key_that_is_compared_by_equality(tmp_path: Path) -> None:
    table = made(tmp_path, [[(1, 10), (None, 10), (None, 20)]])
    merge = table.merge(
        pa.table({"id": pa.array([1, None, None], pa.int64()), "v": pa.array([None, 10, None], pa.int64())}),
        "source.id <=> target.id AND source.v = target.v",
    )
    assert merge.when_matched_delete().execute().rows == 1
    assert rows_of(table) == [(1, 10), (None, 20)]


def test_rows_that_no_source_row_matches_are_those_whose_null_matches_no_null(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.merge(given((None, 0), (1, 0)), SPELLINGS[0]).when_not_matched_by_source_delete().execute()
    assert rows_of(table) == [(1, 10), (None, 30)]
    table.merge(given((1, 0)), SPELLINGS[0]).when_not_matched_by_source_delete().execute()
    assert rows_of(table) == [(1, 10)]


def test_two_null_keys_of_the_source_are_ambiguous_where_the_table_has_one(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(AmbiguousMerge) as refused:
        upsert(table, (None, 1), (None, 2))
    assert refused.value.facts["count"] == 1
    assert table.merge(given((None, 1), (None, 2)), SPELLINGS[0]).when_matched_delete().execute().rows == 1


# -- writers meanwhile -------------------------------------------------------------------------------------------------


def test_two_inserts_of_a_null_key_conflict(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1])
    with pytest.raises(ConcurrentAppendException), at_phase("staged", lambda: upsert(table, (None, 1))):
        upsert(table, (None, 2))
    assert rows_of(table) == [(1, 10), (2, 20), (None, 1)]


def test_a_row_whose_key_became_null_conflicts_with_a_null_key(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1])
    win = lambda: table.update("id = 2", {"id": "NULL"})  # noqa: E731
    with pytest.raises(ConcurrentAppendException), at_phase("staged", win):
        upsert(table, (None, 2))


@pytest.mark.parametrize("change", ["update", "delete"])
def test_a_matched_row_that_a_winner_changed_conflicts(tmp_path: Path, change: str) -> None:
    table = made(tmp_path)

    def win() -> None:
        if change == "update":
            table.update("id IS NULL", {"v": "0"})
        else:
            table.delete("id IS NULL")

    with pytest.raises(ConcurrentDeleteReadException), at_phase("staged", win):
        upsert(table, (None, 31))


def test_an_append_of_a_null_key_conflicts_with_a_serializable_upsert(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1], properties={"delta.isolationLevel": "Serializable"})
    with pytest.raises(ConcurrentAppendException), at_phase("staged", lambda: table.append(given((None, 1)))):
        upsert(table, (None, 2))
    with at_phase("staged", lambda: table.append(given((None, 3)))):
        assert upsert(table, (1, 11)).rows == 1


def test_upserts_of_null_and_of_other_keys_both_commit(tmp_path: Path) -> None:
    table = made(tmp_path)
    with at_phase("staged", lambda: upsert(table, (3, 41), (8, 80))):
        upsert(table, (None, 31), (9, 90))
    with at_phase("staged", lambda: upsert(table, (None, 32))):
        upsert(table, (3, 42))
    expected = [(1, 10), (2, 20), (None, 32), (3, 42), (4, 50), (8, 80), (9, 90)]
    assert rows_of(table) == sorted(expected, key=repr)


def test_an_upsert_by_equality_has_nothing_to_do_with_a_null_key_that_came_in(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1])
    with at_phase("staged", lambda: upsert(table, (None, 1))):
        upsert(table, (None, 2), on="source.id = target.id")
    assert rows_of(table) == sorted([(1, 10), (2, 20), (None, 1), (None, 2)], key=repr)


def test_a_null_key_that_came_in_is_updated_by_a_merge_that_redoes_itself(tmp_path: Path) -> None:
    table = made(tmp_path, FILES[:1], properties={"anabranch.conflictResolution": "redo"})
    with at_phase("staged", lambda: upsert(table, (None, 1))):
        upsert(table, (None, 2), (5, 5))
    assert rows_of(table) == sorted([(1, 10), (2, 20), (None, 2), (5, 5)], key=repr)


# -- against a list ----------------------------------------------------------------------------------------------------


def expected_of(rows: list[Row], source: list[Row], *, also: str, alone: bool) -> list[Row]:
    """The rows after an upsert by `id <=> id`, and by `w` compared with the sign ``also``, if any; unmatched rows are
    deleted if ``alone``.
    """

    def matches(row: Row, other: Row) -> bool:
        same_words = row["w"] == other["w"] and (row["w"] is not None or also == "<=>")
        return row["id"] == other["id"] and (not also or same_words)

    kept = []
    for row in rows:
        pairs = [other for other in source if matches(row, other)]
        kept += pairs or ([] if alone else [row])
    return [*kept, *(other for other in source if not any(matches(row, other) for row in rows))]


@pytest.mark.parametrize("seed", range(examples(60, 12)))
def test_random_upserts_by_null_safe_keys_end_with_the_rows_of_a_list(tmp_path: Path, seed: int) -> None:
    dice, path = random.Random(seed), str(tmp_path / "t")

    def drawn(count: int) -> list[Row]:
        keys = [(dice.choice([None, None, *range(6)]), dice.choice([None, "a", "b"])) for _ in range(count)]
        return [{"id": key, "w": word, "v": dice.randrange(100)} for key, word in keys]

    also, alone = dice.choice(["", "=", "<=>"]), dice.random() < 0.3
    rows, source = drawn(20), drawn(8)
    unique = {(row["id"], row["w"] if also else None): row for row in source}
    source = [*unique.values()]
    schema = pa.schema([("id", pa.int64()), ("w", pa.string()), ("v", pa.int64())])
    anabranch.append(path, pa.Table.from_pylist(rows[:12], schema), **KINDS[[*KINDS][seed % len(KINDS)]])
    anabranch.append(path, pa.Table.from_pylist(rows[12:], schema))
    on = "source.id <=> target.id" + (f" AND source.w {also} target.w" if also else "")
    merge = anabranch.table(path).merge(pa.Table.from_pylist(source, schema), on)
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    (merge.when_not_matched_by_source_delete() if alone else merge).execute()
    expected = expected_of(rows, source, also=also, alone=alone)
    assert Counter(map(repr, deltalake_rows(path))) == Counter(map(repr, expected))
