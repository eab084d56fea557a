"""Parses constraints of CREATE TABLE and ALTER TABLE: CHECK, which is enforced, and keys, which are informational.

Guarantee: a clause that would enforce a key is refused; so is a second constraint of the same name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX
from anabranch._protocol.schema.keys import FOREIGN, KEY_PREFIX, PRIMARY, Key
from anabranch._sql.grammar.parts import Expression, Table
from anabranch._sql.grammar.reader import Reader

_KINDS = ("CHECK", "PRIMARY", "FOREIGN", "REFERENCES")
_IGNORED = (
    ("NOT", "ENFORCED"),
    ("DEFERRABLE",),
    ("NOT", "DEFERRABLE"),
    ("INITIALLY", "DEFERRED"),
    ("INITIALLY", "IMMEDIATE"),
    ("NORELY",),
    ("MATCH", "FULL"),
    ("ON", "UPDATE", "NO", "ACTION"),
    ("ON", "DELETE", "NO", "ACTION"),
)
"""Options of a key that have no effect."""


@dataclass
class Constraints:
    """The constraints of a table to create, as its properties.

    Attributes:
        properties: name of the property -> SQL.
        not_null: the columns of the primary key.
    """

    table: Table
    properties: dict[str, str] = field(default_factory=dict)
    not_null: tuple[str, ...] = ()

    def take(self, r: Reader) -> None:
        """Take a constraint in the list of columns."""
        name = _parse_constraint_name(r)
        if r.at("CHECK"):
            self._add_check(r, name)
        else:
            self._add_key(r, key(r, name or "", ()), name)

    def take_of(self, r: Reader, column: str) -> bool:
        """Take a constraint after a column, if one comes next."""
        if not (starts_constraint(r) or r.at("REFERENCES")):
            return False
        name = _parse_constraint_name(r)
        if r.at("CHECK"):
            self._add_check(r, name)
        else:
            self._add_key(r, key(r, name or "", (column,)), name)
        return True

    def _add_check(self, r: Reader, name: str | None) -> None:
        r.expect("CHECK")
        text = check(r).text
        r.take("ENFORCED")
        self._add(r, name or self._free_name("chk"), CONSTRAINT_PREFIX, text)

    def _add_key(self, r: Reader, new_key: Key, name: str | None) -> None:
        kind = "pk" if new_key.kind == PRIMARY else "_".join((*new_key.columns, "fk"))
        chosen = name or self._free_name(kind)
        self.not_null += new_key.columns if new_key.kind == PRIMARY else ()
        self._add(r, chosen, KEY_PREFIX, new_key.text)

    def _add(self, r: Reader, name: str, prefix: str, text: str) -> None:
        if name.lower() in self._names():
            r.fail(f"the constraint {name} is specified twice.", r.i - 1)
        self.properties[prefix + name.lower()] = text

    def _names(self) -> set[str]:
        return {key.removeprefix(CONSTRAINT_PREFIX).removeprefix(KEY_PREFIX) for key in self.properties}

    def _free_name(self, kind: str) -> str:
        return free_name(self.table, kind, self._names())


def free_name(table: Table, kind: str, existing: Iterable[str] = ()) -> str:
    """Return a name for an unnamed constraint, such as ``flights_pk``."""
    base = f"{os.fspath(table.name[-1]).rstrip('/').rsplit('/', 1)[-1]}_{kind}".lower()
    names = [base, *(f"{base}_{i}" for i in range(2, len(set(existing)) + 3))]
    return next(name for name in names if name not in existing)


def starts_constraint(r: Reader) -> bool:
    """Whether a constraint comes next, and not a column of that name."""
    if r.at("CONSTRAINT"):
        return r.ahead(2) in _KINDS
    return (r.at("CHECK") and r.is_type(TokenType.L_PAREN, 1)) or r.at("PRIMARY", "KEY") or r.at("FOREIGN", "KEY")


def _parse_constraint_name(r: Reader) -> str | None:
    return r.name("the name of a constraint") if r.take("CONSTRAINT") else None


def check(r: Reader) -> Expression:
    """Take the condition of a CHECK, in parentheses."""
    return r.single(lambda: r.expression(what="a condition"))


def key(r: Reader, name: str, columns: tuple[str, ...]) -> Key:
    """Take a key, of the ``columns`` that precede it, or of those that it lists."""
    if r.take("PRIMARY", "KEY"):
        own_columns = columns or r.take_list(lambda: _key_column(r))
        return Key(name, PRIMARY, own_columns, relied=_options(r))
    if not columns:
        r.expect("FOREIGN", "KEY")
    elif r.take("FOREIGN"):
        r.expect("KEY")
    own_columns = columns or r.take_list(lambda: r.name("the name of a column"))
    r.expect("REFERENCES")
    parent = r.path("the name of a table")
    theirs = r.take_list(lambda: r.name("the name of a column")) if r.is_type(TokenType.L_PAREN) else ()
    if theirs and len(theirs) != len(own_columns):
        r.fail("a foreign key needs as many columns as it references.", r.i - 1)
    return Key(name, FOREIGN, own_columns, parent, theirs, _options(r))


def _key_column(r: Reader) -> str:
    name = r.name("the name of a column")
    r.take("TIMESERIES")
    return name


def _options(r: Reader) -> bool:
    """Take the options of a key; returns whether RELY is one."""
    is_relied_on = False
    while True:
        if r.take("RELY"):
            is_relied_on = True
        elif not any(r.take(*words) for words in _IGNORED):
            if r.ahead() in ("ENFORCED", "MATCH", "ON"):
                r.fail("keys are informational and never enforced.")
            return is_relied_on
