"""Changes without Spark beside deltalake: both do each task in processes of their own, and end with the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import alone, large, race


def quiet(text: str) -> None:
    assert text


@pytest.mark.slow
def test_both_engines_do_each_task_and_end_with_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "ROUNDS", 1)
    monkeypatch.setattr(alone, "SMALL", large.FILES * 20)
    result = alone.run(tmp_path, large.FILES * 500, quiet)
    assert not result.differences
    assert len(result.lines) == 2 * len(alone.TASKS)
    peaks = {ratio.what: ratio for ratio in result.ratios if "GB" in ratio.what}
    assert len(peaks) == len(alone.TASKS)
    assert all(0 < ratio.value < 2 for ratio in peaks.values())


def test_work_of_another_process_costs_what_that_says(tmp_path: Path) -> None:
    table = large.make(tmp_path, large.FILES, vectors=True, tell=quiet)
    told = race.Cost(1.5, 2.5, 3.5)
    seen: list[str] = []

    def work(path: str) -> race.Cost:
        seen.append(path)
        return told

    side = race.InAnotherProcess(table, work, lambda path: path == Path(seen[-1]))
    assert side.run() is told
    assert side.answer()
    side.clear()
    assert not Path(seen[-1]).exists()
