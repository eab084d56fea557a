"""Statements that make tables and take them away: CREATE, REPLACE, CLONE, CONVERT, DROP TABLE, and views."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import NoReturn

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.properties import check_unreserved
from anabranch._protocol.schema.types import Field
from anabranch._sql.grammar.column_definitions import Typed, column, data_type
from anabranch._sql.grammar.constraints import Constraints, starts_constraint
from anabranch._sql.grammar.parts import Path, Query, Statement, Table, View
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.values import CloneTable, ConvertName, ConvertTable, CreateTable, DropTable
from anabranch._sql.grammar.view_values import CreateTempView, CreateView
from anabranch.errors import InvalidOption, NotBuilt

_FORMATS = ("DELTA", "ANABRANCH")
_FILES = ("parquet", "delta")
_BEFORE_QUERY = ("AS", "SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
_DECLARED = ("PARTITIONED", "CLUSTER", "TBLPROPERTIES", "COMMENT", "LOCATION", "OPTIONS"), "no clause of CREATE TABLE."
_LIKE = (
    ("USING", "TBLPROPERTIES", "COMMENT", "LOCATION"),
    "no clause of a table that is made LIKE another one, which has its layout.",
)
_CLONED = ("TBLPROPERTIES", "LOCATION"), "no clause of a CLONE, which is as its source is."
"""With which words the clauses of a table may begin, and why others may not."""


@dataclass
class _Clauses:
    """What stands between the columns of a table and its query."""

    partitions: tuple[str, ...] | None = None
    added: tuple[Field, ...] = ()
    clusters: tuple[Path, ...] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


def create_table(r: Reader) -> Statement | None:
    """``CREATE [OR REPLACE] TABLE …`` and ``REPLACE TABLE …``, with columns, AS a query, LIKE or CLONE."""
    creates, replaces, is_external = r.has_taken("CREATE"), r.has_taken("REPLACE"), r.has_taken("EXTERNAL")
    if_not_exists = creates and not replaces and r.take("IF", "NOT", "EXISTS")
    target = r.new_table()
    if target is None:
        return None
    if replaces and r.at("LIKE"):
        r.fail("LIKE makes a new table, and replaces none: say DROP TABLE first.")
    if is_external and (r.at("LIKE") or r.at("CLONE") or r.at("SHALLOW") or r.at("DEEP")):
        r.fail("EXTERNAL belongs to no table that is made like another one: say LOCATION.")
    if r.take("LIKE"):
        return _like(r, target, if_not_exists)
    if r.at("CLONE") or r.at("SHALLOW") or r.at("DEEP"):
        return replaced(_clone(r, target), if_not_exists=if_not_exists, replaces=replaces, creates=creates)
    constraints = Constraints(target)
    declared = r.take_list(lambda: _parse_column_or_constraint(r, constraints)) if r.is_type(TokenType.L_PAREN) else ()
    columns = _make_keys_not_null([each for each in declared if each is not None], constraints)
    if r.take("USING"):
        _format(r)
    said = _clauses(r, target, *_DECLARED)
    query = _as_query(r)
    if query is not None and declared:
        r.fail("a table that is made AS a query has that query's columns.", r.i - 1)
    return CreateTable(
        target,
        (*columns, *said.added),
        if_not_exists=if_not_exists,
        replaces=replaces,
        creates=creates,
        partitions=said.partitions,
        clusters=said.clusters,
        properties={**constraints.properties, **said.properties},
        comment=said.comment,
        query=query,
        options=said.options,
    )


def _as_query(r: Reader) -> Query | None:
    if r.is_at_end:
        return None
    r.take("AS")
    return r.query()


def _parse_column_or_constraint(r: Reader, constraints: Constraints) -> Field | None:
    """Take a column, with the keys behind it, or a constraint, and then None."""
    if starts_constraint(r):
        constraints.take(r)
        return None
    return column(r, lambda name: constraints.take_of(r, name))


def _make_keys_not_null(columns: Sequence[Field], constraints: Constraints) -> tuple[Field, ...]:
    """The columns, of which those of a primary key are NOT NULL."""
    keys = {name.lower() for name in constraints.not_null}
    return tuple(replaced(each, nullable=False) if each.name.lower() in keys else each for each in columns)


def _later(what: str, instead: str) -> NoReturn:
    raise NotBuilt(what=what, instead=instead)


# -- clauses -----------------------------------------------------------------------------------------------------------


def _format(r: Reader) -> None:
    """Take the format behind USING, which is Delta's."""
    if r.name("a format").upper() not in _FORMATS:
        r.fail("what lies at this place is a Delta table: USING delta.", r.i - 1)


def _clauses(r: Reader, target: Table, takes: Collection[str], why: str) -> _Clauses:
    """Take the clauses of a table that begin with one of these words, in any order, each once; ``why`` others are
    refused.
    """
    said = _Clauses()
    while not (r.is_at_end or r.is_type(TokenType.L_PAREN) or r.ahead() in _BEFORE_QUERY):
        at, clause = r.i, r.ahead()
        if clause in said.seen:
            r.fail(f"{clause} is said twice.")
        said.seen.add(clause)
        _refuse(r)
        if clause not in takes or not _clause(r, said):
            r.fail(f"this is {why}", at)
    paths = [key for key in said.options if key.lower() == "path"]
    for key in paths:
        if said.location is not None:
            raise InvalidOption(option="LOCATION", value=said.location, reason="the option path names another place.")
        said.location = said.options.pop(key)
    if said.location is not None and said.location.rstrip("/") != str(target.location).rstrip("/"):
        reason = f"the table is at {target.location} by its name."
        raise InvalidOption(option="LOCATION", value=said.location, reason=reason)
    return said


def _clause(r: Reader, said: _Clauses) -> bool:
    """Take one; False where none comes next."""
    if r.take("PARTITIONED", "BY"):
        pairs = r.take_list(lambda: _partition(r))
        said.partitions = tuple(name for name, _ in pairs)
        said.added = tuple(Field(name, typed.type) for name, typed in pairs if typed is not None)
    elif r.take("CLUSTER", "BY"):
        said.clusters = clustering(r)
    elif r.take("TBLPROPERTIES"):
        said.properties = properties(r)
    elif r.take("COMMENT"):
        said.comment = r.string("a comment")
    elif r.take("LOCATION"):
        said.location = r.string("a path")
    elif r.take("OPTIONS"):
        said.options = options(r)
    elif r.take("USING"):
        _format(r)
    else:
        return False
    return True


_REFUSED = {
    ("CLUSTERED", "BY"): "a Delta table has no buckets; say CLUSTER BY",
    ("SKEWED", "BY"): "a Delta table knows no skew; say CLUSTER BY",
    ("ROW", "FORMAT"): "the rows of a Delta table lie in Parquet files",
    ("STORED", "AS"): "the rows of a Delta table lie in Parquet files",
    ("DEFAULT", "COLLATION"): "collated texts are not written here",
}


def _refuse(r: Reader) -> None:
    """Refuse a clause of Spark's by its name, if one comes next."""
    for words, why in _REFUSED.items():
        if r.at(*words):
            raise InvalidOption(option=" ".join(words), value="said", reason=f"{why}.")


def _partition(r: Reader) -> tuple[str, Typed | None]:
    name = r.name("the name of a column")
    if r.is_type(TokenType.L_PAREN):
        reason = "a table is partitioned by columns; generate one, and partition by that."
        raise InvalidOption(option="PARTITIONED BY", value=name, reason=reason)
    return name, data_type(r, name) if r.is_name() else None


def clustering(r: Reader) -> tuple[Path, ...]:
    """Take the columns behind CLUSTER BY; none for NONE."""
    if r.take("NONE"):
        return ()
    if r.at("AUTO"):
        reason = "a service that watches a table's queries chooses its columns, and there is none here: name them."
        raise InvalidOption(option="CLUSTER BY", value="AUTO", reason=reason)
    return r.take_list(lambda: r.path("the name of a column"))


def properties(r: Reader) -> dict[str, str]:
    """Take ``('a' = 'b', c.d = 1)``: names and values as texts.

    Raises:
        InvalidProperty: Spark keeps one for itself.
    """
    found = options(r)
    check_unreserved(found)
    return found


def options(r: Reader) -> dict[str, str]:
    """Take names and values in parentheses, as texts, each name once."""
    found: dict[str, str] = {}

    def each() -> None:
        at = r.i
        key, value = option(r)
        if key in found:
            r.fail(f"the key {key} is said twice.", at)
        found[key] = value

    r.take_list(each)
    return found


def property_key(r: Reader) -> str:
    """Take the name of a property, in quotes or as words with dots."""
    return r.string(alone=True) if r.is_text() else ".".join(r.path("the name of a property"))


def option(r: Reader) -> tuple[str, str]:
    """Take ``'a' = 'b'`` or ``c.d = 1``: a name and a value, as texts."""
    key = property_key(r)
    if r.is_type(TokenType.EQ):
        r.i += 1
    if r.is_text():
        return key, r.string()
    if r.at("TRUE") or r.at("FALSE"):
        return key, r.name().lower()
    return key, r.number("a value of the property")


# -- LIKE, CLONE, CONVERT, views ---------------------------------------------------------------------------------------


def _like(r: Reader, target: Table, if_not_exists: bool) -> CreateTable:
    first = r.i
    name: Path = ()
    like: Table | Query | None = r.table()
    if like is None:
        name = r.path("the name of a table")
        like = r.query_between(first, r.i, "SELECT * FROM ")
    said = _clauses(r, target, *_LIKE)
    r.finish()
    return CreateTable(
        target,
        if_not_exists=if_not_exists,
        properties=said.properties,
        comment=said.comment,
        like=like,
        like_name=name,
    )


def _clone(r: Reader, target: Table) -> CloneTable:
    shallow = r.take("SHALLOW")
    if not shallow:
        r.take("DEEP")
    r.expect("CLONE")
    source = r.table(travels=True) or r.path("the name of a table")
    said = _clauses(r, target, *_CLONED)
    r.finish()
    return CloneTable(target, source, shallow, properties=said.properties)


def convert(r: Reader) -> Statement:
    """``CONVERT TO DELTA {parquet.`path` | t} [NO STATISTICS] [PARTITIONED BY (…)]``."""
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
    """``CREATE [OR REPLACE] VIEW … AS`` a query that reads a Delta table."""
    replaces = r.has_taken("REPLACE")
    if_not_exists = r.take("IF", "NOT", "EXISTS")
    name, at = r.object_name("the name of a view"), r.i
    if name is None or not (r.reads_delta() or (replaces and r.is_kept_table(name))):
        return None
    columns = r.take_list(lambda: _parse_view_column(r)) if r.is_type(TokenType.L_PAREN) else None
    said = _Clauses()
    evolves = False
    while not r.at("AS"):
        at, first = r.i, r.ahead()
        if r.is_at_end or first not in ("COMMENT", "TBLPROPERTIES", "WITH") or first in said.seen:
            r.fail("AS and a query are expected here.", at)
        said.seen.add(first)
        if r.take("WITH", "SCHEMA"):
            evolves = _evolves(r, columns is not None)
        else:
            _clause(r, said)
    r.expect("AS")
    query = r.query()
    text = r.text[slice(*query.span)]
    return CreateView(name, query, text, columns, replaces, if_not_exists, said.comment, said.properties, evolves)


def _evolves(r: Reader, names_columns: bool) -> bool:
    """What stands behind ``WITH SCHEMA``: whether the view's columns follow those of its query; their types always do.

    Raises:
        NotBuilt: the types are to be those of today.
    """
    if r.take("TYPE", "EVOLUTION"):
        return False
    if r.take("EVOLUTION"):
        if names_columns:
            r.fail("a view WITH SCHEMA EVOLUTION has its query's columns, and names none.", r.i - 1)
        return True
    if r.at("BINDING") or r.at("COMPENSATION"):
        what = f"CREATE VIEW WITH SCHEMA {r.ahead()} of a Delta table"
        raise NotBuilt(what=what, instead="The types of a view follow its tables: say TYPE EVOLUTION, or EVOLUTION.")
    return r.fail("EVOLUTION or TYPE EVOLUTION is expected here.")


def _parse_view_column(r: Reader) -> tuple[str, str | None]:
    name = r.name("the name of a column")
    return name, r.string("a comment") if r.take("COMMENT") else None


def create_temporary_view(r: Reader) -> CreateTempView | None:
    """``CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW … {AS`` a query that reads a Delta table ``| USING delta}``."""
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
    """``v USING delta OPTIONS (path '…' [, versionAsOf n | timestampAsOf '…'])``.

    Raises:
        InvalidOption: it has no path, or another option.
    """
    name = r.name("the name of a view")
    r.expect("USING")
    format_, said = r.name("a format"), options(r) if r.take("OPTIONS") else {}
    given = {key.lower(): value for key, value in said.items()}
    path = given.pop("path", None)
    if r.find_location((format_, path or "/")) is None:
        return None
    r.finish()
    if path is None:
        raise InvalidOption(
            option="path", value=None, reason="give the path of the table that the view USING delta shows."
        )
    travel = [f" {_TRAVELS[key]} AS OF '{given.pop(key)}'" for key in _TRAVELS if key in given]
    if given or len(travel) > 1:
        key = next(iter(given), "timestampasof")
        raise InvalidOption(option=key, value=said, reason="a view takes a path, and versionAsOf or timestampAsOf.")
    quoted_path = path.replace("`", "``")
    query = r.beside(f"SELECT * FROM {format_}.`{quoted_path}`{''.join(travel)}").query()
    return CreateTempView(name, query, None, replaces, is_global)


_TRAVELS = {"versionasof": "VERSION", "timestampasof": "TIMESTAMP"}
"""The options that name a version, and what a query says."""


def drop_table(r: Reader) -> DropTable | None:
    """``DROP TABLE [IF EXISTS] t [PURGE]``."""
    if_exists = r.take("IF", "EXISTS")
    table = r.table()
    if table is None:
        return None
    r.take("PURGE")
    r.finish()
    return DropTable(table, if_exists)
