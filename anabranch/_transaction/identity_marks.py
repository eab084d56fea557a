"""Marks of identity columns and of row ids: the effect on ours of a winner that moved them.

Knows metadata and statistics, never a row. Pure. Guarantee: a winner counts as a reservation only where its content
agrees; an explicit value never lands behind a SYNC IDENTITY that did not count it and will assign it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._protocol.actions import DomainMetadata, Metadata
from anabranch._protocol.features import row_tracking
from anabranch._protocol.rules.identity import Identity, identities, is_watermark, reassigns_values
from anabranch._protocol.stats.statistics import stats_columns
from anabranch._transaction.transaction import Transaction, reservation_of


def only_marks(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner's metadata differs from what ours has read by marks of identity columns at most."""
    base, metadata = ours.base, winner.head.metadata
    return base is not None and metadata is not None and is_watermark(base.metadata, metadata)


def find_mark_reset(ours: Transaction, window: Sequence[Commit]) -> Commit | None:
    """The first winner whose metadata set the mark of an identity column back: the values between may be ours, and
    would be assigned again.
    """
    newest = ours.position.passed or (ours.base.metadata if ours.base is not None else None)
    for winner in window:
        metadata = winner.head.metadata
        if newest is not None and metadata is not None and reassigns_values(newest, metadata):
            return winner
        newest = metadata or newest
    return None


def lowers_row_ids(winner: Commit, before: Iterable[DomainMetadata]) -> bool:
    """Whether a winner lowered the mark of row ids below one of these, or removed it."""
    stated = [_row_mark(domain) for domain in winner.head.domains if domain.domain == row_tracking.DOMAIN]
    earlier = [_row_mark(domain) for domain in before if domain.domain == row_tracking.DOMAIN]
    return bool(stated and earlier) and min(stated) < max(earlier)


def _row_mark(domain: DomainMetadata) -> int:
    """The mark; below all others where there is none, or an unreadable one."""
    try:
        return row_tracking.NOTHING if domain.removed else row_tracking.mark_of(domain)
    except (ValueError, RecursionError):
        return row_tracking.NOTHING


def is_reservation(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner only reserved identity values, so that it has read no row."""
    return reservation_of(winner) is not None and only_marks(ours, winner)


def passes(ours: Transaction, winner: Commit) -> bool:
    """Whether ours may continue under a winner's metadata, since that only moved marks.

    At the file level, tables with identity columns conflict as documented, but not with a reservation for ours; and of
    two reservations the second must take other values.
    """
    if (
        ours.identity.reserved_for is not None
        or not only_marks(ours, winner)
        or may_have_uncounted_values(ours, winner)
    ):
        return False
    return ours.resolution != "file" or reservation_of(winner) in ours.identity.writers


def may_have_uncounted_values(ours: Transaction, winner: Commit) -> bool:
    """Whether ours may add an explicit value beyond the mark that a SYNC IDENTITY has set meanwhile, so that the table
    would assign it once more.
    """
    metadata = winner.head.metadata
    if not ours.identity.own_numbers or metadata is None or len(winner.adds) or reservation_of(winner) is not None:
        return False
    explicit = [i for i in identities(metadata.schema) if i.column in ours.identity.own_numbers]
    return any(_may_lie_behind(ours, metadata, i) for i in explicit)


def _may_lie_behind(ours: Transaction, metadata: Metadata, identity: Identity) -> bool:
    """Whether some new file of ours may hold a value that is yet to be assigned."""
    stated = stats_columns(ours.changes.adds["stats"], metadata.schema, [identity.column]).columns[identity.column]
    mark = identity.next - identity.step
    if identity.step > 0:
        behind = pc.greater(stated.maximum, mark)
    else:
        behind = pc.less(stated.minimum, mark)
    return bool(pc.any(pc.fill_null(behind, True)).as_py())
