"""Sources: which versions of its own table a command reads, and the conflicts that follow from that.

Knows versions, not rows. Guarantee: if the source of a command, or a query in its expressions, reads a version of the
command's own table, the command counts as having read all of that version. It is refused if another program has changed
a row since. Commits of this program are no such change for its source (docs/concepts/the-cut.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.positions import SOME_VERSION, LogPosition, SourceVersions, all_versions
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.predicates import Always
from anabranch._protocol.properties import SERIALIZABLE
from anabranch._protocol.schema.assignments import leaves
from anabranch._protocol.store_assignment import is_known
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.conflicts import judge
from anabranch._transaction.own_commits import is_own
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.relocation import relocation_of
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, ReadSet, Transaction
from anabranch.commands.engine import Engine, Sources
from anabranch.errors import InvalidOption, UnknownSourceVersion, VersionCleanedUp, VersionNotFound, VersionReplaced

_EVERY = Condition(text="TRUE", predicate=Always(True), row_local=False, expression="true")


@dataclass(frozen=True)
class VersionsRead:
    """The oldest versions of its own table that a command reads; None if it reads only the one that it runs on.

    Attributes:
        rows: the oldest version that its source reads.
        queries: the oldest version that queries in its expressions read.
        held: the source was computed before the command, so a second run would get the same rows.
        commits: all versions that it reads, with the marks of their commits where these are known
            (`anabranch._log.positions.commit_mark`).
    """

    rows: int | None = None
    queries: int | None = None
    held: bool = False
    commits: frozenset[tuple[int, str]] = frozenset()

    @property
    def oldest(self) -> int | None:
        """The oldest version of all; None if it reads none."""
        return min((version for version in (self.rows, self.queries) if version is not None), default=None)


NO_VERSIONS = VersionsRead()
"""The value for a command that reads none."""


def versions_read(
    engine: Engine,
    seen: Snapshot | None,
    *,
    source: Any = None,
    where: Condition | None = None,
    values: Mapping[str, Any] | None = None,
    matching: MergePlan | None = None,
    declared: int | None = None,
    held: bool = False,
) -> VersionsRead:
    """The versions of its own table that a command reads by its source and its expressions.

    Args:
        seen: the snapshot on which the command runs; None if there is no table yet.
        source: the rows that it adds or merges, if any.
        where: the condition of the rows that it changes or replaces.
        values: the assignments to their columns.
        matching: the clauses of a MERGE; its ``where`` tells whether all expressions are row-local.
        declared: the version that the user declares, for sources that hide it; the older one counts.
        held: as in `VersionsRead`.

    Raises:
        UnknownSourceVersion: source or expressions read the table, and the version is unknown.
    """
    if seen is None:
        return NO_VERSIONS
    # A condition that is not row-local, and a value that calls a function, may contain a query.
    calls = [
        expression for _, expression in leaves(values or {}) if not is_known(expression) and "(" in str(expression)
    ]
    queries, of_table = None, (seen.schema, seen.table, seen.metadata.id)
    if where is not None and (calls or not where.row_local):
        if matching is None:
            queries = engine.query_versions(where, calls, *of_table)
        else:
            queries = engine.merge_versions(source, matching, *of_table)
    declared_versions = None if declared is None else SourceVersions(declared)
    rows = all_versions((_of_source(engine, seen, source, declared), declared_versions))
    return VersionsRead(_oldest(rows), _oldest(queries), held and rows is not None, _commits(rows) | _commits(queries))


def _of_source(engine: Sources, seen: Snapshot, source: Any, declared: int | None) -> SourceVersions | None:
    try:
        return None if source is None else engine.source_versions(source, seen.table, seen.metadata.id)
    except UnknownSourceVersion:
        if declared is None:
            raise
        return None


def _oldest(read: SourceVersions | None) -> int | None:
    return None if read is None else read.oldest


def _commits(read: SourceVersions | None) -> frozenset[tuple[int, str]]:
    return frozenset() if read is None else read.commits


def parse_declared_version(option: str, given: bool | int | str | None, newest: int) -> int | None:
    """The version from which a source was read, as the user declares it: a number, or True for the newest. Raises
    InvalidOption: it is neither, or there is no such version yet.
    """
    text = "false" if given is None else str(given).strip().lower()
    if text in ("true", "false"):
        return newest if text == "true" else None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) > newest:
        raise InvalidOption(option=option, value=given, reason=f"it takes true, false, or a version up to {newest}.")
    return int(text)


def check_newest(read: VersionsRead, log: Log, seen: Snapshot, operation: str, runtime: Runtime) -> None:
    """Refuse a command that reads an older version of its table than the one on which it runs, if another program has
    changed the table since. This program's own commits count only for queries in expressions.

    Args:
        seen: the snapshot on which the command runs.
        operation: the name of the command, for messages.

    Raises:
        DeltaConcurrentModificationException: the table was changed.
        VersionReplaced: one of the versions has another commit now.
        VersionNotFound: the version, or one after it, does not exist any more.
    """
    if read.oldest is None or read.oldest == SOME_VERSION:
        return
    _check_same(read.commits, log, seen)
    if read.oldest >= seen.version:
        _check_there(read.oldest, log, seen)
        return
    position = LogPosition(read.oldest, None, seen.metadata.id)
    try:
        later = log.commits_after(position, seen.partition_keys) or ()
    except VersionCleanedUp as error:  # a retry cannot help: these rows can never be written
        raise VersionNotFound(**{**error.facts, "what": "write rows that were read from the table: go back"}) from None

    def matters(commit: Commit) -> bool:
        was_read_by_query = read.queries is not None and commit.version > read.queries
        return (was_read_by_query or not is_own(commit, log.table, since=read.rows)) and relocation_of(commit) is None

    for commit in later:
        if commit.version <= seen.version and matters(commit):
            _check_no_effect(commit, log, operation, runtime)


def _check_same(commits: frozenset[tuple[int, str]], log: Log, seen: Snapshot) -> None:
    """Raises VersionReplaced if one of these commits is not in the log any more: the log was restored from a copy or
    recreated since.
    """
    if commits == {(seen.version, LogPosition.snapshot(seen).mark)}:
        return
    if (version := log.find_oldest_replaced(commits)) is not None:
        raise VersionReplaced(table=log.table, version=version)


def _check_there(version: int, log: Log, seen: Snapshot) -> None:
    """Raises VersionNotFound if the table does not have a version that was read: an older copy was put back since."""
    if version > seen.version:
        log.snapshot(version)


def _check_no_effect(theirs: Commit, log: Log, operation: str, runtime: Runtime) -> None:
    """Raises DeltaConcurrentModificationException if a commit conflicts with a reader of the version before it. Each
    commit is checked alone, since the command may have read any version in between.
    """
    before = log.snapshot(theirs.version - 1)
    reader = Transaction.on(before, str(runtime.new_id()), CommitInfo(operation), reads=whole_table(before, held=True))
    outcome = judge(replace(reader, isolation=SERIALIZABLE), [theirs], _AnyRow()).outcome
    if isinstance(outcome, Conflict):
        raise outcome.error(reader, _AnyRow(), runtime)


class _AnyRow(NoRows):
    """The handler of a transaction that has read every row."""

    def could_match(self, files: pa.Table) -> pa.Table:
        """All files."""
        return files


def whole_table(snapshot: Snapshot, where: Condition = _EVERY, *, held: bool = False) -> ReadSet:
    """The read set of a command whose rows or condition were computed from the table's own rows in an opaque way.

    Args:
        where: the condition, for messages.
        held: as in `ReadSet`.
    """
    every = replace(where, predicate=Always(True), row_local=False)
    return ReadSet(every, frozenset(snapshot.files["path"].to_pylist()), held=held, own_table=True)
