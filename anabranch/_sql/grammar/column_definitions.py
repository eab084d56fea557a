"""Columns as CREATE TABLE and ALTER TABLE declare them: name, type, and what the table demands of their values.

Knows Spark's names of types and Delta's. Guarantee: a column is the one that ``DeltaTable``'s builder makes of the same
words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
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
_SPARKS = frozenset({"INTERVAL", "TIME", "GEOMETRY", "GEOGRAPHY"})
"""Types of Spark's that no Delta table is made with."""
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_SPELLED = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
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


Also = Callable[[str], bool]
"""Takes what may stand among the words on a column, whose name it gets, and says whether there was anything."""


class Typed(NamedTuple):
    """A type, and its name with the lengths of its texts, where it has any."""

    type: DataType
    name: str
    has_length: bool = False


class Declared(NamedTuple):
    """A column, and where ALTER TABLE puts it."""

    field: Field
    first: bool = False
    after: str | None = None


def data_type(r: Reader, column: str = "", level: int = 1) -> Typed:
    """Take a type, of a column.

    Raises:
        UnsupportedType: it is one of Spark's that no Delta table holds. InvalidSchema: it is nested too deep.
    """
    check_depth(level)
    found = _data_type(r, column, level)
    if r.at("COLLATE"):
        raise UnsupportedType(column=column, type=f"{found.name} collate {r.ahead(1)}")
    return found


def _data_type(r: Reader, column: str, level: int) -> Typed:
    said = r.ahead()
    if said in ("ARRAY", "MAP", "STRUCT") and r.is_type(TokenType.LT, 1):
        r.i += 2
        return _parse_nested_type(r, said, column, level + 1)
    if said == "STRUCT" and r.is_type(TokenType.NEQ, 1):  # STRUCT<>
        r.i += 2
        return Typed(Struct(), "struct<>")
    at = r.i
    r.name("a type")
    if said in _DECIMALS:
        return _decimal(r)
    if said in ("CHAR", "CHARACTER", "VARCHAR"):
        length = r.single(lambda: r.whole("a length"))
        return Typed("string", f"{'varchar' if said == 'VARCHAR' else 'char'}({length})", True)
    known = _TYPES.get(said)
    if said in _SPARKS:
        raise UnsupportedType(column=column, type=said.lower())
    if known is None:
        r.fail("there is no such type in a Delta table.", at)
    return Typed(known, _SPELLED.get(known, known))


def _decimal(r: Reader) -> Typed:
    digits = r.take_list(lambda: r.whole("a number of digits")) if r.is_type(TokenType.L_PAREN) else (10,)
    precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
    if len(digits) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
        r.fail("a decimal has 1 to 38 digits, and no more behind the point than in all.", r.i - 1)
    name = f"decimal({precision},{scale})"
    return Typed(name, name)


def _parse_nested_type(r: Reader, said: str, column: str, level: int) -> Typed:
    if said == "ARRAY":
        element = data_type(r, column, level)
        _close(r)
        return Typed(Array(element.type), f"array<{element.name}>", element.has_length)
    if said == "MAP":
        key = data_type(r, column, level)
        r.punctuation(TokenType.COMMA, ",")
        value = data_type(r, column, level)
        _close(r)
        return Typed(Map(key.type, value.type), f"map<{key.name},{value.name}>", key.has_length or value.has_length)
    members = [_member(r, level)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        members.append(_member(r, level))
    _close(r)
    name = ",".join(f"{field.name}:{typed.name}" for field, typed in members)
    return Typed(
        Struct(tuple(field for field, _ in members)), f"struct<{name}>", any(typed.has_length for _, typed in members)
    )


def _member(r: Reader, level: int) -> tuple[Field, Typed]:
    name = r.name("the name of a member")
    if r.is_type(TokenType.COLON):
        r.i += 1
    typed = data_type(r, name, level)
    nullable = not r.take("NOT", "NULL")
    metadata = {"comment": r.string("a comment")} if r.take("COMMENT") else {}
    return Field(name, typed.type, nullable, metadata), typed


def _close(r: Reader) -> None:
    """The end of a nested type."""
    if not r.is_type(TokenType.GT):
        r.fail("'>' is expected here.")
    r.i += 1


# -- columns -----------------------------------------------------------------------------------------------------------


def column(r: Reader, also: Also | None = None) -> Field:
    """Take a column of CREATE TABLE: its name, its type, and what is said of it, and ``also`` of the table."""
    return parse_column_definition(r, r.name("the name of a column"), also).field


def parse_column_definition(r: Reader, name: str, also: Also | None = None) -> Declared:
    """Take what stands behind the name of a column, in any order, each once."""
    typed = data_type(r, name)
    metadata: dict[str, Any] = {LENGTH: typed.name} if typed.has_length else {}
    found = Declared(Field(name, typed.type, True, metadata))
    seen: set[str] = set()
    while (said := r.ahead()) in _SAYS or (also is not None and also(name)):
        if said not in _SAYS:
            continue
        if said in seen:
            r.fail(f"{said} is said twice of the column {name}.")
        seen.add(said)
        found = _SAYS[said](r, found)
    return found


def _not_null(r: Reader, found: Declared) -> Declared:
    r.expect("NOT", "NULL")
    return found._replace(field=replace(found.field, nullable=False))


def _comment(r: Reader, found: Declared) -> Declared:
    r.expect("COMMENT")
    return _with(found, {"comment": r.string("a comment")})


def _default(r: Reader, found: Declared) -> Declared:
    r.expect("DEFAULT")
    return _with(found, {DEFAULT: r.expression(*_ENDS_VALUE, comma=True, what="a value").text})


def _parse_generation(r: Reader, found: Declared) -> Declared:
    r.expect("GENERATED")
    explicit = r.take("BY", "DEFAULT")
    if not explicit:
        r.expect("ALWAYS")
    r.expect("AS")
    if r.take("IDENTITY"):
        if found.field.type != "long":
            declared_as, name = found.field.type, found.field.name
            raise IdentityNotBigint(option="GENERATED … AS IDENTITY", value=declared_as, column=name)
        start, step = _counting(r)
        return _with(found, identity_metadata(start, step, explicit=explicit))
    if explicit:
        r.fail("BY DEFAULT belongs to IDENTITY; a value that is computed is GENERATED ALWAYS AS (…).")
    r.punctuation(TokenType.L_PAREN, "(")
    text = r.expression(what="an expression").text
    r.punctuation(TokenType.R_PAREN, ")")
    return _with(found, {GENERATION: text})


def _counting(r: Reader) -> tuple[int, int]:
    """START WITH and INCREMENT BY, in any order."""
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


def _first(r: Reader, found: Declared) -> Declared:
    r.expect("FIRST")
    return found._replace(first=True)


def _after(r: Reader, found: Declared) -> Declared:
    r.expect("AFTER")
    return found._replace(after=r.name("the name of a column"))


def _with(found: Declared, facts: Mapping[str, Any]) -> Declared:
    return found._replace(field=replace(found.field, metadata={**found.field.metadata, **facts}))


_SAYS = {
    "NOT": _not_null,
    "COMMENT": _comment,
    "DEFAULT": _default,
    "GENERATED": _parse_generation,
    "FIRST": _first,
    "AFTER": _after,
}
