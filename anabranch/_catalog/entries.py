"""Names: a table's entry in Spark's catalog, which this package and delta-spark open, and nobody misreads.

Knows how Spark names things, and nothing of logs. An entry is a table USING delta (`anabranch._catalog.table_entries`),
or where none can be made a view (`anabranch._catalog.view_entries`). A lasting view of tables has an entry, too.
Guarantee: a session that does not know Anabranch reads no row of an entry, nor takes the table for empty. What an entry
says of columns may be behind the table; where the table lies, it is asked each time.
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
from anabranch._catalog.names import Name, name_to_sql, parts_of
from anabranch._catalog.properties import LOCATION, literal
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
"""How long a name counts as that of something else, and of how many that is kept: longer where no other process can
give it to a table of ours.
"""
_GLOBAL = "global_temp"
_DOORS: Mapping[Kind, ModuleType] = {Kind.TABLE: table_entries, Kind.VIEW: view_entries}


_foreign = per_object("names of something else")
"""Until when names are taken for those of something else: by session, a `Cache` of `_REMEMBERED` names."""
_closed = per_object("catalogs in memory")


@dataclass(frozen=True)
class Seen:
    """What Spark has under a name.

    Attributes:
        name: its whole name.
        is_view: whether it is a view, of whichever kind.
        is_temporary: whether it is a temporary one.
        text: what Spark tells of it; None in another catalog than Spark's own.
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
        """Whether it may be a view that is an entry."""
        return self.is_view and self.text is not None and self.text.mentions(LOCATION)


# -- looking up --------------------------------------------------------------------------------------------------------


def find(spark: SparkSession, name: Name) -> Entry | None:
    """The entry of the table of this name; None where another thing has it (a temporary view counts first), or none."""
    found = look_up(spark, name)
    return found if isinstance(found, Entry) else None


def look_up(spark: SparkSession, name: Name) -> Entry | StoredView | None:
    """As `find`, for lasting views, too: those of Spark may read tables of ours, or may not.

    Raises:
        UnreadableEntry: where the table lies cannot be told. InvalidOption: the session hides it.
    """
    try:
        seen = see(spark, name)
        found = None if seen is None or seen.is_temporary else _entry(spark, seen)
    except AnabranchError:  # some are AnalysisExceptions, too
        raise
    except (AnalysisException, ParseException):  # it was dropped meanwhile, or Spark has no such name
        return None
    if found is None:
        remember(spark, name)
    return found


def _entry(spark: SparkSession, seen: Seen) -> Entry | StoredView | None:
    if seen.is_view:
        found = view_entries.entry(spark, seen.name)
        own = found is not None or has_own_delta(spark)
        return found if own else view_entries.of_spark(spark, seen.name)
    if seen.text is None or not seen.is_delta or has_own_delta(spark):
        return None
    return table_entries.entry(seen.name, seen.text)


def see(spark: SparkSession, name: Name) -> Seen | None:
    """What Spark has under a name, whatever its format is: a temporary view, or else what its catalog keeps.

    Raises:
        AnalysisException: there can be no such name. LoneSurrogate: no text can hold it.
    """
    full = whole(spark, name)
    check_text("The name of a table", name_to_sql(full))
    is_sessions, is_global = full[0].lower() == SESSIONS, full[-2].lower() == _GLOBAL
    schema = full[:-1] if is_sessions else (SESSIONS, _GLOBAL)
    is_asked = (is_sessions or len(name) < 3) and not _is_path(spark, full)
    seen = list_tables(spark, schema, re.sub(r"\W", ".", full[-1], flags=re.ASCII)) if is_asked else []
    seen = [each for each in seen if _is_named(each, full, spark)]
    for each in seen:
        if each.is_temporary and (is_global if each.name[1] else len(name) == 1):
            return each
    if not is_sessions:
        return _see_elsewhere(spark, full)
    return next((each for each in seen if not each.is_temporary), None)


def _is_path(spark: SparkSession, name: Name) -> bool:
    """Whether it is a path behind the name of a format: cheaper to ask than to be told by an error of Spark's."""
    is_likely = "/" in name[-1] and name[-2].lower() != _GLOBAL
    return is_likely and not plain_catalog(spark).databaseExists(name_to_sql(name[:-1]))


def list_tables(spark: SparkSession, schema: Name, pattern: str | None = None) -> list[Seen]:
    """What Spark's own catalog has in a schema, and the session's temporary views; nothing where there is no schema."""
    wanted = literal("*" if pattern is None else pattern, spark)
    try:
        rows = exact_sql(spark, f"SHOW TABLE EXTENDED IN {name_to_sql(schema)} LIKE {wanted}").collect()
    except AnalysisException as error:
        if error.getCondition() == "SCHEMA_NOT_FOUND":
            return []
        raise
    return [_parse_listing_row(*row) for row in rows]


def _parse_listing_row(schema: str, name: str, is_temporary: bool, said: str) -> Seen:
    text = TableText.of(said)
    return Seen((SESSIONS, schema, name), is_temporary or text.first("Type") == "VIEW", is_temporary, text)


def _is_named(seen: Seen, name: Name, spark: SparkSession) -> bool:
    is_exact = (spark.conf.get("spark.sql.caseSensitive", None) or "").lower() == "true"
    found, wanted = seen.name[-1], name[-1]
    return found == wanted if is_exact else found.lower() == wanted.lower()


def _see_elsewhere(spark: SparkSession, name: Name) -> Seen | None:
    """As `see`, where another catalog than Spark's own is asked, which opens what it tells of."""
    if not plain_catalog(spark).tableExists(_to_spark_name(name, spark)):
        return None
    found = get_spark_table(spark, name)
    full = (found.catalog or SESSIONS, *(found.namespace or ()), found.name)
    return Seen(full, found.tableType == "VIEW" or found.isTemporary, found.isTemporary)


def _to_spark_name(name: Name, spark: SparkSession) -> str:
    """A name as Spark's catalog takes it, in which nothing is filled in."""
    return verbatim(name_to_sql(name), spark)


def entries_in(spark: SparkSession, schema: Name) -> list[Entry]:
    """The entries of a schema; none where there is no such schema.

    Raises:
        UnreadableEntry, InvalidOption: as `look_up`.
    """
    found = [find(spark, each.name) for each in list_tables(spark, schema) if not each.is_temporary]
    return [entry for entry in found if entry is not None]


def rules_of(spark: SparkSession, settings: Iterable[str] = _RULES) -> dict[str, str]:
    """The settings of a session by which one expression has one value or another."""
    return {name: view_entries.comparable(_setting(spark, name)) for name in settings}


def _setting(spark: SparkSession, name: str) -> str:
    try:
        return str(spark.conf.get(name))  # with a default of ours, Spark would leave out its own
    except Exception:  # Py4J's or PySpark's: this Spark has no such setting
        return ""


def whole(spark: SparkSession, name: Name) -> Name:
    """A name with the session's catalog and schema, as far as it names none itself."""
    if len(name) > 2 or (len(name) == 2 and _is_catalog(spark, name[0])):
        return name
    catalog = spark.catalog.currentCatalog()
    within = () if len(name) == 2 else parts_of(spark.catalog.currentDatabase()) or ()
    return (catalog, *within, *name)


def _is_catalog(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of another catalog, which counts before a schema."""
    return name.lower() != SESSIONS and spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def is_taken(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog holds anything of this name, or the session a temporary view."""
    return see(spark, name) is not None


def is_temporary(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view of the session."""
    try:
        seen = see(spark, name)
    except (AnalysisException, ParseException):
        return False
    return seen is not None and seen.is_temporary


def can_be_kept(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog of a whole name keeps tables or views that lead elsewhere; a free name is asked about."""
    if name[0].lower() == SESSIONS:
        return True
    told = exact_sql(spark, f"EXPLAIN CREATE VIEW {name_to_sql(name)} AS SELECT 1 AS probe").collect()
    return not any("MISSING_CATALOG_ABILITY" in row[0] for row in told)


def folder(spark: SparkSession, name: Name) -> str:
    """Where Spark would keep a managed table of this whole name. Raises AnalysisException: SCHEMA_NOT_FOUND."""
    base = unquote(spark.catalog.getDatabase(_to_spark_name(name[:-1], spark)).locationUri)  # a URI, where we say paths
    return f"{base.rstrip('/')}/{name[-1].lower()}"


def is_foreign(spark: SparkSession, name: Name) -> bool:
    """Whether a name was that of something else a moment ago, so that a query need not ask again.

    Where it has become one of ours since, in another process or by another current schema, the query reaches the entry
    itself, which raises.
    """
    known = _foreign.get(spark)
    return known is not None and time.monotonic() < known.get(name, 0.0)


def remember(spark: SparkSession, name: Name) -> None:
    """Remember for a while that a name is that of something else."""
    catalog = name[0] if len(name) > 2 else None
    lasts = _CLOSED_S if catalog in (None, SESSIONS) and _is_closed(spark) else _REMEMBERED_S
    with _foreign.lock:
        _foreign.setdefault(spark, Cache(_REMEMBERED))[name] = time.monotonic() + lasts


def _is_closed(spark: SparkSession) -> bool:
    """Whether Spark's own catalog is in this application's memory, so that nobody else puts anything into it."""
    if spark not in _closed:
        in_memory = spark.conf.get("spark.sql.catalogImplementation", None) == "in-memory"
        _closed[spark] = in_memory and not is_connect(spark)
    found: bool = _closed[spark]
    return found


def forget() -> None:
    """Forget what names were those of something else, in every session: names have changed, or may have."""
    with _foreign.lock:
        _foreign.clear()


def has_schema(spark: SparkSession, schema: Name) -> bool:
    """Whether there is a schema of this whole name."""
    return bool(spark.catalog.databaseExists(_to_spark_name(schema, spark)))


def get_spark_table(spark: SparkSession, name: Name) -> Table:
    """What Spark says of a view, or of a table of a format that it knows. Raises AnalysisException: there is none."""
    return plain_catalog(spark).getTable(_to_spark_name(name, spark))


# -- writing -----------------------------------------------------------------------------------------------------------


def kind_for(spark: SparkSession, name: Name) -> Kind:
    """What a new entry of this whole name can be."""
    return Kind.TABLE if name[0].lower() == SESSIONS and is_known(spark) else Kind.VIEW


def record(spark: SparkSession, entry: Entry, schema: Struct, comment: str | None) -> None:
    """Put an entry into the catalog; its name is a whole one.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS, or its catalog keeps no views.
        InvalidOption: the session reads texts in quotes in another way than they are written here.
    """
    forget()
    if entry.kind is Kind.TABLE:
        table_entries.record(spark, entry)
    else:
        view_entries.record(spark, entry, schema, comment)


def refresh(spark: SparkSession, entry: Entry, schema: Struct, comment: str | None) -> None:
    """Let an entry show other columns, where it shows any."""
    if entry.kind is Kind.VIEW:
        view_entries.record(spark, entry, schema, comment, replaces=True)


def is_behind(entry: Entry, schema: Struct, comment: str | None) -> bool:
    """Whether an entry shows other columns than these."""
    return entry.kind is Kind.VIEW and entry.columns != view_entries.fingerprint(schema, comment)


def rename(spark: SparkSession, entry: Entry, to: Name) -> None:
    """Give an entry another whole name. Raises Spark's AnalysisException: it is taken, or of another schema."""
    forget()
    _DOORS[entry.kind].rename(spark, entry.name, to)


def take(spark: SparkSession, entry: Entry) -> bool:
    """Take an entry out of the catalog; False where it is gone already, so that of several one knows that it was it."""
    try:
        _DOORS[entry.kind].drop(spark, entry.name)
    except AnalysisException:
        if is_taken(spark, entry.name):
            raise
        return False
    return True


def mark(spark: SparkSession, entry: Entry, to: Name | None) -> None:
    """Let an entry say to which name it moves; None: it has one alone. Raises Spark's AnalysisException: it is gone."""
    _DOORS[entry.kind].mark(spark, entry.name, to)
