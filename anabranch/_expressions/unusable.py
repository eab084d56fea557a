"""Explains why a condition cannot be used without a session: a syntax error, or a name that is no column."""

from __future__ import annotations

import re

from anabranch._expressions.computations import unknown_names
from anabranch._expressions.context import Context
from anabranch._protocol.expressions.computation import syntax_over
from anabranch._protocol.expressions.lexer import ParseError
from anabranch.errors import InvalidCondition, UnreadableExpression

_WORD = re.compile(r"\w+|.")


def describe_unusable(text: str, context: Context) -> InvalidCondition:
    """The error of a condition that cannot be parsed or resolved on a table.

    Returns:
        UnreadableExpression for a syntax error; else InvalidCondition, which lists the names that are no columns.
    """
    try:
        strangers = unknown_names(syntax_over(text, context.schema), context.schema)
    except ParseError as error:
        return UnreadableExpression(expression=text, table=context.table, reason=_describe_error(error, text))
    columns = ", ".join(context.schema.names)
    complaint = f"{', '.join(strangers)} {'is none' if len(strangers) == 1 else 'are none'} of its columns"
    reason = f"{complaint if strangers else 'it names something else than columns'}; it has {columns}."
    return InvalidCondition(expression=text, table=context.table, reason=reason)


def _describe_error(error: ParseError, text: str) -> str:
    near = None if error.ends else _WORD.match(text, max(error.at, 0))
    if near is None:
        return "it has a syntax error at its end."
    return f"it has a syntax error at or near {near[0]!r}." if error.at >= 0 else f"{error.found}: {error.reason}."
