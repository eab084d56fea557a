"""Blocks: what the WHERE of a query block says of one table's rows, and names that say whose column they mean.

Guarantee: the predicate that is given holds for every row of the table that can reach the block's result; a name is
changed only where it can mean nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch._expressions.computations import predicate_in
from anabranch._expressions.context import Context
from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch._protocol.expressions.computation import column_of
from anabranch._protocol.expressions.tree import Expression
from anabranch._protocol.predicates import Predicate
from anabranch._protocol.schema.types import Struct


def block_predicate(where: str, names: tuple[str, ...], context: Context, *, sole: bool) -> Predicate:
    """What a block's condition says of the rows of a table.

    Args:
        names: what the condition calls it, and what may stand before that, such as a schema.
        sole: whether the block reads nothing else, so that a bare name is one of its columns.
    """

    def column(parts: tuple[str, ...]) -> Expression | None:
        length = _qualifying(parts, names)
        is_either = bool(length) and context.schema.find(parts[0]) is not None
        return None if is_either or not (length or sole) else column_of(parts[length:], context.schema)

    return predicate_in(where, context, column)


def _qualifying(parts: Sequence[str], names: Sequence[str]) -> int:
    """How many parts of a column's name are its table's."""
    said, folded = [part.lower() for part in parts], [name.lower() for name in names]
    ends = (folded[start:] for start in range(len(folded)))
    return next((len(end) for end in ends if len(said) > len(end) and said[: len(end)] == end), 0)


def strip_qualifiers(text: TokenizedText, names: tuple[str, ...], schema: Struct) -> TokenizedText:
    """The text with the columns of a table under their bare names: ``t.x`` becomes ``x`` for a table called ``t``.

    Where a column, or a function's argument in the text, is called as the table is, the text stays as it is.

    Args:
        names: what the table is called, and what may stand before that, such as ``delta`` before a path.
    """
    if schema.find(names[-1]) is not None or names[-1].lower() in _arguments(text.tokens):
        return text
    tokens, spans, i = text.tokens, [], 0
    folded = [name.lower() for name in names]
    while i < len(tokens):
        length = _length_of(tokens, i, folded)
        if length:
            spans.append((tokens[i].start, tokens[i + length].start))
        i += length or 1
    return text.without(spans) if spans else text


_NOT_IN_ARGUMENTS = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ARROW)


def _arguments(tokens: list[Token]) -> set[str]:
    """The names, in lower case, that stand before an arrow, alone or in parentheses."""
    found: set[str] = set()
    for arrow, token in enumerate(tokens):
        if token.token_type == TokenType.ARROW and arrow:
            are_several = tokens[arrow - 1].token_type == TokenType.R_PAREN
            first = last = arrow - are_several
            while first and (are_several or first == last) and tokens[first - 1].token_type not in _NOT_IN_ARGUMENTS:
                first -= 1
            found |= {each.text.lower() for each in tokens[first:last]}
    return found


def _length_of(tokens: list[Token], i: int, names: list[str]) -> int:
    """How many tokens from here on are the table's name and the dot behind it; 0 where it is not there."""
    if i and tokens[i - 1].token_type == TokenType.DOT:
        return 0
    for start in range(len(names)):
        wanted = names[start:]
        length = 2 * len(wanted)
        part = tokens[i : i + length]
        said = [each.text.lower() for each in part[::2] if each.token_type != TokenType.STRING]
        dots = all(each.token_type == TokenType.DOT for each in part[1::2])
        if len(part) == length and said == wanted and dots and i + length < len(tokens):
            return length
    return 0
