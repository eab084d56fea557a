"""A commit of a table without Spark says what did each of its steps: in the words in which its plan said it before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch._protocol.steps import TAG
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows, duckdb_rows

ROWS = [{"id": i, "v": i % 3} for i in range(9)]
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
FEED = {"delta.enableChangeDataFeed": "true"}
FIND, NEW = "find rows: Arrow", "write new rows: Arrow"


def made(folder: Path, properties: dict[str, str]) -> Table:
    """A table of two files."""
    path = str(folder / "t")
    anabranch.append(path, ROWS, properties=properties)
    anabranch.append(path, [{"id": 100, "v": 7}])
    return anabranch.table(path)


def merged(table: Table) -> Any:
    source = [{"id": 1, "v": 10}, {"id": 50, "v": 50}]
    merge = table.merge(pa.Table.from_pylist(source), "source.id = target.id")
    return merge.when_matched_update_all().when_not_matched_insert_all()


def said(table: Table) -> list[str]:
    return str(table.history(1)[0]["steps"]).split("\n")


VERBS: list[tuple[str, dict[str, str], Callable[[Table], Any], Callable[[Table], Any]]] = [
    ("update", {}, lambda t: t.update("id < 5", {"v": "v + 1"}), lambda t: t.explain_update("id < 5", {"v": "v + 1"})),
    ("update", NO_VECTORS, lambda t: t.update("v = 1", {"v": "9"}), lambda t: t.explain_update("v = 1", {"v": "9"})),
    ("update", FEED, lambda t: t.update("v = 1", {"v": "9"}), lambda t: t.explain_update("v = 1", {"v": "9"})),
    ("delete", {}, lambda t: t.delete("v = 1"), lambda t: t.explain_delete("v = 1")),
    ("delete", NO_VECTORS, lambda t: t.delete("v = 1"), lambda t: t.explain_delete("v = 1")),
    ("delete", {}, lambda t: t.delete("id > 50"), lambda t: t.explain_delete("id > 50")),
    ("delete", FEED, lambda t: t.delete(), lambda t: t.explain_delete()),
    ("merge", {}, lambda t: merged(t).execute(), lambda t: merged(t).explain()),
    ("merge", FEED, lambda t: merged(t).execute(), lambda t: merged(t).explain()),
    ("optimize", {}, lambda t: t.optimize().compact(), lambda t: t.explain_optimize()),
    ("optimize", {}, lambda t: t.optimize().z_order("v"), lambda t: t.explain_optimize(None, "v")),
]


@pytest.mark.parametrize(("verb", "properties", "run", "plan"), VERBS)
def test_a_commit_says_what_the_plan_said(
    tmp_path: Path, verb: str, properties: dict[str, str], run: Callable[[Table], Any], plan: Callable[[Table], Any]
) -> None:
    table = made(tmp_path, properties)
    planned = str(plan(table))
    done = run(table)
    assert "\n".join(said(table)) == planned == str(done.committed.steps)
    assert planned.count("Arrow") + planned.count("the log") == len(said(table)) > 0


def test_what_the_log_decides_is_said_to_be_its_work(tmp_path: Path) -> None:
    table = made(tmp_path, {})
    table.delete("id > 50")
    assert said(table) == ["find rows: the log"]
    table.overwrite(ROWS)
    assert said(table) == ["write rows: Arrow", "find rows: the log"]
    table.append(ROWS)
    assert said(table) == ["write rows: Arrow"]
    merge = table.merge(pa.table({"id": [1000], "v": [0]}), "source.id = target.id AND target.id > 999")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert said(table) == ["join: the log", "insert rows: Arrow"]


def test_an_overwrite_of_some_rows_says_how_they_were_found(tmp_path: Path) -> None:
    table = made(tmp_path, {})
    table.overwrite([{"id": 3, "v": 1}], replace_where="v = 1")
    assert said(table) == ["write rows: Arrow", FIND]


def test_a_commit_that_stands_behind_new_rows_says_what_it_did_to_them_too(tmp_path: Path) -> None:
    """What the log alone has found at first is found by Arrow among the new rows of a blind winner."""
    table = made(tmp_path, {})

    def win() -> None:
        table.append([{"id": 100, "v": 8}, {"id": 3, "v": 8}])
        table.update("id = 3", {"v": "0"})

    with at_phase("staged", win):
        assert table.delete("id >= 100").rows == 2
    assert said(table) == ["find rows: the log", FIND]
    with at_phase("put", win):
        assert merged(table).execute().rows == 2
    assert said(table) == ["join: Arrow", NEW, "insert rows: Arrow"]


@pytest.mark.slow
def test_other_engines_read_a_table_whose_commits_say_so(tmp_path: Path) -> None:
    table = made(tmp_path, {})
    table.update("id < 5", {"v": "v + 1"})
    commit = (tmp_path / "t" / "_delta_log" / f"{2:020}.json").read_text().splitlines()
    tags = json.loads(commit[0])["commitInfo"]["tags"]
    assert tags[TAG] == f"{FIND}\n{NEW}"
    assert all(isinstance(each, str) for each in tags.values())
    table.update("id >= 0", {"v": "v + 1"})
    ours = sorted(row["id"] for row in table.to_arrow().to_pylist())
    assert sorted(row["id"] for row in deltalake_rows(str(tmp_path / "t"))) == ours
    assert sorted(row["id"] for row in duckdb_rows(str(tmp_path / "t"))) == ours
