"""Why a condition cannot be used where no session can be asked: it has a syntax error, or names what is no column."""

from __future__ import annotations

from sqlglot import exp

from anabranch.errors import InvalidCondition, UnreadableExpression
from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText, misread
from anabranch.protocol.schema.types import Struct


def unusable(text: str, context: Context) -> InvalidCondition:
    """The error of a condition that is not understood on a table.

    Returns:
        UnreadableExpression of a text with a syntax error; else InvalidCondition, which says what is no column.
    """
    given = TokenizedText(text)
    if given.tree is None:
        reason = f"it has a syntax error{misread(given)}."
        return UnreadableExpression(expression=text, table=context.table, reason=reason)
    strangers, there = unknown_names(given.tree, context.schema), ", ".join(context.schema.names)
    named = f"{', '.join(strangers)} {'is none' if len(strangers) == 1 else 'are none'} of its columns"
    reason = f"{named if strangers else 'it names something else than columns'}; it has {there}."
    return InvalidCondition(expression=text, table=context.table, reason=reason)


def unknown_names(tree: exp.Expr, schema: Struct) -> tuple[str, ...]:
    """The names of a tree that are no columns, as they are written, each once and in order."""
    found = []
    for column in tree.find_all(exp.Column, bfs=False):
        known = schema.find(column.parts[0].name)
        if known is None or (len(column.parts) > 1 and isinstance(known.type, str)):
            found.append(".".join(part.name for part in column.parts))
    return tuple(dict.fromkeys(found))
