"""What a conflict's message can show beyond positions and names.

Knows a few rows of one data file, by reading just those column chunks that a small number of bytes allows, and how
conditions are written in SQL. Decides nothing. Guarantee: where the table or the environment keeps rows out of
messages, no value of a row or partition is given; what is given is short.

`anabranch.errors.rows` says where they are kept out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import footer_in, read_tail
from anabranch._log.row_groups import RowGroups
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import Matching
from anabranch._protocol.partitions import read_value
from anabranch._protocol.predicates import columns_of
from anabranch._protocol.schema.column_mapping import renaming
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, decimal_of
from anabranch._storage.native import file_with, native_file
from anabranch._transaction.transaction import Transaction
from anabranch.commands.field_id_names import layout_of
from anabranch.errors.rows import may_show_rows

BYTES = 16 << 20
"""So much of a file is read at most to show some of its rows."""

FEW_VALUES = 10
"""So many values of a column are named in a suggestion at most."""

_COLUMNS = 16
_CHARACTERS = 60
_NAMED = 3


def may_show(snapshot: Snapshot) -> bool:
    """Whether messages may show what rows of this table hold."""
    return may_show_rows(snapshot.table) and snapshot.properties.rows_in_errors


# -- rows --------------------------------------------------------------------------------------------------------------


def sample_rows(
    snapshot: Snapshot, file: FileRow, rows: Sequence[int], first: frozenset[str]
) -> list[Mapping[str, Any]]:
    """The values of these rows of a file: those of some columns first, of the others as far as they fit.

    Long values are cut short. Nothing where values may not be shown, or where the file is not there.
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
    groups.check()  # Arrow ends the process where it is asked of a chunk that is of another type than its column
    group, local = _row_group(footer, rows)
    there = footer.schema.to_arrow_schema()
    naming = renaming(there, layout_of(snapshot.metadata, there, snapshot.table, file["path"]))
    own = {each: own for each, own in naming.names().items() if each not in partition}
    affordable = _affordable(footer, group, [own[each] for each in _in_order(snapshot, first) if each in own])
    spans = groups.spans([group], affordable)
    opened = pq.ParquetFile(file_with(store, name, entry.size, spans), metadata=footer)
    read = opened.read_row_group(group, columns=affordable, use_threads=False).take(local)
    found = map(renaming(read.schema, naming.schema).row, read.to_pylist())
    names = [each for each in _in_order(snapshot, first) if each in partition or own.get(each) in affordable]
    return [{each: _short({**row, **partition}.get(each)) for each in names} for row in found]


def _in_order(snapshot: Snapshot, first: frozenset[str]) -> list[str]:
    return sorted(snapshot.schema.names, key=lambda name: name not in first)[:_COLUMNS]


def _row_group(footer: pq.FileMetaData, rows: Sequence[int]) -> tuple[int, list[int]]:
    """The row group of the first row, and which of the rows lie in it, counted from its own beginning."""
    begins = 0
    for group in range(footer.num_row_groups):
        count = footer.row_group(group).num_rows
        if rows[0] < begins + count:
            return group, [row - begins for row in rows if begins <= row < begins + count]
        begins += count
    raise ValueError(f"the file has {begins} rows, and none at {rows[0]}")


def _affordable(footer: pq.FileMetaData, group: int, wanted: Iterable[str]) -> list[str]:
    """Those of the columns whose chunks together are not too many bytes."""
    sizes: dict[str, int] = {}
    for i in range(footer.num_columns):
        chunk = footer.row_group(group).column(i)
        column = chunk.path_in_schema.split(".")[0]
        sizes[column] = sizes.get(column, 0) + chunk.total_compressed_size
    chosen, left = [], BYTES
    for column in wanted:
        if column in sizes and sizes[column] <= left:
            chosen.append(column)
            left -= sizes[column]
    return chosen


def _partition(snapshot: Snapshot, file: FileRow) -> dict[str, Any]:
    values = dict(file["partitionValues"] or {})
    columns = map(snapshot.schema.field, snapshot.partition_columns)
    return {each.name: read_value(values.get(each.physical_name), str(each.type)) for each in columns}


def _short(value: Any) -> Any:
    """The value, or the beginning of what it prints."""
    if isinstance(value, bool | int | float | Decimal | dt.date) or value is None:
        return value
    text = value if isinstance(value, str) else repr(value)
    return value if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


# -- conditions --------------------------------------------------------------------------------------------------------

Values = Callable[[str], Sequence[Any] | None]
"""The distinct values of a source's column; None where they are more than a few."""


def of_partitions(snapshot: Snapshot, ours: Transaction, file: FileRow | None) -> str | None:
    """The partitions that hold all rows which ours selected, as a condition that the other file does not meet.

    None where there is no such condition, where it would be long, or where values may not be shown.
    """
    if file is None or not ours.touched_paths or not may_show(snapshot):
        return None
    partitions = [_partition(snapshot, ours.does.sources[path].row) for path in sorted(ours.touched_paths)]
    other = _partition(snapshot, file)
    for name in snapshot.partition_columns:
        values = list(dict.fromkeys(each[name] for each in partitions))
        if other[name] not in values and (said := _in("", snapshot.schema.field(name), values)) is not None:
            return said
    return None


def of_source(snapshot: Snapshot, matching: Matching, where: Condition, values: Values) -> str | None:
    """What the source holds now in the columns that ON compares, as a condition on the table's.

    ON says ``t.c = s.c`` already, so this changes nothing in what matches. Partition columns count first. None where
    no comparison is known, or where rows that match nothing are changed, so that all have to be read.
    """
    if matching.acts_without_match or not may_show(snapshot):
        return None
    known = columns_of(where.predicate)
    pairs = {target: source for target, source in matching.keys if target not in known}
    of_partition = [name for name in pairs if name in snapshot.partition_columns]
    found = []
    prefix = f"{_name(matching.target)}." if matching.target else ""
    for name in (of_partition or list(pairs))[:_NAMED]:
        few = values(pairs[name])
        said = None if few is None else _in(prefix, snapshot.schema.field(name), few)
        found += [said] if said is not None else []
    return " AND ".join(found) or None


def _in(prefix: str, column: Field, values: Sequence[Any]) -> str | None:
    """``column IN (values)``; NULL, which equals nothing, is left out."""
    literals = [_literal(value, column.type) for value in values if value is not None]
    if not literals or None in literals or len(literals) > FEW_VALUES:
        return None
    return f"{prefix}{_name(column.name)} IN ({', '.join(sorted(map(str, literals)))})"


def _name(name: str) -> str:
    plain = name.isidentifier() and name.isascii()
    return name if plain else "`" + name.replace("`", "``") + "`"


def _literal(value: Any, data_type: DataType) -> str | None:
    """A value as SQL writes it, if it is of the column's own kind and can be written in one way only."""
    if isinstance(value, bool):
        return str(value).lower() if data_type == "boolean" else None
    if isinstance(value, int):
        return str(value) if data_type in INTEGERS else None
    if isinstance(value, Decimal):
        return f"{value:f}" if decimal_of(data_type) is not None else None
    if type(value) is dt.date:
        return f"DATE '{value.isoformat()}'" if data_type == "date" else None
    odd = not isinstance(value, str) or data_type != "string" or len(value) > _CHARACTERS
    return None if odd or set(value) & set("'\\\"\n\r") else f"'{value}'"
