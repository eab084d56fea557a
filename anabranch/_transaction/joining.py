"""Joins the statements of an open transaction to one transaction, as if a single command had done it all.

Knows transactions, never a row. Pure. A statement's own transaction names files of the table, and files that an earlier
statement has added: what it did to the latter is folded into the joined transaction's own new files, so that a file, or
a row, that came and went inside is not in the result.

Guarantee: the joined transaction read all that any statement read in files of the table, and is row-local only if every
statement is. For a row that a winner adds this is right statement by statement: a row that no statement selects stays
as it is, so it does not matter to the next one either.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import AppTransaction, FileRow, empty_files
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import Marks, union_of
from anabranch._protocol.predicates import Always
from anabranch._protocol.properties import SERIALIZABLE
from anabranch._protocol.steps import RowPlan
from anabranch._transaction.open_transaction import Query
from anabranch._transaction.transaction import (
    Changes,
    CommitInfo,
    Declarations,
    IdentityUse,
    ReadSet,
    Source,
    Transaction,
)

OPERATION = "TRANSACTION"
"""The operation of a transaction that joins several statements."""


def join_statements(
    base: Snapshot, statements: Sequence[Transaction], queries: Sequence[Query], txn_id: str, find: Find
) -> Transaction:
    """The statements of one transaction as one, read at ``base``; a single one stays as it is. ``find`` finds the rows
    of a file of the table that a condition selects.
    """
    changes = _join_changes(statements)
    joined = Transaction.on(
        base,
        txn_id,
        _join_info(statements),
        reads=_join_reads(statements, queries, find),
        changes=changes,
        declarations=Declarations(app_transactions=_join_applications(statements)),
        identity=_join_identity(statements),
    )
    joined = _with_dials(joined, statements)
    return replace(joined, statements=max(len(statements), 2))  # the program has seen what a single one reports, too


def _with_dials(joined: Transaction, statements: Sequence[Transaction]) -> Transaction:
    """The transaction at the strongest level that a statement asks for, and by the resolution on which they agree."""
    levels = {statement.isolation for statement in statements}
    resolutions = {statement.resolution for statement in statements}
    return replace(
        joined,
        isolation=SERIALIZABLE if SERIALIZABLE in levels else joined.isolation,
        resolution=resolutions.pop() if len(resolutions) == 1 else joined.resolution,
    )


@dataclass
class _Folding:
    """The changes of the statements so far."""

    marks: dict[str, BitMap64] = field(default_factory=dict)
    removes: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)
    own: dict[str, FileRow] = field(default_factory=dict)
    buried: dict[str, BitMap64] = field(default_factory=dict)

    def apply(self, changes: Changes) -> None:
        """Fold in the changes of the next statement."""
        for path, rows in changes.marks.items():
            kept = self.buried if path in self.own else self.marks
            kept[path] = kept.get(path, BitMap64()) | rows
        for path in changes.removes:
            if self.own.pop(path, None) is None:
                self.removes.add(path)
        for path, source in changes.sources.items():
            if path not in self.own:
                self.sources.setdefault(path, source)  # the first statement has seen it as the table has it
        self.own |= {row["path"]: row for row in changes.adds.to_pylist()}


def _join_changes(statements: Sequence[Transaction]) -> Changes:
    folding = _Folding()
    for statement in statements:
        folding.apply(statement.changes)
    adds = pa.concat_tables([statement.changes.adds for statement in statements] or [empty_files()])
    touched = folding.removes | folding.marks.keys()
    return Changes(
        marks={path: rows for path, rows in folding.marks.items() if path not in folding.removes},
        removes=frozenset(folding.removes),
        sources={path: source for path, source in folding.sources.items() if path in touched},
        adds=_only(adds, folding.own.keys()),
        change_files=pa.concat_tables([statement.changes.change_files for statement in statements]),
        buried={path: rows for path, rows in folding.buried.items() if path in folding.own},
    )


def _only(files: pa.Table, paths: Iterable[str]) -> pa.Table:
    return files.filter(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string())))


def _join_info(statements: Sequence[Transaction]) -> CommitInfo:
    """The entry in the history: that of the only statement that changed something, or the names of all that did, with
    the sums of their metrics.
    """
    statements = [s for s in statements if s.touched_paths or len(s.changes.adds)] or statements
    if len(statements) == 1:
        return statements[0].info
    metrics = Counter[str]()
    for statement in statements:
        metrics.update(statement.info.metrics)
    names = json.dumps([statement.info.operation for statement in statements])
    steps = RowPlan.of([step for statement in statements for step in statement.info.steps.steps])
    texts = [s.info.user_metadata for s in statements if s.info.user_metadata is not None]
    return CommitInfo(OPERATION, {"statements": names}, dict(metrics), texts[-1] if texts else None, steps=steps)


Find = Callable[[str, Condition], BitMap64]


class _RowsRead(Mapping[str, BitMap64]):
    """The rows that a transaction's statements and queries have read, by file; those of queries are found on demand."""

    def __init__(self, matched: Marks, queries: Sequence[Query], own: Collection[str], find: Find) -> None:
        self._matched, self._find, self._found = matched, find, dict[str, BitMap64]()
        self._queries: dict[str, list[Query]] = {}
        for query in queries:
            for path in query.files.difference(own):
                self._queries.setdefault(path, []).append(query)

    def __getitem__(self, path: str) -> BitMap64:
        if path not in self._found:
            conditions = (query.condition for query in self._queries.get(path, ()))
            found = [self._find(path, condition) for condition in conditions if condition is not None]
            self._found[path] = BitMap64.union(self._matched.get(path, BitMap64()), *found)
        return self._found[path]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._matched), **dict.fromkeys(self._queries)})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _join_reads(statements: Sequence[Transaction], queries: Sequence[Query], find: Find) -> ReadSet | None:
    """All reads in files of the table, as one; None if none of the statements is anything but a blind append."""
    reads = [statement.reads for statement in statements if statement.reads is not None]
    if not reads and not queries:
        return None
    own = {path for statement in statements for path in statement.changes.adds["path"].to_pylist()}
    paths = frozenset[str]().union(*(read.files for read in reads), *(query.files for query in queries))
    matched = {path: rows for path, rows in _union(read.matched for read in reads).items() if path not in own}
    return ReadSet(
        _join_conditions([read.condition for read in reads], queries),
        paths - own,
        _RowsRead(matched, queries, own, find) if queries else matched,
        held=any(read.held for read in reads),
        own_table=any(read.own_table for read in reads),
    )


def _union(parts: Iterable[Marks]) -> Marks:
    return union_of(list(parts))


def _join_conditions(conditions: Sequence[Condition], queries: Sequence[Query]) -> Condition:
    """The condition of all reads, for messages; where it is not known exactly for a query, files decide."""
    exact = [query.condition for query in queries if query.condition is not None]
    whole = [*conditions, *exact]
    if len(whole) == 1 and len(exact) == len(queries):
        return whole[0]
    text = " OR ".join(f"({text})" for text in dict.fromkeys(condition.text for condition in whole)) or "TRUE"
    is_local = len(exact) == len(queries) and all(condition.row_local for condition in whole)
    return Condition(text, Always(True), is_local, None)


def _join_applications(statements: Sequence[Transaction]) -> tuple[AppTransaction, ...]:
    newest = {txn.app_id: txn for statement in statements for txn in statement.declarations.app_transactions}
    return tuple(newest.values())


def _join_identity(statements: Sequence[Transaction]) -> IdentityUse:
    uses = [statement.identity for statement in statements]
    writers = frozenset[str]().union(*(use.writers for use in uses))
    return IdentityUse(writers, frozenset[str]().union(*(use.own_numbers for use in uses)))
