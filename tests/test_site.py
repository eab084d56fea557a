"""The site of the documentation: it builds without a warning, loads nothing from elsewhere, has every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.test_docs import DOCS, ROOT

SITE = ROOT / "mkdocs.yml"
NEEDS_MKDOCS = "mkdocs is not installed; the extra `docs` brings it"

PAGES_OF = {
    "anabranch": ("functions", "tables"),
    "anabranch.tables": ("tables",),
    "anabranch.commands": ("commands",),
    "anabranch.errors": ("errors",),
    "anabranch.testing": ("testing",),
}
"""The pages of the reference on which a module's public names stand."""

_DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?([^\"'\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error, and so is a broken link or a page without a place."""
    pytest.importorskip("mkdocs", reason=NEEDS_MKDOCS)
    pytest.importorskip("mkdocstrings", reason=NEEDS_MKDOCS)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return folder


def directives(page: str) -> list[str]:
    """What a page of the reference takes from docstrings."""
    return _DIRECTIVE.findall((DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8"))


def pages_of(folder: Path) -> Iterator[tuple[Path, str]]:
    return ((page, page.read_text(encoding="utf-8")) for page in sorted(folder.rglob("*.html")))


def loaded_by(html: str) -> list[str]:
    """The URLs that a page loads from another host."""
    return [url for url in _LOADED.findall(html) if re.match(r"(https?:)?//", url)]


# -- the reference -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", PAGES_OF)
def test_every_public_name_stands_in_the_reference(module: str) -> None:
    shown = {name.rpartition(".")[2] for page in PAGES_OF[module] for name in directives(page)}
    assert set(import_module(module).__all__) - {"errors"} <= shown


@pytest.mark.parametrize("page", ["functions", "tables", "results", "commands", "errors", "testing"])
def test_the_reference_shows_nothing_twice(page: str) -> None:
    assert len(directives(page)) == len(set(directives(page)))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("NotATable: one. StoreError: two.", ["NotATable: one.", "StoreError: two."]),
        ("NotATable, StoreError: one\n    and more; and as `x`.", ["NotATable, StoreError: one and more; and as `x`."]),
        (
            "NotATable, StoreFull.\n    StoreError: it.",
            [
                "NotATable: There is no Delta table at this path.",
                "StoreFull: The disk or quota is full.",
                "StoreError: it.",
            ],
        ),
        ("``OSError``: it. And more.", ["``OSError``: it. And more."]),
    ],
)
def test_each_error_of_a_docstring_gets_a_line_and_a_meaning(written: str, read: list[str]) -> None:
    pytest.importorskip("griffe", reason=NEEDS_MKDOCS)
    from tools.documentation.docstrings import spread

    lines = "".join(f"    {line}\n" for line in read)
    assert spread(f"X.\n\nRaises:\n    {written}\n\nTail.\n") == f"X.\n\nRaises:\n{lines}\nTail.\n"


def test_a_docstring_without_errors_stays_as_it_is() -> None:
    pytest.importorskip("griffe", reason=NEEDS_MKDOCS)
    from tools.documentation.docstrings import spread

    assert spread("NotATable: no section. StoreError: none.\n") == "NotATable: no section. StoreError: none.\n"


# -- the hooks ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "origin", "place", "expected"),
    [
        ("../errors.md#every-class", "docs/verbs/read.md", "verbs/read.md", "../errors.md#every-class"),
        ("../../examples/medallion.py", "docs/verbs/install.md", "verbs/install.md", "../examples/medallion.md"),
        ("docs/verbs/sql.md", "CHANGELOG.md", "project/changelog.md", "../verbs/sql.md"),
        ("LICENSE", "CONTRIBUTING.md", "project/contributing.md", "LICENSE.txt"),
        ("#here", "docs/limits.md", "limits.md", "#here"),
        ("s3://bucket/x", "docs/limits.md", "limits.md", "s3://bucket/x"),
    ],
)
def test_a_link_leads_on_the_site_where_it_leads_in_the_repository(
    link: str, origin: str, place: str, expected: str
) -> None:
    pytest.importorskip("mkdocs", reason=NEEDS_MKDOCS)
    from tools.documentation.hooks import relinked

    assert relinked(f"see [it]({link}).", origin, place) == f"see [it]({expected})."


def test_examples_lose_their_marks_and_keep_their_language() -> None:
    pytest.importorskip("mkdocs", reason=NEEDS_MKDOCS)
    from tools.documentation.hooks import without_marks

    text = "```python spark\nx\n```\n\n```sh exit=1\ny\n```\n\n```text\nz\n```\n"
    assert without_marks(text) == "```python\nx\n```\n\n```sh\ny\n```\n\n```text\nz\n```\n"


def test_a_long_name_may_end_a_line_between_its_words() -> None:
    pytest.importorskip("mkdocs", reason=NEEDS_MKDOCS)
    from tools.documentation.hooks import breakable

    assert breakable("delta.isolationLevel") == "delta.<wbr>isolation<wbr>Level"
    assert breakable("_delta_log/0.json") == "_delta_<wbr>log/<wbr>0.<wbr>json"
    assert breakable("INSERT &lt;x") == "INSERT &lt;x"


# -- the site before it is built ---------------------------------------------------------------------------------------


def test_pages_and_settings_of_the_site_name_nothing_to_load_from_elsewhere() -> None:
    settings = SITE.read_text(encoding="utf-8")
    assert "font: false" in settings
    assert not re.findall(r"^\s*(?:extra_css|extra_javascript|polyfills|logo|favicon):.*//", settings, re.MULTILINE)
    sources = [*DOCS.rglob("*.md"), *DOCS.rglob("*.css"), *DOCS.rglob("*.js"), *DOCS.rglob("*.html")]
    loading = re.compile(r"!\[[^\]]*\]\((?:https?:)?//|(?:@import|url\()\s*[\"']?(?:https?:)?//")
    assert not [page for page in sources if loading.search(text := page.read_text("utf-8")) or loaded_by(text)]


def test_every_page_of_the_documentation_has_a_place_on_the_site() -> None:
    settings = SITE.read_text(encoding="utf-8")
    pages = (page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    assert not [page for page in pages if not re.search(rf"(?:^|[\s/]){re.escape(page)}\s*$", settings, re.MULTILINE)]


# -- the site as it is built -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/test_site.py::test_pages_and_settings_of_the_site_name_nothing_to_load_from_elsewhere",
    "tests/test_docs.py::test_every_link_leads_somewhere",
)
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(pages_of(site))
    assert any(_LOADED.search(text) for _, text in pages)
    assert not [url for _, text in pages for url in loaded_by(text)]


@pytest.mark.slow
@pytest.mark.exhaustive("tests/test_site.py::test_every_page_of_the_documentation_has_a_place_on_the_site")
def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    missing = [page for page in DOCS.rglob("*.md") if not (site / page.relative_to(DOCS).with_suffix(".html")).exists()]
    assert not missing
    assert (site / "examples" / "medallion.html").exists()
    assert (site / "project" / "changelog.html").exists()
    assert (site / "search" / "search_index.js").exists()


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/test_site.py::test_each_error_of_a_docstring_gets_a_line_and_a_meaning",
    "tests/test_site.py::test_examples_lose_their_marks_and_keep_their_language",
)
def test_errors_and_examples_of_docstrings_are_shown_as_such(site: Path) -> None:
    page = (site / "reference" / "functions.html").read_text(encoding="utf-8")
    assert "there is no table of this name" in page
    assert "There is no Delta table at this path." in page
    assert 'class="highlight"' in page.partition("Examples:")[2]
    assert not [page for page, text in pages_of(site) if "```" in text]
