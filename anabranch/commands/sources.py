"""Sources: where the rows of a command come from, and what follows where they come from the table itself.

Knows versions, not rows. Guarantee: a command whose source was read from a version of its own table starts no later
than that version, and is judged as having read all of it: whatever changed since is a winner's change.
"""

from __future__ import annotations

import re
from typing import Any

from anabranch.commands.engine import Engine
from anabranch.errors import InvalidOption, UnknownSourceVersion
from anabranch.log.log import Log
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.predicates import Always, Condition
from anabranch.transaction.transaction import ReadSet

_EVERY = Condition(text="TRUE", predicate=Always(True), row_local=False, expression="true")


def version_read(engine: Engine, source: Any, seen: Snapshot | None, declared: int | None = None) -> int | None:
    """The version of a table that a source was read from, or None where it comes from elsewhere.

    Args:
        seen: the table to which they will be written, as the command found it; None where there is none to be read.
        declared: what the user says, for sources that hide it; the older one counts.

    Raises:
        UnknownSourceVersion: the source reads the table, and nobody says which version.
    """
    if seen is None:
        return None
    try:
        found = engine.version_read(source, seen.table, seen.metadata.id)
    except UnknownSourceVersion:
        if declared is None:
            raise
        found = None
    return min((each for each in (found, declared) if each is not None), default=None)


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
    """The version that a command starts from: the one that it found, but no later one than its source was read from.
    Raises VersionNotFound: there is no such version any more.
    """
    return seen if read is None or read >= seen.version else log.snapshot(read)


def whole_table(snapshot: Snapshot) -> ReadSet:
    """What a command read whose rows were computed from the table's own in a way that nobody can look into."""
    return ReadSet(_EVERY, frozenset(snapshot.files["path"].to_pylist()))
