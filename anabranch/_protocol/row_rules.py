"""Enforces the rules of a table on Arrow rows.

Knows computations that are the same in all sessions. Pure. Guarantee: returned rows break no rule of the table; a rule
that cannot be enforced with certainty in Arrow refuses all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.computation import Computation, computation_over
from anabranch._protocol.expressions.resolving import apply_function
from anabranch._protocol.expressions.table import TABLE
from anabranch._protocol.expressions.tree import Column, Constant
from anabranch._protocol.rules.table_rules import Check, Generated, NotNull, Rules
from anabranch._protocol.schema.lengths import Inside, Length, Step, limits_of
from anabranch._protocol.schema.types import VOID, Field, Struct, arrow_type, upcastable
from anabranch._protocol.store_assignment import cast_to_column
from anabranch._protocol.unsupported import Unsupported
from anabranch.errors import CheckConstraintViolated, LengthExceeded, NotBuilt, NotNullViolated

_SHOWN_CHARACTERS, _SHOWN_COLUMNS = 200, 20


def default_scalars(table: str, schema: Struct, rules: Rules, absent: Sequence[str]) -> dict[str, pa.Scalar]:
    """The default values of columns that rows lack. Raises NotBuilt: only Spark computes one of them."""
    scalars = {}
    for name in absent:
        text = rules.defaults.get(name)
        if text is not None:
            scalars[name] = _scalar(schema.field(name), text, table)
    return scalars


def enforce_rules(
    table: str,
    rows: pa.Table,
    schema: Struct,
    rules: Rules,
    given: frozenset[str],
    altered: frozenset[str] = frozenset(),
    *,
    new: bool = False,
) -> pa.Table:
    """Enforce the rules on rows of exactly the table's columns: pad and truncate texts, compute generated columns,
    check constraints.

    A generated column that the command sets is checked. It is computed for a new row, or if the command sets one of its
    inputs; any other keeps its value.

    Args:
        given: the columns whose values the command sets.
        altered: the settings that change the meaning of functions (`ALTERING`).
        new: whether they are new rows, and not images of old ones.

    Raises:
        RowViolation: a row breaks a rule.
        NotBuilt: only Spark can enforce a rule.
    """
    rows = _with_lengths(table, rows, schema, schema.names)
    for generated in rules.generated:
        if generated.column not in given and (new or generated.columns & given):
            rows = _compute_generated(table, rows, schema, generated, altered)
    for rule in rules.not_null:
        _check_not_null(table, rows, rule)
    for check in rules.checks:
        _check(table, rows, schema, check, computation_over(check.expression, schema, altered=altered), rows)
    for generated in rules.generated:
        if generated.column in given:
            _check_generated(table, rows, schema, generated, altered)
    return rows


def check_rules(
    schema: Struct, rules: Rules, given: Collection[str], altered: frozenset[str] = frozenset(), *, new: bool = False
) -> None:
    """Raises Unsupported: only Spark can enforce a rule of the table; arguments as for `enforce_rules`."""
    for field in schema:
        if not isinstance(limits_of(field), Length | None):
            raise Unsupported(f"Spark enforces the lengths of texts inside the column {field.name}")
    for check in rules.checks:
        if not computation_over(check.expression, schema, altered=altered).is_condition:
            raise Unsupported(f"the constraint {check.name} is checked by Spark")
    for generated in rules.generated:
        if generated.column in given or new or generated.columns & {*given}:
            value = computation_over(generated.expression, schema, altered=altered)
            if cast_to_column(value, schema.field(generated.column)).reason is not None:
                raise Unsupported(f"the generated column {generated.column} is computed by Spark")


def _needs_spark(what: str, table: str) -> NotBuilt:
    append = 'df.write.format("delta").mode("append").save(path)'
    return NotBuilt(what=f"{what} of the table at {table} without Spark", instead=f"Append through Spark: {append}.")


# -- defaults ----------------------------------------------------------------------------------------------------------


def _scalar(field: Field, text: str, table: str) -> pa.Scalar:
    default, target = computation_over(text, Struct()), arrow_type(field.type)
    value = cast_to_column(default, field)
    kind = default.tree.type or VOID
    # For a default, Spark takes a narrower type only if the value is a literal that fits.
    fits = (isinstance(value.tree, Constant) and kind != "string") or upcastable(kind, field.type)
    if value.reason is None and fits:
        try:
            return value.value().cast(target)[0]
        except (Unsupported, pa.ArrowException):
            pass  # it does not fit, or not exactly
    raise _needs_spark(f"computing the default {text} of the column {field.name}", table)


# -- generated columns -------------------------------------------------------------------------------------------------


def _compute_generated(
    table: str, rows: pa.Table, schema: Struct, rule: Generated, altered: frozenset[str]
) -> pa.Table:
    """Compute a generated column of the rows, cast as the column stores it. Raises NotBuilt: only Spark computes it."""
    field = schema.field(rule.column)
    value = cast_to_column(computation_over(rule.expression, schema, altered=altered), field)
    if value.reason is None:
        try:
            chunks = [value.values(batch).cast(arrow_type(field.type)) for batch in rows.to_batches()]
            column = pa.chunked_array(chunks, arrow_type(field.type))
            rows = rows.set_column(rows.column_names.index(field.name), field.name, column)
            return _with_lengths(table, rows, schema, [field.name])
        except (Unsupported, pa.ArrowException):
            pass  # it does not fit
    raise _needs_spark(f"computing the generated column {rule.column}", table)


def _check_generated(table: str, rows: pa.Table, schema: Struct, rule: Generated, altered: frozenset[str]) -> None:
    """Raises CheckConstraintViolated unless the values in the rows equal those of the expression."""
    kind, expected = schema.field(rule.column).type, _compute_generated(table, rows, schema, rule, altered)
    both = pa.table({"given": rows.column(rule.column), "expected": expected.column(rule.column)})
    are_same = apply_function(TABLE["<=>"], [Column("given", kind), Column("expected", kind)], "`<=>`")
    _check(table, rows, schema, rule.check, Computation(are_same), both)


# -- lengths -----------------------------------------------------------------------------------------------------------


def _with_lengths(table: str, rows: pa.Table, schema: Struct, names: Sequence[str]) -> pa.Table:
    """The rows with the texts of some columns padded and truncated."""
    for field in map(schema.field, names):
        if limits_of(field) is not None:
            index = rows.column_names.index(field.name)
            rows = rows.set_column(index, field.name, _enforce_length(table, rows.column(index), field))
    return rows


def _enforce_length(table: str, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    limit = limits_of(field)
    if not isinstance(limit, Length):
        raise _needs_spark(f"enforcing the lengths of texts inside the column {field.name}", table)
    text = pc.utf8_slice_codeunits(column, 0, limit.length)
    rest = pc.utf8_slice_codeunits(column, limit.length)
    too_long = pc.not_equal(pc.utf8_rtrim(rest, characters=" "), "")
    if (at := _first(too_long)) is not None:
        values = {field.name: _display_value(column[at])}
        raise LengthExceeded(table=table, column=field.name, limit=str(limit), values=values)
    return pc.utf8_rpad(text, width=limit.length, padding=" ") if limit.padded else text


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_not_null(table: str, rows: pa.Table, rule: NotNull) -> None:
    top, *inner = rule.path
    column = rows.column(str(top))
    at = _first(pa.chunked_array([_has_null_at(chunk, inner) for chunk in column.chunks], pa.bool_()))
    if at is not None:
        shown = dict.fromkeys([str(top), *rows.column_names[:_SHOWN_COLUMNS]])
        raise NotNullViolated(table=table, column=rule.column, values=_values(rows, at, shown))


def _has_null_at(values: pa.Array, path: Sequence[Step]) -> pa.BooleanArray:
    """Whether each value contains a NULL at a path; false where an enclosing value is absent."""
    if not path:
        return pc.is_null(values)
    step, rest = path[0], path[1:]
    match step:
        case Inside.ELEMENTS:
            return _has_null_inside(values, values.values, rest)
        case Inside.KEYS:
            return _has_null_inside(values, values.keys, rest)
        case Inside.VALUES:
            return _has_null_inside(values, values.items, rest)
    return pc.and_(pc.is_valid(values), _has_null_at(pc.struct_field(values, [step]), rest))


def _has_null_inside(values: pa.Array, inside: pa.Array, path: Sequence[Step]) -> pa.BooleanArray:
    """Like `_has_null_at`, for lists or maps; ``inside`` has all elements, including those of other rows."""
    offsets = values.offsets.to_numpy()
    has_null = _has_null_at(inside.slice(offsets[0], offsets[-1] - offsets[0]), path).to_numpy(zero_copy_only=False)
    rows = np.zeros(len(values), bool)
    rows[np.repeat(np.arange(len(values)), np.diff(offsets))[has_null]] = True
    return pc.and_(pc.is_valid(values), pa.array(rows))


def _check(table: str, rows: pa.Table, schema: Struct, check: Check, computation: Computation, over: pa.Table) -> None:
    """Raises CheckConstraintViolated unless a computation is TRUE for each row; ``over`` has as many rows as
    ``rows``.
    """
    used = [name for name in schema.names if name in check.columns]
    at = _first(pc.invert(_truths(table, over, check, computation)))
    if at is not None:
        facts = {"constraint": check.name, "expression": check.expression}
        raise CheckConstraintViolated(table=table, **facts, values=_values(rows, at, used))


def _truths(table: str, rows: pa.Table, check: Check, computation: Computation) -> pa.ChunkedArray:
    """Whether each row meets a constraint. Raises NotBuilt: only Spark decides."""
    if computation.is_condition:
        try:
            return pa.chunked_array([computation.truths(batch) for batch in rows.to_batches()], pa.bool_())
        except Unsupported:
            pass
    raise _needs_spark(f"checking the constraint {check.name} ({check.expression})", table)


def _first(mask: pa.ChunkedArray) -> int | None:
    at = pc.index(mask, pa.scalar(True)).as_py()
    return None if at < 0 else int(at)


def _values(rows: pa.Table, at: int, names: Mapping[str, Any] | Sequence[str]) -> dict[str, str | None]:
    return {name: _display_value(rows.column(name)[at]) for name in names}


def _display_value(scalar: pa.Scalar) -> str | None:
    if not scalar.is_valid:
        return None
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        value = _text_beyond_python(scalar)
    text = str(value).lower() if isinstance(value, bool) else value.hex() if isinstance(value, bytes) else str(value)
    return text[:_SHOWN_CHARACTERS]


def _text_beyond_python(scalar: pa.Scalar) -> str:
    """The text of a date or timestamp that Python cannot represent."""
    try:
        return str(scalar.cast(pa.string()).as_py())
    except pa.ArrowException:  # it is nested
        return "a value with a date outside the years 1 to 9999"
