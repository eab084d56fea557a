"""A stream that reads a table, batch by batch, without Spark: what is planned, and what executors would read."""

from __future__ import annotations

import json
import pickle
from typing import Any

from anabranch._streaming.arrow_rows import read_rows
from anabranch._streaming.offsets import Offset
from anabranch._streaming.reading import Limits, StreamRead
from anabranch._streaming.schema_log import starting_columns
from anabranch._streaming.source import Source
from anabranch._streaming.tasks import tasks_of
from anabranch.commands.opening import open_log

ALL = Limits(None, None)


def stream_read(path: str, **asked: Any) -> StreamRead:
    """What ``spark.readStream`` asks for, of the table as it is now."""
    snapshot = open_log(path).snapshot()
    begins = asked.get("start")
    known = starting_columns(snapshot, asked.get("schemas"), begins if isinstance(begins, int) else None)
    return StreamRead(snapshot.table, known.metadata.to_json(), known.version, **asked)


class Stream:
    """A query with its checkpoint: the offsets at which its batches ended."""

    def __init__(self, path: str, **asked: Any) -> None:
        self.path, self.asked = path, asked
        self.ends: list[str] = []
        self.start()

    def start(self, **asked: Any) -> Stream:
        """Start the query, or start it again where it was."""
        self.asked = {**self.asked, **asked}
        self.source = Source(StreamRead.from_json(stream_read(self.path, **self.asked).to_json()))
        self.at = self.source.offset(json.loads(self.ends[-1])) if self.ends else self.source.initial()
        return self

    def batch(self, limits: Limits = ALL) -> list[dict[str, Any]]:
        """The rows of the next batch; none where nothing is new, but Spark runs the first one in any case."""
        end = self.source.latest(self.at, limits)
        if end == self.at and self.ends:
            return []
        start, self.at = self.at, end
        self.ends.append(json.dumps(end.to_json()))
        return self.between(start, end)

    def between(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        """The rows between two offsets, as executors read them."""
        source = self.source
        tasks = tasks_of(source.read, source.log.store, source.pieces(start, end))
        return [
            row for task in tasks for batch in read_rows(pickle.loads(pickle.dumps(task))) for row in batch.to_pylist()
        ]

    def again(self) -> list[dict[str, Any]]:
        """The rows of the last batch, done again by a new process that knows the checkpoint only."""
        before = self.ends[-2] if len(self.ends) > 1 else None
        self.source = Source(StreamRead.from_json(stream_read(self.path, **self.asked).to_json()))
        start = self.source.initial() if before is None else self.source.offset(json.loads(before))
        return self.between(start, self.source.offset(json.loads(self.ends[-1])))

    def ids(self, limits: Limits = ALL) -> list[int]:
        """The ids of the next batch, in order."""
        return sorted(row["id"] for row in self.batch(limits))
