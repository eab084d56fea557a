"""Values that are computed of each row of a table, for which a condition is TRUE.

Knows computations and files, no text. Guarantee: the values are those that Spark computes, or `Unsupported` is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from anabranch._arrow.finding import scan
from anabranch._arrow.site import Site
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.types import VOID, arrow_type
from anabranch._protocol.unsupported import Unsupported


def project(
    site: Site, files: FileSet, values: Sequence[Computation], condition: Condition | None, most_bytes: int
) -> pa.Table:
    """These values of the live rows for which a condition is TRUE (None: of all), in columns ``c0``, ``c1`` and so on.

    Raises:
        Unsupported: only Spark computes one of them, or they take more bytes.
    """
    schema = pa.schema([(f"c{i}", _type_of(value)) for i, value in enumerate(values)])
    needed = frozenset[str]().union(*(value.columns for value in values))
    names = [name for name in files.schema.names if name in needed] or files.schema.names[:1]  # rows must be counted

    def batches() -> Iterator[pa.RecordBatch]:
        left = most_bytes
        for rows in scan(site, files, names, condition):
            arrays = [value.values(rows).cast(field.type) for value, field in zip(values, schema, strict=True)]
            yield (batch := pa.RecordBatch.from_arrays(arrays, schema=schema))
            if (left := left - batch.nbytes) < 0:
                raise Unsupported("the rows are too large to be held here")

    return pa.Table.from_batches(batches(), schema)


def _type_of(value: Computation) -> pa.DataType:
    if value.reason is not None or value.tree.type in (None, VOID):
        raise Unsupported(value.reason or "a value has no type")
    return arrow_type(value.tree.type)
