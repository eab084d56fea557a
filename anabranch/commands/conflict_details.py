"""Details for a conflict's message: values of rows, and suggested conditions.

Reads a few rows of one data file, of as many column chunks as a small number of bytes allows, and writes conditions in
SQL. Decides nothing. Guarantee: if the table or the environment keeps rows out of messages, it returns no value of a
row or partition; values are short.

`anabranch.errors.rows` explains when rows are kept out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from anabranch._arrow.instants import open_parquet
from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import footer_in, read_tail
from anabranch._log.row_groups import RowGroups
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.partitions import read_value
from anabranch._protocol.predicates import columns_of
from anabranch._protocol.schema.column_mapping import renaming
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, decimal_of
from anabranch._storage.native import file_with, native_file
from anabranch._transaction.transaction import Transaction
from anabranch.commands.field_id_names import layout_of
from anabranch.errors.rows import may_show_rows

MAX_BYTES_READ = 16 << 20
"""Maximum number of bytes of a file that are read to show some of its rows."""

MAX_VALUES = 10
"""Maximum number of values of a column in a suggested condition."""

_COLUMNS = 16
_CHARACTERS = 60
_NAMED = 3


def may_show(snapshot: Snapshot) -> bool:
    """Whether messages may show values of this table's rows."""
    return may_show_rows(snapshot.table) and snapshot.properties.rows_in_errors


# -- rows --------------------------------------------------------------------------------------------------------------


def sample_rows(
    snapshot: Snapshot, file: FileRow, rows: Sequence[int], first: frozenset[str]
) -> list[Mapping[str, Any]]:
    """The values of these rows of a file: of the columns ``first``, then of others as far as they fit.

    Long values are shortened. Empty if values may not be shown, or the file does not exist.
    """
    if not rows or not may_show(snapshot):
        return []
    store, name = locate_in_store(snapshot.store, file["path"])
    entry = store.head(name)
    if entry is None:
        return []
    tail, partition = read_tail(store, entry), _partition(snapshot, file)
    footer = pq.read_metadata(native_file(tail))
    groups = RowGroups(footer_in(tail, name), footer.num_row_groups)
    groups.check()  # Arrow ends the process if a chunk has another type than its column
    group, local = _row_group(footer, rows)
    file_schema = footer.schema.to_arrow_schema()
    naming = renaming(file_schema, layout_of(snapshot.metadata, file_schema, snapshot.table, file["path"]))
    names_in_file = {column: in_file for column, in_file in naming.names().items() if column not in partition}
    affordable = _affordable(
        footer, group, [names_in_file[column] for column in _in_order(snapshot, first) if column in names_in_file]
    )
    spans = groups.spans([group], affordable)
    parquet_file = open_parquet(file_with(store, name, entry.size, spans), metadata=footer)
    read = parquet_file.read_row_group(group, columns=affordable, use_threads=False).take(local)
    rows_of_table = map(renaming(read.schema, naming.schema).row, read.to_pylist())
    names = [
        column
        for column in _in_order(snapshot, first)
        if column in partition or names_in_file.get(column) in affordable
    ]
    return [{column: _shorten({**row, **partition}.get(column)) for column in names} for row in rows_of_table]


def _in_order(snapshot: Snapshot, first: frozenset[str]) -> list[str]:
    return sorted(snapshot.schema.names, key=lambda name: name not in first)[:_COLUMNS]


def _row_group(footer: pq.FileMetaData, rows: Sequence[int]) -> tuple[int, list[int]]:
    """The row group of the first row, and the rows that lie in it, counted from its beginning."""
    first_row = 0
    for group in range(footer.num_row_groups):
        count = footer.row_group(group).num_rows
        if rows[0] < first_row + count:
            return group, [row - first_row for row in rows if first_row <= row < first_row + count]
        first_row += count
    raise ValueError(f"the file has {first_row} rows, and none at {rows[0]}")


def _affordable(footer: pq.FileMetaData, group: int, columns: Iterable[str]) -> list[str]:
    """The first of the columns whose chunks together fit into `MAX_BYTES_READ`."""
    sizes: dict[str, int] = {}
    for index in range(footer.num_columns):
        chunk = footer.row_group(group).column(index)
        column = chunk.path_in_schema.split(".")[0]
        sizes[column] = sizes.get(column, 0) + chunk.total_compressed_size
    affordable, bytes_left = [], MAX_BYTES_READ
    for column in columns:
        if column in sizes and sizes[column] <= bytes_left:
            affordable.append(column)
            bytes_left -= sizes[column]
    return affordable


def _partition(snapshot: Snapshot, file: FileRow) -> dict[str, Any]:
    values = dict(file["partitionValues"] or {})
    columns = map(snapshot.schema.field, snapshot.partition_columns)
    return {column.name: read_value(values.get(column.physical_name), str(column.type)) for column in columns}


def _shorten(value: Any) -> Any:
    """The value, or the beginning of its text if that is long."""
    if isinstance(value, bool | int | float | Decimal | dt.date) or value is None:
        return value
    text = value if isinstance(value, str) else repr(value)
    return value if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


# -- conditions --------------------------------------------------------------------------------------------------------

Values = Callable[[str], Sequence[Any] | None]
"""Returns the distinct values of a source's column; None if there are more than a few."""


def partition_condition(snapshot: Snapshot, ours: Transaction, file: FileRow | None) -> str | None:
    """A condition on the partitions that hold all rows which the transaction selected, and not the given file.

    None if there is no such condition, if it would be long, or if values may not be shown.
    """
    if file is None or not ours.touched_paths or not may_show(snapshot):
        return None
    partitions = [_partition(snapshot, ours.changes.sources[path].row) for path in sorted(ours.touched_paths)]
    other = _partition(snapshot, file)
    for name in snapshot.partition_columns:
        values = list(dict.fromkeys(partition[name] for partition in partitions))
        if (
            other[name] not in values
            and (condition := _in_condition("", snapshot.schema.field(name), values)) is not None
        ):
            return condition
    return None


def source_condition(snapshot: Snapshot, matching: MergePlan, where: Condition, values: Values) -> str | None:
    """A condition on the table's columns that ON compares, with the source's present values.

    ON contains ``t.c = s.c`` already, so the condition does not change what matches; a column in which NULL matches too
    is left out. Partition columns come first. None if no comparison is known, or if the MERGE changes unmatched rows,
    and so has to read all.
    """
    if matching.acts_without_match or not may_show(snapshot):
        return None
    restricted = columns_of(where.predicate)
    pairs = {target: source for target, source in matching.keys if target not in restricted}
    of_partition = [name for name in pairs if name in snapshot.partition_columns]
    conditions = []
    prefix = f"{_name(matching.target)}." if matching.target else ""
    for name in (of_partition or list(pairs))[:_NAMED]:
        distinct = values(pairs[name])
        if distinct is None or (name in matching.null_safe and None in distinct):
            continue
        condition = _in_condition(prefix, snapshot.schema.field(name), distinct)
        conditions += [condition] if condition is not None else []
    return " AND ".join(conditions) or None


def _in_condition(prefix: str, column: Field, values: Sequence[Any]) -> str | None:
    """``column IN (values)`` without NULL, which equals nothing; None if they are many or cannot be written."""
    literals = [_literal(value, column.type) for value in values if value is not None]
    if not literals or None in literals or len(literals) > MAX_VALUES:
        return None
    return f"{prefix}{_name(column.name)} IN ({', '.join(sorted(map(str, literals)))})"


def _name(name: str) -> str:
    is_plain = name.isidentifier() and name.isascii()
    return name if is_plain else "`" + name.replace("`", "``") + "`"


def _literal(value: Any, data_type: DataType) -> str | None:
    """A value as an SQL literal, if it fits the column's type and has one unambiguous spelling."""
    if isinstance(value, bool):
        return str(value).lower() if data_type == "boolean" else None
    if isinstance(value, int):
        return str(value) if data_type in INTEGERS else None
    if isinstance(value, Decimal):
        return f"{value:f}" if decimal_of(data_type) is not None else None
    if type(value) is dt.date:
        return f"DATE '{value.isoformat()}'" if data_type == "date" else None
    is_unsuitable = not isinstance(value, str) or data_type != "string" or len(value) > _CHARACTERS
    return None if is_unsuitable or set(value) & set("'\\\"\n\r") else f"'{value}'"
