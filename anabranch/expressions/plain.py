"""Plain texts: assigned values that are a literal, a column, or a number added to one, taken away or multiplied.

Guarantee: what is said of a text is what Spark reads in it, whatever the session's settings; a text that Spark cannot
read is none of these, since nobody asks Spark about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sqlglot import exp

from anabranch.expressions.context import Context
from anabranch.expressions.dialect import Token, TokenizedText, TokenType
from anabranch.expressions.tokens import BARE_FUNCTIONS
from anabranch.expressions.trees import columns_of, is_whole, known_tree, literal_of, name_of
from anabranch.protocol.plain_values import Computed, Constant, OldValue, Operator, PlainValue

_OPERATORS: Mapping[type[exp.Expr], Operator] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_PARTS = frozenset(
    {
        *(TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
        *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT, TokenType.L_PAREN, TokenType.R_PAREN),
        *(TokenType.PLUS, TokenType.DASH, TokenType.STAR),
    }
)
_MOMENTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
"""Words that make a moment of the text behind them; the parser knows more of them than Spark."""


def plain_value(text: TokenizedText, context: Context) -> PlainValue | None:
    """The value that a text is; None where it is not plain, or could mean something else.

    Example:
        >>> plain_value(TokenizedText("1 + x"), context)
        Computed(column='x', operator='+', value=1)
    """
    if not _is_spelled_plainly(text):  # which most texts are not, and a parser takes its time
        return None
    tree = known_tree(text, context)
    if tree is None or columns_of(tree, context.schema) is None:
        return None
    tree = tree.unnest()
    if (constant := literal_of(tree, context)) is not None:
        return Constant(constant[0])
    if (name := name_of(tree, context)) is not None:
        return OldValue(name)
    operator = _OPERATORS.get(type(tree))
    if operator is None or not is_whole(tree):
        return None
    return _computed(operator, tree.this, tree.expression, context)


def _is_spelled_plainly(text: TokenizedText) -> bool:
    """Whether it is of parts alone that Spark takes wherever the parser takes them, with nothing but blanks between."""
    behind, ends = [*text.tokens[1:], None], [0, *(token.end + 1 for token in text.tokens)]
    gaps = [text.text[end : token.start] for end, token in zip(ends, text.tokens, strict=False)]
    plain = [_is_plain(token, after) for token, after in zip(text.tokens, behind, strict=True)]
    return all(plain) and not "".join([*gaps, text.text[ends[-1] :]]).strip(" \t\r\n")


def _is_plain(token: Token, after: Token | None) -> bool:
    if token.token_type == TokenType.NUMBER:
        return "e" not in token.text.lower()  # by a setting a decimal
    if token.token_type == TokenType.VAR and token.text.lower() in BARE_FUNCTIONS:
        return False  # by a setting no column
    is_moment = token.text.upper() in _MOMENTS and after is not None and after.token_type == TokenType.STRING
    return token.token_type in _PARTS or is_moment


def _computed(operator: Operator, left: exp.Expr, right: exp.Expr, context: Context) -> Computed | None:
    name, number = name_of(left, context), literal_of(right, context)
    if name is None and operator != "-":  # which side is which matters for a difference only
        name, number = name_of(right, context), literal_of(left, context)
    if name is None or number is None or type(number[0]) not in (int, Decimal, float):
        return None
    return Computed(name, operator, number[0])
