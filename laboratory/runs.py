"""Runs: a plan played on the product, and everything that was seen.

Knows commands, stores and the scheduler. Judges nothing (`laboratory.verdicts` does). Each run has a table of
its own in memory, a clock of its own and names of its own, so that runs do not know of each other and repeat exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from anabranch._log.file_names import commit_name
from anabranch._log.log import forget, remember
from anabranch._storage import Store
from anabranch._storage.open import mounted
from anabranch._transaction.retry import Runtime
from anabranch.errors import (
    AnabranchError,
    CommitOutcomeUnknown,
    DeltaConcurrentModificationException,
    PutOutcomeUnknown,
    StoreError,
    StoreFull,
    StorePermissionDenied,
)
from anabranch.testing.stores import Call, DictStore, ObservedStore, StoredObject
from laboratory.feeds import Feeds, plain_feeds, with_ours
from laboratory.log_reader import Reader, Version
from laboratory.places import EPOCH_MS, RETRY, InMemory, Place
from laboratory.plans import Failure, Plan, schedule_of
from laboratory.scheduler import Killed, NoProgress, Scheduler, current_task
from laboratory.statements import Follow, Statement, Told
from laboratory.verbs import Done, Frame, Session, gone_from, play

_HANGS_SECONDS = 300.0
_IN_MEMORY = InMemory()
_numbers = count()


@dataclass(frozen=True)
class Way:
    """A way for a call to fail: the error, or None for the death of the writer; ``after`` the effect or before it;
    ``lasts`` where every later call of the writer fails too; ``hangs`` where time passes first.
    """

    error: type[StoreError] | None
    after: bool = False
    lasts: bool = False
    hangs: bool = False


WAYS: Mapping[str, Way] = {
    "request lost": Way(PutOutcomeUnknown),
    "reply lost": Way(PutOutcomeUnknown, after=True),
    "disk full": Way(StoreFull),
    "permission denied": Way(StorePermissionDenied),
    "hangs, request lost": Way(PutOutcomeUnknown, hangs=True),
    "hangs, reply lost": Way(PutOutcomeUnknown, after=True, hangs=True),
    "cut off": Way(PutOutcomeUnknown, lasts=True),
    "cut off, reply lost": Way(PutOutcomeUnknown, after=True, lasts=True),
    "killed": Way(None),
    "killed after": Way(None, after=True),
}
"""All ways, by name."""


@dataclass(frozen=True)
class Act:
    """What one writer did: when (in steps), between which versions of the table, and what it was told.

    ``told`` is one of ``committed``, ``nothing`` (no row to change), ``refused`` (a conflict), ``failed`` (any other
    documented error), ``unknown`` (`CommitOutcomeUnknown`), ``killed``, and ``broken`` (an error not documented).
    """

    who: int
    statement: Statement
    began: int
    ended: int
    first_version: int
    last_version: int
    told: str
    version: int | None = None
    changed: Told = None
    error: BaseException | None = None


class Event(NamedTuple):
    """A moment: who came where; ``step`` counts moments over all writers."""

    step: int
    who: int
    moment: str


@dataclass(frozen=True)
class History:
    """Everything that was seen of one plan.

    Attributes:
        base: the version that the writers began with.
        calls: how many calls of the store each writer made.
        failed: what the store said to each writer whose calls failed.
        turns: the switches between writers, for a `Script`.
        faults: what the reader found wrong in the log.
        feeds: what each version changed, where the table has a feed or is read as a stream.
        stuck: why it did not come to an end.
    """

    plan: Plan
    base: int
    acts: tuple[Act, ...]
    versions: tuple[Version, ...]
    events: tuple[Event, ...]
    calls: Mapping[int, Sequence[Call]]
    turns: tuple[tuple[int, int], ...]
    faults: tuple[str, ...] = ()
    stuck: str | None = None
    kept: Mapping[str, StoredObject] = field(default_factory=dict)
    failed: Mapping[int, Sequence[str]] = field(default_factory=dict)
    feeds: Feeds | None = None


def run(plan: Plan, place: Place = _IN_MEMORY) -> History:
    """Play a plan, in memory unless another place is given.

    Example:
        >>> violations(run(plan_for(42)))
        []
    """
    return _Run(plan, place).play()


@contextmanager
def reopened(history: History) -> Iterator[str]:
    """The table as a history left it, at the location that the block is given."""
    store = DictStore(f"memory://laboratory/after-{next(_numbers)}", history.kept)
    with mounted(store) as location:
        try:
            yield location
        finally:
            forget(location)


class _Run:
    """One run."""

    def __init__(self, plan: Plan, place: Place) -> None:
        self._plan, self._place, self._schedule, self._number = plan, place, schedule_of(plan), next(_numbers)
        self._clock_ms = float(EPOCH_MS)
        self._base = place.base(plan.setup, self._now_ms)
        self._store, self._known = self._base.store, self._base.version
        self._scheduler = Scheduler(self._schedule, self._note)
        self._stage = _FaultyStore(self._store, self._moment, self._hang, plan.failures)
        self._events: list[Event] = []
        self._acts: dict[int, Act] = {}

    def play(self) -> History:
        if self._base.snapshot is not None:
            remember(self._base.snapshot)
        reader = Reader(self._store, gone_from(self._store))
        with mounted(self._stage):
            try:
                stuck = self._stuck()
                versions = reader.versions()
                feeds = self._feeds(reader, len(versions))
                if self._plan.setup.row_ids:
                    reader.check_row_ids()
            finally:
                forget(self._store.url)
        return History(
            plan=self._plan,
            base=self._base.version,
            acts=tuple(self._acts[who] for who in sorted(self._acts)),
            versions=tuple(versions),
            events=tuple(self._events),
            calls=self._stage.of,
            turns=tuple(self._schedule.turns),
            faults=tuple(reader.faults),
            stuck=stuck,
            kept=self._store.kept if isinstance(self._store, DictStore) else {},
            failed=self._stage.failed,
            feeds=feeds,
        )

    def _stuck(self) -> str | None:
        """Let the writers run; why they did not come to an end, if so."""
        try:
            self._scheduler.run(self._tasks())
        except NoProgress as error:
            return str(error)
        return None

    def _feeds(self, reader: Reader, versions: int) -> Feeds | None:
        """What the versions changed, where the table has a feed or somebody reads it as a stream."""
        has_feed = self._plan.setup.feed
        if not has_feed and Follow not in map(type, self._plan.statements):
            return None
        feeds = plain_feeds(reader, versions)
        dice = random.Random(f"feeds {self._plan.seed}")
        return with_ours(feeds, self._store.url, dice) if has_feed else feeds

    def _tasks(self) -> list[Callable[[], None]]:
        """One for each program, or for each statement; as in a process of its own, nothing is set but what it sets."""
        programs: dict[int, list[int]] = {}
        for who in range(len(self._plan.statements)):
            programs.setdefault(self._plan.program(who), []).append(who)
        return [partial(Context().run, self._run_program, tuple(each)) for each in programs.values()]

    def _run_program(self, statements: Sequence[int]) -> None:
        frame = Frame()
        for who in statements:
            frame.ran = None
            self._act(who, self._plan.statements[who], frame)
            if self._acts[who].told == "killed":
                return

    def _act(self, who: int, statement: Statement, frame: Frame) -> None:
        began, first = self._scheduler.step, self._newest()
        self._events.append(Event(began, who, "begins"))
        told, done, error = _told(statement, self._session(who, frame))
        self._events.append(Event(self._scheduler.step, who, told))
        self._acts[who] = Act(
            who=who,
            statement=done.statement if done else frame.ran or statement,
            began=began,
            ended=self._scheduler.step,
            first_version=first,
            last_version=self._newest(),
            told=told,
            version=done.version if done else None,
            changed=done.changed if done else None,
            error=error,
        )

    def _session(self, who: int, frame: Frame) -> Session:
        # the run's number too: vectors are kept by name, and no two runs may mean two things by one
        ids = (UUID(int=((who + 1) << 96) | (self._number << 32) | n) for n in count(1))
        runtime = Runtime(
            now_ms=self._now_ms,
            seconds=lambda: self._clock_ms / 1000,
            sleep=self._sleep,
            random=lambda: 1.0,
            new_id=lambda: next(ids),
            user=lambda: f"writer {who}",
        )
        engine = self._place.engine(runtime.new_id, self._store)
        return Session(self._store.url, self._store, engine, self._place, RETRY, runtime, name_of(who), frame)

    def _newest(self) -> int:
        while self._store.head(commit_name(self._known + 1)) is not None:
            self._known += 1
        return self._known

    def _now_ms(self) -> int:
        self._clock_ms += 1
        return int(self._clock_ms)

    def _sleep(self, seconds: float) -> None:
        self._clock_ms += seconds * 1000
        self._moment("sleep")

    def _hang(self) -> None:
        self._clock_ms += _HANGS_SECONDS * 1000

    def _moment(self, moment: str) -> None:
        self._scheduler.pause(moment)

    def _note(self, step: int, who: int, moment: str) -> None:
        self._events.append(Event(step, who, moment))


def _told(statement: Statement, session: Session) -> tuple[str, Done | None, BaseException | None]:
    try:
        done = play(statement, session)
    except DeltaConcurrentModificationException as error:
        return "refused", None, error
    except CommitOutcomeUnknown as error:
        return "unknown", None, error
    except AnabranchError as error:
        return "failed", None, error
    except Killed as error:
        return "killed", None, error
    except Exception as error:  # an error that nothing documents is what the laboratory looks for
        return "broken", None, error
    return ("nothing" if done.version is None else "committed"), done, None


def name_of(who: int) -> str:
    """How the transactions of a writer begin, by which its commits are known again."""
    return f"{who + 1:08x}"


class _FaultyStore(ObservedStore):
    """The store as the writers see it: each call is a moment, and some fail."""

    def __init__(
        self, inner: Store, moment: Callable[[str], None], hang: Callable[[], None], failures: Sequence[Failure]
    ) -> None:
        super().__init__(inner)
        self.of: dict[int, list[Call]] = {}
        self.failed: dict[int, list[str]] = {}
        self._moment, self._hang = moment, hang
        self._failures = {(each.who, each.call): WAYS[each.how] for each in failures}
        self._lasting: dict[int, Way] = {}

    def _run(self, method: str, about: Any, *rest: Any, **named: Any) -> Any:
        who, carry_out = current_task(), partial(getattr(self.inner, method), about, *rest, **named)
        if who is None:  # a thread of the product's own pools
            return carry_out()
        self._moment(f"{method} {about}")
        calls = self.of.setdefault(who, [])
        call = Call(len(calls) + 1, method, about)
        calls.append(call)
        way = self._lasting.get(who) or self._failures.get((who, call.number))
        return carry_out() if way is None else self._fail(way, who, call, carry_out)

    def _fail(self, way: Way, who: int, call: Call, carry_out: Callable[[], Any]) -> Any:
        if way.after and who not in self._lasting:
            carry_out()
        if way.hangs:
            self._hang()
        if way.lasts or way.error is None:
            self._lasting[who] = way
        if way.error is None:
            raise Killed(f"writer {who} dies at {call.method} {call.about}")
        kind = way.error if call.is_put or way.error is not PutOutcomeUnknown else StoreError
        error = kind(name=str(call.about), root=self.url, reason="as the plan says.")
        self.failed.setdefault(who, []).append(str(error))
        raise error


__all__ = ["WAYS", "Act", "Event", "History", "Way", "name_of", "reopened", "run"]
