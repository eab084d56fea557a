"""Commits: what one version changed.

Knows the lines of a commit file (PROTOCOL.md, section "Delta Log Entries"). Guarantee: a commit file that is empty,
cut off or not JSON is refused by its name; it is never taken for an empty version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.errors import CorruptLog, InvalidSchema
from anabranch.log.columnar import file_actions
from anabranch.log.lazy import lazy
from anabranch.log.names import commit_name
from anabranch.protocol.actions import AppTransaction, DomainMetadata, Metadata, Protocol

_PLAIN_FILE_LINE = rb'\{"(?:add|remove)":'
_OTHER_LINE = re.compile(rb"^(?!" + _PLAIN_FILE_LINE + rb')(?!\{"cdc":)[^\n]*\S[^\n]*$', re.MULTILINE)
_FILE_LINE = re.compile(rb"^" + _PLAIN_FILE_LINE + rb"[^\n]*$", re.MULTILINE)
_FEED = "cdc"
_OF_CHECKPOINTS = ("checkpointMetadata", "sidecar")
_FEED_LINE = re.compile(rb'^\{"cdc":', re.MULTILINE)


@dataclass(frozen=True)
class Raw:
    """A commit file as found in the store; ``identity`` (size, etag) tells it from another one of the same name.

    ``name`` is that of another file of such lines: a log compaction, or a checkpoint in JSON.
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
    """What a commit says besides files: every other action, already parsed; ``kinds`` are their names, ``others`` the
    actions that only a checkpoint in JSON may have.
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
    """One version. Its file actions are parsed when they are first asked for: many winners are judged by their head
    alone.
    """

    table: str
    raw: Raw
    head: Head
    lines: bytes
    columns: frozenset[str]

    @property
    def version(self) -> int:
        """The version that this commit made."""
        return self.raw.version

    @property
    def timestamp(self) -> int:
        """When it was committed, in milliseconds since 1970."""
        return int(self.head.info.get("inCommitTimestamp") or self.raw.timestamp)

    @property
    def identity(self) -> tuple[int, str | None]:
        """Size and etag of its file."""
        return self.raw.identity

    @property
    def txn_id(self) -> str | None:
        """The id by which a writer knows its own commit again."""
        return self.head.info.get("txnId")

    @property
    def has_change_feed(self) -> bool:
        """Whether it wrote change data files."""
        return _FEED in self.head.kinds or bool(_FEED_LINE.search(self.raw.data))

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
        adds, removes = _file_actions(self.table, [self.raw], self.lines, self.columns)
        return adds.drop_columns(["line"]), removes.drop_columns(["line"])


def parse_head(table: str, raw: Raw) -> Head:
    """All actions but files. A pure append needs no more than this of each winner.

    Raises:
        CorruptLog: the file is empty, or a line is not an action.
    """
    return _split(table, raw)[0]


def parse_commit(table: str, raw: Raw, partition_keys: Collection[str]) -> Commit:
    """A whole commit.

    Args:
        partition_keys: of the table before this commit; a ``metaData`` in the commit adds its own.

    Raises:
        CorruptLog: the file is empty, or a line is not an action.
    """
    head, lines = _split(table, raw)
    columns = frozenset(partition_keys) | frozenset(head.metadata.partition_keys if head.metadata else ())
    return Commit(table, raw, head, lines, columns)


def parse_files(table: str, raws: list[Raw], partition_keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """The file actions of many commits at once, oldest first, each with its place (``line``) in the whole sequence.

    Partition values are those of the partitioning after them: who changes it replaces every file.
    """
    heads, buffers, columns = [], [], partition_keys
    for raw in raws:
        head, lines = _split(table, raw)
        heads.append(head)
        buffers.append(lines if lines.endswith(b"\n") or not lines else lines + b"\n")
        columns = head.metadata.partition_keys if head.metadata else columns
    return _file_actions(table, raws, b"".join(buffers), columns)


def _file_actions(table: str, raws: list[Raw], lines: bytes, columns: Collection[str]) -> tuple[pa.Table, pa.Table]:
    try:
        return file_actions(lines, columns)
    except (ValueError, pa.ArrowException) as error:
        raise _culprit(table, raws, columns, str(error)) from error


def _split(table: str, raw: Raw) -> tuple[Head, bytes]:
    """The parsed head, and the file lines as one buffer."""
    parsed = [_parse_line(table, raw, match[0]) for match in _OTHER_LINE.finditer(raw.data)]
    _check_end(table, raw)
    odd = [json.dumps(a, separators=(",", ":")).encode() for a in parsed if "add" in a or "remove" in a]
    plain = _without(raw.data, parsed)
    if not parsed and not plain.strip():
        raise CorruptLog(table=table, file=raw.file, reason="the file is empty.")
    return _head(table, raw, parsed), b"\n".join([plain, *odd]) if odd else plain


def _check_end(table: str, raw: Raw) -> None:
    """A file that was cut off ends in a line that is not whole, also where file actions are not read any further."""
    end = len(raw.data)
    while end and raw.data[end - 1] in b" \t\r\n":
        end -= 1
    start = raw.data.rfind(b"\n", 0, end) + 1
    if start < end:
        _parse_line(table, raw, raw.data[start:end])


def _without(data: bytes, parsed: list[dict[str, Any]]) -> bytes:
    if not parsed and b'{"cdc":' not in data:
        return data
    return b"\n".join(match[0] for match in _FILE_LINE.finditer(data))


def _parse_line(table: str, raw: Raw, text: bytes) -> dict[str, Any]:
    try:
        action = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(table=table, file=raw.file, reason=f"a line is cut off or not JSON ({error}).") from None
    if not isinstance(action, dict):
        raise CorruptLog(table=table, file=raw.file, reason="a line is not an action.")
    return action


def _head(table: str, raw: Raw, actions: Iterable[Mapping[str, Any]]) -> Head:
    by_kind: dict[str, list[Any]] = {}
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(body)
    try:
        return Head(
            info=next(iter([_info(body) for body in by_kind.get("commitInfo", ())]), {}),
            protocol=_only(by_kind, "protocol", Protocol.from_json),
            metadata=_only(by_kind, "metaData", _metadata),
            app_transactions=tuple(map(AppTransaction.from_json, by_kind.get("txn", ()))),
            domains=tuple(map(DomainMetadata.from_json, by_kind.get("domainMetadata", ()))),
            kinds=frozenset(by_kind),
            others={kind: by_kind[kind] for kind in _OF_CHECKPOINTS if kind in by_kind},
        )
    except (KeyError, TypeError, ValueError, AttributeError, InvalidSchema) as error:
        raise CorruptLog(table=table, file=raw.file, reason=f"an action is not whole ({error!r}).") from error


def _info(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise TypeError("commitInfo is no object")
    int(body.get("inCommitTimestamp") or 0)
    return body


def _metadata(body: Mapping[str, Any]) -> Metadata:
    metadata = Metadata.from_json(body)
    _ = metadata.schema  # parsed now, so that a damaged one is refused by the file's name
    return metadata


def _only(by_kind: Mapping[str, list[Any]], kind: str, build: Any) -> Any:
    bodies = by_kind.get(kind, [])
    if len(bodies) > 1:
        raise ValueError(f"{len(bodies)} {kind} actions in one commit")
    return build(bodies[0]) if bodies else None


def _culprit(table: str, raws: list[Raw], columns: Collection[str], reason: str) -> CorruptLog:
    """Which file holds the line that was refused."""
    for raw in raws:
        for number, text in enumerate(raw.data.split(b"\n"), start=1):
            if text.strip() and not _is_json(text):
                return CorruptLog(table=table, file=raw.file, reason=f"line {number} is cut off or not JSON.")
    culprit = next((raw for raw in raws if len(raws) > 1 and not _is_readable(table, raw, columns)), raws[-1])
    return CorruptLog(table=table, file=culprit.file, reason=f"a file action is not as it must be ({reason}).")


def _is_readable(table: str, raw: Raw, columns: Collection[str]) -> bool:
    try:
        file_actions(_split(table, raw)[1], columns)
    except (ValueError, pa.ArrowException):
        return False
    return True


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def line_numbers(table: pa.Table) -> np.ndarray[Any, Any]:
    """The column ``line`` as numbers."""
    return table["line"].to_numpy()
