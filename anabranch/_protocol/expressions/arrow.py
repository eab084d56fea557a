"""Computes trees over Arrow rows, without Spark.

Pure. Guarantee: a returned value is the one that Spark would compute; any doubt raises `Unsupported`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.table import (
    Datum,
    Site,
    as_array,
)
from anabranch._protocol.expressions.tree import Apply, Column, Constant, Expression, SparkOnly
from anabranch._protocol.schema.types import VOID, DataType, arrow_type
from anabranch._protocol.unsupported import Unsupported

ERRORS = (pa.ArrowException, ArithmeticError, ValueError, TypeError, KeyError)
"""Errors of the kernels, which mean `Unsupported`."""


def compute(tree: Expression, rows: pa.RecordBatch, zone: dt.tzinfo | None = None) -> pa.Array:
    """Compute an expression for each row.

    Args:
        rows: the columns of the expression, with their Arrow types.
        zone: the session's time zone, if its offset never changes.

    Raises:
        Unsupported: only Spark can compute it.

    Example:
        >>> compute(resolve(parse_expression("a + 1"), scope), pa.record_batch({"a": [1, 2]})).to_pylist()
        [2, 3]
    """
    try:
        result = _Run(rows, Site(zone, rows.num_rows)).value(tree)
    except RecursionError:
        raise Unsupported("it is nested too deep") from None
    return as_array(result, rows.num_rows)


def compute_mask(tree: Expression, rows: pa.RecordBatch, zone: dt.tzinfo | None = None) -> pa.BooleanArray:
    """Compute a condition: whether it is TRUE for each row; never NULL. Raises Unsupported."""
    return pc.fill_null(compute(tree, rows, zone).cast(pa.bool_()), False)


@dataclass(frozen=True)
class _Run:
    rows: pa.RecordBatch
    site: Site

    def value(self, node: Expression) -> Datum:
        match node:
            case Constant():
                return _scalar(node.value, node.type)
            case Column():
                return self._column(node)
            case SparkOnly():
                raise Unsupported(node.reason)
        try:
            result = self._apply(node)
        except Unsupported:
            raise
        except ERRORS:
            raise Unsupported(f"Arrow has no value of `{node.function.name}` for some row") from None
        if not isinstance(result, pa.Scalar) and len(result) != self.site.count:
            raise Unsupported(f"Arrow has a wrong number of values of `{node.function.name}`")
        return result

    def _column(self, node: Column) -> Datum:
        first, *members = (node.name,) if isinstance(node.name, str) else node.name
        values = self.rows.column(first)
        for member in members:
            values = pc.struct_field(values, [member])  # a plain string would be parsed as a path
        return values

    def _apply(self, node: Apply) -> Datum:
        if node.function.is_lazy:
            parts = [partial(self._part, argument) for argument in node.arguments]
            return node.function.kernel(parts, node.type, node.options, self.site)
        values = [self.value(argument) for argument in node.arguments]
        if values and all(isinstance(value, pa.Scalar) for value in values):
            once = [pa.array([value.as_py()], value.type) for value in values]
            return node.function.kernel(once, node.type, node.options, replace(self.site, count=1))[0]
        return node.function.kernel(values, node.type, node.options, self.site)

    def _part(self, node: Expression, mask: Any) -> Datum:
        """The value for the rows under a mask."""
        if mask is None or pc.all(mask, min_count=0).as_py():
            return self.value(node)
        rows = self.rows.filter(mask)
        return _Run(rows, replace(self.site, count=rows.num_rows)).value(node)


def _scalar(value: Any, kind: DataType) -> pa.Scalar:
    return pa.scalar(None, pa.null()) if kind == VOID else pa.scalar(value, arrow_type(kind))
