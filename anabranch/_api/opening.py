"""Errors of the Python API for tables that cannot be opened.

Knows delta-spark's condition for it, and no store. Guarantees: the class, the facts and the text stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.errors import NotATable, UnknownTable

_CONDITION = "DELTA_MISSING_DELTA_TABLE"


@contextmanager
def opening() -> Iterator[None]:
    """Within the block, the error of a missing table has delta-spark's condition.

    Raises:
        NotATable, UnknownTable: the table does not exist.
    """
    try:
        yield
    except (NotATable, UnknownTable) as error:
        raise type(error)(**{**error.facts, "delta_condition": _CONDITION}) from None
