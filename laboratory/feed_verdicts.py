"""Verdicts on feeds: what is wrong with what the versions of a history are said to have changed.

Knows rows of versions, the changes between them, and statements. Pure. A version has to be the one before it without
the rows that its changes took and with those that they brought, so that the changes of any range of versions lead from
the first to the last; and each statement of ours has changes of its own kinds only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from anabranch.errors import ChangeFilesMissing, NotFound
from laboratory.blocks import Block, Tell
from laboratory.feeds import Feeds
from laboratory.log_reader import Changes
from laboratory.oracle import Landed
from laboratory.runs import History
from laboratory.statements import (
    Append,
    Delete,
    Follow,
    Foreign,
    Merge,
    Optimize,
    Row,
    Statement,
    Update,
    Vacuum,
    assigned,
    bag,
)
from laboratory.stream_readers import Seen

_TAKEN = ("delete", "update_preimage")
_BROUGHT = ("insert", "update_postimage")


def feed_faults(history: History, landed: Sequence[Landed]) -> Iterator[str]:
    """Everything that is wrong with a history's feeds, and with what its streams were shown."""
    if history.feeds is None:
        return
    yield from _streams(history, history.feeds)
    if history.plan.setup.feed:
        yield from _two_tellings(history.feeds, vacuumed=Vacuum in map(type, history.plan.statements))
        yield from _steps(history, history.feeds, {each.version: each for each in landed})


def _steps(history: History, feeds: Feeds, by_version: Mapping[int, Landed]) -> Iterator[str]:
    for before, after in zip(history.versions, history.versions[1:], strict=False):
        said, made = feeds.plain[after.number], by_version.get(after.number)
        if made is not None and isinstance(made.statement, Foreign) and not _is_honest(made.statement):
            continue
        taken, brought = _rows(said, _TAKEN), _rows(said, _BROUGHT)
        if taken - bag(before.rows) or bag(before.rows) - taken + brought != bag(after.rows):
            yield f"the changes of version {after.number} do not lead to its rows: {_listed(said)}"
        elif made is not None and not _fits(made, said):
            yield f"the changes of version {after.number} are not those of {made.statement}: {_listed(said)}"


def _two_tellings(feeds: Feeds, *, vacuumed: bool) -> Iterator[str]:
    if feeds.ours is None:
        if not (vacuumed and isinstance(feeds.error, ChangeFilesMissing | NotFound)):
            yield f"the feed cannot be read: {feeds.error}"
        return
    for number, (ours, plain) in enumerate(zip(feeds.ours, feeds.plain, strict=True)):
        if Counter(ours) != Counter(plain):
            yield f"of version {number} we read the changes {_listed(ours)}, and there are {_listed(plain)}"
    if feeds.part != feeds.ours[feeds.first : feeds.first + len(feeds.part)]:
        yield f"asked for alone, the changes from version {feeds.first} on are {', '.join(map(_listed, feeds.part))}"


def _streams(history: History, feeds: Feeds) -> Iterator[str]:
    """A stream is shown the rows of the version where it began, and what each commit after it brought, all once."""
    for act in history.acts:
        follow, seen = act.statement, getattr(act.statement, "seen", None)
        if not isinstance(follow, Follow) or not isinstance(seen, Seen):
            continue
        rows = () if seen.there is None else history.versions[seen.there].rows
        there = [("insert", row) for row in rows]
        later = (_shown(follow, feeds, version) for version in seen.commits)
        missing, extra = _differences([*there, *chain.from_iterable(later)], seen.rows)
        if missing or extra:
            yield f"the stream of writer {act.who} lacks {_listed(missing)}, and has too much {_listed(extra)}"


def _shown(follow: Follow, feeds: Feeds, version: int) -> Changes:
    """What a stream has to be shown of a commit."""
    if follow.shows == "changes":
        return feeds.plain[version]
    if follow.shows == "inserts" and feeds.takes[version]:
        return ()
    return tuple(each for each in feeds.derived[version] if each[0] == "insert")


def _differences(wanted: Iterable[tuple[str, Row]], found: Changes) -> tuple[Changes, Changes]:
    both = Counter(wanted), Counter(found)
    return tuple((both[0] - both[1]).elements()), tuple((both[1] - both[0]).elements())


def _is_honest(foreign: Foreign) -> bool:
    """Whether another engine's commit says of what it did that it changed data, and of nothing else."""
    manner = foreign.manner
    return manner.change and not (manner.churn and manner.churns in ("restated", "touched"))


def _fits(made: Landed, said: Changes) -> bool:
    """Whether these can be the changes of a statement: of its kinds, of as many rows as it reported, and with the
    images that it gives.
    """
    statement, kinds = made.statement, {change for change, _ in said}
    before, after = _of(said, "update_preimage"), _of(said, "update_postimage")
    if len(before) != len(after):
        return False
    if isinstance(statement, Update):
        images = bag(assigned(row, statement.sets) for row in before)
        fits = images == bag(after) and all(statement.where.truth(row) is True for row in before)
        return fits and kinds <= {"update_preimage", "update_postimage"} and made.reported in (None, len(before))
    if isinstance(statement, Delete):
        return kinds <= {"delete"} and made.reported in (None, len(said))
    if isinstance(statement, Block):
        return not before or any(kind in (Update, Merge, Tell) for kind in statement.kinds)
    if isinstance(statement, Merge):
        return made.reported in (None, len(said) - len(after))
    if isinstance(statement, Append) and not _replaces(statement):
        return kinds <= {"insert"} and bag(row for _, row in said) == bag(statement.rows)
    return not said if isinstance(statement, Optimize | Vacuum) else not before


def _replaces(statement: Statement) -> bool:
    return bool(getattr(statement, "complete", False))


def _rows(said: Changes, kinds: tuple[str, ...]) -> Counter[Row]:
    return bag(row for change, row in said if change in kinds)


def _of(said: Changes, kind: str) -> list[Row]:
    return [row for change, row in said if change == kind]


def _listed(said: Changes) -> str:
    return " ".join(f"{change} {row}" for change, row in sorted(said, key=str)) or "nothing"
