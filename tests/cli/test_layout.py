"""Tables leave columns out until they fit, by importance, and never cut a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch._cli.layout import GAP, choose_columns, lay_out, wrap_text
from anabranch._cli.output import print_table, print_values, width

ROWS = [["1", "x" * 30, "long " * 12, "UA"], ["22", "y", "", "é日本"]]
COLUMNS = ["id", "name", "note", "carrier"]


@pytest.mark.parametrize("room", [10, 40, 80, 200])
def test_a_table_fits_and_what_is_left_out_is_named(room: int) -> None:
    found = lay_out(COLUMNS, ROWS, room)
    assert all(len(line) <= room for line in (found.head, *found.lines))
    assert set(found.head.split()) | set(found.left_out) == set(COLUMNS)
    assert bool(found.left_out) == (room < 200)


def test_no_room_is_as_much_as_it_takes() -> None:
    found = lay_out(COLUMNS, ROWS, None)
    assert found.left_out == ()
    assert found.head.split() == COLUMNS


def test_what_is_important_stays_and_the_columns_keep_their_order() -> None:
    found = lay_out(COLUMNS, ROWS, 30, importance=("carrier", "id"))
    assert found.head.split() == ["id", "carrier"]
    assert found.left_out == ("name", "note")


def test_the_most_important_column_is_whole_whatever_its_width() -> None:
    found = lay_out(["path", "size"], [["p" * 200, "1"]], 80)
    assert found.lines == ("p" * 200,)
    assert found.left_out == ("size",)


def test_a_column_that_fits_exactly_is_shown() -> None:
    widths = {"a": 10, "b": 80 - 10 - GAP}
    assert choose_columns(widths, ["a", "b"], 80) == ("a", "b")
    assert choose_columns({**widths, "b": widths["b"] + 1}, ["a", "b"], 80) == ("a",)


def test_a_text_of_several_lines_becomes_one() -> None:
    assert lay_out(["a"], [["one\ntwo"]], 80).lines == ("one two",)


def test_long_values_break_between_words_only() -> None:
    assert wrap_text("one two three", 8) == ["one two", "three"]
    assert wrap_text("part-00000-abc.parquet", 8) == ["part-00000-abc.parquet"]
    assert wrap_text("", 8) == [""]


def test_without_a_terminal_a_line_has_80_columns_unless_the_environment_says_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = [{"id": 1, "note": "word " * 20}]
    assert width() == 80
    print_table(("id", "note"), rows)
    assert capsys.readouterr().out == "id\n1\nwithout note; --wide shows all columns\n"
    print_table(("id", "note"), rows, wide=True)
    assert "without" not in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "120")
    print_table(("id", "note"), rows)
    assert "word word" in capsys.readouterr().out


def test_values_are_in_lines_that_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_values("property", {"note": "word " * 30, "none": None, "markup": "[bold]x[/bold]"})
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert said.count("word") == 30
    assert "[bold]x[/bold]" in said


@pytest.mark.parametrize("command", ["history", "files", "fsck"])
def test_commands_show_every_column_if_they_are_told(command: str, tmp_path: pytest.TempPathFactory) -> None:
    path = f"{tmp_path}/t"
    anabranch.append(path, [{"id": 1}])
    if command == "fsck":
        Path(path, anabranch.files(path)["path"][0].as_py()).unlink()
    narrow = CliRunner().invoke(app, [command, path], env={"COLUMNS": "40"})
    wide = CliRunner().invoke(app, [command, path, "--wide"], env={"COLUMNS": "40"})
    assert "--wide shows all columns" in narrow.output
    assert "--wide" not in wide.output
    assert len(wide.output.splitlines()[0].split()) > len(narrow.output.splitlines()[0].split())
