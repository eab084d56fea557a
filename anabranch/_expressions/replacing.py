"""Replacing: the condition by which new rows select the rows of a table that they replace.

Knows names on two sides, as of a MERGE. Guarantee: every name of a condition that is accepted belongs to exactly one
side, as far as the text can be parsed; Spark refuses the rest.

Source: delta-spark 4.4, ``replaceOn`` and ``replaceUsing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch._expressions.computations import names_in
from anabranch._expressions.context import Context
from anabranch._expressions.merge_expressions import analyze_merge
from anabranch._expressions.sides import MergeColumns
from anabranch._expressions.tokens import BARE_FUNCTIONS, CLOCKS
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import syntax_over
from anabranch._protocol.expressions.lexer import ParseError, quote_name
from anabranch._protocol.merges import Clause, MergePlan
from anabranch.errors import AmbiguousReplaceColumns, MisalignedUsingColumns, UnknownReplaceColumns, UnknownUsingColumn

_DELETES = (Clause("matched", "delete"),)
_TABLE, _ROWS = "__anabranch_replaced", "__anabranch_rows"
"""Aliases of the two sides in the condition of USING, which no user writes."""


def replace_on(on: str, sides: MergeColumns, context: Context) -> tuple[Condition, MergePlan]:
    """The condition of ``REPLACE ON``, and the plan that deletes each row of the table for which some row satisfies it.

    Raises:
        AmbiguousReplaceColumns, UnknownReplaceColumns: a name belongs to both sides, or to none.
        InvalidCondition, NotBuilt: as of a MERGE.
    """
    for names, error in zip(_misread_names(on, sides), (AmbiguousReplaceColumns, UnknownReplaceColumns), strict=True):
        if names:
            columns = ", ".join(dict.fromkeys(".".join(map(quote_name, parts)) for parts in names))
            raise error(columns=columns, expression=on, table=context.table)
    return analyze_merge(on, _DELETES, sides, context)


def replace_using(
    names: Sequence[str], sides: MergeColumns, context: Context, *, by_position: bool
) -> tuple[Condition, MergePlan]:
    """The same of ``REPLACE USING``: the named columns are equal, where NULL equals nothing.

    Args:
        by_position: the rows are stored by position, so the columns must be at the same places on both sides.

    Raises:
        UnknownUsingColumn: a side has no such column. MisalignedUsingColumns: it is at another place there.
    """
    pairs = [_find_pair(name, sides, context) for name in dict.fromkeys(names)]
    places = [(sides.table.names.index(ours), sides.source_columns.index(theirs)) for ours, theirs in pairs]
    misaligned = [
        quote_name(name) for name, (here, there) in zip(dict.fromkeys(names), places, strict=True) if here != there
    ]
    if by_position and misaligned:
        raise MisalignedUsingColumns(columns=", ".join(misaligned), table=context.table)
    on = " AND ".join(f"{_TABLE}.{quote_name(ours)} = {_ROWS}.{quote_name(theirs)}" for ours, theirs in pairs)
    where, plan = analyze_merge(on, _DELETES, replace(sides, target=_TABLE, source=_ROWS), context)
    return replace(where, text=f"USING ({', '.join(names)})"), plan


def _misread_names(on: str, sides: MergeColumns) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of a condition that belong to both sides, and those that belong to none."""
    try:
        names = names_in(syntax_over(on, sides.all_columns))
    except ParseError:
        return [], []
    seen = {parts: {reading.side for reading in sides.readings(parts)} for parts in names}
    bare = BARE_FUNCTIONS | CLOCKS.keys()
    unknown = [
        parts for parts, where in seen.items() if not where and not (len(parts) == 1 and parts[0].lower() in bare)
    ]
    return [parts for parts, where in seen.items() if len(where) > 1], unknown


def _find_pair(name: str, sides: MergeColumns, context: Context) -> tuple[str, str]:
    ours, theirs = sides.table.find(name), sides.source_column(name)
    if ours is None or theirs is None:
        side, columns = ("table", sides.table.names) if ours is None else ("query", sides.source_columns)
        listed = ", ".join(map(quote_name, sorted(columns)))
        raise UnknownUsingColumn(column=quote_name(name), side=side, columns=listed, table=context.table)
    return ours.name, theirs
