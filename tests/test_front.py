"""The front page keeps to what the project declares: versions, readers, pictures; and so do the changes."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import anabranch
from tests.test_docs import DOCS, PROSE, ROOT, name_of, rows_of_table
from tools import pythons

README = ROOT / "README.md"
DRAWINGS = sorted((DOCS / "drawings").glob("*.svg"))
SPACE = "{http://www.w3.org/2000/svg}"

_PICTURE = re.compile(r"!\[(?P<words>[^\]\n]*)\]\((?P<at>[^)\s]+)\)")
_TAG = re.compile(r'<img src="(?P<at>[^"]+)"[^>]*? alt="(?P<words>[^"]*)"')


def row(first_cell: str) -> str:
    """A row of the README's table of what is supported."""
    return {cells[0]: cells[1] for cells in rows_of_table(README, "") if len(cells) == 2}[first_cell]


def versions(text: str) -> list[str]:
    return re.findall(r"\b\d+\.\d+(?:\.\d+)?\b", text)


def test_the_readme_names_the_declared_pythons() -> None:
    assert versions(row("Python")) == pythons.declared()


def test_the_readme_names_the_pysparks_that_the_page_on_versions_names() -> None:
    known = [cells[0] for cells in rows_of_table(DOCS / "concepts" / "versions.md", "PySpark")]
    assert versions(row("PySpark").partition(" with ")[0]) == sorted(known)


def test_the_readme_names_the_readers_that_the_page_on_other_engines_names() -> None:
    page = (DOCS / "concepts" / "other-engines.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:delta-spark|deltalake|DuckDB) \d+\.\d+\.\d+", row("readers"))
    assert len(named) == 3
    assert not [each for each in named if each not in page]


def test_the_package_says_the_version_that_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == anabranch.__version__


def test_the_changes_have_a_part_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*\b{re.escape(anabranch.__version__)}\b", text, re.MULTILINE)


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_picture_is_there_and_has_words_for_those_who_do_not_see_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = [*_PICTURE.finditer(text), *_TAG.finditer(text)]
    assert len(shown) == text.count("![") + text.count("<img")
    assert not [each["at"] for each in shown if not each["words"] or not (page.parent / each["at"]).exists()]


def test_the_readme_has_a_picture() -> None:
    assert _TAG.search(README.read_text(encoding="utf-8"))


@pytest.mark.parametrize("drawing", DRAWINGS, ids=name_of)
def test_a_drawing_is_light_or_dark_says_what_it_shows_and_needs_nothing_else(drawing: Path) -> None:
    text = drawing.read_text(encoding="utf-8")
    tree = ET.fromstring(text)
    assert tree.findtext(f"{SPACE}title")
    assert tree.findtext(f"{SPACE}desc")
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"(?:href|src)=|url\((?!#)|@import", text)


@pytest.mark.parametrize("drawing", DRAWINGS, ids=name_of)
def test_the_words_of_a_drawing_lie_inside_of_it(drawing: Path) -> None:
    tree = ET.fromstring(drawing.read_text(encoding="utf-8"))
    _, _, width, height = map(float, tree.get("viewBox", "").split())
    places = [(float(each.get("x", -1)), float(each.get("y", -1))) for each in tree.iter(f"{SPACE}text")]
    assert places
    assert not [(x, y) for x, y in places if not (0 <= x <= width and 0 <= y <= height)]


def test_the_notebook_is_installed_as_the_readme_says() -> None:
    notebook = (ROOT / "examples" / "first_hour.ipynb").read_text(encoding="utf-8")
    lines = re.findall(r"`(pip install [^`]+)`", notebook)
    assert lines
    assert all(f"\n{line} " in README.read_text(encoding="utf-8") for line in lines)
