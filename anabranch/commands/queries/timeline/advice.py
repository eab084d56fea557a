"""What would help a table, from figures alone.

Pure. Guarantee: no advice without the figure behind it; where a figure is unknown, nothing is advised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.commands.queries.timeline.values import Advice, Totals

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
    """What advice goes by.

    Attributes:
        packable, packed: how many files OPTIMIZE would rewrite, and about how many files it would write.
        behind: how many commits follow the newest checkpoint.
        checkpoint_interval: after how many commits the table wants one.
        removed_files, removed_bytes: what commits removed so long ago that VACUUM may delete it, and no VACUUM that the
            log shows did; None: unknown.
        commits, raced, refused: how many commits state their base, between how many of these and their base others
            committed, and how many transactions this process saw refused.
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
    """The advice for a table at a URL, what matters most first; one that says that nothing is to do where that is so.

    Example:
        >>> advise(Figures(Totals(100, 1 << 20, 100, 0, 100), packable=100, packed=1), "file:///t")[0].command
        'OPTIMIZE delta.`file:///t`'
    """
    name = f"delta.`{table.replace('`', '``')}`"
    rules = (_optimize, _purge, _checkpoint, _vacuum, _conflicts)
    found = sorted((each for rule in rules for each in rule(figures, name)), key=lambda each: each.weight != "act")
    return tuple(found) or (Advice("table", "Nothing in these figures asks for maintenance.", None, "fine"),)


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
            f"the table asks for one each {figures.checkpoint_interval:,}. The next commit of this library at a "
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
    """A number of bytes for people.

    Example:
        >>> in_units(1536)
        '1.5 KB'
    """
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit and amount < 100 else f"{amount:.0f} {_UNITS[unit]}"
