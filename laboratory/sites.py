"""Sites: the ways in which one command may be run on one table, each of which must come to the same.

Knows commands and engines. Arrow with all bounds as they are; with bounds so small that everything comes in many
pieces, on several threads; on this thread alone; and the reference engine without a JVM. `laboratory.spark_site` has
Spark's own way.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from anabranch._api.table_texts import TableTexts
from anabranch._arrow import assigned_values, clustering, files, finding, orders, packing, pairs, reading, writing
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.merge_source import source_columns
from anabranch._arrow.site import Site, site_without_spark
from anabranch._expressions import MergeColumns, resolve_assignments
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.predicates import holds, is_whole
from anabranch._protocol.schema.assignments import map_values
from anabranch._protocol.steps import RowPlan
from anabranch._storage import Store
from anabranch._transaction.retry import Runtime
from anabranch.commands import change_recorder, command_plans
from anabranch.commands.context import RunContext
from anabranch.commands.dml import append, delete, merge, update, write
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance import optimize, reorg
from anabranch.testing.arrow_engine import ArrowEngine
from laboratory import drawn_commands as drawn
from laboratory.drawn_tables import Drawn, Row

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class NotForThisSite(Exception):
    """A site does not know such a command, or what it says."""


@dataclass(frozen=True)
class Asked:
    """A command as it is run: on a table, read at a version."""

    command: drawn.Command
    table: Drawn
    location: str
    at: Snapshot

    @property
    def texts(self) -> TableTexts:
        """What its texts mean."""
        return TableTexts(self.at.table, self.at.schema, NOW)

    @property
    def context(self) -> RunContext:
        """How it is run."""
        return RunContext(at=self.at, runtime=Runtime(sleep=lambda seconds: None))


@dataclass(frozen=True)
class Place:
    """A site: what it is called, the engine that works there, and within what.

    Attributes:
        words: the values of an UPDATE and the clauses of a MERGE as the engine takes them.
        appends: whether rows are appended without an engine.
        is_loose: whether bounds of floating-point numbers may be left out.
    """

    name: str
    engine: Callable[[Store], Engine]
    words: Callable[[Asked], Any]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    appends: bool = False
    is_loose: bool = False

    def run(self, asked: Asked) -> Any:
        """Run a command; its errors are the product's. Raises NotForThisSite."""
        with self.within():
            return _RUN[type(asked.command)](asked, self)


# -- commands ----------------------------------------------------------------------------------------------------------


def _delete(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Delete)
    condition = asked.texts.condition(asked.command.where)
    _check(place, condition.predicate)
    return delete.Delete(asked.location, condition).run(place.engine(asked.at.store), asked.context)


def _update(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Update)
    condition = asked.texts.condition(asked.command.where)
    _check(place, condition.predicate)
    command = update.Update(asked.location, place.words(asked), condition)
    return command.run(place.engine(asked.at.store), asked.context)


def _merge(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Merge)
    source, matching = asked.table.arrow(asked.command.source), place.words(asked)
    where, _, parameters = asked.texts.merge(_as_asked(asked))
    command = merge.Merge(asked.location, source, matching, where, parameters)
    return command.run(place.engine(asked.at.store), asked.context)


def _insert(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Insert)
    rows = asked.table.arrow(asked.command.rows)
    if place.appends:
        return append.Append(asked.location, rows).run(context=asked.context)
    return write.Write(asked.location, rows, "append").run(place.engine(asked.at.store), asked.context)


def _replace(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Replace)
    where = None if asked.command.where is None else asked.texts.condition(asked.command.where)
    if where is not None:
        _check(place, where.predicate)
    rows = asked.table.arrow(asked.command.rows)
    command = write.Write(asked.location, rows, "overwrite", replace_where=where)
    return command.run(place.engine(asked.at.store), asked.context)


def _layout(asked: Asked, place: Place) -> Any:
    assert isinstance(asked.command, drawn.Layout)
    by = tuple((name,) for name in asked.command.by)
    command = reorg.Purge(asked.location) if asked.command.purges else optimize.Optimize(asked.location, zorder_by=by)
    return command.run(place.engine(asked.at.store), asked.context)


_RUN: Mapping[type, Callable[[Asked, Place], Any]] = {
    drawn.Delete: _delete,
    drawn.Update: _update,
    drawn.Merge: _merge,
    drawn.Insert: _insert,
    drawn.Replace: _replace,
    drawn.Layout: _layout,
}


def planned(asked: Asked) -> RowPlan | None:
    """What does each step of a change of rows, before it is run."""
    command, texts = asked.command, asked.texts

    def site(files: Any, *, obeys: bool = True) -> Site:
        return site_without_spark(asked.at.store)

    if isinstance(command, drawn.Merge):
        columns = source_columns(asked.table.schema)
        return command_plans.merge_plan(asked.at, texts.merge(_as_asked(asked))[1], columns, site)
    if isinstance(command, drawn.Delete | drawn.Update):
        values = sql(asked) if isinstance(command, drawn.Update) else None
        return command_plans.change_plan(asked.at, texts.condition(command.where), values, site)
    return None


def _check(place: Place, predicate: Any) -> None:
    if place.words is functions and not is_whole(predicate):
        raise NotForThisSite


# -- words -------------------------------------------------------------------------------------------------------------


def sql(asked: Asked) -> Any:
    """Values, or clauses, understood as SQL."""
    if isinstance(asked.command, drawn.Update):
        return asked.texts.assignments({name: each.text for name, each in asked.command.sets.items()})
    return asked.texts.merge(_as_asked(asked))[1]


def _as_asked(asked: Asked) -> SimpleNamespace:
    """A MERGE as a user of a table without Spark asks for it."""
    assert isinstance(asked.command, drawn.Merge)
    clauses = tuple(
        SimpleNamespace(
            when=each.when,
            action=each.action,
            condition=each.condition,
            values=None if each.values is None else {name: value.text for name, value in each.values.items()},
        )
        for each in asked.command.clauses
    )
    source = asked.table.arrow(asked.command.source)
    return SimpleNamespace(source=source, source_alias="s", target_alias="t", on=asked.command.on, clauses=clauses)


def functions(asked: Asked) -> Any:
    """The same as functions of rows, for the reference engine. Raises NotForThisSite: only SQL says it."""
    command = asked.command
    if isinstance(command, drawn.Update):
        if any(each.of is None for each in command.sets.values()):
            raise NotForThisSite
        by_text = {each.text: each.of for each in command.sets.values()}
        texts = resolve_assignments(
            {name: each.text for name, each in command.sets.items()}, "set", _sides(asked), _context(asked)
        )
        return map_values(texts, lambda text: _of_row(by_text[text]))
    assert isinstance(command, drawn.Merge)
    also = _truth(asked, command.also)

    def on(row: Row, source: Row) -> bool | None:
        truths = [_equal(row[name], source[name], name in command.null_safe) for name in command.by]
        truths.append(also(row, source))
        return False if False in truths else None if None in truths else True

    return MergePlan(on, tuple(_clause(asked, each) for each in command.clauses))


def _equal(left: Any, right: Any, null_safe: bool) -> bool | None:
    """``left = right``, or ``left <=> right``."""
    if left is None or right is None:
        return left is right if null_safe else None
    return _same(left, right)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right or (left != left and right != right))


def _of_row(of: Any) -> Callable[[Row], Any]:
    return lambda row: of(row, {})


def _clause(asked: Asked, clause: drawn.Clause) -> Clause:
    values: dict[str, Any] = {name: SourceColumn(name) for name in asked.at.schema.names}
    if clause.values is not None:
        if any(each.of is None for each in clause.values.values()):
            raise NotForThisSite
        values = {name.strip("`"): each.of for name, each in clause.values.items()}
    condition = None if clause.condition is None else _truth(asked, clause.condition)
    return Clause(clause.when, clause.action, condition, values)


def _truth(asked: Asked, text: str | None) -> Callable[[Row, Row], bool | None]:
    """A condition over one side, as a function of both rows."""
    if text is None:
        return lambda row, source: True
    predicate = asked.texts.condition(text.replace("t.`", "`").replace("s.`", "`")).predicate
    if not is_whole(predicate):
        raise NotForThisSite
    of_source = "s.`" in text
    return lambda row, source: holds(predicate, source if of_source else row)


def _sides(asked: Asked) -> MergeColumns:
    return MergeColumns(asked.at.schema, ())


def _context(asked: Asked) -> Any:
    return asked.texts.context


# -- sites -------------------------------------------------------------------------------------------------------------


def arrow(threads: int) -> Callable[[Store], Engine]:
    """The backend with so many threads."""
    return lambda store: ArrowBackend(replace(site_without_spark(store), threads=threads))


_READ = reading.read


def _few_ahead(*given: Any, **named: Any) -> Any:
    return _READ(*given[:5], **{**named, "most_bytes": 1})


@contextmanager
def in_pieces() -> Iterator[None]:
    """All rows come and go a few at a time, within the block."""
    bounds = [
        *((files, "BATCH_ROWS", 2), (reading, "MANY_ROWS", 2), (writing, "MOST_BYTES", 1)),
        *(
            (pairs, "AT_ONCE", 2),
            (assigned_values, "AT_ONCE", 2),
            (packing, "GROUP_BYTES", 100),
            (orders, "TAKEN_ROWS", 2),
        ),
        *((clustering, "MOST_BYTES", 1 << 14), (change_recorder, "WORTH_A_JOB", 1), (finding, "read", _few_ahead)),
    ]
    with ExitStack() as stack:
        for module, name, bound in bounds:
            stack.enter_context(patch.object(module, name, bound))
        yield


BESIDE = Place("beside", arrow(0), sql)
"""Where other commands are run than the one that is looked at."""
PLACES = (
    Place("whole", arrow(0), sql, appends=True),
    Place("in pieces", arrow(0), sql, in_pieces),
    Place("reference", lambda store: ArrowEngine(), functions, is_loose=True),
)
THREADS = (Place("on threads", arrow(4), sql), Place("on threads in pieces", arrow(4), sql, in_pieces))
"""Each for a part of all pairs, since threads that are made take longer than such a command."""
