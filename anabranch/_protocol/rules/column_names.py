"""Checks the characters of new column names.

Without column mapping a column has the same name in Parquet files, where older readers take some characters for syntax;
so delta-spark refuses them there, and so does this package. Existing names stay. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch._protocol.actions import Metadata
from anabranch._protocol.schema.column_mapping import is_mapped
from anabranch._protocol.schema.types import Array, DataType, Map, Struct
from anabranch.errors import InvalidCharactersInColumnNames
from anabranch.errors.inputs import check_text

REFUSED = frozenset(" ,;{}()\n\t=")


def check_spelling(metadata: Metadata, before: Metadata | None = None) -> None:
    """Raises if a new name in a table's metadata contains a forbidden character.

    Raises:
        LoneSurrogate: a name, comment or property is not valid text.
        InvalidCharactersInColumnNames: some names contain one, and the table has no column mapping.
    """
    properties = (text for pair in metadata.configuration.items() for text in pair)
    for text in (metadata.schema_string, metadata.name or "", metadata.description or "", *properties):
        check_text("What a table says of itself", text)
    if is_mapped(metadata.configuration):
        return
    existing = set() if before is None or is_mapped(before.configuration) else set(_paths(before.schema))
    invalid = [path for path in _paths(metadata.schema) if REFUSED & set(path[-1]) and path not in existing]
    if invalid:
        raise InvalidCharactersInColumnNames(columns=", ".join(map(".".join, invalid)))


def _paths(type_: DataType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of columns and members of structs, each with its parents."""
    match type_:
        case Struct():
            for field in type_:
                yield (*above, field.name)
                yield from _paths(field.type, (*above, field.name))
        case Array():
            yield from _paths(type_.element, (*above, "element"))
        case Map():
            yield from _paths(type_.key, (*above, "key"))
            yield from _paths(type_.value, (*above, "value"))
