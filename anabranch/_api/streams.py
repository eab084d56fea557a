"""``spark.readStream`` and ``df.writeStream`` with our formats, and on Delta tables.

A data source of ours (`anabranch._streaming.data_source`) reads a stream, and a function for Spark's ``foreachBatch``
(`anabranch._streaming.sink`) writes it. Guarantee: unsupported requests are refused by name, with the alternatives,
and not by an error of Spark's that knows no Delta; every other format and name goes to Spark untouched.
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
from anabranch._catalog.named_tables import register_name
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import parts_of
from anabranch._log.commits import ENGINE
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.session_settings import use_dials
from anabranch._protocol.timestamps import milliseconds
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.dataframe_source import source_names, source_versions, with_aliases
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.session import allows_reads_beyond_newest, is_connect
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
    """A builder over Spark's own: its methods return this object."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._plain, name)
        return self._building(attribute) if callable(attribute) else attribute

    def _building(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            result = method(*args, **named)
            if not isinstance(result, type(self._plain)):
                return result
            self._plain = result
            return self

        return call


@uses_session_settings
class StreamReader(_Stream, Schemaless):
    """``spark.readStream``."""

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        """Reads the table at a path as a stream: first the existing rows, then those that are added.

        The columns are the table's current ones; when they change, the query stops, and continues with the new ones
        when it is started again.

        Raises:
            NotATable: the path has no table.
            InvalidOption, NotBuilt: an option has an invalid value, or is not supported.
        """
        target = self if format is None else self.format(format)
        if not (target is self and self.is_ours):
            rows: DataFrame = (self._plain if target is self else target).load(path, None, schema, **options)
            return rows
        self.check_schema(schema)
        self.options(**options)
        with self.speaking():
            return self._load(one_path(path if path is not None else self._options.take("path")))

    def table(self, tableName: str) -> DataFrame:
        """Reads the table of a name, or ``delta.`path` ``, as a stream; other names are Spark's.

        Raises:
            InvalidOption, NotBuilt: as for `load`.
        """
        table = table_of(self._spark, tableName)
        if table is None:
            rows: DataFrame = self._plain.table(tableName)
            return rows
        with self.speaking():
            return self._load(table.location).alias((parts_of(tableName) or (tableName,))[-1])

    def _load(self, location: Location) -> DataFrame:
        options = self._options.copy()
        options.take("path")
        zone = SparkEngine(self._spark).zone()
        begins = options.take("startingTimestamp")
        arguments = read_of(options)
        if begins is not None and arguments["start"] is not None:
            reason, condition = (
                "startingVersion is set too; use one of them.",
                "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            )
            raise InvalidOption(option="startingTimestamp", value=begins, reason=reason, delta_condition=condition)
        if arguments["schemas"] is not None and not has_limits():
            reason = "it needs PySpark 4.2 or later, which lets a stream show first what lies before a change."
            raise InvalidOption(option="schemaTrackingLocation", value=arguments["schemas"], reason=reason)
        if arguments["schemas"] is not None:  # the source runs in another process, without a session
            arguments["schemas"] = open_store(arguments["schemas"]).url
        snapshot = open_log(location).snapshot()
        begins_at = arguments["start"] if isinstance(arguments["start"], int) else None
        columns = starting_columns(snapshot, arguments["schemas"], begins_at)
        read = StreamRead(
            snapshot.table,
            columns.metadata.to_json(),
            columns.version,
            start_timestamp=None if begins is None else milliseconds(begins, zone),
            zone=zone,
            beyond=arguments["feed"] and allows_reads_beyond_newest(self._spark),
            splits=splits(self._spark),
            **arguments,
        )
        return open_stream(self._spark, type(self._plain)(self._spark), read)


@uses_session_settings
class StreamWriter(_Stream):
    """``df.writeStream``; ``another`` creates another writer of Spark's."""

    def __init__(self, frame: DataFrame, plain: Any, another: Callable[[], Any]) -> None:
        super().__init__(frame.sparkSession, plain)
        self._frame, self._another, self._has_sink = frame, another, False
        self._mode = "append"
        self._query_name: str | None = None
        self._trigger = dict[str, Any]()
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] | None = None

    def outputMode(self, outputMode: str) -> StreamWriter:
        """``append``: adds new rows; ``complete``: each batch replaces all rows."""
        self._plain = self._plain.outputMode(outputMode)
        self._mode = outputMode.lower()
        return self

    def partitionBy(self, *cols: Any) -> StreamWriter:
        """The partition columns of a table that the stream creates."""
        self._partition_by, self._plain = _flat(cols), self._plain.partitionBy(*_flat(cols))
        return self

    def clusterBy(self, *cols: Any) -> StreamWriter:
        """The clustering columns of a table that the stream creates."""
        self._cluster_by, self._plain = _flat(cols), self._plain.clusterBy(*_flat(cols))
        return self

    def queryName(self, queryName: str) -> StreamWriter:
        """The name of the query."""
        self._query_name, self._plain = queryName, self._plain.queryName(queryName)
        return self

    def trigger(self, **when: Any) -> StreamWriter:
        """When a batch begins."""
        self._trigger, self._plain = when, self._plain.trigger(**when)
        return self

    def foreachBatch(self, func: Any) -> StreamWriter:
        """Writes each batch with a function, which may use all of Anabranch. (On Spark Connect it runs on the server,
        where a session supports Delta only if the function installs this package itself.)
        """
        func = _under(func, source_names(self._frame))
        self._plain, self._has_sink = self._plain.foreachBatch(func), True
        return self

    def foreach(self, f: Any) -> StreamWriter:
        """Passes each row to a function."""
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
        """Starts the query that writes to the table at a path, each batch once; the first batch creates the table.

        Raises:
            UnknownSourceVersion: the query reads the table's own files without its log.
            InvalidOption: an option is missing, or asks for what no Delta table does.
        """
        target = self if format is None else self.format(format)
        if not (target is self and self.is_ours) or self._has_sink:
            plain = self._plain if target is self else target
            return plain.start(path, None, outputMode, partitionBy, queryName, **options)
        self._set_arguments(outputMode, partitionBy, queryName, options)
        path = path if path is not None else self._options.take("path")
        if path is None:
            raise InvalidOption(option="path", value=None, reason="pass the path of the table: start(path).")
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
        """Starts the query that writes to the table of a name, which is created if it does not exist.

        Raises:
            NameTaken: the name belongs to something else. UnknownSchema: the schema does not exist.
            InvalidOption: as for `start`.
        """
        target = self if format is None else self.format(format)
        table = table_of(self._spark, tableName)
        if table is None and not (target is self and self.is_ours):
            plain = self._plain if target is self else target
            return plain.toTable(tableName, None, outputMode, partitionBy, queryName, **options)
        if target is not self or self._has_sink:
            reason = f"{tableName} is a Delta table, which only a stream of its own format writes to."
            raise InvalidOption(option="format", value=format, reason=reason)
        self._set_arguments(outputMode, partitionBy, queryName, options)
        self._sink("")  # refuse before creating a table
        with self.speaking():
            return self._start_query(self._create_table(tableName) if table is None else table.location)

    def _set_arguments(self, mode: str | None, columns: Any, name: str | None, options: dict[str, Any]) -> None:
        self.options(**options)
        if mode is not None:
            self.outputMode(mode)
        if columns is not None:
            self.partitionBy(*([columns] if isinstance(columns, str) else columns))
        if name is not None:
            self.queryName(name)

    def _create_table(self, name: str) -> Location:
        """Creates a table with the columns of the stream; returns its location."""
        options, parts = self._options.copy(), parts_of(name)
        if parts is None:
            raise InvalidOption(option="tableName", value=name, reason="it is not the name of a table.")
        target = Resolver(self._spark).target(parts, options.take("path"))
        if isinstance(target, str):
            return target
        schema = all_nullable(SparkEngine(self._spark).describe(self._frame))
        cluster_by = None if self._cluster_by is None else paths_of(self._cluster_by)
        dials = options.dials()
        new = NewTable(schema, self._partition_by, options.properties(), cluster_by=cluster_by)
        with honour_settings(self._spark, "a write"), use_dials(dials), register_name(self._spark, target):
            Create(target.location, new, if_not_exists=True).run()
        return target.location

    def _start_query(self, location: Location) -> Any:
        """Starts the query: Spark's own, with a function as its sink."""
        snapshot, checkpoint = open_log(location).newest(), self._options.copy().take("checkpointLocation")
        sink = replace(self._sink(location), reads=source_names(self._frame))
        if snapshot is not None:
            source_versions(with_aliases(self._spark.range(0), sink.reads), snapshot.table, snapshot.metadata.id)
        function = _on_server(sink, checkpoint) if is_connect(self._spark) else sink
        plain = self._another().outputMode(self._mode).foreachBatch(function)
        plain = plain if checkpoint is None else plain.option("checkpointLocation", checkpoint)
        plain = plain if self._query_name is None else plain.queryName(self._query_name)
        return (plain.trigger(**self._trigger) if self._trigger else plain).start()

    def _sink(self, location: Location) -> Sink:
        """The sink that writes the batches. Raises InvalidOption: an option is missing or unsupported."""
        if self._mode not in OUTPUT_MODES:
            mode = str(self._mode).capitalize()
            reason = (
                f"a Delta table does not support {mode} output mode; it takes append, or complete, which replaces "
                "every row by each batch."
            )
            unsupported = {"delta_condition": "DELTA_UNSUPPORTED_OUTPUT_MODE"}
            raise InvalidOption(option="outputMode", value=self._mode, reason=reason, **unsupported)
        options = self._options.copy()
        checkpoint = options.take("checkpointLocation")
        if checkpoint is None and (is_connect(self._spark) or not self._spark.conf.get(_CHECKPOINTS, None)):
            reason = f"pass the location of the query's checkpoint, or set {_CHECKPOINTS} for a classic session."
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
    return on_connect.NamedBatchFunction(func, reads)


def _flat(cols: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
