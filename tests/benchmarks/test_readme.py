"""The figures in README.md are those that are kept, and only of contenders who ended with the same rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, readme
from benchmarks.harness import load_all

TEXT = f"# Head\n\n{readme._BEGIN}\nold\n{readme._END}\n\nTail\n"


def result(what: str = "MERGE 1%, ours over delta-spark", **others: Any) -> Mapping[str, Any]:
    """A result of the benchmark of MERGE."""
    return {
        "name": "merge",
        "setting": "20 rows, 2 columns; warm session",
        "machine": {"cores": "2", "delta-spark": "4.4.0"},
        "lines": [
            {"what": "MERGE 1%, anabranch", "figures": {"median_s": 1.25}},
            {"what": "MERGE 1%, delta-spark", "figures": {"median_s": 12.5}},
        ],
        "ratios": [{"what": what, "value": 0.1, "least": 0.05, "greatest": 0.2}],
        "differences": [],
        **others,
    }


def test_the_figures_in_the_readme_are_those_that_are_kept() -> None:
    text = readme.README.read_text(encoding="utf-8")
    assert readme.filled(text, load_all()) == text


def test_a_row_says_the_task_the_table_both_medians_and_the_ratio_and_the_block_says_the_machine() -> None:
    block = readme.block([result()])
    assert "| MERGE of 1% of the rows | 20 rows, 2 columns | 1.25 s | 12.5 s | 0.10 (0.05 to 0.20) |" in block
    assert "cores 2, delta-spark 4.4.0" in block


def test_the_figures_are_written_with_the_page_of_benchmarks(tmp_path: Path) -> None:
    front = tmp_path / "README.md"
    front.write_text(TEXT, encoding="utf-8")
    (tmp_path / "merge.json").write_text(json.dumps({**result(), "title": "MERGE", "notes": []}), encoding="utf-8")
    page.write(tmp_path / "page.md", tmp_path, front)
    assert "| MERGE of 1% of the rows | 20 rows, 2 columns | 1.25 s | 12.5 s |" in front.read_text(encoding="utf-8")


def test_what_stands_around_the_block_stays() -> None:
    text = readme.filled(TEXT, [result()])
    assert text.startswith("# Head\n\n")
    assert text.endswith("\n\nTail\n")
    assert "old" not in text
    assert readme.filled(text, [result()]) == text


@pytest.mark.parametrize(
    "other",
    [
        result(differences=["they lost a row"]),
        {name: value for name, value in result().items() if name != "differences"},
        result("MERGE 1%, ours over deltalake"),
        result("no target, ours over delta-spark"),
        result(ratios=[{"what": "MERGE 1%, ours over delta-spark", "value": 0.1, "is_valid": False}]),
    ],
    ids=["other rows", "rows not compared", "another peer", "no target", "unlike things"],
)
def test_nothing_is_shown_of(other: Mapping[str, Any]) -> None:
    assert "yet to be measured" in readme.block([other])


@pytest.mark.parametrize("text", ["no marks", TEXT + TEXT])
def test_a_readme_without_a_single_place_for_the_figures_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no single place"):
        readme.filled(text, [])


def test_no_row_has_an_empty_cell_and_every_task_is_in_words() -> None:
    rows = [line for line in readme.block(load_all()).splitlines() if line.startswith("| ")]
    assert rows[1].startswith("| four jobs at once")
    assert not [row for row in rows if "|  |" in row]
    assert "shapes" not in "".join(rows)
