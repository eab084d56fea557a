"""The page is made of the figures that are kept: targets, ratios with their spread, differences; and the plot."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks import page, plot, processes, readme
from benchmarks.__main__ import NAMES, QUICK
from benchmarks.harness import RESULTS, Cost, Line, Ratio, Result, compared, cost, load_all, save
from benchmarks.targets import TARGETS
from tests.support.patience import until

RATIO = "MERGE 1%, ours over deltalake"


def kept(folder: Path, *differences: str, value: float = 0.5, is_valid: bool = True) -> str:
    """A page of one result."""
    lines = [Line("ours", {"median_s": 1.25, "n": 3}), Line("theirs", {"median_s": 2.5})]
    ratio = Ratio(RATIO, value, 0.4, least=0.3, greatest=0.9, is_valid=is_valid)
    save(Result("merge", "A title", "a setting", lines, [ratio], ["a note"], differences), folder)
    front = folder / "README.md"
    front.write_text(readme.README.read_text(encoding="utf-8"), encoding="utf-8")
    page.write(folder / "page.md", folder, front)
    return (folder / "page.md").read_text(encoding="utf-8")


def test_the_page_shows_what_is_kept_and_judges_it_by_todays_targets(tmp_path: Path) -> None:
    text = kept(tmp_path)
    assert json.loads((tmp_path / "merge.json").read_text())["machine"]["cores"]
    for expected in (
        "## A title",
        "| ours | 1.25 | 3 |",
        "| theirs | 2.5 |  |",
        f"| merge | {RATIO} | 0.50 (0.30 to 0.90) | at most 0.7 | met |",
        f"| {RATIO} | 0.50 (0.30 to 0.90) | at most 0.4 | **missed** |",
        "- a note",
        "| write | bulk write, ours over plain Parquet |  | at most 1.05 | not measured yet |",
    ):
        assert expected in text


def test_the_page_says_where_contenders_ended_with_other_rows(tmp_path: Path) -> None:
    text = kept(tmp_path, "they lost a row", is_valid=False)
    assert "did not end with the same rows" in text
    assert "- they lost a row" in text
    assert f"| merge | {RATIO} | 0.50 (0.30 to 0.90) | at most 0.7 | **missed** |" in text


def test_the_page_in_the_documentation_shows_the_figures_that_are_kept() -> None:
    assert page.DOCUMENT.read_text(encoding="utf-8") == page.page(load_all())


def test_the_plot_shows_each_ratio_its_spread_and_its_target_and_is_light_or_dark(tmp_path: Path) -> None:
    kept(tmp_path)
    text = (tmp_path / page.PLOT).read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    drawing = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert RATIO in [each.text for each in drawing.iter(f"{space}text")]
    [dot] = drawing.iter(f"{space}circle")
    [spread] = [each for each in drawing.iter(f"{space}line") if "spread" in each.get("class", "")]
    assert float(spread.get("x1", 0)) < float(dot.get("cx", 0)) < float(spread.get("x2", 0))


def test_a_ratio_of_nothing_stands_at_the_edge_of_the_plot() -> None:
    assert 'cx="430' in plot.drawn([Ratio("aborts", 0.0, 0.0)])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.benchmark}: {target.what}")
def test_every_target_belongs_to_a_benchmark_and_has_a_bound(target: page.Target) -> None:
    assert target.benchmark in NAMES
    assert (target.at_most is None) != (target.at_least is None)


def test_a_quick_run_is_a_choice_of_all() -> None:
    assert set(QUICK) < set(NAMES)
    assert all((RESULTS.parent / f"{name}.py").exists() for name in NAMES)


# -- measuring ---------------------------------------------------------------------------------------------------------


def test_a_ratio_is_taken_round_by_round_and_keeps_its_spread() -> None:
    ours, theirs = ([Cost(wall, 1.0) for wall in walls] for walls in ((1.0, 2.0, 9.0), (2.0, 2.0, 3.0)))
    found = compared("x", ours, theirs)[0]
    assert (found.value, found.least, found.greatest) == (1.0, 0.5, 3.0)


def test_there_is_no_ratio_over_processor_time_that_was_too_short_to_be_counted() -> None:
    assert [each.what for each in compared("x", [Cost(1.0, 0.5)], [Cost(1.0, 0.0)])] == ["x"]


@pytest.mark.slow
def test_processor_time_counts_what_this_process_works() -> None:
    def works() -> None:
        ends = time.thread_time() + 0.1
        while time.thread_time() < ends:
            pass

    assert cost(works).cpu_s > 0.05  # it is counted in steps of a hundredth


def test_a_process_that_a_jvm_has_just_forked_is_not_counted_with_the_memory_of_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_known", lambda: {1: (0, 0.0), 2: (1, 0.0), 3: (2, 0.0), 4: (1, 0.0)})
    programs = {1: "/bin/python", 2: "/jvm/bin/java", 3: "/jvm/bin/java", 4: "/bin/python"}
    monkeypatch.setattr(processes, "_program", programs.__getitem__)
    assert processes.without_forks({1, 2, 3, 4}) == {1, 2, 4}


@pytest.mark.slow
def test_the_most_memory_counts_what_was_given_back_and_only_of_the_processes_that_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, look = list[set[int]](), processes.resident_mb
    monkeypatch.setattr(processes, "resident_mb", lambda of: (looks.append(of), look(of))[1])

    def work() -> None:
        held = bytearray(b"x" * 200_000_000)
        begun = len(looks)
        until(lambda: len(looks) > begun + 1)  # the first of these two looks is over
        del held

    before = processes.resident_mb(processes.this_one())
    assert cost(lambda: [work() for _ in range(2)], processes.this_one).peak_mb > before + 150
    assert cost(work, set).peak_mb == 0
