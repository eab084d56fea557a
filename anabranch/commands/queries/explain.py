"""Explaining: which files a condition leaves, and what each part of it did. Needs no Spark, and reads the log only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.predicates import Predicate
from anabranch._protocol.stats.skipping_verdicts import Conjunct, verdict
from anabranch.commands.opening import only
from anabranch.errors.html import facts
from anabranch.errors.visible import amount

NAMED = 20
"""So many of the files that are kept are named."""
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Skipping:
    """What file skipping made of a condition, for one version of a table.

    Attributes:
        table: where it is.
        version: which one was looked at.
        where: the condition.
        total: live files.
        kept: those that may hold rows for which the condition is TRUE.
        bytes_total: their size together.
        bytes_kept: the size of those that are kept.
        by: what each part did, in order; parts are joined by AND.
        files: the paths of the first of those that are kept, as in the log.
    """

    table: str
    version: int
    where: str
    total: int
    kept: int
    bytes_total: int
    bytes_kept: int
    by: tuple[Conjunct, ...]
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        first = f"{self.table} at version {self.version}: {self._kept_text}"
        return "\n".join([first, *(f"  {each}" for each in self.by)])

    @property
    def _kept_text(self) -> str:
        return f"{self.kept} of {self.total} files, {format_size(self.bytes_kept)} of {format_size(self.bytes_total)}"

    def _repr_html_(self) -> str:
        """For notebooks: how much is kept, which files, and what each part ruled out, or why it did not."""
        parts = [
            {"part": e.text, "rules out": amount(e.dropped, "file"), "why no more": e.reason or ""} for e in self.by
        ]
        more = self.kept - len(self.files)
        kept = [*self.files, *([f"and {more:,} more"] if more else [])]
        return facts(
            f"{self.table} at version {self.version}",
            {"condition": self.where, "kept": self._kept_text, "parts": parts, "files kept": kept},
        )


def explain(snapshot: Snapshot, where: str, predicate: Predicate, parts: Sequence[tuple[str, Predicate]]) -> Skipping:
    """What skipping makes of a condition: ``predicate`` is what is known of all of it, ``parts`` are text and predicate
    of each part, which AND joins.
    """
    files, known = snapshot.files, snapshot.facts
    kept = only(files, known.could_match(predicate))
    return Skipping(
        table=snapshot.table,
        version=snapshot.version,
        where=where,
        total=len(files),
        kept=len(kept),
        bytes_total=pc.sum(files["size"]).as_py() or 0,
        bytes_kept=pc.sum(kept["size"]).as_py() or 0,
        by=tuple(verdict(text, part, known) for text, part in parts),
        files=tuple(kept["path"].slice(0, NAMED).to_pylist()),
    )


def format_size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
