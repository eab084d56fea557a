"""What a text is in a session: its tree over a table's columns, with Spark's own functions only, and what skipping may
use of it.

Guarantee: a text that Spark could read in another way, by a setting or since a function was registered under the name
that it calls, is computed by Spark, and rules out no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch._expressions.context import Context
from anabranch._protocol.expressions.computation import Computation, column_of, computation_of_syntax, syntax_over
from anabranch._protocol.expressions.instants import is_fixed
from anabranch._protocol.expressions.resolving import Columns, Scope
from anabranch._protocol.expressions.skipping import Named, of_table, predicate_of
from anabranch._protocol.expressions.skipping import called_functions as called_by_skipping
from anabranch._protocol.expressions.syntax import Interval, Lambda, Literal, Name, Operation, Syntax, all_parts
from anabranch._protocol.expressions.tree import Expression, Foreign, functions_of
from anabranch._protocol.expressions.words import NotUnderstood, without_comments
from anabranch._protocol.predicates import Predicate, Unknown
from anabranch._protocol.schema.types import Struct

_NOTHING = Unknown()
HIDDEN = Computation(Foreign("the session has a function of its own under a name that is called"))
"""Of a text that calls such a function."""


@dataclass(frozen=True)
class Said:
    """What skipping can use of a condition.

    Attributes:
        predicate: that, if each function of ``called`` is Spark's own.
        otherwise: the same, if one is not.
        called: none where that makes no difference.
    """

    predicate: Predicate = _NOTHING
    otherwise: Predicate = _NOTHING
    called: frozenset[str] = frozenset()

    def choose_predicate(self, *, is_own: bool) -> Predicate:
        """What is said in a session where all that is called is Spark's own, or is not."""
        return self.predicate if is_own else self.otherwise


def analyze_for_skipping(tree: Expression, context: Context, named: Named = of_table) -> Said:
    """What skipping can use of a tree; ``named`` says whose columns its are."""
    predicate, called = predicate_of(tree, context.tzinfo, named), called_by_skipping(tree)
    otherwise = predicate_of(tree, context.tzinfo, named, calls=False) if called else predicate
    return Said(predicate, otherwise, called if otherwise != predicate else frozenset())


@dataclass(frozen=True)
class Reading:
    """A text over a table's columns, read once.

    Attributes:
        text: without its comments.
        computation: what it is, if each function that it calls (`called_functions`) is Spark's own.
        syntax: None where it is not understood.
    """

    text: str
    computation: Computation
    syntax: Syntax | None = None

    def for_skipping(self, context: Context, named: Named = of_table) -> Said:
        """What skipping can use of it; ``named`` as for `analyze_for_skipping`."""
        return analyze_for_skipping(self.computation.tree, context, named) if self.ends_alike else Said()

    @property
    def ends_alike(self) -> bool:
        """Whether each literal of it ends at the same place in every session: none holds a backslash."""
        if "\\" not in self.text or self.syntax is None:
            return self.syntax is not None
        parts = (each for each in all_parts(self.syntax) if isinstance(each, Interval | Literal))
        return not any("\\" in self.text[each.start : each.stop] for each in parts)


def reading_of(text: str, context: Context, columns: Columns | None = None) -> Reading:
    """A text as it is read; names mean a table's columns, or what ``columns`` says."""
    bare = without_comments(text)
    try:
        syntax = syntax_over(text, context.schema)
    except NotUnderstood as error:
        return Reading(bare, Computation(Foreign(f"{error.found}: {error.reason}")))
    return Reading(bare, resolve_computation(syntax, context, columns), syntax)


def resolve_computation(syntax: Syntax, context: Context, columns: Columns | None = None) -> Computation:
    """The computation of what was read; ``columns`` as for `reading_of`."""
    zone = context.tzinfo if is_fixed(context.tzinfo) else None
    named = columns or (lambda parts: column_of(parts, context.schema))
    return computation_of_syntax(syntax, Scope(named, zone, context.altered, context.timestamp, context.has_session))


def computation_of(text: str, context: Context) -> Computation:
    """The computation of an expression; one with a reason where Spark has to be asked.

    Example:
        >>> computation_of("lower(name) = 'x'", context).reason is None
        True
    """
    found = reading_of(text, context).computation
    called = called_functions(found)
    return found if not called or context.is_builtin(called) else HIDDEN


def own(reading: Reading, context: Context) -> tuple[Predicate, Computation]:
    """What skipping can use of a condition in a session, which is asked at most once, and its computation there."""
    said = reading.for_skipping(context)
    called = said.called | called_functions(reading.computation)
    is_own = not called or context.is_builtin(called)
    return said.choose_predicate(is_own=is_own), reading.computation if is_own else HIDDEN


def called_functions(computation: Computation) -> frozenset[str]:
    """The functions that have to be Spark's own for it to be computed here; none where it is not."""
    return functions_of(computation.tree) if computation.reason is None else frozenset()


# -- conditions --------------------------------------------------------------------------------------------------------


def predicate_in(text: str, context: Context, columns: Columns | None = None) -> Predicate:
    """What skipping can use of a condition; ``columns`` as for `reading_of`."""
    return _resolve_predicates([reading_of(text, context, columns).for_skipping(context)], context)[0]


def conjuncts(text: str, context: Context) -> list[tuple[str, Predicate]]:
    """The parts of a condition that AND joins, each with what skipping can use of it; whole where it cannot be read."""
    reading = reading_of(text, context)
    if reading.syntax is None:
        return [(text, Unknown())]
    parts = list(split_conjuncts(reading.syntax))
    trees = (resolve_computation(each, context).tree for each in parts)
    said = [analyze_for_skipping(each, context) if reading.ends_alike else Said() for each in trees]
    return [
        (reading.text[each.start : each.stop], known)
        for each, known in zip(parts, _resolve_predicates(said, context), strict=True)
    ]


def _resolve_predicates(said: list[Said], context: Context) -> list[Predicate]:
    """What is said in a session, which is asked once, if at all."""
    called = frozenset[str]().union(*(each.called for each in said))
    is_own = not called or context.is_builtin(called)
    return [each.choose_predicate(is_own=is_own) for each in said]


def split_conjuncts(syntax: Syntax) -> Iterator[Syntax]:
    """The parts of a condition that all have to hold: those that AND joins, however many."""
    left = [syntax]
    while left:
        node = left.pop()
        if isinstance(node, Operation) and node.operator == "and":
            left += reversed(node.operands)
        else:
            yield node


def unknown_names(syntax: Syntax, schema: Struct) -> tuple[str, ...]:
    """The names that are no columns, as they are written, each once and in order."""
    return tuple(dict.fromkeys(".".join(parts) for parts in names_in(syntax) if _is_unknown(parts, schema)))


def names_in(syntax: Syntax) -> list[tuple[str, ...]]:
    """The names that stand for columns, in order; not those of lambdas' arguments."""
    nodes = list(all_parts(syntax))
    bound = {name.lower() for each in nodes if isinstance(each, Lambda) for name in each.arguments}
    names = sorted((each for each in nodes if isinstance(each, Name)), key=lambda each: each.start)
    return [each.parts for each in names if each.parts[0].lower() not in bound]


def _is_unknown(parts: tuple[str, ...], schema: Struct) -> bool:
    known = schema.find(parts[0])
    return known is None or (len(parts) > 1 and isinstance(known.type, str))
