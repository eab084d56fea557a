"""The interface of a Hadoop file system, and the meaning of a NameNode's answers.

Knows Java's names for refusals and the words around them; sends nothing. Guarantee: a request is *refused* only where
the NameNode has answered so; any other failure leaves it *unanswered*, and it may yet be carried out.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from anabranch.errors import StoreError, StoreFull, StorePermissionDenied

_T = TypeVar("_T")

_ABSENCES = frozenset({"FileNotFoundException", "ParentNotDirectoryException"})
_EXISTS = frozenset({"FileAlreadyExistsException", "AlreadyBeingCreatedException"})
_RETRIABLE = frozenset({"RetriableException", "StandbyException", "ObserverRetryOnActiveException"})
_DENIED = re.compile(r"AccessControlException|SecurityException|Permission denied", re.IGNORECASE)
_FULL = re.compile(r"QuotaExceededException|could only be written to 0 of")

PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 9)
"""Pauses before the retries of a request, and so their number; each is varied at random."""
_RETRY_S = 60
"""Time after which nothing is retried, in seconds."""


class Refused(Exception):
    """The NameNode has refused a request and changed nothing.

    Attributes:
        kind: Java's name for the refusal, without its package.
        sentence: the NameNode's message.
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(kind, sentence)
        self.kind, self.sentence = kind, sentence

    @property
    def is_absence(self) -> bool:
        """Whether the name does not exist; a path in the sentence has no meaning."""
        is_below_file = self.kind == "AccessControlException" and self.sentence.endswith("(is not a directory)")
        return self.kind in _ABSENCES or is_below_file

    @property
    def is_existence(self) -> bool:
        """Whether the name exists, though it must not."""
        return self.kind in _EXISTS

    @property
    def passes(self) -> bool:
        """Whether the NameNode requests a retry a little later."""
        return self.kind in _RETRIABLE


class Unanswered(Exception):
    """It is unknown whether a request was carried out, or will be.

    Attributes:
        reason: in the client's words.
        passes: whether a retry may well be answered.
    """

    def __init__(self, reason: str, *, passes: bool) -> None:
        super().__init__(reason)
        self.reason, self.passes = reason, passes


class Status(NamedTuple):
    """One file or folder; ``path`` is absolute."""

    path: str
    length: int
    modified_ms: int
    is_folder: bool


class FileSystem(Protocol):
    """A client that threads share; each call raises `Refused` or `Unanswered`."""

    def status(self, path: str) -> Status:
        """The status of a path."""

    def inside(self, path: str) -> list[Status]:
        """The statuses of a folder's entries; of a file, its own."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As ``Store.read_range``."""

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Create a new file, and the folders above it; on return it is on the disks of its DataNodes.

        Exceptions of the chunks pass through. After any exception the file is removed, as far as possible.
        """

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """Rename a file; refuse an existing ``path``, or replace its file, atomically in either case."""

    def delete(self, path: str) -> bool:
        """Remove a file or an empty folder; True if this request did. False does not rule out an earlier request."""


def retry(ask: Callable[[], _T], pauses_s: Iterable[float] = PAUSES_S) -> _T:
    """The result of a request that is safe to repeat; it is retried while the obstacle may pass.

    Raises:
        Refused: the NameNode refuses it for good, or still.
        Unanswered: the last attempt was not answered.
    """
    deadline = time.monotonic() + _RETRY_S
    for pause_s in pauses_s:
        try:
            return ask()
        except (Refused, Unanswered) as error:
            if not error.passes or time.monotonic() > deadline:
                raise
        time.sleep(pause_s * random.uniform(0.5, 1.5))
    return ask()


def to_store_error(name: str, root: str, error: Refused | Unanswered) -> StoreError:
    """The error of a failed request that has changed nothing."""
    text = reason(error)
    if _DENIED.search(text):
        return StorePermissionDenied(name=name, root=root, reason=f"{text} Check the folder's owner.")
    kind = StoreFull if _FULL.search(text) else StoreError
    return kind(name=name, root=root, reason=text)


def reason(error: Refused | Unanswered) -> str:
    """A sentence for a message."""
    text = error.reason if isinstance(error, Unanswered) else f"{error.kind}: {error.sentence}"
    return text if text.endswith(".") else f"{text}."
