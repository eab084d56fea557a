"""PRIMARY KEY and FOREIGN KEY of a table, which are not enforced.

Knows how a key is written into a table's properties, as SQL under ``anabranch.constraint.<name>``; other engines keep
these unknown properties. Pure. Guarantee: a key is information only; no function reads a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch._protocol.schema.types import Struct
from anabranch.errors import InvalidOption, InvalidProperty

KEY_PREFIX = "anabranch.constraint."
PRIMARY, FOREIGN = "PRIMARY KEY", "FOREIGN KEY"
_PART = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_LIST = rf"\(({_PART}(?:, {_PART})*)\)"
_TEXT = re.compile(rf"(?:{PRIMARY} {_LIST}|{FOREIGN} {_LIST} REFERENCES {_PART}(?:\.{_PART})*(?: {_LIST})?)(?: RELY)?")
_NAME = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass(frozen=True)
class Key:
    """A key of these columns; a `FOREIGN` one refers to a ``parent``, to its primary key unless columns are given.
    ``relied``: whether an optimizer may rely on it.

    Example:
        >>> Key("fk", FOREIGN, ("carrier",), ("db", "carriers"), ("code",)).text
        'FOREIGN KEY (carrier) REFERENCES db.carriers (code)'
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    parent: tuple[str, ...] = ()
    parent_columns: tuple[str, ...] = ()
    relied: bool = False

    @property
    def text(self) -> str:
        """The key as SQL."""
        sql = f"{self.kind} ({_join_names(self.columns)})"
        if self.parent:
            sql += f" REFERENCES {'.'.join(map(_quote_if_needed, self.parent))}"
        if self.parent_columns:
            sql += f" ({_join_names(self.parent_columns)})"
        return sql + (" RELY" if self.relied else "")

    @property
    def property(self) -> str:
        """The table property with the key."""
        return KEY_PREFIX + self.name.lower()


def is_key(key: str) -> bool:
    """Whether this table property is a key."""
    return key.lower().startswith(KEY_PREFIX)


def keys_of(configuration: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The keys of a table: name, kind and columns."""
    for key, text in configuration.items():
        if is_key(key) and (match := _TEXT.fullmatch(text)) is not None:
            kind = PRIMARY if match[1] else FOREIGN
            columns = _NAME.findall(match[1] or match[2])
            yield key[len(KEY_PREFIX) :], kind, tuple(quoted.replace("``", "`") or plain for quoted, plain in columns)


def check_key(key: str, text: str) -> None:
    """Raises `InvalidProperty` unless a property is a key."""
    if len(key) == len(KEY_PREFIX) or key != key.lower() or _TEXT.fullmatch(text) is None:
        reason = f"it takes {KEY_PREFIX}name, in lower case, and {PRIMARY} (…) or {FOREIGN} (…) REFERENCES t (…)."
        raise InvalidProperty(property=key, value=text, reason=reason)


def check_keys(schema: Struct, configuration: Mapping[str, str]) -> None:
    """Raises `InvalidOption`, with the reason, unless a table can have its keys: all columns exist, and those of the
    only primary key are NOT NULL.
    """
    primary: list[str] = []
    for name, kind, columns in keys_of(configuration):
        for column in columns:
            field = schema.find(column)
            if field is None:
                raise _refusal(name, f"there is no column {column}; the columns are {', '.join(schema.names)}.")
            if kind == PRIMARY and field.nullable:
                raise _refusal(name, f"the columns of a primary key must be NOT NULL, and {column} is not.")
        primary += [name] if kind == PRIMARY else []
    if len(primary) > 1:
        raise _refusal(primary[1], f"a table has at most one primary key, and {primary[0]} is one already.")


def check_keys_unchanged(before: Struct, after: Struct, configuration: Mapping[str, str]) -> None:
    """Raises `InvalidOption` if a change of columns drops NOT NULL from the columns of a primary key."""
    for name, kind, columns in keys_of(configuration):
        for column in columns if kind == PRIMARY else ():
            old, new = before.find(column), after.find(column)
            if old is not None and new is not None and new.nullable and not old.nullable:
                reason = f"it is of the primary key {name}, whose columns are NOT NULL; drop that key first."
                raise InvalidOption(option="DROP NOT NULL", value=column, reason=reason)


def without_invalid_keys(schema: Struct, configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties without the keys that a table of these columns cannot have.

    Example:
        >>> without_invalid_keys(Struct((Field("x", "long"),)), {"anabranch.constraint.pk": "PRIMARY KEY (id)"})
        {}
    """
    lost = {name for name, kind, columns in keys_of(configuration) if not all(_column_checks(schema, kind, columns))}
    return {key: value for key, value in configuration.items() if not (is_key(key) and key[len(KEY_PREFIX) :] in lost)}


def _column_checks(schema: Struct, kind: str, columns: Iterable[str]) -> Iterator[bool]:
    for field in map(schema.find, columns):
        yield field is not None and not (kind == PRIMARY and field.nullable)


def users_of(column: str, configuration: Mapping[str, str]) -> list[str]:
    """The keys that include a column."""
    return [
        f"the constraint {name} ({kind})"
        for name, kind, columns in keys_of(configuration)
        if column.lower() in {key_column.lower() for key_column in columns}
    ]


def _refusal(name: str, reason: str) -> InvalidOption:
    return InvalidOption(option="constraint", value=name, reason=reason)


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(map(_quote_if_needed, names))


def _quote_if_needed(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"
