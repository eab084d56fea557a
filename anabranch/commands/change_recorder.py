"""Records changes: the files of change data that a transaction stages, if it needs any.

Knows which rows a command changed, and lets the engine write them as change data. Guarantee: a commit has either no
such file, and its other actions describe its changes exactly, or its files of change data describe all of them: readers
use these alone (PROTOCOL.md, "Add CDC File"). So changes are remembered until the first file is needed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, Metadata, empty_files, files_table
from anabranch._protocol.change_feed import Images, check_recordable, records_changes
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch._protocol.layout.paths import encode
from anabranch._protocol.rules.table_rules import rules_of
from anabranch.commands.engine import Engine
from anabranch.commands.equal_rows import leave_out
from anabranch.commands.opening import file_set
from anabranch.commands.staging import Staging

WORTH_A_JOB = 50_000
"""Minimum number of rows that are recorded in parallel with other writes; fewer are recorded later, in one file.

Measured with 20 M rows in the table: a MERGE that updates 100,000 of them takes 0.15 s of 5 s less.
"""


class ChangeRecorder:
    """The recorder of one transaction on a snapshot, after which the table has ``metadata``.

    Attributes:
        is_on: whether the table records its changes; if not, the recorder does nothing.
        is_needed: whether files of change data were needed so far.
    """

    def __init__(self, snapshot: Snapshot, metadata: Metadata, engine: Engine, staging: Staging) -> None:
        check_recordable(metadata)
        self.is_on = records_changes(metadata)
        self._snapshot, self._metadata, self._engine, self._staging = snapshot, metadata, engine, staging
        self._noted, self._recorded = list[Images](), list[Images]()
        self.is_needed, self._known = False, list[str]()

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any]) -> tuple[pa.Table, FileSet]:
        """New files of change data with the marked rows, before and after; and the same files, ready to read."""
        self.is_needed = True
        folder = self._staging.open_change_folder()
        self._staging.note(self._engine.record_update(files, marks, assignments, folder), changes=True)
        written = self._collect_new_files()
        return written, file_set(self._snapshot, written, self._metadata)

    def note(self, change: str, files: pa.Table, rows: Marks | None = None, joined: Any = None) -> None:
        """Note a change of these rows of files, of every live row if None; ``joined`` is the join of a MERGE."""
        if self.is_on and len(files) and (rows is None or any(rows.values())):
            self._noted.append(Images(change, file_set(self._snapshot, files, self._metadata), rows, joined))

    @contextmanager
    def ahead(self, *, needed: bool) -> Iterator[None]:
        """Write the changes noted so far while the block runs, if they are many and files of them are ``needed``."""
        noted = self._noted
        if not needed or sum(count_of(images.rows or {}) for images in noted) < WORTH_A_JOB:
            yield
            return
        self._noted, self.is_needed = [], True
        with self._engine.beside(lambda: self._record(noted)):
            yield
        self._recorded += noted

    def write_noted(self, *, needed: bool) -> pa.Table:
        """New files with all changes noted since the last ones, if any are ``needed``, now or before.

        Args:
            needed: whether the actions of files alone do not describe the noted changes.
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
        """Write the changes again that were written so far, except these kinds, which the caller notes anew. The caller
        also withdraws the files that were written.
        """
        noted, self._recorded = [*self._recorded, *self._noted], []
        self._noted = [images for images in noted if images.change not in changes]

    def leave_out(self, files: pa.Table, rows: Marks) -> pa.Table:
        """These files of change data, of which those that hold some of these rows are written anew without them."""
        kept = files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(list(rows), pa.string()))))
        written = list[FileRow]()
        for file in files.to_pylist():
            if found := rows.get(file["path"]):
                name = f"{self._staging.change_folder}/rest-{len(self._known):05d}-{self._staging.txn_id}.parquet"
                rest = leave_out(self._snapshot.store, file, found, name, rules_of(self._metadata))
                self._known.append(encode(name))
                written += [] if rest is None else [rest]
        return pa.concat_tables([kept, files_table(written)])

    def _record(self, changes: Sequence[Images]) -> None:
        self._staging.note(self._engine.record(changes, self._staging.open_change_folder()), changes=True)

    def _collect_new_files(self) -> pa.Table:
        files = self._staging.collect_changes(self._metadata, self._known)
        self._known += files["path"].to_pylist()
        return files
