"""Changes of a table's metadata, as seen by a stream that reads the table. Knows columns and properties. Pure."""

from __future__ import annotations

from anabranch._protocol import change_feed
from anabranch._protocol.actions import Metadata
from anabranch._protocol.features.widening import can_widen
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, kind_of


def difference(before: Metadata, after: Metadata) -> str:
    """Describes how the metadata of two versions differ; names only, no values."""
    changes = [
        *_list_names("columns added", _names(after) - _names(before)),
        *_list_names("columns dropped or renamed", _names(before) - _names(after)),
        *_list_names(
            "columns changed", {name for name in _names(before) & _names(after) if _is_changed(before, after, name)}
        ),
        *_list_names("properties changed", _properties(before, after)),
    ]
    if before.partition_columns != after.partition_columns:
        changes.append("partitioned by other columns")
    if before.schema.names != after.schema.names and not changes:
        changes.append("columns in another order")
    return "; ".join(changes) or "its name or description"


def _names(metadata: Metadata) -> set[str]:
    return set(metadata.schema.names)


def _is_changed(before: Metadata, after: Metadata, name: str) -> bool:
    return before.schema.field(name) != after.schema.field(name)


def _properties(before: Metadata, after: Metadata) -> set[str]:
    return {key for key, _ in set(before.configuration.items()) ^ set(after.configuration.items())}


def _list_names(what: str, names: set[str]) -> list[str]:
    return [f"{what}: {', '.join(sorted(names))}"] if names else []


def unreadable(older: DataType, newer: DataType, path: str = "") -> str | None:
    """The reason why rows of one schema cannot be read as another; None if they can. Columns match by physical name;
    missing columns are NULL, extra ones are left out; types may have become wider.

    Example:
        >>> unreadable(Struct((Field("id", "string"),)), Struct((Field("id", "long"),)))
        'id was of the type string and is of the type long'
    """
    if isinstance(older, Struct) and isinstance(newer, Struct):
        older_fields = {field.physical_name: field for field in older}
        pairs = [(older_fields[field.physical_name], field) for field in newer if field.physical_name in older_fields]
        return next((why for old, new in pairs if (why := _unreadable_field(old, new, path))), None)
    if isinstance(older, Array) and isinstance(newer, Array):
        return unreadable(older.element, newer.element, f"{path}.element")
    if isinstance(older, Map) and isinstance(newer, Map):
        key = unreadable(older.key, newer.key, f"{path}.key")
        return key or unreadable(older.value, newer.value, f"{path}.value")
    if _fits(older, newer):
        return None
    return f"{path} was of the type {kind_of(older)} and is of the type {kind_of(newer)}"


def loss(older: Metadata, newer: Metadata) -> str | None:
    """What rows of one version lose if read with a newer version's metadata: a column that was dropped or renamed, or
    has an incompatible type; None if nothing.
    """
    return change_feed.unreadable(older.schema, newer.schema, fits=_fits)


def _fits(older: DataType, newer: DataType) -> bool:
    """Whether values of one type can be read as another, which is the same or wider."""
    return older == newer or can_widen(older, newer)


def _unreadable_field(older: Field, newer: Field, prefix: str) -> str | None:
    return unreadable(older.type, newer.type, f"{prefix}.{newer.name}" if prefix else newer.name)
