"""The circumstances on which a text's meaning depends. Pure data."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from anabranch._protocol.schema.types import Struct

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?$")


@dataclass(frozen=True)
class Context:
    """The circumstances in which a text is parsed.

    Attributes:
        table: for messages.
        schema: the table's columns.
        now: the command's time, aware.
        zone: the session's time zone, as Spark spells it.
        is_builtin: whether these function names all mean Spark's own (a user may have registered others).
        altered: the settings that change the meaning of some functions in the session (`Scope`).
        timestamp: the type that TIMESTAMP means in the session, by a setting.
        has_usual_quotes: whether quotes and backslashes in texts mean what they do by default, as without a session.
    """

    table: str
    schema: Struct
    now: dt.datetime
    zone: str
    is_builtin: Callable[[frozenset[str]], bool]
    altered: frozenset[str] = frozenset()
    timestamp: str | None = None
    has_usual_quotes: Callable[[], bool] = lambda: False

    @property
    def tzinfo(self) -> dt.tzinfo | None:
        """The session's time zone; None where its name is unknown here."""
        offset = _OFFSET.match(self.zone)
        if offset:
            minutes = int(offset[2]) * 60 + int(offset[3] or 0)
            return dt.timezone(dt.timedelta(minutes=minutes if offset[1] == "+" else -minutes))
        try:
            return ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            return None
