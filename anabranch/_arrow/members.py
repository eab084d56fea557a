"""Members of structs in files, at any depth: those that a column has and the file lacks, and the other way round.

Imports pyarrow only: this module travels to executors by value. Guarantee: members match by their names in files, and
only where no other name could be meant.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from anabranch._protocol.unsupported import Unsupported


def common_members(wanted: pa.DataType, file_type: pa.DataType) -> pa.DataType:
    """The wanted type with those members only that the file has.

    Raises:
        Unsupported: a struct has none of them, so that no value of the file says where it is NULL; or names differ in
            case, where Spark's settings decide.
    """
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(file_type)):
        return _change_inside(wanted, file_type, common_members)
    folded = {member.name.lower() for member in file_type}
    names = {member.name for member in file_type}
    if any(member.name not in names and member.name.lower() in folded for member in wanted):
        raise Unsupported("names of members differ in case only")
    members = [member for member in wanted if member.name in names]
    if not members:
        raise Unsupported("a file has none of the members of a struct")
    return pa.struct([each.with_type(common_members(each.type, file_type.field(each.name).type)) for each in members])


def with_members(file_type: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The file's type with the wanted members only, without those whose name occurs twice."""
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(file_type)):
        return _change_inside(file_type, wanted, with_members)
    folded = [file_member.name.lower() for file_member in file_type]
    unique = [member for member in wanted if folded.count(member.name.lower()) == 1]
    members = [(member, file_type.field(member.name)) for member in unique]
    return pa.struct([pa.field(member.name, with_members(stored.type, member.type)) for member, stored in members])


def _change_inside(
    kind: pa.DataType, other: pa.DataType, change: Callable[[pa.DataType, pa.DataType], pa.DataType]
) -> pa.DataType:
    """A list or map whose parts are changed by those of another one; any other type unchanged."""
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return pa.list_(kind.value_field.with_type(change(kind.value_type, other.value_type)))
    if pa.types.is_map(kind) and pa.types.is_map(other):
        key = kind.key_field.with_type(change(kind.key_type, other.key_type))
        return pa.map_(key, kind.item_field.with_type(change(kind.item_type, other.item_type)))
    return kind


def is_part(found: pa.DataType, whole: pa.DataType) -> bool:
    """Whether a type has only members of another one, in its order: a cast finds each of them, and makes the others
    NULL.
    """
    if pa.types.is_struct(found) and pa.types.is_struct(whole):
        names = [member.name for member in found]
        in_order = [member.name for member in whole if member.name in names]
        return names == in_order and all(is_part(each.type, whole.field(each.name).type) for each in found)
    if pa.types.is_list(found) and pa.types.is_list(whole):
        return is_part(found.value_type, whole.value_type)
    if pa.types.is_map(found) and pa.types.is_map(whole):
        return is_part(found.key_type, whole.key_type) and is_part(found.item_type, whole.item_type)
    return not (pa.types.is_nested(found) or pa.types.is_nested(whole))
