"""Stream readers: a query that reads the table, batch by batch, while others write it.

Knows the product's source of streams, and reads the rows that it names. Judges nothing, but that a batch which is
planned again is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anabranch._storage import Store
from anabranch._streaming.pieces import Piece
from anabranch._streaming.reading import Limits, StreamRead, Tolerance
from anabranch._streaming.source import Source
from anabranch.commands.opening import open_log
from anabranch.errors import StreamMetadataChanged
from laboratory.log_reader import Changes, stored_rows
from laboratory.statements import Follow, Row

_TOLERANCE = {
    "changes": Tolerance(),
    "writes": Tolerance(changes=True),
    "inserts": Tolerance(change_commits=True),
}


@dataclass(frozen=True)
class Seen:
    """What a query was shown: the rows that were there at a version, if it says ``there``, and what all ``commits``
    brought.
    """

    there: int | None
    commits: range
    rows: Changes


def followed(follow: Follow, location: str, sleep: Callable[[float], None]) -> Seen | None:
    """Read a table; None where there was nothing to read.

    Raises:
        AnabranchError: the store fails, or a file is gone.
    """
    query = _Query(follow, location)
    for _ in range(follow.batches):
        query.batch()
        sleep(1.0)
    while query.batch():
        pass
    return query.seen()


class _Query:
    def __init__(self, follow: Follow, location: str) -> None:
        self._follow, self._location = follow, location
        self._ends: list[str] = []
        self._rows: list[tuple[str, Row]] = []
        self._source = self._started()
        self._at = self._source.initial()

    def batch(self) -> bool:
        """Read the next batch; False where there is none."""
        try:
            end = self._source.latest(self._at, Limits(self._follow.files))
        except StreamMetadataChanged:
            self._source = self._started()
            return True
        if end == self._at:
            return False
        pieces = self._source.pieces(self._at, end)
        self._ends.append(json.dumps(end.to_json()))
        if self._follow.again:
            assert self._again() == pieces, "a batch that is planned again is another"
        self._at = end
        for piece in pieces:
            self._rows += _shown(self._source.log.store, piece)
        return True

    def seen(self) -> Seen | None:
        """What was shown so far, where every batch was read."""
        if self._at.position is None:
            return None
        assert self._at.position.index < 0, "a version was shown in part"
        began = self._source.offset(json.loads(self._ends[0])).began
        assert began is not None, "the first batch does not say where it began"
        commits = range(began.version + began.in_snapshot, self._at.position.version)
        return Seen(began.version if began.in_snapshot else None, commits, tuple(self._rows))

    def _again(self) -> list[Piece]:
        """The last batch, planned by a process that knows the checkpoint alone."""
        source = self._source = self._started()
        start = source.offset(json.loads(self._ends[-2])) if len(self._ends) > 1 else source.initial()
        return source.pieces(start, source.offset(json.loads(self._ends[-1])))

    def _started(self) -> Source:
        newest, shows = open_log(self._location).snapshot(), self._follow.shows
        asked = StreamRead(
            newest.table,
            newest.metadata.to_json(),
            newest.version,
            0 if self._follow.whole else None,
            feed=shows == "changes",
            tolerance=_TOLERANCE[shows],
        )
        return Source(StreamRead.from_json(asked.to_json()))


def _shown(store: Store, piece: Piece) -> Iterator[tuple[str, Row]]:
    said = "insert" if piece.shown is None else piece.shown.change
    for i, (row, change) in enumerate(stored_rows(store, piece.path, piece.values)):
        if i not in (piece.hidden or ()) and (piece.only is None or i in piece.only):
            yield said or change, row
