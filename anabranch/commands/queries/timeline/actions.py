"""The file actions of commits, in order, and the running totals of the table.

Knows commits and no store. Guarantee: after each commit the totals equal those of its snapshot. One pass is enough, and
it keeps a few numbers for each live file. What a log does not record, such as the rows of a file without statistics, is
None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from anabranch._log.commits import Commit
from anabranch._protocol.layout.paths import is_absolute
from anabranch._protocol.stats.statistics import num_records
from anabranch.commands.queries.timeline.entries import CommitEffect, FileChange, Totals
from anabranch.commands.queries.timeline.texts import text_of

SHOWN_FILES = 8
"""Maximum number of files shown for a commit."""
_COLUMNS = ["path", "size", "stats", "deletionVector"]
_SMALL_COMMIT_BYTES = 1 << 20
"""Maximum size, in bytes, of a commit that is parsed line by line, which is faster than Arrow for few lines."""
_RECORDS = re.compile(r'\{"numRecords":(\d{1,18})[,}]')
_PATH_LENGTH = 300
_BATCH = 10_000


class File(NamedTuple):
    """Size and row counts of one live file."""

    size: int | None
    records: int | None
    deleted: int

    @property
    def rows(self) -> int | None:
        """The number of its live rows."""
        return None if self.records is None else self.records - self.deleted


class FreedFiles(NamedTuple):
    """The files that a commit freed for VACUUM: those of the table's own that it removed. The size is None if that of
    one file is unknown.
    """

    files: int = 0
    bytes: int | None = 0


@dataclass(frozen=True)
class FileActions:
    """A commit's ``add`` and ``remove`` actions: key (path and vector), path and numbers of each logical file."""

    adds: list[tuple[str, str, File]]
    removes: list[tuple[str, str, File]]
    changes_data: bool


class RunningTotals:
    """The totals of the table's live files, updated commit by commit from the ``files`` of a snapshot; without these
    the totals stay unknown.

    Example:
        >>> running = RunningTotals(1 << 27, snapshot.files)
        >>> running.after(file_actions(commit)), running.totals, running.freed

    Attributes:
        freed: the files that the last commit freed for VACUUM.
    """

    def __init__(self, small_below: int, files: pa.Table | None = None) -> None:
        self._small_below, self.known = small_below, files is not None
        self.freed = FreedFiles()
        self._live: dict[str, File] = {}
        self._files = self._bytes = self._rows = self._deleted = self._small = self._uncounted = 0
        if files is not None:
            self._begin(files)

    def _begin(self, files: pa.Table) -> None:
        for batch in files.select(_COLUMNS).to_batches(max_chunksize=_BATCH):
            for row in batch.to_pylist():
                self._put(_key(row), _file(row))

    @property
    def totals(self) -> Totals | None:
        """The current totals; None if unknown."""
        if not self.known:
            return None
        rows = None if self._uncounted else self._rows
        return Totals(self._files, self._bytes, rows, self._deleted, self._small)

    def after(self, actions: FileActions, *, change_files: bool = False) -> CommitEffect:
        """Apply a commit and return what it did."""
        removed = {path: self._take(key, file) for key, path, file in actions.removes}
        added = {path: (file, self._put(key, file)) for key, path, file in actions.adds}
        self.freed = count_freed({path: file for path, file in removed.items() if path not in added})
        return _summarize(removed, added, actions.changes_data, change_files)

    def _put(self, key: str, file: File) -> bool:
        """Add a file; return whether it was live already."""
        previous = self._live.pop(key, None)
        if previous is not None:
            self._count(previous, -1)
        self._live[key] = file
        self._count(file, 1)
        return previous is not None

    def _take(self, key: str, removed: File) -> File:
        """Remove a file; return the numbers of its ``add``, if known, else those of its ``remove``."""
        known = self._live.pop(key, None)
        if known is None:
            return removed
        self._count(known, -1)
        return known

    def _count(self, file: File, sign: int) -> None:
        self._files += sign
        self._bytes += sign * (file.size or 0)
        self._deleted += sign * file.deleted
        self._small += sign * ((file.size or 0) < self._small_below)
        if file.records is None:
            self._uncounted += sign
        else:
            self._rows += sign * (file.records - file.deleted)


def _summarize(
    removes: Mapping[str, File], adds: Mapping[str, tuple[File, bool]], changes: bool, change_files: bool
) -> CommitEffect:
    marked = {path: file.deleted - removes[path].deleted for path, (file, _) in adds.items() if path in removes}
    added = {path: file for path, (file, restated) in adds.items() if path not in removes and not restated}
    removed = {path: file for path, file in removes.items() if path not in adds}
    rows_added = _sum(file.rows for file in added.values())
    return CommitEffect(
        files_added=len(added),
        files_removed=len(removed),
        bytes_added=sum(file.size or 0 for file in added.values()),
        bytes_removed=_sum(file.size for file in removed.values()),
        rows_added=rows_added if changes else 0,
        rows_removed=_sum(file.rows for file in removed.values()) if changes else 0,
        rows_marked=sum(marked.values()),
        rows_moved=0 if changes or not removed else rows_added,
        change_files=change_files,
        files=_sample_changes(added, removed, marked),
    )


def count_freed(files: Mapping[str, File]) -> FreedFiles:
    """Count the removed files that are the table's own: a clone names files of its source by absolute paths."""
    own_sizes = [file.size for path, file in files.items() if not is_absolute(path)]
    return FreedFiles(len(own_sizes), _sum(own_sizes))


def _sum(numbers: Iterable[int | None]) -> int | None:
    values = list(numbers)
    return None if None in values else sum(value for value in values if value is not None)


def _sample_changes(
    added: Mapping[str, File], removed: Mapping[str, File], marked: Mapping[str, int]
) -> tuple[FileChange, ...]:
    changes = [
        *(FileChange("marked", path, None, rows) for path, rows in list(marked.items())[:SHOWN_FILES]),
        *(FileChange("added", path, file.size, file.rows) for path, file in list(added.items())[:SHOWN_FILES]),
        *(FileChange("removed", path, file.size, file.rows) for path, file in list(removed.items())[:SHOWN_FILES]),
    ]
    return tuple(
        FileChange(change.what, text_of(change.path, _PATH_LENGTH) or "", change.bytes, change.rows)
        for change in changes[:SHOWN_FILES]
    )


# -- from lines to numbers ---------------------------------------------------------------------------------------------


def file_actions(commit: Commit) -> FileActions:
    """A commit's file actions. Raises CorruptLog: one is malformed."""
    parsed = _try_parse(commit) if len(commit.raw.data) <= _SMALL_COMMIT_BYTES else None
    adds, removes = parsed or (_to_rows(commit.adds), _to_rows(commit.removes))
    changes = any(row.get("dataChange") is not False for row in (*adds, *removes))
    return FileActions(
        [(_key(row), row["path"], _file(row)) for row in adds],
        [(_key(row), row["path"], _file(row)) for row in removes],
        changes,
    )


def _to_rows(actions: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = actions.select([*_COLUMNS, "dataChange"]).to_pylist()
    return rows


def _try_parse(commit: Commit) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """The bodies of add and remove actions; None if one is unusual, which leaves it to Arrow's reader."""
    bodies_by_kind: dict[str, list[dict[str, Any]]] = {"add": [], "remove": []}
    try:
        lines = b"".join(commit.file_lines()).split(b"\n")
        for action in (json.loads(text) for text in lines if text.strip()):
            for kind, bodies in bodies_by_kind.items():
                if (body := action.get(kind)) is not None:
                    bodies.append(body)
    except (ValueError, AttributeError, RecursionError):
        return None
    are_plain = all(_is_plain(body, kind) for kind, bodies in bodies_by_kind.items() for body in bodies)
    return (bodies_by_kind["add"], bodies_by_kind["remove"]) if are_plain else None


def _is_plain(body: Any, kind: str) -> bool:
    if not isinstance(body, dict) or type(body.get("path")) is not str:
        return False
    size, vector, stats = body.get("size"), body.get("deletionVector"), body.get("stats")
    is_sized = (type(size) is int and -(1 << 63) <= size < 1 << 63) or (size is None and kind == "remove")
    return is_sized and isinstance(stats, str | None) and (vector is None or _is_vector(vector))


def _is_vector(vector: Any) -> bool:
    if not isinstance(vector, dict):
        return False
    is_text = all(type(vector.get(name)) is str for name in ("storageType", "pathOrInlineDv"))
    numbers = (vector.get("cardinality"), vector.get("offset") or 0)
    return is_text and all(type(number) is int and abs(number) < 1 << 31 for number in numbers)


def _key(row: Mapping[str, Any]) -> str:
    """The identity of a logical file: path and vector."""
    vector = row.get("deletionVector")
    if vector is None:
        return row["path"]
    offset = vector.get("offset")
    return f"{row['path']}\0{vector['storageType']}\0{vector['pathOrInlineDv']}\0{'' if offset is None else offset}"


def _file(row: Mapping[str, Any]) -> File:
    vector, stats = row.get("deletionVector"), row.get("stats")
    match = _RECORDS.match(stats) if stats else None
    records = int(match[1]) if match else num_records(stats) if stats else None
    return File(row.get("size"), records, 0 if vector is None else vector.get("cardinality") or 0)
