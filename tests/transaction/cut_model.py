"""The cut as an abstract model: histories of statements on a tiny table, the rule under test, and every serial order.

Knows statements as functions of rows, versions as rows with identities, and a rule as what places one transaction
behind a log. Knows nothing of the product's code, so that it can contradict it. Guarantee: `logs` gives every history
of up to the given length in which each transaction read any earlier version and looked at the log at any moments since;
`Version.orders` holds *all* serial orders that explain the log so far.

It also holds the commit loop as steps of writers (`optimistic`, and two loops that are worse), to be searched for dead
ends and circles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

Row = tuple[int, int]
"""The columns p and x."""
Rows = tuple[Row, ...]
"""A bag of rows, sorted."""
Id = tuple[int, int]
"""The version that brought a row, and its number there: what a file and a position are in a table."""
Order = tuple[int, ...]
"""Transactions, named by the versions that they became, in a serial order."""


# -- statements --------------------------------------------------------------------------------------------------------


def _nothing(rows: Rows) -> Rows:
    return ()


@dataclass(frozen=True, eq=False)
class Statement:
    """A function from bag to bag: of the rows that it ``reads``, some it ``takes`` away, and it ``gives`` others.

    ``reads`` is None where it reads nothing. ``brings`` are rows that do not depend on any. A row-local statement takes
    and gives for each row by itself.
    """

    text: str
    reads: Callable[[Row], bool] | None = None
    takes: Callable[[Rows], Rows] = _nothing
    gives: Callable[[Rows], Rows] = _nothing
    brings: Rows = ()
    row_local: bool = True

    @property
    def is_blind(self) -> bool:
        return self.reads is None

    def selects(self, row: Row) -> bool:
        return self.reads is not None and self.reads(row)


@cache
def run(statement: Statement, rows: Rows) -> Rows:
    """The bag after the statement: serial execution, which is what every history is held against."""
    read = tuple(row for row in rows if statement.selects(row))
    taken = set(statement.takes(read))
    return tuple(sorted([row for row in rows if row not in taken] + [*statement.gives(read), *statement.brings]))


@cache
def replay(start: Rows, statements: tuple[Statement, ...]) -> Rows:
    """The bag after all statements, one after the other."""
    return run(statements[-1], replay(start, statements[:-1])) if statements else start


def append(*rows: Row) -> Statement:
    return Statement(f"append {', '.join(map(str, rows))}", brings=rows)


def update(text: str, where: Callable[[Row], bool], becomes: Callable[[Row], Row]) -> Statement:
    return Statement(text, where, takes=lambda read: read, gives=lambda read: tuple(map(becomes, read)))


def delete(text: str, where: Callable[[Row], bool]) -> Statement:
    return Statement(text, where, takes=lambda read: read)


def overwrite(row: Row) -> Statement:
    return Statement(f"overwrite with {row}", lambda _: True, takes=lambda read: read, brings=(row,))


def insert_select(text: str, where: Callable[[Row], bool], gives: Callable[[Rows], Rows]) -> Statement:
    return Statement(text, where, gives=gives, row_local=False)


# -- the log -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """One entry of the log: who made it, its rows, and every serial order that explains the log up to here."""

    statement: Statement | None
    base: int
    cut: int
    rows: dict[Id, Row]
    orders: frozenset[Order]

    @property
    def is_blind(self) -> bool:
        return self.statement is not None and self.statement.is_blind


Log = tuple[Version, ...]


def bag(rows: dict[Id, Row]) -> Rows:
    return tuple(sorted(rows.values()))


def new_log(start: Rows) -> Log:
    return (Version(None, 0, 0, {(0, n): row for n, row in enumerate(start)}, frozenset({()})),)


@dataclass(frozen=True)
class Ours:
    """A transaction that has run on version ``base`` and stands behind version ``rebased_to``."""

    statement: Statement
    base: int
    rebased_to: int
    marks: frozenset[Id]
    adds: Rows

    def touches(self, log: Log) -> list[Row]:
        """Every row that it takes or gives."""
        return [*self.adds, *(log[id_[0]].rows[id_] for id_ in self.marks)]


def staged(statement: Statement, log: Log, base: int) -> Ours:
    """The statement, run on the rows of its base."""
    return _done(statement, base, log[base].rows, statement.brings)


def _done(statement: Statement, base: int, rows: dict[Id, Row], brings: Rows) -> Ours:
    read = tuple(sorted(row for row in rows.values() if statement.selects(row)))
    taken = set(statement.takes(read))
    marks = frozenset(id_ for id_, row in rows.items() if row in taken)
    return Ours(statement, base, base, marks, tuple(sorted([*statement.gives(read), *brings])))


def landed(ours: Ours, log: Log) -> Log:
    """The log with ours as its newest version."""
    number = len(log)
    kept = {id_: row for id_, row in log[-1].rows.items() if id_ not in ours.marks}
    rows = kept | {(number, n): row for n, row in enumerate(ours.adds)}
    cut = number - 1 if ours.statement.is_blind else ours.rebased_to
    grown = (*log, Version(ours.statement, ours.base, cut, rows, frozenset()))
    return (*log, replace(grown[-1], orders=frozenset(_longer_orders(grown))))


def _longer_orders(log: Log) -> Iterator[Order]:
    """Each order of the log before, with the newest at each place that keeps real time and explains the rows."""
    number, start, wanted = len(log) - 1, bag(log[0].rows), bag(log[-1].rows)
    for order in log[-2].orders:
        ended_before = [place for place, other in enumerate(order, start=1) if other <= log[-1].base]
        for place in range(max(ended_before, default=0), number):
            longer = (*order[:place], number, *order[place:])
            if replay(start, tuple(_statement(log[other]) for other in longer)) == wanted:
                yield longer


def _statement(version: Version) -> Statement:
    assert version.statement is not None
    return version.statement


# -- the rule ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """How ours is placed behind its winners; each field but ``serializable`` breaks the rule when it is changed.

    Attributes:
        serializable: ours stands behind all winners. skips_blind: it stands behind all others, and every blind append
        counts as later. jumps: it may also precede winners that read nothing of it, whose own cut is ``unchecked``, or
        not before our transaction's ``base``, or not before our transaction's ``cut``. c1: what it marked must still be
        there. c2: no row that it selects may have come from a winner which is not blind. redo: rows that it selects
        from blind winners are done too.
    """

    serializable: bool = False
    skips_blind: bool = False
    jumps: str = "never"
    c1: bool = True
    c2: bool = True
    redo: bool = True


def place(ours: Ours, log: Log, rule: Rule) -> Ours | None:
    """Mine, carried behind those winners of the log that it must stand behind; None if it is refused."""
    if ours.statement.is_blind:
        return ours
    if rule.jumps != "never":
        return _jumped(ours, log, rule)
    return rebased_over(ours, log, cut(ours, log, rule), rule)


def cut(ours: Ours, log: Log, rule: Rule) -> int:
    """The version that ours must stand behind: the newest that is no blind append, if ours has not settled later."""
    if rule.serializable or rule.skips_blind:
        return len(log) - 1
    return max(
        (number for number in range(ours.rebased_to + 1, len(log)) if not log[number].is_blind), default=ours.rebased_to
    )


def rebased_over(ours: Ours, log: Log, to: int, rule: Rule) -> Ours | None:
    """Ours behind version ``to``, judged by the net effect of the winners up to there."""
    before, after = log[ours.rebased_to].rows, log[to].rows
    gone = before.keys() - after.keys()
    came = {id_: row for id_, row in after.items() if id_ not in before and ours.statement.selects(row)}
    blind = {id_: row for id_, row in came.items() if log[id_[0]].is_blind}
    if rule.skips_blind:
        came = {id_: row for id_, row in came.items() if id_ not in blind}
        blind = {}
    if not ours.statement.row_local:
        read = came or any(ours.statement.selects(before[id_]) for id_ in gone)
        return None if read and rule.c2 else replace(ours, rebased_to=to)
    if rule.c1 and gone & ours.marks:
        return None
    if rule.c2 and (came if rule.serializable else came.keys() - blind.keys()):
        return None
    again = _done(ours.statement, ours.base, blind if rule.redo else {}, ())
    return replace(ours, rebased_to=to, marks=ours.marks | again.marks, adds=tuple(sorted(ours.adds + again.adds)))


def _jumped(ours: Ours, log: Log, rule: Rule) -> Ours | None:
    """Ours behind the oldest version after which every winner is blind or reads nothing of it."""
    for to in range(ours.rebased_to, len(log)):
        moved = rebased_over(ours, log, to, rule)
        if moved is not None and all(_may_follow(moved, log, number, rule) for number in range(to + 1, len(log))):
            return moved
    return None


def _may_follow(ours: Ours, log: Log, number: int, rule: Rule) -> bool:
    winner = log[number]
    if winner.is_blind:
        return True
    earliest = {"unchecked": 0, "base": ours.base, "cut": ours.rebased_to}[rule.jumps]
    return winner.cut >= earliest and not any(_statement(winner).selects(row) for row in ours.touches(log))


# -- every history -----------------------------------------------------------------------------------------------------


def outcomes(statement: Statement, log: Log, base: int, rule: Rule) -> set[Ours]:
    """What the statement may land as behind this log: one for each choice of moments at which it looked."""
    first = staged(statement, log, base)
    if not first.marks and not first.adds:
        return set()  # it changes nothing, and commits nothing
    newest = len(log) - 1
    between = range(base + 1, newest)
    looks = [(*some, newest) for size in range(len(between) + 1) for some in combinations(between, size)]
    return {ours for each in looks if (ours := _after(first, log, each, rule)) is not None}


def _after(ours: Ours, log: Log, looks: Sequence[int], rule: Rule) -> Ours | None:
    for newest in looks:
        moved = place(ours, log[: newest + 1], rule)
        if moved is None:
            return None
        ours = moved
    return ours


def logs(start: Rows, alphabet: Sequence[Statement], length: int, *rules: Rule) -> Iterator[Log]:
    """Every log of up to ``length`` transactions, each of which one of the rules lets through; shorter ones come before
    those that they begin.
    """
    yield from _grown(new_log(start), alphabet, length, rules)


def _grown(log: Log, alphabet: Sequence[Statement], length: int, rules: Sequence[Rule]) -> Iterator[Log]:
    for statement in alphabet:
        for base in range(len(log)):
            for ours in {ours for rule in rules for ours in outcomes(statement, log, base, rule)}:
                longer = landed(ours, log)
                yield longer
                if len(longer) <= length and longer[-1].orders:
                    yield from _grown(longer, alphabet, length, rules)


def constructed_order(log: Log) -> Order:
    """The order of the theorem's proof: each transaction goes in right behind the order of its cut."""
    orders: list[Order] = [()]
    for number, version in enumerate(log[1:], start=1):
        known = len(orders[version.cut])
        orders.append((*orders[-1][:known], number, *orders[-1][known:]))
    return orders[-1]


def counterexample(starts: Sequence[Rows], alphabet: Sequence[Statement], length: int, rule: Rule) -> Log | None:
    """A shortest log, of up to ``length`` transactions, that no order explains; None if there is none."""
    for shorter in range(1, length + 1):
        for start in starts:
            for log in logs(start, alphabet, shorter, rule):
                if not log[-1].orders:
                    return log
    return None


def told(log: Log) -> list[tuple[str, ...]]:
    """A log in words, one line for each version: its number, its statement, its base, its cut and its rows."""
    first = ("0", "the table", "", "", _rows_told(log[0]))
    later = enumerate(log[1:], start=1)
    return [first, *((str(n), _statement(v).text, str(v.base), str(v.cut), _rows_told(v)) for n, v in later)]


def _rows_told(version: Version) -> str:
    return ", ".join(map(str, bag(version.rows)))


# -- the commit loop ---------------------------------------------------------------------------------------------------


class Writer(NamedTuple):
    """One writer that begins anew after each commit and each refusal.

    ``phase`` is what it does next. ``current``: nothing was committed since it last read or looked. ``raced``:
    something was committed since it read.
    """

    phase: str
    current: bool = True
    raced: bool = False


Writers = tuple[Writer, ...]


class Step(NamedTuple):
    """What writer number ``who`` may do, and where that leads to."""

    who: int
    what: str
    to: Writers


Loop = Callable[[Writers], Iterable[Step]]


def optimistic(writers: Writers) -> Iterator[Step]:
    """The loop of a commit: read, look, judge, put; a lost put leads to another look."""
    for who, ours in enumerate(writers):
        if ours.phase == "read":
            yield Step(who, "read", _with(writers, who, Writer("look")))
        elif ours.phase == "look":
            yield Step(who, "look", _with(writers, who, Writer("judge", raced=ours.raced or not ours.current)))
        elif ours.phase == "judge":
            yield Step(who, "judged", _with(writers, who, ours._replace(phase="put")))
            if ours.raced:  # only a winner can be a reason to refuse
                yield Step(who, "refused", _with(writers, who, Writer("read")))
        elif ours.current:
            overtaken = tuple(other._replace(current=False) for other in writers)
            yield Step(who, "committed", _with(overtaken, who, Writer("read")))
        else:
            yield Step(who, "lost", _with(writers, who, ours._replace(phase="look")))


def with_a_stale_look(writers: Writers) -> Iterator[Step]:
    """The same, where a look may miss what was committed just before."""
    yield from optimistic(writers)
    for who, ours in enumerate(writers):
        if ours.phase == "look":
            yield Step(who, "look", _with(writers, who, ours._replace(phase="judge")))


def with_two_locks(writers: Writers) -> Iterator[Step]:
    """Writers that take two locks, every second one in the other order, and wait while another holds one."""
    for who, ours in enumerate(writers):
        order = ("a", "b") if who % 2 == 0 else ("b", "a")
        held = {lock for other, writer in enumerate(writers) for lock in writer.phase if other != who}
        wanted = next((lock for lock in order if lock not in ours.phase), None)
        if wanted is None:
            yield Step(who, "committed", _with(writers, who, Writer("")))
        elif wanted not in held:
            yield Step(who, "locked", _with(writers, who, Writer(ours.phase + wanted)))


def _with(writers: Writers, who: int, ours: Writer) -> Writers:
    return (*writers[:who], ours, *writers[who + 1 :])


def reachable(starts: Collection[Writers], loop: Loop, but: Collection[str] = ()) -> dict[Writers, list[Step]]:
    """Every state that any schedule comes to, with the steps out of it, leaving out steps of some kinds."""
    graph: dict[Writers, list[Step]] = {}
    waiting = list(starts)
    while waiting:
        state = waiting.pop()
        if state not in graph:
            graph[state] = [step for step in loop(state) if step.what not in but]
            waiting.extend(step.to for step in graph[state])
    return graph


def dead_ends(graph: dict[Writers, list[Step]]) -> list[Writers]:
    """States in which nobody can do anything."""
    return [state for state, steps in graph.items() if not steps]


def has_circle(graph: dict[Writers, list[Step]]) -> bool:
    """Whether some schedule comes back to where it was."""
    left = {state: len(steps) for state, steps in graph.items()}
    before: dict[Writers, list[Writers]] = {state: [] for state in graph}
    for state, steps in graph.items():
        for step in steps:
            before[step.to].append(state)
    ends = dead_ends(graph)
    while ends:
        state = ends.pop()
        del left[state]
        for earlier in before[state]:
            left[earlier] -= 1
            if left[earlier] == 0:
                ends.append(earlier)
    return bool(left)
