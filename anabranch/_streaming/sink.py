"""The sink of a stream: each batch of a query is one commit, which is done once.

Knows Spark's ``foreachBatch`` and how a query is told from others. Guarantee: a batch that was committed is not written
again, whenever the process ended before; of two queries that run on one checkpoint one is refused
(`anabranch.errors.ConcurrentTransactionException`), so that no batch lands twice.

PROTOCOL.md, section "Transaction Identifiers": the application is the query's id, which its checkpoint keeps, and the
version is the number of the batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from anabranch._log.size_limits import hint
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.options import WRITE
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.dataframe_source import under
from anabranch._spark.sessions.file_settings import speaking
from anabranch._spark.sessions.settings import honour_settings
from anabranch._storage import open_store
from anabranch._transaction.own_commits import another_program
from anabranch.commands.dml.write import SchemaChange, StreamBatch, Write
from anabranch.commands.opening import Location
from anabranch.commands.options import Options
from anabranch.errors import AnabranchError, ExecutionFailed, InvalidOption

OUTPUT_MODES: Mapping[str, str] = {"append": "append", "complete": "overwrite"}
"""Output mode of a stream -> what is done with the rows of a batch."""

_QUERY_ID = "sql.streaming.queryId"
"""The local property of the thread that runs a batch."""


@dataclass(frozen=True)
class Sink:
    """Writes the batches of one query, as a function of ``foreachBatch``.

    Attributes:
        write: what is done with each batch, but for its rows and its number.
        mode: the output mode.
        merges: whether rows may add columns; None: as the session says.
        reads: which versions of which tables a query's plan reads besides its stream, by the names that
            `anabranch._spark.frames.dataframe_source.source_names` gives: Spark hides the plan from each batch.
        file_settings: settings of file systems that are given for this query alone.
    """

    write: Write
    mode: str
    merges: bool | None = None
    reads: tuple[str, ...] = ()
    file_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        location: Location,
        mode: str,
        options: Options,
        partition_by: tuple[str, ...] | None,
        cluster_by: tuple[Path, ...] | None,
    ) -> Sink:
        """The sink that these options ask for.

        Raises:
            InvalidOption, NotBuilt: one asks for what a stream does not do.
        """
        merges, replaces = options.flag("mergeSchema"), options.flag("overwriteSchema")
        asked = options.of_a_write()
        if asked["txn"] is not None:
            reason = "a query numbers its batches itself, by its checkpoint."
            raise InvalidOption(option="txnAppId", value=asked["txn"].app_id, reason=reason)
        properties = options.properties()
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
            **asked,
        )
        return cls(write, mode, merges, file_settings=options.file_settings())

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch on a classic session. Raises as `write_batch`."""
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if query is None:
            raise ExecutionFailed(what="a batch of a stream", reason="Spark does not say of which query it is.")
        self.write_batch(batch, number, query)

    def write_batch(self, batch: DataFrame, number: int, query: str) -> None:
        """Write a batch of a query, unless it was written before.

        Raises:
            ConcurrentTransactionException: another process writes the batches of the same checkpoint.
            SchemaMismatch: a column does not fit the table.
            DeltaConcurrentModificationException: the query joins the table itself, which has changed since it was read.
        """
        engine, spark = SparkEngine(batch.sparkSession), batch.sparkSession
        with speaking(spark, self.file_settings), honour_settings(spark, "a write"):
            merges = engine.merges_schema() if self.merges is None else self.merges
            change = self.write.schema_change or ("merge" if merges else None)
            numbered = StreamBatch(query, number, self.mode, casts=engine.casts())
            rows = under(batch, self.reads)
            with another_program():  # the batches before it are none of its own: it would write their rows again
                replace(self.write, source=rows, schema_change=change, batch=numbered).run(engine)

    def write_batch_of(self, batch: DataFrame, number: int, checkpoint: str) -> None:
        """Write a batch of the query that keeps its progress at a place. Raises as `query_of` and `write_batch`."""
        with speaking(batch.sparkSession, self.file_settings):
            query = query_of(checkpoint)
        self.write_batch(batch, number, query)


def query_of(checkpoint: str) -> str:
    """The id of the query that keeps its progress here. Raises ExecutionFailed: there is none, or it cannot be read."""
    try:
        found = json.loads(hint(open_store(checkpoint), "metadata"))["id"]
        if not isinstance(found, str) or not found:
            raise TypeError("it is no text")
        return found
    except (AnabranchError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"its id is not in the checkpoint at {checkpoint}, which Anabranch must be able to read ({error})."
        raise ExecutionFailed(what="a batch of a stream", reason=reason) from None
