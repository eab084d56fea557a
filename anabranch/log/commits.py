"""Parses commit files: the changes of one version.

Knows the lines of a commit file (PROTOCOL.md, section "Delta Log Entries"). Guarantee: a commit file that is empty,
truncated or not JSON is refused by name and never taken for an empty version.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import CorruptLog, InvalidSchema
from anabranch.errors.rows import cause, detail
from anabranch.log.columnar import file_actions
from anabranch.log.file_lines import FileLines, pieces, separated
from anabranch.log.file_names import commit_name
from anabranch.log.lazy import lazy
from anabranch.log.size_limits import enough_memory
from anabranch.protocol.actions import AppTransaction, DomainMetadata, Metadata, NotWhole, Protocol, optional_number_in

_OF_FILES = re.compile(rb'"(?:add|remove|metaData)"|\\u')
"""In a line that may be a file action, or the metadata by which such are read."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""A lone surrogate, as JSON escapes it."""
_FEED = "cdc"
_FEED_LINE = b'{"cdc":'
_OF_CHECKPOINTS = ("checkpointMetadata", "sidecar")


@dataclass(frozen=True)
class Raw:
    """A commit file as found in the store; ``identity`` (size, etag) distinguishes it from another one of the same
    name.

    ``name`` is set for other files of such lines: a log compaction, or a checkpoint in JSON.
    """

    version: int
    data: bytes
    timestamp: int = 0
    identity: tuple[int, str | None] = (0, None)
    name: str | None = None

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.name or commit_name(self.version)


@dataclass(frozen=True)
class Head:
    """A commit apart from files: every other action, parsed; ``kinds`` are their names, ``others`` the actions that
    only a checkpoint in JSON may have.
    """

    info: Mapping[str, Any] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    app_transactions: tuple[AppTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    kinds: frozenset[str] = frozenset()
    others: Mapping[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Commit:
    """One version. Its file actions are parsed on first use: many winners are judged by their head alone."""

    table: str
    raw: Raw
    head: Head
    lines: FileLines
    columns: frozenset[str]

    @property
    def version(self) -> int:
        """The version that this commit made."""
        return self.raw.version

    @property
    def timestamp(self) -> int:
        """The time of the commit, in milliseconds since 1970."""
        return int(self.head.info.get("inCommitTimestamp") or self.raw.timestamp)

    @property
    def identity(self) -> tuple[int, str | None]:
        """Size and etag of its file."""
        return self.raw.identity

    @property
    def txn_id(self) -> str | None:
        """The id by which a writer recognises its own commit."""
        return self.head.info.get("txnId")

    @property
    def has_change_feed(self) -> bool:
        """Whether it wrote change data files."""
        data = self.raw.data
        return _FEED in self.head.kinds or data.startswith(_FEED_LINE) or b"\n" + _FEED_LINE in data

    @property
    def adds(self) -> pa.Table:
        """Its ``add`` actions (`anabranch.protocol.actions.ADDS`)."""
        return self._file_actions[0]

    @property
    def removes(self) -> pa.Table:
        """Its ``remove`` actions (`anabranch.protocol.actions.DROPS`)."""
        return self._file_actions[1]

    @lazy
    def _file_actions(self) -> tuple[pa.Table, pa.Table]:
        adds, removes = _file_actions(self.table, [self.raw], [self.lines], self.columns)
        return adds.drop_columns(["line"]), removes.drop_columns(["line"])


def parse_head(table: str, raw: Raw) -> Head:
    """All actions but files. For a pure append this is enough of each winner. Raises CorruptLog: the file is empty, or
    a line is not an action.
    """
    return _split(table, raw)[0]


def parse_commit(table: str, raw: Raw, partition_keys: Collection[str]) -> Commit:
    """A whole commit; ``partition_keys`` are those of the table before it, to which its own ``metaData`` adds. Raises
    CorruptLog: the file is empty, or a line is not an action.
    """
    head, lines = _split(table, raw)
    columns = frozenset(partition_keys) | frozenset(head.metadata.partition_keys if head.metadata else ())
    return Commit(table, raw, head, lines, columns)


def parse_files(table: str, raws: list[Raw], partition_keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """The file actions of many commits at once, oldest first; ``line`` is the place in the whole sequence.

    Partition values are those of the last partitioning: a commit that changes it replaces every file. Other actions are
    not parsed again: whoever needs files has read the heads.
    """
    found, columns = [], partition_keys
    for raw in raws:
        head, lines = _split(table, raw, only=_OF_FILES)
        found.append(lines)
        columns = head.metadata.partition_keys if head.metadata else columns
    return _file_actions(table, raws, found, columns)


def _file_actions(
    table: str, raws: list[Raw], files: Sequence[FileLines], columns: Collection[str]
) -> tuple[pa.Table, pa.Table]:
    largest = max(raws, key=lambda raw: len(raw.data)).file if raws else ""
    with enough_memory(table, largest):
        try:
            parsed = list(_parsed(files, columns))
        except MemoryError:  # Arrow's is an exception of Arrow's, too
            raise
        except (ValueError, pa.ArrowException) as error:
            raise _refusal(table, raws, columns, detail(error, str)) from cause(error)
        if len(parsed) == 1:
            return parsed[0]
        return pa.concat_tables(adds for adds, _ in parsed), pa.concat_tables(removes for _, removes in parsed)


def _parsed(files: Sequence[FileLines], columns: Collection[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The actions of each piece, in order; several threads parse, and no more pieces are cut out than they take."""

    def parsed(piece: tuple[int, bytes]) -> tuple[pa.Table, pa.Table]:
        start, lines = piece
        return _placed(file_actions(lines, columns), start)

    first, *second = islice(found := pieces(files), 2)
    if not second:
        yield parsed(first)
        return
    workers, waiting = os.cpu_count() or 1, deque[Future[tuple[pa.Table, pa.Table]]]()
    with ThreadPoolExecutor(workers, thread_name_prefix="anabranch-parse") as pool:
        for piece in chain((first, *second), found):
            waiting.append(pool.submit(parsed, piece))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        yield from (each.result() for each in waiting)


def _placed(actions: tuple[pa.Table, pa.Table], start: int) -> tuple[pa.Table, pa.Table]:
    """The same with larger line numbers: advanced by the number of bytes before, since a line has at least one."""
    adds, removes = (_further(each, start) if start else each for each in actions)
    return adds, removes


def _further(actions: pa.Table, start: int) -> pa.Table:
    index = actions.column_names.index("line")
    return actions.set_column(index, "line", pc.add(actions["line"], start))


def _split(table: str, raw: Raw, only: re.Pattern[bytes] | None = None) -> tuple[Head, FileLines]:
    """The parsed head, and the file lines; of lines that do not begin as a file action, ``only`` those."""
    with enough_memory(table, raw.file):
        lines, others = separated(raw.data)
        if not lines.runs and not any(text.strip() for text in others):
            raise CorruptLog(table=table, file=raw.file, reason="the file is empty.")
        head, odd = _parse_lines(table, raw, others if only is None else filter(only.search, others))
        _check_end(table, raw)
        return head, replace(lines, odd=odd)


def _parse_lines(table: str, raw: Raw, lines: Iterable[bytes]) -> tuple[Head, tuple[bytes, ...]]:
    """The head, and the file actions among these lines. There may be a million lines, so no more of each is kept."""
    by_kind: dict[str, list[Any]] = {}
    odd = []
    with _whole(table, raw):
        for text in lines:
            if not text.strip() or text.startswith(_FEED_LINE):
                continue
            action = _parse_line(table, raw, text)
            if "add" in action or "remove" in action:
                odd.append(json.dumps(action, separators=(",", ":")).encode())
            for kind, body in action.items():
                by_kind.setdefault(kind, []).append(_VALUES[kind](body) if kind in _VALUES else body)
        return _head(by_kind), tuple(odd)


def _check_end(table: str, raw: Raw) -> None:
    """Raises unless the last line is whole, also where file actions are not parsed: a truncated file ends in part of a
    line.
    """
    end = len(raw.data)
    while end and raw.data[end - 1] in b" \t\r\n":
        end -= 1
    start = raw.data.rfind(b"\n", 0, end) + 1
    if start < end:
        _parse_line(table, raw, raw.data[start:end])


def _parse_line(table: str, raw: Raw, text: bytes) -> dict[str, Any]:
    try:
        action = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(table=table, file=raw.file, reason=f"a line is cut off or not JSON ({error}).") from None
    if not isinstance(action, dict):
        raise CorruptLog(table=table, file=raw.file, reason="a line is not an action.")
    return _without_surrogates(table, raw, action) if _SURROGATE.search(text) else action


def _without_surrogates(table: str, raw: Raw, action: dict[str, Any]) -> dict[str, Any]:
    """The action, unless its texts hold a lone surrogate, which cannot be written again. In ``commitInfo`` a surrogate
    becomes a question mark, since no reader depends on that.
    """
    try:
        json.dumps(action, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        if action.keys() == {"commitInfo"}:
            return json.loads(json.dumps(action, ensure_ascii=False).encode(errors="replace"))
        reason = "a line holds half of a character, a lone surrogate."
        raise CorruptLog(table=table, file=raw.file, reason=reason) from error
    return action


def _head(by_kind: Mapping[str, list[Any]]) -> Head:
    return Head(
        info=next(iter(by_kind.get("commitInfo", ())), {}),
        protocol=_only(by_kind, "protocol"),
        metadata=_only(by_kind, "metaData"),
        app_transactions=tuple(by_kind.get("txn", ())),
        domains=tuple(by_kind.get("domainMetadata", ())),
        kinds=frozenset(by_kind),
        others={kind: by_kind[kind] for kind in _OF_CHECKPOINTS if kind in by_kind},
    )


@contextmanager
def _whole(table: str, raw: Raw) -> Iterator[None]:
    """Converts the errors of malformed actions within the block into one with the name of the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InvalidSchema) as error:
        reason = f"an action is not whole ({_why(error)})."
        raise CorruptLog(table=table, file=raw.file, reason=reason) from cause(error)


def _why(error: Exception) -> str:
    """What is wrong with an action: our own sentence on a field, which is lacking or is no such value, as it stands."""
    if isinstance(error, NotWhole):
        return str(error)
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else detail(error)


def _info(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise NotWhole("commitInfo is no object")
    optional_number_in(body, "inCommitTimestamp")
    return body


def _metadata(body: Mapping[str, Any]) -> Metadata:
    metadata = Metadata.from_json(body)
    _ = metadata.schema  # parsed now, so that a damaged one is refused by the file's name
    return metadata


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "commitInfo": _info,
    "protocol": Protocol.from_json,
    "metaData": _metadata,
    "txn": AppTransaction.from_json,
    "domainMetadata": DomainMetadata.from_json,
    "add": lambda _: None,
    "remove": lambda _: None,
}
"""What is kept of an action by its kind; of any other, its body."""


def _only(by_kind: Mapping[str, list[Any]], kind: str) -> Any:
    found = by_kind.get(kind, [])
    if len(found) > 1:
        raise NotWhole(f"{len(found)} {kind} actions in one commit")
    return found[0] if found else None


def _refusal(table: str, raws: list[Raw], columns: Collection[str], reason: str) -> CorruptLog:
    """The error with the file of the refused line."""
    for raw in raws:
        for number, text in enumerate(raw.data.split(b"\n"), start=1):
            if text.strip() and not _is_json(text):
                return CorruptLog(table=table, file=raw.file, reason=f"line {number} is cut off or not JSON.")
    refused = next((raw for raw in raws if len(raws) > 1 and not _is_readable(table, raw, columns)), raws[-1])
    return CorruptLog(table=table, file=refused.file, reason=f"a file action is not as it must be ({reason}).")


def _is_readable(table: str, raw: Raw, columns: Collection[str]) -> bool:
    try:
        file_actions(_split(table, raw)[1].joined(), columns)
    except (ValueError, pa.ArrowException):
        return False
    return True


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def line_numbers(table: pa.Table) -> np.ndarray[Any, Any]:
    """The column ``line`` as numbers."""
    return table["line"].to_numpy()
