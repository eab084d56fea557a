"""Committers: who decides whether a version is won, and where commits are that the folder does not have.

Knows names in the log folder, and nothing of a commit's content. The contract has four parts: propose a version, list
the tail, read a commit, publish one. `FolderCommitter` is the log's folder itself, where a put-if-absent decides; its
commits are published at once. `PrivateCommitter` keeps the commits of one transaction for that transaction alone. The
rest of the log reads a *view* of the table's store (`view_through`), in which the committer's tail looks like files of
the folder: so a catalog that ratifies commits is one more committer, and nothing else.

Guarantee: through a view, every version up to the newest has exactly one commit, whoever holds its bytes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

from anabranch._log.file_names import (
    FOLDER,
    LAST_CHECKPOINT,
    checkpoint_version,
    checksum_version,
    commit_name,
    commit_version,
    compacted_range,
    first_name,
)
from anabranch._storage.contract import Entry, Store
from anabranch.errors import AlreadyExists, NotFound
from anabranch.errors.process_state import memo


class Committer(Protocol):
    """Decides whether a version is won; the contract's tests are `tests/log/test_committers.py`."""

    def propose(self, version: int, data: bytes) -> None:
        """Commit ``data`` as this version, durably as far as the committer promises; of racing proposals one returns.

        Raises:
            AlreadyExists: the version is taken, perhaps by an earlier call of ours whose outcome was unknown.
            PutOutcomeUnknown: nobody answered; propose the same bytes again.
            StoreError: it was refused, and nothing was committed.
        """
        ...

    def tail(self, after: int) -> Sequence[Entry]:
        """The commits of later versions, oldest first, as if they lay in the folder."""
        ...

    def read(self, version: int) -> bytes:
        """The bytes of a commit. Raises NotFound: there is no such version."""
        ...

    def publish(self, version: int) -> None:
        """Let readers that do not know the committer find a version that was won, if they are to find it."""
        ...


class FolderCommitter:
    """The log's folder: the first to create a version's file has won it (PROTOCOL.md, "Delta Log Entries")."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def propose(self, version: int, data: bytes) -> None:
        """See `Committer.propose`."""
        self._store.put_if_absent(commit_name(version), data)

    def tail(self, after: int) -> Sequence[Entry]:
        """See `Committer.tail`."""
        listing = self._store.list_from(first_name(after + 1))
        return [entry for entry in listing if commit_version(entry.name) is not None]

    def read(self, version: int) -> bytes:
        """See `Committer.read`."""
        return self._store.get(commit_name(version))

    def publish(self, version: int) -> None:
        """Nothing to do: what is committed is in the folder."""


class PrivateCommitter:
    """The commits of one transaction, in memory, after the version ``base`` of the folder; later ones are hidden.

    Attributes:
        base: the newest version of the folder that is visible.
        base_entry: the file that has it, a commit or a checkpoint.
        newest_snapshot: the newest snapshot that was read through it.
        unsynced: data files that need not be durable before their transaction is committed.
    """

    def __init__(self, base: int, base_entry: Entry, id_: str, now_ms: Callable[[], int]) -> None:
        self.base, self.base_entry, self.newest_snapshot = base, base_entry, cast(Any, None)
        self.unsynced: list[str] = []
        self._id, self._now_ms, self._puts = id_, now_ms, 0
        self._commits: list[tuple[Entry, bytes]] = []

    @property
    def newest(self) -> int:
        """The newest version."""
        return self.base + len(self._commits)

    def propose(self, version: int, data: bytes) -> None:
        """See `Committer.propose`; only its own transaction proposes, so each next version is won."""
        if version != self.newest + 1:
            raise AlreadyExists(name=commit_name(version), root=self._id)
        self._puts += 1
        entry = Entry(commit_name(version), len(data), self._now_ms(), f"{self._id}-{self._puts}")
        self._commits.append((entry, data))

    def tail(self, after: int) -> Sequence[Entry]:
        """See `Committer.tail`; only what the folder does not have."""
        return [entry for entry, _ in self._commits[max(after - self.base, 0) :]]

    def read(self, version: int) -> bytes:
        """See `Committer.read`."""
        if not self.base < version <= self.newest:
            raise NotFound(name=commit_name(version), root=self._id)
        return self._commits[version - self.base - 1][1]

    def publish(self, version: int) -> None:
        """Nothing to do: its transaction commits all of them as one version of the folder."""

    def withdraw(self, version: int) -> None:
        """Forget the commits of this version and later ones."""
        del self._commits[max(version - self.base - 1, 0) :]
        self.newest_snapshot = None

    def hides(self, name: str) -> bool:
        """Whether a name of the folder belongs to a version that is not visible, or only hints at one."""
        version = _version_of(name)
        return name == LAST_CHECKPOINT or (version is not None and version > self.base)


def _version_of(name: str) -> int | None:
    compacted = compacted_range(name)
    if compacted is not None:
        return compacted[1]
    versions = (commit_version(name), checksum_version(name), checkpoint_version(name))
    return next((version for version in versions if version is not None), None)


class _View:
    """The part of a store that a private committer stands in for; mixed into the store's own class."""

    committer: PrivateCommitter
    folder: Store

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        found = self._find(name)
        if found is None:
            return cast(bytes, super().get(name, etag=etag))  # type: ignore[misc]
        if etag not in (None, found.etag):
            raise NotFound(name=name, root=self.folder.url)
        return self.committer.read(cast(int, commit_version(name)))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        if self._find(name) is None:
            return cast(bytes, super().read_range(name, start, length))  # type: ignore[misc]
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        return self.get(name)[start:][:length]

    def head(self, name: str) -> Entry | None:
        if name.startswith(f"{FOLDER}/") and self.committer.hides(name):
            return self._entry_of(name)
        return cast("Entry | None", super().head(name))  # type: ignore[misc]

    def list_from(self, start: str) -> list[Entry]:
        if not start.startswith(f"{FOLDER}/"):
            return cast("list[Entry]", super().list_from(start))  # type: ignore[misc]
        committer = self.committer
        if start >= first_name(committer.base):  # of the folder only the base is visible there, and it is known
            visible = [committer.base_entry]
        else:
            visible = [entry for entry in super().list_from(start) if not committer.hides(entry.name)]  # type: ignore[misc]
        return sorted(entry for entry in [*visible, *committer.tail(committer.base)] if entry.name >= start)

    def put_if_absent(self, name: str, data: bytes) -> None:
        version = commit_version(name)
        if version is not None:
            self.committer.propose(version, data)
        elif not name.startswith(f"{FOLDER}/"):
            super().put_if_absent(name, data)  # type: ignore[misc]

    def put(self, name: str, data: bytes) -> None:
        if name.startswith(f"{FOLDER}/"):
            return  # hints and checkpoints describe versions that everybody sees
        if name.endswith(".parquet"):
            super().put_hint(name, data)  # type: ignore[misc]
            self.committer.unsynced.append(name)
        else:
            super().put(name, data)  # type: ignore[misc]

    def put_hint(self, name: str, data: bytes) -> None:
        if not name.startswith(f"{FOLDER}/"):
            super().put_hint(name, data)  # type: ignore[misc]

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        if not name.startswith(f"{FOLDER}/"):
            super().put_stream(name, chunks)  # type: ignore[misc]

    def delete(self, name: str) -> None:
        if not name.startswith(f"{FOLDER}/"):
            super().delete(name)  # type: ignore[misc]

    def _find(self, name: str) -> Entry | None:
        """The committer's entry of a name; None where the folder has it. Raises NotFound: it is hidden."""
        if not name.startswith(f"{FOLDER}/") or not self.committer.hides(name):
            return None
        found = self._entry_of(name)
        if found is None:
            raise NotFound(name=name, root=self.folder.url)
        return found

    def _entry_of(self, name: str) -> Entry | None:
        return next((entry for entry in self.committer.tail(self.committer.base) if entry.name == name), None)


@memo("classes of views of stores", 64)
def _view_class(kind: type) -> type:
    return type(f"Private{kind.__name__}", (_View, kind), {})


def view_through(store: Store, committer: PrivateCommitter) -> Store:
    """The store with this committer's log. It is of the store's own class, so that what looks at data files, or at the
    kind of a store, sees no difference.
    """
    view = copy.copy(folder_of(store))
    view.__dict__.update(committer=committer, folder=folder_of(store))
    object.__setattr__(view, "__class__", _view_class(type(folder_of(store))))
    return view


def folder_of(store: Store) -> Store:
    """The store itself, without a committer of its own."""
    return store.folder if isinstance(store, _View) else store


def private_committer(store: Store) -> PrivateCommitter | None:
    """The private committer of a view; None for any other store."""
    return store.committer if isinstance(store, _View) else None


def committer_of(store: Store) -> Committer:
    """Who decides about the versions of a store's log."""
    return private_committer(store) or FolderCommitter(store)
