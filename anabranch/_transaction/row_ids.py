"""Row ids: the ids of ours' new rows at the version that is tried.

Knows the marks of row ids that our transaction's base and its winners have stated, never a row. Pure, but for the files
of a base that states no mark yet. Guarantee: the ids of an attempt are higher than all in the log before it; files
that have ids keep them, and the ids of one attempt have no effect on the next.

PROTOCOL.md, section "Writer Requirements for Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from anabranch._log.commits import Commit
from anabranch._log.file_names import commit_name
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import DomainMetadata, FileRow, files_table
from anabranch._protocol.features.row_tracking import (
    DOMAIN,
    FILE_FIELDS,
    NOTHING,
    PRESERVED,
    assign_row_ids,
    assigns,
    domain_of,
    highest,
    is_supported,
    mark_of,
    tracking_columns,
)
from anabranch._transaction.transaction import Transaction
from anabranch.errors import CorruptLog


@dataclass(frozen=True)
class RowIds:
    """The ids of one attempt.

    Attributes:
        adds: the new files with their ids; None where the table has no row ids.
        again: the two id fields, by path, of files that are added again and had no ids.
        domains: the mark, if it has changed.
        tags: for the commit's ``commitInfo``.
    """

    adds: pa.Table | None = None
    again: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: tuple[DomainMetadata, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def new_files(self, ours: Transaction) -> pa.Table:
        """The new files of ours, as they are committed."""
        return ours.changes.adds if self.adds is None else self.adds

    def of(self, file: FileRow) -> FileRow:
        """A file that is added again, as it is committed."""
        return {**file, **self.again.get(file["path"], {})}

    def paths_to_recommit(self, ours: Transaction) -> frozenset[str]:
        """The files that ours would add again only for their ids, and that still lack them."""
        return ours.changes.recommits & self.again.keys()


NO_ROW_IDS = RowIds()
"""For a table without row ids."""


def row_ids(ours: Transaction, winners: Sequence[Commit], version: int) -> RowIds:
    """Assign ids to the new rows of ours at a version.

    Args:
        ours: as it was carried over.
        winners: all commits since its base, oldest first; the last one is the previous version.
        version: the version that is tried.

    Raises:
        CorruptLog: the mark of ids cannot be read, or the numbers are used up.
    """
    base, protocol, metadata = ours.base, ours.protocol, ours.metadata
    if protocol is None or metadata is None or not is_supported(protocol):
        return NO_ROW_IDS
    if not assigns(protocol, metadata):
        has_mark = ours.changes.row_mark != NOTHING
        return (
            RowIds(domains=_mark_domains(_highest_mark(base, winners), ours.changes.row_mark))
            if has_mark
            else NO_ROW_IDS
        )
    is_preserved = tracking_columns(protocol, metadata) is not None or not ours.touched_paths
    tags = {PRESERVED: str(is_preserved).lower()}
    recommitted = sorted(ours.changes.recommits | ours.changes.marks.keys())
    rows = [ours.changes.sources[path].row for path in recommitted]
    without_ids = [row for row in rows if row.get("baseRowId") is None or row.get("defaultRowCommitVersion") is None]
    if not without_ids and not len(ours.changes.adds) and ours.changes.row_mark == NOTHING:
        return RowIds(ours.changes.adds, tags=tags)
    before = _highest_mark(base, winners)
    try:
        files, mark = assign_row_ids(files_table(without_ids), max(before, ours.changes.row_mark), version)
        adds, mark = assign_row_ids(ours.changes.adds, mark, version)
    except OverflowError as error:
        raise CorruptLog(table=ours.table, file=commit_name(version - 1), reason=f"{error}.") from None
    return RowIds(adds, _fields(files), _mark_domains(before, mark), tags)


def _mark_domains(before: int, mark: int) -> tuple[DomainMetadata, ...]:
    return (domain_of(mark),) if mark > before else ()


def _fields(files: pa.Table) -> dict[str, Mapping[str, Any]]:
    columns = ["path", *FILE_FIELDS]
    return {row.pop("path"): row for row in files.select(columns).to_pylist()}


def _highest_mark(base: Snapshot | None, winners: Sequence[Commit]) -> int:
    """The highest id assigned before; where no version states it, the files do."""
    stated = [(d, commit.version) for commit in winners for d in commit.head.domains if d.domain == DOMAIN]
    if base is not None and (own := base.state.domains.get(DOMAIN)) is not None:
        stated.append((own, base.version))
    marks = [_read_mark(domain, version, base) for domain, version in stated if not domain.removed]
    if not marks and base is not None:
        return highest(base.files)
    return max(marks, default=NOTHING)


def _read_mark(domain: DomainMetadata, version: int, base: Snapshot | None) -> int:
    try:
        return mark_of(domain)
    except (ValueError, RecursionError) as error:
        table, reason = base.table if base is not None else "", f"the domain {DOMAIN} is not as it must be ({error})."
        raise CorruptLog(table=table, file=commit_name(version), reason=reason) from None
