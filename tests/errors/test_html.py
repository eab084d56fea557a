"""Results, histories and explanations are shown in notebooks as tables, in which nothing of a stranger's table runs."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._storage.contract import Entry
from anabranch._transaction.commit import CommitResult
from anabranch.commands.maintenance.check import Report
from anabranch.commands.maintenance.check_files import Finding
from anabranch.commands.maintenance.vacuum import VacuumResult
from anabranch.errors.html import MOST_CHARACTERS, MOST_ROWS, Rows, ShownAsTable, facts, table, text

HOSTILE = "<script src=//evil>alert('x')</script><img onerror=\"y\">&amp;"
ALLOWED = {"table", "caption", "tr", "th", "td", "br"}


class Tags(HTMLParser):
    """Which tags and attributes a page has, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = set[str](), set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


@dataclass(frozen=True)
class Inner(ShownAsTable):
    name: str


@dataclass(frozen=True)
class Outer(ShownAsTable):
    said: Any


def shown(value: Any) -> str:
    found: str = value._repr_html_()
    return found


@pytest.mark.parametrize(
    "said",
    [
        HOSTILE,
        [HOSTILE],
        {HOSTILE: HOSTILE},
        frozenset({HOSTILE}),
        Inner(HOSTILE),
        (Inner(HOSTILE), Inner("b")),
        [{HOSTILE: HOSTILE}],
        [{"a": {"b": [HOSTILE]}}],
        Outer(Outer(Outer(Outer([{"deep": HOSTILE}])))),
    ],
)
def test_what_a_stranger_wrote_is_text_wherever_it_stands(said: Any) -> None:
    page = Tags(shown(Outer(said)))
    assert page.tags <= ALLOWED
    assert page.attributes <= {"style", "scope", "colspan"}
    assert "alert" in page.text


def test_captions_and_names_are_escaped_too() -> None:
    assert Tags(facts(HOSTILE, {HOSTILE: 1})).tags <= ALLOWED
    assert Tags(table(HOSTILE, [{HOSTILE: 1}])).tags <= ALLOWED


def test_no_location_shows_a_secret() -> None:
    page = shown(Outer(["s3://KEY:SECRET@lake/t", {"at": "https://host/t?sig=SECRET"}, "at s3://u:SECRET@b/t"]))
    assert "SECRET" not in page
    assert "s3://lake/t" in page


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert text("a\u202eb\x1b[31mc\ud800") == "a\\u202eb\\x1b[31mc\\ud800"
    assert text("zwei\nZeilen für 東京") == "zwei\nZeilen für 東京"


def test_long_texts_and_long_lists_are_cut_and_say_so() -> None:
    assert len(text("x" * 10_000)) == MOST_CHARACTERS
    assert text("x" * 10_000).endswith("…")
    page = shown(Rows([{"version": number} for number in range(1200)], "history"))
    assert page.count("<tr>") == MOST_ROWS + 2
    assert "… and 1,150 more" in page
    assert "more" not in shown(Rows([{"version": 1}]))


def test_columns_that_nothing_says_are_left_out() -> None:
    page = shown(Rows([{"a": 1, "b": None, "c": {}}, {"a": None, "b": None, "c": {}}]))
    assert ">a</th>" in page
    assert ">b</th>" not in page
    assert ">c</th>" not in page


def test_a_history_is_a_list_and_shown_as_a_table(tmp_path: Path) -> None:
    path = str(tmp_path / "<b>table")
    anabranch.append(path, [{"id": 1}], properties={"owner": HOSTILE})
    found = anabranch.history(path)
    assert isinstance(found, list)
    page = Tags(shown(found))
    assert page.tags <= ALLOWED
    assert {"version", "operation", "WRITE", "numOutputRows: 1"} <= set(page.text.splitlines())
    assert "history of" in page.text
    assert "jobId" not in page.text


def test_an_explanation_says_which_files_are_kept_and_why(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in (1, 10, 100):
        anabranch.append(path, [{"id": number, "name": "x"}])
    found = anabranch.explain(path, "id > 5 AND length(name) < 3")
    page = Tags(shown(found))
    assert page.tags <= ALLOWED
    assert "2 of 3 files" in page.text
    assert "id > 5" in page.text
    assert "1 file" in page.text
    assert "not understood" in page.text
    assert set(found.files) == set(anabranch.files(path, "id > 5")["path"].to_pylist())
    assert all(each in page.text for each in found.files)


def test_of_many_kept_files_the_first_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    anabranch.append(path, {"id": list(range(30)), "p": list(range(30))}, partition_by=["p"])
    found = anabranch.explain(path, "id >= 0")
    assert (found.kept, len(found.files)) == (30, 20)
    assert "and 10 more" in shown(found)


def test_results_are_shown_with_what_is_in_them(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    anabranch.append(path, [{"id": 1}])
    assert "clean" in shown(anabranch.check(path))
    assert "dry_run" in shown(anabranch.vacuum(path, dry_run=True))
    assert "missing" in shown(anabranch.fsck(path))
    assert "written" in shown(anabranch.generate(path))
    anabranch.append(path, [{"id": 2}])
    assert "numRemovedFiles: 1" in shown(anabranch.restore(path, version=0))
    made = shown(anabranch.clone(path, str(tmp_path / "copy"), shallow=False))
    assert "numCopiedFiles: 1" in made


def test_findings_and_files_are_tables_of_their_own() -> None:
    report = Report("file:///t", 3, 1, 0, 1, False, (Finding("each live file exists", HOSTILE, "it is gone"),))
    page = Tags(shown(report))
    assert page.tags <= ALLOWED
    assert {"rule", "each live file exists", "it is gone"} <= set(page.text.splitlines())
    assert "1 finding" in page.text
    gone = shown(VacuumResult("file:///t", False, [Entry("a.parquet", 10, 0, "etag")], {"b.parquet": HOSTILE}))
    assert "a.parquet" in gone
    assert Tags(gone).tags <= ALLOWED


def test_a_value_without_metrics_is_shown_all_the_same() -> None:
    assert "rebased_over" in shown(CommitResult(3, (), 1))
