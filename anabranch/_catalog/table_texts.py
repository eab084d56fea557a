"""Spark's descriptions of tables as text: ``SHOW TABLE EXTENDED``, the one statement that does not open the table.

Pure. A text has one field per line, and comments, properties, paths and columns may contain lines that look like
fields. Guarantee: a value that can be read from a text in more than one way is refused, so that no comment can make a
table be opened or files be removed.
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
        """The text as Spark returns it."""
        return cls(tuple(text.split("\n")))

    def first(self, field: str) -> str | None:
        """The value of the first line of a field; no user's text comes before the type and the provider."""
        return next(iter(self._all(field)), None)

    def location(self) -> str | None:
        """The table's location; None if it is ambiguous, since several lines have one, or the path has line breaks."""
        numbers = [i for i, line in enumerate(self.lines) if line.startswith("Location: ")]
        if len(numbers) != 1:
            return None
        rest = self.lines[numbers[0] + 1 :]
        if any(rest) and not rest[0].startswith(_BEHIND_LOCATION):
            return None
        return self.lines[numbers[0]].removeprefix("Location: ")

    def property(self, key: str) -> str | None:
        """The value of a property without commas and brackets; None if it is missing or ambiguous."""
        texts = self._all("Table Properties")
        values = re.findall(_PROPERTY.format(key=re.escape(key)), texts[0]) if len(texts) == 1 else []
        return values[0] if len(values) == 1 else None

    def mentions(self, word: str) -> bool:
        """Whether the text contains a word anywhere."""
        return any(word in line for line in self.lines)

    def _all(self, field: str) -> list[str]:
        start = f"{field}: "
        return [line.removeprefix(start) for line in self.lines if line.startswith(start)]
