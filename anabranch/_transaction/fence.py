"""The fence between writers and VACUUM: what a commit may still name once it has passed a ``VACUUM START``.

Knows commits, paths and the store; never a row. A VACUUM lists files, commits its START, reads the table again, and
then removes some of the listed files. So a file that was put *after* a writer has read the START is safe from that
VACUUM, and an older one is safe where the START guarantees it: it names the jobs that it spares, and the age below
which it spares files. Everything else that ours is about to commit is put again under new names. A check that a file
still exists would prove nothing: it may be removed between the check and the put. The whole argument is
docs/concepts/the-fence.md. Against a folder that is restored from a backup, which no commit announces, that check is
the only defence.

Guarantee: of the files that `Fence.restage_threatened` leaves in ours, no VACUUM removes one whose START is among the
winners.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FileRow
from anabranch._protocol.change_feed import FOLDER
from anabranch._protocol.layout.paths import encode, store_name
from anabranch._storage.contract import Store
from anabranch._storage.copying import copy_file
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.retry import Runtime
from anabranch._transaction.running_vacuums import CUTOFF, START, retention_of, whole
from anabranch._transaction.transaction import Transaction
from anabranch.errors import NotFound, StagedFilesVacuumed, StoreError

SPARES = "anabranch.spares"
"""Tag of a START of ours that lists the jobs it spares."""

EVERY_JOB = "*"
"""Value of `SPARES` that spares every job: only files that some commit has named are removed."""

FOREIGN_HARMLESS_MS = 86_400_000
"""Retention from which another engine's VACUUM is ignored: staged files are younger."""

_JOB = re.compile(
    rf"(?P<of>(?:{FOLDER}/)?)job-(?P<id>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})/(?:statement-[0-9]+/)?"
)
_logger = logging.getLogger(__name__)


def job_of(path: str) -> str | None:
    """The id of the job whose folder (of data, or of change data) contains a file, by its name or its path in the log;
    None where no job's does.
    """
    match = _JOB.match(path)
    return None if match is None else match["id"]


def start_tags(jobs: Collection[str] | None, cutoff_ms: int) -> Mapping[str, str]:
    """The tags of a START that spares these jobs (None: all), and files written at ``cutoff_ms`` or later."""
    return {SPARES: EVERY_JOB if jobs is None else ",".join(sorted(jobs)), CUTOFF: str(cutoff_ms)}


@dataclass(frozen=True)
class Start:
    """A ``VACUUM START``: the ``jobs`` that it spares (None: all), and its ``cutoff_ms`` if it has one."""

    commit: Commit
    jobs: frozenset[str] | None
    cutoff_ms: int | None

    def threatens(self, file: FileRow) -> bool:
        """Whether the VACUUM may remove this staged file.

        Only files of a job folder have the store's own time in the log, and VACUUM compares with that time.
        """
        if self.jobs is None:
            return False
        job = job_of(file["path"])
        if job is None:
            return True
        is_young = self.cutoff_ms is not None and (file.get("modificationTime") or 0) >= self.cutoff_ms
        return job not in self.jobs and not is_young


def starts_in(winners: Iterable[Commit]) -> list[Start]:
    """The STARTs among these commits that may threaten staged files."""
    starts = (_start(winner) for winner in winners if winner.head.info.get("operation") == START)
    return [start for start in starts if start is not None]


def _start(commit: Commit) -> Start | None:
    info = commit.head.info
    tags = info.get("tags") or {}
    if SPARES not in tags:
        return None if _retention_ms(info) >= FOREIGN_HARMLESS_MS else Start(commit, frozenset(), None)
    spared = str(tags[SPARES])
    jobs = None if spared == EVERY_JOB else frozenset(spared.split(",")) - {""}
    return Start(commit, jobs, whole(tags.get(CUTOFF)))


def _retention_ms(info: Mapping[str, object]) -> int:
    """The retention of another engine's VACUUM, as its parameters state it; else 0."""
    parameters = info.get("operationParameters")
    return retention_of(parameters if isinstance(parameters, Mapping) else {}) or 0


class StagedFileMissing(Exception):
    """A VACUUM removed a staged file before the fence could copy it: nothing of ours may be committed."""

    def __init__(self, path: str, winner: Commit) -> None:
        super().__init__(path)
        reason = "VACUUM removed a file that this transaction had staged"
        self.conflict = Conflict(StagedFilesVacuumed, "", reason, winner, file={"path": path})


class Fence:
    """The fence of one transaction: the version up to which it has read STARTs, and the copies that it made."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store, self._runtime = store, runtime
        self._passed = -1
        self._copies: list[str] = []

    def restage_threatened(self, ours: Transaction, winners: Sequence[Commit]) -> Transaction:
        """Ours behind these winners, all that were read since its base: files that a START among them threatens are put
        again. The result is a new object whenever there is a new START, so that the vectors' file is put again, too.

        Raises:
            StagedFileMissing: a file of ours was removed already.
            StoreError: it could not be put again; nothing was committed.
        """
        starts = starts_in(winner for winner in winners if winner.version > self._passed)
        self._passed = max(self._passed, winners[-1].version if winners else -1)
        if not starts:
            return ours
        staged = pa.concat_tables([ours.changes.adds, ours.changes.change_files])
        threatened = _find_threatened(_exclude_paths(staged, ours.restated_paths), starts)
        renamed = {row["path"]: self._restage_file(row, start) for row, start in threatened}
        present = {path: renamed.get(current, current) for path, current in ours.changes.restaged.items()}
        groups = ours.changes.groups
        changes = replace(
            ours.changes,
            adds=_rename_paths(ours.changes.adds, renamed),
            change_files=_rename_paths(ours.changes.change_files, renamed),
            restaged={**present, **renamed},
            groups=None if groups is None else tuple(group.rename_outputs(renamed) for group in groups),
            buried={renamed.get(path, path): rows for path, rows in ours.changes.buried.items()},
        )
        return replace(ours, changes=changes)

    def before_put(self, ours: Transaction) -> Conflict | None:
        """A conflict where a staged file of ours is gone, as all are where the table's folder was restored from a
        backup. Only one of them is checked, so that a commit takes one more request in all.
        """
        columns = (
            _exclude_paths(files, ours.restated_paths)["path"]
            for files in (ours.changes.adds, ours.changes.change_files)
        )
        names = (store_name(self._store.url, path.as_py()) for column in columns for path in column)
        name = next((n for n in names if n is not None), None)
        if name is None or self._store.head(name) is not None:
            return None
        reason = "a file that this transaction had staged is gone"
        return Conflict(StagedFilesVacuumed, "", reason, file={"path": encode(name)})

    def discard(self) -> None:
        """Remove the copies, once it is certain that no commit names them."""
        for name in self._copies:
            try:
                self._store.delete(name)
            except StoreError as error:
                _logger.warning("%s, which nothing names, was left in %s: %s", name, self._store.url, error)

    def _restage_file(self, file: FileRow, start: Start) -> str:
        """The path of a copy of a staged file. The service copies it, or it goes through this process in chunks, since
        it may be large, and there may be hundreds.
        """
        path = file["path"]
        name = store_name(self._store.url, path)
        if name is None:
            return str(path)  # it lies outside the table, which this VACUUM does not touch
        if file.get("deletionVector") is not None:
            raise StagedFileMissing(path, start.commit)  # an older version's file: its vector may be removed, too
        copy = f"{_folder(name)}part-{self._runtime.new_id()}.parquet"
        self._copies.append(copy)
        try:
            copy_file(self._store, name, self._store, copy, size=file["size"])
        except NotFound:
            raise StagedFileMissing(path, start.commit) from None
        except StoreError:
            if not self._is_whole(name, file["size"]):
                raise StagedFileMissing(path, start.commit) from None
            raise
        return encode(copy)

    def _is_whole(self, name: str, size: int) -> bool:
        entry = self._store.head(name)
        return entry is not None and entry.size == size


def _folder(name: str) -> str:
    """The folder of a copy: the partition's, outside of any job's folder, which is read and removed as a whole."""
    folder, slash, _ = _JOB.sub(r"\g<of>", name, count=1).rpartition("/")
    return folder + slash


def _exclude_paths(files: pa.Table, paths: Collection[str]) -> pa.Table:
    """The files that ours has staged: no VACUUM removes live files, and if anyone removes them that is a conflict."""
    if not paths:
        return files
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string()))))


def _find_threatened(adds: pa.Table, starts: Sequence[Start]) -> list[tuple[FileRow, Start]]:
    """The files that one of these VACUUMs may remove, each with the first of them."""
    rows = adds.select(["path", "size", "modificationTime", "deletionVector"]).to_pylist()
    threats = ((row, next((start for start in starts if start.threatens(row)), None)) for row in rows)
    return [(row, start) for row, start in threats if start is not None]


def _rename_paths(adds: pa.Table, names: Mapping[str, str]) -> pa.Table:
    if not names:
        return adds
    paths = pa.array([names.get(path, path) for path in adds["path"].to_pylist()], pa.string())
    return adds.set_column(adds.schema.get_field_index("path"), adds.schema.field("path"), paths)
