"""Time travel: resolves a version given by number, by timestamp, or after the ``@`` of a path.

Accepts what delta-spark accepts; the caller passes the session's zone. Reading is `anabranch.commands.queries.read`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch._log.version_timestamps import version_at
from anabranch._protocol.timestamps import AT_DIGITS, at_milliseconds, milliseconds
from anabranch._storage.open import location_text
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.errors import AmbiguousTimeTravel, InvalidOption

_AT = re.compile(rf"^(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<digits>\d{{{AT_DIGITS}}}))$", re.DOTALL)


@dataclass(frozen=True)
class AsOf(SecretFree):
    """A table at ``version`` or at ``timestamp``; at its newest version if both are None.

    ``zone`` applies to timestamps without one; ``storage_options`` are those of obstore.

    Example:
        >>> AsOf("/data/flights", timestamp="2024-01-31", zone="UTC").pinned()
    """

    table: Location
    version: int | str | None = None
    timestamp: Any = None
    zone: str = "UTC"
    storage_options: Mapping[str, str] | None = None

    def resolve_version(self) -> tuple[Location, int | None]:
        """The table's location and the version, None for the newest.

        ``path@v3`` and ``path@20240131000000000`` are split into path and version only if no table lies at exactly
        that path.

        Raises:
            AmbiguousTimeTravel: the version is specified twice. InvalidOption, InvalidTimestamp: it cannot be parsed.
            NotATable, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version matches.
        """
        path, at = self._split_at()
        specifications = {"its number": self.version, "a timestamp": self.timestamp, f"{self.table}": at}
        sources = [source for source, value in specifications.items() if value is not None]
        if len(sources) > 1:
            raise AmbiguousTimeTravel(table=path, first=sources[0], second=sources[1])
        if self.version is not None:
            return path, _number(self.version)
        if at is not None and at["version"] is not None:
            return path, int(at["version"])
        moment = self._moment(at)
        return path, None if moment is None else version_at(open_log(path, self.storage_options), moment)

    def _moment(self, at: re.Match[str] | None) -> int | None:
        if at is not None:
            return at_milliseconds(at["digits"], self.zone)
        return None if self.timestamp is None else milliseconds(self.timestamp, self.zone)

    def _split_at(self) -> tuple[Location, re.Match[str] | None]:
        match = _AT.match(location_text(self.table))
        if match is None or open_log(self.table, self.storage_options).exists():
            return self.table, None
        return match["path"], match


def _number(version: int | str) -> int:
    if isinstance(version, bool) or not re.fullmatch(r"\d+", str(version)):
        hint = "a moment has an argument or option of its own, timestamp or timestampAsOf."
        reason = f"it takes a whole number from 0; {hint}"
        raise InvalidOption(option="versionAsOf", value=version, reason=reason)
    return int(version)
