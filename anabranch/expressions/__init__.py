"""SQL text: what can be known of an expression before any row is read.

The one room that knows sqlglot. It never evaluates anything and never changes what Spark is asked, with one exception:
``current_timestamp`` and its like are fixed to one value when a command starts. Guarantee: what it says of an
expression holds whatever Spark makes of it; where a text could mean something else to Spark (another session setting, a
function of that name registered by the user), it says that nothing is known.
"""

from __future__ import annotations

from anabranch.errors import NotBuilt
from anabranch.expressions.context import Context
from anabranch.expressions.depth import shallow
from anabranch.expressions.exact import exact_literal, exact_predicate
from anabranch.expressions.merge_expressions import parameters_of, understood_merge
from anabranch.expressions.printed_columns import check_assigned, column_condition
from anabranch.expressions.sides import Sides, assigned, evolved_by
from anabranch.expressions.tokens import (
    DETERMINISTIC,
    DIALECT,
    asks_a_query,
    calls,
    fixed,
    has_window,
    mentioned,
    tokens_of,
    with_fixed_clock,
)
from anabranch.expressions.trees import columns_of, conjuncts, known_tree, parsed, predicate_of
from anabranch.protocol.predicates import Condition, Unknown

__all__ = [
    "Context",
    "Sides",
    "assigned",
    "assignment",
    "check_assigned",
    "column_condition",
    "condition",
    "conjuncts",
    "evolved_by",
    "exact_literal",
    "exact_predicate",
    "parameters_of",
    "understood_merge",
]


def condition(text: str, context: Context, *, queries: bool = False) -> Condition:
    """A condition in SQL, with what can be known of it: nothing, where it may hold ``queries`` and does.

    Raises:
        InvalidCondition: it is empty, or holds more than one statement.
        NotBuilt: it holds a subquery, and may not.
    """
    given, text = text, shallow(text, context.table, DIALECT)
    tokens = tokens_of(text, context)
    if queries and asks_a_query(tokens):
        return Condition(given, Unknown(), False, with_fixed_clock(text, tokens, context), asks=True)
    fixed_text = fixed(text, context)
    tree, tokens = parsed(fixed_text), tokens_of(fixed_text, context)
    columns = None if tree is None else columns_of(tree, context.schema)
    if tree is None or columns is None:
        return Condition(text=given, predicate=Unknown(), row_local=False, expression=fixed_text, columns=None)
    called = calls(tokens)
    row_local = called <= DETERMINISTIC and not has_window(tokens) and (not called or context.is_builtin(called))
    predicate = predicate_of(known_tree(fixed_text, context), context)
    columns |= mentioned(tokens, context.schema)
    return Condition(text=given, predicate=predicate, row_local=row_local, expression=fixed_text, columns=columns)


def assignment(text: str, context: Context) -> str:
    """A value to be assigned, in SQL, with the clock fixed; it may depend on its own row only.

    Raises:
        InvalidCondition: it is empty, or holds more than one statement.
        NotBuilt: it holds a subquery or a window.
    """
    fixed_text = fixed(shallow(text, context.table, DIALECT), context)
    if has_window(tokens_of(fixed_text, context)):
        raise NotBuilt(what=f"a window in the assignment {text}", instead="Compute it first, and join the result.")
    return fixed_text
