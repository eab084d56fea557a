"""SQL text: what can be known of an expression before any row is read.

The room that cuts texts into sqlglot's words; what they say, `protocol.expressions` reads. It never evaluates anything
and never changes what Spark is asked, with one exception: ``current_timestamp`` and its like are fixed to one value
when a command starts. Guarantee: what it says of an expression holds whatever Spark makes of it; where a text could
mean something else to Spark (another session setting, a function of that name registered by the user), it says that
nothing is known.
"""

from __future__ import annotations

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
from anabranch._expressions.endings import prevent_alias
from anabranch._expressions.merge_expressions import analyze_merge, check_order, parameters_of
from anabranch._expressions.printed_columns import check_assigned, column_condition, column_value
from anabranch._expressions.sides import Sides, evolve_by_clause, resolve_assignments
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
from anabranch._expressions.unusable import unusable
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.storing import Computed
from anabranch.errors import NotBuilt

__all__ = [
    "Context",
    "Sides",
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
    "unusable",
]


def condition(
    text: str | TokenizedText, context: Context, *, queries: bool = False, names: tuple[str, ...] = ()
) -> Condition:
    """A condition in SQL, with what can be known of it: nothing, where it may hold ``queries`` and does.

    Args:
        names: what the text may put before the table's columns (`strip_qualifiers`).

    Raises:
        InvalidCondition: it is empty, or holds more than one statement. UnreadableExpression: it ends by AND or OR.
        NotBuilt: it holds a subquery, and may not.
    """
    given = TokenizedText.of(text)
    asks = asks_a_query(tokens_of(given, context))
    if names and not asks:
        given = strip_qualifiers(given, names, context.schema)
    flat = shallow(given, context.table)
    if queries and (asks or asks_a_query(flat.tokens)):
        expression = prevent_alias(with_fixed_clock(flat, context), context.table)
        return Condition(given.text, Unknown(), False, expression, alias=names[-1] if names else None, asks=True)
    read = check_and_fix_clock(flat, context)
    expression = prevent_alias(read, context.table)
    reading = reading_of(read.text, context)
    computation = reading.computation
    if reading.syntax is None or unknown_names(reading.syntax, context.schema):
        return Condition(given.text, Unknown(), row_local=False, expression=expression, computation=computation)
    called, said = calls(read.tokens), reading.for_skipping(context)
    is_plain = called <= DETERMINISTIC and not has_window(read.tokens)
    asked = (called if is_plain else frozenset()) | called_functions(computation) | said.called
    is_own = not asked or context.is_builtin(asked)  # one question for all, since Spark takes its time
    computation, predicate = computation if is_own else HIDDEN, said.choose_predicate(is_own=is_own)
    columns = find_columns(read.tokens, context.schema)
    return Condition(given.text, predicate, is_plain and is_own, expression, columns, computation=computation)


def assignment(text: str | TokenizedText, context: Context, names: tuple[str, ...] = ()) -> Computed:
    """A value to be assigned, in SQL, with the clock fixed, and how it is computed; it may depend on its own row only.
    ``names`` as for `condition`.

    Raises:
        InvalidCondition: it is empty, or holds more than one statement. UnreadableExpression: it ends by AND or OR.
        NotBuilt: it holds a subquery or a window.
    """
    given = TokenizedText.of(text)
    if names:
        given = strip_qualifiers(given, names, context.schema)
    read = check_and_fix_clock(shallow(given, context.table), context)
    if has_window(read.tokens):
        what = f"a window in the assignment {given.text}"
        raise NotBuilt(what=what, instead="Compute it first, and join the result.")
    return Computed(prevent_alias(read, context.table), computation_of(read.text, context))
