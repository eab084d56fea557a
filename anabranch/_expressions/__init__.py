"""SQL text: what can be derived from an expression before any row is read.

This room splits texts into sqlglot's tokens; `protocol.expressions` parses them. It never evaluates anything and never
changes what Spark is sent, with one exception: ``current_timestamp`` and similar functions are fixed to one value when
a command starts. Guarantee: each result holds however Spark reads the expression; where a text could mean something
else to Spark (another session setting, a function of that name registered by the user), the result is that nothing is
known.
"""

from __future__ import annotations

from anabranch._expressions.aliases import prevent_alias
from anabranch._expressions.blocks import strip_qualifiers
from anabranch._expressions.computations import (
    HIDDEN,
    called_functions,
    computation_of,
    conjuncts,
    reading_of,
    unknown_names,
)
from anabranch._expressions.context import Context
from anabranch._expressions.depth import shallow
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.merge_expressions import analyze_merge, check_order, parameters_of
from anabranch._expressions.printed_columns import check_assigned, column_condition, column_value
from anabranch._expressions.sides import MergeColumns, evolve_by_clause, resolve_assignments
from anabranch._expressions.tokens import (
    DETERMINISTIC,
    asks_a_query,
    calls,
    check_and_fix_clock,
    find_columns,
    has_window,
    tokens_of,
    with_fixed_clock,
)
from anabranch._expressions.unusable import describe_unusable
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch.errors import NotBuilt

__all__ = [
    "Context",
    "MergeColumns",
    "resolve_assignments",
    "assignment",
    "check_assigned",
    "check_order",
    "column_condition",
    "column_value",
    "condition",
    "conjuncts",
    "evolve_by_clause",
    "parameters_of",
    "analyze_merge",
    "describe_unusable",
]


def condition(
    text: str | TokenizedText, context: Context, *, queries: bool = False, names: tuple[str, ...] = ()
) -> Condition:
    """Parse a condition in SQL; nothing is known of one that holds a subquery, which ``queries`` allows.

    Args:
        names: the qualifiers that the text may put before the table's columns (`strip_qualifiers`).

    Raises:
        InvalidCondition: it is empty, or holds more than one statement. UnreadableExpression: it ends with AND or OR.
        NotBuilt: it holds a subquery, and may not.
    """
    tokenized = TokenizedText.of(text)
    has_query = asks_a_query(tokens_of(tokenized, context))
    if names and not has_query:
        tokenized = strip_qualifiers(tokenized, names, context.schema)
    flat = shallow(tokenized, context.table)
    if queries and (has_query or asks_a_query(flat.tokens)):
        expression = prevent_alias(with_fixed_clock(flat, context), context.table)
        return Condition(tokenized.text, Unknown(), False, expression, alias=names[-1] if names else None, asks=True)
    fixed = check_and_fix_clock(flat, context)
    expression = prevent_alias(fixed, context.table)
    reading = reading_of(fixed.text, context)
    computation = reading.computation
    if reading.syntax is None or unknown_names(reading.syntax, context.schema):
        return Condition(tokenized.text, Unknown(), row_local=False, expression=expression, computation=computation)
    called, usable = calls(fixed.tokens), reading.for_skipping(context)
    is_plain = called <= DETERMINISTIC and not has_window(fixed.tokens)
    needed = (called if is_plain else frozenset()) | called_functions(computation) | usable.called
    is_own = not needed or context.is_builtin(needed)  # one question for all, since a query of Spark takes time
    computation, predicate = computation if is_own else HIDDEN, usable.choose_predicate(is_own=is_own)
    columns = find_columns(fixed.tokens, context.schema)
    return Condition(tokenized.text, predicate, is_plain and is_own, expression, columns, computation=computation)


def assignment(text: str | TokenizedText, context: Context, names: tuple[str, ...] = ()) -> ComputedExpression:
    """Parse a value to be assigned, with the clock fixed; it may depend on its own row only. ``names`` as for
    `condition`.

    Raises:
        InvalidCondition: it is empty, or holds more than one statement. UnreadableExpression: it ends with AND or OR.
        NotBuilt: it holds a subquery or a window.
    """
    tokenized = TokenizedText.of(text)
    if names:
        tokenized = strip_qualifiers(tokenized, names, context.schema)
    fixed = check_and_fix_clock(shallow(tokenized, context.table), context)
    if has_window(fixed.tokens):
        what = f"a window in the assignment {tokenized.text}"
        raise NotBuilt(what=what, instead="Compute it first, and join the result.")
    return ComputedExpression(prevent_alias(fixed, context.table), computation_of(fixed.text, context))
