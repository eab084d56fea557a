"""Random histories of tables without Spark end with the rows that a list of dicts would have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import Table
from anabranch.errors import AmbiguousMerge
from tests.support.readers import deltalake_rows, same_rows
from tests.support.tiers import is_short

Row = dict[str, Any]
SEEDS = range(6 if is_short() else 60)
KINDS: list[Mapping[str, Any]] = [
    {},
    {"properties": {"delta.enableDeletionVectors": "false"}},
    {"properties": {"delta.enableChangeDataFeed": "true"}, "partition_by": "p"},
    {"properties": {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}},
    {"properties": {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"}, "partition_by": "p"},
]
CONDITIONS: Mapping[str, Callable[[Row], bool | None]] = {
    "k < 5": lambda r: r["k"] is not None and r["k"] < 5,
    "k IS NULL OR v > 2": lambda r: r["k"] is None or (r["v"] is not None and r["v"] > 2),
    "v + k = 7": lambda r: None not in (r["v"], r["k"]) and r["v"] + r["k"] == 7,
    "NOT (v <=> 1)": lambda r: r["v"] != 1,
    "w LIKE 'a%'": lambda r: r["w"] is not None and r["w"].startswith("a"),
    "p = 'x'": lambda r: r["p"] == "x",
    "coalesce(p, 'none') IN ('none', 'y z')": lambda r: r["p"] in (None, "none", "y z"),
    "true": lambda r: True,
}
VALUES: Mapping[str, tuple[str, Callable[[Row], Any]]] = {
    "v + 1": ("v", lambda r: None if r["v"] is None else r["v"] + 1),
    "CASE WHEN k > 3 THEN v ELSE -1 END": ("v", lambda r: r["v"] if r["k"] is not None and r["k"] > 3 else -1),
    "concat(w, '!')": ("w", lambda r: None if r["w"] is None else r["w"] + "!"),
    "NULL": ("w", lambda r: None),
    "upper(w)": ("p", lambda r: None if r["w"] is None else r["w"].upper()),
}


def drawn(dice: random.Random, count: int) -> list[Row]:
    """Some rows."""
    return [
        {
            "k": dice.choice([None, *range(10)]),
            "v": dice.choice([None, 0, 1, 2, 3]),
            "w": dice.choice([None, "", "a", "ab", "é"]),
            "p": dice.choice([None, "x", "y z", "a=b/c"]),
        }
        for _ in range(count)
    ]


def delete(table: Table, rows: list[Row], dice: random.Random) -> list[Row]:
    text, holds = dice.choice([*CONDITIONS.items()])
    gone = [row for row in rows if holds(row)]
    assert table.delete(text).rows == len(gone)
    return [row for row in rows if not holds(row)]


def update(table: Table, rows: list[Row], dice: random.Random) -> list[Row]:
    text, holds = dice.choice([*CONDITIONS.items()])
    value, (column, new) = dice.choice([*VALUES.items()])
    assert table.update(text, {column: value}).rows == sum(bool(holds(row)) for row in rows)
    return [{**row, column: new(row)} if holds(row) else row for row in rows]


def merge(table: Table, rows: list[Row], dice: random.Random) -> list[Row]:
    source = drawn(dice, dice.randrange(1, 6))
    asked = table.merge(source, "source.k = target.k AND source.v <> 9").when_matched_delete("source.v = 0")
    asked = asked.when_matched_update({"v": "source.v + 10", "p": "source.p"}, "target.v < 3")
    asked = asked.when_not_matched_insert_all("source.w IS NOT NULL")
    alone = dice.random() < 0.3
    asked = asked.when_not_matched_by_source_delete("target.v = 2") if alone else asked
    kept, matched, several = [], set[int](), False
    for row in rows:
        pairs = [
            (i, s) for i, s in enumerate(source) if s["k"] is not None and s["k"] == row["k"] and s["v"] is not None
        ]
        matched |= {i for i, _ in pairs}
        acts = [s for _, s in pairs if s["v"] == 0 or (row["v"] is not None and row["v"] < 3)]
        several |= len(acts) > 1
        if acts:
            kept += [] if acts[0]["v"] == 0 else [{**row, "v": acts[0]["v"] + 10, "p": acts[0]["p"]}]
        elif not (alone and not pairs and row["v"] == 2):
            kept.append(row)
    if several:
        with pytest.raises(AmbiguousMerge):
            asked.execute()
        return rows
    asked.execute()
    return [*kept, *(s for i, s in enumerate(source) if i not in matched and s["w"] is not None)]


def append(table: Table, rows: list[Row], dice: random.Random) -> list[Row]:
    more = drawn(dice, 5)
    table.append(more)
    return [*rows, *more]


def overwrite(table: Table, rows: list[Row], dice: random.Random) -> list[Row]:
    more = [{**row, "p": "x"} for row in drawn(dice, 3)]
    table.overwrite(more, "p = 'x'")
    return [*(row for row in rows if row["p"] != "x"), *more]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_ends_with_the_rows_of_a_list(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    path, rows = str(tmp_path / "t"), drawn(dice, 30)
    kind = KINDS[seed % len(KINDS)]
    anabranch.append(path, rows, **kind)
    table, versions = anabranch.table(path), []
    for _ in range(8):
        versions.append((table.snapshot().version, rows))
        step = dice.choice([delete, update, update, merge, merge, append, overwrite])
        rows = step(table, rows, dice)
        if "partition_by" in kind:
            rows = [{**row, "p": row["p"] or None} for row in rows]  # a partition's empty text is NULL
        assert same_rows(table.to_arrow().to_pylist(), rows), step.__name__
        text, holds = dice.choice([*CONDITIONS.items()])
        assert table.count(text) == sum(bool(holds(row)) for row in rows)
        assert table.count() == len(rows)
    assert same_rows(deltalake_rows(path), rows)
    for version, before in dice.sample(versions, 3):
        assert same_rows(table.to_arrow(version=version).to_pylist(), before)
    assert table.check(deep=True).is_clean
    if "delta.enableChangeDataFeed" in kind.get("properties", {}):
        assert_changes_lead_on(table)


def assert_changes_lead_on(table: Table) -> None:
    """Hold that the changes of each version lead from the rows of the one before to its own."""
    changes, rows = table.changes(0).to_pylist(), Counter[str]()
    for version in range(table.snapshot().version + 1):
        for row in (each for each in changes if each["_commit_version"] == version):
            shown = repr({name: value for name, value in row.items() if not name.startswith("_")})
            rows[shown] += 1 if row["_change_type"] in ("insert", "update_postimage") else -1
        assert +rows == Counter(map(repr, table.to_arrow(version=version).to_pylist())), version
        assert not -rows
