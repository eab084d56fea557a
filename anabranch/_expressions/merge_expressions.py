"""Merges: what can be derived from a MERGE's expressions before any row is read.

Knows texts by their trees and Columns by their printed form, over the columns of both sides. Guarantee: the predicate
is TRUE for every row of the table that can match anything; an expression counts as row-local only if one pair of rows
decides it, with the same result each time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch._expressions.aliases import prevent_alias
from anabranch._expressions.computations import (
    HIDDEN,
    SkippingPredicate,
    called_functions,
    reading_of,
    resolve_computation,
    split_conjuncts,
)
from anabranch._expressions.context import Context
from anabranch._expressions.depth import shallow
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.printed_columns import (
    check_assigned,
    column_reading,
    expression_text,
    is_row_local,
    split_dotted,
)
from anabranch._expressions.sides import MergeColumns, Reading
from anabranch._expressions.tokens import BARE_FUNCTIONS, CLOCKS, DETERMINISTIC, calls, check_and_fix_clock, has_window
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions import syntax as S
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.merges import NOTHING_MORE, SEEN, UNREAD, Clause, MergePlan, SourceColumn, When, name_in_table
from anabranch._protocol.schema.assignments import leaves, map_values
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch.errors import InvalidOption, NotBuilt

_NOTHING = SkippingPredicate()
_EQUAL_NULL = "equal_null"


@dataclass(frozen=True)
class _ParsedExpression:
    """An expression as the engine gets it, with the results of its analysis.

    Attributes:
        called: the functions that have to be Spark's own for it to be row-local; None where it is not row-local.
        skipping: what skipping of the table's files can use of it.
        syntax: the parsed text.
        computation: over pairs of rows.
    """

    expression: Any
    called: frozenset[str] | None
    skipping: SkippingPredicate = _NOTHING
    syntax: S.Syntax | None = None
    computation: Computation = UNREAD

    def for_engine(self, *, is_own: bool) -> Any:
        """The expression, with its computation if every function is Spark's own."""
        if isinstance(self.expression, SourceColumn):
            return self.expression
        return ComputedExpression(self.expression, self.computation if is_own else HIDDEN)


def check_order(clauses: Sequence[Any]) -> None:
    """Raises InvalidOption: there is no clause, or one that is not the last of its kind has no condition."""
    if not clauses:
        reason = "There must be at least one WHEN clause in a MERGE statement."
        raise InvalidOption(option="when", value="empty", reason=reason)
    last = {clause.when: clause for clause in clauses}
    for clause in clauses:
        if clause.condition is None and clause is not last[clause.when]:
            kind = clause.when.upper()
            reason = f"of several {kind} clauses, only the last {kind} clause can omit the condition."
            raise InvalidOption(option="condition", value=None, reason=reason)


def analyze_merge(
    on: Any, clauses: Sequence[Clause], sides: MergeColumns, context: Context
) -> tuple[Condition, MergePlan]:
    """The predicate of a MERGE's condition on the table's rows alone, and its matching, with every clock fixed.

    Args:
        on: SQL text or a Column.
        clauses: conditions are, too; the columns of their values are the table's own.

    Raises:
        InvalidCondition: a text is empty, or holds more than one statement.
        UnreadableExpression: a text ends with AND or OR.
        NotBuilt: an expression holds a subquery or a window.
    """
    first = _parse_expression(on, sides, context)
    parsed = [_parse_clause(clause, sides, context) for clause in clauses]
    expressions = [first, *(r for clause in parsed for r in _expressions_of(clause))]
    on_keys = _split_keys(first, sides, context)
    row_local, is_own = _check_row_local(expressions, first.skipping.called | on_keys.called, context)
    is_trusted = is_own or not on_keys.called
    matching = MergePlan(
        first.expression,
        tuple(_for_engine(clause, is_own=is_own) for clause in parsed),
        sides.target,
        sides.source,
        on_keys.pairs if is_trusted else (),
        on_keys.null_safe if is_trusted else frozenset(),
        on_keys.rest if is_own else HIDDEN,
        evolves=sides.evolved is not None,
    )
    predicate = first.skipping.choose_predicate(is_own=is_own)
    return Condition(expression_text(on), predicate, row_local, first.expression, None), matching


def _parse_clause(clause: Clause, sides: MergeColumns, context: Context) -> Clause:
    """A clause with parsed expressions."""
    condition = None if clause.condition is None else _parse_expression(clause.condition, sides, context, clause.when)
    values = map_values(clause.values, lambda value: _parse_expression(value, sides, context, clause.when))
    return replace(clause, condition=condition, values=values)


def _expressions_of(clause: Clause) -> list[_ParsedExpression]:
    return [*(read for _, read in leaves(clause.values)), *([clause.condition] if clause.condition else [])]


def _for_engine(clause: Clause, *, is_own: bool) -> Clause:
    condition = clause.condition and clause.condition.for_engine(is_own=is_own)
    return replace(
        clause, condition=condition, values=map_values(clause.values, lambda read: read.for_engine(is_own=is_own))
    )


def parameters_of(where: Condition, matching: MergePlan) -> dict[str, str]:
    """The parameters of a MERGE in the history, in Delta's names and form: JSON texts."""
    return {
        "predicate": json.dumps([where.text], ensure_ascii=False),
        "matchedPredicates": _predicates_json(matching, "matched"),
        "notMatchedPredicates": _predicates_json(matching, "not matched"),
        "notMatchedBySourcePredicates": _predicates_json(matching, "not matched by source"),
    }


def _predicates_json(matching: MergePlan, when: When) -> str:
    predicates = []
    for clause in matching.of(when):
        predicate = {} if clause.condition is None else {"predicate": expression_text(clause.condition)}
        predicates.append({**predicate, "actionType": clause.action})
    return json.dumps(predicates, ensure_ascii=False, separators=(",", ":"))


def _check_row_local(reads: Sequence[_ParsedExpression], used: frozenset[str], context: Context) -> tuple[bool, bool]:
    """Whether every expression is row-local; and whether each function that is ``used``, or that a row-local expression
    or a computation here needs, is Spark's own. The session is queried once, since each query takes time.
    """
    called = [read.called for read in reads]
    row_local = all(names is not None and names <= DETERMINISTIC for names in called)
    needed = used.union(*(names for names in called if names and row_local), *(map(_called_functions, reads)))
    is_own = not needed or context.is_builtin(needed)
    return row_local and is_own, is_own


def _called_functions(read: _ParsedExpression) -> frozenset[str]:
    return called_functions(read.computation)


def _parse_expression(
    expression: Any, sides: MergeColumns, context: Context, when: When = "matched"
) -> _ParsedExpression:
    if isinstance(expression, SourceColumn):
        return _ParsedExpression(expression, frozenset())
    if isinstance(expression, str):
        return _parse_text(expression, sides, context, when)
    check_assigned(expression)
    context = replace(context, schema=sides.all_columns)
    reading = column_reading(
        expression, context, known=split_dotted, columns=lambda parts: sides.column(parts, SEEN[when])
    )
    is_known = reading.computation.reason is None
    called = (
        frozenset[str]() if is_row_local(expression) else called_functions(reading.computation) if is_known else None
    )
    return _ParsedExpression(
        expression, called, reading.for_skipping(context, name_in_table), reading.syntax, reading.computation
    )


def _parse_text(text: str, sides: MergeColumns, context: Context, when: When) -> _ParsedExpression:
    context = replace(context, schema=sides.all_columns)
    tokenized = check_and_fix_clock(shallow(TokenizedText(text), context.table), context)
    if has_window(tokenized.tokens):
        raise NotBuilt(what=f"a window in {text}", instead="Compute it first, and merge the result.")
    expression = prevent_alias(tokenized, context.table)
    reading = reading_of(tokenized.text, context, lambda parts: sides.column(parts, SEEN[when]))
    if reading.syntax is None:
        return _ParsedExpression(expression, None)
    names = [part for part in S.all_parts(reading.syntax) if isinstance(part, S.Name)]
    called = calls(tokenized.tokens) if all(sides.readings(name.parts) for name in names) else None
    return _ParsedExpression(
        expression, called, reading.for_skipping(context, name_in_table), reading.syntax, reading.computation
    )


@dataclass(frozen=True)
class _Keys:
    """What ON requires.

    Attributes:
        pairs, null_safe, rest: as `MergePlan.keys`, `MergePlan.null_safe` and `MergePlan.rest`.
        called: the functions that have to be Spark's own for the pairs to be required.
    """

    pairs: tuple[tuple[str, str], ...]
    null_safe: frozenset[str]
    called: frozenset[str]
    rest: Computation


@dataclass(frozen=True)
class _Equality:
    """A part of ON that requires two names to be equal; by ``<=>`` if it is null-safe, which a function may spell."""

    names: tuple[S.Name, S.Name]
    null_safe: bool = False
    called: frozenset[str] = frozenset()


def _split_keys(on: _ParsedExpression, sides: MergeColumns, context: Context) -> _Keys:
    """The pairs of columns of table and source that ON requires to be equal, where each name is unambiguous; and the
    rest of its condition.
    """
    keys, rest = list[tuple[tuple[str, str], _Equality]](), list[S.Syntax]()
    for part in () if on.syntax is None else split_conjuncts(on.syntax):
        equality = _equality_in(part)
        pair = None if equality is None else _pair([sides.readings(name.parts) for name in equality.names])
        if equality is not None and pair is not None:
            keys.append((pair, equality))
        else:
            rest.append(part)
    null_safe = frozenset(ours for (ours, _), equality in keys if equality.null_safe)
    called = frozenset[str]().union(*(equality.called for _, equality in keys))
    return _Keys(tuple(pair for pair, _ in keys), null_safe, called, _rest_of(rest, bool(keys), sides, context))


def _rest_of(parts: Sequence[S.Syntax], has_keys: bool, sides: MergeColumns, context: Context) -> Computation:
    """The parts of ON that are no keys, joined by AND, over a pair of rows."""
    if not parts:
        return NOTHING_MORE if has_keys else UNREAD
    joined = parts[0] if len(parts) == 1 else S.Operation("and", tuple(parts))
    return resolve_computation(joined, context, lambda names: sides.column(names, SEEN["matched"]))


def _equality_in(part: S.Syntax) -> _Equality | None:
    """The equality of two names that a part of ON is; None if it is anything else."""
    match part:
        case S.Operation("=" | "<=>" as sign, (S.Name() as one, S.Name() as other)):
            found = _Equality((one, other), sign == "<=>")
        case S.Call(arguments=(S.Name() as one, S.Name() as other), words=()) if part.name == _EQUAL_NULL:
            found = _Equality((one, other), True, frozenset({_EQUAL_NULL}))
        case _:
            return None
    return None if any(map(_may_be_called, found.names)) else found


def _may_be_called(name: S.Name) -> bool:
    return name.quoted == (False,) and name.parts[0].lower() in BARE_FUNCTIONS | CLOCKS.keys()


def _pair(readings: list[list[Reading]]) -> tuple[str, str] | None:
    """The columns of target and source, in whichever order they are written."""
    sides = {
        candidates[0].side: candidates[0]
        for candidates in readings
        if len(candidates) == 1 and not candidates[0].nested
    }
    return (sides["target"].column, sides["source"].column) if len(sides) == 2 else None
