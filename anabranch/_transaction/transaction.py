"""All that one transaction needs to know of another.

Knows two versions, ours and the winner's, and never a row's values: rows are positions. Pure data. Ours is a
`Transaction`: what it read (`ReadSet`), what it does (`Changes`, `Declarations`), where it stands (`Position`). A
winner is a commit, judged by its actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._log.lazy import lazy
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import AppTransaction, DomainMetadata, FileRow, Metadata, Protocol, empty_files
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features import row_tracking
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.layout.moves import Group
from anabranch._protocol.properties import SERIALIZABLE, Properties
from anabranch._protocol.steps import NO_STEPS, RowPlan, Step
from anabranch._transaction.running_vacuums import END, START

RESERVED_FOR = "anabranch.reservedFor"
"""The tag of a commit that reserves identity values: for which writer."""
RESERVES = "RESERVE IDENTITY"
"""The operation of such a commit."""
READ = "anabranch.reads"
"""The tag of a commit that has read rows: which."""

_OF_APPENDS = frozenset({"commitInfo", "add", "txn", "domainMetadata"})
_OF_RESERVATIONS = frozenset({"commitInfo", "metaData"})


@dataclass(frozen=True)
class ReadSet:
    """What a transaction read: the rows that satisfy ``condition``, found in ``files``.

    Attributes:
        condition: what the rows satisfy.
        files: the paths that statistics and partition values could not rule out; file-level rules go by them.
        matched: rows on whose *presence* the outcome depends, though they need not be touched: what a MERGE matched,
            where it inserts what it does not match.
        held: its rows were computed from the table's before, by whoever holds them, so that running the command again
            would bring the same ones.
        own_table: its rows, or its condition, were computed from a version of the table.
    """

    condition: Condition
    files: frozenset[str]
    matched: Marks = field(default_factory=dict)
    held: bool = False
    own_table: bool = False

    @property
    def row_local(self) -> bool:
        """Whether the outcome is decided row by row, so that rows which do not match cannot matter."""
        return self.condition.row_local


@dataclass(frozen=True)
class Source:
    """A live file as ours knows it: its row in the log, and the positions already deleted."""

    row: FileRow
    vector: BitMap64


@dataclass(frozen=True, eq=False)
class Changes:
    """What a transaction does to files.

    Attributes:
        marks: the positions that it deletes in files that stay (path -> positions); never any that ``sources`` deleted
            already.
        removes: the paths of files that it removes whole.
        sources: the present state of every path in ``marks``, ``removes`` and ``recommits``.
        adds: new files (`FILES`), already staged and durable.
        change_files: likewise new files of change data; without any, the feed is derived from the other actions.
        recommits: the paths of files that it names again, as ``sources`` has them, only so that they get row ids; those
            that a winner takes away are left out.
        withdraws: of what a redo gives, the paths among the earlier ``adds`` and ``change_files`` that it replaces.
        restaged: files among ``adds`` and ``change_files`` that were put again under another name, by the path under
            which they were staged (`anabranch._transaction.fence`).
        data_change: false where rows are only moved to other files.
        means_files: whether it takes files away for what they are, not for their rows, so that it cannot follow these
            elsewhere.
        groups: where each row went, if moving rows is all that it does and it says so; None else.
        buried: of its own ``adds``, the rows that winners have deleted at their old addresses.
        row_mark: a row id that stands in the files which it brings back, so that none up to it may be given again.
    """

    marks: Marks = field(default_factory=dict)
    removes: frozenset[str] = frozenset()
    sources: Mapping[str, Source] = field(default_factory=dict)
    adds: pa.Table = field(default_factory=empty_files)
    change_files: pa.Table = field(default_factory=empty_files)
    recommits: frozenset[str] = frozenset()
    withdraws: frozenset[str] = frozenset()
    restaged: Mapping[str, str] = field(default_factory=dict)
    data_change: bool = True
    means_files: bool = False
    groups: tuple[Group, ...] | None = None
    buried: Marks = field(default_factory=dict)
    row_mark: int = row_tracking.NOTHING


@dataclass(frozen=True)
class Declarations:
    """What a transaction says of the table from now on; a part that stays is None or empty."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()
    app_transactions: tuple[AppTransaction, ...] = ()


@dataclass(frozen=True)
class CommitInfo:
    """What the history says of a transaction; ``tags`` are further ones than those of its footprint, ``steps`` say what
    did what.
    """

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    steps: RowPlan = NO_STEPS


@dataclass(frozen=True)
class IdentityUse:
    """What a transaction has to do with identity values.

    Attributes:
        writer: by which its own reservations are known.
        own_numbers: the identity columns for which its rows bring values of their own.
        reserved_for: the writer for whom it is itself a reservation.
    """

    writer: str | None = None
    own_numbers: frozenset[str] = frozenset()
    reserved_for: str | None = None


@dataclass(frozen=True)
class Position:
    """Where a transaction stands in the order of versions.

    Attributes:
        rebased_to: the newest version that it stands behind; ``base`` at first, moved on by each carry-over.
        rebased_over: the winners that it was carried over.
        passed: the newest metadata that it was carried over; None where that is its base's.
    """

    rebased_to: int = -1
    rebased_over: tuple[int, ...] = ()
    passed: Metadata | None = None

    def behind(self, *versions: int) -> Position:
        """Behind these versions too, the newest one last."""
        return replace(self, rebased_to=versions[-1], rebased_over=self.rebased_over + versions)


@dataclass(frozen=True, eq=False)
class Transaction:
    """Ours: read at ``base``, staged, and waiting for its place. `Transaction.on` makes one.

    Attributes:
        base: the snapshot that it read; None when it creates the table.
        table: the URL of the table.
        txn_id: by which it knows its own commit again.
        isolation: the level by which it is judged.
        resolution: ``file``, ``row`` or ``redo``.
        info: what the history says of it.
        reads: what it read; None when nothing of the table was read, as by a blind append.
        does: what it does to files.
        says: what it says of the table.
        identity: what it has to do with identity values.
        stands: where it stands.
    """

    base: Snapshot | None
    table: str
    txn_id: str
    isolation: str
    resolution: str
    info: CommitInfo
    reads: ReadSet | None = None
    does: Changes = field(default_factory=Changes)
    says: Declarations = field(default_factory=Declarations)
    identity: IdentityUse = field(default_factory=IdentityUse)
    stands: Position = field(default_factory=Position)

    @classmethod
    def on(
        cls,
        base: Snapshot | None,
        txn_id: str,
        info: CommitInfo,
        *,
        table: str | None = None,
        reads: ReadSet | None = None,
        does: Changes | None = None,
        says: Declarations | None = None,
        identity: IdentityUse | None = None,
    ) -> Transaction:
        """A transaction that has read a snapshot, judged by the dials of that version's table.

        Args:
            base: None where it makes the table: then ``table`` is its URL, and its own metadata has the dials.
        """
        says = says or Declarations()
        if base is not None:
            table, properties, version = base.table, base.properties, base.version
        else:
            assert table is not None, "a table that is to be made has a place"
            properties, version = Properties(says.metadata.configuration if says.metadata else {}), -1
        return cls(
            base,
            table,
            txn_id,
            properties.isolation_level,
            properties.conflict_resolution,
            info,
            reads,
            does or Changes(),
            says,
            identity or IdentityUse(),
            Position(rebased_to=version),
        )

    @property
    def metadata(self) -> Metadata | None:
        """The table's metadata behind it; None only where it would make a table and says none."""
        return self.says.metadata or (None if self.base is None else self.base.metadata)

    @property
    def protocol(self) -> Protocol | None:
        """The table's protocol behind it; None only where it would make a table and says none."""
        return self.says.protocol or (None if self.base is None else self.base.protocol)

    @property
    def is_blind(self) -> bool:
        """An append whose rows came from elsewhere: it read nothing and takes nothing away."""
        unchanged = self.says.metadata is None and self.says.protocol is None and not self.says.domains
        return self.reads is None and not self.touched_paths and not self.does.recommits and unchanged

    @property
    def touched_paths(self) -> frozenset[str]:
        """The paths of existing files that it marks or removes."""
        return self.does.removes | frozenset(self.does.marks)

    @lazy
    def restated_paths(self) -> frozenset[str]:
        """The paths of live files that it names again without taking them away."""
        does, base = self.does, self.base
        if base is None or does.data_change or not base.files_are_loaded:
            return does.recommits
        is_live = pc.is_in(does.adds["path"], value_set=base.files["path"].combine_chunks())
        return does.recommits | (frozenset(does.adds["path"].filter(is_live).to_pylist()) - does.removes)

    @property
    def only_deletes(self) -> bool:
        """Whether it takes rows away and brings none."""
        return bool(self.touched_paths) and len(self.does.adds) == 0

    @property
    def serializable(self) -> bool:
        """Whether it may not be placed before winners that it has not read.

        A change of metadata is held to this at every level: an append under the old schema cannot stand behind it.
        """
        must = self.says.metadata is not None or self.says.protocol is not None or bool(self.does.recommits)
        return must or self.isolation == SERIALIZABLE

    @property
    def predicate(self) -> str:
        """What it read, for messages."""
        return self.reads.condition.text if self.reads else "nothing is read"

    def with_steps(self, steps: Iterable[Step]) -> Transaction:
        """With these steps besides those that it has."""
        return replace(self, info=replace(self.info, steps=RowPlan.of([*self.info.steps.steps, *steps])))

    def with_counts(self, **counts: int) -> Transaction:
        """With these metrics added to those that it has."""
        known = self.info.metrics
        merged = {**known, **{name: known.get(name, 0) + count for name, count in counts.items()}}
        return replace(self, info=replace(self.info, metrics=merged))


def is_blind_append(commit: Commit) -> bool:
    """Whether a winner is a blind append: it says so *and* holds nothing but new data (a false flag alone is not
    believed). One without a file is one too, such as an append of no rows.
    """
    head = commit.head
    says_so = head.info.get("isBlindAppend") is True and READ not in tags_of(commit)
    only_adds = len(commit.removes) == 0 and not commit.has_change_feed and head.kinds <= _OF_APPENDS
    only_mark = all(each.domain == row_tracking.DOMAIN for each in head.domains)  # the mark goes with every new row
    return says_so and only_adds and only_mark and _are_new_data(commit.adds)


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
