"""Entries that are tables USING delta: delta-spark's own, and ours, which it opens like its own.

Knows Spark's statements on such tables. An entry has no columns, as those of delta-spark: it stores the table's
location. A managed table of ours is external to Spark, so that only our sessions remove its files; a property marks
it, which is valid only for the location for which it was written.
"""

from __future__ import annotations

import hashlib

from pyspark.sql import SparkSession

from anabranch._catalog.delta_format import is_known, run_in_hidden_session
from anabranch._catalog.entry import Entry, Kind
from anabranch._catalog.entry_properties import (
    CAME_FROM,
    MANAGED,
    MOVES_TO,
    decode_property,
    encode_hex,
    format_properties,
    literal,
)
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._catalog.table_texts import TableText
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidOption, NotBuilt, UnreadableEntry


def entry(name: Name, text: TableText) -> Entry:
    """The entry in the text of a table USING delta.

    Raises:
        UnreadableEntry: the location cannot be read.
        InvalidOption: the session hides one of our properties.
    """
    location = text.location()
    if location is None:
        raise UnreadableEntry(name=name_to_sql(name))
    mark = _property(text, MANAGED)
    is_sparks = text.first("Type") == "MANAGED"
    moves_to, came_from = (parts_of(_property(text, key)) for key in (MOVES_TO, CAME_FROM))
    is_managed, owner = is_sparks or mark == _mark(location), text.first("Owner") or ""
    return Entry(name, location, is_managed, Kind.TABLE, is_sparks, "", moves_to, came_from, owner)


def record(spark: SparkSession, made: Entry) -> None:
    """Adds an entry, which has a whole name, to the catalog.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS.
        InvalidOption: no text of Spark's can represent its location, so that nobody could open it.
    """
    location = open_log(made.location).table
    if "\n" in location or "\r" in location:
        raise InvalidOption(option="LOCATION", value=location, reason="a path with a line break cannot have a name.")
    marks = {MOVES_TO: made.moves_to, CAME_FROM: made.came_from}
    properties = {key: encode_hex(name_to_sql(other)) for key, other in marks.items() if other is not None}
    if made.managed:
        properties[MANAGED] = _mark(location)
    shown = f" TBLPROPERTIES ({format_properties(properties, spark)})" if properties else ""
    statement = f"CREATE TABLE {name_to_sql(made.name)} USING delta{shown} LOCATION {literal(location, spark)}"
    _run(spark, statement, made.name)


def rename(spark: SparkSession, name: Name, to: Name) -> None:
    """Renames an entry to another whole name. Raises AnalysisException: it is taken, or of another schema."""
    _run(spark, f"ALTER TABLE {name_to_sql(name)} RENAME TO {name_to_sql(to[-2:])}", name)


def drop(spark: SparkSession, name: Name) -> None:
    """Removes an entry, and with it the files that Spark manages. Raises AnalysisException: it is gone."""
    _run(spark, f"DROP TABLE {name_to_sql(name)}", name)


def mark(spark: SparkSession, name: Name, to: Name | None) -> None:
    """Records in an entry the name that it moves to; None clears it. Raises AnalysisException: it is gone."""
    change = f"UNSET TBLPROPERTIES IF EXISTS ('{MOVES_TO}', '{CAME_FROM}')"
    if to is not None:
        change = f"SET TBLPROPERTIES ('{MOVES_TO}' = '{encode_hex(name_to_sql(to))}')"
    _run(spark, f"ALTER TABLE {name_to_sql(name)} {change}", name)


def _run(spark: SparkSession, statement: str, name: Name) -> None:
    """Runs a statement. Raises NotBuilt: this session can only read the entry."""
    if not is_known(spark):
        instead = "Use a classic session of Spark without other formats in its catalog, or delta-spark."
        raise NotBuilt(what=f"A change of the catalog's table {name_to_sql(name)} from this session", instead=instead)
    run_in_hidden_session(spark, statement)


def _mark(location: str) -> str:
    return hashlib.sha256(open_log(location).table.encode()).hexdigest()[:32]


def _property(text: TableText, key: str) -> str:
    value = text.property(key)
    return "" if value is None else decode_property(key, value)
