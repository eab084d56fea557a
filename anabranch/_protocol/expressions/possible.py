"""The entry for rows that a predicate may select: it is TRUE wherever the predicate is not certainly FALSE or NULL.

It has no name in SQL. Pure. Guarantee: it is TRUE for every row for which the predicate, and so any condition that
implies it, is TRUE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported, Datum, Fit, Function, Site, as_array
from anabranch._protocol.expressions.tree import Apply, Column
from anabranch._protocol.predicates import Name, Predicate, names_of
from anabranch._protocol.schema.leaves import leaf_at
from anabranch._protocol.schema.types import DataType, Field, Struct
from anabranch._protocol.stats.literals import domain
from anabranch._protocol.stats.skipping import rows_could_match


def possible_rows(predicate: Predicate, schema: Struct) -> Apply:
    """The tree of a predicate on columns of a table; columns whose values have no order may have any value.

    Example:
        >>> possible_rows(Compare("id", "=", 7), Struct((Field("id", "long"),))).function.name
        'may hold'
    """
    leaves = {name: leaf_at(schema, name) for name in sorted(names_of(predicate), key=str)}
    fields = {name: leaf.field for name, leaf in leaves.items() if leaf is not None and domain(leaf.field) is not None}
    columns = tuple(Column(name, field.type) for name, field in fields.items())
    return Apply(_MAY_HOLD, columns, "boolean", (predicate, tuple(fields.items())))


def _fit(arguments: Sequence[Argument]) -> Fit:
    raise ArgumentsNotSupported("it is called in no text")


def _may_hold(arguments: Sequence[Datum], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    predicate, fields = options
    columns: dict[Name, tuple[Field, Any]] = {
        name: (field, as_array(values, site.count)) for (name, field), values in zip(fields, arguments, strict=True)
    }
    return rows_could_match(predicate, columns, site.count)


_MAY_HOLD = Function("may hold", _fit, _may_hold)
