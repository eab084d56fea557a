"""Finds computed names and statements: IDENTIFIER(…), EXECUTE IMMEDIATE, and both within a script.

Works on tokens; also knows which words of a script change names. Evaluates no expressions: the caller does. Pure.
Guarantee: every such clause of a statement is found.
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
"""The first words of statements that drop and replace no name. Spark cannot damage a table of ours with one: reading
our entry raises, and a write to a view does nothing."""
_CHANGES_NAMES = frozenset({"DROP", "ALTER", "CREATE", "REPLACE"})
_MAX_QUALIFIERS = 2  # a catalog and a schema, around a table's name
_MAX_SCHEMAS = 100
"""Maximum number of schemas in which the names of a script are looked up."""
_STARTS = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ATOMIC"})
_SIMPLE = re.compile(r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)(?:\.(?:[A-Za-z_]\w*|`(?:[^`]|``)+`))*", re.ASCII)


@dataclass(frozen=True)
class IdentifierClause:
    """``IDENTIFIER(…)``.

    Attributes:
        start, stop: its span in the text.
        inner: the span of its expression.
        first: its first token.
        said: the value of the expression, if that is a plain string literal.
    """

    start: int
    stop: int
    inner: tuple[int, int]
    first: int
    said: str | None


@dataclass(frozen=True)
class Immediate:
    """``EXECUTE IMMEDIATE text [INTO variable, …] [USING value [AS name], …]``, by the spans of its parts.

    Attributes:
        text: the expression of the statement to run.
        said: the value of that expression, if it is a plain string literal.
        into: the variables.
        using: the values, with their names, if they have any.
    """

    text: tuple[int, int]
    said: str | None
    into: tuple[int, int] | None
    using: tuple[tuple[int, int, str | None], ...]


def may_be_computed(text: str) -> bool:
    """Whether a statement may have such a clause; a cheap test that errs towards True."""
    upper = text.upper()
    return "IDENTIFIER" in upper or "IMMEDIATE" in upper


def only_reads(tokens: Sequence[Token]) -> bool:
    """Whether a statement drops and replaces no name, whichever names it contains."""
    words = [word(token) for token in tokens[:5]]
    if not tokens or tokens[0].token_type == TokenType.L_PAREN or words[0] in _ONLY_READS:
        return True
    return words[0] == "CREATE" and "FUNCTION" in words


def is_script(tokens: Sequence[Token]) -> bool:
    """Whether a statement is a script, BEGIN … END, with or without a label."""
    has_label = len(tokens) > 2 and tokens[1].token_type == TokenType.COLON
    at = 2 if has_label else 0
    ends = any(word(token) == "END" for token in tokens[at:])
    return len(tokens) > at and word(tokens[at]) == "BEGIN" and ends


def clauses(text: str, tokens: Sequence[Token]) -> list[IdentifierClause]:
    """Find each IDENTIFIER(…) that is not inside another one."""
    result: list[IdentifierClause] = []
    for i, token in enumerate(tokens[:-2]):
        is_nested = result and token.start < result[-1].stop
        if word(token) == "IDENTIFIER" and tokens[i + 1].token_type == TokenType.L_PAREN and not is_nested:
            result += _clause(text, tokens, i)
    return result


def _clause(text: str, tokens: Sequence[Token], i: int) -> list[IdentifierClause]:
    """Return the clause at a token; none if the parentheses contain a list or nothing."""
    cursor = Cursor(text, tokens, i + 2)
    if cursor.is_type(TokenType.R_PAREN):
        return []
    cursor.skip_to(comma=True)
    if not cursor.is_type(TokenType.R_PAREN):
        return []
    start, stop = tokens[i + 2].start, cursor.stop
    clause = IdentifierClause(
        tokens[i].start, cursor.tokens[cursor.i].end + 1, (start, stop), i, plain(text[start:stop])
    )
    return [clause]


def plain(text: str) -> str | None:
    """Return the value of a string literal that every session reads alike; None for any other text."""
    is_plain = len(text) > 1 and text[0] == text[-1] == "'" and not any(sign in text[1:-1] for sign in "'\\")
    return text[1:-1] if is_plain else None


def simple_name(name: str) -> Path | None:
    """Return the parts of an unambiguous name; None if Spark has to parse it."""
    if _SIMPLE.fullmatch(name) is None:
        return None
    return tuple(token.text for token in tokenize(name) if token.token_type != TokenType.DOT)


def name_in(text: str) -> Path | None:
    """Return the parts of a name; None if the text is no name."""
    cursor = Cursor(text, tokenize(text))
    name = cursor.path() if cursor.is_name() else ()
    return name if name and cursor.is_at_end else None


def name_edit(clause: IdentifierClause, name: Path) -> Edit:
    """Return the edit that replaces a clause by its name."""
    return Edit(clause.start, clause.stop, ".".join("`" + part.replace("`", "``") + "`" for part in name))


def immediate(text: str, tokens: Sequence[Token]) -> Immediate | None:
    """Parse EXECUTE IMMEDIATE; None if it is another statement.

    Raises:
        SqlSyntaxError: the statement has another form.
    """
    r = Cursor(text, tokens)
    if not r.take("EXECUTE", "IMMEDIATE"):
        return None
    first = r.start
    r.skip_to(frozenset({"INTO", "USING"}), what="a statement as a text")
    statement = first, r.stop
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
    return Immediate(statement, plain(text[slice(*statement)]), into, using)


def _values(r: Cursor) -> tuple[tuple[int, int, str | None], ...]:
    """Take the values of USING, with or without parentheses."""
    if r.is_type(TokenType.L_PAREN) and _is_closed_by_last(r):
        return r.take_list(lambda: _value(r))
    values = [_value(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        values.append(_value(r))
    return tuple(values)


def _is_closed_by_last(r: Cursor) -> bool:
    """Whether the last token closes the parenthesis that opens next."""
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
    """Whether the last token of a value can only be its alias."""
    ends = (TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN, TokenType.IDENTIFIER, TokenType.VAR)
    return last.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and before.token_type in ends


# -- scripts -----------------------------------------------------------------------------------------------------------


def changes_names(tokens: Sequence[Token]) -> list[bool]:
    """Return, for each token of a script, whether the tokens before it in its statement may drop or replace a name."""
    flags, changes = list[bool](), False
    for i, token in enumerate(tokens):
        flags.append(changes)
        changes = token.token_type != TokenType.SEMICOLON and (changes or _changes_names(tokens, i))
    return flags


def changes_any_name(tokens: Sequence[Token]) -> bool:
    """Whether any statement of a script may drop or replace a name."""
    return any(_changes_names(tokens, i) for i in range(len(tokens)))


def _changes_names(tokens: Sequence[Token], i: int) -> bool:
    is_call = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_PAREN  # replace(a, 'b', 'c')
    return word(tokens[i]) in _CHANGES_NAMES and _starts_statement(tokens, i) and not is_call


def schemas_used(text: str, tokens: Sequence[Token]) -> list[Path] | None:
    """Return the catalogs and schemas that USE selects in a script, the empty path first; None if they are too many."""
    schemas: dict[Path, None] = {(): None}
    for i, token in enumerate(tokens):
        if word(token) in ("USE", "SET") and _starts_statement(tokens, i):
            r = Cursor(text, tokens, i + 1)
            has_keyword = (
                any(r.take(keyword) for keyword in ("CATALOG", "SCHEMA", "DATABASE", "NAMESPACE"))
                or word(token) == "USE"
            )
            if has_keyword and r.is_name():
                path = r.path()
                schemas |= {(*schema, *path): None for schema in schemas if len(schema) + len(path) <= _MAX_QUALIFIERS}
                if len(schemas) > _MAX_SCHEMAS:
                    return None
    return list(schemas)


def _starts_statement(tokens: Sequence[Token], i: int) -> bool:
    """Whether a statement of a script begins at a token."""
    return i > 0 and (tokens[i - 1].token_type == TokenType.SEMICOLON or word(tokens[i - 1]) in _STARTS)


def immediates(text: str, tokens: Sequence[Token]) -> list[tuple[int, str | None]]:
    """Find each EXECUTE IMMEDIATE of a script: its token, and its statement if that is a plain string literal."""
    statements: list[tuple[int, str | None]] = []
    for i, token in enumerate(tokens[:-2]):
        if (word(token), word(tokens[i + 1])) == ("EXECUTE", "IMMEDIATE"):
            following = tokens[i + 3] if i + 3 < len(tokens) else None
            ends = (
                following is None or following.token_type == TokenType.SEMICOLON or word(following) in ("INTO", "USING")
            )
            literal = plain(text[tokens[i + 2].start : tokens[i + 2].end + 1])
            statements.append((i, literal if ends else None))
    return statements
