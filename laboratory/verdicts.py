"""Verdicts: what is wrong with a history, and which refusals were not needed.

Knows what was seen and what the oracle says. Pure. Every rule here is a promise of the product:

- every version has a serial order at the table's level, and every count that was reported fits it;
- what was acknowledged is in the log once, at the version that was told; what was refused or failed is not in it;
- a statement that said "nothing to change" ran on a version in which nothing matched;
- no commit lands over a change of metadata or protocol that it has not read, and none after an unknown writer feature;
- a batch of a stream is in the log once, however often it was run;
- where the table has a feed, the changes of each version lead from the one before it to its rows;
- a stream that reads the table is shown each row once;
- a program has no conflict with itself, and finds the rows that it held changed by nobody else;
- a block tells what it tells at its place in the order, its feed is its net difference, and it leaves no file where it
  commits nothing; under `redo` none is refused that would have told the same on a later version;
- the log is whole: no file is live twice, no vector or row count is wrong;
- every history ends, and every error is a documented one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from anabranch._transaction.running_vacuums import END, START
from anabranch.errors import (
    ChangeFilesMissing,
    ConcurrentTransactionException,
    CorruptVector,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    MissingDataFile,
    NotFound,
    ProtocolChangedException,
    StagedFilesVacuumed,
    UnsupportedFeature,
)
from laboratory.block_verdicts import block_was_idle, blocks_fit, left_faults, net_faults, redo_faults
from laboratory.blocks import Block
from laboratory.feed_verdicts import feed_faults
from laboratory.held_rows import Bring, Brought
from laboratory.oracle import Landed, Order, first_unexplained, serial_order
from laboratory.plans import Plan
from laboratory.runs import Act, History, name_of
from laboratory.statements import Batch, Foreign, Optimize, Restore, Rows, Statement, Upgrade, Vacuum, bag

_GONE = MissingDataFile | CorruptVector | ChangeFilesMissing | NotFound
"""What is said of files that a VACUUM has removed."""


@dataclass(frozen=True)
class Violation:
    """A broken promise: its ``kind`` is one word, for counting; ``text`` says what was seen."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def violations(history: History) -> list[Violation]:
    """Everything that is wrong."""
    if history.stuck:
        return [Violation("stuck", history.stuck)]
    commits = _commits(history)
    return [
        *(Violation("log", fault) for fault in history.faults),
        *_unexpected_errors(history),
        *_outcomes(history, commits),
        *_batches(history, commits),
        *_idle(history),
        *_conflicts_with_moves(history),
        *_unread_heads(history, commits),
        *_order(history, commits),
        *_self_conflicts(history),
        *(Violation("feed", fault) for fault in feed_faults(history, landed(history))),
        *(Violation("feed", fault) for fault in net_faults(history, landed(history))),
        *(Violation("redo", fault) for fault in redo_faults(history)),
        *(Violation("left", fault) for fault in left_faults(history)),
    ]


def landed(history: History) -> list[Landed]:
    """The transactions that stand in the log."""
    commits = _commits(history)
    return [
        Landed(
            who=act.who,
            statement=_known(act.statement, history, commits[act.who][0]),
            version=commits[act.who][0],
            began=act.began,
            ended=act.ended if act.told == "committed" else None,
            reported=act.changed if act.told == "committed" else None,
        )
        for act in history.acts
        if commits.get(act.who)
    ]


def _known(statement: Statement, history: History, version: int) -> Statement:
    """A RESTORE whose writer did not live to say it: the log knows to which version it went back."""
    if not isinstance(statement, Restore) or statement.rows is not None:
        return statement
    back = int(history.versions[version].info["operationParameters"]["version"])
    return replace(statement, rows=history.versions[back].rows)


# -- promises ----------------------------------------------------------------------------------------------------------


def _commits(history: History) -> Mapping[int, list[int]]:
    """The versions of each writer."""
    found: dict[int, list[int]] = {}
    names = {name_of(act.who): act.who for act in history.acts}
    for version in history.versions[history.base + 1 :]:
        if version.info.get("operation") in (START, END):
            continue
        who = names.get(str(version.info.get("txnId", ""))[:8])
        if who is not None:
            found.setdefault(who, []).append(version.number)
    for act in history.acts:
        if isinstance(act.statement, Foreign) and act.version is not None:
            found[act.who] = [act.version]  # it need not have signed
    return found


def _unexpected_errors(history: History) -> Iterator[Violation]:
    upgraded = any(isinstance(act.statement, Upgrade) for act in history.acts)
    vacuumed = any(isinstance(act.statement, Vacuum) for act in history.acts)
    for act in history.acts:
        gone = vacuumed and isinstance(act.error, _GONE)
        expected = bool(history.plan.failures) or (upgraded and isinstance(act.error, UnsupportedFeature)) or gone
        if act.told == "broken" or (act.told in ("failed", "unknown") and not expected):
            yield Violation("error", f"writer {act.who} was told {type(act.error).__name__}: {act.error}")


def _outcomes(history: History, commits: Mapping[int, list[int]]) -> Iterator[Violation]:
    for act in history.acts:
        at = commits.get(act.who, [])
        if len(at) > 1:
            yield Violation("twice", f"writer {act.who} stands in the log at {at}")
        if act.told == "committed" and act.version not in at:
            yield Violation("lost", f"writer {act.who} was told version {act.version}, and the log has it at {at}")
        if act.told in ("refused", "failed", "nothing", "broken") and at:
            yield Violation("undead", f"writer {act.who} was told {act.told!r}, and stands in the log at {at}")


def _batches(history: History, commits: Mapping[int, list[int]]) -> Iterator[Violation]:
    """A batch is in the log once, and nobody is told that it was written before it was."""
    batches = [(act.statement, act) for act in history.acts if isinstance(act.statement, Batch)]
    for batch in dict.fromkeys(batch for batch, _ in batches):
        at = [version for other, act in batches if other == batch for version in commits.get(act.who, ())]
        if len(at) > 1:
            yield Violation("twice", f"batch {batch.number} of {batch.query} stands in the log at {at}")
    for batch, act in batches:
        known = [other for other in batches if other[0].query == batch.query and other[0].number >= batch.number]
        before = [at for _, other in known for at in commits.get(other.who, ()) if at <= act.last_version]
        if act.told == "nothing" and not before:
            yield Violation("lost", f"writer {act.who} was told that its batch was written before, and it was not")


def _idle(history: History) -> Iterator[Violation]:
    for act in history.acts:
        if act.told != "nothing" or isinstance(act.statement, Batch):
            continue
        window = history.versions[act.first_version : act.last_version + 1]
        if isinstance(act.statement, Block):
            was_idle = any(block_was_idle(act.statement, act.changed, version.rows) for version in window)
        else:
            was_idle = any(act.statement.apply(version.rows)[1] == 0 for version in window)
        if not was_idle:
            yield Violation("idle", f"writer {act.who} found nothing to change, and there always was something")


def _conflicts_with_moves(history: History) -> Iterator[Violation]:
    """Moving rows is in nobody's way, and nobody's rows are in its way; but for what fails every writer."""
    by_version = {each.version: each.statement for each in landed(history)}
    vacuumed = any(isinstance(act.statement, Vacuum) for act in history.acts)
    for act in history.acts:
        if act.told != "refused" or not isinstance(act.error, DeltaConcurrentModificationException):
            continue
        if isinstance(act.error, StagedFilesVacuumed) or _could_not_decide(history, act):
            continue
        winner = by_version.get(act.error.facts.get("winner_version", -1))
        head = isinstance(act.error, MetadataChangedException | ProtocolChangedException)
        if isinstance(act.statement, Optimize) and not head:
            yield Violation("maintenance", f"writer {act.who} only moves rows, and was refused: {act.error}")
        if isinstance(act.statement, Restore) and head:
            continue  # it changes the metadata, and such a change passes nobody whom it has not seen
        if isinstance(winner, Optimize) and history.plan.setup.vectors and not vacuumed:  # a record of moves goes too
            yield Violation("maintenance", f"writer {act.who} was refused because rows were moved: {act.error}")


def _could_not_decide(history: History, act: Act) -> bool:
    """Whether a refusal names a failure of the writer's own store: errors while it decides mean conflict."""
    return any(said in str(act.error) for said in history.failed.get(act.who, ()))


def _unread_heads(history: History, commits: Mapping[int, list[int]]) -> Iterator[Violation]:
    """Commits that landed over metadata or a protocol which they had not read."""
    upgraded = False
    for version in history.versions[history.base + 1 :]:
        read = version.info.get("readVersion")
        ours = "readVersion" in version.info
        between = history.versions[(read if read is not None else version.number) + 1 : version.number]
        if any(unread.kinds & {"metaData", "protocol"} for unread in between):
            yield Violation("stale", f"version {version.number} read {read} and landed over a change of metadata")
        if upgraded and ours:
            yield Violation("feature", f"version {version.number} was written under a feature that nobody here knows")
        upgraded = upgraded or "protocol" in version.kinds


def _order(history: History, commits: Mapping[int, list[int]]) -> Iterator[Violation]:
    level, initial = history.plan.setup.isolation, history.versions[history.base].rows
    if bag(initial) != bag(history.plan.setup.rows):
        yield Violation("rows", f"the table began with {sorted(initial, key=str)}")
    there, seen = landed(history), {version.number: version.rows for version in history.versions}
    fits = partial(_fits, history.plan, initial, seen)
    if serial_order(initial, there, seen, level=level, fits=fits) is None:
        version = first_unexplained(initial, there, seen, level=level, fits=fits)
        what = "the counts that were reported have" if version is None else f"version {version} has"
        yield Violation("order", f"{what} no serial order at {level}")


def _fits(plan: Plan, initial: Rows, seen: Mapping[int, Rows], order: Order) -> bool:
    return blocks_fit(order) and held_rows_fit(plan, initial, seen, order)


def held_rows_fit(plan: Plan, initial: Rows, seen: Mapping[int, Rows], order: Order) -> bool:
    """Whether each program that wrote rows which it held since a version found these rows there just before, changed by
    its own commits alone; and whether those stand behind all that the version shows.
    """
    return all(
        _finds_what_it_held(plan, initial, seen[each.statement.read], order[: place + 1])
        for place, each in enumerate(order)
        if isinstance(each.statement, Brought)
    )


def _finds_what_it_held(plan: Plan, initial: Rows, held: Rows, order: Order) -> bool:
    ours, expected, rows = order[-1], bag(held), initial
    assert isinstance(ours.statement, Brought)
    began, left = False, sum(each.version <= ours.statement.read for each in order)
    for each in order[:-1]:
        after, _ = each.statement.apply(rows)
        if each.version <= ours.statement.read:
            left -= 1
        elif plan.program(each.who) == plan.program(ours.who):
            expected.update(bag(after))
            expected.subtract(bag(rows))
            began = began or left > 0
        rows = after
    return not began and expected == bag(rows)


def _self_conflicts(history: History) -> Iterator[Violation]:
    """A program is refused because of others only."""
    there = landed(history)
    for act in history.acts:
        if act.told != "refused" or not isinstance(act.error, DeltaConcurrentModificationException):
            continue
        program, winner = history.plan.program(act.who), act.error.facts.get("winner_version")
        own = any(each.version == winner and history.plan.program(each.who) == program for each in there)
        if own or (isinstance(act.statement, Bring) and winner is None):
            yield Violation("self", f"writer {act.who} was refused because of its own program: {act.error}")


# -- precision ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """A refusal: between which verbs, and whether what was staged would have had a serial order after all."""

    ours: str
    winner: str
    was_needed: bool


def refusals(history: History) -> list[Refusal]:
    """Every refusal of a history."""
    return list(refusals_by_writer(history).values())


def refusals_by_writer(history: History) -> dict[int, Refusal]:
    """The refusal of each writer that was refused."""
    by_version = {each.version: each.statement for each in landed(history)}
    found = {}
    for act in history.acts:
        if act.told != "refused" or not isinstance(act.error, DeltaConcurrentModificationException):
            continue
        winner = act.error.facts.get("winner_version")
        verb = type(by_version[winner]).__name__ if winner in by_version else "none"
        # Nobody knows to which version a RESTORE would have gone back, nor what files that are gone would have said;
        # and a batch that lands twice is wrong in any order.
        known_needed = StagedFilesVacuumed | ConcurrentTransactionException
        if isinstance(act.statement, Restore) or isinstance(act.error, known_needed):
            found[act.who] = Refusal(type(act.statement).__name__, verb, True)
            continue
        base = int(act.error.facts["base_version"])
        found[act.who] = Refusal(type(act.statement).__name__, verb, not _had_an_order(history, act, base))
    return found


def _had_an_order(history: History, act: Act, base: int) -> bool:
    """Whether exactly what the writer had staged, put behind the newest version it saw, would be explained."""
    known = history.versions[: act.last_version + 1]
    before = [each for each in landed(history) if each.version <= act.last_version]
    seen = {version.number: version.rows for version in known}
    after = _staged(act.statement, history.versions[base].rows, known[-1].rows)
    if after is None:
        return False
    told = act.statement.apply(history.versions[base].rows)[1] if isinstance(act.statement, Block) else None
    ours = Landed(act.who, act.statement, act.last_version + 1, act.began, act.ended, told)
    initial, level = history.versions[history.base].rows, history.plan.setup.isolation
    seen[ours.version] = after
    return serial_order(initial, [*before, ours], seen, level=level, fits=blocks_fit) is not None


def _staged(statement: Statement, base: Rows, newest: Rows) -> Rows | None:
    """The newest rows with what the statement takes from and adds to its base; None where a row it takes is gone."""
    after = statement.apply(base)[0]
    taken, brought = bag(base) - bag(after), bag(after) - bag(base)
    if taken - bag(newest):
        return None
    return tuple((bag(newest) - taken + brought).elements())


def counted(found: Sequence[Refusal]) -> dict[tuple[str, str], tuple[int, int]]:
    """Per pair of verbs (ours, winner): refusals in all, and those that had a serial order."""
    table: dict[tuple[str, str], tuple[int, int]] = {}
    for each in found:
        total, needless = table.get((each.ours, each.winner), (0, 0))
        table[each.ours, each.winner] = (total + 1, needless + (not each.was_needed))
    return table


__all__ = ["Refusal", "Violation", "counted", "landed", "refusals", "refusals_by_writer", "violations"]
