"""Entries that are views: used where no table USING delta can be made, and for persistent views of Delta tables.

Knows Spark's statements on views. An entry has the table's columns and comments, the table's location in its
properties, and a body that raises. Guarantee: a session without Anabranch reads no row of an entry, nor takes the
table for empty: every column is an error, so that no optimizer can drop it. The columns in an entry may lag behind the
table; its location is read on every use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from anabranch._catalog.entry import Entry, Kind, StoredView
from anabranch._catalog.entry_properties import (
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
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._spark.columns.types import quote_identifier, spark_type
from anabranch._spark.sessions.sql_text import exact_sql

_NO_COLUMNS = Struct((Field("no_columns_yet", "string"),))
"""The column that an entry shows for a table without columns; a view needs at least one."""

_BY_DEFAULT = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Settings that change how Spark reads a text, with their values where a view does not store them."""
_OTHERS = frozenset({"spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy", "spark.sql.crossJoin.enabled"})
_FAMILIES = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.")
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "uct", "etc/uct", "+00:00", "zulu"})
_ADVICE = "which Spark alone cannot read: open it with anabranch.install(spark) or anabranch.sql"


def entry(spark: SparkSession, name: Name) -> Entry | StoredView | None:
    """The table or persistent view that one of our views describes; None if the view is Spark's own.

    Raises:
        AnalysisException: the view does not exist. InvalidOption: the session hides one of our properties.
    """
    properties = properties_of(spark, name)
    if VIEW in properties:
        facts = json.loads(properties[VIEW])
        within, output, columns = (tuple(facts[key]) for key in ("within", "output", "columns"))
        return StoredView(name, facts["text"], within, output, columns, facts["rules"])
    if LOCATION not in properties:
        return None
    moves_to, came_from = (parts_of(properties.get(mark_key, "")) for mark_key in (MOVES_TO, CAME_FROM))
    is_managed, shown = properties.get(MANAGED) == "true", properties.get(COLUMNS, "")
    return Entry(name, properties[LOCATION], is_managed, Kind.VIEW, False, shown, moves_to, came_from)


def read_spark_view(spark: SparkSession, name: Name) -> StoredView | None:
    """A persistent view of Spark's own, which may read Delta tables; None where Spark shows no query.

    Raises:
        AnalysisException: the view does not exist.
    """
    (row,) = exact_sql(spark, f"DESCRIBE TABLE EXTENDED {name_to_sql(name)} AS JSON").collect()
    description = json.loads(row[0])
    within = parts_of(description.get("view_catalog_and_namespace", ""))
    if "view_text" not in description or within is None:
        return None
    evolves = description.get("view_schema_mode") == "EVOLUTION"
    output = () if evolves else tuple(description.get("view_query_output_columns", ()))
    columns = tuple(column["name"] for column in description["columns"]) if output else ()
    stored = {
        key: value for key, value in description.get("view_creation_spark_configuration", {}).items() if _counts(key)
    }
    rules = {key: comparable(value) for key, value in {**_BY_DEFAULT, **stored}.items()}
    return StoredView(name, description["view_text"], within, output, columns, rules, of_spark=True)


def comparable(value: str) -> str:
    """Normalises a setting's value for comparison: lower case, and one name for UTC."""
    return "utc" if value.lower() in _UTC else value.lower()


def _counts(setting: str) -> bool:
    """Whether a setting can change the rows of a query."""
    return setting in _BY_DEFAULT or setting in _OTHERS or setting.startswith(_FAMILIES)


def properties_of(spark: SparkSession, name: Name) -> dict[str, str]:
    """The properties of a table or view, decoded.

    Raises:
        AnalysisException: it does not exist. InvalidOption: the session hides one of our properties.
    """
    rows = exact_sql(spark, f"SHOW TBLPROPERTIES {name_to_sql(name)}").collect()
    return {row["key"]: decode_property(row["key"], row["value"]) for row in rows}


def record(spark: SparkSession, made: Entry, schema: Struct, comment: str | None, *, replaces: bool = False) -> None:
    """Adds an entry, which has a whole name, to the catalog.

    Raises:
        AnalysisException: Spark's: SCHEMA_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS, or its catalog keeps no views.
        InvalidOption: the session reads quoted texts differently from how they are written here.
    """
    properties = {
        LOCATION: made.location,
        MANAGED: str(made.managed).lower(),
        COLUMNS: fingerprint(schema, comment),
    }
    marks = {MOVES_TO: made.moves_to, CAME_FROM: made.came_from}
    properties |= {key: name_to_sql(other) for key, other in marks.items() if other is not None}
    _put(spark, made.name, "a Delta table", schema, comment, properties, replaces)


def record_view(
    spark: SparkSession,
    view: StoredView,
    schema: Struct,
    comment: str | None,
    properties: Mapping[str, str],
    *,
    replaces: bool = False,
) -> None:
    """Adds a persistent view, which has a whole name and the columns in ``schema``, to the catalog.

    Raises:
        AnalysisException, InvalidOption: as `record`.
    """
    facts = {key: value for key, value in vars(view).items() if key not in ("name", "of_spark")}
    stored = {**properties, VIEW: json.dumps(facts, ensure_ascii=False)}
    _put(spark, view.name, "a view of Delta tables", schema, comment, stored, replaces)


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
    columns = ", ".join(
        quote_identifier(field.name) + _comment(field.metadata.get("comment"), spark) for field in schema
    )
    body = ", ".join(f"CAST({error} AS {ddl(field.type)}) AS {quote_identifier(field.name)}" for field in schema)
    exact_sql(
        spark,
        f"CREATE {'OR REPLACE ' if replaces else ''}VIEW {name_to_sql(name)} ({columns}){_comment(comment, spark)}"
        f" TBLPROPERTIES ({_properties(properties, spark)}) AS SELECT {body} WHERE {error} IS NULL",
    )


def fingerprint(schema: Struct, comment: str | None) -> str:
    """A hash of an entry's columns and comments."""
    facts = [comment, *([field.name, ddl(field.type), field.metadata.get("comment")] for field in schema)]
    return hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode()).hexdigest()[:16]


def rename(spark: SparkSession, name: Name, to: Name) -> None:
    """Renames an entry to another whole name. Raises Spark's AnalysisException: it is taken, or of another schema."""
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} RENAME TO {name_to_sql(to[-2:])}")


def drop(spark: SparkSession, name: Name) -> None:
    """Removes an entry from the catalog. Raises Spark's AnalysisException: it is gone."""
    exact_sql(spark, f"DROP VIEW {name_to_sql(name)}")


def mark(spark: SparkSession, name: Name, to: Name | None) -> None:
    """Records in an entry the name that it moves to; None clears it. Raises Spark's AnalysisException: it is gone."""
    change = f"UNSET TBLPROPERTIES IF EXISTS ('{MOVES_TO}', '{CAME_FROM}')"
    if to is not None:
        change = f"SET TBLPROPERTIES ({_properties({MOVES_TO: name_to_sql(to)}, spark)})"
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} {change}")


def unmark_view(spark: SparkSession, name: Name) -> None:
    """Turns a persistent view into one of Spark's own. Raises Spark's AnalysisException: it is gone."""
    exact_sql(spark, f"ALTER VIEW {name_to_sql(name)} UNSET TBLPROPERTIES IF EXISTS ('{VIEW}')")


def ddl(type_: DataType) -> str:
    """A type as SQL text with every member's name quoted.

    Example:
        >>> ddl(Array("long"))
        'ARRAY<BIGINT>'
    """
    match type_:
        case Struct():
            return f"STRUCT<{', '.join(f'{quote_identifier(member.name)}: {ddl(member.type)}' for member in type_)}>"
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
