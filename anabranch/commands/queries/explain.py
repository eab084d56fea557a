"""Explains which files a condition selects, and what each part of it ruled out. Reads only the log; needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.predicates import Predicate
from anabranch._protocol.stats.skipping_verdicts import Conjunct, verdict
from anabranch.commands.opening import filter_files
from anabranch.errors.html import facts
from anabranch.errors.visible import amount

NAMED = 20
"""Maximum number of selected files that are listed by path."""
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Skipping:
    """The effect of a condition on file skipping, for one version of a table.

    Attributes:
        table: its URL.
        version: the version that was examined.
        where: the condition.
        total: number of live files.
        kept: number of files that may hold rows for which the condition is TRUE.
        bytes_total: size of all live files.
        bytes_kept: size of the files that are kept.
        by: the effect of each part, in order; AND joins the parts.
        files: the paths of the first `NAMED` files that are kept, as in the log.
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
        return "\n".join([first, *(f"  {conjunct}" for conjunct in self.by)])

    @property
    def _kept_text(self) -> str:
        return f"{self.kept} of {self.total} files, {format_size(self.bytes_kept)} of {format_size(self.bytes_total)}"

    def _repr_html_(self) -> str:
        """For notebooks: how much is kept, which files, and what each part ruled out, or why it ruled out no more."""
        parts = [
            {"part": conjunct.text, "rules out": amount(conjunct.dropped, "file"), "why no more": conjunct.reason or ""}
            for conjunct in self.by
        ]
        more = self.kept - len(self.files)
        kept = [*self.files, *([f"and {more:,} more"] if more else [])]
        return facts(
            f"{self.table} at version {self.version}",
            {"condition": self.where, "kept": self._kept_text, "parts": parts, "files kept": kept},
        )


def explain(snapshot: Snapshot, where: str, predicate: Predicate, parts: Sequence[tuple[str, Predicate]]) -> Skipping:
    """Applies file skipping to a condition and reports the effect.

    Args:
        predicate: the whole condition, as far as it could be translated.
        parts: text and predicate of each part that AND joins.
    """
    files, file_facts = snapshot.files, snapshot.facts
    selected = filter_files(files, file_facts.could_match(predicate))
    return Skipping(
        table=snapshot.table,
        version=snapshot.version,
        where=where,
        total=len(files),
        kept=len(selected),
        bytes_total=pc.sum(files["size"]).as_py() or 0,
        bytes_kept=pc.sum(selected["size"]).as_py() or 0,
        by=tuple(verdict(text, part, file_facts) for text, part in parts),
        files=tuple(selected["path"].slice(0, NAMED).to_pylist()),
    )


def format_size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
