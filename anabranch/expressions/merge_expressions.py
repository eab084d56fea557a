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

from sqlglot import exp

from anabranch.errors import NotBuilt
from anabranch.expressions.computations import predicate_in
from anabranch.expressions.context import Context
from anabranch.expressions.depth import shallow
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.endings import unnamed
from anabranch.expressions.printed_columns import check_assigned, column_condition, equalities, printed
from anabranch.expressions.sides import Reading, Sides, name_parts
from anabranch.expressions.tokens import DETERMINISTIC, calls, fixed, has_window
from anabranch.expressions.trees import readable_tree
from anabranch.protocol.conditions import Condition
from anabranch.protocol.expressions.computation import column_of
from anabranch.protocol.expressions.tree import Expression
from anabranch.protocol.merges import Clause, Matching, SourceColumn, When
from anabranch.protocol.predicates import Predicate, Unknown
from anabranch.protocol.schema.assignments import leaves, mapped


@dataclass(frozen=True)
class _Read:
    """An expression as the engine gets it, with what is known of it.

    Attributes:
        called: what has to mean Spark's own for it to be decided row by row; None where it is not so decided anyway.
        tree: how a text was read.
        is_certain: whether Spark reads it just so.
    """

    expression: Any
    called: frozenset[str] | None
    predicate: Predicate
    tree: exp.Expr | None = None
    is_certain: bool = False


def understood_merge(on: Any, clauses: Sequence[Clause], sides: Sides, context: Context) -> tuple[Condition, Matching]:
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
    equated = _equated(on, first.tree, sides)
    keys = equated if first.is_certain else ()
    matching, reads = Matching(first.expression, (), sides.target, sides.source, equated, keys), [first]
    alone = len(keys) > 0 and len(keys) == len(_required(first.tree))
    matching = replace(matching, by_keys_alone=alone, evolves=sides.evolved is not None)
    for clause in clauses:
        condition = None if clause.condition is None else _read(clause.condition, sides, context)
        values = mapped(clause.values, lambda value: _read(value, sides, context))
        reads += [*(read for _, read in leaves(values)), *([condition] if condition else [])]
        given = mapped(values, lambda read: read.expression)
        done = replace(clause, condition=condition.expression if condition else None, values=given)
        matching = replace(matching, clauses=(*matching.clauses, done))
    row_local = _all_row_local(reads, context)
    return Condition(printed(on), first.predicate, row_local, first.expression, None), matching


def parameters_of(where: Condition, matching: Matching) -> dict[str, str]:
    """What the history shows of a MERGE, in Delta's names and form: JSON texts."""
    return {
        "predicate": json.dumps([where.text], ensure_ascii=False),
        "matchedPredicates": _shown(matching, "matched"),
        "notMatchedPredicates": _shown(matching, "not matched"),
        "notMatchedBySourcePredicates": _shown(matching, "not matched by source"),
    }


def _shown(matching: Matching, when: When) -> str:
    found = []
    for clause in matching.of(when):
        predicate = {} if clause.condition is None else {"predicate": printed(clause.condition)}
        found.append({**predicate, "actionType": clause.action})
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _all_row_local(reads: Sequence[_Read], context: Context) -> bool:
    called: frozenset[str] = frozenset()
    for read in reads:
        if read.called is None or not read.called <= DETERMINISTIC:
            return False
        called |= read.called
    return not called or context.is_builtin(called)


def _read(expression: Any, sides: Sides, context: Context) -> _Read:
    if isinstance(expression, SourceColumn):
        return _Read(expression, frozenset(), Unknown())
    if isinstance(expression, str):
        return _read_text(expression, sides, context)
    check_assigned(expression)
    known = column_condition(
        expression, context, lambda name: sides.target_column(name.split(".")), others=sides.source_columns
    )
    return _Read(expression, frozenset() if known.row_local else None, known.predicate)


def _read_text(text: str, sides: Sides, context: Context) -> _Read:
    given = fixed(shallow(TokenizedText(text), context.table), replace(context, schema=sides.all_columns))
    if has_window(given.tokens):
        raise NotBuilt(what=f"a window in {text}", instead="Compute it first, and merge the result.")

    def names_columns(tree: exp.Expr) -> bool:
        return all(sides.readings(_parts(column)) for column in tree.find_all(exp.Column))

    known, is_known = readable_tree(given, context, names_columns)
    predicate = predicate_in(given.text, context, lambda parts: _target_column(parts, sides))
    called, is_certain = calls(given.tokens) if is_known else None, known is not None and is_known
    return _Read(unnamed(given, context.table), called, predicate, known or given.tree, is_certain)


def _target_column(parts: tuple[str, ...], sides: Sides) -> Expression | None:
    """The column of the table that a name means, where it can mean nothing else."""
    name = sides.target_column(parts)
    return None if name is None else column_of((name,), sides.table)


def _equated(on: Any, tree: exp.Expr | None, sides: Sides) -> tuple[tuple[str, str], ...]:
    """The table's and the source's columns that ON requires to be equal, where each name can mean nothing else."""
    names = _equal_columns(tree) if isinstance(on, str) else [tuple(map(name_parts, p)) for p in equalities(on)]
    readings = [[sides.readings(parts) for parts in both] for both in names if all(both)]
    return tuple(pair for both in readings if (pair := _pair(both)) is not None)


def _required(tree: exp.Expr | None) -> list[exp.Expr]:
    """The parts that all have to hold."""
    return list(tree.flatten()) if isinstance(tree, exp.And) else [tree] if tree is not None else []


def _equal_columns(tree: exp.Expr | None) -> list[tuple[list[str], ...]]:
    found = [each for part in _required(tree) if isinstance(each := part.unnest(), exp.EQ)]
    pairs = [(each.left.unnest(), each.right.unnest()) for each in found]
    return [(_parts(a), _parts(b)) for a, b in pairs if isinstance(a, exp.Column) and isinstance(b, exp.Column)]


def _pair(readings: list[list[Reading]]) -> tuple[str, str] | None:
    """A column of each side, whichever stands first."""
    sides = {each[0].side: each[0] for each in readings if len(each) == 1 and not each[0].nested}
    return (sides["target"].column, sides["source"].column) if len(sides) == 2 else None


def _parts(column: exp.Column) -> list[str]:
    return [part.name for part in column.parts]
