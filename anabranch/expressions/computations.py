"""What a text is as a computation in a session: its tree over a table's columns, with Spark's own functions only.

Guarantee: a text that Spark could read in another way, by a setting or since a function was registered under the name
that it calls, is computed by Spark.
"""

from __future__ import annotations

from anabranch.expressions.context import Context
from anabranch.expressions.instants import is_fixed
from anabranch.protocol.expressions.computation import Computation, computation_over
from anabranch.protocol.expressions.tree import Foreign, functions_of


def computation_of(text: str, context: Context) -> Computation:
    """The computation of an expression; one with a reason where Spark has to be asked.

    Example:
        >>> computation_of("lower(name) = 'x'", context).reason is None
        True
    """
    found = computation_over(text, context.schema, context.tzinfo if is_fixed(context.tzinfo) else None)
    called = functions_of(found.tree) if found.reason is None else frozenset()
    if called and not context.is_builtin(called):
        return Computation(Foreign("the session has a function of its own under a name that is called"))
    return found
