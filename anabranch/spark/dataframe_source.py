"""Origins: whether a DataFrame reads a table, and which version.

Knows three signs, all public: the files that a DataFrame names (`inputFiles`, which misses subqueries and cached
frames), the scans that its plans print, for those, and a name that every DataFrame of ours carries through all that is
done to it, which stands in the analysed plan. What hides its origin on purpose (a checkpoint, an RDD, rows that were
collected) counts as constants, as in delta-spark.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import threading
from contextlib import redirect_stdout
from urllib.parse import quote, unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from anabranch.errors import UnknownSourceVersion
from anabranch.errors.process_state import cache
from anabranch.protocol.layout.paths import store_name
from anabranch.spark.plans import Relations, hidden_scans, relations

_printing = threading.Lock()
SOME_VERSION = 1 << 62
"""Above every version: rows of which nobody can say whether the table's are among them, read by the newest then."""
_TOLD = re.compile(r"== (Analyzed Logical|Physical) Plan ==")


_kept_out = cache("names of tables whose rows are not shown", 10_000)
"""But for versions. Where there were too many, no table's rows are shown."""


def marked(rows: DataFrame, table_id: str | None, version: int | None, *, shown: bool = True) -> DataFrame:
    """The rows under a name that says from which version of which table they are; ``shown``: whether messages show
    them.
    """
    if not shown and table_id is not None:
        _kept_out.add(_mark(table_id), True)
    return rows if table_id is None else rows.alias(f"{_mark(table_id)}_v{'' if version is None else version}")


def version_read(rows: DataFrame, root: str, table_id: str) -> int | None:
    """The oldest version of a table that the rows come from; None where they come from elsewhere, as far as is known;
    `SOME_VERSION` where they may come from some.

    Args:
        rows: any DataFrame.
        root: URL of the table; rows of its files that carry no name of ours are of no known version.
        table_id: by which it is known whatever the path, and told from another table that lay there before.

    Raises:
        UnknownSourceVersion: they come from its files, and nothing says of which version; or Spark did not tell.
    """
    plan = printed_plan(rows)
    versions = re.findall(_mark(table_id) + r"_v(\d*)", plan)
    unknown = "" in versions or not _TOLD.search(plan)  # another thread may have caught what Spark printed
    if unknown or (not versions and any(_is_within(root, path) for path in rows.inputFiles())):
        raise UnknownSourceVersion(table=root)
    read = relations(plan)
    may_read = read.foreign and _may_read(rows, root, read, known=bool(versions))
    return min(map(int, versions), default=SOME_VERSION if may_read else None)


def keeps_out(rows: DataFrame) -> bool:
    """Whether rows come from a table whose rows no message shows, or nobody can say."""
    if _kept_out.dropped or not _kept_out:
        return _kept_out.dropped
    try:
        plan = printed_plan(rows)
    except PySparkException:  # Spark computes what is constant while it plans
        return True
    return not _TOLD.search(plan) or any(mark in plan for mark in _kept_out)


def _may_read(rows: DataFrame, root: str, read: Relations, *, known: bool) -> bool:
    """Whether scans of files that are not ours, in subqueries or below what is cached, may read a table's.

    Args:
        known: whether the rows come from a known version of the table, too.

    Raises:
        UnknownSourceVersion: one does.
    """
    may_read = False
    for scan in hidden_scans(printed_plan(rows, "formatted")):
        if scan.columns & read.ours:
            continue
        is_within = scan.place is not None and _holds(root, scan.place)
        if is_within and not (known and (read.is_cut or not scan.columns)):
            raise UnknownSourceVersion(table=root)
        is_around = scan.place is not None and _holds(scan.place, root)
        may_read |= is_within or is_around or scan.has_more
    return may_read


def _holds(folder: str, other: str) -> bool:
    """Whether a folder is another place, or holds it; both are as Spark prints them, where nothing is encoded."""
    try:
        return _is_within(folder, quote(f"{other.rstrip('/')}/x", safe="/:"))
    except ValueError:  # it goes up on its way
        return True


def _is_within(root: str, path: str) -> bool:
    """Whether a file lies in the table's folder, whichever of its names is used."""
    real = store_name(_real(root), _real(path)) if root.startswith("file:") and path.startswith("file:") else None
    return store_name(root, path) is not None or real is not None


def _real(url: str) -> str:
    return "file://" + quote(os.path.realpath(unquote(urlsplit(url).path)))


def _mark(table_id: str) -> str:
    return "__anabranch_" + hashlib.sha256(table_id.encode()).hexdigest()[:16]


def printed_plan(rows: DataFrame, mode: str = "extended") -> str:
    """The plan, which PySpark can only print."""
    with _printing:
        caught = _OfThisThread()
        with redirect_stdout(caught):
            rows.explain(mode=mode)
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
