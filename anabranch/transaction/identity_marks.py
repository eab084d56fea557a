"""Marks of identity columns: what it means for mine that a winner moved them.

Knows metadata and statistics, never a row. Pure. Guarantee: a winner passes for a reservation only where its content
agrees; a value that a user gave never lands behind a SYNC IDENTITY that did not count it and will give it again.
"""

from __future__ import annotations

import pyarrow.compute as pc

from anabranch.log.commits import Commit
from anabranch.protocol.actions import Metadata
from anabranch.protocol.features.identity import Identity, identities, is_watermark
from anabranch.protocol.stats.statistics import stats_columns
from anabranch.transaction.footprint import Transaction, reservation_of


def only_marks(mine: Transaction, winner: Commit) -> bool:
    """Whether a winner's metadata differs from what mine has read by marks of identity columns at most."""
    known, found = mine.base, winner.head.metadata
    return known is not None and found is not None and is_watermark(known.metadata, found)


def is_reservation(mine: Transaction, winner: Commit) -> bool:
    """Whether a winner did nothing but reserve identity values, so that it has read no row."""
    return reservation_of(winner) is not None and only_marks(mine, winner)


def passes(mine: Transaction, winner: Commit) -> bool:
    """Whether mine may go on under a winner's metadata, since that moved marks only.

    By files, tables with identity columns conflict as documented, but not with what was reserved for mine; and of two
    reservations the second must take other values.
    """
    if mine.reserved_for is not None or not only_marks(mine, winner) or uncounted(mine, winner):
        return False
    return mine.resolution != "file" or (mine.writer is not None and reservation_of(winner) == mine.writer)


def uncounted(mine: Transaction, winner: Commit) -> bool:
    """Whether mine may bring a value of a user that lies behind the mark which a SYNC IDENTITY has set meanwhile, so
    that the table would give it once more.
    """
    metadata = winner.head.metadata
    if not mine.own_numbers or metadata is None or len(winner.adds) or reservation_of(winner) is not None:
        return False
    own = [each for each in identities(metadata.schema) if each.column in mine.own_numbers]
    return any(_may_lie_behind(mine, metadata, each) for each in own)


def _may_lie_behind(mine: Transaction, metadata: Metadata, identity: Identity) -> bool:
    """Whether some new file of mine may hold a value that is still to be given."""
    stated = stats_columns(mine.adds["stats"], metadata.schema, [identity.column]).columns[identity.column]
    mark = identity.next - identity.step
    if identity.step > 0:
        behind = pc.greater(stated.maximum, mark)
    else:
        behind = pc.less(stated.minimum, mark)
    return bool(pc.any(pc.fill_null(behind, True)).as_py())
