"""Session settings that apply to every commit made on the session's behalf.

Knows values only, no session. The entry point of a session sets them with `apply_settings`; commands and commits read
`current`. Guarantee: without a session there are none, so that commands mean the same wherever they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Defaults = Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session.

    Attributes:
        user_metadata: for the history, unless the command has its own.
        app_id, txn_version: the application transaction of a write, as text.
        defaults: returns the properties of new tables.
        replaces_by_data: whether ``replaceWhere`` may use any column.
        checks_replaced: whether all rows of a ``replaceWhere`` must match its condition.
        compacts: whether auto compaction runs; this and the next two override the table; None: the table decides.
        compacts_from, compacts_to: its minimum number of files, and its target in bytes.
        drops_missing: whether a constraint to be dropped may be missing.
        widens: the types that rows may widen by themselves: always, only same_family_type, or never.
    """

    user_metadata: str | None = None
    app_id: str | None = None
    txn_version: str | None = None
    defaults: Defaults = dict
    replaces_by_data: bool = True
    checks_replaced: bool = True
    compacts: str | None = None
    compacts_from: int | None = None
    compacts_to: int | None = None
    drops_missing: bool = False
    widens: str = "always"


class ActiveSettings:
    """The settings of a session while one command runs, and whether it used its application transaction."""

    def __init__(self, said: SessionSettings) -> None:
        self.said, self.used_txn = said, False


_current: ContextVar[ActiveSettings | None] = ContextVar("anabranch_said", default=None)
_NOTHING = SessionSettings()


@contextmanager
def apply_settings(said: SessionSettings) -> Iterator[ActiveSettings]:
    """Apply these settings within the block.

    Example:
        >>> with honouring(Said(user_metadata="nightly")):
        ...     Delete("/data/flights", where).run(engine)
    """
    honoured = ActiveSettings(said)
    token = _current.set(honoured)
    try:
        yield honoured
    finally:
        _current.reset(token)


def current() -> SessionSettings:
    """The current settings; empty without a session."""
    honoured = _current.get()
    return _NOTHING if honoured is None else honoured.said


def has_settings() -> bool:
    """Whether an enclosing block has set them."""
    return _current.get() is not None


def record_txn_use() -> None:
    """Record that a write uses the session's application transaction."""
    honoured = _current.get()
    if honoured is not None:
        honoured.used_txn = True
