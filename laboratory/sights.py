"""What a site comes to: a pair of a table and a command, run on a copy, and read by the laboratory's own reader.

Knows sites and the reader; compares two sights. What no table may hold is wrong, whatever all sites agree on.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch._storage import open_store
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError
from laboratory.drawn_commands import Command, Layout, drawn_command
from laboratory.drawn_tables import Drawn, drawn_table
from laboratory.sites import BESIDE, Asked, NotForThisSite, Place, planned, sql
from laboratory.typed_reader import TypedReader

LEFT = "NeedsSpark"
"""How a command ends that a site leaves to Spark."""


@dataclass(frozen=True)
class Pair:
    """A table, what happened to it, a command, and perhaps others beside it.

    Attributes:
        before: the commands that made the table what it is.
        winner: commits behind the version that the command reads.
        late: reads that version too, and commits behind the command.
        on_disk: whether the table lies on a disk; else what is laid out is copied there.
    """

    table: Drawn
    before: tuple[Command, ...]
    command: Command
    winner: Command | None
    late: Command | None
    on_disk: bool


def pair_of(seed: int) -> Pair:
    """The pair of an integer."""
    dice = random.Random(f"pair {seed}")
    table = drawn_table(dice)
    before = tuple(drawn_command(dice, table) for _ in range(dice.choice((0, 0, 1, 1, 2))))
    command = drawn_command(dice, table)
    winner = drawn_command(dice, table) if dice.random() < 0.4 else None
    late = drawn_command(dice, table) if dice.random() < 0.3 else None
    moves = any(isinstance(each, Layout) for each in (command, winner, late, *before))
    on_disk = dice.random() < (0.6 if moves else 0.05)
    return Pair(table, before, command, winner, late, on_disk)


@dataclass(frozen=True)
class Seen:
    """What a site came to.

    Attributes:
        ended: how the command ended: ``done``, or the name of its error.
        told: what is compared, by what it is.
        files: what the log says of the files that the command added.
        late: how the command behind it ended, which is judged by these files too.
        after: what is compared then.
        wrong: what no table may hold, whatever others hold.
    """

    ended: str
    told: Mapping[str, Any]
    files: Counter[str]
    late: str
    after: Mapping[str, Any]
    wrong: tuple[str, ...]


def seen_at(place: Place, pair: Pair, location: str, version: int) -> Seen | None:
    """Run the command of a pair at a place, on a copy of its own; None where that place does not know it."""
    log = open_log(location)
    asked = Asked(pair.command, pair.table, location, log.snapshot(version))
    first, told, wrong, late = log.snapshot().version + 1, dict[str, Any](), list[str](), "none"
    try:
        end, told["rows reported"] = "done", getattr(place.run(asked), "rows", None)
    except NotForThisSite:
        return None
    except Exception as error:
        end = type(error).__name__
        wrong += [] if isinstance(error, AnabranchError) else [f"it ended in a bare {end}: {error}"]
    behind = log.snapshot().version + 1
    if pair.late is not None:
        late = ended(pair.late, pair, location, version)
    reader = TypedReader(open_store(location))
    versions = reader.versions()
    for each in versions[first:behind]:
        told |= _said(reader, each)
    after = {"ids": _ids(reader, first)}
    for each in versions[behind:]:
        after |= _said(reader, each)
    wrong += [*reader.faults, *reader.wrong_statistics(loose=place.is_loose), *_wrong_changes(reader, versions, first)]
    wrong += _against_plan(asked, end, told.get("rows reported")) if place.words is sql else []
    wrong += [f"it ended in {end}, and was committed"] if end != "done" and behind > first else []
    return Seen(end, told, reader.said_of_files(range(first, behind)), late, after, tuple(wrong))


def _against_plan(asked: Asked, end: str, rows: int | None) -> list[str]:
    """What a plan says is Spark's cannot have been done without it."""
    plan = planned(asked) if end == "done" and rows else None
    reason = plan.steps[0].reason if plan is not None and plan.steps else None
    return [] if reason is None else [f"it was done, and its plan leaves it to Spark: {reason}"]


def ended(command: Command, pair: Pair, location: str, version: int | None = None) -> str:
    """How a command ends that is run beside the one that is looked at."""
    try:
        BESIDE.run(Asked(command, pair.table, location, open_log(location).snapshot(version)))
    except AnabranchError as error:
        return type(error).__name__
    return "done"


def _ids(reader: TypedReader, first: int) -> Counter[Any] | None:
    """The ids of rows, of new ones only that they are new; how new rows are numbered is for each site to say."""
    found = reader.ids()
    if found is None:
        return None
    ids = Counter(row_id for row_id, _, _ in found.elements())
    reader.faults.extend(f"the id {each} is there {times} times" for each, times in ids.items() if times > 1)
    highest = reader.highest_id(first - 1)
    return Counter((row_id if row_id <= highest else "new", *rest) for row_id, *rest in found.elements())


def _said(reader: TypedReader, version: Any) -> dict[str, Any]:
    """What a commit says of itself, what it changed, and the rows behind it."""
    info, found = version.info, dict[str, Any](rows=Counter(version.rows))
    found |= {name: info.get(name) for name in ("operation", "isBlindAppend")}
    found["metrics"] = {name: value for name, value in info.get("operationMetrics", {}).items() if "Row" in name}
    if reader.records:
        found["changes"] = Counter(reader.changes(version.number))
    return {f"{name} of {version.number}": value for name, value in found.items()}


def _wrong_changes(reader: TypedReader, versions: Sequence[Any], first: int) -> Iterator[str]:
    """Versions to which the recorded changes do not lead."""
    for before, after in zip(versions[first - 1 :], versions[first:], strict=False) if reader.records else ():
        rows = Counter(before.rows)
        for change, row in reader.changes(after.number):
            rows[row] += 1 if change in ("insert", "update_postimage") else -1
        if {row: times for row, times in rows.items() if times} != Counter(after.rows):
            yield f"the changes of version {after.number} do not lead to it"


def differs(first: Seen, other: Seen) -> Iterator[str]:
    """What is not the same; a command behind may be refused, or for another reason, where files hold other rows."""
    if first.ended != other.ended:
        if LEFT not in (first.ended, other.ended):
            yield f"it ended in {other.ended}, and elsewhere in {first.ended}"
        return
    yield from _unlike(first.told, other.told)
    if first.late == other.late:
        yield from _unlike(first.after, other.after)
    elif first.files == other.files:
        yield f"the command behind ended in {other.late}, and elsewhere in {first.late}"


def _unlike(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*there, *here]):
        if here.get(name) != there.get(name):
            yield f"{name}: {_shown(here.get(name), there.get(name))}"


def _shown(here: Any, there: Any) -> str:
    if isinstance(here, Counter) and isinstance(there, Counter):
        return f"has {dict(here - there)!r:.400}, and elsewhere there is {dict(there - here)!r:.400}"
    return f"{here!r:.300}, and elsewhere {there!r:.300}"
