"""Rows: whether messages may show what rows hold.

Knows the environment, and what each table's properties said when they were last read in this process. Guarantee: where
either says no, no error of ours holds a value of a row, in its text or among its facts; in doubt the answer is no.

It stands in the lowest room, since errors themselves ask.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from anabranch.errors.process_state import cache

ROWS_IN_ERRORS = "ANABRANCH_ROWS_IN_ERRORS"
"""The environment variable that keeps rows out of the messages of a process, when it is ``false``."""

PROPERTY = "anabranch.rowsInErrors"
"""The table property that keeps rows out of messages about one table, when it is ``false``."""

NOT_SHOWN = "values of rows are not shown (anabranch.rowsInErrors)"

_NO = ("false", "0", "no", "off")
_FOLDER = re.compile(r"(?P<name>[^\s/='\"`]+)=(?P<value>[^/'\"`\n]*)(?=/)")
_hidden = cache("tables whose rows are not shown", 10_000)
"""By their URLs, with the newest version that said so. Where there were too many, no table's rows are shown."""
_read: ContextVar[list[bool] | None] = ContextVar("anabranch_rows_read", default=None)
"""Within a statement: whether it reads a table whose rows are not shown, then it holds something."""


def note(table: str, version: int, configuration: Mapping[str, str]) -> None:
    """Remember what a version of a table says; an older version that shows rows does not count."""
    with _hidden.lock:
        if not shows(configuration):
            _hidden[table] = max(version, _hidden.get(table, version))
        elif _hidden and version > _hidden.get(table, version):
            _hidden.pop(table, None)


def shows(configuration: Mapping[str, str]) -> bool:
    """Whether the environment and a table's properties let messages show its rows."""
    return _environment_shows() and configuration.get(PROPERTY, "true").strip().lower() not in _NO


def may_show_rows(table: Any = None) -> bool:
    """Whether messages about a table, by its URL, may show its rows; without one, by the environment alone. Where a
    statement reads any table that keeps its rows out, none of its messages shows rows.
    """
    return _environment_shows() and not _hidden.dropped and str(table) not in _hidden and not _read.get()


@contextmanager
def statement() -> Iterator[None]:
    """One statement: what `keep_out` says within the block holds until it ends; a block within another is its part."""
    if _read.get() is not None:
        yield
        return
    token = _read.set([])
    try:
        yield
    finally:
        _read.reset(token)


def keep_out() -> None:
    """From now on no message of this statement shows rows: it reads a table that keeps its rows out."""
    found = _read.get()
    if found is not None:
        found.append(True)


def hides_any() -> bool:
    """Whether rows of any table that was read in this process are kept out of messages."""
    return not _environment_shows() or bool(_hidden) or bool(_read.get())


def cause(error: BaseException) -> BaseException | None:
    """An error as the cause of one of ours, which a traceback shows, unless it might quote a row that is not shown."""
    return error if hasattr(error, "facts") or not hides_any() else None


def detail(error: BaseException, spelled: Callable[[BaseException], str] = repr) -> str:
    """What an error of somebody else's says, or, where rows are not shown, of which kind it is."""
    return type(error).__name__ if hides_any() else spelled(error)


def without_partitions(path: str) -> str:
    """A path without the values of partitions in the names of its folders.

    Example:
        >>> without_partitions("day=2020-01-31/part-0.parquet")
        'day=*/part-0.parquet'
    """
    return _FOLDER.sub(r"\g<name>=*", path)


def _environment_shows() -> bool:
    return os.environ.get(ROWS_IN_ERRORS, "true").strip().lower() not in _NO
