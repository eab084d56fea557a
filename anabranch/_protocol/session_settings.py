"""Session settings that apply to every commit made on the session's behalf.

Knows values only, no session. The entry point of a session sets them with `apply_settings`; commands and commits read
`current`. Guarantee: without a session there are none, so that commands mean the same wherever they run. What a command
or a block asks for by itself, whether it has a session or not, are its dials (`use_dials`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from anabranch._protocol.compression import use_codec
from anabranch._protocol.dials import NO_DIALS, Dials

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
        codec: the compression of new files where the table names none; None: the default.
        dials: the isolation level and the conflict resolution.
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
    codec: str | None = None
    dials: Dials = NO_DIALS


class ActiveSettings:
    """The settings of a session while one command runs, and whether it used its application transaction."""

    def __init__(self, said: SessionSettings) -> None:
        self.said, self.used_txn = said, False


_current: ContextVar[ActiveSettings | None] = ContextVar("anabranch_said", default=None)
_dials: ContextVar[Dials] = ContextVar("anabranch_dials", default=NO_DIALS)
"""The dials of the running command or block."""
_NOTHING = SessionSettings()


@contextmanager
def apply_settings(said: SessionSettings) -> Iterator[ActiveSettings]:
    """Apply these settings within the block.

    Example:
        >>> with apply_settings(SessionSettings(user_metadata="nightly")):
        ...     Delete("/data/flights", where).run(engine)
    """
    honoured = ActiveSettings(said)
    token = _current.set(honoured)
    try:
        with use_codec(said.codec):
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


@contextmanager
def use_dials(dials: Dials) -> Iterator[None]:
    """Judge all transactions of this thread by these dials within the block. They override those of an enclosing block,
    and these those of the session; what none of them sets is as the table says.

    Example:
        >>> with use_dials(Dials(conflict_resolution="redo")):
        ...     Delete("/data/flights", where).run(engine)
    """
    token = _dials.set(dials.over(_dials.get()))
    try:
        yield
    finally:
        _dials.reset(token)


def current_dials() -> Dials:
    """The dials that the running command, an enclosing block or the session asks for."""
    return _dials.get().over(current().dials)
