"""The clock of a table: the time of a commit, where the commit itself has to state it.

Knows the previous commit's time and the present; nothing of rows or files. Source: PROTOCOL.md, section "In-Commit
Timestamps". Guarantee: of two commits of one table the later has the greater timestamp, whatever the clocks of their
writers show; so it is computed anew for every version that is tried.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch._protocol.in_commit_timestamps import is_enabled, with_boundary
from anabranch._transaction.transaction import Transaction


def stamp(ours: Transaction, *, version: int, previous_ms: int | None, now_ms: int) -> tuple[Transaction, int | None]:
    """Ours at ``version``, and its in-commit timestamp, None where the table has none.

    Args:
        ours: the placed transaction; timestamps of an earlier attempt are replaced.
        previous_ms: the time of the newest earlier version; None for the first one.
    """
    later = now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
    timestamp = later if is_enabled(ours.metadata) else None
    if ours.declarations.metadata is None:
        return ours, timestamp
    before = None if ours.base is None else ours.base.metadata
    metadata = with_boundary(ours.declarations.metadata, before, version=version, timestamp=timestamp)
    return replace(ours, declarations=replace(ours.declarations, metadata=metadata)), timestamp
