"""What VACUUM asks before it removes anything: is it certain which files are live?

Knows what was found in the folder, and what the log says. Decides, and changes nothing. Guarantee: where it returns,
a second witness in the log says the same of the live files (`anabranch._log.confirmation`), and each of them is there
under the name that the log gives it: a name that was garbled would leave the true one unprotected. A LITE VACUUM, which
lists nothing, goes by the commits instead: what it removes is not what a later commit brought back.

docs/verbs/vacuum.md says the same for users.
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
from anabranch.commands.maintenance.file_existence import absent
from anabranch.commands.maintenance.vacuum_candidates import Found, last_version
from anabranch.commands.maintenance.vacuum_retained import names_of
from anabranch.errors import LiveFilesNotConfirmed


def require_confirmation(log: Log, snapshot: Snapshot, found: Found, going: Sequence[Entry]) -> None:
    """Raises LiveFilesNotConfirmed if a second witness says that some of what goes is live in the snapshot; CorruptLog,
    CorruptVector, StoreError or UnknownStore where it cannot be found out.
    """
    confirm(snapshot)
    if found.running is None:
        _hold_not_back(log, snapshot, going)
    else:
        _hold_there(log, snapshot, {entry.name for entry in found.files})


def _hold_there(log: Log, snapshot: Snapshot, listed: set[str]) -> None:
    """Raises an error unless each live file, and each vector, is there; those that the listing leaves out are asked for
    by name. One that is gone may have been replaced, and removed by another VACUUM, since this version was read: then
    the newest version says what is live.
    """
    files = snapshot.files
    names = pa.array(listed, pa.string())
    plain = pc.and_(pc.is_in(files["path"], value_set=names), pc.is_null(files["deletionVector"]))
    lost = absent(snapshot.store, files.filter(pc.invert(plain)))
    if lost and (newest := log.snapshot()).version > snapshot.version:
        return _hold_there(log, newest, listed)
    if lost:
        reason = (
            "the log has it as live, and there is no such file. Where it was lost, put it back, or take it out of the "
            "table by FSCK REPAIR TABLE; where its name in the log is wrong, another file is live."
        )
        raise LiveFilesNotConfirmed(table=snapshot.table, file=lost[0].missing, reason=reason)


def _hold_not_back(log: Log, snapshot: Snapshot, going: Sequence[Entry]) -> None:
    """Raises an error if a commit since their removal has added one of these files again."""
    left = {entry.name for entry in going}
    live = set[str]()
    for commit in _pending_commits(log, snapshot):
        live -= names_of(log.table, commit.removes)
        live |= left & names_of(log.table, commit.adds)
    for name in sorted(live)[:1]:
        reason = "a commit brought it back, though it is not live by the version that is read."
        raise LiveFilesNotConfirmed(table=log.table, file=name, reason=reason)


def _pending_commits(log: Log, snapshot: Snapshot) -> Iterator[Commit]:
    """The commits that no VACUUM has worked off yet, among them those that removed the files."""
    done = last_version(log.store)
    for version in range(0 if done is None else done + 1, snapshot.version + 1):
        commit = log.read(version, snapshot.partition_keys)
        if commit is not None:
            yield commit
