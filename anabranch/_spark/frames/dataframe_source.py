"""The source of a DataFrame: whether it reads a table, and which version.

Uses three public signs: `inputFiles` (which misses subqueries and cached frames); the scans in printed plans, for
those; and an alias that every DataFrame of ours has, which stays in the analysed plan whatever is done to the frame.
Where Spark hides a plan behind its rows, as in a checkpoint and in the batches of a stream, the rows are given the
aliases again (`source_names`, `under`). Rows that were collected, or made an RDD, count as constants, as in
delta-spark.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from urllib.parse import quote, unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from anabranch._log.positions import SOME_VERSION, SourceVersions
from anabranch._protocol.layout.paths import store_name
from anabranch._spark.frames.plans import Relations, Scan, chooses_only, is_told, relations, scans, whole_below
from anabranch.errors import UnknownSourceVersion
from anabranch.errors.process_state import cache

_printing = threading.Lock()
_ANY_MARK = re.compile(r"SubqueryAlias __anabranch_[0-9a-f]{16}_(?:v|asof)")
_ALIAS = re.compile(
    r"__anabranch_(?:[0-9a-f]{16}_(?:v|asof)\d*(?:_of[0-9a-f]{16})?(?=_at[0-9a-f]{16}\b|\b)|files_(?:[0-9a-f]*_(?:more|alone)|untold)\b)"
)
"""Ours, without the place of a table: rows behind which a plan is hidden need not be all of it."""
_FILES = re.compile(r"__anabranch_files_([0-9a-f]*)_(more|alone)\b")
_OF_FILES = frozenset({"hidden"})
_UNTOLD = "__anabranch_files_untold"


_kept_out = cache("names of tables whose rows are not shown", 10_000)
"""Their aliases, without versions. When the cache has dropped one, no table's rows are shown."""
_places = cache("places of tables shown", 10_000)
"""URLs by their digests, which aliases name."""


def with_source_alias(
    rows: DataFrame,
    table_id: str | None,
    version: int | None,
    *,
    commit: str | None = None,
    shown: bool = True,
    as_of: bool = False,
    whole: str | None = None,
) -> DataFrame:
    """The rows under an alias that names their table and version.

    Args:
        rows, table_id, version: what is read, and where from.
        commit: the mark of the version's commit (`anabranch._log.positions.commit_mark`), if known.
        shown: whether messages may show the rows.
        as_of: the user asked for this version, so the rows are the same whatever is committed: constants.
        whole: URL of the table whose rows and columns these are, all of them (`find_whole_table`).
    """
    if table_id is None:
        return rows
    if not shown:
        _kept_out.add(_mark(table_id), True)
    if as_of:
        return rows.alias(f"{_mark(table_id)}_asof{version}")
    if version is None:
        return rows.alias(f"{_mark(table_id)}_v")
    name = f"{_mark(table_id)}_v{version}" + ("" if commit is None else f"_of{commit}")
    if whole is None:
        return rows.alias(name)
    place = _digest(whole)
    _places[place] = whole
    return rows.alias(f"{name}_at{place}")


def find_whole_table(rows: DataFrame, known: Callable[[str], tuple[str, Mapping[str, str]]]) -> str | None:
    """The URL of the table of which a view shows every row, at what was its newest version; None where the view shows
    anything else, or that cannot be said.

    Args:
        rows: of the view.
        known: gives the id that the table at a URL has now, and its columns with their types as Spark prints these.
    """
    are_lines = all(name.isprintable() for name in rows.columns)  # else a name could look like a line of the plan
    found = whole_below(printed_plan(rows)) if are_lines else None
    root = None if found is None else _places.get(found.place)
    if found is None or root is None:
        return None
    table_id, types = known(root)
    is_whole = rows.columns == list(types) and dict(rows.dtypes) == types and chooses_only(found.projections, types)
    return root if is_whole and found.mark == _mark(table_id) else None


def has_our_frame(plan: str) -> bool:
    """Whether a printed plan has a DataFrame of ours."""
    return _ANY_MARK.search(plan) is not None


def source_versions(rows: DataFrame, root: str, table_id: str) -> SourceVersions | None:
    """The versions of the table that the rows come from and that were the newest when they were read.

    None where they come from elsewhere, as far as is known, or from versions that were asked for; the oldest is
    `SOME_VERSION` where they may come from the table.

    Args:
        rows: any DataFrame.
        root: URL of the table; rows of its files without our alias are of no known version.
        table_id: the table's id, the same at every path; an earlier table at the path has another.

    Raises:
        UnknownSourceVersion: they come from its files, of an unknown version; or Spark printed no plan.
    """
    plan = printed_plan(rows)
    named = set(re.findall(_mark(table_id) + r"_v(\d*)(?:_of([0-9a-f]{16}))?", plan))
    versions, asked = {version for version, _ in named}, f"{_mark(table_id)}_asof" in plan
    # Another thread may have caught what Spark printed.
    unknown = "" in versions or _UNTOLD in plan or not is_told(plan)
    if unknown or (not (versions or asked) and any(_is_within(root, path) for path in rows.inputFiles())):
        raise UnknownSourceVersion(table=root)
    read = relations(plan)
    found = [*_files_in(plan)]
    if read.foreign:
        found += scans(printed_plan(rows, "formatted"), hidden=not asked or bool(versions))
    may_read = _may_read(found, root, read, known=bool(versions))
    if not versions:
        return SourceVersions(SOME_VERSION) if may_read else None
    commits = frozenset((int(version), commit) for version, commit in named if commit)
    return SourceVersions(min(map(int, versions)), commits)


def versions_in_plan(rows: DataFrame, table_id: str) -> list[int]:
    """All versions of a table that the rows are known to come from."""
    return [int(each) for each in re.findall(_mark(table_id) + r"_(?:v|asof)(\d+)", printed_plan(rows))]


def keeps_out(rows: DataFrame) -> bool:
    """Whether the rows come, or may come, from a table whose rows no message shows."""
    if _kept_out.dropped or not _kept_out:
        return _kept_out.dropped
    try:
        plan = printed_plan(rows)
    except PySparkException:  # Spark computes what is constant while it plans
        return True
    return not is_told(plan) or any(mark in plan for mark in _kept_out)


def source_names(rows: DataFrame) -> tuple[str, ...]:
    """What a plan says of the tables and files that it reads, for rows behind which Spark hides that plan."""
    # Spark explains the query of a stream only where its own first step says that it is one, which SQL's does not.
    rows = rows.alias("stream") if rows.isStreaming else rows
    try:
        plan = printed_plan(rows)
        read, names = relations(plan), dict.fromkeys(_ALIAS.findall(plan))
        found = scans(printed_plan(rows, "formatted"), hidden=False) if read.foreign else ()
    except PySparkException:  # Spark computes what is constant while it plans
        return (_UNTOLD,)
    if not is_told(plan):
        return (_UNTOLD,)
    for scan in found:
        if scan.place is not None and not scan.columns & read.ours:
            names[f"__anabranch_files_{scan.place.encode().hex()}_{'more' if scan.has_more else 'alone'}"] = None
    return tuple(names)


def under(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Rows that carry the names that `source_names` found in the plan from which they come."""
    for name in names:
        rows = rows.alias(name)
    return rows


def _files_in(plan: str) -> Iterator[Scan]:
    """The scans whose `source_names` rows carry."""
    for place, more in _FILES.findall(plan):
        yield Scan(_OF_FILES, bytes.fromhex(place).decode(), has_more=more == "more")


def _may_read(found: Iterable[Scan], root: str, read: Relations, *, known: bool) -> bool:
    """Whether scans of DataFrames that are not ours may read a table's files. Those of the main plan matter only where
    the rows come from a version that was asked for, which explains files of the table there.

    Args:
        known: the rows come from a version of the table that counts, too, so a scan that may be anybody's may be it.

    Raises:
        UnknownSourceVersion: one does.
    """
    may_read = False
    for scan in found:
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
    return f"__anabranch_{_digest(table_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def printed_plan(rows: DataFrame, mode: str = "extended") -> str:
    """The plan, which PySpark can only print."""
    with _printing:
        caught = _OfThisThread()
        with redirect_stdout(caught):
            rows.explain(mode=mode)
    return caught.text


class _OfThisThread(io.TextIOBase):
    """Standard output that keeps what this thread prints, and passes on what others print."""

    def __init__(self) -> None:
        self._thread, self._others = threading.get_ident(), sys.stdout
        self._kept: list[str] = []

    @property
    def text(self) -> str:
        """What was printed."""
        return "".join(self._kept)

    def write(self, text: str) -> int:
        """Keep or pass on."""
        if threading.get_ident() != self._thread:
            return self._others.write(text)
        self._kept.append(text)
        return len(text)
