"""The sink of a stream: each batch of a query is one commit, made exactly once.

Knows Spark's ``foreachBatch`` and how queries are identified. Guarantee: a committed batch is not written again,
whenever the process ended before; of two queries on one checkpoint one is refused
(`anabranch.errors.ConcurrentTransactionException`), so that no batch is written twice.

PROTOCOL.md, section "Transaction Identifiers": the application is the query's id, from its checkpoint, and the version
is the number of the batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from anabranch._log.size_limits import hint
from anabranch._protocol.dials import NO_DIALS, Dials
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.options import WRITE
from anabranch._protocol.session_settings import use_dials
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.dataframe_source import with_aliases
from anabranch._spark.sessions.file_settings import use_session_settings
from anabranch._spark.sessions.settings import honour_settings
from anabranch._storage import open_store
from anabranch._transaction.own_commits import another_program
from anabranch.commands.dml.write import SchemaChange, StreamBatch, Write
from anabranch.commands.opening import Location
from anabranch.commands.options import Options
from anabranch.errors import AnabranchError, ExecutionFailed, InvalidOption

OUTPUT_MODES: Mapping[str, str] = {"append": "append", "complete": "overwrite"}
"""Output mode of a stream -> save mode of its batches."""

_QUERY_ID = "sql.streaming.queryId"
"""The local property, of the thread that runs a batch, with the query's id."""


@dataclass(frozen=True)
class Sink:
    """Writes the batches of one query, as a function of ``foreachBatch``.

    Attributes:
        write: the write of each batch, without its rows and its number.
        mode: the output mode.
        merges: whether rows may add columns; None: the session's setting.
        reads: the versions of tables that the query's plan reads besides its stream, as names of
            `anabranch._spark.frames.dataframe_source.source_names`: Spark hides the plan from each batch.
        file_settings: settings of file systems for this query alone.
        dials: how conflicts of its batches are judged.
    """

    write: Write
    mode: str
    merges: bool | None = None
    reads: tuple[str, ...] = ()
    file_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    dials: Dials = NO_DIALS

    @classmethod
    def of(
        cls,
        location: Location,
        mode: str,
        options: Options,
        partition_by: tuple[str, ...] | None,
        cluster_by: tuple[Path, ...] | None,
    ) -> Sink:
        """Creates the sink for these options.

        Raises:
            InvalidOption, NotBuilt: a stream does not support an option.
        """
        merges, replaces = options.flag("mergeSchema"), options.flag("overwriteSchema")
        arguments = options.of_a_write()
        if arguments["txn"] is not None:
            reason = "a query numbers its own batches, by its checkpoint."
            raise InvalidOption(option="txnAppId", value=arguments["txn"].app_id, reason=reason)
        dials, properties = options.dials(), options.properties()
        options.finish(WRITE)
        change: SchemaChange | None = "overwrite" if replaces and mode == "complete" else None
        write = Write(
            location,
            None,
            OUTPUT_MODES[mode],
            partition_by,
            properties=properties,
            schema_change=change,
            cluster_by=cluster_by,
            **arguments,
        )
        return cls(write, mode, merges, file_settings=options.file_settings(), dials=dials)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Writes a batch on a classic session. Raises as `write_batch`."""
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if query is None:
            raise ExecutionFailed(what="a batch of a stream", reason="Spark does not name the query.")
        self.write_batch(batch, number, query)

    def write_batch(self, batch: DataFrame, number: int, query: str) -> None:
        """Writes a batch of a query, unless it was written before.

        Raises:
            ConcurrentTransactionException: another process writes the batches of the same checkpoint.
            SchemaMismatch: a column does not fit the table.
            DeltaConcurrentModificationException: the query joins the table itself, which has changed since it was read.
        """
        engine, spark = SparkEngine(batch.sparkSession), batch.sparkSession
        with use_session_settings(spark, self.file_settings), honour_settings(spark, "a write"):
            merges = engine.merges_schema() if self.merges is None else self.merges
            change = self.write.schema_change or ("merge" if merges else None)
            numbered = StreamBatch(query, number, self.mode, casts=engine.casts())
            rows = with_aliases(batch, self.reads)
            # earlier batches may be another process's, which would write them again
            with use_dials(self.dials), another_program():
                replace(self.write, source=rows, schema_change=change, batch=numbered).run(engine)

    def write_batch_of(self, batch: DataFrame, number: int, checkpoint: str) -> None:
        """Writes a batch of the query with this checkpoint. Raises as `query_of` and `write_batch`."""
        with use_session_settings(batch.sparkSession, self.file_settings):
            query = query_of(checkpoint)
        self.write_batch(batch, number, query)


def query_of(checkpoint: str) -> str:
    """The id of the query with this checkpoint. Raises ExecutionFailed: it does not exist or cannot be read."""
    try:
        query = json.loads(hint(open_store(checkpoint), "metadata"))["id"]
        if not isinstance(query, str) or not query:
            raise TypeError("it is no text")
        return query
    except (AnabranchError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"its id is not in the checkpoint at {checkpoint}, which Anabranch must be able to read ({error})."
        raise ExecutionFailed(what="a batch of a stream", reason=reason) from None
