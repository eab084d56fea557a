"""The description of one transaction by which others are judged.

Knows two versions, ours and the winner's, and never a row's values: rows are positions. Pure data. Ours is a
`Transaction`: its reads (`ReadSet`), its changes (`Changes`, `Declarations`) and its `Position`. A winner is a commit,
judged by its actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from anabranch._protocol.dials import strengthen
from anabranch._protocol.features import row_tracking
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.layout.moves import Group
from anabranch._protocol.properties import SERIALIZABLE, Properties
from anabranch._protocol.session_settings import current_dials
from anabranch._protocol.steps import NO_STEPS, RowPlan, Step
from anabranch._transaction.running_vacuums import END, START

RESERVED_FOR = "anabranch.reservedFor"
"""The tag of a commit that reserves identity values; its value names the writer."""
RESERVES = "RESERVE IDENTITY"
"""The operation of such a commit."""
READ = "anabranch.reads"
"""The tag of a commit that has read rows; its value describes them."""

_APPEND_KINDS = frozenset({"commitInfo", "add", "txn", "domainMetadata"})
_RESERVATION_KINDS = frozenset({"commitInfo", "metaData"})


@dataclass(frozen=True)
class ReadSet:
    """The rows that a transaction read: those in ``files`` that satisfy ``condition``.

    Attributes:
        condition: the condition that the rows satisfy.
        files: the paths that statistics and partition values could not rule out; file-level rules go by them.
        matched: rows on whose *presence* the outcome depends, though the transaction may not change them: the rows that
            a MERGE matched, where it inserts the source's other rows.
        held: whether the caller computed the new rows from the table beforehand, so that running the command again
            would produce the same ones.
        own_table: whether its rows, or its condition, were computed from a version of the table.
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
    """A live file as ours has read it: its row in the log, and the positions already deleted."""

    row: FileRow
    vector: BitMap64


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of a transaction to files.

    Attributes:
        marks: the positions that it deletes in files that stay (path -> positions); never any that ``sources`` deleted
            already.
        removes: the paths of files that it removes whole.
        sources: the present state of every path in ``marks``, ``removes`` and ``recommits``.
        adds: new files (`FILES`), already staged and durable.
        change_files: new files of change data, staged likewise; without any, the feed is derived from other actions.
        recommits: the paths of files that it adds again, as ``sources`` has them, only so that they get row ids; those
            that a winner removes are left out.
        withdraws: in the result of a redo, the paths among the earlier ``adds`` and ``change_files`` that it replaces.
        restaged: files among ``adds`` and ``change_files`` that were put again under another name, by the path under
            which they were staged (`anabranch._transaction.fence`).
        data_change: false where rows are only moved to other files.
        means_files: whether it removes files for what they are, not for their rows, so that it cannot follow moved
            rows.
        groups: the record of moves, if the transaction only moves rows and declares so; else None.
        buried: the deleted rows of its own ``adds``: those that winners have deleted at their old addresses, and those
            that a later statement of the same transaction has deleted.
        row_mark: a row id in the files that it restores, so that no id up to it may be assigned again.
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
    """The changes of a transaction to the table's state; a part that stays is None or empty."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()
    app_transactions: tuple[AppTransaction, ...] = ()


@dataclass(frozen=True)
class CommitInfo:
    """The entry of a transaction in the history; ``tags`` are additional to those of its footprint, ``steps`` name the
    backend of each step.
    """

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    steps: RowPlan = NO_STEPS


@dataclass(frozen=True)
class IdentityUse:
    """How a transaction uses identity values.

    Attributes:
        writers: identify its own reservations, one for each of its statements.
        own_numbers: the identity columns for which its rows have explicit values.
        reserved_for: the writer for whom the transaction is itself a reservation.
    """

    writers: frozenset[str] = frozenset()
    own_numbers: frozenset[str] = frozenset()
    reserved_for: str | None = None


@dataclass(frozen=True)
class Position:
    """The place of a transaction in the order of versions.

    Attributes:
        rebased_to: the newest version that it stands behind; ``base`` at first, advanced by each carry-over.
        rebased_over: the winners that it was carried over.
        passed: the newest metadata that it was carried over; None where that is its base's.
    """

    rebased_to: int = -1
    rebased_over: tuple[int, ...] = ()
    passed: Metadata | None = None

    def behind(self, *versions: int) -> Position:
        """The position behind these versions too, the newest one last."""
        return replace(self, rebased_to=versions[-1], rebased_over=self.rebased_over + versions)

    def rest_of(self, winners: Sequence[Commit]) -> Sequence[Commit]:
        """The winners that it does not stand behind yet."""
        return [winner for winner in winners if winner.version > self.rebased_to]


@dataclass(frozen=True, eq=False)
class Transaction:
    """Ours: read at ``base``, staged, and waiting for its place. `Transaction.on` makes one.

    Attributes:
        base: the snapshot that it read; None when it creates the table.
        table: the URL of the table.
        txn_id: identifies its own commit.
        isolation: the level by which it is judged.
        resolution: ``file``, ``row`` or ``redo``.
        info: its entry in the history.
        reads: its read set; None when nothing of the table was read, as by a blind append.
        changes: its changes to files.
        declarations: its changes to the table's state.
        identity: its use of identity values.
        position: its place in the order of versions.
        statements: how many statements it joins; only one that stands alone, and reports when it has been committed,
            can be redone on rows that were added.
    """

    base: Snapshot | None
    table: str
    txn_id: str
    isolation: str
    resolution: str
    info: CommitInfo
    reads: ReadSet | None = None
    changes: Changes = field(default_factory=Changes)
    declarations: Declarations = field(default_factory=Declarations)
    identity: IdentityUse = field(default_factory=IdentityUse)
    position: Position = field(default_factory=Position)
    statements: int = 1

    @classmethod
    def on(
        cls,
        base: Snapshot | None,
        txn_id: str,
        info: CommitInfo,
        *,
        table: str | None = None,
        reads: ReadSet | None = None,
        changes: Changes | None = None,
        declarations: Declarations | None = None,
        identity: IdentityUse | None = None,
    ) -> Transaction:
        """A transaction that has read a snapshot, judged by that version's table properties and by `current_dials`.

        Args:
            base: None where it creates the table: then ``table`` is its URL, and its own metadata has the properties.

        Raises:
            InvalidOption: the session or the command asks for a weaker level than the table's.
        """
        declarations = declarations or Declarations()
        if base is not None:
            table, properties, version = base.table, base.properties, base.version
        else:
            assert table is not None, "a table that is to be created has a URL"
            properties, version = Properties(declarations.metadata.configuration if declarations.metadata else {}), -1
        properties = strengthen(properties, current_dials(), table)
        return cls(
            base,
            table,
            txn_id,
            properties.isolation_level,
            properties.conflict_resolution,
            info,
            reads,
            changes or Changes(),
            declarations,
            identity or IdentityUse(),
            Position(rebased_to=version),
        )

    @property
    def metadata(self) -> Metadata | None:
        """The table's metadata after it; None only where it would create a table and declares none."""
        return self.declarations.metadata or (None if self.base is None else self.base.metadata)

    @property
    def protocol(self) -> Protocol | None:
        """The table's protocol after it; None only where it would create a table and declares none."""
        return self.declarations.protocol or (None if self.base is None else self.base.protocol)

    @property
    def is_blind(self) -> bool:
        """Whether it is an append that read nothing of the table and removes nothing."""
        unchanged = (
            self.declarations.metadata is None and self.declarations.protocol is None and not self.declarations.domains
        )
        return not self.refers_to_rows and not self.changes.recommits and unchanged

    @property
    def refers_to_rows(self) -> bool:
        """Whether it reads, marks or removes rows of existing files, so that their addresses matter."""
        return self.reads is not None or bool(self.touched_paths)

    @property
    def touched_paths(self) -> frozenset[str]:
        """The paths of existing files that it marks or removes."""
        return self.changes.removes | frozenset(self.changes.marks)

    @lazy
    def restated_paths(self) -> frozenset[str]:
        """The paths of live files that it adds again without removing them."""
        does, base = self.changes, self.base
        if base is None or does.data_change or not base.files_are_loaded:
            return does.recommits
        is_live = pc.is_in(does.adds["path"], value_set=base.files["path"].combine_chunks())
        return does.recommits | (frozenset(does.adds["path"].filter(is_live).to_pylist()) - does.removes)

    @property
    def only_deletes(self) -> bool:
        """Whether it deletes rows and adds none."""
        return bool(self.touched_paths) and len(self.changes.adds) == 0

    @property
    def serializable(self) -> bool:
        """Whether it may not be placed before winners that it has not read.

        A change of metadata is held to this at every level: an append under the old schema cannot stand behind it.
        """
        must = (
            self.declarations.metadata is not None
            or self.declarations.protocol is not None
            or bool(self.changes.recommits)
        )
        return must or self.isolation == SERIALIZABLE

    @property
    def redoes_blind_rows(self) -> bool:
        """Whether rows of blind appends that it has to follow are redone, not refused."""
        return not self.serializable and self.statements == 1

    @property
    def predicate(self) -> str:
        """The condition of its reads, for messages."""
        return self.reads.condition.text if self.reads else "nothing is read"

    def with_steps(self, steps: Iterable[Step]) -> Transaction:
        """The transaction with further steps."""
        return replace(self, info=replace(self.info, steps=RowPlan.of([*self.info.steps.steps, *steps])))

    def with_metrics(self, **counts: int) -> Transaction:
        """The transaction with these metrics added to its own."""
        metrics = self.info.metrics
        merged = {**metrics, **{name: metrics.get(name, 0) + count for name, count in counts.items()}}
        return replace(self, info=replace(self.info, metrics=merged))


def is_blind_append(commit: Commit) -> bool:
    """Whether a winner is a blind append: it declares so *and* holds nothing but new data (a false flag alone does not
    count). An append without files, as of no rows, is one too.
    """
    head = commit.head
    is_declared = head.info.get("isBlindAppend") is True and READ not in tags_of(commit)
    only_adds = len(commit.removes) == 0 and not commit.has_change_feed and head.kinds <= _APPEND_KINDS
    only_mark = all(domain.domain == row_tracking.DOMAIN for domain in head.domains)  # the mark goes with every new row
    return is_declared and only_adds and only_mark and _are_new_data(commit.adds)


def is_vacuum(commit: Commit) -> bool:
    """Whether a winner only records that a VACUUM began or ended, which reads and changes no row."""
    operation = commit.head.info.get("operation")
    return operation in (START, END) and commit.head.kinds == {"commitInfo"} and _holds_no_file(commit)


def reservation_of(commit: Commit) -> str | None:
    """The writer for whom a winner reserved identity values, if its content agrees that it only changed the metadata.
    Whether that moved marks only is up to `is_watermark`.
    """
    tags = tags_of(commit)
    writer = tags.get(RESERVED_FOR)
    is_declared = commit.head.info.get("operation") == RESERVES and isinstance(writer, str) and READ not in tags
    is_only_metadata = commit.head.kinds == _RESERVATION_KINDS and _holds_no_file(commit)
    return writer if is_declared and is_only_metadata else None


def tags_of(commit: Commit) -> Mapping[str, Any]:
    """The tags of a winner; none where they are no JSON object."""
    tags = commit.head.info.get("tags")
    return tags if isinstance(tags, Mapping) else {}


def _holds_no_file(commit: Commit) -> bool:
    return len(commit.adds) == 0 and len(commit.removes) == 0 and not commit.has_change_feed


def only_deletes(commit: Commit) -> bool:
    """Whether a winner deletes rows and adds none: each of its adds only re-marks a file that it removes."""
    if len(commit.removes) == 0:
        return False
    if len(commit.adds) == 0:
        return True
    return bool(pc.all(pc.is_in(commit.adds["path"], value_set=commit.removes["path"].combine_chunks())).as_py())


def _are_new_data(adds: pa.Table) -> bool:
    """Whether the files are new: without a deletion vector, and declared to change data."""
    has_no_vector = adds["deletionVector"].null_count == len(adds)
    return has_no_vector and bool(pc.all(pc.fill_null(adds["dataChange"], False), min_count=0).as_py())
