"""What a store needs of a file system of Hadoop, and what a NameNode's answers mean.

Knows Java's names for refusals and the words around them; sends nothing. Guarantee: a request is *refused* only where
the NameNode has answered so; whatever else goes wrong leaves it *unanswered*, and it may yet be carried out.
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
_NOT_NOW = frozenset({"RetriableException", "StandbyException", "ObserverRetryOnActiveException"})
_DENIED = re.compile(r"AccessControlException|SecurityException|Permission denied", re.IGNORECASE)
_FULL = re.compile(r"QuotaExceededException|could only be written to 0 of")

PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, *[2.0] * 9)
"""How long to wait before a request is sent once more, and so how often that is done; each is varied by chance."""
_PATIENCE_S = 60
"""Nothing is sent once more after so long."""


class Refused(Exception):
    """The NameNode has answered, and done nothing.

    Attributes:
        kind: Java's name for the refusal, without its package.
        sentence: what the NameNode says of it.
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(kind, sentence)
        self.kind, self.sentence = kind, sentence

    @property
    def is_absence(self) -> bool:
        """Whether there is nothing of the name; a path in its sentence says nothing."""
        is_below_file = self.kind == "AccessControlException" and self.sentence.endswith("(is not a directory)")
        return self.kind in _ABSENCES or is_below_file

    @property
    def is_existence(self) -> bool:
        """Whether there is one of the name, which was not to be."""
        return self.kind in _EXISTS

    @property
    def passes(self) -> bool:
        """Whether the NameNode asks for the same request a little later."""
        return self.kind in _NOT_NOW


class Unanswered(Exception):
    """Nobody can say whether a request was carried out, or will be.

    Attributes:
        reason: in the client's words.
        passes: whether the next one may well be answered.
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
    """A client; each call raises `Refused` or `Unanswered`. Threads share it."""

    def status(self, path: str) -> Status:
        """What is known of a path."""

    def inside(self, path: str) -> list[Status]:
        """What is in a folder; of a file, itself."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As ``Store.read_range``."""

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Create a file that is not there, and the folders above it; on return it is on the disks of its DataNodes.

        What the chunks raise is raised as it is. After any exception nothing is left, as far as that can be done.
        """

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """Rename a file; where a file is at ``path``, refuse that, or replace it, as one step in either case."""

    def delete(self, path: str) -> bool:
        """Remove a file or an empty folder; whether it went. False says nothing about an earlier request."""


def retry(ask: Callable[[], _T], pauses_s: Iterable[float] = PAUSES_S) -> _T:
    """What a request gives that may be sent again without harm, as often as what hinders it may pass.

    Raises:
        Refused: the NameNode refuses it for good, or still.
        Unanswered: and it has not been answered since.
    """
    until = time.monotonic() + _PATIENCE_S
    for pause_s in pauses_s:
        try:
            return ask()
        except (Refused, Unanswered) as error:
            if not error.passes or time.monotonic() > until:
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
