"""The clock of a table: when a commit was made, where the commit itself has to say so.

Knows the commit that would be the previous one, and a moment; nothing of rows or files. Source: PROTOCOL.md, section
"In-Commit Timestamps". Guarantee: of two commits of one table the later has the greater timestamp, whatever the clocks
of their writers show; so it is made anew for every version that is tried.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch._protocol.in_commit_timestamps import is_enabled, with_boundary
from anabranch._transaction.transaction import Transaction


def stamp(ours: Transaction, *, version: int, previous_ms: int | None, now_ms: int) -> tuple[Transaction, int | None]:
    """Ours as it would stand at ``version``, and its in-commit timestamp, None where the table has none.

    Args:
        ours: placed, whatever it said of this version before.
        previous_ms: when the newest of the versions before was made; None for the first one.
    """
    later = now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
    moment = later if is_enabled(ours.metadata) else None
    if ours.says.metadata is None:
        return ours, moment
    before = None if ours.base is None else ours.base.metadata
    metadata = with_boundary(ours.says.metadata, before, version=version, timestamp=moment)
    return replace(ours, says=replace(ours.says, metadata=metadata)), moment
