"""Manners: how another engine writes down what it has done, as far as PROTOCOL.md leaves it the choice.

Pure data and dice; knows nothing of our rules. A manner may be careless in whatever readers must bear: actions in any
order, flags that the actions contradict, files named again, no provenance at all. It never says what nobody could find
out to be false: that a reader read nothing, or that other rows are the same rows moved.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Manner:
    """One way to write a commit.

    Attributes:
        info: ``full``, ``bare`` as deltalake writes it (no flag, no id), or ``none``.
        flag: what ``isBlindAppend`` is, None where it is left out.
        tags: ``none``, those of a ``reservation`` of ours, of ``moves``, or ``copied`` from the commit before.
        vectors: how rows are marked: ``inline``, ``relative`` or ``prefixed``; ``none`` where files are written anew.
        change: what ``dataChange`` says of a change.
        churns: what else is done to a live file: it is ``restated``, ``touched`` by another vector of the same rows,
            ``rewritten`` as another file, or ``none``.
        churn: what ``dataChange`` says of that.
        stats: ``whole``, ``count`` alone, or ``none``.
        extended: whether a remove is more than it must be.
        txn: whether it is a batch of a stream too.
        order: by which the actions are shuffled.
    """

    info: str = "full"
    flag: Any = None
    tags: str = "none"
    vectors: str = "none"
    change: bool = True
    churns: str = "none"
    churn: bool = False
    stats: str = "count"
    extended: bool = True
    txn: bool = False
    order: int = 0


PLAIN = Manner()
"""Nothing odd."""
BARE = Manner(info="bare")
"""As deltalake writes."""


def manner_by(dice: random.Random) -> Manner:
    """Any manner; each oddity is likely enough to meet the others."""
    return Manner(
        info=dice.choice(("full", "full", "bare", "bare", "none")),
        flag=dice.choice((None, None, False, True, True, "true", 1)),
        tags=dice.choice(("none", "none", "none", "reservation", "moves", "copied")),
        vectors=dice.choice(("none", "inline", "relative", "prefixed")),
        change=dice.random() < 0.85,
        churns=dice.choice(("none", "none", "none", "restated", "touched", "rewritten")),
        churn=dice.random() < 0.25,
        stats=dice.choice(("whole", "count", "none")),
        extended=dice.random() < 0.7,
        txn=dice.random() < 0.15,
        order=dice.randrange(1 << 30),
    )
