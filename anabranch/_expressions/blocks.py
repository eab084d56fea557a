"""Blocks: the predicate of a query block's WHERE on one table, and the qualifiers of column names.

Guarantee: the predicate holds for every row of the table that can reach the block's result; a name is changed only
where it is unambiguous.
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
    """The predicate of a block's condition on the rows of a table.

    Args:
        names: the table's name in the condition, after its qualifiers, such as a schema.
        sole: whether the block reads nothing else, so that a bare name is one of its columns.
    """

    def column(parts: tuple[str, ...]) -> Expression | None:
        length = _count_qualifiers(parts, names)
        is_either = bool(length) and context.schema.find(parts[0]) is not None
        return None if is_either or not (length or sole) else column_of(parts[length:], context.schema)

    return predicate_in(where, context, column)


def _count_qualifiers(parts: Sequence[str], names: Sequence[str]) -> int:
    """The number of a column name's parts that belong to its table."""
    lowered, folded = [part.lower() for part in parts], [name.lower() for name in names]
    ends = (folded[start:] for start in range(len(folded)))
    return next((len(end) for end in ends if len(lowered) > len(end) and lowered[: len(end)] == end), 0)


def strip_qualifiers(text: TokenizedText, names: tuple[str, ...], schema: Struct) -> TokenizedText:
    """The text with the columns of a table under their bare names: ``t.x`` becomes ``x`` for a table called ``t``.

    Where a column, or a function's argument in the text, has the table's name, the text stays as it is.

    Args:
        names: the table's name, after its qualifiers, such as ``delta`` before a path.
    """
    if schema.find(names[-1]) is not None or names[-1].lower() in _arguments(text.tokens):
        return text
    tokens, spans, i = text.tokens, [], 0
    folded = [name.lower() for name in names]
    while i < len(tokens):
        length = _qualifier_length(tokens, i, folded)
        if length:
            spans.append((tokens[i].start, tokens[i + length].start))
        i += length or 1
    return text.without(spans) if spans else text


_NOT_IN_ARGUMENTS = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.ARROW)


def _arguments(tokens: list[Token]) -> set[str]:
    """The names, in lower case, before an arrow, alone or in parentheses."""
    arguments: set[str] = set()
    for arrow, token in enumerate(tokens):
        if token.token_type == TokenType.ARROW and arrow:
            are_several = tokens[arrow - 1].token_type == TokenType.R_PAREN
            first = last = arrow - are_several
            while first and (are_several or first == last) and tokens[first - 1].token_type not in _NOT_IN_ARGUMENTS:
                first -= 1
            arguments |= {argument.text.lower() for argument in tokens[first:last]}
    return arguments


def _qualifier_length(tokens: list[Token], i: int, names: list[str]) -> int:
    """The number of tokens from ``i`` on that are the table's name and the dot after it; 0 where it does not follow."""
    if i and tokens[i - 1].token_type == TokenType.DOT:
        return 0
    for start in range(len(names)):
        qualifiers = names[start:]
        length = 2 * len(qualifiers)
        part = tokens[i : i + length]
        texts = [t.text.lower() for t in part[::2] if t.token_type != TokenType.STRING]
        dots = all(t.token_type == TokenType.DOT for t in part[1::2])
        if len(part) == length and texts == qualifiers and dots and i + length < len(tokens):
            return length
    return 0
