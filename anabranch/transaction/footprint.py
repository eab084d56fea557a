"""Footprints: all that one transaction needs to know of another.

Knows two versions, mine and the winner's, and never a row's values: rows are positions. Pure data. ``mine`` is a
`Transaction`, which also says what it read; a winner is a commit, judged by its actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch.log.commits import Commit
from anabranch.log.snapshot import Snapshot
from anabranch.protocol import row_tracking
from anabranch.protocol.actions import AppTransaction, DomainMetadata, FileRow, Metadata, Protocol, empty_files
from anabranch.protocol.filesets import Marks
from anabranch.protocol.moves import Group
from anabranch.protocol.predicates import Condition
from anabranch.protocol.properties import SERIALIZABLE
from anabranch.transaction.vacuums import END, START

RESERVED_FOR = "anabranch.reservedFor"
"""The tag of a commit that reserves identity values: for which writer."""
RESERVES = "RESERVE IDENTITY"
"""The operation of such a commit."""
READ = "anabranch.reads"
"""The tag of a commit that has read rows: which."""

_OF_APPENDS = frozenset({"commitInfo", "add", "txn", "domainMetadata"})
_OF_RESERVATIONS = frozenset({"commitInfo", "metaData"})


@dataclass(frozen=True)
class Reads:
    """What a transaction read: the rows that satisfy ``condition``, found in ``files``.

    ``files`` holds the paths that statistics and partition values could not rule out; file-level rules go by them.
    ``matched`` holds rows on whose *presence* the outcome depends, though they need not be touched: what a MERGE
    matched, where it inserts what it does not match.
    """

    condition: Condition
    files: frozenset[str]
    matched: Marks = field(default_factory=dict)

    @property
    def row_local(self) -> bool:
        """Whether the outcome is decided row by row, so that rows which do not match cannot matter."""
        return self.condition.row_local


@dataclass(frozen=True)
class Source:
    """A live file as mine knows it: its row in the log, and the positions already deleted."""

    row: FileRow
    vector: BitMap64


@dataclass(frozen=True, eq=False)
class Transaction:
    """Mine: read at ``base``, staged, and waiting for its place.

    Attributes:
        base: the snapshot that it read; None when it creates the table. txn_id: by which it knows its own commit
        again. reads: None when nothing of the table was read, as by a blind append. marks: the positions that it
        deletes in files that stay (path -> positions); never any that ``sources`` deleted already. removes: the paths
        of files that it removes whole. sources: the present state of every path in ``marks`` and ``removes``. adds:
        new files (`FILES`), already staged and durable. withdraws: of what a redo gives, the paths among the earlier
        ``adds`` that it replaces. settled: the newest version that mine stands behind; ``base``
        at first, moved on by each carry-over. seen: a version behind which mine has to stand whatever the level, since
        it was there when the command began, though ``base`` may be older. writer: by which its own reservations of
        identity values are known. reserved_for: the writer for whom mine itself is a reservation. resolution:
        ``file`` or ``row``. recommits: the paths of files that it names again, as ``sources`` has them, only so that
        they get row ids; those that a winner takes away are left out. data_change: false where rows are
        only moved to other files. groups: where each row went, if moving rows is all that it does and it says so; None
        else. buried: of its own ``adds``, the rows that winners have deleted at their old addresses. means_files:
        whether it takes files away for what they are, not for their rows, so that it cannot follow these elsewhere.
        restaged: files among ``adds`` that were put again under another name, by the path under which they were staged
        (`anabranch.transaction.fence`). tags: further ones for its ``commitInfo``. row_mark: a row id that stands in
        the files which it brings back, so that none up to it may be given again. passed: the newest metadata that it
        was carried over; None where that is its base's.
    """

    base: Snapshot | None
    table: str
    txn_id: str
    operation: str
    parameters: Mapping[str, Any]
    isolation: str
    resolution: str
    reads: Reads | None = None
    marks: Marks = field(default_factory=dict)
    removes: frozenset[str] = frozenset()
    sources: Mapping[str, Source] = field(default_factory=dict)
    adds: pa.Table = field(default_factory=empty_files)
    withdraws: frozenset[str] = frozenset()
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    app_transactions: tuple[AppTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)
    user_metadata: str | None = None
    settled: int = -1
    seen: int = -1
    writer: str | None = None
    reserved_for: str | None = None
    own_numbers: frozenset[str] = frozenset()
    data_change: bool = True
    carried: tuple[int, ...] = ()
    recommits: frozenset[str] = frozenset()
    groups: tuple[Group, ...] | None = None
    buried: Marks = field(default_factory=dict)
    means_files: bool = False
    restaged: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    row_mark: int = row_tracking.NOTHING
    passed: Metadata | None = None

    @property
    def is_blind(self) -> bool:
        """An append whose rows came from elsewhere: it read nothing and takes nothing away."""
        unchanged = self.metadata is None and self.protocol is None and not self.domains
        return self.reads is None and not self.touched and not self.recommits and unchanged

    @property
    def touched(self) -> frozenset[str]:
        """The paths of existing files that it marks or removes."""
        return self.removes | frozenset(self.marks)

    @property
    def only_deletes(self) -> bool:
        """Whether it takes rows away and brings none."""
        return bool(self.touched) and len(self.adds) == 0

    @property
    def serializable(self) -> bool:
        """Whether it may not be placed before winners that it has not read.

        A change of metadata is held to this at every level: an append under the old schema cannot stand behind it.
        """
        must = self.metadata is not None or self.protocol is not None or bool(self.recommits)
        return must or self.isolation == SERIALIZABLE

    @property
    def predicate(self) -> str:
        """What it read, for messages."""
        return self.reads.condition.text if self.reads else "nothing is read"

    def with_counts(self, **counts: int) -> Transaction:
        """With these metrics added to those that it has."""
        merged = {**self.metrics, **{k: self.metrics.get(k, 0) + v for k, v in counts.items()}}
        return replace(self, metrics=merged)


def is_blind_append(commit: Commit) -> bool:
    """Whether a winner is a blind append: it says so *and* holds nothing but new data (a false flag alone is not
    believed). One without a file is one too, such as an append of no rows.
    """
    head = commit.head
    says_so = head.info.get("isBlindAppend") is True and READ not in tags_of(commit)
    only_adds = len(commit.removes) == 0 and not commit.has_change_feed and head.kinds <= _OF_APPENDS
    return says_so and only_adds and not _domains(commit) and _are_new_data(commit.adds)


def is_vacuum(commit: Commit) -> bool:
    """Whether a winner only says that a VACUUM began or ended, which reads and changes no row."""
    operation = commit.head.info.get("operation")
    return operation in (START, END) and commit.head.kinds == {"commitInfo"} and _holds_no_file(commit)


def reservation_of(commit: Commit) -> str | None:
    """The writer for whom a winner reserved identity values, if its content agrees that it did nothing else but change
    the metadata. Whether that moved marks only, `is_watermark` says.
    """
    tags = tags_of(commit)
    writer = tags.get(RESERVED_FOR)
    says_so = commit.head.info.get("operation") == RESERVES and isinstance(writer, str) and READ not in tags
    alone = commit.head.kinds == _OF_RESERVATIONS and _holds_no_file(commit)
    return writer if says_so and alone else None


def tags_of(commit: Commit) -> Mapping[str, Any]:
    """The tags of a winner; none where they are no object."""
    tags = commit.head.info.get("tags")
    return tags if isinstance(tags, Mapping) else {}


def _holds_no_file(commit: Commit) -> bool:
    return len(commit.adds) == 0 and len(commit.removes) == 0 and not commit.has_change_feed


def _domains(commit: Commit) -> frozenset[str]:
    """The domains that a winner wrote, but for the mark of row ids, which goes with every new row."""
    return frozenset(each.domain for each in commit.head.domains) - {row_tracking.DOMAIN}


def only_deletes(commit: Commit) -> bool:
    """Whether a winner takes rows away and brings none: each of its adds only re-marks a file that it removes."""
    if len(commit.removes) == 0:
        return False
    if len(commit.adds) == 0:
        return True
    return bool(pc.all(pc.is_in(commit.adds["path"], value_set=commit.removes["path"].combine_chunks())).as_py())


def _are_new_data(adds: pa.Table) -> bool:
    """New rows have no deletion vector yet, and say that they change data."""
    whole = adds["deletionVector"].null_count == len(adds)
    return whole and bool(pc.all(pc.fill_null(adds["dataChange"], False), min_count=0).as_py())
