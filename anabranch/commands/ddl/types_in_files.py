"""Types in files: finds the files that are older than a widening of the table's columns.

Knows footers, not rows. Guarantee: a file that is not returned holds every column in the table's type, or not at all;
doubtful files are returned.
"""

from __future__ import annotations

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.widening import TYPE_CHANGES
from anabranch._protocol.schema.column_mapping import file_shape
from anabranch._protocol.schema.types import INTEGERS, Field
from anabranch.commands.field_id_names import layout_of, schema_of
from anabranch.commands.opening import filter_files


def files_with_older_types(base: Snapshot) -> pa.Table:
    """The live files that hold a column in another type than the table's. Raises MissingDataFile: a file is gone."""
    partitions = [base.schema.field(name) for name in base.partition_columns]
    if any(_may_differ_in_text(field) for field in partitions):
        return base.files
    old = [_is_old(base, path) for path in base.files["path"].to_pylist()]
    return filter_files(base.files, pa.array(old, pa.bool_()))


def _may_differ_in_text(field: Field) -> bool:
    """Whether partition values in the log may be written differently for the older and the newer type."""
    changes = field.metadata.get(TYPE_CHANGES) or ()
    return any(not {change.get("fromType"), change.get("toType")} <= set(INTEGERS) for change in changes)


def _is_old(base: Snapshot, path: str) -> bool:
    in_file = schema_of(base.store, base.metadata, path)
    in_table = file_shape(layout_of(base.metadata, in_file, base.table, path))
    return any(
        field.name in in_file.names and _differs(in_file.field(field.name).type, field.type) for field in in_table
    )


def _differs(in_file: pa.DataType, in_table: pa.DataType) -> bool:
    """Whether a part of one type differs in the other, among the types into which widening is possible."""
    if pa.types.is_struct(in_table):
        if not pa.types.is_struct(in_file):
            return True
        shared = [member for member in in_table if in_file.get_field_index(member.name) >= 0]
        return any(_differs(in_file.field(member.name).type, member.type) for member in shared)
    if pa.types.is_map(in_table):
        is_map = pa.types.is_map(in_file)
        return (
            not is_map
            or _differs(in_file.key_type, in_table.key_type)
            or _differs(in_file.item_type, in_table.item_type)
        )
    if pa.types.is_list(in_table):
        return not pa.types.is_list(in_file) or _differs(in_file.value_type, in_table.value_type)
    if pa.types.is_timestamp(in_table):
        return pa.types.is_date(in_file)
    is_numeric = pa.types.is_integer(in_table) or pa.types.is_floating(in_table) or pa.types.is_decimal(in_table)
    return is_numeric and not in_file.equals(in_table)
