"""The source of a MERGE in Arrow: its columns and its rows, each with a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.lazy import lazy
from anabranch._protocol.schema.plain import are_plain
from anabranch._protocol.schema.types import DataType, from_arrow, to_arrow


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source.

    Attributes:
        names: what they are called; two may have one name.
        types: Delta's type of each; None where Arrow may see other values than Spark.
    """

    names: tuple[str, ...]
    types: tuple[DataType | None, ...]

    def place_of(self, name: str) -> int | None:
        """The place of the one column of this name, whatever the case; None where there is none, or several."""
        named = self._places.get(name.lower(), ())
        return named[0] if len(named) == 1 else None

    @lazy
    def _places(self) -> dict[str, list[int]]:
        """The places of the names, whatever their case."""
        found: dict[str, list[int]] = {}
        for i, each in enumerate(self.names):
            found.setdefault(each.lower(), []).append(i)
        return found

    def type_of(self, name: str) -> DataType | None:
        """The type of the one column of this name; None where there is none such, or Arrow may see other values."""
        at = self.place_of(name)
        return None if at is None else self.types[at]


def source_columns(schema: pa.Schema) -> SourceColumns:
    """The columns of Arrow rows, as Delta types them."""
    fields = from_arrow(schema)
    seen = tuple(each.type if are_plain([each], nested=True) else None for each in fields)
    return SourceColumns(tuple(fields.names), seen)


@dataclass(frozen=True)
class SourceRows:
    """The rows of a source.

    Attributes:
        table: its columns, in their order, and one more with the number of each row.
    """

    columns: SourceColumns
    table: pa.Table = field(repr=False)

    @property
    def rows(self) -> int:
        """How many they are."""
        return len(self.table)

    @property
    def numbers(self) -> pa.ChunkedArray:
        """The number of each row."""
        return self.table.column(len(self.columns.names))

    @property
    def named_rows(self) -> pa.Table:
        """The rows under the names of their columns."""
        return self.table.rename_columns([*self.columns.names, ""])

    def beside(self, columns: Mapping[str, pa.Array]) -> SourceRows:
        """The rows with more columns of whole numbers."""
        names, types = self.columns.names, self.columns.types
        more = SourceColumns((*names, *columns), (*types, *("long" for _ in columns)))
        own = [self.table.column(i) for i in range(len(names))]
        return SourceRows(
            more,
            pa.table(
                [*own, *columns.values(), self.numbers], [str(i) for i in range(len(own) + len(columns))] + ["number"]
            ),
        )

    def without(self, numbers: Sequence[pa.ChunkedArray]) -> SourceRows:
        """The rows whose numbers are not among these."""
        gone = pa.concat_arrays([pa.array([], pa.int64()), *(each.combine_chunks() for each in numbers)])
        return SourceRows(self.columns, self.table.filter(pc.invert(pc.is_in(self.numbers, value_set=gone))))


def to_source_rows(source: pa.Table) -> SourceRows:
    """Rows in Delta's types for their columns, numbered from 0 on."""
    columns, rows = source_columns(source.schema), source.cast(to_arrow(from_arrow(source.schema)))
    return SourceRows(columns, rows.append_column("number", pa.array(range(len(rows)), pa.int64())))
