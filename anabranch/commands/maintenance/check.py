"""CHECK verifies that the log describes a version correctly.

Knows the whole format, and changes nothing. Serves ``DeltaTable.check()``, the CLI and the end of every table test.
``deep`` reads every row and compares the statistics with them; it also reads the whole log and compares checkpoints and
compactions with the commits. Otherwise it examines only names, sizes, footers and vectors.
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
from anabranch._log.segment import check_contiguous
from anabranch._log.size_limits import hint
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._log.version_timestamps import read_in_commit_ms
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features.known import BY_NAME, DELETION_VECTORS, ROW_TRACKING
from anabranch._protocol.features.row_tracking import DOMAIN, NOTHING, assigns, is_enabled, mark_of, tracking_columns
from anabranch._protocol.features.table_features import active, reader_features, writer_features
from anabranch._protocol.in_commit_timestamps import boundary
from anabranch._protocol.stats.statistics import num_records
from anabranch._storage.store_settings import bind_context
from anabranch._transaction.open_transaction import uncommitted_paths
from anabranch.commands.ddl.check_identity import values_behind_marks
from anabranch.commands.maintenance.check_files import Finding, bytes_of, findings_of_file
from anabranch.commands.opening import Location, open_log
from anabranch.commands.queries.read import note_whole_table
from anabranch.commands.watching import track_progress, watch_block
from anabranch.errors import AnabranchError, CorruptLog, InvalidProperty
from anabranch.errors.html import ShownAsTable
from anabranch.errors.visible import amount

_READERS, _FEW = 8, 4
_NEEDS_BOTH = frozenset({DELETION_VECTORS, "timestampNtz", "columnMapping", "variantType"})


@dataclass(frozen=True)
class Report(ShownAsTable):
    """What a check examined, and its findings."""

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
    snapshot = open_log(table, storage_options).snapshot(version)
    note_whole_table(snapshot)
    return check(snapshot, deep=deep)


def check(snapshot: Snapshot, *, deep: bool = False) -> Report:
    """Check one snapshot.

    Example:
        >>> check(log.snapshot()).is_clean
        True
    """
    with watch_block("CHECK", snapshot.table):
        return _check_snapshot(snapshot, deep=deep)


def _check_snapshot(snapshot: Snapshot, *, deep: bool) -> Report:
    try:
        files = snapshot.files.to_pylist()
    except CorruptLog as error:
        return _unreadable(snapshot, error, deep=deep)
    findings = [*_check_log_is_contiguous(snapshot), *_check_commit_times(snapshot), *_check_protocol_lists(snapshot)]
    findings += [*_check_paths_are_unique(files), *_check_checksum(snapshot), *_check_row_id_ranges(snapshot, files)]
    findings += [
        Finding("no identity value is given twice", *details) for details in values_behind_marks(snapshot, files)
    ]
    looks = _look_at_files(files, lambda file: list(findings_of_file(snapshot, file, deep=deep)))
    for file_findings in track_progress("files checked", looks, len(files)):
        findings.extend(file_findings)
    if deep and not findings:
        findings += _check_row_ids_are_unique(snapshot, files)
    for disagreement in disagreements(snapshot) if deep else ():
        findings.append(Finding("checkpoints say what the commits say", disagreement.file, disagreement.problem))
    records = [num_records(file.get("stats")) for file in files]
    deleted = [(file["deletionVector"] or {}).get("cardinality", 0) for file in files]
    live = None if None in records else sum(count for count in records if count is not None) - sum(deleted)
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
    """The report if the live files cannot be determined."""
    is_sum = checksum_version(error.file) is not None
    rule = "the checksum file agrees" if is_sum else "the log can be read"
    finding = Finding(rule, error.file, error.facts["reason"])
    return Report(snapshot.table, snapshot.version, 0, 0, None, deep, (finding,))


def _look_at_files(files: list[FileRow], look: Callable[[FileRow], list[Finding]]) -> Iterator[list[Finding]]:
    """The findings of each file, in order; for few files threads cost more than they save."""
    if len(files) <= _FEW:
        yield from map(look, files)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(bind_context(look), files)


def _check_log_is_contiguous(snapshot: Snapshot) -> Iterator[Finding]:
    entries = snapshot.store.list_from(first_name(0))
    commits = [
        entry
        for entry in entries
        if (version := commit_version(entry.name)) is not None and version <= snapshot.version
    ]
    try:
        first = commit_version(commits[0].name) if commits else None
        check_contiguous(snapshot.table, commits, first or 0)
    except AnabranchError as error:
        yield Finding("the log has no gap", error.facts["file"], error.facts["reason"])


def _check_checksum(snapshot: Snapshot) -> Iterator[Finding]:
    """Compares the newest checksum file up to this version with the snapshot of its version."""
    entries = snapshot.store.list_from(first_name(0))
    versions = [
        number
        for entry in entries
        if (number := checksum_version(entry.name)) is not None and number <= snapshot.version
    ]
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


def _check_commit_times(snapshot: Snapshot) -> Iterator[Finding]:
    """With in-commit timestamps, each commit since the checkpoint must have a later time than those before."""
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
        timestamp = read_in_commit_ms(snapshot.store, entry)
        if timestamp is None:
            yield Finding(rule, entry.name, "its commitInfo has no inCommitTimestamp")
        elif timestamp <= before:
            yield Finding(rule, entry.name, f"it says {timestamp}, and a commit before it says {before}")
        before = max(before, before if timestamp is None else timestamp)


def _check_protocol_lists(snapshot: Snapshot) -> Iterator[Finding]:
    """The protocol must list each feature that is used, and those that readers need in both lists."""
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
    """The features, with the final name added for each that is listed under its preview name."""
    return features | {BY_NAME[name].preview_of or name for name in features & BY_NAME.keys()}


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


def _check_paths_are_unique(files: list[FileRow]) -> Iterator[Finding]:
    for path, times in Counter(file["path"] for file in files).items():
        if times > 1:
            yield Finding("each path is live once", path, f"it is live {times} times")


# -- row ids -----------------------------------------------------------------------------------------------------------


def _check_row_id_ranges(snapshot: Snapshot, files: list[FileRow]) -> Iterator[Finding]:
    """Each file must have its own range of row ids, up to the mark in the log."""
    if not assigns(snapshot.protocol, snapshot.metadata):
        return
    is_required = is_enabled(snapshot.metadata)
    if is_required and tracking_columns(snapshot.protocol, snapshot.metadata) is None:
        yield Finding("each file has its row ids", "_delta_log", "the hidden columns of row tracking have no names")
    uncommitted = uncommitted_paths(snapshot.table)
    for file in (file for file in files if is_required and file["path"] not in uncommitted):
        if file["baseRowId"] is None or file["defaultRowCommitVersion"] is None:
            yield Finding("each file has its row ids", file["path"], "row tracking is enabled, and it has none")
    mark, end, last = _mark(snapshot), NOTHING, ""
    numbered = [(file["baseRowId"], file) for file in files if file["baseRowId"] is not None]
    for base, file in sorted(numbered, key=lambda pair: pair[0]):
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


def _check_row_ids_are_unique(snapshot: Snapshot, files: list[FileRow]) -> Iterator[Finding]:
    """No two live rows may share an id, including rows that moved into another file."""
    names = tracking_columns(snapshot.protocol, snapshot.metadata)
    if names is None:
        return
    seen, mark, uncommitted = np.empty(0, np.int64), _mark(snapshot), uncommitted_paths(snapshot.table)
    for file in (file for file in files if file["path"] not in uncommitted):
        ids = _live_ids(snapshot, file, pq.ParquetFile(bytes_of(snapshot, file)), names.row_id)
        duplicates = np.intersect1d(ids, seen)
        if len(duplicates) or len(np.unique(ids)) < len(ids):
            what = f"the id {duplicates[0]} is another row's too" if len(duplicates) else "it holds an id twice"
            yield Finding("no two rows share an id", file["path"], what)
        if len(ids) and ids.max() > mark:
            problem = f"a row has the id {ids.max()}, the log states {mark}"
            yield Finding("the mark of row ids is the highest", file["path"], problem)
        seen = np.concatenate([seen, ids])


def _live_ids(snapshot: Snapshot, file: FileRow, data: pq.ParquetFile, column: str) -> Any:
    ids = np.arange(data.metadata.num_rows, dtype=np.int64) + file["baseRowId"]
    if column in data.schema_arrow.names:
        moved_ids = data.read(columns=[column]).column(0)
        ids = pc.coalesce(moved_ids, pa.chunked_array([ids])).to_numpy()
    live = np.ones(len(ids), bool)
    live[np.fromiter(vector_of(snapshot.store, file), np.int64)] = False
    return ids[live]
