"""Table and view names in Spark's catalog: finds, writes and removes the entries that name Delta tables.

Knows how Spark names things, and nothing of logs. An entry is a table USING delta (`anabranch._catalog.table_entries`)
or, where Spark can make none, a view (`anabranch._catalog.view_entries`). A persistent view of Delta tables has an
entry too. Guarantee: a session without Anabranch reads no row of an entry, nor takes the table for empty. The columns
in an entry may lag behind the table; its location is read on every use.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from urllib.parse import unquote

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Table

from anabranch._catalog import table_entries, view_entries
from anabranch._catalog.delta_format import is_known
from anabranch._catalog.entry import Entry, Kind, StoredView
from anabranch._catalog.entry_properties import LOCATION, literal
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._catalog.table_texts import TableText
from anabranch._protocol.schema.types import Struct
from anabranch._spark.sessions.session import has_own_delta, is_connect, plain_catalog
from anabranch._spark.sessions.sql_text import exact_sql, verbatim
from anabranch.errors import AnabranchError
from anabranch.errors.inputs import check_text
from anabranch.errors.process_state import Cache, per_object

SESSIONS = "spark_catalog"
"""Spark's own catalog."""
_RULES = ("spark.sql.ansi.enabled",)
_REMEMBERED_S, _CLOSED_S, _REMEMBERED = 2.0, 60.0, 1000
"""How long a name is remembered as foreign, in seconds (longer when no other process can change the catalog), and how
many names per session.
"""
_GLOBAL = "global_temp"
_DOORS: Mapping[Kind, ModuleType] = {Kind.TABLE: table_entries, Kind.VIEW: view_entries}


_foreign = per_object("names of something else")
"""When each foreign name expires: by session, a `Cache` of `_REMEMBERED` names."""
_closed = per_object("catalogs in memory")


@dataclass(frozen=True)
class CatalogItem:
    """What Spark's catalog has under a name.

    Attributes:
        name: the whole name.
        is_view: whether it is a view of any kind.
        is_temporary: whether it is a temporary view.
        text: Spark's description of it; None in catalogs other than Spark's own.
    """

    name: Name
    is_view: bool
    is_temporary: bool
    text: TableText | None = None

    @property
    def is_delta(self) -> bool:
        """Whether it is a table USING delta."""
        return not self.is_view and self.text is not None and (self.text.first("Provider") or "").lower() == "delta"

    @property
    def may_be_entry(self) -> bool:
        """Whether it is a view that may be an entry."""
        return self.is_view and self.text is not None and self.text.mentions(LOCATION)


# -- looking up --------------------------------------------------------------------------------------------------------


def find(spark: SparkSession, name: Name) -> Entry | None:
    """The entry of the table with this name; None where the name is free or another thing's (temporary views win)."""
    entry = look_up(spark, name)
    return entry if isinstance(entry, Entry) else None


def look_up(spark: SparkSession, name: Name) -> Entry | StoredView | None:
    """As `find`, and for persistent views too. A view of Spark's own may or may not read Delta tables.

    Raises:
        UnreadableEntry: the table's location cannot be read. InvalidOption: the session hides it.
    """
    try:
        seen = find_item(spark, name)
        entry = None if seen is None or seen.is_temporary else _entry(spark, seen)
    except AnabranchError:  # some are AnalysisExceptions too
        raise
    except (AnalysisException, ParseException):  # dropped meanwhile, or Spark cannot have such a name
        return None
    if entry is None:
        remember(spark, name)
    return entry


def _entry(spark: SparkSession, seen: CatalogItem) -> Entry | StoredView | None:
    if seen.is_view:
        stored = view_entries.entry(spark, seen.name)
        is_ours = stored is not None or has_own_delta(spark)
        return stored if is_ours else view_entries.read_spark_view(spark, seen.name)
    if seen.text is None or not seen.is_delta or has_own_delta(spark):
        return None
    return table_entries.entry(seen.name, seen.text)


def find_item(spark: SparkSession, name: Name) -> CatalogItem | None:
    """What Spark has under a name, whatever its format: a temporary view, or else what the catalog holds.

    Raises:
        AnalysisException: the name is not possible. LoneSurrogate: the name is not valid Unicode.
    """
    full = complete_name(spark, name)
    check_text("The name of a table", name_to_sql(full))
    is_sessions, is_global = full[0].lower() == SESSIONS, full[-2].lower() == _GLOBAL
    schema = full[:-1] if is_sessions else (SESSIONS, _GLOBAL)
    is_listed = (is_sessions or len(name) < 3) and not _is_path(spark, full)
    seen = list_tables(spark, schema, re.sub(r"\W", ".", full[-1], flags=re.ASCII)) if is_listed else []
    seen = [entry for entry in seen if _is_named(entry, full, spark)]
    for entry in seen:
        if entry.is_temporary and (is_global if entry.name[1] else len(name) == 1):
            return entry
    if not is_sessions:
        return _see_elsewhere(spark, full)
    return next((entry for entry in seen if not entry.is_temporary), None)


def _is_path(spark: SparkSession, name: Name) -> bool:
    """Whether the name is a path behind a format's name; asking is cheaper than catching Spark's error."""
    is_likely = "/" in name[-1] and name[-2].lower() != _GLOBAL
    return is_likely and not plain_catalog(spark).databaseExists(name_to_sql(name[:-1]))


def list_tables(spark: SparkSession, schema: Name, pattern: str | None = None) -> list[CatalogItem]:
    """Lists a schema of Spark's own catalog, and the session's temporary views; empty if the schema does not exist."""
    like = literal("*" if pattern is None else pattern, spark)
    try:
        rows = exact_sql(spark, f"SHOW TABLE EXTENDED IN {name_to_sql(schema)} LIKE {like}").collect()
    except AnalysisException as error:
        if error.getCondition() == "SCHEMA_NOT_FOUND":
            return []
        raise
    return [_parse_listing_row(*row) for row in rows]


def _parse_listing_row(schema: str, name: str, is_temporary: bool, details: str) -> CatalogItem:
    text = TableText.of(details)
    return CatalogItem((SESSIONS, schema, name), is_temporary or text.first("Type") == "VIEW", is_temporary, text)


def _is_named(seen: CatalogItem, name: Name, spark: SparkSession) -> bool:
    is_exact = (spark.conf.get("spark.sql.caseSensitive", None) or "").lower() == "true"
    listed, requested = seen.name[-1], name[-1]
    return listed == requested if is_exact else listed.lower() == requested.lower()


def _see_elsewhere(spark: SparkSession, name: Name) -> CatalogItem | None:
    """As `find_item`, for catalogs other than Spark's own; Spark opens the table to answer."""
    if not plain_catalog(spark).tableExists(_to_spark_name(name, spark)):
        return None
    table = get_spark_table(spark, name)
    full = (table.catalog or SESSIONS, *(table.namespace or ()), table.name)
    return CatalogItem(full, table.tableType == "VIEW" or table.isTemporary, table.isTemporary)


def _to_spark_name(name: Name, spark: SparkSession) -> str:
    """A name as SQL text for Spark's catalog, safe from variable substitution."""
    return verbatim(name_to_sql(name), spark)


def entries_in(spark: SparkSession, schema: Name) -> list[Entry]:
    """The entries of a schema; empty if the schema does not exist.

    Raises:
        UnreadableEntry, InvalidOption: as `look_up`.
    """
    entries = [find(spark, listed.name) for listed in list_tables(spark, schema) if not listed.is_temporary]
    return [entry for entry in entries if entry is not None]


def rules_of(spark: SparkSession, settings: Iterable[str] = _RULES) -> dict[str, str]:
    """The session's settings that change the value of an expression."""
    return {name: view_entries.comparable(_setting(spark, name)) for name in settings}


def _setting(spark: SparkSession, name: str) -> str:
    try:
        return str(spark.conf.get(name))  # passing a default would hide Spark's own
    except Exception:  # of Py4J or PySpark: this Spark has no such setting
        return ""


def complete_name(spark: SparkSession, name: Name) -> Name:
    """Completes a name with the session's current catalog and schema."""
    if len(name) > 2 or (len(name) == 2 and _is_catalog(spark, name[0])):
        return name
    catalog = spark.catalog.currentCatalog()
    within = () if len(name) == 2 else parts_of(spark.catalog.currentDatabase()) or ()
    return (catalog, *within, *name)


def _is_catalog(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of another catalog; catalogs win over schemas."""
    return name.lower() != SESSIONS and spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def is_taken(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog or a temporary view of the session uses this name."""
    return find_item(spark, name) is not None


def is_temporary(spark: SparkSession, name: Name) -> bool:
    """Whether a temporary view of the session has this name."""
    try:
        seen = find_item(spark, name)
    except (AnalysisException, ParseException):
        return False
    return seen is not None and seen.is_temporary


def can_store_entries(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog of a whole name can store tables or views that point elsewhere. The name must be free."""
    if name[0].lower() == SESSIONS:
        return True
    plan = exact_sql(spark, f"EXPLAIN CREATE VIEW {name_to_sql(name)} AS SELECT 1 AS probe").collect()
    said = ("MISSING_CATALOG_ABILITY", "does not support views")  # the second by Spark 4.0
    return not any(words in row[0] for row in plan for words in said)


def managed_folder(spark: SparkSession, name: Name) -> str:
    """The folder of a managed table of this whole name. Raises AnalysisException: SCHEMA_NOT_FOUND."""
    schema = spark.catalog.getDatabase(_to_spark_name(name[:-1], spark))
    base = unquote(schema.locationUri or "")  # Spark gives a URI, or nothing, where the catalog has no folders
    return f"{base.rstrip('/')}/{name[-1].lower()}"


def is_foreign(spark: SparkSession, name: Name) -> bool:
    """Whether a name was recently seen to be something else's, so that a query need not look it up again.

    If it has become a Delta table since, in another process or through another current schema, the query reaches the
    entry itself, which raises.
    """
    expiries = _foreign.get(spark)
    return expiries is not None and time.monotonic() < expiries.get(name, 0.0)


def remember(spark: SparkSession, name: Name) -> None:
    """Remembers for a while that a name belongs to something else."""
    catalog = name[0] if len(name) > 2 else None
    seconds = _CLOSED_S if catalog in (None, SESSIONS) and _is_closed(spark) else _REMEMBERED_S
    with _foreign.lock:
        _foreign.setdefault(spark, Cache(_REMEMBERED))[name] = time.monotonic() + seconds


def _is_closed(spark: SparkSession) -> bool:
    """Whether Spark's own catalog lives in this application's memory, so that no other process can change it."""
    if spark not in _closed:
        in_memory = spark.conf.get("spark.sql.catalogImplementation", None) == "in-memory"
        _closed[spark] = in_memory and not is_connect(spark)
    is_closed: bool = _closed[spark]
    return is_closed


def forget() -> None:
    """Forgets all foreign names of every session, because names have changed or may have."""
    with _foreign.lock:
        _foreign.clear()


def has_schema(spark: SparkSession, schema: Name) -> bool:
    """Whether a schema of this whole name exists."""
    return bool(spark.catalog.databaseExists(_to_spark_name(schema, spark)))


def get_spark_table(spark: SparkSession, name: Name) -> Table:
    """Spark's catalog record of a view, or of a table in a format it knows. Raises AnalysisException: not found."""
    return plain_catalog(spark).getTable(_to_spark_name(name, spark))


# -- writing -----------------------------------------------------------------------------------------------------------


def kind_for(spark: SparkSession, name: Name) -> Kind:
    """The kind of entry that can be created under this whole name."""
    return Kind.TABLE if name[0].lower() == SESSIONS and is_known(spark) else Kind.VIEW


def record(spark: SparkSession, entry: Entry, schema: Struct, comment: str | None) -> None:
    """Adds an entry, which has a whole name, to the catalog.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS, or its catalog keeps no views.
        InvalidOption: the session reads quoted texts differently from how they are written here.
    """
    forget()
    if entry.kind is Kind.TABLE:
        table_entries.record(spark, entry)
    else:
        view_entries.record(spark, entry, schema, comment)


def refresh(spark: SparkSession, entry: Entry, schema: Struct, comment: str | None) -> None:
    """Updates the columns of an entry that shows any."""
    if entry.kind is Kind.VIEW:
        view_entries.record(spark, entry, schema, comment, replaces=True)


def is_behind(entry: Entry, schema: Struct, comment: str | None) -> bool:
    """Whether an entry shows columns other than these."""
    return entry.kind is Kind.VIEW and entry.columns != view_entries.fingerprint(schema, comment)


def rename(spark: SparkSession, entry: Entry, to: Name) -> None:
    """Renames an entry to another whole name. Raises Spark's AnalysisException: it is taken, or of another schema."""
    forget()
    _DOORS[entry.kind].rename(spark, entry.name, to)


def take(spark: SparkSession, entry: Entry) -> bool:
    """Removes an entry from the catalog; False if it is already gone, so that only one of several callers gets True."""
    try:
        _DOORS[entry.kind].drop(spark, entry.name)
    except AnalysisException:
        if is_taken(spark, entry.name):
            raise
        return False
    return True


def mark_rename(spark: SparkSession, entry: Entry, to: Name | None) -> None:
    """Records in an entry the name that it moves to; None clears it. Raises Spark's AnalysisException: it is gone."""
    _DOORS[entry.kind].mark(spark, entry.name, to)
