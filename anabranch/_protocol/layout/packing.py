"""Bin packing: which files of a partition to compact together, and the target file size.

Knows sizes, partition values and counts of deleted rows. Knows nothing of rows or versions. Pure. Guarantees: all files
of a bin share their partition values; the same files give the same bins, in any input order; once a plan is carried
out, planning again gives nothing (if the new files are as large as expected).

A file is compacted if it is small (less than half the target) or if more than `MOST_DELETED` of its rows are deleted.
Bins are filled first-fit, so that no two of them would fit into one: that is what makes a second plan empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.properties import Properties
from anabranch._protocol.stats.statistics import num_records

MIB = 1 << 20
LEAST_TARGET = 256 * MIB
MOST_TARGET = 1024 * MIB
AUTO_TARGET = 128 * MIB
"""The target size of auto compaction, which must be quick."""
AUTO_FILES = 50
"""The minimum number of files to compact in a partition that triggers auto compaction."""
MOST_DELETED = 0.05
_TABLE_OVER_TARGET = 10_240
"""Between these sizes the target grows from 256 MB at 2.56 TB to 1 GB at 10 TB; 3 TB have files of 307 MB, as
Databricks documents it.
"""


def target_size(properties: Properties, table_size: int) -> int:
    """The target file size in bytes: the table's setting, else one by the size of the table.

    Example:
        >>> target_size(Properties({}), 5 << 40) == 512 * MIB
        True
    """
    wished = properties.target_file_size
    return wished if wished is not None else min(max(table_size // _TABLE_OVER_TARGET, LEAST_TARGET), MOST_TARGET)


def auto_compaction_target(
    properties: Properties, table_size: int, mode: str | None = None, most: int | None = None
) -> int | None:
    """The target file size of auto compaction; None if it is off.

    ``auto`` depends on the size of the table, ``true`` and its alias ``legacy`` are at most 128 MB, or ``most`` bytes.
    ``mode`` overrides the table's setting.
    """
    mode = properties.auto_compaction if mode is None else mode
    if mode == "false":
        return None
    wished = target_size(properties, table_size)
    return wished if mode == "auto" else min(wished, AUTO_TARGET if most is None else most)


# -- bins --------------------------------------------------------------------------------------------------------------


def plan(files: pa.Table, target: int) -> list[pa.Table]:
    """The live files (`FILES`) to compact to files of ``target`` bytes (`target_size`), bin by bin; in the order of
    their rows, oldest first.
    """
    return [_take_files(files, bin_) for group in _groups(_candidates(files, target)) for bin_ in _bins(group, target)]


def bins_due(files: pa.Table, target: int, least: int = AUTO_FILES) -> list[pa.Table]:
    """The bins of the partitions that have enough files to compact.

    Arguments are those of `plan`; a writer passes the files of the partitions that it wrote to.

    Example:
        >>> bins_due(files, AUTO_TARGET)
        []
    """
    groups = [group for group in _groups(_candidates(files, target)) if len(group) >= least]
    return [_take_files(files, bin_) for group in groups for bin_ in _bins(group, target)]


@dataclass(frozen=True)
class _Candidate:
    """A file to compact: its index, the approximate size of its live part, and whether it is rewritten even alone."""

    place: int
    live: int
    alone: bool
    order: tuple[int, str]
    partition: tuple[tuple[str, str], ...]


@dataclass
class _Bin:
    size: int = 0
    members: list[_Candidate] = field(default_factory=list)

    def put(self, file: _Candidate) -> None:
        self.size += file.live
        self.members.append(file)

    @property
    def is_worth_it(self) -> bool:
        return len(self.members) > 1 or self.members[0].alone


def _candidates(files: pa.Table, target: int) -> list[_Candidate]:
    # A large file without deleted rows is no candidate, and there may be a million of them.
    may = pc.or_(pc.less(pc.multiply(files["size"], 2), target), pc.is_valid(files["deletionVector"]))
    places = pc.indices_nonzero(may)
    rows = files.take(places).select(["path", "partitionValues", "size", "modificationTime", "stats", "deletionVector"])
    candidates = (
        _candidate(place, row, target) for place, row in zip(places.to_pylist(), rows.to_pylist(), strict=True)
    )
    return sorted(
        (candidate for candidate in candidates if candidate is not None), key=lambda candidate: candidate.order
    )


def _candidate(place: int, row: Mapping[str, object], target: int) -> _Candidate | None:
    deleted, live = deleted_share(row), live_size(row)
    if 2 * live >= target and deleted <= MOST_DELETED:
        return None
    pairs = dict(row["partitionValues"] or {})  # type: ignore[call-overload]
    values = tuple(sorted((key, repr(value)) for key, value in pairs.items()))
    order = (int(str(row["modificationTime"] or 0)), str(row["path"]))
    return _Candidate(place, live, deleted > MOST_DELETED, order, values)


def live_size(row: Mapping[str, object]) -> int:
    """The approximate number of bytes of a file that belong to live rows."""
    size = row["size"]
    assert isinstance(size, int), "every file has a size"
    return max(1, int(size * (1 - deleted_share(row))))


def deleted_share(row: Mapping[str, object]) -> float:
    """The share of a file's rows that is deleted, if the log has its number of rows."""
    vector, stats = row["deletionVector"], row["stats"]
    rows = num_records(str(stats)) if stats is not None else None
    if not isinstance(vector, Mapping) or not rows:
        return 0.0
    return min(1.0, int(vector["cardinality"]) / rows)


def _groups(candidates: Iterable[_Candidate]) -> list[list[_Candidate]]:
    groups: dict[tuple[tuple[str, str], ...], list[_Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.partition, []).append(candidate)
    return [groups[key] for key in sorted(groups)]


def _bins(group: Iterable[_Candidate], target: int) -> Iterator[list[_Candidate]]:
    bins: list[_Bin] = []
    open_: list[_Bin] = []
    for candidate in group:
        chosen = next((one for one in open_ if one.size + candidate.live <= target), None)
        if chosen is None:
            chosen = _Bin()
            bins.append(chosen)
            open_.append(chosen)
        chosen.put(candidate)
        if chosen.size >= target:
            open_ = [one for one in open_ if one is not chosen]
    yield from (bin_.members for bin_ in bins if bin_.is_worth_it)


def _take_files(files: pa.Table, members: Iterable[_Candidate]) -> pa.Table:
    return files.take(pa.array([candidate.place for candidate in members], pa.int64()))
