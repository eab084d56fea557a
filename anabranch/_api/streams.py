"""``spark.readStream`` and ``df.writeStream`` with our formats, and on tables of ours.

A stream is read by a data source of ours (`anabranch._streaming.data_source`), and written by a function of Spark's
``foreachBatch`` (`anabranch._streaming.sink`). Guarantee: whoever asks for what is not built is told so by name, with
what works today, and not by an error of Spark's that knows no Delta; every other format and name goes to Spark
untouched.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from anabranch._api.reader_and_writer import Formatted, Schemaless, one_path, table_of
from anabranch._catalog.named_tables import naming
from anabranch._catalog.names import parts_of
from anabranch._catalog.resolver import Resolver
from anabranch._log.commits import ENGINE
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.timestamps import milliseconds
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.dataframe_source import source_names, source_versions, under
from anabranch._spark.sessions.file_settings import speaks
from anabranch._spark.sessions.session import is_connect, reads_beyond
from anabranch._spark.sessions.settings import honour_settings
from anabranch._storage import open_store
from anabranch._streaming import on_connect
from anabranch._streaming.data_source import has_limits
from anabranch._streaming.frames import open_stream, splits
from anabranch._streaming.on_connect import OnServer
from anabranch._streaming.reading import StreamRead, read_of
from anabranch._streaming.schema_log import starting_columns
from anabranch._streaming.sink import OUTPUT_MODES, Sink
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidOption

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


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


@speaks
class StreamReader(_Stream, Schemaless):
    """``spark.readStream``."""

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        """Read the table at a path as a stream: the rows that are there, then those that are added.

        The columns are those that the table has now; when they change, the query stops, and goes on with the new ones
        when it is started again.

        Raises:
            NotATable: there is none.
            InvalidOption, NotBuilt: an option has a value that it does not take, or asks for what is not done here.
        """
        chosen = self if format is None else self.format(format)
        if not (chosen is self and self.is_ours):
            found: DataFrame = (self._plain if chosen is self else chosen).load(path, None, schema, **options)
            return found
        self.check_schema(schema)
        self.options(**options)
        with self.speaking():
            return self._load(one_path(path if path is not None else self._options.take("path")))

    def table(self, tableName: str) -> DataFrame:
        """Read the table of a name as a stream, or of ``delta.`path` ``; any other name is Spark's.

        Raises:
            InvalidOption, NotBuilt: as for `load`.
        """
        found = table_of(self._spark, tableName)
        if found is None:
            rows: DataFrame = self._plain.table(tableName)
            return rows
        with self.speaking():
            return self._load(found.location).alias((parts_of(tableName) or (tableName,))[-1])

    def _load(self, location: Location) -> DataFrame:
        options = self._options.copy()
        options.take("path")
        zone = SparkEngine(self._spark).zone()
        begins = options.take("startingTimestamp")
        asked = read_of(options)
        if begins is not None and asked["start"] is not None:
            reason, both = (
                "startingVersion says it too; give one of them.",
                "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            )
            raise InvalidOption(option="startingTimestamp", value=begins, reason=reason, delta_condition=both)
        if asked["schemas"] is not None and not has_limits():
            reason = "it needs PySpark 4.2 or later, which lets a stream show first what lies before a change."
            raise InvalidOption(option="schemaTrackingLocation", value=asked["schemas"], reason=reason)
        if asked["schemas"] is not None:  # the source, a process of its own, knows no session
            asked["schemas"] = open_store(asked["schemas"]).url
        snapshot = open_log(location).snapshot()
        begins_at = asked["start"] if isinstance(asked["start"], int) else None
        known = starting_columns(snapshot, asked["schemas"], begins_at)
        read = StreamRead(
            snapshot.table,
            known.metadata.to_json(),
            known.version,
            start_timestamp=None if begins is None else milliseconds(begins, zone),
            zone=zone,
            beyond=asked["feed"] and reads_beyond(self._spark),
            splits=splits(self._spark),
            **asked,
        )
        return open_stream(self._spark, type(self._plain)(self._spark), read)


@speaks
class StreamWriter(_Stream):
    """``df.writeStream``; ``another`` gives one more of Spark's own."""

    def __init__(self, frame: DataFrame, plain: Any, another: Callable[[], Any]) -> None:
        super().__init__(frame.sparkSession, plain)
        self._frame, self._another, self._has_sink = frame, another, False
        self._mode = "append"
        self._query_name: str | None = None
        self._triggered = dict[str, Any]()
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] | None = None

    def outputMode(self, outputMode: str) -> StreamWriter:
        """``append``: new rows are added; ``complete``: each batch replaces all rows."""
        self._plain = self._plain.outputMode(outputMode)
        self._mode = outputMode.lower()
        return self

    def partitionBy(self, *cols: Any) -> StreamWriter:
        """The partition columns of a table that the stream makes."""
        self._partition_by, self._plain = _flat(cols), self._plain.partitionBy(*_flat(cols))
        return self

    def clusterBy(self, *cols: Any) -> StreamWriter:
        """The columns by which the files of a table that the stream makes are laid out."""
        self._cluster_by, self._plain = _flat(cols), self._plain.clusterBy(*_flat(cols))
        return self

    def queryName(self, queryName: str) -> StreamWriter:
        """The name of the query."""
        self._query_name, self._plain = queryName, self._plain.queryName(queryName)
        return self

    def trigger(self, **when: Any) -> StreamWriter:
        """When a batch begins."""
        self._triggered, self._plain = when, self._plain.trigger(**when)
        return self

    def foreachBatch(self, func: Any) -> StreamWriter:
        """Let a function write each batch; every door may be used in it. (On Spark Connect it runs on the server, where
        a session knows Delta only if the function installs this package itself.)
        """
        func = _under(func, source_names(self._frame))
        self._plain, self._has_sink = self._plain.foreachBatch(func), True
        return self

    def foreach(self, f: Any) -> StreamWriter:
        """Let a function take each row."""
        self._plain, self._has_sink = self._plain.foreach(f), True
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        """Start the query that writes to the table at a path, each batch once; the first one makes it.

        Raises:
            UnknownSourceVersion: the query reads the table's own files without its log.
            InvalidOption: an option is missing, or asks for what no Delta table does.
        """
        chosen = self if format is None else self.format(format)
        if not (chosen is self and self.is_ours) or self._has_sink:
            plain = self._plain if chosen is self else chosen
            return plain.start(path, None, outputMode, partitionBy, queryName, **options)
        self._say(outputMode, partitionBy, queryName, options)
        path = path if path is not None else self._options.take("path")
        if path is None:
            raise InvalidOption(option="path", value=None, reason="say the path of the table: start(path).")
        with self.speaking():
            return self._start_query(path)

    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        """Start the query that writes to the table of a name, which is made where there is none.

        Raises:
            NameTaken: it is the name of something else. UnknownSchema: there is no such schema.
            InvalidOption: as for `start`.
        """
        chosen = self if format is None else self.format(format)
        found = table_of(self._spark, tableName)
        if found is None and not (chosen is self and self.is_ours):
            plain = self._plain if chosen is self else chosen
            return plain.toTable(tableName, None, outputMode, partitionBy, queryName, **options)
        if chosen is not self or self._has_sink:
            reason = f"{tableName} is a Delta table, which only a stream of its own format writes to."
            raise InvalidOption(option="format", value=format, reason=reason)
        self._say(outputMode, partitionBy, queryName, options)
        self._sink("")  # what is refused is refused before a table is made
        with self.speaking():
            return self._start_query(self._create_table(tableName) if found is None else found.location)

    def _say(self, mode: str | None, columns: Any, name: str | None, options: dict[str, Any]) -> None:
        self.options(**options)
        if mode is not None:
            self.outputMode(mode)
        if columns is not None:
            self.partitionBy(*([columns] if isinstance(columns, str) else columns))
        if name is not None:
            self.queryName(name)

    def _create_table(self, name: str) -> Location:
        """The location of a new table with the columns of the stream."""
        options, parts = self._options.copy(), parts_of(name)
        if parts is None:
            raise InvalidOption(option="tableName", value=name, reason="it is not the name of a table.")
        target = Resolver(self._spark).target(parts, options.take("path"))
        if isinstance(target, str):
            return target
        schema = all_nullable(SparkEngine(self._spark).describe(self._frame))
        cluster_by = None if self._cluster_by is None else paths_of(self._cluster_by)
        new = NewTable(schema, self._partition_by, options.properties(), cluster_by=cluster_by)
        with honour_settings(self._spark, "a write"), naming(self._spark, target):
            Create(target.location, new, if_not_exists=True).run()
        return target.location

    def _start_query(self, location: Location) -> Any:
        """The query: Spark's own, with a function as its sink."""
        known, checkpoint = open_log(location).newest(), self._options.copy().take("checkpointLocation")
        sink = replace(self._sink(location), reads=source_names(self._frame))
        if known is not None:
            source_versions(under(self._spark.range(0), sink.reads), known.table, known.metadata.id)
        function = _on_server(sink, checkpoint) if is_connect(self._spark) else sink
        plain = self._another().outputMode(self._mode).foreachBatch(function)
        plain = plain if checkpoint is None else plain.option("checkpointLocation", checkpoint)
        plain = plain if self._query_name is None else plain.queryName(self._query_name)
        return (plain.trigger(**self._triggered) if self._triggered else plain).start()

    def _sink(self, location: Location) -> Sink:
        """What writes the batches. Raises InvalidOption: an option is missing, or asks for what no Delta table does."""
        if self._mode not in OUTPUT_MODES:
            mode = str(self._mode).capitalize()
            reason = (
                f"a Delta table does not support {mode} output mode; it takes append, or complete, which replaces "
                "every row by each batch."
            )
            unsupported = {"delta_condition": "DELTA_UNSUPPORTED_OUTPUT_MODE"}
            raise InvalidOption(option="outputMode", value=self._mode, reason=reason, **unsupported)
        options = self._options.copy()
        given = options.take("checkpointLocation")
        if given is None and (is_connect(self._spark) or not self._spark.conf.get(_CHECKPOINTS, None)):
            reason = f"say where the query keeps how far it has come, or set {_CHECKPOINTS} for a classic session."
            raise InvalidOption(option="checkpointLocation", value=None, reason=reason)
        options.take("path")
        cluster_by = None if self._cluster_by is None else paths_of(self._cluster_by)
        return Sink.of(location, self._mode, options, self._partition_by, cluster_by)


def _on_server(sink: Sink, checkpoint: str | None) -> OnServer:
    """The sink as a function that the server of Spark Connect runs."""
    cloudpickle.register_pickle_by_value(on_connect)
    return OnServer(pickle.dumps(sink), checkpoint or "", ENGINE)


def _under(func: Callable[..., Any], reads: tuple[str, ...]) -> Callable[..., Any]:
    """The function, with each batch under the names of what its query reads besides the stream."""
    cloudpickle.register_pickle_by_value(on_connect)
    return on_connect.Under(func, reads)


def _flat(cols: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
