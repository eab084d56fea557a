"""A commit is acknowledged when it stands, once; refused when it does not stand; and otherwise said to be unknown."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.log import Log, forget
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch._transaction import commit
from anabranch._transaction.retry import APPEND_ATTEMPTS_AT_LEAST, RetryPolicy, Runtime, default_retry
from anabranch.commands.context import RunContext
from anabranch.commands.dml import append, write
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.check import check
from anabranch.commands.row_changes import Change, run_change
from anabranch.testing import ObservedStore
from anabranch.testing.faults import FAULTS, Call, Decision, Fault, always, full, instant, once, unanswered_put_error
from tests.support.raw_logs import listing
from tests.support.tiers import examples
from tests.support.worlds import World

ROWS = [{"id": i, "x": i} for i in range(4)]


@dataclass(frozen=True)
class Command:
    """A command that can be run on any store of a table, and the rows that it leaves."""

    run: Callable[[World, Store, Runtime, RetryPolicy | None], Any]
    after: dict[int, int]


def appended(world: World, store: Store, runtime: Runtime, retry: RetryPolicy | None) -> Any:
    return Append(world.path, [{"id": 9, "x": 9}]).run(context=RunContext(runtime=runtime, retry=retry))


def overwritten(world: World, store: Store, runtime: Runtime, retry: RetryPolicy | None) -> Any:
    return Write(world.path, pa.table({"id": [7], "x": [7]}), "overwrite").run(
        world.engine, RunContext(runtime=runtime)
    )


def changed(where: str | None, assignments: dict[str, Any] | None) -> Callable[..., Any]:
    def run(world: World, store: Store, runtime: Runtime, retry: RetryPolicy | None) -> Any:
        change = Change("UPDATE" if assignments else "DELETE", world.condition(where), assignments, {})
        return run_change(change, Log(store).snapshot(), world.engine, RunContext(runtime=runtime, retry=retry))

    return run


COMMANDS = {
    "append": Command(appended, {0: 0, 1: 1, 2: 2, 3: 3, 9: 9}),
    "overwrite": Command(overwritten, {7: 7}),
    "delete": Command(changed("id = 1", None), {0: 0, 2: 2, 3: 3}),
    "delete everything": Command(changed(None, None), {}),
    "update": Command(changed("id = 1", {"x": 111}), {0: 0, 1: 111, 2: 2, 3: 3}),
}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> Command:
    return COMMANDS[request.param]


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create(ROWS, delta_isolationLevel="Serializable", delta_checkpointInterval="2")


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[[Store], Store]:
    """Let commands that open a table by its location use this store instead."""

    def use(store: Store) -> Store:
        for module in (append, write):
            monkeypatch.setattr(module, "open_log", lambda *_: Log(store))
        return store

    return use


Through = Callable[[Store], Store]


def rows(world: World) -> dict[int, int]:
    """The rows as somebody sees them who knows nothing of what happened, and nothing twice."""
    forget()
    found = world.rows()
    assert len({row["id"] for row in found}) == len(found)
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)
    return {row["id"]: row["x"] for row in found}


def ids_in_log(world: World) -> list[str | None]:
    return [commit.txn_id for version in range(world.version + 1) if (commit := world.log.read(version))]


# -- the n-th call fails -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_whatever_call_fails_the_acknowledged_is_there_once_and_the_refused_is_not(
    tmp_path: Path, through: Through, fault: Fault, name: str
) -> None:
    """n = 1, 2, 3 … until the command completes without meeting its fault; the commit here is also a checkpoint."""
    original = World(str(tmp_path / "original")).create(ROWS, **{"delta_checkpointInterval": "2"})
    original.update("id = 0", x=0)
    before = {row["id"]: row["x"] for row in original.rows()}
    number, met, step = 0, True, examples(1, 3)
    while met:
        number += step
        assert number < 200, "the command never completes"
        world = World(str(tmp_path / f"{number}"))
        shutil.copytree(original.path, world.path)
        met = fails_at(world, through(fault.store(open_store(world.path), number)), COMMANDS[name], number, before)
    assert number > 10, "hardly anything was called"


def fails_at(world: World, store: Any, command: Command, number: int, before: dict[int, int]) -> bool:
    """Run one command with its fault; whether it was met."""
    files, forgotten = listing(world.path), forget()
    assert forgotten is None
    try:
        command.run(world, store, instant(), None)
    except errors.CommitOutcomeUnknown:
        pytest.fail(f"one lost answer is asked again: {store.calls[number - 1]}")
    except errors.StoreError:
        calls = store.calls
        assert rows(world) == before, f"refused, yet there: {calls[number - 1]}"
        assert listing(world.path) == files, f"something was left behind by {calls[number - 1]}"
    else:
        assert rows(world) == command.after, f"acknowledged, but: {store.calls[number - 1 :][:1]}"
        assert world.version == 2
    return len(store.calls) >= number


# -- lost replies ------------------------------------------------------------------------------------------------------


def is_commit(call: Call) -> bool:
    return call.is_commit


def test_a_commit_that_landed_but_was_reported_lost_is_not_committed_twice(
    world: World, through: Through, command: Command
) -> None:
    store = through(ObservedStore(open_store(world.path), after=once(is_commit, unanswered_put_error)))
    command.run(world, store, instant(), None)
    assert rows(world) == command.after
    assert world.version == 1


def test_a_commit_that_never_arrived_is_put_again(world: World, through: Through, command: Command) -> None:
    store = through(ObservedStore(open_store(world.path), before=once(is_commit, unanswered_put_error)))
    command.run(world, store, instant(), None)
    assert rows(world) == command.after
    assert world.version == 1


def test_a_lost_reply_followed_by_another_winner_at_the_next_version_is_still_ours(
    world: World, through: Through, command: Command
) -> None:
    """The other was told that version 1 is taken, and went on to 2, before we asked again."""
    store = through(ObservedStore(open_store(world.path), after=once(is_commit, unanswered_put_error)))
    runtime = instant(on_sleep=lambda: put_other(world) if world.version < 2 else None)
    command.run(world, store, runtime, None)
    assert rows(world) == command.after
    assert world.version == 2
    assert ids_in_log(world)[2] == "another"


def test_a_commit_that_never_arrived_and_whose_version_another_took_goes_behind(
    world: World, through: Through, command: Command
) -> None:
    store = through(ObservedStore(open_store(world.path), before=once(is_commit, unanswered_put_error)))
    runtime = instant(on_sleep=lambda: put_other(world) if world.version < 1 else None)
    command.run(world, store, runtime, None)
    assert rows(world) == command.after
    assert world.version == 2
    assert ids_in_log(world)[1] == "another"


def put_other(world: World) -> None:
    """Another writer's commit that concerns nobody."""
    text = '{"commitInfo":{"operation":"NOTHING","txnId":"another"}}\n{"txn":{"appId":"another","version":1}}\n'
    assert Log(open_store(world.path)).put(world.version + 1, text.encode())


def test_a_store_that_does_not_yet_show_what_it_holds_does_not_make_us_commit_twice(
    world: World, through: Through, command: Command
) -> None:
    """The put is refused as taken, but the winner cannot be seen at first: it is found, as ours, when looked for."""
    inner = open_store(world.path)
    store = ObservedStore(inner, after=once(is_commit, unanswered_put_error))
    hidden = iter([True])

    class Stale(ObservedStore):
        def head(self, name: str) -> Any:
            return None if name == commit_name(1) and next(hidden, False) else inner.head(name)

    through(stale := Stale(store))
    command.run(world, stale, instant(), None)
    assert rows(world) == command.after
    assert world.version == 1


# -- unknown to the end ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("lands", [True, False])
def test_a_store_that_never_answers_is_not_guessed_at(
    world: World, through: Through, command: Command, lands: bool
) -> None:
    files = listing(world.path)
    never = always(is_commit, unanswered_put_error)
    store = (
        ObservedStore(open_store(world.path), after=never)
        if lands
        else ObservedStore(open_store(world.path), before=never)
    )
    if lands:  # it is taken, by whom cannot be read
        store.before = always(lambda call: call.method in ("head", "get") and call.about == commit_name(1), full)
    with pytest.raises(errors.CommitOutcomeUnknown) as unknown:
        command.run(world, through(store), instant(), None)
    assert unknown.value.version == 1
    assert not unknown.value.retryable
    assert unknown.value.txn_id in str(unknown.value)
    assert rows(world) == (command.after if lands else {row["id"]: row["x"] for row in ROWS})
    if lands:
        assert ids_in_log(world)[1] == unknown.value.txn_id
    else:
        staged = listing(world.path).keys() - files.keys()
        assert bool(staged) == (command is not COMMANDS["delete everything"]), "a late put must find its files"


def test_a_put_that_may_have_landed_is_not_refused_for_a_later_definite_failure(
    world: World, through: Through, command: Command
) -> None:
    """Unknown first, then a full disk: the first may stand."""
    first = once(is_commit, unanswered_put_error)
    store = ObservedStore(
        open_store(world.path), before=lambda call: first(call) or (full(call) if is_commit(call) else None)
    )
    with pytest.raises(errors.CommitOutcomeUnknown, match=r"full|space"):
        command.run(world, through(store), instant(), None)


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, OSError])
def test_an_error_that_no_store_should_show_leaves_the_outcome_unknown(
    world: World, through: Through, command: Command, kind: type[Exception]
) -> None:
    store = ObservedStore(open_store(world.path), after=once(is_commit, lambda call: kind("odd")))
    with pytest.raises(errors.CommitOutcomeUnknown):
        command.run(world, through(store), instant(), None)
    assert rows(world) == command.after


def test_an_interrupt_in_the_put_removes_nothing(world: World, through: Through, command: Command) -> None:
    store = ObservedStore(open_store(world.path), after=once(is_commit, lambda call: KeyboardInterrupt()))  # type: ignore[arg-type, return-value]
    with pytest.raises(KeyboardInterrupt):
        command.run(world, through(store), instant(), None)
    assert rows(world) == command.after


def test_the_deadline_for_an_answer_counts_from_the_put(world: World, through: Through) -> None:
    runtime = instant()
    store = through(ObservedStore(open_store(world.path), before=always(is_commit, unanswered_put_error)))
    retry = RetryPolicy(attempts=5, unknown_seconds=7)
    with pytest.raises(errors.CommitOutcomeUnknown):
        Append(world.path, [{"id": 9, "x": 9}]).run(context=RunContext(runtime=runtime, retry=retry))
    assert sum(call.is_commit for call in store.calls) == 8  # one each second, and the first
    assert runtime.seconds() == 7


def test_a_commit_that_cannot_be_read_at_first_is_asked_after_until_it_is(world: World, through: Through) -> None:
    """The reply is lost, and so are the next two reads that would tell whose commit it is."""
    reads = iter(range(2))

    def before(call: Call) -> Exception | None:
        is_read = call.method in ("head", "get") and call.about == commit_name(1)
        return full(call) if is_read and next(reads, None) is not None else None

    through(ObservedStore(open_store(world.path), before=before, after=once(is_commit, unanswered_put_error)))
    done = Append(world.path, [{"id": 9, "x": 9}]).run(context=RunContext(runtime=instant()))
    assert next(reads, None) is None, "it was read"
    assert (done.version, rows(world)) == (1, COMMANDS["append"].after)


# -- definite failures -------------------------------------------------------------------------------------------------


def test_a_commit_that_was_refused_leaves_nothing(world: World, through: Through, command: Command) -> None:
    files = listing(world.path)
    store = through(ObservedStore(open_store(world.path), before=always(is_commit, full)))
    with pytest.raises(errors.StoreFull):
        command.run(world, store, instant(), None)
    assert listing(world.path) == files


def cannot_clean_up(call: Call) -> Exception | None:
    return full(call) if call.method in ("delete", "list_all") else None


def test_cleaning_up_that_fails_does_not_hide_why(world: World, through: Through, command: Command) -> None:
    refused = [False]

    def before(call: Call) -> Exception | None:
        refused[0] = refused[0] or is_commit(call)
        if is_commit(call):
            return errors.StorePermissionDenied(name="x", root="t", reason="as the test asked.")
        return cannot_clean_up(call) if refused[0] else None

    with pytest.raises(errors.StorePermissionDenied):
        command.run(world, through(ObservedStore(open_store(world.path), before=before)), instant(), None)
    assert rows(world) == {row["id"]: row["x"] for row in ROWS}


@pytest.mark.parametrize("name", ["append", "overwrite", "update"])
def test_staging_that_fails_says_why_even_if_cleaning_up_fails_too(world: World, through: Through, name: str) -> None:
    def before(call: Call) -> Exception | None:
        if call.is_put:
            return errors.StorePermissionDenied(name="x", root="t", reason="as the test asked.")
        return cannot_clean_up(call)

    with pytest.raises(errors.StorePermissionDenied):
        COMMANDS[name].run(world, through(ObservedStore(open_store(world.path), before=before)), instant(), None)


@pytest.mark.slow
def test_a_lost_vector_file_that_cannot_be_removed_does_not_stop_the_commit(world: World) -> None:
    """The version was lost to another update of the file; the vectors that it named are written anew, joined."""
    won = iter([True])

    def before(call: Call) -> Exception | None:
        if is_commit(call) and next(won, False):
            World(world.path).update("id = 2", x=222)
        return full(call) if call.method == "delete" else None

    store = ObservedStore(open_store(world.path), before=before)
    COMMANDS["delete"].run(world, store, instant(), None)
    assert any(call.method == "delete" and "deletion_vector" in call.about for call in store.calls)
    assert rows(world) == {0: 0, 2: 222, 3: 3}


def test_a_checkpoint_that_fails_does_not_fail_the_commit(world: World, through: Through) -> None:
    world.append({"id": 8, "x": 8})
    store = through(
        ObservedStore(open_store(world.path), before=always(lambda call: "checkpoint" in str(call.about), full))
    )
    assert Append(world.path, [{"id": 9, "x": 9}]).run().version == 2
    assert any("checkpoint.parquet" in str(call.about) for call in store.calls)
    assert rows(world).keys() == {0, 1, 2, 3, 8, 9}


# -- patience ----------------------------------------------------------------------------------------------------------


def losing_to(world: World, winners: int) -> Decision:
    """Just before each of the first puts of a commit, somebody else takes its version."""
    left = iter(range(winners))

    def decide(call: Call) -> None:
        if is_commit(call) and next(left, None) is not None:
            put_other(world)

    return decide


def test_attempts_are_bounded(world: World, through: Through, command: Command) -> None:
    """Each put loses to somebody; after three, ours gives up, and leaves nothing."""
    if command is COMMANDS["overwrite"]:
        pytest.skip("its patience is its own")
    files = listing(world.path)
    store = through(ObservedStore(open_store(world.path), before=losing_to(world, 3)))
    with pytest.raises(errors.ConcurrentWriteException) as refused:
        command.run(world, store, instant(), RetryPolicy(attempts=3))
    assert refused.value.getCondition() == "DELTA_CONCURRENT_WRITE.ALLOTTED_TIME_EXCEEDED"
    assert refused.value.retryable
    assert sum(call.is_commit for call in store.calls) == 3
    logs = {name for name in listing(world.path) if name.startswith("_delta_log")}
    assert listing(world.path).keys() - logs == files.keys() - logs


def test_time_is_bounded(world: World) -> None:
    store, runtime = ObservedStore(open_store(world.path), before=losing_to(world, 10**6)), instant()
    with pytest.raises(errors.ConcurrentWriteException, match="ALLOTTED_TIME_EXCEEDED") as refused:
        changed("id = 1", None)(world, store, runtime, RetryPolicy(attempts=10**6, seconds=20))
    assert 20 < runtime.seconds() < 25
    assert refused.value.winner_version == world.version, "the one that was lost to"


def patient() -> RunContext:
    return RunContext(runtime=instant(), retry=RetryPolicy(10**6, seconds=20))


@pytest.mark.exhaustive(
    "tests/transaction/test_commit.py::test_a_pure_append_gives_up_after_so_many_attempts_as_it_may",
    "tests/transaction/test_commit.py::test_an_append_gets_through_many_winners",
)
@pytest.mark.slow
def test_a_pure_append_tries_at_least_a_thousand_times(world: World, through: Through) -> None:
    """However long that takes: the clock here says a second for each wait, and twenty are allowed."""
    assert default_retry(blind=True).attempts >= 1000
    store = through(ObservedStore(open_store(world.path), before=losing_to(world, 999)))
    committed = Append(world.path, [{"id": 9, "x": 9}]).run(context=patient())
    assert committed.attempts == 1000
    assert sum(call.is_commit for call in store.calls) == 1000


@pytest.mark.exhaustive(
    "tests/transaction/test_commit.py::test_a_pure_append_gives_up_after_so_many_attempts_as_it_may",
    "tests/transaction/test_commit.py::test_attempts_are_bounded",
    "tests/transaction/test_commit.py::test_time_is_bounded",
)
@pytest.mark.slow
def test_a_pure_append_gives_up_some_time(world: World, through: Through) -> None:
    store = through(ObservedStore(open_store(world.path), before=losing_to(world, 1000)))
    with pytest.raises(errors.ConcurrentWriteException, match="ALLOTTED_TIME_EXCEEDED"):
        Append(world.path, [{"id": 9, "x": 9}]).run(context=patient())
    assert sum(call.is_commit for call in store.calls) == 1000


def test_a_pure_append_gives_up_after_so_many_attempts_as_it_may(
    world: World, through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over after twenty waits; it goes on to its least number of attempts, here forty."""
    assert (APPEND_ATTEMPTS_AT_LEAST, default_retry(blind=True).attempts) == (1_000, 10_000)
    monkeypatch.setattr(commit, "APPEND_ATTEMPTS_AT_LEAST", 40)
    store = through(ObservedStore(open_store(world.path), before=losing_to(world, 40)))
    with pytest.raises(errors.ConcurrentWriteException, match="ALLOTTED_TIME_EXCEEDED"):
        Append(world.path, [{"id": 9, "x": 9}]).run(context=patient())
    assert sum(call.is_commit for call in store.calls) == 40


def test_behind_its_least_number_of_attempts_a_pure_append_ends_with_its_time(
    world: World, through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "APPEND_ATTEMPTS_AT_LEAST", 2)
    store = through(ObservedStore(open_store(world.path), before=losing_to(world, 9)))
    context = replace(patient(), retry=RetryPolicy(10**6, seconds=4))
    with pytest.raises(errors.ConcurrentWriteException, match="ALLOTTED_TIME_EXCEEDED"):
        Append(world.path, [{"id": 9, "x": 9}]).run(context=context)
    assert 4 <= sum(call.is_commit for call in store.calls) < 9


def test_pauses_double_up_to_a_bound_and_are_jittered() -> None:
    retry = RetryPolicy(attempts=1)
    loud = [retry.pause(i, instant()) for i in range(40)]
    assert loud == sorted(loud)
    assert loud[0] == retry.first_pause
    assert loud[-1] == retry.longest_pause
    quiet = Runtime(random=lambda: 0.25)
    assert [retry.pause(i, quiet) for i in range(40)] == [each * 0.25 for each in loud]


@pytest.mark.slow
def test_an_append_gets_through_many_winners(world: World, through: Through) -> None:
    through(ObservedStore(open_store(world.path), before=losing_to(world, 30)))
    committed = Append(world.path, [{"id": 9, "x": 9}]).run(context=RunContext(runtime=instant()))
    assert (committed.version, committed.attempts) == (31, 31)
    assert rows(world)[9] == 9
