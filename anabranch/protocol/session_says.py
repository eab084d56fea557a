"""What the session says of every commit that is made on its behalf.

Knows values only, no session. A door that works for a session says them once, by `honouring`; commands and commits ask
`current`. Guarantee: without a door nothing is said, so that commands mean the same wherever they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Defaults = Callable[[], Mapping[str, str]]


def _no_defaults() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Said:
    """What a session says.

    Attributes:
        user_metadata: for the history, unless the command says its own.
        app_id, txn_version: how far an application will have written with a write, as text.
        defaults: gives the properties of new tables.
        replaces_by_data: whether ``replaceWhere`` may name any column.
        checks_replaced: whether it brings only rows that it selects. compacts,
        compacts_from, compacts_to: automatic compaction, and its numbers of files and of bytes, whatever the table
        says; None: as the table says.
        drops_missing: whether a constraint to be dropped may be missing.
    """

    user_metadata: str | None = None
    app_id: str | None = None
    txn_version: str | None = None
    defaults: Defaults = _no_defaults
    replaces_by_data: bool = True
    checks_replaced: bool = True
    compacts: str | None = None
    compacts_from: int | None = None
    compacts_to: int | None = None
    drops_missing: bool = False


class Honoured:
    """What a session says while one command runs, and whether the command has used its application's version."""

    def __init__(self, said: Said) -> None:
        self.said, self.used_txn = said, False


_current: ContextVar[Honoured | None] = ContextVar("anabranch_said", default=None)
_NOTHING = Said()


@contextmanager
def honouring(said: Said) -> Iterator[Honoured]:
    """Say these for as long as the block lasts.

    Example:
        >>> with honouring(Said(user_metadata="nightly")):
        ...     Delete("/data/flights", where).run(engine)
    """
    held = Honoured(said)
    token = _current.set(held)
    try:
        yield held
    finally:
        _current.reset(token)


def current() -> Said:
    """What is said now; nothing where no session is asked."""
    held = _current.get()
    return _NOTHING if held is None else held.said


def is_said() -> bool:
    """Whether a session is asked already, by a door outside of this one."""
    return _current.get() is not None


def txn_used() -> None:
    """Note that a write goes by the application's version that the session says."""
    held = _current.get()
    if held is not None:
        held.used_txn = True
