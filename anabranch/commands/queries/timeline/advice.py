"""Maintenance advice for a table, from figures alone.

Pure. Guarantee: every piece of advice rests on a figure; an unknown figure gives none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.commands.queries.timeline.entries import Advice, Totals

_LEAST_PACKED = 20
_MARKED_ACT, _MARKED_CONSIDER = 0.2, 0.05
_BEHIND_INTERVALS = 3
_LEAST_BEHIND = 30
_REMOVED_SHARE = 0.5
_LEAST_REMOVED_FILES = 10
_RACED_SHARE = 0.25
_LEAST_COMMITS = 20
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class Figures:
    """The figures on which advice rests.

    Attributes:
        packable: number of files that OPTIMIZE would rewrite.
        packed: approximate number of files that it would write.
        behind: number of commits after the newest checkpoint.
        checkpoint_interval: number of commits after which the table requires a checkpoint.
        removed_files, removed_bytes: files that commits removed so long ago that VACUUM may delete them, and that no
            VACUUM in the log deleted; None: unknown.
        commits: number of commits that record their base version.
        raced: how many of these had another commit between their base and themselves.
        refused: number of transactions refused in this process.
    """

    totals: Totals | None
    packable: int = 0
    packed: int = 0
    behind: int = 0
    checkpoint_interval: int = 100
    removed_files: int | None = None
    removed_bytes: int | None = None
    commits: int = 0
    raced: int = 0
    refused: int = 0


def advise(figures: Figures, table: str) -> tuple[Advice, ...]:
    """The advice for the table at a URL, the most important first; a single "fine" if there is nothing to do.

    Example:
        >>> advise(Figures(Totals(100, 1 << 20, 100, 0, 100), packable=100, packed=1), "file:///t")[0].command
        'OPTIMIZE delta.`file:///t`'
    """
    name = f"delta.`{table.replace('`', '``')}`"
    rules = (_optimize, _purge, _checkpoint, _vacuum, _conflicts)
    suggestions = sorted(
        (advice for rule in rules for advice in rule(figures, name)), key=lambda advice: advice.weight != "act"
    )
    return tuple(suggestions) or (Advice("table", "Nothing in these figures asks for maintenance.", None, "fine"),)


def _optimize(figures: Figures, name: str) -> Iterator[Advice]:
    if figures.packable > figures.packed and figures.packable >= _LEAST_PACKED:
        sentence = f"OPTIMIZE would pack {figures.packable:,} files into about {figures.packed:,}."
        yield Advice("small files", sentence, f"OPTIMIZE {name}", "act")


def _purge(figures: Figures, name: str) -> Iterator[Advice]:
    totals = figures.totals
    if totals is None or totals.rows is None or not totals.deleted_rows:
        return
    share = totals.deleted_rows / (totals.rows + totals.deleted_rows)
    if share >= _MARKED_CONSIDER:
        sentence = f"{share:.0%} of the rows in the files are marked as deleted; REORG would remove them."
        weight = "act" if share >= _MARKED_ACT else "consider"
        yield Advice("deleted rows", sentence, f"REORG TABLE {name} APPLY (PURGE)", weight)  # type: ignore[arg-type]


def _checkpoint(figures: Figures, name: str) -> Iterator[Advice]:
    if figures.behind > max(_BEHIND_INTERVALS * figures.checkpoint_interval, _LEAST_BEHIND):
        sentence = (
            f"{figures.behind:,} commits follow the last checkpoint, and every reader replays them; "
            f"the table requires one every {figures.checkpoint_interval:,}. The next commit of this library at a "
            "multiple of that writes one."
        )
        yield Advice("checkpoint", sentence, None, "act")


def _vacuum(figures: Figures, name: str) -> Iterator[Advice]:
    files, size, totals = figures.removed_files, figures.removed_bytes, figures.totals
    if not files or size is None or totals is None or files < _LEAST_REMOVED_FILES:
        return
    weight = "act" if size >= _REMOVED_SHARE * totals.bytes else "consider"
    sentence = f"VACUUM could delete {files:,} files ({in_units(size)}) that commits removed before the retention time."
    yield Advice("removed files", sentence, f"VACUUM {name}", weight)  # type: ignore[arg-type]


def _conflicts(figures: Figures, name: str) -> Iterator[Advice]:
    if figures.refused:
        were = "transaction was" if figures.refused == 1 else "transactions were"
        sentence = f"{figures.refused:,} {were} refused in this process. Narrower conditions conflict less."
        yield Advice("conflicts", sentence, None, "act")
    elif figures.commits >= _LEAST_COMMITS and figures.raced >= _RACED_SHARE * figures.commits:
        share = figures.raced / figures.commits
        sentence = f"{share:.0%} of the commits raced with others. Appends that are gathered into one commit race less."
        yield Advice("conflicts", sentence, None, "consider")


def in_units(size: int) -> str:
    """Formats a number of bytes for people.

    Example:
        >>> in_units(1536)
        '1.5 KB'
    """
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit and amount < 100 else f"{amount:.0f} {_UNITS[unit]}"
