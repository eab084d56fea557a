"""Sources: where the rows of a command come from, and what follows where they come from the table itself.

Knows versions, not rows. Guarantee: a command whose source, or a query in one of whose expressions, was read from a
version of its own table starts no later than that version, and is judged as having read all of it: whatever changed
since is a winner's change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anabranch.commands.engine import Engine
from anabranch.errors import InvalidOption, UnknownSourceVersion
from anabranch.log.log import Log
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.merges import Matching
from anabranch.protocol.plain_values import Assigned
from anabranch.protocol.predicates import Always, Condition
from anabranch.protocol.schema.assignments import leaves
from anabranch.transaction.transaction import ReadSet

_EVERY = Condition(text="TRUE", predicate=Always(True), row_local=False, expression="true")


def version_read(
    engine: Engine,
    seen: Snapshot | None,
    *,
    source: Any = None,
    where: Condition | None = None,
    values: Mapping[str, Any] | None = None,
    matching: Matching | None = None,
    declared: int | None = None,
) -> int | None:
    """The oldest version of its own table that a command reads by its source or its expressions; None where it reads
    none but the one that it runs on.

    Args:
        seen: the table that it changes, as it found it; None where there is none to be read.
        source: the rows that it brings, if any.
        where: which rows it changes or replaces.
        values: what it assigns to their columns.
        matching: of a MERGE, whose ``where`` says whether all of its expressions depend on their rows alone.
        declared: what the user says, for sources that hide it; the older one counts.

    Raises:
        UnknownSourceVersion: source or expressions read the table, and nobody says which version.
    """
    if seen is None:
        return None
    # What is not decided by a row alone, and a value that calls anything, may hold a query, or a function that does.
    calling = [each for _, each in leaves(values or {}) if not isinstance(each, Assigned) and "(" in str(each)]
    asked, of_table = None, (seen.schema, seen.table, seen.metadata.id)
    if where is not None and (calling or not where.row_local):
        if matching is None:
            asked = engine.version_asked(where, calling, *of_table)
        else:
            asked = engine.version_merged(source, matching, *of_table)
    found = (_of_source(engine, seen, source, declared), declared, asked)
    return min((each for each in found if each is not None), default=None)


def _of_source(engine: Engine, seen: Snapshot, source: Any, declared: int | None) -> int | None:
    try:
        return None if source is None else engine.version_read(source, seen.table, seen.metadata.id)
    except UnknownSourceVersion:
        if declared is None:
            raise
        return None


def declared_version(option: str, given: bool | int | str | None, newest: int) -> int | None:
    """The version that a user declares a source to be read from: a number, or True for the newest one. Raises
    InvalidOption: it is neither, or there is no such version yet.
    """
    text = "false" if given is None else str(given).strip().lower()
    if text in ("true", "false"):
        return newest if text == "true" else None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) > newest:
        raise InvalidOption(option=option, value=given, reason=f"it takes true, false, or a version up to {newest}.")
    return int(text)


def base_of(log: Log, seen: Snapshot, read: int | None) -> Snapshot:
    """The version that a command starts from: the one that it found, but no later one than `version_read` gives.
    Raises VersionNotFound: there is no such version any more.
    """
    return seen if read is None or read >= seen.version else log.snapshot(read)


def whole_table(snapshot: Snapshot, where: Condition = _EVERY) -> ReadSet:
    """What a command read whose rows, or condition, were computed from the table's own in a way that nobody can look
    into; ``where``: the condition for messages.
    """
    every = replace(where, predicate=Always(True), row_local=False)
    return ReadSet(every, frozenset(snapshot.files["path"].to_pylist()))
