"""Marks of identity columns and of row ids: what it means for ours that a winner moved them.

Knows metadata and statistics, never a row. Pure. Guarantee: a winner passes for a reservation only where its content
agrees; a value that a user gave never lands behind a SYNC IDENTITY that did not count it and will give it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._protocol.actions import DomainMetadata, Metadata
from anabranch._protocol.features import row_tracking
from anabranch._protocol.rules.identity import Identity, goes_back, identities, is_watermark
from anabranch._protocol.stats.statistics import stats_columns
from anabranch._transaction.transaction import Transaction, reservation_of


def only_marks(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner's metadata differs from what ours has read by marks of identity columns at most."""
    known, found = ours.base, winner.head.metadata
    return known is not None and found is not None and is_watermark(known.metadata, found)


def find_mark_reset(ours: Transaction, window: Sequence[Commit]) -> Commit | None:
    """The first winner whose metadata set the mark of an identity column behind where an earlier version had it: the
    values between may be ours, and would be given again.
    """
    known = ours.stands.passed or (ours.base.metadata if ours.base is not None else None)
    for winner in window:
        found = winner.head.metadata
        if known is not None and found is not None and goes_back(known, found):
            return winner
        known = found or known
    return None


def lowers_row_ids(winner: Commit, before: Iterable[DomainMetadata]) -> bool:
    """Whether a winner set the mark of row ids behind where one of these had it, or took it away."""
    stated = [_row_mark(each) for each in winner.head.domains if each.domain == row_tracking.DOMAIN]
    known = [_row_mark(each) for each in before if each.domain == row_tracking.DOMAIN]
    return bool(stated and known) and min(stated) < max(known)


def _row_mark(domain: DomainMetadata) -> int:
    """The mark; below all others where there is none, or none that can be read."""
    try:
        return row_tracking.NOTHING if domain.removed else row_tracking.mark_of(domain)
    except (ValueError, RecursionError):
        return row_tracking.NOTHING


def is_reservation(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner did nothing but reserve identity values, so that it has read no row."""
    return reservation_of(winner) is not None and only_marks(ours, winner)


def passes(ours: Transaction, winner: Commit) -> bool:
    """Whether ours may go on under a winner's metadata, since that moved marks only.

    By files, tables with identity columns conflict as documented, but not with what was reserved for ours; and of two
    reservations the second must take other values.
    """
    if (
        ours.identity.reserved_for is not None
        or not only_marks(ours, winner)
        or may_have_uncounted_values(ours, winner)
    ):
        return False
    writer = ours.identity.writer
    return ours.resolution != "file" or (writer is not None and reservation_of(winner) == writer)


def may_have_uncounted_values(ours: Transaction, winner: Commit) -> bool:
    """Whether ours may bring a value of a user that lies behind the mark which a SYNC IDENTITY has set meanwhile, so
    that the table would give it once more.
    """
    metadata = winner.head.metadata
    if not ours.identity.own_numbers or metadata is None or len(winner.adds) or reservation_of(winner) is not None:
        return False
    own = [each for each in identities(metadata.schema) if each.column in ours.identity.own_numbers]
    return any(_may_lie_behind(ours, metadata, each) for each in own)


def _may_lie_behind(ours: Transaction, metadata: Metadata, identity: Identity) -> bool:
    """Whether some new file of ours may hold a value that is still to be given."""
    stated = stats_columns(ours.does.adds["stats"], metadata.schema, [identity.column]).columns[identity.column]
    mark = identity.next - identity.step
    if identity.step > 0:
        behind = pc.greater(stated.maximum, mark)
    else:
        behind = pc.less(stated.minimum, mark)
    return bool(pc.any(pc.fill_null(behind, True)).as_py())
