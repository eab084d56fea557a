"""Names: a table's entry in Spark's catalog, which an installed session opens and any other cannot misread.

Knows how Spark names things, and nothing of logs. An entry is a persistent view with the table's columns and comments,
the table's place in its properties, and a body that raises. A lasting view of tables has such an entry, too, with its
query in the properties. Guarantee: a session that does not know Anabranch reads no row of an entry, nor takes the table
for empty: every column is an error, so that no optimizer can do without it. What an entry says of columns may be behind
the table; where the table lies, it is asked each time.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Table

from anabranch.catalog.names import Name, parts_of, spelled
from anabranch.errors import AnabranchError, InvalidOption
from anabranch.errors.process_state import Cache, per_object
from anabranch.protocol.schema.types import Array, DataType, Map, Struct
from anabranch.spark.session import is_connect
from anabranch.spark.sql_text import exact_sql, verbatim
from anabranch.spark.types import quoted, spark_type

LOCATION, MANAGED, COLUMNS = "anabranch.location", "anabranch.managed", "anabranch.columns"
VIEW = "anabranch.view"
_SESSIONS = "spark_catalog"
_OURS, _HEX, _HIDDEN = "anabranch.", "hex:", "*********(redacted)"
_SECRET = re.compile(r"url|pass|secret|token|key|cred|auth|^hex:", re.IGNORECASE)
"""Spark hides properties whose values look like one of these, from whoever asks; more than it does by default."""
MOVES_TO, CAME_FROM = "anabranch.renamed.to", "anabranch.renamed.from"
"""Marks of a table that has two names for a moment: in the entry that goes, and in the one that stays."""
_ADVICE = "which Spark alone cannot read: open it with anabranch.install(spark) or anabranch.sql"
_RULES = ("spark.sql.ansi.enabled",)
_REMEMBERED_S, _CLOSED_S, _REMEMBERED = 2.0, 60.0, 1000
"""How long a name counts as that of something else, and of how many that is kept: longer where no other process can
give it to a table of ours.
"""
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


_foreign = per_object("names of something else")
"""Until when names are taken for those of something else: by session, a `Cache` of `_REMEMBERED` names."""
_closed = per_object("catalogs in memory")


@dataclass(frozen=True)
class Entry:
    """What the catalog says of a table.

    Attributes:
        name: its whole name.
        location: where it lies.
        managed: whether its files go when it is dropped.
        columns: by what the entry's columns can be told from others (`fingerprint`).
        moves_to, came_from: the other name that it has for a moment, while it is renamed into another schema.
    """

    name: Name
    location: str
    managed: bool = False
    columns: str = ""
    moves_to: Name | None = None
    came_from: Name | None = None


@dataclass(frozen=True)
class StoredView:
    """What the catalog says of a lasting view.

    Attributes:
        name: its whole name.
        text: its query.
        within: the catalog and schema in which that names tables.
        output: the columns that the query gave when the view was made.
        columns: what these are called in the view.
        rules: what else it takes to read the text as it was meant (`rules_of`).
    """

    name: Name
    text: str
    within: Name
    output: Name
    columns: Name
    rules: Mapping[str, str]


def _asked(name: Name, spark: SparkSession) -> str:
    """A name as Spark's catalog takes it, in which nothing is filled in."""
    return verbatim(spelled(name), spark)


# -- looking up --------------------------------------------------------------------------------------------------------


def find(spark: SparkSession, name: Name) -> Entry | None:
    """The entry of the table of this name; None where another thing has it (a temporary view counts first), or none."""
    found = look_up(spark, name)
    return found if isinstance(found, Entry) else None


def look_up(spark: SparkSession, name: Name) -> Entry | StoredView | None:
    """As `find`, for lasting views, too."""
    try:
        if not is_taken(spark, name):
            _remember(spark, name, name[0] if len(name) > 2 else None)
            return None
        found = shown(spark, name)
        if found.tableType != "VIEW" or found.isTemporary:
            _remember(spark, name, found.catalog)
            return None
        said = properties_of(spark, name)
    except AnabranchError:  # some are AnalysisExceptions, too
        raise
    except (AnalysisException, ParseException):  # it was dropped meanwhile, or Spark has no such name
        return None
    whole = (found.catalog or "spark_catalog", *(found.namespace or ()), found.name)
    if VIEW in said:
        return _stored_view(whole, said[VIEW])
    if LOCATION not in said:
        _remember(spark, name, found.catalog)
        return None
    marks = (parts_of(said.get(each, "")) for each in (MOVES_TO, CAME_FROM))
    return Entry(whole, said[LOCATION], said.get(MANAGED) == "true", said.get(COLUMNS, ""), *marks)


def properties_of(spark: SparkSession, name: Name) -> dict[str, str]:
    """The properties of a table or view, as Spark shows them.

    Raises:
        AnalysisException: there is none of this name. InvalidOption: the session hides one of ours.
    """
    rows = exact_sql(spark, f"SHOW TBLPROPERTIES {spelled(name)}").collect()
    return {row["key"]: _said(row["key"], row["value"]) for row in rows}


def entries_at(spark: SparkSession, schema: Name, location: str) -> list[Entry]:
    """The entries of a schema that lead to a location; none where there is no such schema."""
    try:
        views = exact_sql(spark, f"SHOW VIEWS IN {spelled(schema)}").collect()
    except AnalysisException:
        return []
    found = [find(spark, (*schema, view["viewName"])) for view in views if not view["isTemporary"]]
    return [entry for entry in found if entry is not None and entry.location == location]


def _stored_view(name: Name, said: str) -> StoredView:
    facts = json.loads(said)
    within, output, columns = (tuple(facts[key]) for key in ("within", "output", "columns"))
    return StoredView(name, facts["text"], within, output, columns, facts["rules"])


def rules_of(spark: SparkSession) -> dict[str, str]:
    """The settings of a session by which one expression has one value or another."""
    return {name: str(spark.conf.get(name)).lower() for name in _RULES}


def whole(spark: SparkSession, name: Name) -> Name:
    """A name with the session's catalog and schema, as far as it names none itself."""
    if len(name) > 2:
        return name
    catalog = spark.catalog.currentCatalog()
    return (catalog, *name) if len(name) == 2 else (catalog, spark.catalog.currentDatabase(), *name)


def is_taken(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog holds anything of this whole name."""
    return bool(spark.catalog.tableExists(_asked(name, spark)))


def is_temporary(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view of the session."""
    try:
        return bool(spark.catalog.tableExists(spelled(name)) and spark.catalog.getTable(spelled(name)).isTemporary)
    except (AnalysisException, ParseException):
        return False


def can_be_kept(spark: SparkSession, name: Name) -> bool:
    """Whether the catalog of a whole name keeps views, and so entries; a free name is asked about."""
    if name[0].lower() == _SESSIONS:
        return True
    told = exact_sql(spark, f"EXPLAIN CREATE VIEW {spelled(name)} AS SELECT 1 AS probe").collect()
    return not any("MISSING_CATALOG_ABILITY" in row[0] for row in told)


def folder(spark: SparkSession, name: Name) -> str:
    """Where Spark would keep a managed table of this whole name. Raises AnalysisException: SCHEMA_NOT_FOUND."""
    base = spark.catalog.getDatabase(_asked(name[:-1], spark)).locationUri
    return f"{base.rstrip('/')}/{name[-1].lower()}"


def is_foreign(spark: SparkSession, name: Name) -> bool:
    """Whether a name was that of something else a moment ago, so that a query need not ask again.

    Where it has become one of ours since, in another process or by another current schema, the query reaches the entry
    itself, which raises.
    """
    known = _foreign.get(spark)
    return known is not None and time.monotonic() < known.get(name, 0.0)


def _remember(spark: SparkSession, name: Name, catalog: str | None) -> None:
    lasts = _CLOSED_S if catalog in (None, "spark_catalog") and _is_closed(spark) else _REMEMBERED_S
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
    return bool(spark.catalog.databaseExists(_asked(schema, spark)))


def shown(spark: SparkSession, name: Name) -> Table:
    """What Spark's catalog says of a table or view that is there."""
    return spark.catalog.getTable(_asked(name, spark))


# -- writing -----------------------------------------------------------------------------------------------------------


def record(spark: SparkSession, entry: Entry, schema: Struct, comment: str | None, *, replaces: bool = False) -> None:
    """Put an entry into the catalog; its name is a whole one.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS, or its catalog keeps no views.
        InvalidOption: the session reads texts in quotes in another way than they are written here.
    """
    said = {LOCATION: entry.location, MANAGED: str(entry.managed).lower(), COLUMNS: fingerprint(schema, comment)}
    marks = {MOVES_TO: entry.moves_to, CAME_FROM: entry.came_from}
    said |= {key: spelled(other) for key, other in marks.items() if other is not None}
    _put(spark, entry.name, "a Delta table", schema, comment, said, replaces)


def record_view(
    spark: SparkSession,
    view: StoredView,
    schema: Struct,
    comment: str | None,
    properties: Mapping[str, str],
    *,
    replaces: bool = False,
) -> None:
    """Put a lasting view into the catalog; its name is a whole one, and its columns are in ``schema``.

    Raises:
        AnalysisException, InvalidOption: as `record`.
    """
    facts = {key: value for key, value in vars(view).items() if key != "name"}
    said = {**properties, VIEW: json.dumps(facts, ensure_ascii=False)}
    _put(spark, view.name, "a view of Delta tables", schema, comment, said, replaces)


def _put(
    spark: SparkSession,
    name: Name,
    what: str,
    schema: Struct,
    comment: str | None,
    properties: Mapping[str, str],
    replaces: bool,
) -> None:
    error = f"raise_error('{what}, {_ADVICE}')"
    named = ", ".join(quoted(each.name) + _comment(each.metadata.get("comment"), spark) for each in schema)
    body = ", ".join(f"CAST({error} AS {ddl(each.type)}) AS {quoted(each.name)}" for each in schema)
    forget()
    exact_sql(
        spark,
        f"CREATE {'OR REPLACE ' if replaces else ''}VIEW {spelled(name)} ({named}){_comment(comment, spark)}"
        f" TBLPROPERTIES ({_properties(properties, spark)}) AS SELECT {body} WHERE {error} IS NULL",
    )


def fingerprint(schema: Struct, comment: str | None) -> str:
    """By what an entry's columns and comments can be told from others."""
    said = [comment, *([field.name, ddl(field.type), field.metadata.get("comment")] for field in schema)]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:16]


def rename(spark: SparkSession, name: Name, to: Name) -> None:
    """Give an entry another whole name. Raises Spark's AnalysisException: it is taken, or of another schema."""
    forget()
    exact_sql(spark, f"ALTER VIEW {spelled(name)} RENAME TO {spelled(to[-2:])}")


def remove(spark: SparkSession, name: Name) -> None:
    """Take an entry out of the catalog; one that is gone is fine."""
    exact_sql(spark, f"DROP VIEW IF EXISTS {spelled(name)}")


def take(spark: SparkSession, name: Name) -> bool:
    """Take an entry out of the catalog; False where it is gone already, so that of several one knows that it was it."""
    try:
        exact_sql(spark, f"DROP VIEW {spelled(name)}")
    except AnalysisException:
        if is_taken(spark, name):
            raise
        return False
    return True


def mark(spark: SparkSession, name: Name, to: Name | None) -> None:
    """Let an entry say to which name it moves; None: it has one alone. Raises Spark's AnalysisException: it is gone."""
    change = f"UNSET TBLPROPERTIES IF EXISTS ('{MOVES_TO}', '{CAME_FROM}')"
    if to is not None:
        change = f"SET TBLPROPERTIES ({_properties({MOVES_TO: spelled(to)}, spark)})"
    exact_sql(spark, f"ALTER VIEW {spelled(name)} {change}")


def unmark_view(spark: SparkSession, name: Name) -> None:
    """Let a lasting view be one of Spark's own, with its query there. Raises Spark's AnalysisException: it is gone."""
    forget()
    exact_sql(spark, f"ALTER VIEW {spelled(name)} UNSET TBLPROPERTIES IF EXISTS ('{VIEW}')")


def ddl(type_: DataType) -> str:
    """A type as SQL text in which every member's name is quoted.

    Example:
        >>> ddl(Array("long"))
        'ARRAY<BIGINT>'
    """
    match type_:
        case Struct():
            return f"STRUCT<{', '.join(f'{quoted(each.name)}: {ddl(each.type)}' for each in type_)}>"
        case Array():
            return f"ARRAY<{ddl(type_.element)}>"
        case Map():
            return f"MAP<{ddl(type_.key)}, {ddl(type_.value)}>"
    return spark_type(type_).simpleString().upper()


def _comment(comment: str | None, spark: SparkSession) -> str:
    return f" COMMENT {_text(comment, spark)}" if comment else ""


def _properties(said: Mapping[str, str], spark: SparkSession) -> str:
    kept = ((key, _kept(value) if key.startswith(_OURS) else value) for key, value in said.items())
    return ", ".join(f"{_text(key, spark)} = {_text(value, spark)}" for key, value in kept)


def _kept(value: str) -> str:
    """A property's value as the catalog keeps it: spelled so that Spark takes it for no secret, where it might."""
    return f"{_HEX}{value.encode().hex()}" if _SECRET.search(value) else value


def _said(key: str, value: str) -> str:
    """A property's value behind what the catalog says. Raises InvalidOption: the session hides it."""
    if not key.startswith(_OURS):
        return value
    if value == _HIDDEN:
        reason = f"with it Spark hides the property {key} of a table's name, and so where the table lies."
        raise InvalidOption(option="spark.sql.redaction.string.regex", value=value, reason=reason)
    return bytes.fromhex(value.removeprefix(_HEX)).decode() if value.startswith(_HEX) else value


def _text(text: str, spark: SparkSession) -> str:
    """A text as SQL. Raises InvalidOption: the session reads what stands for a quote or a backslash in another way."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    if escaped != text and (spark.conf.get(_ESCAPED, None) or "").lower() == "true":
        reason = "with it this text cannot be said in a statement: " + text
        raise InvalidOption(option=_ESCAPED, value="true", reason=reason)
    return f"'{escaped}'"
