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
from anabranch.transaction.footprint import Reads

_EVERY = Condition(text="TRUE", predicate=Always(True), row_local=False, expression="true")


def version_read(engine: Engine, source: Any, table: str, declared: int | None = None) -> int | None:
    """The version of ``table`` that a source was read from, or None where it comes from elsewhere.

    Args:
        engine: looks for it.
        source: the rows.
        table: the table to which they will be written.
        declared: what the user says, for sources that hide it; the older one counts.

    Raises:
        UnknownSourceVersion: the source reads the table, and nobody says which version.
    """
    try:
        found = engine.version_read(source, table)
    except UnknownSourceVersion:
        if declared is None:
            raise
        found = None
    return min((each for each in (found, declared) if each is not None), default=None)


def declared_version(option: str, given: bool | int | str | None, newest: int) -> int | None:
    """The version that a user declares a source to be read from: a number, or True for the newest one.

    Raises:
        InvalidOption: it is neither, or there is no such version yet.
    """
    text = "false" if given is None else str(given).strip().lower()
    if text in ("true", "false"):
        return newest if text == "true" else None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) > newest:
        raise InvalidOption(option=option, value=given, reason=f"it takes true, false, or a version up to {newest}.")
    return int(text)


def base_of(log: Log, at: Snapshot | None, read: int | None) -> tuple[Snapshot, int]:
    """The version that a command starts from, which is no later one than its source was read from, and the version for
    which it was understood, else the newest: behind that it has to stand, for the user has seen it.

    Raises:
        NotATable, VersionNotFound: there is no such version.
    """
    seen = at or log.snapshot()
    return (seen if read is None or read >= seen.version else log.snapshot(read)), seen.version


def whole_table(snapshot: Snapshot) -> Reads:
    """What a command read whose rows were computed from the table's own in a way that nobody can look into."""
    return Reads(_EVERY, frozenset(snapshot.files["path"].to_pylist()))
