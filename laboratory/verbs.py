"""Verbs: how each statement of the laboratory is run on the product.

Knows the commands; each later verb gets its line here. A `Session` is what one writer has: its location, its engine,
its clock and its random numbers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from anabranch._api.transaction import TransactionBlock
from anabranch._expressions import Context, condition
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.dials import Dials
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.predicates import And, Predicate, Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch._storage import Store
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append as AppendCommand
from anabranch.commands.dml.delete import Delete as DeleteCommand
from anabranch.commands.dml.merge import Merge as MergeCommand
from anabranch.commands.dml.update import Update as UpdateCommand
from anabranch.commands.dml.write import StreamBatch
from anabranch.commands.dml.write import Write as WriteCommand
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.optimize import Optimize as OptimizeCommand
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.maintenance.restore import Restore as RestoreCommand
from anabranch.commands.maintenance.vacuum import DEAD_AFTER_SECONDS
from anabranch.commands.maintenance.vacuum import Vacuum as VacuumCommand
from anabranch.commands.opening import file_set, open_log
from anabranch.commands.queries.read import files_to_read, note_files
from anabranch.commands.row_changes import Outcome
from anabranch.commands.transactions import StatementGroup
from anabranch.errors import StoreError
from anabranch.testing.arrow_engine import ArrowEngine
from anabranch.testing.stores import DictStore
from laboratory.blocks import Block, Look, made_of
from laboratory.foreign_engine import OtherEngine
from laboratory.held_rows import Bring, Brought, Hold
from laboratory.log_reader import Reader, Version
from laboratory.statements import (
    COLUMNS,
    Append,
    Assignment,
    Batch,
    Configure,
    Copy,
    Delete,
    Dynamic,
    Follow,
    Foreign,
    Merge,
    Optimize,
    Overwrite,
    Replace,
    Restore,
    Row,
    Rows,
    Select,
    Statement,
    Told,
    Update,
    Upgrade,
    Vacuum,
)
from laboratory.stranger_commits import Stranger
from laboratory.stream_readers import followed

SCHEMA = Struct(tuple(Field(name, "long", True, {}) for name in COLUMNS))
ARROW = pa.schema([(name, pa.int64()) for name in COLUMNS])
_NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class EngineExpressions(Protocol):
    """Turns a statement's expressions into what an engine takes."""

    def value(self, assignment: Assignment) -> Any:
        """An assignment's value."""
        ...

    def matching(self, merge: Merge) -> MergePlan:
        """A MERGE's condition and clauses."""
        ...

    def source(self, select: Copy, location: str, version: int, rows: pa.Table) -> Any:
        """What an INSERT SELECT reads of a version."""
        ...


@dataclass
class Frame:
    """What a program holds: a version of the table; and what it has run so far of a block."""

    held: Version | None = None
    ran: Statement | None = None


@dataclass(frozen=True)
class Session:
    """One writer: where its table is, and what it runs with.

    Attributes:
        store: the store beneath, which nobody watches.
        expressions: turns expressions into what the engine takes.
        frame: what its program holds.
    """

    location: str
    store: Store
    engine: Engine
    expressions: EngineExpressions
    retry: RetryPolicy
    runtime: Runtime
    name: str
    frame: Frame = field(default_factory=Frame)


@dataclass(frozen=True)
class Done:
    """What a statement said: the version at which it stands (None: it had nothing to do) and the rows it changed."""

    version: int | None
    changed: Told
    statement: Statement


def play(statement: Statement, session: Session) -> Done:
    """Run a statement; its errors are the product's."""
    return _VERBS[type(statement)](statement, session)


def table_of(rows: Rows) -> pa.Table:
    """Rows as Arrow."""
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=ARROW)


@lru_cache(maxsize=4096)
def condition_of(text: str) -> Condition:
    """A condition as the product understands its SQL."""
    return condition(text, Context("lab", SCHEMA, _NOW, "UTC", lambda names: True))


def _append(statement: Append, session: Session) -> Done:
    if statement.bulk:
        command = WriteCommand(session.location, table_of(statement.rows), "append")
        done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    else:
        rows = table_of(statement.rows)
        done = AppendCommand(session.location, rows).run(
            context=RunContext(retry=session.retry, runtime=session.runtime)
        )
    return Done(done.version if done else None, None, statement)


def _batch(statement: Batch, session: Session) -> Done:
    numbered = StreamBatch(statement.query, statement.number, "complete" if statement.complete else "append")
    mode = "overwrite" if statement.complete else "append"
    command = WriteCommand(session.location, table_of(statement.rows), mode, batch=numbered)
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.version if done else None, None, statement)


def _overwrite(statement: Overwrite, session: Session) -> Done:
    command = WriteCommand(session.location, table_of(statement.rows), "overwrite")
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.version if done else None, None, statement)


def _replace(statement: Replace, session: Session) -> Done:
    command = WriteCommand(
        session.location, table_of(statement.rows), "overwrite", replace_where=condition_of(str(statement.where))
    )
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.version if done else None, None, statement)


def _dynamic(statement: Dynamic, session: Session) -> Done:
    command = WriteCommand(session.location, table_of(statement.rows), "overwrite", dynamic=True)
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.version if done else None, None, statement)


def _select(statement: Select, session: Session) -> Done:
    versions = Reader(session.store, gone_from(session.store)).versions()
    read = versions[max(len(versions) - 1 - statement.back, 0)]
    source = session.expressions.source(statement, session.location, read.number, table_of(statement.chosen(read.rows)))
    command = WriteCommand(session.location, source, "overwrite" if statement.overwrites else "append")
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.version if done else None, None, statement)


def _hold(statement: Hold, session: Session) -> Done:
    session.frame.held = Reader(session.store, gone_from(session.store)).versions()[-1]
    return Done(None, 0, statement)


def _bring(statement: Bring, session: Session) -> Done:
    held = session.frame.held
    assert held is not None, "a program reads before it writes what it has read"
    inner = statement.brought(held.rows)
    rows = inner.source if isinstance(inner, Merge) else inner.rows
    source = session.expressions.source(statement, session.location, held.number, table_of(rows))
    context = RunContext(retry=session.retry, runtime=session.runtime)
    if isinstance(inner, Merge):
        matching = session.expressions.matching(inner)
        where = replace(condition_of(str(inner.also)), text=str(inner))
        done = MergeCommand(session.location, source, matching, where).run(session.engine, context).committed
    else:
        done = WriteCommand(session.location, source, statement.mode).run(session.engine, context)
    return Done(done.version if done else None, None, Brought(inner, held.number))


def _block(statement: Block, session: Session) -> Done:
    group = StatementGroup(session.engine, session.runtime)
    ran, answers, seen = list[Any](), list[Told](), tuple[Row, ...]()
    dials = Dials(statement.isolation, statement.resolution)
    with TransactionBlock(group, session.location, None, dials) as block:
        for each in statement.statements:
            session.runtime.sleep(0.0)  # a moment at which others may go on
            try:
                answer, seen = _inside(made_of(each, seen), seen, session)
            except StoreError:
                if not statement.goes_on:
                    raise
                continue
            ran.append(each)
            answers.append(answer)
            session.frame.ran = replace(statement, statements=tuple(ran))
        if statement.gives_up:
            block.roll_back()
    version = group.committed.version if group.committed else None
    return Done(version, tuple(answers), replace(statement, statements=tuple(ran)))


def _inside(statement: Statement | None, seen: Rows, session: Session) -> tuple[Told, Rows]:
    """Run one statement of the open transaction, if there is one: what it tells, and what the program has seen last."""
    if isinstance(statement, Look):
        where, snapshot = condition_of(str(statement.where)), open_log(session.location).snapshot()
        files = _look(snapshot, where, statement.known)
        found = statement.seen(rows_of(file_set(snapshot, files)))
        return found, found
    if isinstance(statement, Select):
        snapshot = open_log(session.location).snapshot()
        chosen = table_of(statement.chosen(rows_of(file_set(snapshot))))
        source = session.expressions.source(statement, session.location, snapshot.version, chosen)
        command = WriteCommand(session.location, source, "overwrite" if statement.overwrites else "append")
        command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
        return None, seen
    return None if statement is None else play(statement, session).changed, seen


def _look(snapshot: Snapshot, where: Condition, known: str) -> pa.Table:
    """The files of a query, of which the product knows so much."""
    if known == "files":
        note_files(snapshot, where.predicate)
        return snapshot.files
    return files_to_read(snapshot, *((where.predicate, where) if known == "whole" else (_part_of(where),)))


def _part_of(where: Condition) -> Predicate:
    """The predicate where only this condition is known of a longer one."""
    return And((where.predicate, Unknown()))


def rows_of(files: FileSet) -> Rows:
    """The live rows of some files."""
    return tuple(tuple(row[name] for name in COLUMNS) for row in ArrowEngine().rows(files))


def _delete(statement: Delete, session: Session) -> Done:
    command = DeleteCommand(session.location, condition_of(str(statement.where)))
    return _changed(statement, command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime)))


def _update(statement: Update, session: Session) -> Done:
    sets = {each.column: session.expressions.value(each) for each in statement.sets}
    command = UpdateCommand(session.location, sets, condition_of(str(statement.where)))
    return _changed(statement, command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime)))


def _changed(statement: Statement, outcome: Outcome) -> Done:
    return Done(outcome.committed.version if outcome.committed else None, outcome.rows, statement)


def _merge(statement: Merge, session: Session) -> Done:
    where = replace(condition_of(str(statement.also)), text=str(statement))
    matching = session.expressions.matching(statement)
    command = MergeCommand(session.location, table_of(statement.source), matching, where)
    merged = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(merged.committed.version if merged.committed else None, merged.rows, statement)


def _optimize(statement: Optimize, session: Session) -> Done:
    by = tuple((column,) for column in statement.by)
    command = Purge(session.location) if statement.purges else OptimizeCommand(session.location, zorder_by=by)
    done = command.run(session.engine, RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.committed.version if done.committed else None, None, statement)


def _copy(statement: Copy, session: Session) -> Done:
    read = Reader(session.store, gone_from(session.store)).versions()[-1].rows
    new, _ = statement.apply(read)
    return Done(_other(session).insert(new[len(read) :], blind=False), None, statement)


def _foreign(statement: Foreign, session: Session) -> Done:
    stranger = Stranger(session.store, session.name)
    return Done(stranger.run(statement, gone_from(session.store)), None, statement)


def gone_from(store: Store) -> Mapping[str, Any]:
    """What a VACUUM has removed, where the store remembers it."""
    return store.gone if isinstance(store, DictStore) else {}


def _vacuum(statement: Vacuum, session: Session) -> Done:
    dead_after = 0.0 if statement.spares_none else DEAD_AFTER_SECONDS
    command = VacuumCommand(session.location, 0, check_retention=False, dead_after_seconds=dead_after)
    command.run(context=RunContext(runtime=session.runtime))
    return Done(None, None, statement)


def _restore(statement: Restore, session: Session) -> Done:
    versions = Reader(session.store, gone_from(session.store)).versions()
    back = versions[max(len(versions) - 1 - statement.back, 0)]
    after = replace(statement, rows=back.rows)
    if not statement.ours:
        return Done(_other(session).restore(back.number), None, after)
    if back is versions[-1]:
        return Done(None, None, Vacuum())  # there is nothing older, and nothing is done
    command = RestoreCommand(session.location, back.number)
    done = command.run(context=RunContext(retry=session.retry, runtime=session.runtime))
    return Done(done.committed.version if done.committed else None, None, after)


def _follow(statement: Follow, session: Session) -> Done:
    seen = followed(statement, session.location, session.runtime.sleep)
    return Done(None, None, replace(statement, seen=seen))


def _configure(statement: Configure, session: Session) -> Done:
    return Done(_other(session).configure(), None, statement)


def _upgrade(statement: Upgrade, session: Session) -> Done:
    return Done(_other(session).upgrade(), None, statement)


def _other(session: Session) -> OtherEngine:
    return OtherEngine(session.store, session.name)


_VERBS: Mapping[type, Callable[[Any, Session], Done]] = {
    Append: _append,
    Block: _block,
    Batch: _batch,
    Overwrite: _overwrite,
    Replace: _replace,
    Delete: _delete,
    Update: _update,
    Merge: _merge,
    Dynamic: _dynamic,
    Select: _select,
    Hold: _hold,
    Bring: _bring,
    Optimize: _optimize,
    Copy: _copy,
    Foreign: _foreign,
    Restore: _restore,
    Configure: _configure,
    Upgrade: _upgrade,
    Vacuum: _vacuum,
    Follow: _follow,
}

__all__ = ["ARROW", "SCHEMA", "Done", "Row", "Session", "condition_of", "play", "table_of"]
