"""The result of ``timeline``: the data of a table's timeline, and the page that shows it. Knows no Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anabranch._api.timeline.document import document, name_of
from anabranch.commands.opening import Location
from anabranch.commands.queries.timeline.entries import TableTimeline
from anabranch.commands.queries.timeline.read import LAST
from anabranch.commands.queries.timeline.read import timeline as read_timeline

_HEIGHT = 760
_QUOTED = str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True)
class Timeline:
    """A table's timeline. In a notebook it shows itself; `save` writes it as one HTML file.

    Attributes:
        data: its versions, oldest first, with the changes of each, the table after it, and advice.

    Example:
        >>> DeltaTable.forPath(spark, "/data/flights").timeline().save("flights.html")
    """

    data: TableTimeline

    def __repr__(self) -> str:
        entries = self.data.entries
        span = f"versions {entries[0].version} to {entries[-1].version}" if entries else "no commit is kept"
        return f"Timeline({self.data.table!r}: {span})"

    @property
    def html(self) -> str:
        """The page, which is self-contained and makes no request."""
        return document(self.data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page to a file, replacing an existing one; returns its path."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8", newline="\n")
        return file

    def as_json(self) -> dict[str, Any]:
        """The data as plain values."""
        return asdict(self.data)

    def _repr_html_(self) -> str:
        """The page in a frame, which keeps its style and script apart from the notebook's."""
        quoted = self.html.translate(_QUOTED)
        title = f"Timeline of {name_of(self.data.table)}".translate(_QUOTED)
        return (
            f"<iframe sandbox='allow-scripts' title='{title}' width='100%' height='{_HEIGHT}'"
            f" style='border: 0; max-height: 85vh' srcdoc='{quoted}'></iframe>"
        )


def timeline(table: Location, last: int = LAST, storage_options: Mapping[str, str] | None = None) -> Timeline:
    """The timeline of a table: its newest ``last`` versions.

    Raises:
        NotATable: the table does not exist. InvalidOption: ``last`` is not a whole number from 1.
    """
    return Timeline(read_timeline(table, last, storage_options=storage_options))
