"""Finds the table or view whose rows a statement changes, before anything knows whether it is a table of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch._expressions.dialect import TokenizedText
from anabranch._sql.grammar.cursor import Cursor, behind_with
from anabranch._sql.grammar.explain_parser import MODES
from anabranch._sql.grammar.parts import Path, Span

_SCHEMA_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION", "INTO")
_CHANGES = (
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("MERGE", "INTO"),
    ("MERGE", *_SCHEMA_EVOLUTION),
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", *_SCHEMA_EVOLUTION),
    ("TRUNCATE",),
)
"""The first words of each statement that changes rows, up to TABLE and the table's name."""
_VERBS = frozenset(words[0] for words in _CHANGES)
_MAY_CHANGE = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b", re.IGNORECASE)


@dataclass(frozen=True)
class ChangeTarget:
    """The name of the table or view whose rows a statement changes, and its span."""

    name: Path
    span: Span


def find_change_target(source: TokenizedText) -> ChangeTarget | None:
    """Find what a statement changes, or would change if it were not behind EXPLAIN; None if it changes no rows."""
    if not _MAY_CHANGE.search(source.text) or not source.is_readable:
        return None
    cursor = Cursor(source.text, source.tokens)
    if cursor.take("EXPLAIN"):
        cursor.i += cursor.ahead() in MODES
    if cursor.at("WITH"):
        cursor.i = behind_with(cursor.tokens, _VERBS) or cursor.i
    if not any(cursor.take(*words) for words in _CHANGES):
        return None
    cursor.take("TABLE")
    if not cursor.is_name():
        return None
    start, name = cursor.start, cursor.path()
    return ChangeTarget(name, (start, cursor.stop))
