"""What a text's meaning depends on besides its own words. Pure data."""

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
    """Where a text is to be understood.

    Attributes:
        table: for messages.
        schema: the table's columns.
        now: the command's moment, aware.
        zone: the session's time zone, as Spark spells it.
        is_builtin: which of these function names still mean Spark's own (a user may have registered others).
        altered: the settings by which some functions mean something else in the session (`Scope`).
        timestamp: the type that TIMESTAMP means in the session, by a setting.
        has_session: whether there is a session; without one texts mean what they mean by Spark's defaults.
    """

    table: str
    schema: Struct
    now: dt.datetime
    zone: str
    is_builtin: Callable[[frozenset[str]], bool]
    altered: frozenset[str] = frozenset()
    timestamp: str | None = None
    has_session: bool = True

    @property
    def tzinfo(self) -> dt.tzinfo | None:
        """The session's time zone; None where its name means nothing here."""
        offset = _OFFSET.match(self.zone)
        if offset:
            minutes = int(offset[2]) * 60 + int(offset[3] or 0)
            return dt.timezone(dt.timedelta(minutes=minutes if offset[1] == "+" else -minutes))
        try:
            return ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            return None
