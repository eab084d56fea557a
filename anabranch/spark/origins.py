"""Origins: whether a DataFrame reads a table, and which version.

Knows two signs, both public: the files that a DataFrame names (`inputFiles`, which misses subqueries and cached
frames), and a name that every DataFrame of ours carries through all that is done to it, which stands in the analysed
plan. What hides its origin on purpose (a checkpoint, an RDD, rows that were collected) counts as constants, as in
delta-spark.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
import threading
from contextlib import redirect_stdout

from pyspark.sql import DataFrame

from anabranch.errors import UnknownSourceVersion
from anabranch.protocol.paths import store_name

_printing = threading.Lock()


def marked(rows: DataFrame, root: str, version: int | None) -> DataFrame:
    """The rows under a name that says from which version of which table they are."""
    return rows.alias(f"{_mark(root)}_v{'' if version is None else version}")


def version_read(rows: DataFrame, root: str) -> int | None:
    """The oldest version of the table at ``root`` that the rows come from; None where they come from elsewhere, as far
    as can be told.

    Raises:
        UnknownSourceVersion: they come from its files, and nothing says of which version.
    """
    versions = re.findall(_mark(root) + r"_v(\d*)", printed_plan(rows))
    if "" in versions or (not versions and any(store_name(root, path) is not None for path in rows.inputFiles())):
        raise UnknownSourceVersion(table=root)
    return min(map(int, versions), default=None)


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
