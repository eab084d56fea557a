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
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.columnar import file_actions
from anabranch._log.commit_files import Raw
from anabranch._log.file_lines import FileLines, pieces, separate_file_lines
from anabranch._log.lazy import lazy
from anabranch._log.size_limits import enough_memory
from anabranch._protocol.actions import (
    AppTransaction,
    DomainMetadata,
    MalformedAction,
    Metadata,
    Protocol,
    optional_number_in,
)
from anabranch.errors import CorruptLog, InvalidSchema
from anabranch.errors.rows import cause, detail

ENGINE = "Anabranch/0.1.0"
"""The writer's name in our commits."""
_FILES = frozenset({"add", "remove"})
_FILE_ACTION = re.compile(rb'"(?:add|remove)"|\\u')
"""Matches in a line that may be a file action."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""A lone surrogate, as JSON escapes it."""
_FEED = "cdc"
_FEED_LINE = b'{"cdc":'
_CHECKPOINT_KINDS = ("checkpointMetadata", "sidecar")


@dataclass(frozen=True)
class Head:
    """A commit apart from files: every other action, parsed; ``kinds`` are the names of all actions, ``others`` the
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
    """One version. Its file actions are parsed on first use: many winners are judged by their head alone."""

    table: str
    raw: Raw
    head: Head
    columns: frozenset[str]

    @property
    def version(self) -> int:
        """The version of this commit."""
        return self.raw.version

    @property
    def timestamp(self) -> int:
        """The time of the commit, in milliseconds since 1970."""
        return int(self.head.info.get("inCommitTimestamp") or self.raw.timestamp)

    @property
    def identity(self) -> tuple[int, str | None]:
        """Size and etag of the commit file."""
        return self.raw.identity

    @property
    def txn_id(self) -> str | None:
        """The id by which a writer recognises its own commit."""
        return self.head.info.get("txnId")

    @property
    def has_change_feed(self) -> bool:
        """Whether it wrote change data files."""
        return _FEED in self.head.kinds

    @property
    def adds(self) -> pa.Table:
        """Its ``add`` actions (`anabranch._protocol.actions.ADDS`)."""
        return self._file_actions[0].drop_columns(["line"])

    @property
    def removes(self) -> pa.Table:
        """Its ``remove`` actions (`anabranch._protocol.actions.DROPS`)."""
        return self._file_actions[1].drop_columns(["line"])

    @property
    def in_order(self) -> pa.Table:
        """The kind, path and dataChange of the file actions, in the order of the lines; lines that do not begin as ours
        do come last.
        """
        tables = [
            actions.select(["line", "path", "dataChange"]).append_column(
                "kind", pa.array([kind] * len(actions), pa.string())
            )
            for kind, actions in zip(("add", "remove"), self._file_actions, strict=True)
        ]
        return pa.concat_tables(tables).sort_by("line").drop_columns(["line"])

    def file_lines(self) -> Iterator[bytes]:
        """The lines of its file actions, in parts of whole lines."""
        return _file_lines(self.table, self.raw)

    @lazy
    def _file_actions(self) -> tuple[pa.Table, pa.Table]:
        return parse_files(self.table, [self.raw], self.columns)


def own_txn_id(head: Head) -> str | None:
    """The id of the transaction of ours that wrote a commit; None for a commit of another engine."""
    engine, txn_id = head.info.get("engineInfo"), head.info.get("txnId")
    is_own = isinstance(engine, str) and engine.partition("/")[0] == ENGINE.partition("/")[0]
    return txn_id if is_own and isinstance(txn_id, str) else None


def parse_head(table: str, raw: Raw) -> Head:
    """All actions but files, which is enough to judge a pure append. Raises CorruptLog: the file is empty, or a line is
    not an action.
    """
    by_kind: dict[str, list[Any]] = {}
    with enough_memory(table, raw.file):
        for _, others in _separate_lines(table, raw):
            if any(text.startswith(_FEED_LINE) for text in others):
                by_kind.setdefault(_FEED, [])
            with _translate_errors(table, raw):
                _collect(by_kind, (_parse_line(table, raw, text) for text in others if _is_action(text)))
        with _translate_errors(table, raw):
            return _make_head(by_kind)


def parse_commit(table: str, raw: Raw, partition_keys: Collection[str]) -> Commit:
    """A whole commit; ``partition_keys`` are those of the table before it, to which its own ``metaData`` adds. Raises
    CorruptLog: the file is empty, or a line is not an action.
    """
    head = parse_head(table, raw)
    columns = frozenset(partition_keys) | frozenset(head.metadata.partition_keys if head.metadata else ())
    return Commit(table, raw, head, columns)


def parse_files(table: str, raws: Sequence[Raw], partition_keys: Collection[str]) -> tuple[pa.Table, pa.Table]:
    """The file actions of many commits at once, oldest first; ``line`` is the place in the whole sequence.

    ``partition_keys`` are those of the table after the last commit: one that changes the partitioning replaces every
    file. Other actions are not parsed again, since the caller has read the heads. Raises CorruptLog: a file is empty,
    or a file action is malformed.
    """
    largest = max(raws, key=lambda raw: len(raw.data)).file if raws else ""
    with enough_memory(table, largest):
        try:
            parsed = list(_parse_pieces(chain.from_iterable(_file_lines(table, raw) for raw in raws), partition_keys))
        except MemoryError:  # Arrow's is an exception of Arrow's, too
            raise
        except (ValueError, RecursionError, pa.ArrowException) as error:
            raise _refusal(table, raws, partition_keys, detail(error, str)) from cause(error)
        if len(parsed) == 1:
            return parsed[0]
        return pa.concat_tables(adds for adds, _ in parsed), pa.concat_tables(removes for _, removes in parsed)


def _parse_pieces(lines: Iterable[bytes], columns: Collection[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The actions of each piece, in order; several threads parse, and pieces are cut only as fast as needed."""

    def parse(piece: tuple[int, bytes]) -> tuple[pa.Table, pa.Table]:
        start, text = piece
        return _shift_line_numbers(file_actions(text, columns), start)

    first, *second = islice(remaining := pieces(lines), 2)
    if not second:
        yield parse(first)
        return
    workers, waiting = os.cpu_count() or 1, deque[Future[tuple[pa.Table, pa.Table]]]()
    with ThreadPoolExecutor(workers, thread_name_prefix="anabranch-parse") as pool:
        for piece in chain((first, *second), remaining):
            waiting.append(pool.submit(parse, piece))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def _shift_line_numbers(actions: tuple[pa.Table, pa.Table], start: int) -> tuple[pa.Table, pa.Table]:
    """Add to the line numbers the number of bytes before, which is at least the number of lines before."""
    adds, removes = (_add_to_lines(table, start) if start else table for table in actions)
    return adds, removes


def _add_to_lines(actions: pa.Table, start: int) -> pa.Table:
    index = actions.column_names.index("line")
    return actions.set_column(index, "line", pc.add(actions["line"], start))


def _file_lines(table: str, raw: Raw) -> Iterator[bytes]:
    """The file actions in parts of whole lines; those in lines that do not begin as ours do come last."""
    odd: list[bytes] = []
    for lines, others in _separate_lines(table, raw):
        yield from lines.parts()
        actions = (_parse_line(table, raw, text) for text in others if _FILE_ACTION.search(text) and _is_action(text))
        odd += [
            json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions if _FILES & action.keys()
        ]
    yield from odd


def _separate_lines(table: str, raw: Raw) -> Iterator[tuple[FileLines, list[bytes]]]:
    """The lines that begin as file actions, and all other lines, part by part. Raises CorruptLog: the file is empty, or
    its last line is cut off.
    """
    is_empty, last = True, b""
    for part in raw.parts():
        lines, others = separate_file_lines(part)
        yield lines, others
        is_empty = is_empty and not lines.runs and not any(text.strip() for text in others)
        last = last if part.isspace() else part
    if is_empty:
        raise CorruptLog(table=table, file=raw.file, reason="the file is empty.")
    _check_end(table, raw, last)


def _is_action(text: bytes) -> bool:
    """Whether a line is to be parsed: change data is not, which may have a million lines."""
    return bool(text.strip()) and not text.startswith(_FEED_LINE)


def _collect(by_kind: dict[str, list[Any]], actions: Iterable[Mapping[str, Any]]) -> None:
    """Collect the values of actions by kind."""
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(_VALUES[kind](body) if kind in _VALUES else body)


def _check_end(table: str, raw: Raw, data: bytes) -> None:
    """Raises CorruptLog unless the last line is whole, even if file actions are not parsed: a truncated file ends in
    part of a line.
    """
    end = len(data)
    while end and data[end - 1] in b" \t\r\n":
        end -= 1
    start = data.rfind(b"\n", 0, end) + 1
    if start < end:
        _parse_line(table, raw, data[start:end])


def _parse_line(table: str, raw: Raw, text: bytes) -> dict[str, Any]:
    try:
        action = json.loads(
            text.decode("utf-8-sig")
        )  # of bytes it would guess another encoding, and take half characters
    except (ValueError, RecursionError) as error:
        raise CorruptLog(table=table, file=raw.file, reason=f"a line is cut off or not JSON ({error}).") from None
    if not isinstance(action, dict):
        raise CorruptLog(table=table, file=raw.file, reason="a line is not an action.")
    return _without_surrogates(table, raw, action) if _SURROGATE.search(text) else action


def _without_surrogates(table: str, raw: Raw, action: dict[str, Any]) -> dict[str, Any]:
    """The action. Raises CorruptLog: its texts hold a lone surrogate, which cannot be written again. In ``commitInfo``
    a surrogate becomes a question mark, since no reader depends on it.
    """
    try:
        json.dumps(action, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        if action.keys() == {"commitInfo"}:
            return json.loads(json.dumps(action, ensure_ascii=False).encode(errors="replace"))
        reason = "a line holds half of a character, a lone surrogate."
        raise CorruptLog(table=table, file=raw.file, reason=reason) from error
    return action


def _make_head(by_kind: Mapping[str, list[Any]]) -> Head:
    return Head(
        info=next(iter(by_kind.get("commitInfo", ())), {}),
        protocol=_single_action(by_kind, "protocol"),
        metadata=_single_action(by_kind, "metaData"),
        app_transactions=tuple(by_kind.get("txn", ())),
        domains=tuple(by_kind.get("domainMetadata", ())),
        kinds=frozenset(by_kind),
        others={kind: by_kind[kind] for kind in _CHECKPOINT_KINDS if kind in by_kind},
    )


@contextmanager
def _translate_errors(table: str, raw: Raw) -> Iterator[None]:
    """Converts the errors of malformed actions within the block into one with the name of the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InvalidSchema) as error:
        reason = f"an action is not whole ({_describe_fault(error)})."
        raise CorruptLog(table=table, file=raw.file, reason=reason) from cause(error)


def _describe_fault(error: Exception) -> str:
    """The fault of an action: our own sentence on a field, or the error's detail."""
    if isinstance(error, MalformedAction):
        return str(error)
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else detail(error)


def _parse_info(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise MalformedAction("commitInfo is no object")
    optional_number_in(body, "inCommitTimestamp")
    return body


def _parse_metadata(body: Mapping[str, Any]) -> Metadata:
    metadata = Metadata.from_json(body)
    _ = metadata.schema  # parsed now, so that a damaged one is refused by the file's name
    return metadata


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "commitInfo": _parse_info,
    "protocol": Protocol.from_json,
    "metaData": _parse_metadata,
    "txn": AppTransaction.from_json,
    "domainMetadata": DomainMetadata.from_json,
    _FEED: lambda _: None,
    "add": lambda _: None,
    "remove": lambda _: None,
}
"""Functions that convert the body of an action by its kind; other bodies are kept as they are."""


def _single_action(by_kind: Mapping[str, list[Any]], kind: str) -> Any:
    actions = by_kind.get(kind, [])
    if len(actions) > 1:
        raise MalformedAction(f"{len(actions)} {kind} actions in one commit")
    return actions[0] if actions else None


def _refusal(table: str, raws: Sequence[Raw], columns: Collection[str], reason: str) -> CorruptLog:
    """The error that names the file of the refused line."""
    for raw in raws:
        for number, text in enumerate(raw.lines(), start=1):
            if text.strip() and not _is_json(text):
                return CorruptLog(table=table, file=raw.file, reason=f"line {number} is cut off or not JSON.")
    refused = next((raw for raw in raws if len(raws) > 1 and not _is_readable(table, raw, columns)), raws[-1])
    return CorruptLog(table=table, file=refused.file, reason=f"a file action is not as it must be ({reason}).")


def _is_readable(table: str, raw: Raw, columns: Collection[str]) -> bool:
    try:
        for _, lines in pieces(_file_lines(table, raw)):
            file_actions(lines, columns)
    except (ValueError, RecursionError, pa.ArrowException):
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
