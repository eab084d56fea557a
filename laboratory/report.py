"""The report: what a campaign found, as a page of the documentation.

Text only. The page is written by `python -m laboratory`, never by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from laboratory.campaign import Tally


@dataclass(frozen=True)
class Caught:
    """A mutant, and how many histories it took to catch it (None: it was not)."""

    name: str
    histories: int | None


def page(tally: Tally, caught: Sequence[Caught], *, first: int, seconds: float, jobs: int) -> str:
    """The page as Markdown."""
    refused, needless = tally.refused.total(), tally.needless.total()
    lines = [
        "# The laboratory's last run",
        "",
        "Written by `make lab`; what the words mean is said in [the laboratory](laboratory.md).",
        "",
        f"{tally.histories:,} histories (seeds {first:,} to {first + tally.histories - 1:,}), "
        f"{tally.transactions:,} transactions, {jobs} processes, {seconds / 60:.1f} minutes: "
        f"**{len(tally.wrong)} violations**.",
        "",
        "## Outcomes",
        "",
        *_table(_outcome_head(tally), _outcomes(tally)),
        "",
        "## Precision",
        "",
        f"{refused:,} of {tally.transactions:,} transactions were refused by a conflict "
        f"({_share(refused, tally.transactions)}). Of these {needless:,} "
        f"({_share(needless, tally.transactions)} of all transactions) had a serial order after all: the rules were "
        "stricter than they had to be.",
        "",
        *_table(("refused", "by", "level", "refusals", "with a serial order"), _pairs(tally)),
        "",
        "## Mutants",
        "",
        "Each is the product with one rule broken; the number says how many histories it took to notice.",
        "",
        *_table(("broken rule", "caught after"), [(c.name, _number(c.histories)) for c in caught]),
        "",
    ]
    if tally.wrong:
        lines += ["## Violations", "", *(f"- seed {seed}: {what}" for seed, what in tally.wrong[:50]), ""]
    return "\n".join(lines)


def _outcome_head(tally: Tally) -> tuple[str, ...]:
    return ("statement", *sorted({outcome for _, outcome in tally.told}))


def _outcomes(tally: Tally) -> list[tuple[str, ...]]:
    head = _outcome_head(tally)
    verbs = sorted({verb for verb, _ in tally.told})
    return [(verb, *(f"{tally.told[verb, outcome]:,}" for outcome in head[1:])) for verb in verbs]


def _pairs(tally: Tally) -> list[tuple[str, ...]]:
    ordered = sorted(tally.refused.items(), key=lambda item: (-item[1], item[0]))
    return [(*pair, f"{total:,}", f"{tally.needless[pair]:,}") for pair, total in ordered]


def _number(histories: int | None) -> str:
    return "**not caught**" if histories is None else f"{histories:,}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
