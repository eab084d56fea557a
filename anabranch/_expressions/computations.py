"""Parses SQL text in a session: a tree over a table's columns that calls only Spark's built-in functions, and the
predicate that file skipping may use.

Guarantee: a text that Spark could read in another way, by a setting or because a function was registered under a name
that it calls, is computed by Spark, and rules out no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch._expressions.context import Context
from anabranch._protocol.expressions.computation import Computation, column_of, computation_of_syntax, syntax_over
from anabranch._protocol.expressions.instants import is_fixed
from anabranch._protocol.expressions.lexer import ParseError, without_comments
from anabranch._protocol.expressions.resolving import Columns, Scope
from anabranch._protocol.expressions.skipping import called_functions as called_by_skipping
from anabranch._protocol.expressions.skipping import predicate_of
from anabranch._protocol.expressions.syntax import Interval, Lambda, Literal, Name, Operation, Syntax, all_parts
from anabranch._protocol.expressions.terms import Named, of_table
from anabranch._protocol.expressions.tree import Expression, SparkOnly, functions_of
from anabranch._protocol.predicates import Predicate, Unknown
from anabranch._protocol.schema.types import Struct

_NOTHING = Unknown()
HIDDEN = Computation(SparkOnly("the session has a function of its own under a name that is called"))
"""The computation of a text that calls a function which the session has replaced."""


@dataclass(frozen=True)
class SkippingPredicate:
    """What skipping can use of a condition.

    Attributes:
        predicate: used if each function of ``called`` is Spark's own.
        otherwise: used if one is not.
        called: the functions on which the choice depends.
    """

    predicate: Predicate = _NOTHING
    otherwise: Predicate = _NOTHING
    called: frozenset[str] = frozenset()

    def choose_predicate(self, *, is_own: bool) -> Predicate:
        """The predicate for a session where every called function is Spark's own, or where one is not."""
        return self.predicate if is_own else self.otherwise


def analyze_for_skipping(tree: Expression, context: Context, named: Named = of_table) -> SkippingPredicate:
    """What skipping can use of a tree; ``named`` resolves its columns."""
    predicate, called = predicate_of(tree, context.tzinfo, named), called_by_skipping(tree)
    otherwise = predicate_of(tree, context.tzinfo, named, calls=False) if called else predicate
    return SkippingPredicate(predicate, otherwise, called if otherwise != predicate else frozenset())


@dataclass(frozen=True)
class Reading:
    """A parsed text over a table's columns.

    Attributes:
        text: without its comments.
        computation: valid if each function that it calls (`called_functions`) is Spark's own.
        syntax: None where the text is not understood.
    """

    text: str
    computation: Computation
    syntax: Syntax | None = None

    def for_skipping(self, context: Context, named: Named = of_table) -> SkippingPredicate:
        """What skipping can use of it; ``named`` as for `analyze_for_skipping`."""
        return analyze_for_skipping(self.computation.tree, context, named) if self.ends_alike else SkippingPredicate()

    @property
    def ends_alike(self) -> bool:
        """Whether each literal ends at the same place in every session: none holds a backslash."""
        if "\\" not in self.text or self.syntax is None:
            return self.syntax is not None
        parts = (part for part in all_parts(self.syntax) if isinstance(part, Interval | Literal))
        return not any("\\" in self.text[part.start : part.stop] for part in parts)


def reading_of(text: str, context: Context, columns: Columns | None = None) -> Reading:
    """Parse a text; names are resolved in ``columns``, or else in the table's columns."""
    bare = without_comments(text)
    try:
        syntax = syntax_over(text, context.schema)
    except ParseError as error:
        return Reading(bare, Computation(SparkOnly(f"{error.found}: {error.reason}")))
    return Reading(bare, resolve_computation(syntax, context, columns), syntax)


def resolve_computation(syntax: Syntax, context: Context, columns: Columns | None = None) -> Computation:
    """The computation of a parsed text; ``columns`` as for `reading_of`."""
    zone = context.tzinfo if is_fixed(context.tzinfo) else None
    named = columns or (lambda parts: column_of(parts, context.schema))
    return computation_of_syntax(
        syntax, Scope(named, zone, context.altered, context.timestamp, context.has_usual_quotes)
    )


def computation_of(text: str, context: Context) -> Computation:
    """The computation of an expression; it has a reason where Spark has to compute it.

    Example:
        >>> computation_of("lower(name) = 'x'", context).reason is None
        True
    """
    computation = reading_of(text, context).computation
    called = called_functions(computation)
    return computation if not called or context.is_builtin(called) else HIDDEN


def resolve_in_session(reading: Reading, context: Context) -> tuple[Predicate, Computation]:
    """The predicate that skipping can use of a condition, and its computation; the session is queried at most once."""
    usable = reading.for_skipping(context)
    called = usable.called | called_functions(reading.computation)
    is_own = not called or context.is_builtin(called)
    return usable.choose_predicate(is_own=is_own), reading.computation if is_own else HIDDEN


def called_functions(computation: Computation) -> frozenset[str]:
    """The functions that have to be Spark's own for the computation to run in Arrow; none where Spark runs it."""
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
    trees = (resolve_computation(part, context).tree for part in parts)
    usable = [analyze_for_skipping(tree, context) if reading.ends_alike else SkippingPredicate() for tree in trees]
    return [
        (reading.text[part.start : part.stop], predicate)
        for part, predicate in zip(parts, _resolve_predicates(usable, context), strict=True)
    ]


def _resolve_predicates(facts: list[SkippingPredicate], context: Context) -> list[Predicate]:
    """The predicates that hold in a session, which is queried once, if at all."""
    called = frozenset[str]().union(*(fact.called for fact in facts))
    is_own = not called or context.is_builtin(called)
    return [fact.choose_predicate(is_own=is_own) for fact in facts]


def split_conjuncts(syntax: Syntax) -> Iterator[Syntax]:
    """The operands that AND joins at the top of a condition."""
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
    """The names of columns, in order; without the arguments of lambdas."""
    nodes = list(all_parts(syntax))
    bound = {argument.lower() for node in nodes if isinstance(node, Lambda) for argument in node.arguments}
    names = sorted((node for node in nodes if isinstance(node, Name)), key=lambda name: name.start)
    return [name.parts for name in names if name.parts[0].lower() not in bound]


def _is_unknown(parts: tuple[str, ...], schema: Struct) -> bool:
    field = schema.find(parts[0])
    return field is None or (len(parts) > 1 and isinstance(field.type, str))
