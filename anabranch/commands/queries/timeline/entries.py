"""The values of a timeline, all frozen: one `Entry` for each version.

Pure. Guarantee: None means that the log does not record it. `anabranch.commands.queries.timeline.texts` cleaned every
text: it holds no credential of a URL, no value of an option with the name of a secret, and is of bounded length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["append", "change", "move", "restore", "metadata", "vacuum", "empty"]
"""What a commit did, by its actions: only added rows; deleted or changed rows; moved rows, as OPTIMIZE does; restored
the table; changed metadata or protocol and no file; only recorded a VACUUM; none of these.
"""


@dataclass(frozen=True)
class Totals:
    """The table after a version; ``rows`` counts live rows and is None if a file has no statistics."""

    files: int
    bytes: int
    rows: int | None
    deleted_rows: int
    small_files: int


@dataclass(frozen=True)
class FileChange:
    """One file of a commit: ``what`` happened to it, and its live rows or, if it was marked, the newly marked ones."""

    what: Literal["added", "removed", "marked"]
    path: str
    bytes: int | None
    rows: int | None


@dataclass(frozen=True)
class CommitDescription:
    """What a commit records about itself (``commitInfo``).

    Attributes:
        base: the version that the transaction read (``readVersion``).
        rebased_over: the winners over which it was rebased (``tags.anabranch.carriedOver``).
        cut: the newest version that it is ordered after (``tags.anabranch.cut``).
        predicate: the condition that it read (``tags.anabranch.reads``).
        row_local: whether that condition is row-local.
        more: the remaining fields, as text.
    """

    operation: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    user: str | None = None
    txn_id: str | None = None
    base: int | None = None
    isolation: str | None = None
    is_blind: bool | None = None
    cut: int | None = None
    rebased_over: tuple[int, ...] | None = None
    predicate: str | None = None
    row_local: bool | None = None
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommitEffect:
    """What a commit did, by its actions. Files in which it only marked rows count neither as added nor as removed.

    Attributes:
        rows_marked: rows that it newly marked as deleted, by the cardinalities of deletion vectors.
        rows_moved: live rows in new files that declare no change of data (``dataChange`` is false).
        files: some of the files, at most `anabranch.commands.queries.timeline.actions.SHOWN_FILES`.
    """

    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int | None = 0
    rows_added: int | None = 0
    rows_removed: int | None = 0
    rows_marked: int = 0
    rows_moved: int | None = 0
    change_files: bool = False
    files: tuple[FileChange, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One version; ``timestamp`` in milliseconds since 1970, ``bytes`` of its commit file.

    Attributes:
        streams: id and version of each application transaction (``txn``) that it contains.
        is_checkpoint: whether the log holds a checkpoint of it.
        totals: the table after it; None if no retained file of the log shows it.
    """

    version: int
    timestamp: int
    kind: Kind
    bytes: int
    said: CommitDescription
    did: CommitEffect
    streams: tuple[tuple[str, int], ...] = ()
    is_checkpoint: bool = False
    totals: Totals | None = None


@dataclass(frozen=True)
class Refusal:
    """A transaction that was refused in this process because of the winner at ``version``."""

    version: int
    base: int
    operation: str
    condition: str
    timestamp: int


@dataclass(frozen=True)
class Advice:
    """A suggestion: ``command`` carries it out, ``sentence`` describes its effect, ``weight`` is its importance."""

    topic: str
    sentence: str
    command: str | None
    weight: Literal["act", "consider", "fine"]


@dataclass(frozen=True)
class TableTimeline:
    """A table's timeline, oldest version first.

    Attributes:
        newest: the newest version; it is the last entry, unless its commit file was cleaned up.
        older: number of older commits in the log that are not in ``entries``.
        small_below: files of fewer bytes count as small.
        refusals: the refused transactions of this process; no log holds any.
    """

    table: str
    newest: int
    entries: tuple[Entry, ...]
    older: int
    small_below: int
    advice: tuple[Advice, ...]
    refusals: tuple[Refusal, ...] = ()
