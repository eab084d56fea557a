"""Recording changes: the files of change data that a transaction stages, as far as it needs any.

Knows which rows a command changed, and asks the engine to write them once more. Guarantee: a commit has either no such
file, and its other actions say exactly what it changed, or its files of change data say all of it: readers go by these
alone (PROTOCOL.md, "Add CDC File"). So what was changed before the first one was needed is remembered till then.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, empty_files
from anabranch._protocol.change_feed import Images, check_recordable, records
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch.commands.engine import Engine
from anabranch.commands.opening import file_set
from anabranch.commands.staging import Staging

WORTH_A_JOB = 50_000
"""So many rows are recorded while others are written; fewer wait for those, and share their file.

Measured with 20 M rows in the table: a MERGE that updates 100,000 of them takes 0.15 s of 5 less so.
"""


class ChangeRecorder:
    """The recorder of one transaction on a snapshot, which leaves the table with ``metadata``.

    Attributes:
        is_on: whether the table records its changes; without, nothing here does anything.
        is_needed: whether files of change data were needed so far.
    """

    def __init__(self, snapshot: Snapshot, metadata: Metadata, engine: Engine, staging: Staging) -> None:
        check_recordable(metadata)
        self.is_on = records(metadata)
        self._snapshot, self._metadata, self._engine, self._staging = snapshot, metadata, engine, staging
        self._noted, self._recorded = list[Images](), list[Images]()
        self.is_needed, self._known = False, list[str]()

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any]) -> tuple[pa.Table, FileSet]:
        """New files with the marked rows, as they were and as they become; and these files, to be read."""
        self.is_needed = True
        folder = self._staging.open_change_folder()
        self._staging.note(self._engine.record_update(files, marks, assignments, folder), changes=True)
        written = self._collect_new_files()
        return written, file_set(self._snapshot, written, self._metadata)

    def note(self, change: str, files: pa.Table, rows: Marks | None = None, joined: Any = None) -> None:
        """These rows of files were changed so, every live row where None; by a MERGE, if it was ``joined``."""
        if self.is_on and len(files) and (rows is None or any(rows.values())):
            self._noted.append(Images(change, file_set(self._snapshot, files, self._metadata), rows, joined))

    @contextmanager
    def ahead(self, *, needed: bool) -> Iterator[None]:
        """Write what was noted so far while the block runs, if files of change data are ``needed`` and it is much."""
        noted = self._noted
        if not needed or sum(count_of(each.rows or {}) for each in noted) < WORTH_A_JOB:
            yield
            return
        self._noted, self.is_needed = [], True
        with self._engine.beside(lambda: self._record(noted)):
            yield
        self._recorded += noted

    def write_noted(self, *, needed: bool) -> pa.Table:
        """New files with all that was noted since the last ones, if any are ``needed``, now or before.

        Args:
            needed: whether the actions of files do not say what was noted.
        """
        self.is_needed = self.is_needed or (needed and self.is_on)
        if not self.is_needed:
            return empty_files()
        noted, self._noted = self._noted, []
        self._recorded += noted
        if noted:
            self._record(noted)
        return self._collect_new_files()

    def take_back(self, changes: Container[str]) -> None:
        """Let what was written so far be written once more, but for these kinds of changes: the caller notes them anew,
        and withdraws the files that were written.
        """
        noted, self._recorded = [*self._recorded, *self._noted], []
        self._noted = [each for each in noted if each.change not in changes]

    def _record(self, noted: Sequence[Images]) -> None:
        self._staging.note(self._engine.record(noted, self._staging.open_change_folder()), changes=True)

    def _collect_new_files(self) -> pa.Table:
        files = self._staging.collect_changes(self._metadata, self._known)
        self._known += files["path"].to_pylist()
        return files
