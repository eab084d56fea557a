"""Computed names and statements: IDENTIFIER(…), EXECUTE IMMEDIATE, and both within a script.

Knows where such clauses stand, over tokens, and what a script does to names. Evaluates nothing: what an expression says
is asked of the caller. Pure. Guarantee: of a statement that has such a clause, every one is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch._expressions.dialect import Token, TokenType, tokenize, word
from anabranch._sql.grammar.cursor import Cursor
from anabranch._sql.grammar.parts import Path
from anabranch._sql.grammar.qualifiers import Edit

_ONLY_READS = frozenset(
    """SELECT WITH FROM VALUES TABLE EXPLAIN SHOW DESCRIBE DESC SET USE DECLARE CACHE UNCACHE REFRESH INSERT UPDATE
    DELETE MERGE""".split()  # noqa: SIM905
)
"""With what a statement begins that takes away or replaces no name, whichever names it has: a name of ours that Spark
reads raises, and into a view it writes nothing."""
_CHANGES_NAMES = frozenset({"DROP", "ALTER", "CREATE", "REPLACE"})
_MOST_AROUND = 2  # a catalog and a schema, around a table's name
_MOST_SCHEMAS = 100
"""In how many schemas the names of a script are looked for."""
_STARTS = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ATOMIC"})
_SIMPLE = re.compile(r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)(?:\.(?:[A-Za-z_]\w*|`(?:[^`]|``)+`))*", re.ASCII)


@dataclass(frozen=True)
class Clause:
    """``IDENTIFIER(…)``.

    Attributes:
        start, stop: where it stands in the text.
        inner: where the expression in it does.
        first: its first token.
        said: what it says, where that is a plain text.
    """

    start: int
    stop: int
    inner: tuple[int, int]
    first: int
    said: str | None


@dataclass(frozen=True)
class Immediate:
    """``EXECUTE IMMEDIATE text [INTO variable, …] [USING value [AS name], …]``, by where each stands in the text.

    Attributes:
        text: the expression of the statement.
        said: what it says, where that is a plain text.
        into: the variables.
        using: the values, with the name of each, where it has one.
    """

    text: tuple[int, int]
    said: str | None
    into: tuple[int, int] | None
    using: tuple[tuple[int, int, str | None], ...]


def may_be_computed(text: str) -> bool:
    """Whether a statement may have such a clause, by a look that costs next to nothing."""
    raised = text.upper()
    return "IDENTIFIER" in raised or "IMMEDIATE" in raised


def only_reads(tokens: Sequence[Token]) -> bool:
    """Whether no name can be lost by a statement, whichever names it has."""
    said = [word(token) for token in tokens[:5]]
    if not tokens or tokens[0].token_type == TokenType.L_PAREN or said[0] in _ONLY_READS:
        return True
    return said[0] == "CREATE" and "FUNCTION" in said


def is_script(tokens: Sequence[Token]) -> bool:
    """Whether a statement is one of several, BEGIN … END, perhaps with a label before it."""
    labelled = len(tokens) > 2 and tokens[1].token_type == TokenType.COLON
    at = 2 if labelled else 0
    ends = any(word(token) == "END" for token in tokens[at:])
    return len(tokens) > at and word(tokens[at]) == "BEGIN" and ends


def clauses(text: str, tokens: Sequence[Token]) -> list[Clause]:
    """Each IDENTIFIER(…), but those within another one."""
    found: list[Clause] = []
    for i, token in enumerate(tokens[:-2]):
        inside = found and token.start < found[-1].stop
        if word(token) == "IDENTIFIER" and tokens[i + 1].token_type == TokenType.L_PAREN and not inside:
            found += _clause(text, tokens, i)
    return found


def _clause(text: str, tokens: Sequence[Token], i: int) -> list[Clause]:
    """The clause at a token; none where what stands in parentheses is a list, or nothing."""
    inside = Cursor(text, tokens, i + 2)
    if inside.is_type(TokenType.R_PAREN):
        return []
    inside.skip_to(comma=True)
    if not inside.is_type(TokenType.R_PAREN):
        return []
    start, stop = tokens[i + 2].start, inside.stop
    clause = Clause(tokens[i].start, inside.tokens[inside.i].end + 1, (start, stop), i, plain(text[start:stop]))
    return [clause]


def plain(text: str) -> str | None:
    """What a literal says that every session reads in one way; None of anything else."""
    is_plain = len(text) > 1 and text[0] == text[-1] == "'" and not any(sign in text[1:-1] for sign in "'\\")
    return text[1:-1] if is_plain else None


def simple_name(said: str) -> Path | None:
    """The parts of a name that can be read in one way only; None where Spark is to be asked."""
    if _SIMPLE.fullmatch(said) is None:
        return None
    return tuple(each.text for each in tokenize(said) if each.token_type != TokenType.DOT)


def name_in(said: str) -> Path | None:
    """The parts of a name; None where it is none."""
    inside = Cursor(said, tokenize(said))
    name = inside.path() if inside.is_name() else ()
    return name if name and inside.is_at_end else None


def name_edit(found: Clause, name: Path) -> Edit:
    """What makes of a clause the name that it says."""
    return Edit(found.start, found.stop, ".".join("`" + part.replace("`", "``") + "`" for part in name))


def immediate(text: str, tokens: Sequence[Token]) -> Immediate | None:
    """EXECUTE IMMEDIATE, taken apart; None where it is another statement.

    Raises:
        SqlSyntaxError: it is not put together so.
    """
    r = Cursor(text, tokens)
    if not r.take("EXECUTE", "IMMEDIATE"):
        return None
    first = r.start
    r.skip_to(frozenset({"INTO", "USING"}), what="a statement as a text")
    said = first, r.stop
    into = None
    if r.take("INTO"):
        start = r.start
        r.path("the name of a variable")
        while r.is_type(TokenType.COMMA):
            r.i += 1
            r.path("the name of a variable")
        into = start, r.stop
    using = _values(r) if r.take("USING") else ()
    r.finish()
    return Immediate(said, plain(text[slice(*said)]), into, using)


def _values(r: Cursor) -> tuple[tuple[int, int, str | None], ...]:
    """What stands behind USING, perhaps in parentheses."""
    if r.is_type(TokenType.L_PAREN) and _closes_last(r):
        return r.take_list(lambda: _value(r))
    found = [_value(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        found.append(_value(r))
    return tuple(found)


def _closes_last(r: Cursor) -> bool:
    """Whether the parenthesis that opens next is closed by the last token."""
    depth = 0
    for i in range(r.i, len(r.tokens)):
        depth += r.tokens[i].token_type == TokenType.L_PAREN
        depth -= r.tokens[i].token_type == TokenType.R_PAREN
        if depth == 0:
            return i == len(r.tokens) - 1
    return False


def _value(r: Cursor) -> tuple[int, int, str | None]:
    start, first = r.start, r.i
    r.skip_to(frozenset({"AS"}), comma=True, what="a value")
    stop, name = r.stop, None
    if r.take("AS"):
        name = r.name("the name of a parameter")
    elif r.i - first > 1 and _is_alias(r.tokens[r.i - 2], r.tokens[r.i - 1]):
        stop, name = r.tokens[r.i - 2].end + 1, r.tokens[r.i - 1].text
    return start, stop, name


def _is_alias(before: Token, last: Token) -> bool:
    """Whether the last of several words can only be a name for what stands before it."""
    ends = (TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN, TokenType.IDENTIFIER, TokenType.VAR)
    return last.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and before.token_type in ends


# -- scripts -----------------------------------------------------------------------------------------------------------


def changes_names(tokens: Sequence[Token]) -> list[bool]:
    """Of each token, whether what stands before it in its statement of a script may take a name away or replace it."""
    found, changes = list[bool](), False
    for i, token in enumerate(tokens):
        found.append(changes)
        changes = token.token_type != TokenType.SEMICOLON and (changes or _changes_names(tokens, i))
    return found


def changes_any_name(tokens: Sequence[Token]) -> bool:
    """Whether a statement of a script may take a name away or replace it."""
    return any(_changes_names(tokens, i) for i in range(len(tokens)))


def _changes_names(tokens: Sequence[Token], i: int) -> bool:
    is_call = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_PAREN  # replace(a, 'b', 'c')
    return word(tokens[i]) in _CHANGES_NAMES and _starts(tokens, i) and not is_call


def schemas_used(text: str, tokens: Sequence[Token]) -> list[Path] | None:
    """In which catalogs and schemas the names of a script may lie, as far as it says USE; the empty one first. None
    where they are too many.
    """
    found: dict[Path, None] = {(): None}
    for i, token in enumerate(tokens):
        if word(token) in ("USE", "SET") and _starts(tokens, i):
            r = Cursor(text, tokens, i + 1)
            says = any(r.take(each) for each in ("CATALOG", "SCHEMA", "DATABASE", "NAMESPACE")) or word(token) == "USE"
            if says and r.is_name():
                path = r.path()
                found |= {(*each, *path): None for each in found if len(each) + len(path) <= _MOST_AROUND}
                if len(found) > _MOST_SCHEMAS:
                    return None
    return list(found)


def _starts(tokens: Sequence[Token], i: int) -> bool:
    """Whether a statement of a script begins at a token."""
    return i > 0 and (tokens[i - 1].token_type == TokenType.SEMICOLON or word(tokens[i - 1]) in _STARTS)


def immediates(text: str, tokens: Sequence[Token]) -> list[tuple[int, str | None]]:
    """Each EXECUTE IMMEDIATE of a script: its token, and what it says, where that is a plain text."""
    found: list[tuple[int, str | None]] = []
    for i, token in enumerate(tokens[:-2]):
        if (word(token), word(tokens[i + 1])) == ("EXECUTE", "IMMEDIATE"):
            behind = tokens[i + 3] if i + 3 < len(tokens) else None
            ends = behind is None or behind.token_type == TokenType.SEMICOLON or word(behind) in ("INTO", "USING")
            said = plain(text[tokens[i + 2].start : tokens[i + 2].end + 1])
            found.append((i, said if ends else None))
    return found
