"""Types in files: which files of a table whose columns were widened are older than that.

Knows footers, not rows. Guarantee: a file that is not named here holds every column in the type that the table says, or
not at all; in doubt it is named.
"""

from __future__ import annotations

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.widening import TYPE_CHANGES
from anabranch._protocol.schema.column_mapping import file_schema
from anabranch._protocol.schema.types import INTEGERS, Field
from anabranch.commands.field_id_names import layout_of, schema_of
from anabranch.commands.opening import only


def older_than_types(base: Snapshot) -> pa.Table:
    """The live files that hold some column in another type than the table's. Raises MissingDataFile: one is gone."""
    partitions = [base.schema.field(name) for name in base.partition_columns]
    if any(_is_spelled_otherwise(each) for each in partitions):
        return base.files
    old = [_is_old(base, path) for path in base.files["path"].to_pylist()]
    return only(base.files, pa.array(old, pa.bool_()))


def _is_spelled_otherwise(field: Field) -> bool:
    """Whether partition values of the older type may not read as the log would say those of the newer one."""
    changes = field.metadata.get(TYPE_CHANGES) or ()
    return any(not {each.get("fromType"), each.get("toType")} <= set(INTEGERS) for each in changes)


def _is_old(base: Snapshot, path: str) -> bool:
    there = schema_of(base.store, base.metadata, path)
    wanted = file_schema(layout_of(base.metadata, there, base.table, path))
    return any(each.name in there.names and _differs(there.field(each.name).type, each.type) for each in wanted)


def _differs(there: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether some part of one type is of another type in the other, of those that can be widened into."""
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(there):
            return True
        both = [each for each in wanted if there.get_field_index(each.name) >= 0]
        return any(_differs(there.field(each.name).type, each.type) for each in both)
    if pa.types.is_map(wanted):
        same = pa.types.is_map(there)
        return not same or _differs(there.key_type, wanted.key_type) or _differs(there.item_type, wanted.item_type)
    if pa.types.is_list(wanted):
        return not pa.types.is_list(there) or _differs(there.value_type, wanted.value_type)
    if pa.types.is_timestamp(wanted):
        return pa.types.is_date(there)
    numbers = pa.types.is_integer(wanted) or pa.types.is_floating(wanted) or pa.types.is_decimal(wanted)
    return numbers and not there.equals(wanted)
