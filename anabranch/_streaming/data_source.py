"""Spark's side of a stream that reads a table: a data source in Python.

Knows PySpark's interface of streaming sources. Spark runs the source in processes of its own: one next to the driver,
with this package, plans the batches, and executors, perhaps without it, read their rows. So this module travels by
value and imports nothing of ours except for planning. Guarantee: an error of the plan names its condition and cause in
its text, since Spark passes on nothing else.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from anabranch._streaming.arrow_rows import read_rows

try:  # from PySpark 4.2 on
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:
    ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow = None, None, object  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from anabranch._streaming.source import Source

NAME = "anabranch_stream"
REQUEST, HOME, SECRETS = "request", "home", "secret.settings"
"""The options: the request (`anabranch._streaming.reading.StreamRead`), the folder of this package, and the session's
settings of the bucket, under a name whose value Spark never shows (``spark.redaction.regex``).
"""


class TableStream(DataSource):
    """A table as the source of a stream."""

    @classmethod
    def name(cls) -> str:
        """The name of the format, which is internal: `anabranch._api.streams` checks requests and uses it."""
        return NAME

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """The reader that plans and reads the batches."""
        return _READER(self.options[REQUEST], self.options[HOME], self.options[SECRETS])


def with_name(name: str) -> type[TableStream]:
    """The same source under another name."""
    return type("TableStream", (TableStream,), {"name": classmethod(lambda cls: name)})


class Reader(DataSourceStreamReader):
    """Plans batches and reads their rows for PySpark 4.0 and 4.1: each batch goes to the newest version."""

    def __init__(self, request: str, home: str, secrets: str) -> None:
        self._request, self._home, self._secrets = request, home, secrets
        self._planned: Source | None = None

    @property
    def _source(self) -> Source:
        if self._planned is None:
            if self._home not in sys.path:
                sys.path.append(self._home)
            from anabranch._streaming.reading import StreamRead
            from anabranch._streaming.source import Source

            if settings := json.loads(self._secrets):
                from anabranch._storage.store_settings import adopt_settings

                adopt_settings(**settings)
            self._planned = Source(StreamRead.from_json(self._request))
        return self._planned

    def initialOffset(self) -> dict[str, Any]:
        return self._source.initial().to_json()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        return self._source.behind_newest().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from anabranch._streaming.tasks import tasks_of

        source = self._source
        pieces = source.pieces(source.offset(start), source.offset(end))
        return [InputPartition(task) for task in tasks_of(source.read, source.log.store, pieces)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_rows(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: no state is kept for a batch."""

    def stop(self) -> None:
        """Does nothing: nothing is open."""


class _LimitedReader(Reader, SupportsTriggerAvailableNow):
    """The same for PySpark 4.2 and later: batches have limits."""

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # type: ignore[override]
        source = self._source
        begins = source.offset(start)
        end = source.latest(begins, None if isinstance(limit, ReadAllAvailable) else source.read.limits)
        return start if end is begins else end.to_json()

    def getDefaultReadLimit(self) -> Any:
        return ReadMaxFiles(1)  # a placeholder; `latestOffset` applies the stream's limits

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._source.newest().to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._source.stop_at_newest()


def has_limits() -> bool:
    """Whether this PySpark lets a source limit its batches."""
    return len(inspect.signature(DataSourceStreamReader.latestOffset).parameters) > 1


_READER = _LimitedReader if has_limits() else Reader
