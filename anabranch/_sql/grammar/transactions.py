"""Parses the statements that begin, end and hold a transaction of several statements. Pure.

Knows Databricks' spelling: ``BEGIN TRANSACTION``, ``COMMIT``, ``ROLLBACK``, and ``BEGIN ATOMIC …; …; END``. The
statements inside a block are found by their semicolons, and parsed when they run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch._expressions.dialect import TokenizedText, word
from anabranch._sql.grammar import scripts
from anabranch.errors import NotBuilt, SqlSyntaxError

_MAY_BE = re.compile(r"\b(?:begin|commit|rollback)\b", re.IGNORECASE)
_CONTROL = frozenset(
    "BEGIN CASE CLOSE DECLARE FETCH FOR GET IF ITERATE LEAVE LOOP OPEN REPEAT RESIGNAL SIGNAL WHILE".split()  # noqa: SIM905
)
"""First words of the statements of a script that decide what runs."""


@dataclass(frozen=True)
class Begin:
    """``BEGIN TRANSACTION``."""


@dataclass(frozen=True)
class Commit:
    """``COMMIT``."""


@dataclass(frozen=True)
class RollBack:
    """``ROLLBACK``."""


@dataclass(frozen=True)
class Atomic:
    """``BEGIN ATOMIC … END``, with the texts of its statements."""

    statements: tuple[str, ...]


TransactionText = Begin | Commit | RollBack | Atomic
_ENDS: dict[str, TransactionText] = {"COMMIT": Commit(), "ROLLBACK": RollBack()}


def transaction_text(text: str) -> TransactionText | None:
    """Parse a text; None if it is another statement.

    Raises:
        SqlSyntaxError: a block does not end, or ends too early.
        NotBuilt: a block has statements that decide what runs, such as IF.

    Example:
        >>> transaction_text("BEGIN ATOMIC DELETE FROM t WHERE a; DELETE FROM t WHERE b; END")
        Atomic(statements=('DELETE FROM t WHERE a', 'DELETE FROM t WHERE b'))
    """
    if _MAY_BE.search(text) is None:
        return None
    source = TokenizedText(text)
    if not source.is_readable:  # Spark may know what it is
        return None
    words = [word(token) for token in source.tokens]
    words = words[:-1] if words[-1:] == [";"] else words
    if words[:2] == ["BEGIN", "ATOMIC"]:
        return _atomic(text)
    if words == ["BEGIN", "TRANSACTION"]:
        return Begin()
    is_end = words[1:] in ([], ["WORK"], ["TRANSACTION"])
    return _ENDS.get(words[0]) if words and is_end else None


def _is_end(statement: str) -> bool:
    return [word(token) for token in TokenizedText(statement).tokens] == ["END"]


def _atomic(text: str) -> Atomic:
    """Parse a block."""
    tokens = TokenizedText(text).tokens
    *statements, last = scripts.split(text[tokens[1].end + 1 :]) or [""]
    if not _is_end(last):
        reason = "BEGIN ATOMIC goes on to an END after the last semicolon."
        if any(map(_is_end, statements)):
            reason = "nothing follows the END of BEGIN ATOMIC in one text; run that by itself."
        raise SqlSyntaxError(near="end of input", reason=reason, excerpt="")
    for statement in statements:
        first = word(TokenizedText(statement).tokens[0])
        if first in _CONTROL:
            instead = "Decide in Python, inside `with anabranch.transaction(…):`."
            raise NotBuilt(what=f"{first} in BEGIN ATOMIC … END", instead=instead)
    return Atomic(tuple(statements))
