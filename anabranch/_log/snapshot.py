"""A snapshot: the table at one version.

Knows one version and nothing of transactions. Guarantee: a snapshot never changes; its files and tombstones are read on
first use, from the log files of its version. Protocol and metadata are available from the start, so a writer that only
appends never reads an ``add``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from anabranch._log.checkpoint import Checkpoint, CheckpointHead
from anabranch._log.checkpoint_parts import CheckpointFiles
from anabranch._log.checksum import Checksum
from anabranch._log.checksum_verifier import ChecksumVerifier
from anabranch._log.commit_files import Raw, read_commit, read_commits
from anabranch._log.commits import Head, own_txn_id, parse_files, parse_head
from anabranch._log.fallback import read_with_fallback
from anabranch._log.file_names import commit_name, commit_version
from anabranch._log.lazy import lazy
from anabranch._log.replay import apply_actions, replay, without
from anabranch._log.segment import Segment
from anabranch._protocol.actions import AppTransaction, DomainMetadata, Metadata, Protocol, empty_files
from anabranch._protocol.features.known import DELETION_VECTORS
from anabranch._protocol.features.table_features import check_readable, writer_features
from anabranch._protocol.layout.clustering import Path, clustering_of
from anabranch._protocol.properties import Properties
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.stats.skipping import FileFacts
from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog
from anabranch.errors.rows import note

KEPT_BYTES = 128 << 10
"""Maximum total size of commits, in bytes, that are kept after reading the head, to read the files from them."""
REMEMBERED_COMMITS = 1000
REMEMBERED_BYTES = 16 << 20
"""Limits of the commits that are kept after the files were last read; beyond either, the files are computed."""


@dataclass(frozen=True)
class State:
    """The protocol, metadata and other state of one version, without its files.

    ``own_txn_id`` is `anabranch._log.commits.own_txn_id` of its commit, None where the commit was not read.
    """

    protocol: Protocol
    metadata: Metadata
    app_transactions: Mapping[str, AppTransaction]
    domains: Mapping[str, DomainMetadata]
    timestamp: int
    own_txn_id: str | None = None


@dataclass(frozen=True)
class Ancestor:
    """An older version whose files were read, and the commits ``since``: enough to compute the files of a newer one.

    ``facts`` are the older version's statistics, as far as they were read.

    With it, following the log costs an append-only writer nothing; the commits are applied at once when the files are
    needed, or when there are many commits.
    """

    files: pa.Table
    partition_keys: tuple[str, ...]
    since: tuple[Raw, ...] = ()
    facts: FileFacts | None = None

    def advance_by(self, table: str, raws: Sequence[Raw], partition_keys: tuple[str, ...]) -> Ancestor:
        """The ancestor with further commits, after which the table's partition values have these keys."""
        longer = replace(self, since=(*self.since, *raws), partition_keys=partition_keys)
        size = sum(len(raw.data) for raw in longer.since)
        is_small = len(longer.since) <= REMEMBERED_COMMITS and size <= REMEMBERED_BYTES
        return longer if is_small else Ancestor(longer.files_now(table)[0], partition_keys)

    def files_now(self, table: str) -> tuple[pa.Table, pa.BooleanArray | None]:
        """The live files after all of these commits, and a mask of the older files that remain, which come first (None:
        all remain).
        """
        if not self.since:
            return self.files, None
        return apply_actions(self.files, *parse_files(table, self.since, self.partition_keys))


class Snapshot:
    """The table at ``version``.

    Attributes:
        table: canonical URL of the table's root.
        version: counted from 0.
        identity: size and etag of the newest log file, which distinguish a table created again at the same path.
        ancestor: the source of its files; None where the whole log is read for them.

    Example:
        >>> snapshot = open_log("/data/flights").snapshot()
        >>> snapshot.version, snapshot.files.num_rows
    """

    def __init__(
        self,
        store: Store,
        segment: Segment,
        state: State,
        ancestor: Ancestor | None = None,
        raws: list[Raw] | None = None,
    ) -> None:
        self.store, self.segment, self.state = store, segment, state
        self.table, self.version, self.identity = store.url, segment.version, segment.identity
        self.ancestor = ancestor
        self._raws = raws if sum(len(raw.data) for raw in raws or ()) <= KEPT_BYTES else None
        note(self.table, self.version, state.metadata.configuration)

    def __repr__(self) -> str:
        return f"Snapshot({self.table!r}, version={self.version})"

    @property
    def protocol(self) -> Protocol:
        """The requirements on readers and writers."""
        return self.state.protocol

    @property
    def metadata(self) -> Metadata:
        """Schema, partitioning and properties."""
        return self.state.metadata

    @property
    def schema(self) -> Struct:
        """The columns."""
        return self.metadata.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns, in their order."""
        return self.metadata.partition_columns

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The keys of partition values in the log."""
        return self.metadata.partition_keys

    @lazy
    def clustering_columns(self) -> tuple[Path, ...]:
        """The clustering columns."""
        return clustering_of(self.table, self.state.domains, self.schema)

    @lazy
    def properties(self) -> Properties:
        """The table's properties with their defaults; vectors are off where the protocol does not allow them."""
        allowed = DELETION_VECTORS in writer_features(self.protocol)
        off = {} if allowed else {"delta.enableDeletionVectors": "false"}
        return Properties({**self.metadata.configuration, **off})

    @property
    def timestamp(self) -> int:
        """The time of this version's commit, in milliseconds since 1970."""
        return self.state.timestamp

    @lazy
    def files(self) -> pa.Table:
        """The live files, one row each (`anabranch._protocol.actions.FILES`)."""
        if self.ancestor is not None:
            return self._files_and_mask[0]
        verifier = ChecksumVerifier(self.store, self.metadata, self.protocol, self.version)
        return read_with_fallback(self.store, self.segment, lambda candidate: self._files_of(candidate, verifier))

    @lazy
    def facts(self) -> FileFacts:
        """Statistics and partition values of `files`; each column is read on first use."""
        facts, older = FileFacts(self.files, self.schema, self.partition_columns), self.ancestor
        if older is not None and older.facts is not None:
            facts.remember(older.facts, self._files_and_mask[1])
        return facts

    @lazy
    def tombstones(self) -> pa.Table:
        """The removed files that the log still remembers (`anabranch._protocol.actions.REMOVES`)."""
        return read_with_fallback(self.store, self.segment, self._tombstones_of)

    @property
    def files_are_loaded(self) -> bool:
        """Whether `files` has been read."""
        return "files" in self.__dict__

    @property
    def files_in_memory(self) -> int:
        """The number of files held in memory, of this version or of the ancestor."""
        before = 0 if self.ancestor is None else len(self.ancestor.files)
        return max(len(self.files) if self.files_are_loaded else 0, before)

    @property
    def knows_files(self) -> bool:
        """Whether `files` need no full read of the log: these files, or those of the ancestor, have been read."""
        return self.files_are_loaded or self.ancestor is not None

    @property
    def head(self) -> CheckpointHead:
        """The content of a checkpoint of this version apart from files."""
        state = self.state
        return CheckpointHead(state.protocol, state.metadata, state.app_transactions, state.domains)

    def checksum(self) -> Checksum:
        """The checksum of this version; reads its files."""
        state = self.state
        return Checksum.of_files(
            self.version,
            self.files,
            state.metadata,
            state.protocol,
            state.app_transactions,
            state.domains,
            state.timestamp,
            state.own_txn_id,
        )

    def advance_by(self, entries: Sequence[Entry], checkpoint: CheckpointFiles | None = None) -> Snapshot:
        """The snapshot after these further commits, in order; the cost depends on their changes, not on the size of the
        table. A later full read may start from ``checkpoint``, which is at or before the newest commit.
        """
        raws, state = read_commits(self.store, entries), self.state
        for raw in raws:
            state = _advance_state(state, parse_head(self.table, raw), raw.timestamp)
        check_readable(self.table, state.protocol, state.metadata)
        ancestor = self._as_ancestor()
        later = ancestor.advance_by(self.table, raws, state.metadata.partition_keys) if ancestor else None
        return Snapshot(self.store, _advance_segment(self.segment, entries, checkpoint), state, later)

    def through(self, store: Store) -> Snapshot:
        """The same snapshot, with this store of the same root for further reads."""
        if store is self.store:
            return self
        copy = Snapshot(store, self.segment, self.state, self._as_ancestor(), self._raws)
        if self.files_are_loaded:
            copy.__dict__.update(files=self.files, facts=self.facts)  # no need to read these again
        return copy

    @lazy
    def _files_and_mask(self) -> tuple[pa.Table, pa.BooleanArray | None]:
        assert self.ancestor is not None
        return self.ancestor.files_now(self.table)

    def _as_ancestor(self) -> Ancestor | None:
        if self.files_are_loaded:
            return Ancestor(self.files, self.partition_keys, facts=self.__dict__.get("facts"))
        return self.ancestor

    def _files_of(self, segment: Segment, verifier: ChecksumVerifier) -> pa.Table:
        with verifier.reading_checksum(segment.checkpoint):
            base = Checkpoint(self.store, segment.checkpoint).files() if segment.checkpoint else empty_files()
            live, _, touched = replay(*self._file_actions(segment))
            check_not_replaced(self.store, self.segment)
        files = pa.concat_tables([without(base, touched), live])
        verifier.verify(segment.checkpoint, base, files, segment.compaction)
        return files

    def _tombstones_of(self, segment: Segment) -> pa.Table:
        _, tombstones, touched = replay(*self._file_actions(segment))
        if segment.checkpoint:
            tombstones = pa.concat_tables(
                [without(Checkpoint(self.store, segment.checkpoint).tombstones(), touched), tombstones]
            )
        check_not_replaced(self.store, self.segment)
        return tombstones

    def _file_actions(self, segment: Segment) -> tuple[pa.Table, pa.Table]:
        raws = self._raws if segment is self.segment else None
        return parse_files(self.table, raws or read_commits(self.store, segment.entries_to_replay), self.partition_keys)


def load_snapshot(store: Store, segment: Segment) -> Snapshot:
    """Build the snapshot of a segment; reads no file action.

    Raises:
        CorruptLog: protocol or metadata is missing, or a log file is damaged and no other segment is left.
        VersionCleanedUp: the version was cleaned up since the segment was found.
        UnsupportedFeature: the table needs an unsupported reader feature.
    """
    return read_with_fallback(store, segment, lambda candidate: _load_segment(store, segment, candidate))


def _load_segment(store: Store, segment: Segment, candidate: Segment) -> Snapshot:
    head = _head_of(store, candidate)
    protocol, metadata = head.protocol, head.metadata
    apps, domains, timestamp = dict(head.app_transactions), dict(head.domains), segment.timestamp
    txn_id = None
    raws = read_commits(store, candidate.entries_to_replay)
    for raw in raws:
        parsed = parse_head(store.url, raw)
        protocol, metadata = parsed.protocol or protocol, parsed.metadata or metadata
        apps |= {t.app_id: t for t in parsed.app_transactions}
        domains |= {d.domain: d for d in parsed.domains}
        timestamp, txn_id = int(parsed.info.get("inCommitTimestamp") or raw.timestamp), own_txn_id(parsed)
    if protocol is None or metadata is None:
        missing = "protocol" if protocol is None else "metaData"
        raise CorruptLog(
            table=store.url,
            file=commit_name(segment.version),
            reason=f"no {missing} action is found up to this version.",
            checkpoint=candidate.checkpoint and candidate.checkpoint.name,
        )
    check_readable(store.url, protocol, metadata)
    if not candidate.commits:
        timestamp = _own_timestamp(store, segment, metadata)
    return Snapshot(store, candidate, State(protocol, metadata, apps, _live(domains), timestamp, txn_id), raws=raws)


def _head_of(store: Store, segment: Segment) -> CheckpointHead:
    if segment.checkpoint is None:
        return CheckpointHead(None, None, {}, {})
    checkpoint = Checkpoint(store, segment.checkpoint)
    head = checkpoint.head()
    if checkpoint.is_replaced:
        check_not_replaced(store, segment)
    return head


def check_not_replaced(store: Store, segment: Segment) -> None:
    """Raises CorruptLog if the table was created again since the segment was found: the bytes just read may belong to
    the new one.
    """
    name = segment.newest.name
    current = store.head(name)
    if current is None or (current.name, current.size, current.etag) != (name, *segment.identity):
        reason = "another file stands there now: the table was made again, or this version was cleaned up."
        raise CorruptLog(table=store.url, file=name, reason=reason)


def _advance_state(state: State, head: Head, written: int) -> State:
    domains = {**state.domains, **{d.domain: d for d in head.domains}}
    return State(
        protocol=head.protocol or state.protocol,
        metadata=head.metadata or state.metadata,
        app_transactions={**state.app_transactions, **{t.app_id: t for t in head.app_transactions}},
        domains=_live(domains),
        timestamp=int(head.info.get("inCommitTimestamp") or written),
        own_txn_id=own_txn_id(head),
    )


def _own_timestamp(store: Store, segment: Segment, metadata: Metadata) -> int:
    """The commit time of a version read from its checkpoint, which does not state it."""
    in_commit = metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"
    if not in_commit or commit_version(segment.newest.name) is None:
        return segment.timestamp
    info = parse_head(store.url, read_commit(store, segment.newest)).info
    return int(info.get("inCommitTimestamp") or segment.timestamp)


def _live(domains: Mapping[str, DomainMetadata]) -> Mapping[str, DomainMetadata]:
    return {name: domain for name, domain in domains.items() if not domain.removed}


def _advance_segment(segment: Segment, entries: Sequence[Entry], checkpoint: CheckpointFiles | None) -> Segment:
    """The segment of the newest version, starting at the newer checkpoint if there is one."""
    newest = commit_version(entries[-1].name)
    assert newest is not None
    commits = (*segment.commits, *entries)
    if checkpoint is None:
        return Segment(newest, segment.checkpoint, commits, entries[-1], segment.compacted)
    later = tuple(e for e in commits if (commit_version(e.name) or 0) > checkpoint.version)
    return Segment(newest, checkpoint, later, entries[-1])
