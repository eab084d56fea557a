"""What file skipping decided can be seen: how many files are left, what each part of a condition ruled out, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch._protocol.stats.skipping_verdicts import Conjunct
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.errors import InvalidCondition, VersionNotFound


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Four files: three of two days with an id each, and one that states nothing."""
    path = str(tmp_path / "table")
    for day, number in (("mon", 1), ("tue", 10), ("tue", 100)):
        rows = {"id": [number], "day": [day], "name": [f"n{number}"], "s": [{"a": number}], "list": [[1]]}
        anabranch.append(path, rows, partition_by=["day"])
    return path


def without_statistics(table: str, version: int) -> None:
    """Take the statistics out of a commit, as a writer that states none."""
    commit = Path(table) / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")


def by(table: str, where: str) -> list[tuple[int, str | None]]:
    return [(each.dropped, each.reason) for each in anabranch.explain(table, where).by]


def test_files_and_bytes_are_counted_in_all_and_kept(table: str) -> None:
    sizes = anabranch.files(table)["size"].to_pylist()
    found = anabranch.explain(table, "day = 'tue' AND id > 50")
    assert (found.total, found.kept, found.version) == (3, 1, 2)
    assert (found.bytes_total, found.bytes_kept) == (sum(sizes), sizes[2])
    assert found.by == (Conjunct("day = 'tue'", 1, None), Conjunct("id > 50", 2, None))
    assert found.kept == anabranch.files(table, found.where).num_rows


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 5", [(1, None)]),
        ("s.a > 5 AND list IS NULL", [(1, None), (3, None)]),
        ("(id > 5 AND (name = 'n1'))", [(1, None), (2, None)]),
        ("length(name) > 2", [(0, "not understood")]),
        ("id = '5'", [(3, None)]),
        ("id > 5 OR length(name) > 2", [(0, "understood in part")]),
        ("name LIKE 'x%y'", [(3, "understood in part")]),
        ("id = 1 OR name = 'n10'", [(1, None)]),
        ("true", [(0, None)]),
        ("false", [(3, None)]),
        ("id > NULL", [(3, None)]),
    ],
)
def test_each_part_says_what_it_did_and_why_no_more(
    table: str, where: str, expected: list[tuple[int, str | None]]
) -> None:
    assert by(table, where) == expected


def test_files_without_statistics_are_counted(table: str) -> None:
    without_statistics(table, 2)
    assert by(table, "id > 5") == [(1, "no statistics of id in 1 of 2")]
    assert by(table, "s.a = 1 AND day = 'mon'") == [(1, "no statistics of s.a in 1 of 2"), (2, None)]
    assert by(table, "id > 5 OR length(name) = 2") == [(0, "no statistics of id in 1 of 3; understood in part")]


def test_it_can_be_printed(table: str) -> None:
    without_statistics(table, 1)
    first, *rest = str(anabranch.explain(table, "id > 5 AND day = 'tue' AND length(name) > 2")).splitlines()
    assert first.startswith("file://")
    assert " at version 2: 2 of 3 files, " in first
    assert rest == [
        "  id > 5: 1 ruled out (no statistics of id in 1 of 2)",
        "  day = 'tue': 1 ruled out",
        "  length(name) > 2: 0 ruled out (not understood)",
    ]


def test_an_older_version_is_explained_and_what_cannot_be_read_is_refused(table: str) -> None:
    assert anabranch.explain(table, "id > 5", version=0).total == 1
    with pytest.raises(VersionNotFound):
        anabranch.explain(table, "id > 5", version=9)
    for where in ("nope > 5", "id >", "id > 5; id < 6"):
        with pytest.raises(InvalidCondition):
            anabranch.explain(table, where)


def test_a_condition_on_an_older_version_speaks_of_the_columns_that_it_had(tmp_path: Path) -> None:
    path = str(tmp_path / "renamed")
    anabranch.append(path, [{"old": 5}], properties={"delta.columnMapping.mode": "name"})
    RenameColumn(path, ("old",), "new").run()
    assert [anabranch.files(path, f"old = {n}", version=0).num_rows for n in (5, 6)] == [1, 0]
    assert [anabranch.explain(path, f"old = {n}", version=0).kept for n in (5, 6)] == [1, 0]


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["files", *words], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_command_line_lists_and_explains(table: str) -> None:
    assert len(json.loads(run(table, "--json"))) == 3
    (only,) = json.loads(run(table, "--where", "id > 50", "--json"))
    assert only["partition_values"] == {"day": "tue"}
    assert "partition_values" in run(table, "--where", "id > 50")
    assert "1 of 3 files" in run(table, "--where", "id > 50", "--explain")
    found = json.loads(run(table, "--where", "id > 50", "--explain", "--json"))
    assert found["by"] == [{"text": "id > 50", "dropped": 2, "reason": None}]
    assert json.loads(run(table, "--explain", "--json"))["kept"] == 3
