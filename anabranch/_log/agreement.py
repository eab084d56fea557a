"""Checks that checkpoints and log compaction files agree with the commits that they replace.

Knows the whole log up to a version. Guarantee: every checkpoint and compaction is compared with the commits, as far
back as these exist, or else from the oldest checkpoint that they follow: file by file, with sizes, vectors and
partition values, where a checksum file only has sums; and by protocol, metadata, domains and transactions. Reads each
file once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.checkpoint import Checkpoint, CheckpointHead
from anabranch._log.checkpoint_parts import CheckpointFiles, checkpoints_in
from anabranch._log.checksum import row_metadata
from anabranch._log.checksum_verifier import same_files
from anabranch._log.commit_files import Raw, read_commit
from anabranch._log.commits import parse_files, parse_head
from anabranch._log.file_names import commit_name, commit_version, compacted_range, first_name
from anabranch._log.replay import apply_actions, keys
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import empty_files
from anabranch._storage.contract import Entry, Store
from anabranch.errors import AnabranchError, CorruptLog, InvalidSchema

_NOT_WHOLE = (CorruptLog, InvalidSchema)


@dataclass(frozen=True)
class Disagreement:
    """A ``file`` of the log that cannot be read, or differs from the commits."""

    file: str
    problem: str


@dataclass(frozen=True)
class _State:
    """The state of the table at a version."""

    version: int = -1
    head: CheckpointHead = field(default_factory=lambda: CheckpointHead(None, None, {}, {}))
    files: pa.Table = field(default_factory=empty_files)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        return self.head.metadata.partition_keys if self.head.metadata else ()

    def advance_by(self, table: str, raws: Sequence[Raw]) -> _State:
        """The state after these commits, or after a log compaction file."""
        if not raws:
            return self
        head = self.head
        for said in (parse_head(table, raw) for raw in raws):
            head = CheckpointHead(
                protocol=said.protocol or head.protocol,
                metadata=said.metadata or head.metadata,
                app_transactions={**head.app_transactions, **{t.app_id: t for t in said.app_transactions}},
                domains={**head.domains, **{d.domain: d for d in said.domains}},
            )
        keys = head.metadata.partition_keys if head.metadata else ()
        files, _ = apply_actions(self.files, *parse_files(table, raws, keys))
        return _State(raws[-1].version, head, files)


class _Replacement(NamedTuple):
    """A checkpoint (``is_whole``) or a log compaction file, and how to read the state that it gives."""

    name: str
    is_whole: bool
    read: Callable[[], _State]


@dataclass(frozen=True)
class _Listing:
    """The log up to a version, as listed."""

    store: Store
    commits: Mapping[int, Entry]
    checkpoints: Sequence[CheckpointFiles]
    compactions: Sequence[tuple[int, int, Entry]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Listing:
        listing, last = snapshot.store.list_from(first_name(0)), snapshot.version
        commits = {v: entry for entry in listing if (v := commit_version(entry.name)) is not None}
        ranges = [(*said, entry) for entry in listing if (said := compacted_range(entry.name)) is not None]
        return cls(
            snapshot.store,
            commits,
            [found for found in checkpoints_in(listing) if found.version <= last],
            [each for each in ranges if each[0] <= each[1] <= last],
        )

    def stops(self) -> list[int]:
        """The versions whose state is needed, in order."""
        ends = {end for first, last, _ in self.compactions for end in (first - 1, last)}
        return sorted({*ends, *(found.version for found in self.checkpoints)} - {-1})

    def by_commits(self, before: _State | None, version: int) -> _State | None:
        """The state of a version from the commits after an older one; None unless all of them are there."""
        entries = [self.commits.get(v) for v in range(before.version + 1, version + 1)] if before else [None]
        there = [entry for entry in entries if entry is not None]
        if before is None or len(there) < len(entries):
            return None
        return before.advance_by(self.store.url, [read_commit(self.store, entry) for entry in there])

    def replacements_of(self, version: int, known: Mapping[int, _State]) -> Iterator[_Replacement]:
        """The checkpoints of a version, and the compactions that end with it and begin after a known one."""
        for found in self.checkpoints:
            if found.version == version:
                yield _Replacement(found.name, True, partial(self._checkpoint, found))
        for first, last, entry in self.compactions:
            if last == version and first - 1 in known:
                yield _Replacement(entry.name, False, partial(self._advance_by_compacted, known[first - 1], entry))

    def _checkpoint(self, found: CheckpointFiles) -> _State:
        checkpoint = Checkpoint(self.store, found)
        return _State(found.version, checkpoint.head(), checkpoint.files())

    def _advance_by_compacted(self, before: _State, entry: Entry) -> _State:
        return before.advance_by(self.store.url, [read_commit(self.store, entry)])


def disagreements(snapshot: Snapshot) -> Iterator[Disagreement]:
    """The faults of checkpoints and log compaction files up to the version of a snapshot, and of their commits. Raises
    StoreError: the log cannot be read.
    """
    names = _Listing.of(snapshot)
    here: _State | None = _State()
    known = {-1: _State()}
    for stop in names.stops():
        try:
            here = names.by_commits(here, stop)
        except _NOT_WHOLE as error:
            here = None
            yield from _unreadable(names.store, error, error.facts.get("file", commit_name(stop)))
        for replacement in names.replacements_of(stop, known):
            try:
                said = replacement.read()
            except _NOT_WHOLE as error:
                yield from _unreadable(names.store, error, replacement.name)
                continue
            yield from _differences(replacement.name, said, here)
            here = said if here is None and replacement.is_whole else here
        known.update({stop: here} if here is not None else {})


def _unreadable(store: Store, error: AnabranchError, name: str) -> Iterator[Disagreement]:
    """A file that cannot be read, unless a clean-up removed it meanwhile."""
    if store.head(name) is not None:
        yield Disagreement(error.facts.get("file", name), error.facts.get("reason", error.message))


def _differences(name: str, said: _State, true: _State | None) -> Iterator[Disagreement]:
    if true is None:
        return
    rest = "; the commits say otherwise"
    for kind in _heads_differ(said.head, true.head):
        yield Disagreement(name, f"it states other {kind}{rest}")
    if _is_same(said.files, true.files):
        return
    stated, held = _facts_by_file(said, true.partition_keys), _facts_by_file(true, true.partition_keys)
    more, less = sorted(set(stated) - set(held)), sorted(set(held) - set(stated))
    others = sorted(key for key in set(stated) & set(held) if stated[key] != held[key])
    for paths, problem in (
        (more, "it has {} live files that the commits do not have"),
        (less, "it lacks {} live files that the commits have"),
        (others, "it states another size or other partition values of {} files than the commits"),
    ):
        if paths:
            yield Disagreement(name, f"{problem.format(len(paths))}, as {paths[0].partition(chr(0))[0]}")


def _is_same(files: pa.Table, others: pa.Table) -> bool:
    """Whether they are exactly the same, without an object per file."""
    if not same_files(files, others):
        return False
    values, other_values = (
        each["partitionValues"].combine_chunks().take(pc.sort_indices(keys(each))) for each in (files, others)
    )
    return values.equals(other_values)


def _facts_by_file(state: _State, partition_keys: Sequence[str]) -> dict[str, Any]:
    """What is stated of each live file, by path and vector."""
    columns = state.files.select(["size", "partitionValues"]).to_pylist()
    found: dict[str, Any] = {}
    for key, row in zip(keys(state.files).to_pylist(), columns, strict=True):
        values = dict(row["partitionValues"] or ())
        found[key] = row["size"], *(values.get(name) or None for name in partition_keys)
    return found


def _heads_differ(said: CheckpointHead, true: CheckpointHead) -> list[str]:
    """How they differ apart from files; old application transactions may be missing."""
    apps = {name: each.version for name, each in said.app_transactions.items()}
    kept = {name: each.version for name, each in true.app_transactions.items() if name in apps}
    different = {
        "protocol": said.protocol != true.protocol,
        "metadata": (said.metadata and row_metadata(said.metadata)) != (true.metadata and row_metadata(true.metadata)),
        "application transactions": apps != kept,
        "domains": _live(said) != _live(true),
    }
    return [kind for kind, differs in different.items() if differs]


def _live(head: CheckpointHead) -> dict[str, Any]:
    return {name: each for name, each in head.domains.items() if not each.removed}
