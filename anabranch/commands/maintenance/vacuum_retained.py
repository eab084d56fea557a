"""What VACUUM keeps: the files of every retained version, and files that are not the table's.

Knows names and commits. Decides and changes nothing; any doubt keeps a file. Guarantees: VACUUM keeps each file of a
retained version, however its path is spelled, also through a link; and everything of a spared job, of another table
inside the folder, and of hidden folders that are not ours.

PROTOCOL.md, sections "Vacuum Protocol Check", "Deletion Vectors" and "Add CDC File".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.changes import change_files
from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import descriptor_of
from anabranch._log.version_timestamps import Timeline, timeline
from anabranch._protocol.change_feed import FOLDER
from anabranch._protocol.layout.paths import is_absolute, plain, store_name
from anabranch._storage.contract import Entry, Store
from anabranch._storage.trees import Tree, find_aliased, folders_above
from anabranch._transaction.fence import job_of
from anabranch.errors import CorruptVector

LOG = "_delta_log"
_NOT_HIDDEN = (FOLDER, "_delta_index")
_MARKER = re.compile(r"_(?:started|beating)_(?P<id>[0-9a-f-]{36})")


# -- names in the folder -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HiddenNames:
    """The rule of delta-spark for names that are not the table's: those that begin with ``_`` or ``.``, except folders
    of ``partitions``, of change data, and of our own jobs.
    """

    partitions: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> HiddenNames:
        """The rule for a version's partition columns, by their logical and physical names."""
        return cls(tuple(f"{name}=" for name in {*snapshot.partition_columns, *snapshot.partition_keys}))

    def hides(self, part: str) -> bool:
        """Whether a file or folder of this name is hidden."""
        return part.startswith(("_", ".")) and not part.startswith((*_NOT_HIDDEN, *self.partitions))

    def names(self, folder: str) -> bool:
        """Whether a folder has the name of a partition, of change data or of a job, so that it holds no table."""
        return job_of(f"{folder}/") is not None or folder.rpartition("/")[2].startswith((FOLDER, *self.partitions))

    def skips(self, folder: str) -> bool:
        """Whether a folder is skipped with everything below it."""
        return job_of(f"{folder}/") is None and self.hides(folder.rpartition("/")[2])

    def holds(self, name: str) -> bool:
        """Whether a file, or a folder that contains it, is hidden."""
        return any(map(self.hides, name.split("/")))


def running_jobs(files: Iterable[Entry], alive_since_ms: int) -> frozenset[str]:
    """The jobs whose marker or heartbeat was written at this time or later."""
    return frozenset(
        match["id"]
        for entry in files
        if entry.modified_ms >= alive_since_ms
        and (match := _MARKER.fullmatch(entry.name.rpartition("/")[2])) is not None
        and job_of(entry.name) == match["id"]
    )


def tables_inside(tree: Tree) -> tuple[str, ...]:
    """The folders of other tables inside this one's, each with a trailing slash."""
    logs = [name for name in (*tree.left_out, *tree.links) if name.rpartition("/")[2] == LOG]
    return tuple(name.removesuffix(LOG) for name in logs if name != LOG)


def tables_around(store: Store, folders: Iterable[str], hidden: HiddenNames, pool: Executor) -> tuple[str, ...]:
    """The ``folders`` that hold the log of another table, each with a trailing slash."""
    candidates = [f"{folder}/" for folder in sorted(folders) if not hidden.names(folder)]
    has_log = pool.map(lambda folder: bool(store.list_from(f"{folder}{LOG}/")), candidates)
    return tuple(folder for folder, has in zip(candidates, has_log, strict=True) if has)


# -- names in the log --------------------------------------------------------------------------------------------------


def names_of(table: str, actions: pa.Table) -> set[str]:
    """The names of the data and vector files of these actions, in every possible reading of a path. Raises
    CorruptVector: a vector's descriptor names no file. UnsupportedVector: it is not known which file it names.
    """
    paths = actions["path"].to_pylist()
    names = set(paths)
    for path in paths:
        if "%" in path or ":" in path or path.startswith("/"):  # other paths have one reading
            names.update(_possible_names(path))
    vectors = actions.select(["path", "deletionVector"]).filter(pc.is_valid(actions["deletionVector"]))
    for row in vectors.to_pylist():
        names.update(_vector_names(table, row))
    return names


def _possible_names(path: str) -> Iterator[str]:
    """The possible readings of a path. Paths are percent-encoded, but some engines forget that; and an absolute path
    may spell the table's folder in another way, so every suffix counts.
    """
    plain = unquote(path)
    yield path
    yield plain
    if is_absolute(path):
        for parts in (path.split("/"), plain.split("/")):
            yield from ("/".join(parts[depth:]) for depth in range(1, len(parts)))


def _vector_names(table: str, row: Mapping[str, Any]) -> Iterator[str]:
    descriptor = descriptor_of(table, row)
    try:
        if descriptor.storage_type == "u":
            yield descriptor.name
        elif descriptor.storage_type == "p":
            yield from _possible_names(descriptor.path_or_inline)
    except ValueError as error:
        raise CorruptVector(table=table, file=row["path"], reason=f"{error}.") from None


def names_in_snapshot(snapshot: Snapshot, cutoff_ms: int) -> set[str]:
    """The names of the live files, and of those that were removed at ``cutoff_ms`` or later as the snapshot tells.

    Raises:
        CorruptVector, UnsupportedVector, CorruptLog: the files to keep cannot be determined.
    """
    stones = snapshot.tombstones
    retained = pc.fill_null(pc.greater_equal(stones["deletionTimestamp"], cutoff_ms), True)
    return names_of(snapshot.table, snapshot.files) | names_of(snapshot.table, stones.filter(retained))


def names_in_commits(log: Log, snapshot: Snapshot, cutoff_ms: int, threads: int, *, change_data: bool) -> set[str]:
    """The names of the files that commits removed at ``cutoff_ms`` or later; with ``change_data`` also their change
    files.

    Tombstones alone are not enough: a checkpoint may have dropped some, if the table had a shorter retention or a clock
    was wrong, and their times come from the writer's clock.

    Raises:
        CorruptVector, UnsupportedVector, CorruptLog: the files to keep cannot be determined.
    """

    def names(version: int) -> set[str]:
        commit = log.read(version, snapshot.partition_keys)
        if commit is None:  # it was just cleaned up: no reader can open that version any more
            return set()
        paths = change_data_of(commit) if change_data else ()
        return names_of(snapshot.table, commit.removes).union(*map(_possible_names, paths))

    line = timeline(log.store, snapshot.metadata)
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-commits") as pool:
        return set[str]().union(*pool.map(names, line.versions[first_since(line, cutoff_ms) :]))


def find_aliased_names(store: Store, names: set[str], files: Sequence[Entry]) -> set[str]:
    """The names of the ``files`` to which one of ``names`` refers in another spelling."""
    unlisted = names.difference(entry.name for entry in files)
    return find_aliased(store, (plain(name) if ":" in name else name for name in unlisted), files)


def change_data_of(commit: Commit) -> list[str]:
    """The paths of a commit's change files, which no snapshot contains."""
    return [file["path"] for file in change_files(commit)]


def first_since(line: Timeline, moment_ms: int) -> int:
    """The index of the first commit at this time or later, by its own timestamp or by the store's clock: the writer's
    clock may have been behind.
    """
    return min(line.at(moment_ms - 1) + 1, int(line.file_times_ms.searchsorted(moment_ms)))


# -- the decision ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Retained:
    """What VACUUM keeps: ``names``, files written at ``cutoff_ms`` or later, files of the ``spared`` jobs, files below
    ``others`` (folders of other tables), and ``hidden`` ones.
    """

    names: set[str]
    cutoff_ms: int
    spared: frozenset[str]
    others: tuple[str, ...]
    hidden: HiddenNames

    def going(self, files: Sequence[Entry]) -> list[Entry]:
        """The files to remove, sorted by name."""
        going = [entry for entry in files if self._goes(entry)]
        names = {entry.name for entry in going}
        # Hadoop writes a hidden checksum beside each local file, which is useless without that file.
        beside = [entry for entry in files if entry.name not in names and _file_of_checksum(entry.name) in names]
        return sorted([*going, *beside])

    def is_ours(self, folder: str) -> bool:
        """Whether a folder may be removed once it is empty."""
        job = job_of(f"{folder}/")
        inside = f"{folder}/".startswith(self.others) if self.others else False
        return not inside and (not self.hidden.holds(folder) if job is None else job not in self.spared)

    def _goes(self, entry: Entry) -> bool:
        name = entry.name
        is_of_others = bool(self.others) and name.startswith(self.others)
        if entry.modified_ms >= self.cutoff_ms or name in self.names or is_of_others:
            return False
        job = job_of(name)
        if job is not None:
            return job not in self.spared and _file_of_checksum(name) not in self.names
        return not self.hidden.holds(name)


def _file_of_checksum(name: str) -> str | None:
    """The file to which this Hadoop checksum belongs; None if it is not a checksum."""
    folder, slash, base = name.rpartition("/")
    is_sum = base.startswith(".") and base.endswith(".crc")
    return f"{folder}{slash}{base[1:-4]}" if is_sum else None


def folders_of(files: Iterable[Entry]) -> set[str]:
    """All folders that contain these files, at any depth."""
    return {folder for entry in files for folder in folders_above(entry.name)}


def find_removed_files(table: str, commit: Commit) -> dict[str, int]:
    """The names and sizes of the files that a commit is the last to reference: those that it removes, their vectors,
    and its change files. Files outside the table's folder are left out.
    """
    sizes: dict[str, int] = {}
    for row in commit.removes.select(["path", "size", "deletionVector"]).to_pylist():
        sizes[row["path"]] = row["size"] or 0
        if row["deletionVector"] is not None and (vector := descriptor_of(table, row)).storage_type == "u":
            sizes[vector.name] = 0
    sizes |= dict.fromkeys(change_data_of(commit), 0)
    names = ((_inside(table, path), size) for path, size in sizes.items())
    return {name: size for name, size in names if name is not None}


def _inside(table: str, path: str) -> str | None:
    try:
        return store_name(table, path)
    except ValueError:
        return None
