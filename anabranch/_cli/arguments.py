"""Arguments that several commands share, and the location of the table that one of them names.

Only what cannot be a path is looked up as a name, so that paths need no Spark.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch._cli.sessions import get_or_start_session
from anabranch.errors import UnknownPathOrName

if TYPE_CHECKING:
    from anabranch._catalog.entry import Entry

TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Path, URL or name of the table.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show every column, also those that do not fit the line.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value, for machines.")]


def location_of(table: str) -> str:
    """The location of a table. Raises UnknownPathOrName: as `find_table`."""
    return find_table(table)[0]


def find_table(table: str) -> tuple[str, Entry | None]:
    """The location of a table, and its entry in the catalog if it was given by name. Raises UnknownPathOrName: it is
    neither a path nor the name of a table.
    """
    if "/" in table or "\\" in table or Path(table).exists():
        return table, None
    try:
        from anabranch._api.session import look_up_entry  # needs Spark; paths do not
    except ModuleNotFoundError as error:
        raise UnknownPathOrName(name=table, reason=f"names are Spark's, and {error.name} is not installed.") from None
    entry = look_up_entry(table, partial(get_or_start_session, "anabranch"))
    return (table, None) if entry is None else (entry.location, entry)
