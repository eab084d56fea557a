"""Whether error messages may show values of rows.

Knows the environment, and each table's properties as last read in this process. Guarantee: where either forbids it, no
error of ours holds a value of a row, in its text or its facts; in doubt, none is shown.

It is in the lowest package because errors themselves need it.
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
"""The environment variable; ``false`` keeps rows out of all messages of the process."""

PROPERTY = "anabranch.rowsInErrors"
"""The table property; ``false`` keeps rows out of messages about the table."""

NOT_SHOWN = "values of rows are not shown (anabranch.rowsInErrors)"

_NO = ("false", "0", "no", "off")
_VALUE = re.compile(r"(?<=[^\s/='\"`])=[^/'\"`\n]*+")
"""Matches an equals sign after a name with the text behind it, which is a partition value if a slash follows."""
_hidden = cache("tables whose rows are not shown", 10_000)
"""The newest version that hides rows, by table URL. Once entries had to be dropped, no table's rows are shown."""
_read: ContextVar[list[bool] | None] = ContextVar("anabranch_rows_read", default=None)
"""None outside a statement; within one, a list that is not empty once it reads a table whose rows are not shown."""


def note(table: str, version: int, configuration: Mapping[str, str]) -> None:
    """Remember the setting of a version of a table; an older version that shows rows does not count."""
    with _hidden.lock:
        if not shows(configuration):
            _hidden[table] = max(version, _hidden.get(table, version))
        elif _hidden and version > _hidden.get(table, version):
            _hidden.pop(table, None)


def shows(configuration: Mapping[str, str]) -> bool:
    """Whether the environment and a table's properties allow messages to show its rows."""
    return _environment_shows() and configuration.get(PROPERTY, "true").strip().lower() not in _NO


def may_show_rows(table: Any = None) -> bool:
    """Whether messages about a table, given by its URL, may show its rows; without a table only the environment
    decides.

    If a statement reads any table whose rows are not shown, none of its messages shows rows.
    """
    return _environment_shows() and not _hidden.dropped and str(table) not in _hidden and not _read.get()


@contextmanager
def statement() -> Iterator[None]:
    """The scope of one statement, in which `keep_out` takes effect; a nested block belongs to the outer one."""
    if _read.get() is not None:
        yield
        return
    token = _read.set([])
    try:
        yield
    finally:
        _read.reset(token)


def keep_out() -> None:
    """Keep rows out of all further messages of this statement: it reads a table whose rows are not shown."""
    reads = _read.get()
    if reads is not None:
        reads.append(True)


def hides_any() -> bool:
    """Whether any table read in this process keeps its rows out of messages."""
    return not _environment_shows() or bool(_hidden) or bool(_read.get())


def cause(error: BaseException) -> BaseException | None:
    """The error to chain as ``__cause__``; None if it might quote a row that must not be shown."""
    return error if hasattr(error, "facts") or not hides_any() else None


def detail(error: BaseException, spelled: Callable[[BaseException], str] = repr) -> str:
    """The text of a foreign error, or only its type where rows are not shown."""
    return type(error).__name__ if hides_any() else spelled(error)


def without_partitions(path: str) -> str:
    """A path without the partition values in its folder names.

    Example:
        >>> without_partitions("day=2020-01-31/part-0.parquet")
        'day=*/part-0.parquet'
    """
    return _VALUE.sub(lambda match: "=*" if path.startswith("/", match.end()) else match[0], path)


def _environment_shows() -> bool:
    return os.environ.get(ROWS_IN_ERRORS, "true").strip().lower() not in _NO
