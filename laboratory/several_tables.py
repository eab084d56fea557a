"""Transactions over several tables: the ways to commit them, and a search for the anomalies of each.

Knows the model (`table_groups`, `group_steps`) and its judge (`group_oracle`), and nothing of the product. The search
is exhaustive: every interleaving of the steps of each program, with at most one crash. ``python -m
laboratory.several_tables`` prints what it finds, with a shortest example of each kind, and
`docs/concepts/several-tables.md` says what that means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement

from laboratory.group_oracle import KINDS, anomaly_of
from laboratory.group_steps import first_state, name_of, next_states
from laboratory.table_groups import (
    ENDS,
    TABLES,
    Change,
    Program,
    Read,
    Row,
    Rows,
    Seen,
    State,
    Transaction,
    Way,
)

# -- transactions ------------------------------------------------------------------------------------------------------


def _set(table: str, rows: Rows, value: Callable[[int], int], who: int) -> Change:
    return Change(table, rows, frozenset(Row(row.key, value(row.value), who) for row in rows))


def _insert(table: str, key: int, value: int, who: int) -> Change:
    return Change(table, Rows(), frozenset({Row(key, value, who)}))


def _pair(seen: Seen, who: int) -> tuple[Change, ...]:
    return tuple(_set(table, rows, lambda x: x + 1, who) for table, rows in zip(TABLES, seen, strict=True))


def _off(table: str) -> Callable[[Seen, int], tuple[Change, ...]]:
    return lambda seen, who: (_set(table, seen[0], lambda _: 0, who),) if seen[1] else ()


def _first(table: str) -> Callable[[Seen, int], tuple[Change, ...]]:
    return lambda seen, who: () if seen[0] else (_insert(table, 3, 0, who),)


def _move(seen: Seen, who: int) -> tuple[Change, ...]:
    moved = frozenset(row._replace(by=who) for row in seen[0])
    return Change("A", seen[0], Rows()), Change("B", Rows(), moved)


def _copy(seen: Seen, who: int) -> tuple[Change, ...]:
    return (Change("B", Rows(), frozenset(Row(row.key + 10, row.value, who) for row in seen[0])),)


def _two(seen: Seen, who: int) -> tuple[Change, ...]:
    return (_set("A", seen[0], lambda _: 2, who),)


PAIR = Transaction("UPDATE A SET x = x + 1 WHERE k = 1; the same of B", (Read("A", 1), Read("B", 1)), _pair)
OFF_A = Transaction(
    "UPDATE A SET x = 0 WHERE k = 1 AND x = 1, if B has such a row", (Read("A", 1, 1), Read("B", 1, 1)), _off("A")
)
OFF_B = Transaction(
    "UPDATE B SET x = 0 WHERE k = 1 AND x = 1, if A has such a row", (Read("B", 1, 1), Read("A", 1, 1)), _off("B")
)
FIRST_A = Transaction("INSERT INTO A (3, 0), if B has no k = 3", (Read("B", 3),), _first("A"))
FIRST_B = Transaction("INSERT INTO B (3, 0), if A has no k = 3", (Read("A", 3),), _first("B"))
MOVE = Transaction("DELETE FROM A WHERE k = 2; INSERT these rows INTO B", (Read("A", 2),), _move)
OTHER = Transaction("UPDATE A SET x = 2 WHERE k = 2", (Read("A", 2),), _two)
APPEND = Transaction("INSERT INTO A (3, 1)", (), lambda seen, who: (_insert("A", 3, 1, who),))
COPY = Transaction("INSERT INTO B SELECT k + 10, x FROM A WHERE x = 1", (Read("A", None, 1),), _copy)
ALL_TWO = Transaction("UPDATE A SET x = 2 WHERE x = 1", (Read("A", None, 1),), _two)
STRANGER = replace(OTHER, text=f"{OTHER.text}, by an engine that knows no records", is_stranger=True)
OBSERVER = Transaction("SELECT all of A, then all of B", (Read("A"), Read("B")))

WRITERS = (PAIR, OFF_A, OFF_B, FIRST_A, FIRST_B, MOVE, OTHER, APPEND)
TWO_WRITERS: tuple[Program, ...] = tuple(combinations_with_replacement(WRITERS, 2))
THREE_WRITERS: tuple[Program, ...] = tuple(combinations_with_replacement(WRITERS, 3))
WITH_OBSERVER: tuple[Program, ...] = (
    *((each,) for each in WRITERS),
    *TWO_WRITERS,
    *((each, OBSERVER) for each in WRITERS),
    *((*each, OBSERVER) for each in TWO_WRITERS),
)
WITH_STRANGER: tuple[Program, ...] = tuple((each, STRANGER) for each in WRITERS)
APPENDERS: tuple[Program, ...] = tuple(combinations_with_replacement((APPEND, COPY, ALL_TWO, OFF_B), 3))


# -- ways --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A way under its name, and the programs that are tried on it."""

    name: str
    way: Way
    programs: tuple[Program, ...] = WITH_OBSERVER


READ_SETS = Way("group")
GROUPS = replace(READ_SETS, judges_reads=False, compares="written")
KNOWN_RECORDS = Way("record", judges_reads=False)

WAYS = (
    Case(
        "one table after the other",
        Way("each", writer_takes_cut=False, observer_takes_cut=False, judges_reads=False),
    ),
    Case(
        "intent log, readers do not know it",
        replace(KNOWN_RECORDS, observer_takes_cut=False, observer_knows=False),
    ),
    Case("intent log, all know it", KNOWN_RECORDS),
    Case("intent log, another writer does not know it", KNOWN_RECORDS, WITH_STRANGER),
    Case("groups, each table is read by itself", replace(GROUPS, writer_takes_cut=False, observer_takes_cut=False)),
    Case("groups, all tables are read at one cut", GROUPS),
    Case("groups with read sets", READ_SETS),
    Case("groups with read sets, three writers", READ_SETS, THREE_WRITERS),
    Case("groups with read sets, judged by tables", replace(READ_SETS, by="tables")),
    Case("intent log, all know it, with read sets", Way("record")),
)

MUTANTS = (
    Case("winners in tables that are only read are not judged", replace(READ_SETS, judges_reads=False)),
    Case("the catalog compares only tables that are written", replace(READ_SETS, compares="written")),
    Case("the catalog compares nothing", replace(READ_SETS, compares="nothing")),
    Case("the catalog ratifies table by table", replace(READ_SETS, at_once=False)),
    Case("rows that both mark are not judged", replace(READ_SETS, marks=False)),
    Case("rows that ours read and a winner removed are not judged", replace(READ_SETS, removed=False)),
    Case("rows that a winner added are not judged", replace(READ_SETS, added=False)),
    Case("winners' changes are not carried over", replace(READ_SETS, carries=False)),
    Case("readers read each table by itself", replace(READ_SETS, observer_takes_cut=False)),
    Case("writers read each table by itself", replace(READ_SETS, writer_takes_cut=False)),
    Case("a cut may be an old one", replace(READ_SETS, newest=False)),
)

APPENDS = (
    Case("none is passed: Serializable", READ_SETS, APPENDERS),
    Case("at the end of each table's log", replace(READ_SETS, passes="table"), APPENDERS),
    Case(
        "at the end of each table's log, and the catalog compares its number",
        replace(READ_SETS, passes="table", compares="catalog"),
        APPENDERS,
    ),
    Case("at the end of the catalog's log", replace(READ_SETS, passes="catalog"), APPENDERS),
    Case(
        "at the end of the catalog's log, and the catalog compares its number",
        replace(READ_SETS, passes="catalog", compares="catalog"),
        APPENDERS,
    ),
)


# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A history without a serial order: the transactions, and the steps in their order."""

    program: Program
    did: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a case showed: numbers of histories, each of them an interleaving, and a shortest example of each kind.

    Attributes:
        refused: in how many a transaction was refused.
        by_rows: in how many one was committed that a judge of whole tables had refused.
    """

    histories: int
    refused: int
    by_rows: int
    anomalies: Mapping[str, int]
    examples: Mapping[str, Example]


@cache
def search(case: Case) -> Found:
    """Run every interleaving of the case's programs, and judge how each ends."""
    found, examples = Counter[str](), dict[str, Example]()
    for program in case.programs:
        ends, came_from = _ends(case.way, program)
        for end, count in ends.items():
            found["histories"] += count
            found["refused"] += count * any(each.phase == "refused" for each in end.processes)
            found["by rows"] += count * any(each.phase == "ended" and each.by_rows for each in end.processes)
            kind = anomaly_of(case.way, program, end)
            if kind is not None:
                found[kind] += count
                example = Example(program, _path(came_from, end))
                examples[kind] = min(examples.get(kind, example), example, key=_length)
    anomalies = {kind: found[kind] for kind in KINDS if found[kind]}
    return Found(found["histories"], found["refused"], found["by rows"], anomalies, examples)


def _length(example: Example) -> tuple[int, int]:
    return len(example.program), len(example.did)


_Origins = dict[State, tuple[State, str] | None]


def _ends(way: Way, program: Program) -> tuple[Counter[State], _Origins]:
    """How the interleavings end, how many end so, and by which step each state was first reached."""
    level = Counter({first_state(program): 1})
    ends, came_from = Counter[State](), _Origins({first_state(program): None})
    while level:
        following = Counter[State]()
        for state, count in level.items():
            if all(process.phase in ENDS for process in state.processes):
                ends[state] += count
                continue
            for did, after in next_states(way, program, state):
                following[after] += count
                came_from.setdefault(after, (state, did))
        level = following
    return ends, came_from


def _path(came_from: _Origins, end: State) -> tuple[str, ...]:
    did, origin = list[str](), came_from[end]
    while origin is not None:
        did.append(origin[1])
        origin = came_from[origin[0]]
    return tuple(reversed(did))


# -- what is printed ---------------------------------------------------------------------------------------------------


HEADS = {"way": WAYS, "rule left out": MUTANTS, "blind appends that are passed": APPENDS}
"""The tables that are printed, by what stands over their first column."""


def table_of(head: str, cases: Sequence[Case]) -> str:
    """What cases showed, as a table of Markdown."""
    lines = [f"| {head} | histories | refused | by rows only | without a serial order |", "|---|---|---|---|---|"]
    for case in cases:
        found = search(case)
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in found.anomalies.items()) or "none"
        lines.append(f"| {case.name} | {found.histories:,} | {found.refused:,} | {found.by_rows:,} | {kinds} |")
    return "\n".join(lines)


def examples_of(case: Case) -> list[str]:
    """A shortest example of each kind that a case showed, as text."""
    return [
        "\n".join(
            (
                f"{case.name}: {kind}",
                *(f"  {name_of(example.program, who)}: {each.text}" for who, each in enumerate(example.program)),
                *(f"    {did}" for did in example.did),
            )
        )
        for kind, example in search(case).examples.items()
    ]


def page() -> str:
    """All that is printed."""
    tables = [table_of(head, cases) for head, cases in HEADS.items()]
    examples = [text for cases in HEADS.values() for case in cases for text in examples_of(case)]
    return "\n\n".join((*tables, *examples))


if __name__ == "__main__":
    print(page())
