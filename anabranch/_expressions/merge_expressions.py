"""Merges: what can be known of a MERGE's expressions before any row is read.

Knows texts by their trees and Columns by their prints, over the columns of both sides. Guarantee: the predicate that it
gives is TRUE for every row of the table that can match anything; what it calls row-local is decided by one pair of rows
alone, and is the same each time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch._expressions.computations import (
    HIDDEN,
    Said,
    called_functions,
    reading_of,
    resolve_computation,
    split_conjuncts,
)
from anabranch._expressions.context import Context
from anabranch._expressions.depth import shallow
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.endings import prevent_alias
from anabranch._expressions.printed_columns import (
    check_assigned,
    column_reading,
    expression_text,
    is_row_local,
    split_dotted,
)
from anabranch._expressions.sides import Reading, Sides
from anabranch._expressions.tokens import BARE_FUNCTIONS, CLOCKS, DETERMINISTIC, calls, check_and_fix_clock, has_window
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions import syntax as S
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.merges import NOTHING_MORE, SEEN, UNREAD, Clause, Matching, SourceColumn, When, name_in_table
from anabranch._protocol.schema.assignments import leaves, map_values
from anabranch._protocol.storing import Computed
from anabranch.errors import InvalidOption, NotBuilt

_NOTHING = Said()


@dataclass(frozen=True)
class _Read:
    """An expression as the engine gets it, with what is known of it.

    Attributes:
        called: what has to mean Spark's own for it to be decided row by row; None where it is not so decided anyway.
        said: what skipping of the table's files can use of it.
        syntax: how a text was read.
        computation: how it is computed over pairs of rows.
    """

    expression: Any
    called: frozenset[str] | None
    said: Said = _NOTHING
    syntax: S.Syntax | None = None
    computation: Computation = UNREAD

    def for_engine(self, *, is_own: bool) -> Any:
        """The expression, and how it is computed if every function is Spark's own."""
        if isinstance(self.expression, SourceColumn):
            return self.expression
        return Computed(self.expression, self.computation if is_own else HIDDEN)


def check_order(clauses: Sequence[Any]) -> None:
    """Raises InvalidOption: there is no clause, or one that is not the last of its kind has no condition."""
    if not clauses:
        reason = "There must be at least one WHEN clause in a MERGE statement."
        raise InvalidOption(option="when", value="empty", reason=reason)
    last = {asked.when: asked for asked in clauses}
    for asked in clauses:
        if asked.condition is None and asked is not last[asked.when]:
            kind = asked.when.upper()
            reason = f"of several {kind} clauses, only the last {kind} clause can omit the condition."
            raise InvalidOption(option="condition", value=None, reason=reason)


def analyze_merge(on: Any, clauses: Sequence[Clause], sides: Sides, context: Context) -> tuple[Condition, Matching]:
    """What a MERGE's condition says of the table's rows alone, and how rows are matched, with every clock fixed.

    Args:
        on: SQL text or a Column.
        clauses: theirs are, too; the columns of their values are the table's own.

    Raises:
        InvalidCondition: a text is empty, or holds more than one statement.
        UnreadableExpression: one ends by AND or OR.
        NotBuilt: an expression holds a subquery or a window.
    """
    first = _read(on, sides, context)
    read = [_read_clause(each, sides, context) for each in clauses]
    reads = [first, *(read for each in read for read in _reads_of(each))]
    row_local, is_own = _are_row_local(reads, first.said, context)
    keys, rest = _keys_and_rest(first, sides, context)
    matching = Matching(
        first.expression,
        tuple(_for_engine(each, is_own=is_own) for each in read),
        sides.target,
        sides.source,
        keys,
        rest if is_own else HIDDEN,
        evolves=sides.evolved is not None,
    )
    predicate = first.said.choose_predicate(is_own=is_own)
    return Condition(expression_text(on), predicate, row_local, first.expression, None), matching


def _read_clause(clause: Clause, sides: Sides, context: Context) -> Clause:
    """A clause whose expressions are read."""
    condition = None if clause.condition is None else _read(clause.condition, sides, context, clause.when)
    values = map_values(clause.values, lambda value: _read(value, sides, context, clause.when))
    return replace(clause, condition=condition, values=values)


def _reads_of(clause: Clause) -> list[_Read]:
    return [*(read for _, read in leaves(clause.values)), *([clause.condition] if clause.condition else [])]


def _for_engine(clause: Clause, *, is_own: bool) -> Clause:
    condition = clause.condition and clause.condition.for_engine(is_own=is_own)
    return replace(
        clause, condition=condition, values=map_values(clause.values, lambda read: read.for_engine(is_own=is_own))
    )


def parameters_of(where: Condition, matching: Matching) -> dict[str, str]:
    """What the history shows of a MERGE, in Delta's names and form: JSON texts."""
    return {
        "predicate": json.dumps([where.text], ensure_ascii=False),
        "matchedPredicates": _predicates_json(matching, "matched"),
        "notMatchedPredicates": _predicates_json(matching, "not matched"),
        "notMatchedBySourcePredicates": _predicates_json(matching, "not matched by source"),
    }


def _predicates_json(matching: Matching, when: When) -> str:
    found = []
    for clause in matching.of(when):
        predicate = {} if clause.condition is None else {"predicate": expression_text(clause.condition)}
        found.append({**predicate, "actionType": clause.action})
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _are_row_local(reads: Sequence[_Read], said: Said, context: Context) -> tuple[bool, bool]:
    """Whether every expression is decided row by row; and whether each function that is called by one that is so
    decided, or computed here, or in what skipping uses, is Spark's own. The session is asked once, since that takes its
    time.
    """
    called = [read.called for read in reads]
    row_local = all(names is not None and names <= DETERMINISTIC for names in called)
    asked = said.called.union(*(names for names in called if names and row_local), *(map(_called_functions, reads)))
    is_own = not asked or context.is_builtin(asked)
    return row_local and is_own, is_own


def _called_functions(read: _Read) -> frozenset[str]:
    return called_functions(read.computation)


def _read(expression: Any, sides: Sides, context: Context, when: When = "matched") -> _Read:
    if isinstance(expression, SourceColumn):
        return _Read(expression, frozenset())
    if isinstance(expression, str):
        return _read_text(expression, sides, context, when)
    check_assigned(expression)
    context = replace(context, schema=sides.all_columns)
    reading = column_reading(
        expression, context, known=split_dotted, columns=lambda parts: sides.column(parts, SEEN[when])
    )
    is_known = reading.computation.reason is None
    called = (
        frozenset[str]() if is_row_local(expression) else called_functions(reading.computation) if is_known else None
    )
    return _Read(expression, called, reading.for_skipping(context, name_in_table), reading.syntax, reading.computation)


def _read_text(text: str, sides: Sides, context: Context, when: When) -> _Read:
    context = replace(context, schema=sides.all_columns)
    given = check_and_fix_clock(shallow(TokenizedText(text), context.table), context)
    if has_window(given.tokens):
        raise NotBuilt(what=f"a window in {text}", instead="Compute it first, and merge the result.")
    expression = prevent_alias(given, context.table)
    reading = reading_of(given.text, context, lambda parts: sides.column(parts, SEEN[when]))
    if reading.syntax is None:
        return _Read(expression, None)
    names = [each for each in S.all_parts(reading.syntax) if isinstance(each, S.Name)]
    called = calls(given.tokens) if all(sides.readings(each.parts) for each in names) else None
    return _Read(expression, called, reading.for_skipping(context, name_in_table), reading.syntax, reading.computation)


def _keys_and_rest(on: _Read, sides: Sides, context: Context) -> tuple[tuple[tuple[str, str], ...], Computation]:
    """The table's and the source's columns that ON requires to be equal, where each name can mean nothing else; and
    what it requires besides.
    """
    keys, rest = list[tuple[str, str]](), list[S.Syntax]()
    for part in () if on.syntax is None else split_conjuncts(on.syntax):
        pair = _pair([sides.readings(parts) for parts in _equal_names(part)])
        keys += [pair] if pair is not None else []
        rest += [part] if pair is None else []
    if len(rest) > 1:
        rest = [S.Operation("and", tuple(rest))]
    if rest:
        return tuple(keys), resolve_computation(rest[0], context, lambda parts: sides.column(parts, SEEN["matched"]))
    return tuple(keys), NOTHING_MORE if keys else UNREAD


def _equal_names(part: S.Syntax) -> list[Sequence[str]]:
    """The two names that a part requires to be equal."""
    match part:
        case S.Operation("=", (S.Name() as one, S.Name() as other)) if not any(map(_may_be_called, (one, other))):
            return [one.parts, other.parts]
    return []


def _may_be_called(name: S.Name) -> bool:
    return name.quoted == (False,) and name.parts[0].lower() in BARE_FUNCTIONS | CLOCKS.keys()


def _pair(readings: list[list[Reading]]) -> tuple[str, str] | None:
    """A column of each side, whichever stands first."""
    sides = {each[0].side: each[0] for each in readings if len(each) == 1 and not each[0].nested}
    return (sides["target"].column, sides["source"].column) if len(sides) == 2 else None
