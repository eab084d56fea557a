"""Checks that checkpoints and log compaction files agree with the commits that they replace.

Knows the whole log up to a version. Guarantee: every checkpoint and compaction is compared with the commits, as far
back as these exist, or else with the oldest checkpoint before it: file by file, with sizes, vectors and partition
values, where a checksum file only has sums; and by protocol, metadata, domains and transactions. Reads each file once.
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
        for parsed in (parse_head(table, raw) for raw in raws):
            head = CheckpointHead(
                protocol=parsed.protocol or head.protocol,
                metadata=parsed.metadata or head.metadata,
                app_transactions={**head.app_transactions, **{t.app_id: t for t in parsed.app_transactions}},
                domains={**head.domains, **{d.domain: d for d in parsed.domains}},
            )
        keys = head.metadata.partition_keys if head.metadata else ()
        files, _ = apply_actions(self.files, *parse_files(table, raws, keys))
        return _State(raws[-1].version, head, files)


class _Replacement(NamedTuple):
    """A checkpoint (``is_whole``) or a log compaction file, and a function that reads its state."""

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
        ranges = [(*bounds, entry) for entry in listing if (bounds := compacted_range(entry.name)) is not None]
        return cls(
            snapshot.store,
            commits,
            [c for c in checkpoints_in(listing) if c.version <= last],
            [r for r in ranges if r[0] <= r[1] <= last],
        )

    def stops(self) -> list[int]:
        """The versions whose state is needed, in order."""
        ends = {end for first, last, _ in self.compactions for end in (first - 1, last)}
        return sorted({*ends, *(checkpoint.version for checkpoint in self.checkpoints)} - {-1})

    def by_commits(self, before: _State | None, version: int) -> _State | None:
        """The state of a version from the commits after an older one; None unless all of them are there."""
        entries = [self.commits.get(v) for v in range(before.version + 1, version + 1)] if before else [None]
        present = [entry for entry in entries if entry is not None]
        if before is None or len(present) < len(entries):
            return None
        return before.advance_by(self.store.url, [read_commit(self.store, entry) for entry in present])

    def replacements_of(self, version: int, states: Mapping[int, _State]) -> Iterator[_Replacement]:
        """The checkpoints of a version, and the compactions that end with it and begin after a version in ``known``."""
        for checkpoint in self.checkpoints:
            if checkpoint.version == version:
                yield _Replacement(checkpoint.name, True, partial(self._checkpoint, checkpoint))
        for first, last, entry in self.compactions:
            if last == version and first - 1 in states:
                yield _Replacement(entry.name, False, partial(self._advance_by_compacted, states[first - 1], entry))

    def _checkpoint(self, files: CheckpointFiles) -> _State:
        checkpoint = Checkpoint(self.store, files)
        return _State(files.version, checkpoint.head(), checkpoint.files())

    def _advance_by_compacted(self, before: _State, entry: Entry) -> _State:
        return before.advance_by(self.store.url, [read_commit(self.store, entry)])


def disagreements(snapshot: Snapshot) -> Iterator[Disagreement]:
    """The faults of checkpoints and log compaction files up to the version of a snapshot, and of their commits. Raises
    StoreError: the log cannot be read.
    """
    log = _Listing.of(snapshot)
    state: _State | None = _State()
    states = {-1: _State()}
    for stop in log.stops():
        try:
            state = log.by_commits(state, stop)
        except _NOT_WHOLE as error:
            state = None
            yield from _unreadable(log.store, error, error.facts.get("file", commit_name(stop)))
        for replacement in log.replacements_of(stop, states):
            try:
                stated = replacement.read()
            except _NOT_WHOLE as error:
                yield from _unreadable(log.store, error, replacement.name)
                continue
            yield from _differences(replacement.name, stated, state)
            state = stated if state is None and replacement.is_whole else state
        states.update({stop: state} if state is not None else {})


def _unreadable(store: Store, error: AnabranchError, name: str) -> Iterator[Disagreement]:
    """A file that cannot be read, unless a clean-up removed it meanwhile."""
    if store.head(name) is not None:
        yield Disagreement(error.facts.get("file", name), error.facts.get("reason", error.message))


def _differences(name: str, claimed: _State, true: _State | None) -> Iterator[Disagreement]:
    if true is None:
        return
    rest = "; the commits say otherwise"
    for kind in _different_parts(claimed.head, true.head):
        yield Disagreement(name, f"it states other {kind}{rest}")
    if _are_equal(claimed.files, true.files):
        return
    facts, true_facts = _facts_by_file(claimed, true.partition_keys), _facts_by_file(true, true.partition_keys)
    extra, missing = sorted(set(facts) - set(true_facts)), sorted(set(true_facts) - set(facts))
    different = sorted(key for key in set(facts) & set(true_facts) if facts[key] != true_facts[key])
    for paths, problem in (
        (extra, "it has {} live files that the commits do not have"),
        (missing, "it lacks {} live files that the commits have"),
        (different, "it states another size or other partition values of {} files than the commits"),
    ):
        if paths:
            yield Disagreement(name, f"{problem.format(len(paths))}, as {paths[0].partition(chr(0))[0]}")


def _are_equal(files: pa.Table, true: pa.Table) -> bool:
    """Whether two tables of files are equal, without an object per file."""
    if not same_files(files, true):
        return False
    values, other_values = (
        table["partitionValues"].combine_chunks().take(pc.sort_indices(keys(table))) for table in (files, true)
    )
    return values.equals(other_values)


def _facts_by_file(state: _State, partition_keys: Sequence[str]) -> dict[str, Any]:
    """Size and partition values of each live file, by path and vector."""
    columns = state.files.select(["size", "partitionValues"]).to_pylist()
    facts: dict[str, Any] = {}
    for key, row in zip(keys(state.files).to_pylist(), columns, strict=True):
        values = dict(row["partitionValues"] or ())
        facts[key] = row["size"], *(values.get(name) or None for name in partition_keys)
    return facts


def _different_parts(stated: CheckpointHead, true: CheckpointHead) -> list[str]:
    """The parts of two heads that differ; old application transactions may be missing."""
    apps = {name: app.version for name, app in stated.app_transactions.items()}
    true_apps = {name: app.version for name, app in true.app_transactions.items() if name in apps}
    different = {
        "protocol": stated.protocol != true.protocol,
        "metadata": (stated.metadata and row_metadata(stated.metadata))
        != (true.metadata and row_metadata(true.metadata)),
        "application transactions": apps != true_apps,
        "domains": _live(stated) != _live(true),
    }
    return [kind for kind, differs in different.items() if differs]


def _live(head: CheckpointHead) -> dict[str, Any]:
    return {name: domain for name, domain in head.domains.items() if not domain.removed}
