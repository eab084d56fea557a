"""The contract of every store.

A *name* is ``/``-separated and relative to the root: no empty part, no ``.`` or ``..``, no leading slash. Names are
decoded: they may hold spaces, ``%``, ``#``, ``?``, ``=`` and any letter, and mean exactly those characters; a name that
the service would take for another one is refused (on Azure, any with a backslash). Names come out of table logs, which
may be hostile, so each call refuses a name that would leave the root (``StoreError``).

A *folder* is the part of a name before its last ``/``. Folders are not created and never listed; an absent one is
empty.

Every call may raise ``StoreError``: ``StorePermissionDenied``, ``StoreFull``, or the plain class for the rest. From the
two puts a ``StoreError`` other than ``PutOutcomeUnknown`` means that *this call* changed nothing. It says nothing about
earlier calls: after an unknown outcome only a return or ``AlreadyExists`` decides. Any other exception (a
``KeyboardInterrupt``, say) leaves the outcome of a put unknown as well.

Stores hold no state of their own, so threads and processes share them freely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from anabranch.errors import StoreError


class Entry(NamedTuple):
    """One stored name.

    Attributes:
        name: relative to the store's root.
        size: in bytes.
        modified_ms: last write, milliseconds since 1970-01-01 UTC, by the store's clock.
        etag: changes whenever the bytes are replaced; every call spells it alike; None where the store has none.
            Compare it for equality only.
    """

    name: str
    size: int
    modified_ms: int
    etag: str | None


class Store(Protocol):
    """Names and bytes under one root.

    Example:
        >>> store = open_store("memory://readme")
        >>> store.put_if_absent("_delta_log/00000000000000000000.json", b"{}")
        >>> [entry.name for entry in store.list_from("_delta_log/")]
        ['_delta_log/00000000000000000000.json']
    """

    @property
    def url(self) -> str:
        """The root's canonical URL, without a trailing slash and not percent-encoded; ``open_store`` takes it back."""

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """All bytes of a name, from one single put. Raises NotFound: there is no such name, or its bytes are not those
        that had ``etag``, where one is given.
        """

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """``get(name)[start:][:length]``, without reading the rest; a negative ``start`` counts from the end, and fewer
        bytes come where the name holds fewer.

        Raises:
            NotFound: there is no such name.
            ValueError: a negative length.
        """

    def head(self, name: str) -> Entry | None:
        """The entry of a name, or None where there is none."""

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Create a name unless it exists. This is the commit.

        On return the bytes are durable, and every later read, by anyone, sees all of them. Of any number of racing
        calls for one absent name exactly one returns; a name is never visible with a part of its bytes. PROTOCOL.md,
        section "Delta Log Entries": writers never overwrite an existing log entry.

        Raises:
            AlreadyExists: the name has bytes; this call changed nothing. They may be the caller's own, from an earlier
                call whose outcome stayed unknown.
            PutOutcomeUnknown: the store did not answer; the bytes may be there, may come later, or may never come. Put
                the same bytes again.
            StoreError: a definite failure (permission, no space, no such bucket): nothing happened and nothing will.
        """

    def put(self, name: str, data: bytes) -> None:
        """Create or replace a name, atomically and durably: a reader sees the old bytes or the new, never a mixture.

        Of racing calls any may be last, so use it for hints and for names that nobody else writes. PROTOCOL.md, section
        "Last Checkpoint File".

        Raises:
            PutOutcomeUnknown: the store did not answer, or the bytes are there and may not be durable.
        """

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """As ``put``, for bytes in chunks, few of which are in memory at a time.

        An exception from the chunks is raised, and the name keeps what it had.

        Raises:
            PutOutcomeUnknown: as ``put``.
        """

    def put_hint(self, name: str, data: bytes) -> None:
        """Create a name unless it exists, in the cheapest way: atomically, but perhaps not durably.

        No reader sees a part of the bytes while the machine runs; after a power cut the name may be missing, or hold
        less. For files that nothing depends on (PROTOCOL.md, section "Version Checksum File").

        Raises:
            AlreadyExists: the name has bytes; this call changed nothing.
            PutOutcomeUnknown: the store did not answer.
        """

    def list_from(self, start: str) -> list[Entry]:
        """The entries in the folder of ``start``, without subfolders, whose name is ``start`` or later.

        Sorted by name, by code point. Sees every name whose put returned before this call began. ``"folder/"`` lists a
        whole folder, ``""`` the root. The cost grows with what is returned, not with what the folder holds before
        ``start`` (except on Azure and at the root of a bucket, where names are skipped only after they arrive).
        """

    def list_all(self, prefix: str = "") -> list[Entry]:
        """Every entry below the folder ``prefix``, at any depth, sorted by name; by default the whole store."""

    def delete(self, name: str) -> None:
        """Remove a name, if it exists."""

    def sync(self, names: Iterable[str]) -> None:
        """Make durable what other writers (Spark's executors) have put under these names.

        After the return they survive a power cut. Object stores do nothing.

        Raises:
            NotFound: a local file is not there.
        """


def check_name(name: str, root: str) -> str:
    """``name``, unless it leaves the root. Raises StoreError: it is empty or absolute, or has an empty part, ``.``,
    ``..`` or a NUL.
    """
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise StoreError(name=repr(name), root=root, reason="this is no name below the root.")
    return name


def check_folder(folder: str, root: str) -> str:
    """``folder``, with ``""`` for the root itself and no trailing slash. Raises StoreError: it leaves the root."""
    return check_name(folder.removesuffix("/"), root) if folder else ""
