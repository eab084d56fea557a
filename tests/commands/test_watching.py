"""Commands say what they are at to whoever watches; nothing of that reaches what they do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import anabranch
from anabranch._api.progress import BOARD
from anabranch._transaction.phases import listen, reach, unlisten
from anabranch.commands import Vacuum
from anabranch.commands.context import RunContext
from anabranch.commands.watching import Work, report_step, track_progress, watch_block, watch_with
from anabranch.errors import NotATable
from tests.support.patience import PATIENCE, started
from tests.support.worlds import World

Step = tuple[str, int, int]


class Watching:
    """Watches everything, or nothing, and remembers what it was told."""

    def __init__(self) -> None:
        self.wants, self.works, self.steps, self.ended = True, list[Work](), list[Step](), list[Work]()

    def begin(self, work: Work) -> Callable[[], None] | None:
        if not self.wants:
            return None
        self.works.append(work)
        whole = work.tell

        def remembered(step: str, done: int = 0, of: int = 0) -> None:
            self.steps.append((step, done, of))
            whole(step, done, of)

        work.tell = remembered  # type: ignore[method-assign]
        return lambda: self.ended.append(work)

    @property
    def names(self) -> list[str]:
        return [work.name for work in self.works]


@pytest.fixture
def seen() -> Iterator[Watching]:
    watcher = Watching()
    watch_with(watcher)
    yield watcher
    watch_with(BOARD)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of eight files."""
    path = str(tmp_path / "table")
    for number in range(8):
        anabranch.append(path, [{"id": number}])
    return path


@pytest.mark.slow
def test_each_command_is_watched_under_its_name_and_table(path: str, seen: Watching) -> None:
    anabranch.check(path)
    anabranch.vacuum(path, dry_run=True)
    anabranch.fsck(path)
    anabranch.generate(path)
    anabranch.restore(path, version=1)
    anabranch.clone(path, f"{path}-copy", shallow=False)
    anabranch.append(path, [{"id": 1}])
    assert seen.names == ["CHECK", "VACUUM", "FSCK", "GENERATE", "RESTORE", "CLONE", "APPEND"]
    assert [Path(work.table).name for work in seen.works] == ["table"] * 5 + ["table-copy", "table"]
    assert seen.ended == seen.works
    assert not any(work.failed for work in seen.works)


def test_commands_of_rows_are_watched_too(tmp_path: Path, seen: Watching) -> None:
    world = World(str(tmp_path / "t")).create([{"id": i, "x": i} for i in range(4)])
    world.update("id = 1", x=7)
    world.delete("id = 2")
    world.merge([{"id": 1, "x": 8}, {"id": 9, "x": 9}])
    world.optimize()
    world.reorg()
    world.overwrite({"id": 1, "x": 1})
    assert seen.names == ["APPEND", "UPDATE", "DELETE", "MERGE", "OPTIMIZE", "REORG", "WRITE"]


def test_they_say_what_they_are_at(tmp_path: Path, seen: Watching) -> None:
    world = World(str(tmp_path / "t")).create([{"id": i, "x": i} for i in range(4)])
    seen.steps.clear()
    world.update("id = 1", x=7)
    assert [step for step, _, _ in seen.steps] == ["finding rows", "writing", "committing", "finishing"]
    seen.steps.clear()
    world.merge([{"id": 1, "x": 8}])
    assert [step for step, _, _ in seen.steps][:3] == ["reading the source", "joining", "writing"]
    seen.steps.clear()
    world.append({"id": 5, "x": 5})
    world.optimize()
    assert [step for step in seen.steps if step[0] == "written"] == [("written", 0, 1), ("written", 1, 1)]


def test_files_are_counted_while_they_are_looked_at(path: str, seen: Watching) -> None:
    anabranch.check(path)
    assert seen.steps == [("files checked", done, 8) for done in range(1, 9)]
    anabranch.clone(path, f"{path}-copy", shallow=False)
    assert [step for step in seen.steps if step[0] == "files copied"] == [("files copied", n, 8) for n in range(1, 9)]
    anabranch.fsck(path)
    assert ("files looked for", 8, 8) in seen.steps


def test_a_command_inside_another_is_a_step_of_that(path: str, seen: Watching) -> None:
    def append_once(phase: str) -> None:
        unlisten(append_once)
        anabranch.append(path, [{"id": 9}])

    listen(append_once)
    anabranch.append(path, [{"id": 8}])
    assert seen.names == ["APPEND"]


def test_a_command_that_fails_has_ended_and_says_so(tmp_path: Path, seen: Watching) -> None:
    with pytest.raises(NotATable):
        anabranch.vacuum(str(tmp_path / "nothing"))
    (work,) = seen.ended
    assert work.failed
    anabranch.append(str(tmp_path / "t"), [{"id": 1}])
    assert len(seen.ended) == 2


def test_whoever_gives_a_progress_of_his_own_is_told_alone(path: str, seen: Watching) -> None:
    told = list[Step]()
    Vacuum(path, dry_run=True).run(context=RunContext(progress=lambda *step: told.append(step)))
    assert not seen.works
    assert told == [("listed", 8, 8)]


def test_where_nobody_watches_nothing_listens(path: str, seen: Watching) -> None:
    seen.wants = False
    with watch_block("CHECK", path) as work:
        assert work is None
        reach("staged")
        report_step("anything", 1, 2)
        assert list(track_progress("anything", "abc", 3)) == ["a", "b", "c"]
    assert not seen.steps


def test_when_a_command_has_ended_nothing_listens(path: str, seen: Watching) -> None:
    with watch_block("CHECK", path):
        reach("staged")
    reach("committed")
    report_step("too late")
    assert seen.steps == [("committing", 0, 0)]


def test_threads_have_commands_of_their_own(path: str, seen: Watching) -> None:
    both = threading.Barrier(2, timeout=PATIENCE)

    def look() -> None:
        with watch_block("CHECK", path):
            both.wait()
            report_step(threading.current_thread().name)
            both.wait()

    threads = [threading.Thread(target=look, name=name) for name in ("one", "two")]
    started(*threads)
    assert {work.step[0] for work in seen.works} == {"one", "two"}


def test_no_secret_of_a_location_is_said(seen: Watching) -> None:
    with watch_block("CHECK", "s3://KEY:SECRET@lake/t"):
        pass
    assert seen.works[0].table == "s3://lake/t"
