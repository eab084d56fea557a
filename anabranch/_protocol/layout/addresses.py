"""Names of columns that are added to a table's own, such as those of a row's address. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from anabranch._protocol.schema.types import Struct


class Address(NamedTuple):
    """The names of the two columns with a row's address."""

    path: str
    row: str


def address_of(schema: Struct) -> Address:
    """The address columns of rows of this schema, with names that none of its own columns has."""
    return Address(free_name("__anabranch_path", schema.names), free_name("__anabranch_row", schema.names))


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, with underscores appended while a column has that name, in any case."""
    used = {name.lower() for name in taken}
    while wanted.lower() in used:
        wanted += "_"
    return wanted
