"""Plain texts: assigned values that are a literal, a column, or a number added to one, taken away or multiplied.

Guarantee: what is said of a text is what Spark reads in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from sqlglot import exp

from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.trees import columns_of, known_tree, literal_of, name_of
from anabranch.protocol.plain_values import Computed, Constant, OldValue, Operator, PlainValue

_OPERATORS: Mapping[type[exp.Expr], Operator] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_ARGUMENTS = frozenset({"this", "expression"})


def plain_value(text: TokenizedText, context: Context) -> PlainValue | None:
    """The value that a text is; None where it is not plain, or could mean something else.

    Example:
        >>> plain_value(TokenizedText("1 + x"), context)
        Computed(column='x', operator='+', value=1)
    """
    tree = known_tree(text, context)
    if tree is None or columns_of(tree, context.schema) is None:
        return None
    tree = tree.unnest()
    if (constant := literal_of(tree, context)) is not None:
        return Constant(constant[0])
    if (name := name_of(tree, context)) is not None:
        return OldValue(name)
    operator = _OPERATORS.get(type(tree))
    if operator is None or any(value and name not in _ARGUMENTS for name, value in tree.args.items()):
        return None
    return _computed(operator, tree.this, tree.expression, context)


def _computed(operator: Operator, left: exp.Expr, right: exp.Expr, context: Context) -> Computed | None:
    name, number = name_of(left, context), literal_of(right, context)
    if name is None and operator != "-":  # which side is which matters for a difference only
        name, number = name_of(right, context), literal_of(left, context)
    if name is None or number is None or type(number[0]) not in (int, Decimal, float):
        return None
    return Computed(name, operator, number[0])
