"""What a text is as a computation in a session: its tree over a table's columns, with Spark's own functions only.

Guarantee: a text that Spark could read in another way, by a setting or since a function was registered under the name
that it calls, is computed by Spark.
"""

from __future__ import annotations

import datetime as dt

from anabranch.expressions.context import Context
from anabranch.expressions.instants import is_fixed
from anabranch.protocol.expressions.computation import Computation, computation_over
from anabranch.protocol.expressions.tree import Foreign, functions_of

HIDDEN = Computation(Foreign("the session has a function of its own under a name that is called"))
"""Of a text that calls such a function."""


def computation_of(text: str, context: Context) -> Computation:
    """The computation of an expression; one with a reason where Spark has to be asked.

    Example:
        >>> computation_of("lower(name) = 'x'", context).reason is None
        True
    """
    found = computation_in(text, context)
    called = called_in(found)
    return found if not called or context.is_builtin(called) else HIDDEN


def computation_in(text: str, context: Context) -> Computation:
    """The same, if each function that it calls (`called_in`) is Spark's own."""
    return computation_over(text, context.schema, fixed_zone(context))


def fixed_zone(context: Context) -> dt.tzinfo | None:
    """The session's time zone, if its clocks never change."""
    return context.tzinfo if is_fixed(context.tzinfo) else None


def called_in(computation: Computation) -> frozenset[str]:
    """The functions that have to be Spark's own for it to be computed here; none where it is not."""
    return functions_of(computation.tree) if computation.reason is None else frozenset()
