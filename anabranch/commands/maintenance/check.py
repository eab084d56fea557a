"""CHECK: is what the log says of this version true?

Knows the whole format, and changes nothing. Serves ``DeltaTable.check()``, the CLI and the end of every table test.
``deep`` reads every row and compares the statistics with them, and the whole log, of which checkpoints and compactions
are held against the commits; otherwise only names, sizes, footers and vectors are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._log.agreement import disagreements
from anabranch._log.checksum import Checksum
from anabranch._log.file_names import checksum_name, checksum_version, commit_version, first_name
from anabranch._log.log import Log
from anabranch._log.segment import contiguous
from anabranch._log.size_limits import hint
from anabranch._log.snapshot import Snapshot
from anabranch._log.timeline import read_in_commit_ms
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features.known import BY_NAME, DELETION_VECTORS, ROW_TRACKING
from anabranch._protocol.features.row_tracking import DOMAIN, NOTHING, assigns, is_enabled, mark_of, tracking_columns
from anabranch._protocol.features.table_features import active, reader_features, writer_features
from anabranch._protocol.in_commit_timestamps import boundary
from anabranch._protocol.stats.statistics import num_records
from anabranch._storage.told import bind_context
from anabranch.commands.ddl.check_identity import values_behind_marks
from anabranch.commands.maintenance.check_files import Finding, bytes_of, findings_of_file
from anabranch.commands.opening import Location, open_log
from anabranch.commands.watching import track_progress, working
from anabranch.errors import AnabranchError, CorruptLog, InvalidProperty
from anabranch.errors.html import ShownAsTable
from anabranch.errors.visible import amount

_READERS, _FEW = 8, 4
_NEEDS_BOTH = frozenset({DELETION_VECTORS, "timestampNtz", "columnMapping", "variantType"})


@dataclass(frozen=True)
class Report(ShownAsTable):
    """What a check looked at, and what it found."""

    table: str
    version: int
    files: int
    vectors: int
    rows: int | None
    deep: bool
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        return "\n".join([self._caption, *(f"  {finding}" for finding in self.findings)])

    @property
    def _caption(self) -> str:
        verdict = "clean" if self.is_clean else amount(len(self.findings), "finding")
        kind = "deep check" if self.deep else "check"
        looked_at = f"{amount(self.files, 'file')}, {amount(self.vectors, 'vector')}"
        return f"{kind} of {self.table} at version {self.version}: {looked_at}: {verdict}"


def check_table(
    table: Location, version: int | None = None, *, deep: bool = False, storage_options: Mapping[str, str] | None = None
) -> Report:
    """Check one version of the table at a path.

    Raises:
        NotATable, CorruptLog, UnsupportedFeature: the version cannot even be opened.
    """
    return check(open_log(table, storage_options).snapshot(version), deep=deep)


def check(snapshot: Snapshot, *, deep: bool = False) -> Report:
    """Check one snapshot.

    Example:
        >>> check(log.snapshot()).is_clean
        True
    """
    with working("CHECK", snapshot.table):
        return _check_snapshot(snapshot, deep=deep)


def _check_snapshot(snapshot: Snapshot, *, deep: bool) -> Report:
    try:
        files = snapshot.files.to_pylist()
    except CorruptLog as error:
        return _unreadable(snapshot, error, deep=deep)
    findings = [*_log_is_contiguous(snapshot), *_commits_say_when(snapshot), *_protocol_lists_match(snapshot)]
    findings += [*_no_path_twice(files), *_checksum_agrees(snapshot), *_row_ids(snapshot, files)]
    findings += [Finding("no identity value is given twice", *each) for each in values_behind_marks(snapshot, files)]
    looks = _each(files, lambda file: list(findings_of_file(snapshot, file, deep=deep)))
    for found in track_progress("files checked", looks, len(files)):
        findings.extend(found)
    if deep and not findings:
        findings += _no_row_id_twice(snapshot, files)
    for each in disagreements(snapshot) if deep else ():
        findings.append(Finding("checkpoints say what the commits say", each.file, each.problem))
    records = [num_records(file.get("stats")) for file in files]
    deleted = [(file["deletionVector"] or {}).get("cardinality", 0) for file in files]
    live = None if None in records else sum(r for r in records if r is not None) - sum(deleted)
    return Report(
        table=snapshot.table,
        version=snapshot.version,
        files=len(files),
        vectors=sum(1 for file in files if file["deletionVector"] is not None),
        rows=live,
        deep=deep,
        findings=tuple(findings),
    )


def _unreadable(snapshot: Snapshot, error: CorruptLog, *, deep: bool) -> Report:
    """The report where it is not even known which files are live."""
    is_sum = checksum_version(error.file) is not None
    rule = "the checksum file agrees" if is_sum else "the log can be read"
    found = Finding(rule, error.file, error.facts["reason"])
    return Report(snapshot.table, snapshot.version, 0, 0, None, deep, (found,))


def _each(files: list[FileRow], look: Callable[[FileRow], list[Finding]]) -> Iterator[list[Finding]]:
    """What is found of each file, in order; threads cost more than they save where there are few."""
    if len(files) <= _FEW:
        yield from map(look, files)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(bind_context(look), files)


def _log_is_contiguous(snapshot: Snapshot) -> Iterator[Finding]:
    entries = snapshot.store.list_from(first_name(0))
    commits = [e for e in entries if (v := commit_version(e.name)) is not None and v <= snapshot.version]
    try:
        first = commit_version(commits[0].name) if commits else None
        contiguous(snapshot.table, commits, first or 0)
    except AnabranchError as error:
        yield Finding("the log has no gap", error.facts["file"], error.facts["reason"])


def _checksum_agrees(snapshot: Snapshot) -> Iterator[Finding]:
    """The newest checksum file up to this version says what that version amounts to."""
    entries = snapshot.store.list_from(first_name(0))
    versions = [v for e in entries if (v := checksum_version(e.name)) is not None and v <= snapshot.version]
    if not versions:
        return
    version = versions[-1]
    rule = "the checksum file agrees"
    name = checksum_name(version)
    try:
        stated = Checksum.from_json(version, hint(snapshot.store, name))
        summed = snapshot if version == snapshot.version else Log(snapshot.store).snapshot(version)
        differences = stated.differs(summed.checksum())
    except (AnabranchError, ValueError, MemoryError) as error:
        differences = [f"it could not be compared: {error}"]
    for difference in differences:
        yield Finding(rule, name, difference)


def _commits_say_when(snapshot: Snapshot) -> Iterator[Finding]:
    """Where the table promises it, each commit since the checkpoint says a later time than those before."""
    rule = "each commit says when it was made"
    try:
        since = boundary(snapshot.metadata)
    except InvalidProperty as error:
        yield Finding(rule, snapshot.segment.newest.name, error.message)
        return
    before = -1
    for entry in snapshot.segment.commits if since is not None else ():
        if since is None or (commit_version(entry.name) or 0) < since.version:
            continue
        stated = read_in_commit_ms(snapshot.store, entry)
        if stated is None:
            yield Finding(rule, entry.name, "its commitInfo has no inCommitTimestamp")
        elif stated <= before:
            yield Finding(rule, entry.name, f"it says {stated}, and a commit before it says {before}")
        before = max(before, before if stated is None else stated)


def _protocol_lists_match(snapshot: Snapshot) -> Iterator[Finding]:
    """Each feature that the metadata uses is listed, and what binds readers stands in both lists."""
    readers = _with_finals(reader_features(snapshot.protocol))
    writers = _with_finals(writer_features(snapshot.protocol))
    used = set(active(snapshot.metadata))
    if snapshot.files["deletionVector"].null_count < len(snapshot.files):
        used.add(DELETION_VECTORS)
    for feature in sorted(used & _KNOWN_IN_PROTOCOL):
        if feature not in writers or (feature in _NEEDS_BOTH and feature not in readers):
            yield Finding("the protocol lists what is used", "_delta_log", f"{feature} is used but not listed")
    for feature in sorted((readers & _NEEDS_BOTH) - writers) if snapshot.protocol.min_writer >= 7 else ():
        yield Finding(
            "the protocol lists what is used", "_delta_log", f"{feature} is listed for readers but not for writers"
        )


def _with_finals(features: Set[str]) -> Set[str]:
    """The features with the final names of those that stand under a name of their preview."""
    return features | {BY_NAME[each].preview_of or each for each in features & BY_NAME.keys()}


_KNOWN_IN_PROTOCOL = frozenset(
    {
        DELETION_VECTORS,
        "timestampNtz",
        "columnMapping",
        "variantType",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "allowColumnDefaults",
        "invariants",
        ROW_TRACKING,
    }
)


def _no_path_twice(files: list[FileRow]) -> Iterator[Finding]:
    for path, times in Counter(file["path"] for file in files).items():
        if times > 1:
            yield Finding("each path is live once", path, f"it is live {times} times")


# -- row ids -----------------------------------------------------------------------------------------------------------


def _row_ids(snapshot: Snapshot, files: list[FileRow]) -> Iterator[Finding]:
    """Each file has a range of ids of its own, below the mark that the log states."""
    if not assigns(snapshot.protocol, snapshot.metadata):
        return
    enabled = is_enabled(snapshot.metadata)
    if enabled and tracking_columns(snapshot.protocol, snapshot.metadata) is None:
        yield Finding("each file has its row ids", "_delta_log", "the hidden columns of row tracking have no names")
    for file in files if enabled else ():
        if file["baseRowId"] is None or file["defaultRowCommitVersion"] is None:
            yield Finding("each file has its row ids", file["path"], "row tracking is enabled, and it has none")
    mark, end, last = _mark(snapshot), NOTHING, ""
    numbered = [(file["baseRowId"], file) for file in files if file["baseRowId"] is not None]
    for base, file in sorted(numbered, key=lambda each: each[0]):
        if base <= end:
            yield Finding("no two rows share an id", file["path"], f"its ids begin at {base}, inside those of {last}")
        end, last = max(end, base + (num_records(file.get("stats")) or 1) - 1), file["path"]
    if end > mark:
        yield Finding("the mark of row ids is the highest", last, f"its ids reach {end}, the log states {mark}")


def _mark(snapshot: Snapshot) -> int:
    domain = snapshot.state.domains.get(DOMAIN)
    try:
        return NOTHING if domain is None else mark_of(domain)
    except (ValueError, RecursionError):
        return NOTHING


def _no_row_id_twice(snapshot: Snapshot, files: list[FileRow]) -> Iterator[Finding]:
    """No two live rows have one id, those that moved into another file counted too."""
    names = tracking_columns(snapshot.protocol, snapshot.metadata)
    if names is None:
        return
    seen, mark = np.empty(0, np.int64), _mark(snapshot)
    for file in files:
        ids = _live_ids(snapshot, file, pq.ParquetFile(bytes_of(snapshot, file)), names.row_id)
        shared = np.intersect1d(ids, seen)
        if len(shared) or len(np.unique(ids)) < len(ids):
            told = f"the id {shared[0]} is another row's too" if len(shared) else "it holds an id twice"
            yield Finding("no two rows share an id", file["path"], told)
        if len(ids) and ids.max() > mark:
            problem = f"a row has the id {ids.max()}, the log states {mark}"
            yield Finding("the mark of row ids is the highest", file["path"], problem)
        seen = np.concatenate([seen, ids])


def _live_ids(snapshot: Snapshot, file: FileRow, data: pq.ParquetFile, column: str) -> Any:
    own = np.arange(data.metadata.num_rows, dtype=np.int64) + file["baseRowId"]
    if column in data.schema_arrow.names:
        kept = data.read(columns=[column]).column(0)
        own = pc.coalesce(kept, pa.chunked_array([own])).to_numpy()
    live = np.ones(len(own), bool)
    live[np.fromiter(vector_of(snapshot.store, file), np.int64)] = False
    return own[live]
