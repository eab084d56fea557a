"""``anabranch timeline`` writes one page, or prints JSON, and starts no JVM."""

from __future__ import annotations

import json
import os
import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from anabranch._cli import app
from tests.support.worlds import World


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "lake" / "flights"
    world = World(str(place)).create([{"id": 1, "x": 1}])
    world.append({"id": 2, "x": 2})
    return place


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["timeline", *map(str, words)])


def test_without_a_place_the_page_goes_into_this_folder(table: Path, tmp_path: Path) -> None:
    assert run(table).stdout == "flights-timeline.html\n"
    assert (tmp_path / "flights-timeline.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_page_goes_where_it_is_told(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(table, "-o", page).stdout == f"{page}\n"
    assert page.exists()
    assert not (tmp_path / "flights-timeline.html").exists()


def test_a_place_that_cannot_be_written_is_told(table: Path, tmp_path: Path) -> None:
    found = run(table, "-o", tmp_path / "no" / "page.html")
    assert found.exit_code != 0
    assert f"it cannot be written: there is no folder {tmp_path / 'no'}. Make it first." in str(found.exception)
    found = run(table, "-o", tmp_path)
    assert "it cannot be written: it is a folder. Name a file in it." in str(found.exception)


def test_it_opens_a_temporary_page(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = Path(run(table, "--open").stdout.strip())
    assert opened == [page.as_uri()]
    assert page.exists()
    assert tmp_path not in page.parents or page.parent != tmp_path


def test_json_has_every_figure(table: Path, tmp_path: Path) -> None:
    found = json.loads(run(table, "--json", "--last", "1").stdout)
    (newest,) = found["entries"]
    assert (newest["version"], newest["said"]["base"], newest["totals"]["rows"]) == (1, 0, 2)
    assert found["older"] == 1
    assert list(tmp_path.glob("*.html")) == []


def test_it_needs_no_java(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.core.context.SparkContext.__init__", lambda *_, **__: pytest.fail("Spark was begun"))
    assert json.loads(run(table, "--json").stdout)["newest"] == 1


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")
def test_without_a_place_no_link_is_followed(table: Path, tmp_path: Path) -> None:
    """Whoever shares the folder does not choose what is overwritten."""
    other = tmp_path / "other"
    other.write_text("mine", encoding="utf-8")
    (tmp_path / "flights-timeline.html").symlink_to(other)
    assert run(table).exit_code == 0
    assert other.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "flights-timeline.html").is_symlink()
    assert not list(tmp_path.glob(".*"))
