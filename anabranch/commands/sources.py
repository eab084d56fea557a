"""Sources: where the rows of a command come from, and what follows where they come from the table itself.

Knows versions, not rows. Guarantee: a command whose source, or a query in one of whose expressions, was read from a
version of its own table is judged as having read all of that version. If others have changed a row since, it is
refused. What the program itself has committed since is no such change for its source: these rows are what it had read
(docs/concepts/the-cut.md).
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
from anabranch._protocol.merges import Matching
from anabranch._protocol.predicates import Always
from anabranch._protocol.properties import SERIALIZABLE
from anabranch._protocol.schema.assignments import leaves
from anabranch._protocol.storing import is_known
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
    """The oldest versions of its own table that a command reads; None where it reads none but the one that it runs on.

    Attributes:
        rows: by its source.
        queries: by queries in its expressions.
        held: the source was computed before the command, so that running it again would bring the same rows.
        commits: all versions that it reads, not the oldest alone, with the marks of their commits where these are known
            (`anabranch._log.positions.commit_mark`).
    """

    rows: int | None = None
    queries: int | None = None
    held: bool = False
    commits: frozenset[tuple[int, str]] = frozenset()

    @property
    def oldest(self) -> int | None:
        """The oldest of all; None where it reads none."""
        return min((each for each in (self.rows, self.queries) if each is not None), default=None)


NOTHING = VersionsRead()
"""Of a command that reads none."""


def versions_read(
    engine: Engine,
    seen: Snapshot | None,
    *,
    source: Any = None,
    where: Condition | None = None,
    values: Mapping[str, Any] | None = None,
    matching: Matching | None = None,
    declared: int | None = None,
    held: bool = False,
) -> VersionsRead:
    """Which versions of its own table a command reads by its source and its expressions.

    Args:
        seen: the table that it changes, as it found it; None where there is none to be read.
        source: the rows that it brings, if any.
        where: which rows it changes or replaces.
        values: what it assigns to their columns.
        matching: of a MERGE, whose ``where`` says whether all of its expressions depend on their rows alone.
        declared: what the user says, for sources that hide it; the older one counts.
        held: as in `VersionsRead`.

    Raises:
        UnknownSourceVersion: source or expressions read the table, and nobody says which version.
    """
    if seen is None:
        return NOTHING
    # What is not decided by a row alone, and a value that calls anything, may hold a query, or a function that does.
    calling = [each for _, each in leaves(values or {}) if not is_known(each) and "(" in str(each)]
    queries, of_table = None, (seen.schema, seen.table, seen.metadata.id)
    if where is not None and (calling or not where.row_local):
        if matching is None:
            queries = engine.query_versions(where, calling, *of_table)
        else:
            queries = engine.merge_versions(source, matching, *of_table)
    said = None if declared is None else SourceVersions(declared)
    rows = all_versions((_of_source(engine, seen, source, declared), said))
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
    """The version that a user declares a source to be read from: a number, or True for the newest one. Raises
    InvalidOption: it is neither, or there is no such version yet.
    """
    text = "false" if given is None else str(given).strip().lower()
    if text in ("true", "false"):
        return newest if text == "true" else None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) > newest:
        raise InvalidOption(option=option, value=given, reason=f"it takes true, false, or a version up to {newest}.")
    return int(text)


def check_newest(read: VersionsRead, log: Log, seen: Snapshot, operation: str, runtime: Runtime) -> None:
    """Refuse a command that reads an older version of its table than the one on which it runs, if others have changed
    the table since. Of what this program has committed itself, only queries in expressions take notice.

    Args:
        seen: the version on which the command runs.
        operation: its name, for messages.

    Raises:
        DeltaConcurrentModificationException: somebody has.
        VersionReplaced: another commit stands at one of the versions now.
        VersionNotFound: the version, or what followed it, is not there any more.
    """
    if read.oldest is None or read.oldest == SOME_VERSION:
        return
    _check_same(read.commits, log, seen)
    if read.oldest >= seen.version:
        _check_there(read.oldest, log, seen)
        return
    known = LogPosition(read.oldest, None, seen.metadata.id)
    try:
        later = log.commits_after(known, seen.partition_keys) or ()
    except VersionCleanedUp as gone:  # the same rows can never be written, however often that is tried
        raise VersionNotFound(**{**gone.facts, "what": "write rows that were read from the table: go back"}) from None

    def matters(commit: Commit) -> bool:
        asked = read.queries is not None and commit.version > read.queries
        return (asked or not is_own(commit, log.table, since=read.rows)) and relocation_of(commit) is None

    for each in later:
        if each.version <= seen.version and matters(each):
            _check_no_effect(each, log, operation, runtime)


def _check_same(commits: frozenset[tuple[int, str]], log: Log, seen: Snapshot) -> None:
    """Raises VersionReplaced if one of these commits is not the table's own any more: its log was put back since, or
    made again, and what was read is no part of it.
    """
    if commits == {(seen.version, LogPosition.snapshot(seen).mark)}:
        return
    if (version := log.find_oldest_replaced(commits)) is not None:
        raise VersionReplaced(table=log.table, version=version)


def _check_there(version: int, log: Log, seen: Snapshot) -> None:
    """Raises VersionNotFound if a version was read that the table has not: an older copy of it was put back since."""
    if version > seen.version:
        log.snapshot(version)


def _check_no_effect(theirs: Commit, log: Log, operation: str, runtime: Runtime) -> None:
    """Raises DeltaConcurrentModificationException if a commit has changed what whoever read the version before it has
    read. Each is looked at by itself, since the command may have read any version between them, too.
    """
    before = log.snapshot(theirs.version - 1)
    reader = Transaction.on(before, str(runtime.new_id()), CommitInfo(operation), reads=whole_table(before, held=True))
    outcome = judge(replace(reader, isolation=SERIALIZABLE), [theirs], _AnyRow()).outcome
    if isinstance(outcome, Conflict):
        raise outcome.error(reader, _AnyRow(), runtime)


class _AnyRow(NoRows):
    """The handler of what has read every row."""

    def could_match(self, files: pa.Table) -> pa.Table:
        """All of them."""
        return files


def whole_table(snapshot: Snapshot, where: Condition = _EVERY, *, held: bool = False) -> ReadSet:
    """What a command read whose rows, or condition, were computed from the table's own in a way that nobody can look
    into; ``where``: the condition for messages; ``held``: as in `ReadSet`.
    """
    every = replace(where, predicate=Always(True), row_local=False)
    return ReadSet(every, frozenset(snapshot.files["path"].to_pylist()), held=held)
