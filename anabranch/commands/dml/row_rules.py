"""Rules without an engine: rows at hand, as the table that they are appended to wants them.

Knows Arrow tables, and SQL only where it is certain without a session. Guarantee: rows that come back break no rule
of the table; a rule that cannot be held here for certain refuses all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import CheckConstraintViolated, LengthExceeded, NotBuilt, NotNullViolated
from anabranch.protocol.expressions.computation import computation_over
from anabranch.protocol.expressions.table import LeftToSpark
from anabranch.protocol.expressions.tree import Constant
from anabranch.protocol.rules.table_rules import Check, Inside, Length, NotNull, Rules, Step, limits_of
from anabranch.protocol.schema.types import VOID, Field, Struct, arrow_type, upcastable
from anabranch.protocol.storing import stored_in

_SHOWN_CHARACTERS, _SHOWN_COLUMNS = 200, 20


def default_scalars(table: str, schema: Struct, rules: Rules, absent: Sequence[str]) -> dict[str, pa.Scalar]:
    """The default values of columns that rows lack. Raises NotBuilt: only Spark computes one."""
    found = {}
    for name in absent:
        text = rules.defaults.get(name)
        if text is not None:
            found[name] = _scalar(schema.field(name), text, table)
    return found


def obedient(table: str, rows: pa.Table, schema: Struct, rules: Rules) -> pa.Table:
    """Rows of exactly the table's columns as its rules want them: texts padded and cut, every rule held.

    Raises:
        RowViolation: a row breaks a rule.
        NotBuilt: a rule cannot be held without Spark.
    """
    for generated in rules.generated:
        raise _needs_spark(f"computing the generated column {generated.column}", table)
    for i, field in enumerate(schema):
        if limits_of(field) is not None:
            rows = rows.set_column(i, field.name, _limited(table, rows.column(i), field))
    for rule in rules.not_null:
        _check_not_null(table, rows, rule)
    for check in rules.checks:
        _check(table, rows, schema, check)
    return rows


def _needs_spark(what: str, table: str) -> NotBuilt:
    append = 'df.write.format("delta").mode("append").save(path)'
    return NotBuilt(what=f"{what} of the table at {table} without Spark", instead=f"Append through Spark: {append}.")


# -- defaults ----------------------------------------------------------------------------------------------------------


def _scalar(field: Field, text: str, table: str) -> pa.Scalar:
    given, wanted = computation_over(text, Struct()), arrow_type(field.type)
    value = stored_in(given, field)
    kind = given.tree.type or VOID
    # Of a default Spark takes a narrower type only where the value is a literal that fits.
    fits = (isinstance(value.tree, Constant) and kind != "string") or upcastable(kind, field.type)
    if value.reason is None and fits:
        try:
            return value.value().cast(wanted)[0]
        except (LeftToSpark, pa.ArrowException):
            pass  # it does not fit, or not exactly
    raise _needs_spark(f"computing the default {text} of the column {field.name}", table)


# -- lengths -----------------------------------------------------------------------------------------------------------


def _limited(table: str, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    limit = limits_of(field)
    if not isinstance(limit, Length):
        raise _needs_spark(f"holding the lengths of texts inside the column {field.name}", table)
    kept = pc.utf8_slice_codeunits(column, 0, limit.length)
    rest = pc.utf8_slice_codeunits(column, limit.length)
    too_long = pc.not_equal(pc.utf8_rtrim(rest, characters=" "), "")
    if (at := _first(too_long)) is not None:
        values = {field.name: _shown(column[at].as_py())}
        raise LengthExceeded(table=table, column=field.name, limit=str(limit), values=values)
    return pc.utf8_rpad(kept, width=limit.length, padding=" ") if limit.padded else kept


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_not_null(table: str, rows: pa.Table, rule: NotNull) -> None:
    top, *inner = rule.path
    column = rows.column(str(top))
    at = _first(pc.is_null(column)) if not inner else _first_broken(column, inner)
    if at is not None:
        shown = dict.fromkeys([str(top), *rows.column_names[:_SHOWN_COLUMNS]])
        raise NotNullViolated(table=table, column=rule.column, values=_values(rows, at, shown))


def _first_broken(column: pa.ChunkedArray, path: Sequence[Step]) -> int | None:
    return next((i for i, value in enumerate(column.to_pylist()) if _is_broken(value, path)), None)


def _is_broken(value: Any, path: Sequence[Step]) -> bool:
    if not path:
        return value is None
    return value is not None and any(_is_broken(each, path[1:]) for each in _inside(value, path[0]))


def _inside(value: Any, step: Step) -> Iterator[Any]:
    match step:
        case Inside.ELEMENTS:
            yield from value
        case Inside.KEYS:
            yield from (key for key, _ in value)
        case Inside.VALUES:
            yield from (inner for _, inner in value)
        case _:
            yield value[step]


def _check(table: str, rows: pa.Table, schema: Struct, check: Check) -> None:
    used = [name for name in schema.names if name in check.columns]
    at = _first(pc.invert(_truths(table, rows, schema, check)))
    if at is not None:
        facts = {"constraint": check.name, "expression": check.expression}
        raise CheckConstraintViolated(table=table, **facts, values=_values(rows, at, used))


def _truths(table: str, rows: pa.Table, schema: Struct, check: Check) -> pa.ChunkedArray:
    """For each row whether it keeps a constraint. Raises NotBuilt: only Spark says."""
    computation = computation_over(check.expression, schema)
    if computation.is_condition:
        try:
            return pa.chunked_array([computation.truths(each) for each in rows.to_batches()], pa.bool_())
        except LeftToSpark:
            pass
    raise _needs_spark(f"checking the constraint {check.name} ({check.expression})", table)


def _first(mask: pa.ChunkedArray) -> int | None:
    at = pc.index(mask, pa.scalar(True)).as_py()
    return None if at < 0 else int(at)


def _values(rows: pa.Table, at: int, names: Mapping[str, Any] | Sequence[str]) -> dict[str, str | None]:
    return {name: _shown(rows.column(name)[at].as_py()) for name in names}


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else value.hex() if isinstance(value, bytes) else str(value)
    return text[:_SHOWN_CHARACTERS]
