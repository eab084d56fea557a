"""Parses ``commitInfo`` of any engine, as far as it can be understood.

Pure. Guarantee: a field of an unexpected type counts as absent; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch._log.commits import Head
from anabranch._protocol.layout import moves
from anabranch.commands.queries.timeline.entries import CommitDescription, Kind
from anabranch.commands.queries.timeline.texts import boolean_of, integer_of, text_of, texts_of, versions_of

_KNOWN = frozenset(
    {
        *("timestamp", "inCommitTimestamp", "operation", "operationParameters", "operationMetrics", "engineInfo"),
        *("userName", "txnId", "readVersion", "isolationLevel", "isBlindAppend", "tags"),
    }
)
_TAGS = ("anabranch.cut", "anabranch.carriedOver", "anabranch.reads", "anabranch.rowLocal", moves.TAG)
_SHORT = 200
_OF_METADATA = frozenset({"metaData", "protocol", "domainMetadata"})


def parse_commit_info(info: Mapping[str, Any]) -> CommitDescription:
    """The fields of a ``commitInfo``, without the tag that records moves, which may be long."""
    tags = info.get("tags")
    tags = tags if isinstance(tags, Mapping) else {}
    more = {name: value for name, value in info.items() if name not in _KNOWN}
    more |= {f"tags.{name}": value for name, value in tags.items() if name not in _TAGS}
    return CommitDescription(
        operation=text_of(info.get("operation"), _SHORT),
        parameters=texts_of(info.get("operationParameters")),
        metrics=texts_of(info.get("operationMetrics")),
        engine=text_of(info.get("engineInfo"), _SHORT),
        user=text_of(info.get("userName") or info.get("userId"), _SHORT),
        txn_id=text_of(info.get("txnId"), _SHORT),
        base=integer_of(info.get("readVersion")),
        isolation=text_of(info.get("isolationLevel"), _SHORT),
        is_blind=boolean_of(info.get("isBlindAppend")),
        cut=integer_of(tags.get("anabranch.cut")),
        rebased_over=versions_of(tags.get("anabranch.carriedOver")),
        predicate=text_of(tags.get("anabranch.reads")),
        row_local=boolean_of(tags.get("anabranch.rowLocal")),
        more=texts_of(more),
    )


def kind_of(head: Head, *, adds: bool, removes: bool, changes_data: bool) -> Kind:
    """What a commit did, by its actions; the recorded operation counts only where the actions do not decide."""
    operation = head.info.get("operation")
    if not (adds or removes):
        is_vacuum = isinstance(operation, str) and operation.startswith("VACUUM")
        return "metadata" if head.kinds & _OF_METADATA else "vacuum" if is_vacuum else "empty"
    if operation == "RESTORE":
        return "restore"
    if not changes_data:
        return "move"
    return "change" if removes else "append"
