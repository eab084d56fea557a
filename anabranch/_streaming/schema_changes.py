"""Changes of a table's metadata, as a stream that reads the table sees them.

Knows columns and properties. Pure.
"""

from __future__ import annotations

from anabranch._protocol import change_feed
from anabranch._protocol.actions import Metadata
from anabranch._protocol.features.widening import can_widen
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, kind_of


def difference(before: Metadata, after: Metadata) -> str:
    """What differs between the metadata of two versions, in words; names only, no values."""
    said = [
        *_list_names("columns added", _names(after) - _names(before)),
        *_list_names("columns dropped or renamed", _names(before) - _names(after)),
        *_list_names(
            "columns changed", {name for name in _names(before) & _names(after) if _is_changed(before, after, name)}
        ),
        *_list_names("properties changed", _properties(before, after)),
    ]
    if before.partition_columns != after.partition_columns:
        said.append("partitioned by other columns")
    if before.schema.names != after.schema.names and not said:
        said.append("columns in another order")
    return "; ".join(said) or "its name or description"


def _names(metadata: Metadata) -> set[str]:
    return set(metadata.schema.names)


def _is_changed(before: Metadata, after: Metadata, name: str) -> bool:
    return before.schema.field(name) != after.schema.field(name)


def _properties(before: Metadata, after: Metadata) -> set[str]:
    return {key for key, _ in set(before.configuration.items()) ^ set(after.configuration.items())}


def _list_names(what: str, names: set[str]) -> list[str]:
    return [f"{what}: {', '.join(sorted(names))}"] if names else []


def unreadable(older: DataType, newer: DataType, path: str = "") -> str | None:
    """Why rows of one schema cannot be read with the columns of another; None where they can. Columns are the same
    where their physical names are; those that only one has are NULL, or left out; types may have become wider.

    Example:
        >>> unreadable(Struct((Field("id", "string"),)), Struct((Field("id", "long"),)))
        'id was of the type string and is of the type long'
    """
    if isinstance(older, Struct) and isinstance(newer, Struct):
        known = {each.physical_name: each for each in older}
        both = [(known[each.physical_name], each) for each in newer if each.physical_name in known]
        return next((why for old, new in both if (why := _unreadable_field(old, new, path))), None)
    if isinstance(older, Array) and isinstance(newer, Array):
        return unreadable(older.element, newer.element, f"{path}.element")
    if isinstance(older, Map) and isinstance(newer, Map):
        key = unreadable(older.key, newer.key, f"{path}.key")
        return key or unreadable(older.value, newer.value, f"{path}.value")
    if _fits(older, newer):
        return None
    return f"{path} was of the type {kind_of(older)} and is of the type {kind_of(newer)}"


def loss(older: Metadata, newer: Metadata) -> str | None:
    """What rows with the metadata of one version lose if they are read with that of a newer one: a column that was
    dropped or renamed, or whose type no reader can follow; None where they keep all.
    """
    return change_feed.unreadable(older.schema, newer.schema, fits=_fits)


def _fits(older: DataType, newer: DataType) -> bool:
    """Whether values of one type can be read as another, which is the same or wider."""
    return older == newer or can_widen(older, newer)


def _unreadable_field(older: Field, newer: Field, prefix: str) -> str | None:
    return unreadable(older.type, newer.type, f"{prefix}.{newer.name}" if prefix else newer.name)
