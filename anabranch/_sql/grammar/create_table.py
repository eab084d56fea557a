"""Parses statements that create and drop tables and views: CREATE, REPLACE, CLONE, CONVERT, DROP TABLE, CREATE VIEW."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.properties import check_unreserved
from anabranch._protocol.schema.types import Field
from anabranch._sql.grammar.column_definitions import TypeDefinition, column, data_type
from anabranch._sql.grammar.constraints import Constraints, starts_constraint
from anabranch._sql.grammar.parts import Path, Query, Statement, Table, View
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.statement_values import CloneTable, ConvertName, ConvertTable, CreateTable, DropTable
from anabranch._sql.grammar.view_values import CreateTempView, CreateView
from anabranch.errors import InvalidOption, NotBuilt

_FORMATS = ("DELTA", "ANABRANCH")
_FILES = ("parquet", "delta")
_BEFORE_QUERY = ("AS", "SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
_CREATE_CLAUSES = (
    ("PARTITIONED", "CLUSTER", "TBLPROPERTIES", "COMMENT", "LOCATION", "OPTIONS"),
    "no clause of CREATE TABLE.",
)
_LIKE_CLAUSES = (
    ("USING", "TBLPROPERTIES", "COMMENT", "LOCATION"),
    "no clause of CREATE TABLE … LIKE, which copies the layout of a table.",
)
_CLONE_CLAUSES = ("TBLPROPERTIES", "LOCATION"), "no clause of CLONE, which copies its source."
"""The first words of the clauses that a statement takes, and the reason to refuse others."""


@dataclass
class _Clauses:
    """The clauses between the columns of a table and its query."""

    partitions: tuple[str, ...] | None = None
    added: tuple[Field, ...] = ()
    clusters: tuple[Path, ...] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


def create_table(r: Reader) -> Statement | None:
    """Parse ``CREATE [OR REPLACE] TABLE …`` and ``REPLACE TABLE …``, with columns, AS a query, LIKE or CLONE."""
    creates, replaces, is_external = r.has_taken("CREATE"), r.has_taken("REPLACE"), r.has_taken("EXTERNAL")
    if_not_exists = creates and not replaces and r.take("IF", "NOT", "EXISTS")
    target = r.new_table()
    if target is None:
        return None
    if replaces and r.at("LIKE"):
        r.fail("LIKE cannot replace a table: run DROP TABLE first.")
    if is_external and (r.at("LIKE") or r.at("CLONE") or r.at("SHALLOW") or r.at("DEEP")):
        r.fail("EXTERNAL is not supported with LIKE and CLONE: use LOCATION.")
    if r.take("LIKE"):
        return _create_like(r, target, if_not_exists)
    if r.at("CLONE") or r.at("SHALLOW") or r.at("DEEP"):
        return replaced(_clone(r, target), if_not_exists=if_not_exists, replaces=replaces, creates=creates)
    constraints = Constraints(target)
    declared = r.take_list(lambda: _parse_column_or_constraint(r, constraints)) if r.is_type(TokenType.L_PAREN) else ()
    columns = _make_keys_not_null([declaration for declaration in declared if declaration is not None], constraints)
    if r.take("USING"):
        _take_format(r)
    clauses = _take_clauses(r, target, *_CREATE_CLAUSES)
    query = _as_query(r)
    if query is not None and declared:
        r.fail("a table that is created AS a query has the columns of that query.", r.i - 1)
    return CreateTable(
        target,
        (*columns, *clauses.added),
        if_not_exists=if_not_exists,
        replaces=replaces,
        creates=creates,
        partitions=clauses.partitions,
        clusters=clauses.clusters,
        properties={**constraints.properties, **clauses.properties},
        comment=clauses.comment,
        query=query,
        options=clauses.options,
    )


def _as_query(r: Reader) -> Query | None:
    if r.is_at_end:
        return None
    r.take("AS")
    return r.query()


def _parse_column_or_constraint(r: Reader, constraints: Constraints) -> Field | None:
    """Take a column with its keys, or a constraint; returns None for a constraint."""
    if starts_constraint(r):
        constraints.take(r)
        return None
    return column(r, lambda name: constraints.take_of(r, name))


def _make_keys_not_null(columns: Sequence[Field], constraints: Constraints) -> tuple[Field, ...]:
    """Make the columns of a primary key NOT NULL."""
    keys = {name.lower() for name in constraints.not_null}
    return tuple(
        replaced(declared_column, nullable=False) if declared_column.name.lower() in keys else declared_column
        for declared_column in columns
    )


# -- clauses -----------------------------------------------------------------------------------------------------------


def _take_format(r: Reader) -> None:
    """Take the format after USING, which must be Delta's."""
    if r.name("a format").upper() not in _FORMATS:
        r.fail("the table at this location is a Delta table: write USING delta.", r.i - 1)


def _take_clauses(r: Reader, target: Table, takes: Collection[str], why: str) -> _Clauses:
    """Take the clauses that begin with one of the words ``takes``, in any order, each once.

    ``why`` is the reason to refuse others.
    """
    clauses = _Clauses()
    while not (r.is_at_end or r.is_type(TokenType.L_PAREN) or r.ahead() in _BEFORE_QUERY):
        at, clause = r.i, r.ahead()
        if clause in clauses.seen:
            r.fail(f"{clause} is specified twice.")
        clauses.seen.add(clause)
        _refuse_unsupported(r)
        if clause not in takes or not _take_clause(r, clauses):
            r.fail(f"this is {why}", at)
    paths = [key for key in clauses.options if key.lower() == "path"]
    for key in paths:
        if clauses.location is not None:
            raise InvalidOption(
                option="LOCATION", value=clauses.location, reason="the option path names another place."
            )
        clauses.location = clauses.options.pop(key)
    if clauses.location is not None and clauses.location.rstrip("/") != str(target.location).rstrip("/"):
        reason = f"the table is at {target.location} by its name."
        raise InvalidOption(option="LOCATION", value=clauses.location, reason=reason)
    return clauses


def _take_clause(r: Reader, clauses: _Clauses) -> bool:
    """Take the next clause; False if none comes next."""
    if r.take("PARTITIONED", "BY"):
        pairs = r.take_list(lambda: _partition(r))
        clauses.partitions = tuple(name for name, _ in pairs)
        clauses.added = tuple(Field(name, typed.type) for name, typed in pairs if typed is not None)
    elif r.take("CLUSTER", "BY"):
        clauses.clusters = clustering(r)
    elif r.take("TBLPROPERTIES"):
        clauses.properties = properties(r)
    elif r.take("COMMENT"):
        clauses.comment = r.string("a comment")
    elif r.take("LOCATION"):
        clauses.location = r.string("a path")
    elif r.take("OPTIONS"):
        clauses.options = options(r)
    elif r.take("USING"):
        _take_format(r)
    else:
        return False
    return True


_UNSUPPORTED_CLAUSES = {
    ("CLUSTERED", "BY"): "a Delta table has no buckets; use CLUSTER BY",
    ("SKEWED", "BY"): "a Delta table has no skew; use CLUSTER BY",
    ("ROW", "FORMAT"): "a Delta table stores its rows in Parquet files",
    ("STORED", "AS"): "a Delta table stores its rows in Parquet files",
    ("DEFAULT", "COLLATION"): "collations are not supported",
}


def _refuse_unsupported(r: Reader) -> None:
    """Raise InvalidOption if the next clause is one of Spark's that Delta tables do not have."""
    for words, why in _UNSUPPORTED_CLAUSES.items():
        if r.at(*words):
            raise InvalidOption(option=" ".join(words), value="said", reason=f"{why}.")


def _partition(r: Reader) -> tuple[str, TypeDefinition | None]:
    name = r.name("the name of a column")
    if r.is_type(TokenType.L_PAREN):
        reason = "a table is partitioned by columns: define a generated column, and partition by that."
        raise InvalidOption(option="PARTITIONED BY", value=name, reason=reason)
    return name, data_type(r, name) if r.is_name() else None


def clustering(r: Reader) -> tuple[Path, ...]:
    """Take the columns of CLUSTER BY; none for NONE."""
    if r.take("NONE"):
        return ()
    if r.at("AUTO"):
        reason = "it needs a service that analyses the table's queries, and there is none here: name the columns."
        raise InvalidOption(option="CLUSTER BY", value="AUTO", reason=reason)
    return r.take_list(lambda: r.path("the name of a column"))


def properties(r: Reader) -> dict[str, str]:
    """Take ``('a' = 'b', c.d = 1)``: names and values as strings.

    Raises:
        InvalidProperty: a name is reserved by Spark.
    """
    values = options(r)
    check_unreserved(values)
    return values


def options(r: Reader) -> dict[str, str]:
    """Take names and values in parentheses, as strings; a name may not repeat."""
    values: dict[str, str] = {}

    def take_option() -> None:
        at = r.i
        key, value = option(r)
        if key in values:
            r.fail(f"the key {key} is specified twice.", at)
        values[key] = value

    r.take_list(take_option)
    return values


def property_key(r: Reader) -> str:
    """Take the name of a property, as a string literal or as dotted words."""
    return r.string(alone=True) if r.is_text() else ".".join(r.path("the name of a property"))


def option(r: Reader) -> tuple[str, str]:
    """Take ``'a' = 'b'`` or ``c.d = 1``: a name and a value, as strings."""
    key = property_key(r)
    if r.is_type(TokenType.EQ):
        r.i += 1
    if r.is_text():
        return key, r.string()
    if r.at("TRUE") or r.at("FALSE"):
        return key, r.name().lower()
    return key, r.number("a value of the property")


# -- LIKE, CLONE, CONVERT, views ---------------------------------------------------------------------------------------


def _create_like(r: Reader, target: Table, if_not_exists: bool) -> CreateTable:
    first = r.i
    name: Path = ()
    like: Table | Query | None = r.table()
    if like is None:
        name = r.path("the name of a table")
        like = r.query_between(first, r.i, "SELECT * FROM ")
    clauses = _take_clauses(r, target, *_LIKE_CLAUSES)
    r.finish()
    return CreateTable(
        target,
        if_not_exists=if_not_exists,
        properties=clauses.properties,
        comment=clauses.comment,
        like=like,
        like_name=name,
    )


def _clone(r: Reader, target: Table) -> CloneTable:
    shallow = r.take("SHALLOW")
    if not shallow:
        r.take("DEEP")
    r.expect("CLONE")
    source = r.table(travels=True) or r.path("the name of a table")
    clauses = _take_clauses(r, target, *_CLONE_CLAUSES)
    r.finish()
    return CloneTable(target, source, shallow, properties=clauses.properties)


def convert(r: Reader) -> Statement:
    """Parse ``CONVERT TO DELTA {parquet.`path` | t} [NO STATISTICS] [PARTITIONED BY (…)]``."""
    r.expect("TO", "DELTA")
    parts = r.path("the name of a table")
    location = r.find_location(parts)
    statistics = not r.take("NO", "STATISTICS")
    partitions = r.take_list(lambda: column(r)) if r.take("PARTITIONED", "BY") else None
    r.finish()
    if len(parts) == 2 and ("/" in parts[1] or parts[0].lower() in _FILES):
        return ConvertTable(_folder(*parts), partitions, statistics)
    if location is None or isinstance(location, View):
        return ConvertName(parts)
    return ConvertTable(_folder("delta", str(location)), partitions, statistics)


def _folder(form: str, path: str) -> str:
    quoted_path = path.replace("`", "``")
    return f"{form}.`{quoted_path}`"


def create_view(r: Reader) -> CreateView | None:
    """Parse ``CREATE [OR REPLACE] VIEW … AS`` a query that reads a Delta table."""
    replaces = r.has_taken("REPLACE")
    if_not_exists = r.take("IF", "NOT", "EXISTS")
    name, at = r.object_name("the name of a view"), r.i
    if name is None or not (r.reads_delta() or (replaces and r.is_kept_table(name))):
        return None
    columns = r.take_list(lambda: _parse_view_column(r)) if r.is_type(TokenType.L_PAREN) else None
    clauses = _Clauses()
    evolves = False
    while not r.at("AS"):
        at, first = r.i, r.ahead()
        if r.is_at_end or first not in ("COMMENT", "TBLPROPERTIES", "WITH") or first in clauses.seen:
            r.fail("AS and a query are expected here.", at)
        clauses.seen.add(first)
        if r.take("WITH", "SCHEMA"):
            evolves = _take_schema_evolution(r, columns is not None)
        else:
            _take_clause(r, clauses)
    r.expect("AS")
    query = r.query()
    text = r.text[slice(*query.span)]
    return CreateView(name, query, text, columns, replaces, if_not_exists, clauses.comment, clauses.properties, evolves)


def _take_schema_evolution(r: Reader, names_columns: bool) -> bool:
    """Take the words after ``WITH SCHEMA``; returns whether the view's columns follow its query's, as types always do.

    Raises:
        NotBuilt: BINDING or COMPENSATION would fix the types.
    """
    if r.take("TYPE", "EVOLUTION"):
        return False
    if r.take("EVOLUTION"):
        if names_columns:
            r.fail("a view WITH SCHEMA EVOLUTION has the columns of its query and cannot name others.", r.i - 1)
        return True
    if r.at("BINDING") or r.at("COMPENSATION"):
        what = f"CREATE VIEW WITH SCHEMA {r.ahead()} of a Delta table"
        raise NotBuilt(what=what, instead="The types of a view follow its tables: use TYPE EVOLUTION, or EVOLUTION.")
    return r.fail("EVOLUTION or TYPE EVOLUTION is expected here.")


def _parse_view_column(r: Reader) -> tuple[str, str | None]:
    name = r.name("the name of a column")
    return name, r.string("a comment") if r.take("COMMENT") else None


def create_temporary_view(r: Reader) -> CreateTempView | None:
    """Parse ``CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW``, ``AS`` a query of a Delta table or ``USING delta``."""
    replaces, is_global = r.has_taken("REPLACE"), r.has_taken("GLOBAL")
    if not r.at("IF") and r.is_name() and r.ahead(1) == "USING":
        return _view_of_table(r, replaces, is_global)
    if r.at("IF") or not r.reads_delta():
        return None
    name = r.name("the name of a view")
    columns = r.take_list(lambda: r.name("the name of a column")) if r.is_type(TokenType.L_PAREN) else None
    if r.take("COMMENT"):
        r.string("a comment")
    r.expect("AS")
    return CreateTempView(name, r.query(), columns, replaces, is_global)


def _view_of_table(r: Reader, replaces: bool, is_global: bool) -> CreateTempView | None:
    """Parse ``v USING delta OPTIONS (path '…' [, versionAsOf n | timestampAsOf '…'])``.

    Raises:
        InvalidOption: the path is missing, or there is another option.
    """
    name = r.name("the name of a view")
    r.expect("USING")
    format_, given_options = r.name("a format"), options(r) if r.take("OPTIONS") else {}
    remaining = {key.lower(): value for key, value in given_options.items()}
    path = remaining.pop("path", None)
    if r.find_location((format_, path or "/")) is None:
        return None
    r.finish()
    if path is None:
        raise InvalidOption(
            option="path", value=None, reason="specify the path of the table that the view USING delta shows."
        )
    travel = [f" {_TRAVELS[key]} AS OF '{remaining.pop(key)}'" for key in _TRAVELS if key in remaining]
    if remaining or len(travel) > 1:
        key = next(iter(remaining), "timestampasof")
        raise InvalidOption(
            option=key, value=given_options, reason="a view takes a path, and versionAsOf or timestampAsOf."
        )
    quoted_path = path.replace("`", "``")
    query = r.beside(f"SELECT * FROM {format_}.`{quoted_path}`{''.join(travel)}").query()
    return CreateTempView(name, query, None, replaces, is_global)


_TRAVELS = {"versionasof": "VERSION", "timestampasof": "TIMESTAMP"}
"""The options for time travel, and the first word of the AS OF clause of each."""


def drop_table(r: Reader) -> DropTable | None:
    """Parse ``DROP TABLE [IF EXISTS] t [PURGE]``."""
    if_exists = r.take("IF", "EXISTS")
    table = r.table()
    if table is None:
        return None
    r.take("PURGE")
    r.finish()
    return DropTable(table, if_exists)
