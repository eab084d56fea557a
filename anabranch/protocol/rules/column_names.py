"""Spelling: which signs names of columns may hold.

Without column mapping a column is called in Parquet files as in the table, where older readers take some signs for
grammar; so delta-spark refuses them there, and so does this. Names that a table has already are left alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.errors import InvalidCharactersInColumnNames
from anabranch.errors.inputs import check_text
from anabranch.protocol.actions import Metadata
from anabranch.protocol.schema.column_mapping import is_mapped
from anabranch.protocol.schema.types import Array, DataType, Map, Struct

REFUSED = frozenset(" ,;{}()\n\t=")


def check_spelling(metadata: Metadata, before: Metadata | None = None) -> None:
    """Hold that no name that is new in a table's metadata holds a sign that it may not hold.

    Raises:
        LoneSurrogate: a name, comment or property is no text.
        InvalidCharactersInColumnNames: some do, and the table has no column mapping.
    """
    properties = (text for pair in metadata.configuration.items() for text in pair)
    for text in (metadata.schema_string, metadata.name or "", metadata.description or "", *properties):
        check_text("What a table says of itself", text)
    if is_mapped(metadata.configuration):
        return
    known = set() if before is None or is_mapped(before.configuration) else set(_paths(before.schema))
    found = [path for path in _paths(metadata.schema) if REFUSED & set(path[-1]) and path not in known]
    if found:
        raise InvalidCharactersInColumnNames(columns=", ".join(map(".".join, found)))


def _paths(type_: DataType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of columns and members of structs, each with what it lies in."""
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
