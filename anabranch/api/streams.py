"""``spark.readStream`` and ``df.writeStream`` with our formats, and on tables of ours.

Streams are not built yet. Guarantee: whoever asks for one is told so by name, with what works today, and not by an
error of Spark's that knows no Delta; every other format and name goes to Spark untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame

from anabranch.api.reader_and_writer import Formatted, formats, table_of
from anabranch.errors import NotBuilt

_FEED = (
    "Read the changes of a range of versions: spark.read.format('delta').option('readChangeFeed', True)"
    ".option('startingVersion', n)."
)
_BATCHES = (
    "Write each batch by foreachBatch, and each once: batch.write.format('delta').mode('append')"
    ".option('txnAppId', query).option('txnVersion', batch_id).save(path)."
)


class _Stream(Formatted):
    """What is built up by methods of Spark's own; each gives ours back."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plain, name)
        return self._building(found) if callable(found) else found

    def _building(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            result = method(*args, **named)
            if not isinstance(result, type(self._plain)):
                return result
            self._plain = result
            return self

        return call


class StreamReader(_Stream):
    """``spark.readStream``."""

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        """Read a stream of files of another format.

        Raises:
            NotBuilt: the format is ours.
        """
        chosen = self if format is None else self.format(format)
        if chosen is self and self.is_ours:
            raise NotBuilt(what="Reading a Delta table as a stream", instead=_FEED)
        found: DataFrame = (self._plain if chosen is self else chosen).load(path, None, schema, **options)
        return found

    def table(self, tableName: str) -> DataFrame:
        """Read a stream from a table of Spark's.

        Raises:
            NotBuilt: the table is ours.
        """
        if table_of(self._spark, tableName) is not None:
            raise NotBuilt(what=f"Reading the Delta table {tableName} as a stream", instead=_FEED)
        found: DataFrame = self._plain.table(tableName)
        return found


class StreamWriter(_Stream):
    """``df.writeStream``."""

    def __init__(self, frame: DataFrame, plain: Any) -> None:
        super().__init__(frame.sparkSession, plain)
        self._has_sink = False

    def foreachBatch(self, func: Any) -> StreamWriter:
        """Let a function write each batch; every door may be used in it. (On Spark Connect it runs on the server, where
        a session knows Delta only if the function installs this package itself.)
        """
        if not type(self._spark).__module__.startswith("pyspark.sql.connect"):
            func = _in_installed_sessions(func, formats[self._spark])
        self._plain, self._has_sink = self._plain.foreachBatch(func), True
        return self

    def foreach(self, f: Any) -> StreamWriter:
        """Let a function take each row."""
        self._plain, self._has_sink = self._plain.foreach(f), True
        return self

    def start(self, path: str | None = None, format: str | None = None, *args: Any, **options: Any) -> Any:
        """Start the query.

        Raises:
            NotBuilt: it would write to a Delta table, and no function takes its batches.
        """
        chosen = self if format is None else self.format(format)
        if chosen is self and self.is_ours and not self._has_sink:
            raise NotBuilt(what="Writing a stream to a Delta table", instead=_BATCHES)
        return (self._plain if chosen is self else chosen).start(path, None, *args, **options)

    def toTable(self, tableName: str, format: str | None = None, *args: Any, **options: Any) -> Any:
        """Start a query that writes to a table of Spark's.

        Raises:
            NotBuilt: the table is ours, or would be.
        """
        chosen = self if format is None else self.format(format)
        if (chosen is self and self.is_ours) or table_of(self._spark, tableName) is not None:
            raise NotBuilt(what=f"Writing a stream to the Delta table {tableName}", instead=_BATCHES)
        return (self._plain if chosen is self else chosen).toTable(tableName, None, *args, **options)


def _in_installed_sessions(func: Callable[..., Any], known: frozenset[str]) -> Callable[..., Any]:
    """The function, with each batch in a session that is installed: Spark makes a new one for each query."""

    @wraps(func)
    def run(batch: DataFrame, number: int) -> Any:
        session = batch.sparkSession
        formats[session] = known
        try:
            return func(batch, number)
        finally:
            formats.pop(session, None)

    return run
