"""Values on Arrow rows: what assignments make of rows, without Spark.

Knows computations and Arrow tables. Pure. Guarantee: the values are those that Spark would store; what only Spark can
say, or takes more memory than rows may here, raises an error, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from anabranch._arrow.reading import MOST_BYTES
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.storing import Computed, cast_to_column, is_plain_column
from anabranch._protocol.unsupported import Unsupported

AT_ONCE = 1 << 16


def check_assigned(assignments: Mapping[str, Any], schema: Struct) -> dict[str, Computation]:
    """How each assigned column's new value is computed. Raises Unsupported: only Spark computes one of them."""
    return {name: _computation_to_store(value, schema.field(name)) for name, value in assignments.items()}


def _computation_to_store(value: Any, field: Field) -> Computation:
    if not isinstance(value, Computed):
        raise Unsupported(f"a value of the column {field.name} is no text that can be read here")
    if value.computation.reason is not None:
        raise Unsupported(value.computation.reason)
    return check_stored(value.computation, field)


def check_stored(value: Computation, field: Field) -> Computation:
    """What a column stores of a value. Raises Unsupported: only Spark says it."""
    if not is_plain_column(field):
        raise Unsupported(f"what the column {field.name} stores is computed by Spark")
    found = cast_to_column(value, field)
    if found.reason is not None:
        raise Unsupported(found.reason)
    return found


def assign_values(rows: pa.Table, schema: Struct, values: Mapping[str, Computation]) -> pa.Table:
    """The rows with new values in the assigned columns, all computed from the old row.

    Args:
        rows: the schema's columns, in Arrow's types for them.
        values: column -> what it stores (`check_assigned`).

    Raises:
        Unsupported: only Spark says what a value is, or the values take too much memory.
    """
    batches, left = [], MOST_BYTES
    for batch in rows.combine_chunks().to_batches(max_chunksize=AT_ONCE):
        columns = [_value(batch, each, values.get(each.name)) for each in schema]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=rows.schema))
        left -= sum(each.nbytes for each, field in zip(columns, schema, strict=True) if field.name in values)
        if left < 0:
            raise Unsupported("the values take too much memory")
    return pa.Table.from_batches(batches, rows.schema)


def _value(batch: pa.RecordBatch, field: Field, value: Computation | None) -> pa.Array:
    return batch.column(field.name) if value is None else value.values(batch).cast(arrow_type(field.type))


def rows_of(rows: Sequence[Sequence[Computation]], columns: Sequence[Field], schema: Struct) -> pa.Table:
    """Rows of a schema with constants in some columns, and NULL in the others.

    Args:
        rows: for each the values of ``columns``, as these store them.

    Raises:
        Unsupported: only Spark says what a value is.
    """
    given = {field.name: list(values) for field, values in zip(columns, zip(*rows, strict=True), strict=True)}
    arrays = [
        pa.concat_arrays([each.value().cast(arrow_type(field.type)) for each in given[field.name]])
        if field.name in given
        else pa.nulls(len(rows), arrow_type(field.type))
        for field in schema
    ]
    return pa.table(arrays, list(schema.names))
