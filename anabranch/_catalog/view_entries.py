"""Entries that are views: where no table USING delta can be made, and for the lasting views of Delta tables.

Knows Spark's statements on views. An entry has the table's columns and comments, the table's place in its properties,
and a body that raises. Guarantee: a session that does not know Anabranch reads no row of an entry, nor takes the table
for empty: every column is an error, so that no optimizer can do without it. What an entry says of columns may be behind
the table; where the table lies, it is asked each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from anabranch._catalog.entry import Entry, Kind, StoredView
from anabranch._catalog.names import Name, name_to_sql, parts_of
from anabranch._catalog.properties import (
    CAME_FROM,
    COLUMNS,
    LOCATION,
    MANAGED,
    MOVES_TO,
    OURS,
    VIEW,
    decode_property,
    encode_if_secret,
    format_properties,
    literal,
)
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._spark.columns.types import quote_identifier, spark_type
from anabranch._spark.sessions.sql_text import exact_sql

_NO_COLUMNS = Struct((Field("no_columns_yet", "string"),))
"""What the entry of a table shows that has no columns yet: a view has one at least."""

_BY_DEFAULT = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Settings under which Spark reads one text in several ways, and what they are where a view does not say."""
_OTHERS = frozenset({"spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy", "spark.sql.crossJoin.enabled"})
_FAMILIES = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.")
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "uct", "etc/uct", "+00:00", "zulu"})
_ADVICE = "which Spark alone cannot read: open it with anabranch.install(spark) or anabranch.sql"


def entry(spark: SparkSession, name: Name) -> Entry | StoredView | None:
    """What a view says of a table, or of a lasting view of tables; None where it is Spark's own.

    Raises:
        AnalysisException: there is none of this name. InvalidOption: the session hides a property of ours.
    """
    found = properties_of(spark, name)
    if VIEW in found:
        facts = json.loads(found[VIEW])
        within, output, columns = (tuple(facts[key]) for key in ("within", "output", "columns"))
        return StoredView(name, facts["text"], within, output, columns, facts["rules"])
    if LOCATION not in found:
        return None
    moves_to, came_from = (parts_of(found.get(each, "")) for each in (MOVES_TO, CAME_FROM))
    is_managed, shown = found.get(MANAGED) == "true", found.get(COLUMNS, "")
    return Entry(name, found[LOCATION], is_managed, Kind.VIEW, False, shown, moves_to, came_from)


def of_spark(spark: SparkSession, name: Name) -> StoredView | None:
    """A lasting view that is none of ours, and may read tables of ours; None where Spark shows no query.

    Raises:
        AnalysisException: there is none of this name.
    """
    (row,) = exact_sql(spark, f"DESCRIBE TABLE EXTENDED {name_to_sql(name)} AS JSON").collect()
    said = json.loads(row[0])
    within = parts_of(said.get("view_catalog_and_namespace", ""))
    if "view_text" not in said or within is None:
        return None
    evolves = said.get("view_schema_mode") == "EVOLUTION"
    output = () if evolves else tuple(said.get("view_query_output_columns", ()))
    columns = tuple(each["name"] for each in said["columns"]) if output else ()
    kept = {key: value for key, value in said.get("view_creation_spark_configuration", {}).items() if _counts(key)}
    rules = {key: comparable(value) for key, value in {**_BY_DEFAULT, **kept}.items()}
    return StoredView(name, said["view_text"], within, output, columns, rules, of_spark=True)


def comparable(value: str) -> str:
    """The value of a setting as it is compared: whatever its case, and however the zone of UTC is called."""
    return "utc" if value.lower() in _UTC else value.lower()


def _counts(setting: str) -> bool:
    """Whether the rows of a query may depend on a setting."""
    return setting in _BY_DEFAULT or setting in _OTHERS or setting.startswith(_FAMILIES)


def properties_of(spark: SparkSession, name: Name) -> dict[str, str]:
    """The properties of a table or view, as Spark shows them.

    Raises:
        AnalysisException: there is none of this name. InvalidOption: the session hides one of ours.
    """
    rows = exact_sql(spark, f"SHOW TBLPROPERTIES {name_to_sql(name)}").collect()
    return {row["key"]: decode_property(row["key"], row["value"]) for row in rows}


def record(spark: SparkSession, made: Entry, schema: Struct, comment: str | None, *, replaces: bool = False) -> None:
    """Put an entry into the catalog; its name is a whole one.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS, or its catalog keeps no views.
        InvalidOption: the session reads texts in quotes in another way than they are written here.
    """
    said = {LOCATION: made.location, MANAGED: str(made.managed).lower(), COLUMNS: fingerprint(schema, comment)}
    marks = {MOVES_TO: made.moves_to, CAME_FROM: made.came_from}
    said |= {key: name_to_sql(other) for key, other in marks.items() if other is not None}
    _put(spark, made.name, "a Delta table", schema, comment, said, replaces)


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
    facts = {key: value for key, value in vars(view).items() if key not in ("name", "of_spark")}
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
    schema = schema if schema.names else _NO_COLUMNS
    error = f"raise_error('{what}, {_ADVICE}')"
    named = ", ".join(quote_identifier(each.name) + _comment(each.metadata.get("comment"), spark) for each in schema)
    body = ", ".join(f"CAST({error} AS {ddl(each.type)}) AS {quote_identifier(each.name)}" for each in schema)
    exact_sql(
        spark,
        f"CREATE {'OR REPLACE ' if replaces else ''}VIEW {name_to_sql(name)} ({named}){_comment(comment, spark)}"
        f" TBLPROPERTIES ({_properties(properties, spark)}) AS SELECT {body} WHERE {error} IS NULL",
    )


def fingerprint(schema: Struct, comment: str | None) -> str:
    """By what an entry's columns and comments can be told from others."""
    said = [comment, *([field.name, ddl(field.type), field.metadata.get("comment")] for field in schema)]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:16]


def rename(spark: SparkSession, name: Name, to: Name) -> None:
    """Give an entry another whole name. Raises Spark's AnalysisException: it is taken, or of another schema."""
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} RENAME TO {name_to_sql(to[-2:])}")


def drop(spark: SparkSession, name: Name) -> None:
    """Take an entry out of the catalog. Raises Spark's AnalysisException: it is gone."""
    exact_sql(spark, f"DROP VIEW {name_to_sql(name)}")


def mark(spark: SparkSession, name: Name, to: Name | None) -> None:
    """Let an entry say to which name it moves; None: it has one alone. Raises Spark's AnalysisException: it is gone."""
    change = f"UNSET TBLPROPERTIES IF EXISTS ('{MOVES_TO}', '{CAME_FROM}')"
    if to is not None:
        change = f"SET TBLPROPERTIES ({_properties({MOVES_TO: name_to_sql(to)}, spark)})"
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} {change}")


def unmark_view(spark: SparkSession, name: Name) -> None:
    """Let a lasting view be one of Spark's own, with its query there. Raises Spark's AnalysisException: it is gone."""
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} UNSET TBLPROPERTIES IF EXISTS ('{VIEW}')")


def ddl(type_: DataType) -> str:
    """A type as SQL text in which every member's name is quoted.

    Example:
        >>> ddl(Array("long"))
        'ARRAY<BIGINT>'
    """
    match type_:
        case Struct():
            return f"STRUCT<{', '.join(f'{quote_identifier(each.name)}: {ddl(each.type)}' for each in type_)}>"
        case Array():
            return f"ARRAY<{ddl(type_.element)}>"
        case Map():
            return f"MAP<{ddl(type_.key)}, {ddl(type_.value)}>"
    return spark_type(type_).simpleString().upper()


def _comment(comment: str | None, spark: SparkSession) -> str:
    return f" COMMENT {literal(comment, spark)}" if comment else ""


def _properties(values: Mapping[str, str], spark: SparkSession) -> str:
    return format_properties(
        {key: encode_if_secret(value) if key.startswith(OURS) else value for key, value in values.items()}, spark
    )
