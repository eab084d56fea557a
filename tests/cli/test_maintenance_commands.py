"""What the commands of upkeep say to people: what was done, or that nothing was to do, in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch.errors import InvalidOption, RestoreFilesMissing


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    for number in range(2):
        anabranch.append(path, [{"id": number}])
    return path


def said(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.exception
    return done.stdout


def versions(table: str) -> int:
    return len(anabranch.history(table))


def test_a_restore_to_nowhere_names_its_options(table: str) -> None:
    error = CliRunner().invoke(app, ["restore", table]).exception
    assert isinstance(error, InvalidOption)
    for word in ("--version", "--timestamp", "--dry-run", "anabranch history"):
        assert word in error.message
    assert "None" not in error.message


def test_a_tried_restore_shows_what_it_would_change_and_commits_nothing(table: str) -> None:
    shown = said("restore", table, "--version", "0", "--dry-run")
    assert "num_removed_files            1" in shown
    assert shown.endswith("dry run: nothing was committed\n")
    assert versions(table) == 2
    found = json.loads(said("restore", table, "--version", "0", "--dry-run", "--json"))
    assert (found["dryRun"], found["version"], found["num_removed_files"]) == (True, None, 1)
    done = said("restore", table, "--version", "0")
    assert "dry run" not in done
    assert "version                      2" in done


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_restore_of_what_is_there_says_so_in_one_line(table: str, more: list[str]) -> None:
    shown = said("restore", table, "--version", "1", *more)
    assert shown == "the table is what it was at version 1 already: there was nothing to do\n"


@pytest.mark.parametrize("more", [{"dry_run": True}, {}])
def test_a_tried_restore_is_refused_where_a_restore_is(table: str, more: dict[str, Any]) -> None:
    Path(table, anabranch.files(table, version=0)["path"][0].as_py()).unlink()
    anabranch.fsck(table, dry_run=False)
    with pytest.raises(RestoreFilesMissing):
        anabranch.restore(table, 1, **more)


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--lite"]])
def test_a_vacuum_of_a_clean_table_says_so_in_one_line(table: str, more: list[str]) -> None:
    assert said("vacuum", table, *more) == "no file is old enough to be removed\n"


def test_a_look_for_missing_files_that_finds_none_says_so_in_one_line(table: str) -> None:
    assert said("fsck", table) == "no file of version 1 is missing (2 files looked for)\n"


def test_one_thing_is_said_in_the_singular(table: str) -> None:
    anabranch.restore(table, 0)
    assert said("generate", table) == "1 manifest of version 2 written\n"
    assert "1 file, " in said("vacuum", table, "--retain-hours", "0", "--no-check")
    assert ": 1 file, 0 vectors: clean" in said("check", table)
