"""The check before VACUUM removes anything: is it certain which files are live?

Knows the candidates and the log. Decides, and changes nothing. Guarantee: if it returns, a second witness in the log
confirms the live files (`anabranch._log.confirmation`), and each of them exists under its name in the log: a garbled
name would leave the real file unprotected. A LITE VACUUM, which lists nothing, reads the commits instead: it removes no
file that a later commit brought back.

docs/verbs/vacuum.md explains it for users.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._log.confirmation import confirm
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._storage.contract import Entry
from anabranch.commands.maintenance.file_existence import find_missing
from anabranch.commands.maintenance.vacuum_candidates import Candidates, last_version
from anabranch.commands.maintenance.vacuum_retained import names_of
from anabranch.errors import LiveFilesNotConfirmed


def require_confirmation(log: Log, snapshot: Snapshot, found: Candidates, going: Sequence[Entry]) -> None:
    """Raises LiveFilesNotConfirmed unless a second witness confirms the live files of the snapshot; CorruptLog,
    CorruptVector, StoreError or UnknownStore if that cannot be checked.
    """
    confirm(snapshot)
    if found.running is None:
        _check_not_restored(log, snapshot, going)
    else:
        _check_live_files_exist(log, snapshot, {entry.name for entry in found.files})


def _check_live_files_exist(log: Log, snapshot: Snapshot, listed_names: set[str]) -> None:
    """Raises an error unless each live file and each vector exists; files that are not in the listing are looked up by
    name. Since this version was read, a file may have been replaced and another VACUUM may have removed it: then the
    newest version decides.
    """
    files = snapshot.files
    names = pa.array(listed_names, pa.string())
    is_listed = pc.and_(pc.is_in(files["path"], value_set=names), pc.is_null(files["deletionVector"]))
    lost = find_missing(snapshot.store, files.filter(pc.invert(is_listed)))
    if lost and (newest := log.snapshot()).version > snapshot.version:
        return _check_live_files_exist(log, newest, listed_names)
    if lost:
        reason = (
            "the log lists it as live, and there is no such file. If it was lost, put it back, or remove it from the "
            "table by FSCK REPAIR TABLE; if its name in the log is wrong, another file is live."
        )
        raise LiveFilesNotConfirmed(table=snapshot.table, file=lost[0].missing, reason=reason)


def _check_not_restored(log: Log, snapshot: Snapshot, going: Sequence[Entry]) -> None:
    """Raises an error if a commit since their removal added one of these files again."""
    removed = {entry.name for entry in going}
    live_again = set[str]()
    for commit in _pending_commits(log, snapshot):
        live_again -= names_of(log.table, commit.removes)
        live_again |= removed & names_of(log.table, commit.adds)
    for name in sorted(live_again)[:1]:
        reason = "a commit added it again, though it is not live in the version that was read."
        raise LiveFilesNotConfirmed(table=log.table, file=name, reason=reason)


def _pending_commits(log: Log, snapshot: Snapshot) -> Iterator[Commit]:
    """The commits that no VACUUM has processed yet, among them those that removed the files."""
    vacuumed_through = last_version(log.store)
    for version in range(0 if vacuumed_through is None else vacuumed_through + 1, snapshot.version + 1):
        commit = log.read(version, snapshot.partition_keys)
        if commit is not None:
            yield commit
