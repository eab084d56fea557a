"""Computes assigned values over Arrow rows, without Spark.

Knows computations and Arrow tables. Pure. Guarantee: the values are those that Spark would store; values that only
Spark can compute, or that exceed the memory limit, raise an error, and there is no partial result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from anabranch._arrow.reading import MOST_BYTES
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.store_assignment import ComputedExpression, cast_to_column, is_plain_column
from anabranch._protocol.unsupported import Unsupported

AT_ONCE = 1 << 16


def resolve_assignments(assignments: Mapping[str, Any], schema: Struct) -> dict[str, Computation]:
    """The computation of each assigned column's new value. Raises Unsupported if only Spark computes one of them."""
    return {name: _computation_to_store(value, schema.field(name)) for name, value in assignments.items()}


def _computation_to_store(value: Any, field: Field) -> Computation:
    if not isinstance(value, ComputedExpression):
        raise Unsupported(f"a value of the column {field.name} is not SQL text that can be parsed here")
    if value.computation.reason is not None:
        raise Unsupported(value.computation.reason)
    return check_stored(value.computation, field)


def check_stored(value: Computation, field: Field) -> Computation:
    """The computation of what a column stores of a value. Raises Unsupported if only Spark computes it."""
    if not is_plain_column(field):
        raise Unsupported(f"what the column {field.name} stores is computed by Spark")
    stored = cast_to_column(value, field)
    if stored.reason is not None:
        raise Unsupported(stored.reason)
    return stored


def assign_values(rows: pa.Table, schema: Struct, values: Mapping[str, Computation]) -> pa.Table:
    """The rows with new values in the assigned columns, all computed from the old row.

    Args:
        rows: the schema's columns, in their Arrow types.
        values: column -> its new value (`resolve_assignments`).

    Raises:
        Unsupported: only Spark computes a value, or the values take too much memory.
    """
    batches, bytes_left = [], MOST_BYTES
    for batch in rows.combine_chunks().to_batches(max_chunksize=AT_ONCE):
        columns = [_value(batch, column_field, values.get(column_field.name)) for column_field in schema]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=rows.schema))
        bytes_left -= sum(array.nbytes for array, field in zip(columns, schema, strict=True) if field.name in values)
        if bytes_left < 0:
            raise Unsupported("the values take too much memory")
    return pa.Table.from_batches(batches, rows.schema)


def _value(batch: pa.RecordBatch, field: Field, value: Computation | None) -> pa.Array:
    return batch.column(field.name) if value is None else value.values(batch).cast(arrow_type(field.type))


def build_rows(rows: Sequence[Sequence[Computation]], columns: Sequence[Field], schema: Struct) -> pa.Table:
    """Rows of a schema with constants in some columns, and NULL in the others.

    Args:
        rows: for each row the values of ``columns``, as they are stored.

    Raises:
        Unsupported: only Spark computes a value.
    """
    values_by_column = {
        field.name: list(values) for field, values in zip(columns, zip(*rows, strict=True), strict=True)
    }
    arrays = [
        pa.concat_arrays([value.value().cast(arrow_type(field.type)) for value in values_by_column[field.name]])
        if field.name in values_by_column
        else pa.nulls(len(rows), arrow_type(field.type))
        for field in schema
    ]
    return pa.table(arrays, list(schema.names))
