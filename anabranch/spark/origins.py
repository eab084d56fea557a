"""Origins: whether a DataFrame reads a table.

Knows two signs, both public: the files that a DataFrame names (`inputFiles`, which misses subqueries and cached
frames), and a name that every DataFrame of ours carries through all that is done to it, which stands in the analysed
plan. What hides its origin on purpose (a checkpoint, an RDD, rows that were collected) counts as constants, as in
delta-spark.
"""

from __future__ import annotations

import hashlib
import io
import sys
import threading
from contextlib import redirect_stdout

from pyspark.sql import DataFrame

from anabranch.protocol.paths import store_name

_printing = threading.Lock()


def marked(rows: DataFrame, root: str) -> DataFrame:
    """The rows under a name that says from which table they are."""
    return rows.alias(_mark(root))


def reads(rows: DataFrame, root: str) -> bool:
    """Whether the rows come from the table at ``root``, as far as can be told."""
    return any(store_name(root, path) is not None for path in rows.inputFiles()) or _mark(root) in printed_plan(rows)


def _mark(root: str) -> str:
    return "__anabranch_" + hashlib.sha256(root.encode()).hexdigest()[:16]


def printed_plan(rows: DataFrame) -> str:
    """The extended plan, which PySpark can only print."""
    with _printing:
        caught = _OfThisThread()
        with redirect_stdout(caught):
            rows.explain(extended=True)
    return caught.text


class _OfThisThread(io.TextIOBase):
    """Standard output that keeps what this thread prints, and lets others' words through."""

    def __init__(self) -> None:
        self._mine, self._others = threading.get_ident(), sys.stdout
        self._kept: list[str] = []

    @property
    def text(self) -> str:
        """What was printed."""
        return "".join(self._kept)

    def write(self, text: str) -> int:
        """Keep or pass on."""
        if threading.get_ident() != self._mine:
            return self._others.write(text)
        self._kept.append(text)
        return len(text)
