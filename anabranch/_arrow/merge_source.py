"""The source of a MERGE in Arrow: its columns, and its numbered rows."""

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
        names: names of the columns; two may be the same.
        types: Delta types of the columns; None where Arrow may read other values than Spark.
    """

    names: tuple[str, ...]
    types: tuple[DataType | None, ...]

    def place_of(self, name: str) -> int | None:
        """Index of the only column with this name, ignoring case; None if there is none, or several."""
        places = self._places.get(name.lower(), ())
        return places[0] if len(places) == 1 else None

    @lazy
    def _places(self) -> dict[str, list[int]]:
        """Indexes of columns by lower-case name."""
        places: dict[str, list[int]] = {}
        for i, name in enumerate(self.names):
            places.setdefault(name.lower(), []).append(i)
        return places

    def type_of(self, name: str) -> DataType | None:
        """Type of the only column with this name; None if there is no such column, or Arrow may read other values than
        Spark.
        """
        at = self.place_of(name)
        return None if at is None else self.types[at]


def source_columns(schema: pa.Schema) -> SourceColumns:
    """The columns of Arrow rows, with their Delta types."""
    fields = from_arrow(schema)
    types = tuple(column.type if are_plain([column], nested=True) else None for column in fields)
    return SourceColumns(tuple(fields.names), types)


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
        """Number of rows."""
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
        """The rows with additional columns of integers."""
        names, types = self.columns.names, self.columns.types
        more = SourceColumns((*names, *columns), (*types, *("long" for _ in columns)))
        arrays = [self.table.column(i) for i in range(len(names))]
        return SourceRows(
            more,
            pa.table(
                [*arrays, *columns.values(), self.numbers],
                [str(i) for i in range(len(arrays) + len(columns))] + ["number"],
            ),
        )

    def without(self, numbers: Sequence[pa.ChunkedArray]) -> SourceRows:
        """The rows whose numbers are not among these."""
        excluded = pa.concat_arrays([pa.array([], pa.int64()), *(chunks.combine_chunks() for chunks in numbers)])
        return SourceRows(self.columns, self.table.filter(pc.invert(pc.is_in(self.numbers, value_set=excluded))))


def to_source_rows(source: pa.Table) -> SourceRows:
    """Rows in the Delta types of their columns, numbered from 0."""
    columns, rows = source_columns(source.schema), source.cast(to_arrow(from_arrow(source.schema)))
    return SourceRows(columns, rows.append_column("number", pa.array(range(len(rows)), pa.int64())))
