"""What Spark tells of tables as text: ``SHOW TABLE EXTENDED``, the one statement that asks no format for it.

Pure. A text has a field to a line, and comments, properties, paths and columns may hold lines that look like fields.
Guarantee: what is taken from a text can be read in it in one way; else it is refused, and no table is opened, nor are
files removed, by what a comment says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BEHIND_LOCATION = (
    "Serde Library",
    "InputFormat",
    "OutputFormat",
    "Compressed",
    "Storage Properties",
    "Partition",
    "Schema",
)
_PROPERTY = r"(?:^\[|, ?){key}=([^,\]]*)(?=, ?|\]$)"


@dataclass(frozen=True)
class TableText:
    """The text of one table.

    Attributes:
        lines: its lines.
    """

    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> TableText:
        """The text as Spark gives it."""
        return cls(tuple(text.split("\n")))

    def first(self, field: str) -> str | None:
        """What the first line of a field says: nothing that a user writes comes before the type and the provider."""
        return next(iter(self._all(field)), None)

    def location(self) -> str | None:
        """Where the table lies; None where this cannot be told, since several lines say so, or the path breaks."""
        found = [i for i, line in enumerate(self.lines) if line.startswith("Location: ")]
        if len(found) != 1:
            return None
        rest = self.lines[found[0] + 1 :]
        if any(rest) and not rest[0].startswith(_BEHIND_LOCATION):
            return None
        return self.lines[found[0]].removeprefix("Location: ")

    def property(self, key: str) -> str | None:
        """The value of a property without commas and brackets; None where there is none, or several."""
        said = self._all("Table Properties")
        found = re.findall(_PROPERTY.format(key=re.escape(key)), said[0]) if len(said) == 1 else []
        return found[0] if len(found) == 1 else None

    def mentions(self, word: str) -> bool:
        """Whether a word is in it, wherever."""
        return any(word in line for line in self.lines)

    def _all(self, field: str) -> list[str]:
        start = f"{field}: "
        return [line.removeprefix(start) for line in self.lines if line.startswith(start)]
