"""Finds out whether a DataFrame reads a table, and which version.

Uses three public sources: `inputFiles` (which misses subqueries and cached frames); for those, the scans in printed
plans; and an alias of all our DataFrames, which stays in the analysed plan whatever is done to the frame. Where Spark
hides a plan behind its rows, as in a checkpoint and in the batches of a stream, the rows get the aliases again
(`source_names`, `with_aliases`). Rows that were collected, or made an RDD, count as constants, as in delta-spark.
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
from anabranch._spark.frames.query_plans import Relations, Scan, chooses_only, is_told, relations, scans, whole_below
from anabranch.errors import UnknownSourceVersion
from anabranch.errors.process_state import cache

_printing = threading.Lock()
_ANY_MARK = re.compile(r"SubqueryAlias __anabranch_[0-9a-f]{16}_(?:v|asof)")
_ALIAS = re.compile(
    r"__anabranch_(?:[0-9a-f]{16}_(?:v|asof)\d*(?:_of[0-9a-f]{16})?(?=_at[0-9a-f]{16}\b|\b)|files_(?:[0-9a-f]*_(?:more|alone)|untold)\b)"
)
"""Our aliases, without the place of a table: rows behind which a plan is hidden need not be all of its rows."""
_FILES = re.compile(r"__anabranch_files_([0-9a-f]*)_(more|alone)\b")
_OF_FILES = frozenset({"hidden"})
_UNTOLD = "__anabranch_files_untold"


_kept_out = cache("names of tables whose rows are not shown", 10_000)
"""Aliases of these tables, without versions. When the cache has dropped one, no table's rows are shown."""
_places = cache("places of tables shown", 10_000)
"""URLs of tables by the digests that aliases contain."""


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
        rows, table_id, version: the rows, and the table and version that they come from.
        commit: the mark of the version's commit (`anabranch._log.positions.commit_mark`), if known.
        shown: whether messages may show the rows.
        as_of: the user requested this version, so the rows are the same whatever is committed: constants.
        whole: URL of the table, if these are all of its rows and columns (`find_whole_table`).
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
    """The URL of the table if a view shows all of its rows, as of what was its newest version; None if the view shows
    anything else, or this cannot be determined.

    Args:
        rows: the view's rows.
        known: returns the present id of the table at a URL, and its columns with their types as Spark prints them.
    """
    are_lines = all(name.isprintable() for name in rows.columns)  # otherwise a name could look like a line of the plan
    whole = whole_below(printed_plan(rows)) if are_lines else None
    root = None if whole is None else _places.get(whole.place)
    if whole is None or root is None:
        return None
    table_id, types = known(root)
    is_whole = rows.columns == list(types) and dict(rows.dtypes) == types and chooses_only(whole.projections, types)
    return root if is_whole and whole.mark == _mark(table_id) else None


def has_our_frame(plan: str) -> bool:
    """Whether a printed plan contains one of our DataFrames."""
    return _ANY_MARK.search(plan) is not None


def source_versions(rows: DataFrame, root: str, table_id: str) -> SourceVersions | None:
    """The versions of the table that the rows come from and that were the newest when they were read.

    None if, as far as is known, they come from elsewhere, or from versions that the user requested; the oldest is
    `SOME_VERSION` if they may come from the table.

    Args:
        rows: any DataFrame.
        root: URL of the table; rows of its files without our alias are of no known version.
        table_id: the table's id, the same at every path; an earlier table at the path has another.

    Raises:
        UnknownSourceVersion: they come from its files, of an unknown version; or Spark printed no plan.
    """
    plan = printed_plan(rows)
    versions_and_commits = set(re.findall(_mark(table_id) + r"_v(\d*)(?:_of([0-9a-f]{16}))?", plan))
    versions, is_as_of = {version for version, _ in versions_and_commits}, f"{_mark(table_id)}_asof" in plan
    # Another thread may have captured Spark's output, so the plan may be missing.
    unknown = "" in versions or _UNTOLD in plan or not is_told(plan)
    if unknown or (not (versions or is_as_of) and any(_is_within(root, path) for path in rows.inputFiles())):
        raise UnknownSourceVersion(table=root)
    read = relations(plan)
    file_scans = [*_files_in(plan)]
    if read.foreign:
        file_scans += scans(printed_plan(rows, "formatted"), hidden=not is_as_of or bool(versions))
    may_read = _may_read(file_scans, root, read, known=bool(versions))
    if not versions:
        return SourceVersions(SOME_VERSION) if may_read else None
    commits = frozenset((int(version), commit) for version, commit in versions_and_commits if commit)
    return SourceVersions(min(map(int, versions)), commits)


def versions_in_plan(rows: DataFrame, table_id: str) -> list[int]:
    """All versions of a table that the rows are known to come from."""
    return [int(version) for version in re.findall(_mark(table_id) + r"_(?:v|asof)(\d+)", printed_plan(rows))]


def hides_rows(rows: DataFrame) -> bool:
    """Whether the rows come, or may come, from a table whose rows must not appear in messages."""
    if _kept_out.dropped or not _kept_out:
        return _kept_out.dropped
    try:
        plan = printed_plan(rows)
    except PySparkException:  # Spark evaluates constants while it plans
        return True
    return not is_told(plan) or any(mark in plan for mark in _kept_out)


def source_names(rows: DataFrame) -> tuple[str, ...]:
    """Aliases for the tables and files that a plan reads, for rows behind which Spark hides that plan."""
    # Spark explains the query of a stream only if its top node is marked as streaming, which SQL's is not.
    rows = rows.alias("stream") if rows.isStreaming else rows
    try:
        plan = printed_plan(rows)
        read, names = relations(plan), dict.fromkeys(_ALIAS.findall(plan))
        file_scans = scans(printed_plan(rows, "formatted"), hidden=False) if read.foreign else ()
    except PySparkException:  # Spark evaluates constants while it plans
        return (_UNTOLD,)
    if not is_told(plan):
        return (_UNTOLD,)
    for scan in file_scans:
        if scan.place is not None and not scan.columns & read.ours:
            names[f"__anabranch_files_{scan.place.encode().hex()}_{'more' if scan.has_more else 'alone'}"] = None
    return tuple(names)


def with_aliases(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """The rows under the aliases that `source_names` returned for the plan from which they come."""
    for name in names:
        rows = rows.alias(name)
    return rows


def _files_in(plan: str) -> Iterator[Scan]:
    """The scans in the aliases from `source_names`."""
    for place, more in _FILES.findall(plan):
        yield Scan(_OF_FILES, bytes.fromhex(place).decode(), has_more=more == "more")


def _may_read(file_scans: Iterable[Scan], root: str, read: Relations, *, known: bool) -> bool:
    """Whether scans by DataFrames that are not ours may read a table's files. Scans of the main plan matter only if the
    rows come from a version that the user requested, which accounts for files of the table there.

    Args:
        known: whether the rows also come from a version of the table that was the newest, so that an unidentified scan
            may be its.

    Raises:
        UnknownSourceVersion: one does.
    """
    may_read = False
    for scan in file_scans:
        if scan.columns & read.ours:
            continue
        is_within = scan.place is not None and _holds(root, scan.place)
        if is_within and not (known and (read.is_cut or not scan.columns)):
            raise UnknownSourceVersion(table=root)
        is_around = scan.place is not None and _holds(scan.place, root)
        may_read |= is_within or is_around or scan.has_more
    return may_read


def _holds(folder: str, other: str) -> bool:
    """Whether a folder is, or contains, another place; both are as Spark prints them, without encoding."""
    try:
        return _is_within(folder, quote(f"{other.rstrip('/')}/x", safe="/:"))
    except ValueError:  # the path contains ".."
        return True


def _is_within(root: str, path: str) -> bool:
    """Whether a file is in the table's folder, under any of its names."""
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
        captured = _ThreadOutput()
        with redirect_stdout(captured):
            rows.explain(mode=mode)
    return captured.text


class _ThreadOutput(io.TextIOBase):
    """Standard output that captures what this thread prints, and passes on the output of other threads."""

    def __init__(self) -> None:
        self._thread, self._others = threading.get_ident(), sys.stdout
        self._captured: list[str] = []

    @property
    def text(self) -> str:
        """The captured output."""
        return "".join(self._captured)

    def write(self, text: str) -> int:
        """Capture the text, or pass it on."""
        if threading.get_ident() != self._thread:
            return self._others.write(text)
        self._captured.append(text)
        return len(text)
