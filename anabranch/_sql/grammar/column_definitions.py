"""Parses columns as CREATE TABLE and ALTER TABLE define them: name, type, and constraints on their values.

Knows Spark's names of types and Delta's. Guarantee: a column equals the one that ``DeltaTable``'s builder makes from
the same definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
from anabranch._protocol.schema.geospatial import geospatial_type
from anabranch._protocol.schema.intervals import INTERVALS, canonical_type
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import VOID, Array, DataType, Field, Map, Struct, check_depth
from anabranch._sql.grammar.reader import Reader
from anabranch.errors import IdentityNotBigint, UnsupportedType

_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "STRING": "string",
    "BINARY": "binary",
    "VARIANT": "variant",
    "VOID": VOID,
}
_INTERVAL_FIELDS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_UNSUPPORTED = frozenset({"TIME"})
"""Spark's types that a Delta table cannot have."""
_GEOSPATIAL = frozenset({"GEOMETRY", "GEOGRAPHY"})
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_ENDS_VALUE = (
    "COMMENT",
    "NOT",
    "DEFAULT",
    "GENERATED",
    "FIRST",
    "AFTER",
    "CONSTRAINT",
    "CHECK",
    "PRIMARY",
    "FOREIGN",
    "REFERENCES",
)


ClauseParser = Callable[[str], bool]
"""Takes a further clause of a column definition; gets the column's name and returns whether there was one."""


class TypeDefinition(NamedTuple):
    """A type, and its SQL name, which includes the lengths of CHAR and VARCHAR."""

    type: DataType
    name: str
    has_length: bool = False


class ColumnDefinition(NamedTuple):
    """A column, and its position in ALTER TABLE."""

    field: Field
    first: bool = False
    after: str | None = None


def data_type(r: Reader, column: str = "", level: int = 1) -> TypeDefinition:
    """Take the type of a column.

    Raises:
        UnsupportedType: a Delta table cannot have this type. InvalidSchema: it is nested too deep.
    """
    check_depth(level)
    typed = _data_type(r, column, level)
    if r.at("COLLATE"):
        raise UnsupportedType(column=column, type=f"{typed.name} collate {r.ahead(1)}")
    return typed


def _data_type(r: Reader, column: str, level: int) -> TypeDefinition:
    keyword = r.ahead()
    if keyword in ("ARRAY", "MAP", "STRUCT") and r.is_type(TokenType.LT, 1):
        r.i += 2
        return _parse_nested_type(r, keyword, column, level + 1)
    if keyword == "STRUCT" and r.is_type(TokenType.NEQ, 1):  # STRUCT<>
        r.i += 2
        return TypeDefinition(Struct(), "struct<>")
    at = r.i
    r.name("a type")
    if keyword in _DECIMALS:
        return _decimal(r)
    if keyword in ("CHAR", "CHARACTER", "VARCHAR"):
        length = r.single(lambda: r.whole("a length"))
        return TypeDefinition("string", f"{'varchar' if keyword == 'VARCHAR' else 'char'}({length})", True)
    if keyword == "INTERVAL":
        return _interval(r, column)
    if keyword in _GEOSPATIAL and r.is_type(TokenType.L_PAREN):
        return _geospatial(r, keyword.lower(), column)
    type_name = _TYPES.get(keyword)
    if keyword in _UNSUPPORTED | _GEOSPATIAL:
        raise UnsupportedType(column=column, type=keyword.lower())
    if type_name is None:
        r.fail("there is no such type in a Delta table.", at)
    return TypeDefinition(type_name, _SQL_NAMES.get(type_name, type_name))


def _interval(r: Reader, column: str) -> TypeDefinition:
    """Take the fields of an interval; without fields it is Spark's former type, which a table cannot have."""
    name = "interval"
    if r.ahead() in _INTERVAL_FIELDS:
        name += f" {r.name('a field of an interval').lower()}"
        if r.take("TO"):
            name += f" to {r.name('a field of an interval').lower()}"
    type_name = canonical_type(name)
    if type_name not in INTERVALS:
        raise UnsupportedType(column=column, type=name)
    return TypeDefinition(type_name, name)


def _geospatial(r: Reader, kind: str, column: str) -> TypeDefinition:
    """Take the number of a reference system; ``ANY``, with which each value has its own, is no type of a table."""
    srid = r.single(lambda: r.name("a reference system") if r.at("ANY") else r.whole("a reference system"))
    type_name = geospatial_type(kind, srid) if isinstance(srid, int) else None
    if type_name is None:
        raise UnsupportedType(column=column, type=f"{kind}({srid})".lower())
    return TypeDefinition(type_name, f"{kind}({srid})")


def _decimal(r: Reader) -> TypeDefinition:
    digits = r.take_list(lambda: r.whole("a number of digits")) if r.is_type(TokenType.L_PAREN) else (10,)
    precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
    if len(digits) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
        r.fail("a decimal has 1 to 38 digits, and at most as many after the decimal point.", r.i - 1)
    name = f"decimal({precision},{scale})"
    return TypeDefinition(name, name)


def _parse_nested_type(r: Reader, keyword: str, column: str, level: int) -> TypeDefinition:
    if keyword == "ARRAY":
        element = data_type(r, column, level)
        _take_closing_bracket(r)
        return TypeDefinition(Array(element.type), f"array<{element.name}>", element.has_length)
    if keyword == "MAP":
        key = data_type(r, column, level)
        r.punctuation(TokenType.COMMA, ",")
        value = data_type(r, column, level)
        _take_closing_bracket(r)
        return TypeDefinition(
            Map(key.type, value.type), f"map<{key.name},{value.name}>", key.has_length or value.has_length
        )
    members = [_member(r, level)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        members.append(_member(r, level))
    _take_closing_bracket(r)
    name = ",".join(f"{field.name}:{typed.name}" for field, typed in members)
    return TypeDefinition(
        Struct(tuple(field for field, _ in members)), f"struct<{name}>", any(typed.has_length for _, typed in members)
    )


def _member(r: Reader, level: int) -> tuple[Field, TypeDefinition]:
    name = r.name("the name of a member")
    if r.is_type(TokenType.COLON):
        r.i += 1
    typed = data_type(r, name, level)
    nullable = not r.take("NOT", "NULL")
    metadata = {"comment": r.string("a comment")} if r.take("COMMENT") else {}
    return Field(name, typed.type, nullable, metadata), typed


def _take_closing_bracket(r: Reader) -> None:
    """Take the ``>`` that ends a nested type."""
    if not r.is_type(TokenType.GT):
        r.fail("'>' is expected here.")
    r.i += 1


# -- columns -----------------------------------------------------------------------------------------------------------


def column(r: Reader, also: ClauseParser | None = None) -> Field:
    """Take a column of CREATE TABLE: its name, its type, its clauses, and those that ``also`` takes."""
    return parse_column_definition(r, r.name("the name of a column"), also).field


def parse_column_definition(r: Reader, name: str, also: ClauseParser | None = None) -> ColumnDefinition:
    """Take the type of a column and its clauses, in any order, each once."""
    typed = data_type(r, name)
    metadata: dict[str, Any] = {LENGTH: typed.name} if typed.has_length else {}
    declared = ColumnDefinition(Field(name, typed.type, True, metadata))
    keywords: set[str] = set()
    while (keyword := r.ahead()) in _CLAUSES or (also is not None and also(name)):
        if keyword not in _CLAUSES:
            continue
        if keyword in keywords:
            r.fail(f"{keyword} is specified twice for the column {name}.")
        keywords.add(keyword)
        declared = _CLAUSES[keyword](r, declared)
    return declared


def _not_null(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("NOT", "NULL")
    return declared._replace(field=replace(declared.field, nullable=False))


def _comment(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("COMMENT")
    return _add_metadata(declared, {"comment": r.string("a comment")})


def _default(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("DEFAULT")
    return _add_metadata(declared, {DEFAULT: r.expression(*_ENDS_VALUE, comma=True, what="a value").text})


def _parse_generation(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("GENERATED")
    explicit = r.take("BY", "DEFAULT")
    if not explicit:
        r.expect("ALWAYS")
    r.expect("AS")
    if r.take("IDENTITY"):
        if declared.field.type != "long":
            declared_as, name = declared.field.type, declared.field.name
            raise IdentityNotBigint(option="GENERATED … AS IDENTITY", value=declared_as, column=name)
        start, step = _parse_counter(r)
        return _add_metadata(declared, identity_metadata(start, step, explicit=explicit))
    if explicit:
        r.fail("BY DEFAULT requires IDENTITY; a computed value is GENERATED ALWAYS AS (…).")
    r.punctuation(TokenType.L_PAREN, "(")
    text = r.expression(what="an expression").text
    r.punctuation(TokenType.R_PAREN, ")")
    return _add_metadata(declared, {GENERATION: text})


def _parse_counter(r: Reader) -> tuple[int, int]:
    """Take START WITH and INCREMENT BY, in any order; returns start and step."""
    start, step = 1, 1
    if not r.is_type(TokenType.L_PAREN):
        return start, step
    r.i += 1
    while not r.is_type(TokenType.R_PAREN):
        if r.take("START", "WITH"):
            start = r.whole()
        elif r.take("INCREMENT", "BY"):
            step = r.whole()
        elif not r.is_type(TokenType.COMMA):
            r.fail("START WITH or INCREMENT BY is expected here.")
        else:
            r.i += 1
    r.i += 1
    return start, step


def _first(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("FIRST")
    return declared._replace(first=True)


def _after(r: Reader, declared: ColumnDefinition) -> ColumnDefinition:
    r.expect("AFTER")
    return declared._replace(after=r.name("the name of a column"))


def _add_metadata(declared: ColumnDefinition, facts: Mapping[str, Any]) -> ColumnDefinition:
    return declared._replace(field=replace(declared.field, metadata={**declared.field.metadata, **facts}))


_CLAUSES = {
    "NOT": _not_null,
    "COMMENT": _comment,
    "DEFAULT": _default,
    "GENERATED": _parse_generation,
    "FIRST": _first,
    "AFTER": _after,
}
