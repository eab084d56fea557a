"""Plans by chance: from one integer to a table, two to six statements, a schedule and perhaps some faults.

Pure: dice in, plans out. The domains are tiny on purpose (a few rows, two or three values), so that statements meet.
Half of all plans are random; the other half follow *seeds*: shapes of histories that are known to break naive rules,
with random details, as a fuzzer starts from a corpus. Longer than other files, since it makes every kind of statement
and every such shape.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from anabranch._transaction.phases import PHASES
from laboratory.manners import BARE, manner_by
from laboratory.plans import Dice, Failure, Moments, Plan, Script, Setup
from laboratory.runs import WAYS
from laboratory.statements import (
    COLUMNS,
    EVERYWHERE,
    All,
    Any,
    Append,
    Assignment,
    Configure,
    Copy,
    Delete,
    Dynamic,
    Foreign,
    Merge,
    Missing,
    Not,
    Optimize,
    Overwrite,
    Plus,
    Put,
    Replace,
    Restore,
    Row,
    Rows,
    Select,
    Statement,
    Take,
    Test,
    Update,
    Upgrade,
    Vacuum,
    Value,
    When,
    Where,
)
from laboratory.stream_plans import with_streams

_LAYOUTS: tuple[tuple[Rows, ...], ...] = (
    (((1, 0, 0), (2, 1, 0)),),
    (((1, 0, 0), (2, 1, 0), (3, 1, None), (4, 0, 2)),),
    (((1, 0, 0), (2, 0, 1)), ((3, 1, 0), (4, 1, 2))),
    (((1, 1, 0), (2, 1, 1)), ((3, 1, 1), (4, 0, None)), ((5, 2, 2),)),
)
_BEFORE: tuple[tuple[Statement, ...], ...] = (
    (),
    (),
    (Delete(Test("k", "=", 2)),),
    (Update((Plus("x"),), Test("k", "=", 3)),),
)
_HOW_MANY = (2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 5, 6)
FAULTY = 0.08
"""How many plans have faults."""
PARTLY_LOST = 0.05
"""How many plans are of one who changes many rows, some of which others change first."""


def plan_for(seed: int) -> Plan:
    """The plan of an integer."""
    plan, dice = Maker(random.Random(seed)).plan(seed), random.Random(f"lost {seed}")
    if dice.random() < PARTLY_LOST:
        plan = _with_partly_lost(plan, Maker(dice))
    return with_streams(plan, random.Random(f"streams {seed}"))


def _with_partly_lost(plan: Plan, maker: Maker) -> Plan:
    """The plan with other statements, on a table where what is refused is redone."""
    setup, statements = replace(plan.setup, resolution="redo", vectors=True), tuple(_partly_lost(maker))
    phases = sorted(maker.dice.choice(range(1, len(PHASES) - 1)) for _ in statements[1:])
    moments = Moments(tuple(PHASES[each] for each in phases))
    schedule = moments if maker.dice.random() < 0.5 else maker.schedule(plan.seed or 0)
    return replace(plan, setup=setup, statements=statements, schedule=schedule, failures=())


class Maker:
    """Makes plans by the dice that it is given."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.layout: tuple[tuple[Rows, ...], tuple[Statement, ...]] | None = None
        """Files and what ran before, where a seed needs its own."""
        self.partitioned = False
        """Whether the table is."""
        self.moments: Moments | None = None
        """When the others run, where a seed says it."""
        self._next_key = 10

    def plan(self, seed: int) -> Plan:
        """A whole plan."""
        setup = self.setup()
        self.partitioned = setup.partitioned
        if self._often(0.5):
            statements = tuple(self.dice.choice(SHAPES)(self))
        else:
            statements = tuple(self.statement() for _ in range(self.dice.choice(_HOW_MANY)))
        if any(isinstance(each, Vacuum) for each in statements):
            statements = tuple(_surviving(each) for each in statements)
        if self.layout is not None:
            setup = replace(setup, files=self.layout[0], before=self.layout[1])
        schedule = self.schedule(seed) if self.moments is None else self.moments
        return Plan(setup, statements, schedule, self.failures(len(statements)), seed)

    def setup(self) -> Setup:
        """A table."""
        return Setup(
            isolation=self.dice.choice(("WriteSerializable", "WriteSerializable", "Serializable")),
            resolution=self.dice.choice(("row", "row", "redo", "file")),
            vectors=self._often(0.8),
            partitioned=self._often(0.15),
            checkpoints=3 if self._often(0.05) else 10,
            files=self.dice.choice(_LAYOUTS),
            before=self.dice.choice(_BEFORE),
        )

    def schedule(self, seed: int) -> Dice | Script:
        """From nearly serial to a switch at every other moment."""
        at_phase, at_call = self.dice.choice(((0.5, 0.0), (0.5, 0.02), (0.3, 0.05), (0.7, 0.1), (0.9, 0.3)))
        return Dice(seed, at_phase, at_call)

    def failures(self, writers: int) -> tuple[Failure, ...]:
        """Mostly none."""
        if not self._often(FAULTY):
            return ()
        names = tuple(WAYS)
        return tuple(
            Failure(self.dice.randrange(writers), self.dice.randrange(1, 24), self.dice.choice(names))
            for _ in range(self.dice.choice((1, 1, 2)))
        )

    def statement(self) -> Statement:
        """Any statement."""
        roll = self.dice.random()
        for bound, make in _VERBS:
            if roll < bound:
                return make(self)
        return Upgrade()

    def append(self, p: int | None = None, x: Value | str = "any") -> Append:
        """A blind append of one to three rows."""
        rows = tuple(self.row(p, x) for _ in range(self.dice.choice((1, 1, 1, 2, 3))))
        return Append(rows, bulk=self._often(0.2))

    def update(self) -> Update:
        """An update of one or two columns; rows may move out of the condition or into another's."""
        return Update(self.sets(), self.where())

    def delete(self) -> Delete:
        """A delete."""
        return Delete(self.where())

    def overwrite(self) -> Overwrite:
        """Replaces all rows."""
        return Overwrite(tuple(self.row() for _ in range(self.dice.choice((1, 2)))))

    def replace(self) -> Replace:
        """Replaces a group by new rows of it, or by none."""
        p = self.group()
        return Replace(Test("p", "=", p), tuple(self.row(p) for _ in range(self.dice.choice((0, 1, 1, 1, 2, 2)))))

    def dynamic(self) -> Dynamic:
        """Replaces the groups of new rows."""
        return Dynamic(tuple(self.row() for _ in range(self.dice.choice((1, 2)))), self.partitioned)

    def optimize(self) -> Optimize:
        """The same rows in other files."""
        return self.dice.choice((Optimize(), Optimize(), Optimize(("x",)), Optimize(("k", "x")), Optimize(purges=True)))

    def vacuum(self) -> Vacuum:
        """Removes what nobody needs, and perhaps takes writers that are only slow for dead."""
        return Vacuum(self._often(0.7))

    def restore(self) -> Restore:
        """Back by a few versions, by the product or by another engine."""
        return Restore(self.dice.choice((1, 1, 2, 3)), self._often(0.5))

    def copy(self) -> Copy:
        """A self-reading insert, by another engine in one step or by the product."""
        if self._often(0.4):
            return Copy(self.sets(), self.where())
        return Select(self.sets(), self.where(), overwrites=self._often(0.2), back=self.dice.choice((0, 0, 0, 1)))

    def foreign(self, inner: Statement | None = None) -> Foreign:
        """Any change of rows, or the one given, by another engine in any manner."""
        changes = (self.append, self.update, self.delete, self.replace, self.overwrite, self.merge, self.copy)
        return Foreign(inner or self.dice.choice(changes)(), manner_by(self.dice))

    def merge(self) -> Merge:
        """An upsert by key, by group or by value, or some other MERGE."""
        by = self.dice.choice(("k", "k", "k", "p", "x"))
        keys = self.dice.sample(range(1, self._next_key + 2), 2) if by == "k" else self.dice.sample((0, 1, 2, 3), 2)
        place = COLUMNS.index(by)
        rows = [self.row() for _ in keys[: self.dice.choice((1, 1, 2))]]
        source = tuple((*row[:place], key, *row[place + 1 :]) for row, key in zip(rows, keys, strict=False))
        also = self._simple() if self._often(0.2) else EVERYWHERE
        return Merge(source, (by,), self.dice.choice(_CLAUSES)(self), also)

    def row(self, p: int | None = None, x: Value | str = "any") -> Row:
        """A new row."""
        self._next_key += 1
        value = self.value() if isinstance(x, str) else x
        return (self._next_key, self.group() if p is None else p, value)

    def row_of(self, key: int) -> Row:
        """A row with this ``k``."""
        return (key, self.group(), self.value())

    def group(self) -> int:
        """A value of ``p``."""
        return self.dice.choice((0, 0, 1, 1, 1, 2))

    def value(self) -> Value:
        """A value of ``x``."""
        return self.dice.choice((0, 0, 1, 1, 2, 3, None))

    def sets(self) -> tuple[Assignment, ...]:
        """One or two assignments."""
        choices: tuple[Callable[[], tuple[Assignment, ...]], ...] = (
            lambda: (Plus("x"),),
            lambda: (Plus("x"),),
            lambda: (Put("x", self.value()),),
            lambda: (Put("p", self.group()),),
            lambda: (Put("p", self.group()), Plus("x")),
        )
        return self.dice.choice(choices)()

    def where(self) -> Where:
        """A condition, mostly of one column."""
        roll = self.dice.random()
        if roll < 0.80:
            return self._simple()
        if roll < 0.87:
            return All((self._simple(), self._simple()))
        if roll < 0.92:
            return Any((self._simple(), self._simple()))
        return Not(self._simple()) if roll < 0.96 else EVERYWHERE

    def perhaps(self, make: Callable[[], Statement]) -> tuple[Statement, ...]:
        """One more statement, or none."""
        return (make(),) if self._often(0.5) else ()

    def _simple(self) -> Where:
        roll = self.dice.random()
        if roll < 0.35:
            return Test("p", "=", self.group())
        if roll < 0.55:
            return Test("k", self.dice.choice(("=", "=", "<", ">=")), self.dice.randrange(1, self._next_key + 1))
        if roll < 0.95:
            return Test("x", self.dice.choice(("=", "<>", "<", "<=", ">", ">=")), self.dice.randrange(0, 4))
        return Missing("x")

    def _often(self, share: float) -> bool:
        return self.dice.random() < share


def _surviving(statement: Statement) -> Statement:
    """A statement beside a VACUUM RETAIN 0: a RESTORE is ours, since no other engine's looks for running VACUUMs."""
    return replace(statement, ours=True) if isinstance(statement, Restore) else statement


_UPSERT = (When("matched", sets=(Take("x"),)), When("not matched"))
_CLAUSES: tuple[Callable[[Maker], tuple[When, ...]], ...] = (
    lambda maker: _UPSERT,
    lambda maker: _UPSERT,
    lambda maker: (When("matched", sets=(Take("p"), Plus("x"))), When("not matched")),
    lambda maker: (When("not matched"),),
    lambda maker: (When("matched"),),
    lambda maker: (
        When("matched", maker.where()),
        When("matched", sets=(Take("x"),)),
        When("not matched", maker.where()),
    ),
    lambda maker: (When("matched", maker.where(), (Plus("x"),)), When("not matched")),
    lambda maker: (*_UPSERT, When("not matched by source", maker.where())),
    lambda maker: (When("not matched by source", maker.where(), (Plus("x"),)),),
)
_VERBS: tuple[tuple[float, Callable[[Maker], Statement]], ...] = (
    (0.22, Maker.append),
    (0.41, Maker.update),
    (0.52, Maker.delete),
    (0.56, Maker.foreign),
    (0.70, Maker.merge),
    (0.80, Maker.optimize),
    (0.83, Maker.replace),
    (0.85, Maker.dynamic),
    (0.88, Maker.overwrite),
    (0.93, Maker.copy),
    (0.95, Maker.vacuum),
    (0.97, Maker.restore),
    (0.99, lambda maker: Configure()),
)


# -- seeds: shapes that break naive rules ------------------------------------------------------------------------------


def _blind_then_reader(maker: Maker) -> Sequence[Statement]:
    """Ours changes p=1; a blind append brings p=1; then somebody copies p=1: the append may not be skipped."""
    return (
        Update((Put("x", maker.dice.randrange(3, 6)),), Test("p", "=", 1)),
        maker.append(p=1, x=0),
        Copy((Put("p", 2),), Test("p", "=", 1)),
    )


def _blind_then_blank(maker: Maker) -> Sequence[Statement]:
    """The same, where somebody looks for what ours makes of p=1, finds nothing, and says little or nothing of it."""
    maker.layout = ((((1, 1, 0), (2, 0, 0)), ((3, 1, 2),)), ())
    where = Test("p", "=", 2)
    reads: tuple[Statement, ...] = (
        Select((Put("p", 0),), where),
        Replace(where, ()),
        Foreign(Copy((Put("p", 0),), where), BARE),
        maker.foreign(Delete(where)),
        maker.foreign(Update((Plus("k", 100),), where)),
    )
    others = (maker.append(p=1, x=0), maker.dice.choice(reads), *maker.perhaps(maker.append))
    phases = sorted(maker.dice.choice(range(len(PHASES) - 1)) for _ in others)
    if maker.dice.random() < 0.7:  # by chance alone it is rare that one ends before the next begins
        maker.moments = Moments(tuple(PHASES[each] for each in phases))
    return (Update((Put("p", 2),), Test("p", "=", 1)), *others)


def _blind_then_marker(maker: Maker) -> Sequence[Statement]:
    """The same, where the second winner changes the appended row and reads what ours makes of others."""
    low = maker.dice.randrange(1, 3)
    return (
        Update((Put("x", low + 1),), Test("p", "=", 1)),
        maker.append(p=1, x=low),
        Update((Plus("k", 100),), Test("x", ">=", low)),
    )


def _write_skew(maker: Maker) -> Sequence[Statement]:
    """Each moves its rows into what the other reads."""
    a, b = maker.dice.sample((0, 1, 2), 2)
    return (Update((Put("p", b),), Test("p", "=", a)), Update((Put("p", a),), Test("p", "=", b)))


def _predecessor_by_footprint(maker: Maker) -> Sequence[Statement]:
    """U jumps before a blind append; T, older than U, may not go before U though U reads nothing of it."""
    return (
        maker.append(p=1, x=0),
        Update((Put("x", 3),), Test("p", "=", 1)),
        Copy((Put("p", 2),), Test("p", "=", 1)),
        *maker.perhaps(maker.update),
    )


def _restored(maker: Maker) -> Sequence[Statement]:
    """Rows that were deleted come back while others run over many files."""
    wide = (EVERYWHERE, Test("k", "<", 10), Test("x", ">=", 0), maker.where())
    return (
        Delete(maker.where()),
        Restore(maker.dice.choice((1, 1, 2)), maker.dice.choice((False, False, True))),
        Update(maker.sets(), maker.dice.choice(wide)),
        *maker.perhaps(lambda: Delete(maker.dice.choice(wide))),
    )


def _gone_and_back(maker: Maker) -> Sequence[Statement]:
    """A file that ours read is emptied by one winner and brought back by the next, with a lost put between them."""
    maker.layout = ((((1, 1, 0), (2, 0, 0)), ((3, 1, 0), (4, 2, 1))), (Delete(Test("k", "=", 1)),))
    if maker.dice.random() < 0.3:  # by chance alone the put is hardly ever lost to the second
        maker.moments = Moments((maker.dice.choice(PHASES[:2]), "put"))
    return (Update((Plus("x"),), Test("p", "=", 1)), Delete(Test("p", "=", 0)), Restore(maker.dice.choice((1, 2, 2))))


def _same_row(maker: Maker) -> Sequence[Statement]:
    """All want one row."""
    where = Test("k", "=", maker.dice.randrange(1, 5))
    return tuple(
        maker.dice.choice((Delete(where), Update((Plus("x"),), where))) for _ in range(maker.dice.choice((2, 3)))
    )


def _upserts(maker: Maker) -> Sequence[Statement]:
    """Merges by key: of one new key, of different ones, and beside blind appends of the same keys."""
    key = maker.dice.choice((1, 2, 20, 21))
    return (
        *(Merge((maker.row_of(k),), ("k",), _UPSERT) for k in (key, maker.dice.choice((key, 22)))),
        maker.dice.choice((maker.merge(), Append((maker.row_of(key),)), Delete(Test("k", "=", key)))),
        *maker.perhaps(lambda: maker.dice.choice((maker.statement(), Update((Plus("x"),), Test("k", ">=", 20))))),
    )


def _partly_lost(maker: Maker) -> Sequence[Statement]:
    """One changes many rows, of which others change, delete or move a few first."""
    few = lambda: Test("k", "=", maker.dice.randrange(1, 5))  # noqa: E731
    source = tuple(maker.row_of(key) for key in sorted(maker.dice.sample((1, 2, 3, 4, 30, 31), 4)))
    many = (
        Merge(source, ("k",), maker.dice.choice(_CLAUSES)(maker)),
        Merge(source, ("k",), _UPSERT),
        Merge(source, ("k",), (When("matched"), When("not matched"))),
        Update(maker.sets(), Test("k", "<", 30)),
        Delete(Test("k", "<", 30)),
    )
    others = (
        lambda: Update(maker.sets(), few()),
        lambda: Update((Plus("x"),), few()),
        lambda: Delete(few()),
        lambda: Merge((maker.row_of(maker.dice.randrange(1, 5)),), ("k",), _UPSERT),
        maker.optimize,
        maker.append,
    )
    return (maker.dice.choice(many), *(maker.dice.choice(others)() for _ in range(maker.dice.choice((1, 2, 3)))))


def _untouched_match(maker: Maker) -> Sequence[Statement]:
    """A row that ours matched, and no clause touched, goes: then its source row ought to have been inserted."""
    key = maker.dice.randrange(1, 5)
    never = Test("x", "=", 99)
    return (
        Merge(
            (maker.row_of(key), maker.row_of(30)), ("k",), (When("matched", never, (Take("x"),)), When("not matched"))
        ),
        Delete(Test("k", "=", key)),
        maker.dice.choice((Delete(Test("k", "=", 30)), maker.update())),
    )


def _appends(maker: Maker) -> Sequence[Statement]:
    """Blind appends beside one that changes."""
    return (maker.update(), maker.append(), *maker.perhaps(maker.append), maker.statement())


def _computed(maker: Maker) -> Sequence[Statement]:
    """One inserts what it computed from the table, perhaps from an older version, while others change what it read."""
    select = Select(maker.sets(), maker.where(), overwrites=maker.dice.choice((False, False, True)), back=1)
    return (maker.dice.choice((maker.delete(), maker.update(), maker.append())), select, *maker.perhaps(maker.update))


def _metadata(maker: Maker) -> Sequence[Statement]:
    """The metadata changes under the writers' feet."""
    changes = (maker.dice.choice((Configure(), Upgrade())), maker.update(), maker.append())
    return (*changes, *maker.perhaps(maker.delete))


def _moved(maker: Maker) -> Sequence[Statement]:
    """Rows are moved under the feet of those who change them, perhaps twice."""
    maker.layout = (
        (((1, 1, 0), (2, 1, 2), (3, 1, None)), ((4, 1, 0), (5, 0, 1)), ((6, 0, 2), (7, 1, 1))),
        maker.dice.choice(((), (Delete(Test("k", "=", 2)),))),
    )
    changes = (maker.update, maker.delete, maker.merge, maker.overwrite, maker.replace, maker.append, maker.copy)
    return (
        maker.dice.choice(changes)(),
        maker.optimize(),
        maker.dice.choice((*changes, maker.optimize))(),
        *maker.perhaps(lambda: maker.dice.choice((*changes, maker.optimize))()),
        *maker.perhaps(lambda: maker.dice.choice((maker.restore, maker.vacuum))()),
    )


def _vacuumed(maker: Maker) -> Sequence[Statement]:
    """What writers have staged, or look at, is taken for nobody's."""
    changes = (maker.update, maker.delete, maker.merge, maker.overwrite, maker.append, maker.optimize, maker.restore)
    return (
        maker.dice.choice(changes)(),
        maker.vacuum(),
        maker.dice.choice(changes)(),
        *maker.perhaps(maker.vacuum),
        *maker.perhaps(lambda: maker.dice.choice(changes)()),
    )


def _overwritten(maker: Maker) -> Sequence[Statement]:
    """Overwrites among appends."""
    return (
        maker.dice.choice((maker.overwrite(), maker.replace())),
        maker.append(),
        maker.update(),
        *maker.perhaps(lambda: maker.dice.choice((maker.overwrite(), maker.append()))),
    )


SHAPES: tuple[Callable[[Maker], Sequence[Statement]], ...] = (
    _blind_then_reader,
    _blind_then_blank,
    _blind_then_marker,
    _write_skew,
    _predecessor_by_footprint,
    _restored,
    _gone_and_back,
    _same_row,
    _upserts,
    _untouched_match,
    _appends,
    _computed,
    _metadata,
    _overwritten,
    _moved,
    _moved,
    _vacuumed,
)
"""The corpus; docs/concepts/isolation.md tells the stories of the first four."""
