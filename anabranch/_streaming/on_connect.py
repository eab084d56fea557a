"""Functions for ``foreachBatch``, which on Spark Connect run on the server: the sink of a stream, and a user's own.

Knows how a function gets there. It travels by value and imports nothing of ours before it runs, so that a server
without this package refuses it with a message. Guarantee: the query's id is that of its checkpoint, as on a classic
session.
"""

from __future__ import annotations

import pickle
from contextlib import nullcontext, suppress
from typing import Any


class NamedBatchFunction:
    """A user's function of batches, on either kind of session; each batch counts as a program of its own
    (`anabranch._transaction.own_commits`), if the package is installed.

    Args:
        func: the function.
        reads: the names of each batch (`anabranch._spark.frames.dataframe_source.with_aliases`).
    """

    def __init__(self, func: Any, reads: tuple[str, ...]) -> None:
        self._func, self._reads = func, reads

    def __call__(self, batch: Any, number: int) -> Any:
        """Calls the function."""
        program: Any = nullcontext
        with suppress(ImportError):
            from anabranch._transaction.own_commits import another_program as program
        for name in self._reads:
            batch = batch.alias(name)
        with program():
            return self._func(batch, number)


class OnServer:
    """Writes the batches of one query, on the server.

    Args:
        sink: a pickled `anabranch._streaming.sink.Sink`.
        checkpoint: the query's checkpoint, which has its id.
        engine: name and version of this package.
    """

    def __init__(self, sink: bytes, checkpoint: str, engine: str) -> None:
        self._sink, self._checkpoint, self._engine = sink, checkpoint, engine

    def __call__(self, batch: Any, number: int) -> None:
        """Writes a batch. Raises RuntimeError: the server does not have the same version of this package."""
        try:
            from anabranch._log.commits import ENGINE

            installed = ENGINE
        except ImportError:
            installed = "none"
        if installed != self._engine:
            raise RuntimeError(
                "[NOT_BUILT_YET] A stream is written to a Delta table by the server of Spark Connect. Its Python needs "
                f"{self._engine}, and has {installed}: install it there, or write the stream from a classic session."
            )
        pickle.loads(self._sink).write_batch_of(batch, number, self._checkpoint)
