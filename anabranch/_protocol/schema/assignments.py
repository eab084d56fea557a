"""Assignments: the new values of columns and of members of struct columns.

Pure data about names; values are the engine's own. Guarantee: nothing is assigned twice, and no struct is assigned both
as a whole and in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch._protocol.schema.types import Struct
from anabranch.errors import InvalidOption

Path = tuple[str, ...]
"""A column, or a member, as the names of its enclosing structs and its own."""


@dataclass(frozen=True)
class Members:
    """New values of some members of a struct; the others keep theirs, or are NULL if the struct was NULL.

    Attributes:
        whole: the value from which all of these members are taken, if any; if it is NULL, a struct that was NULL stays
            NULL.
    """

    values: Mapping[str, Any]
    whole: Any = None


def leaves(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every assigned value with its path, in order.

    Example:
        >>> list(leaves({"x": 1, "s": Members({"a": 2})}))
        [(('x',), 1), (('s', 'a'), 2)]
    """
    for name, value in values.items():
        if isinstance(value, Members):
            yield from leaves(value.values, (*above, name))
        else:
            yield (*above, name), value


def whole_structs(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the paths of structs whose members are taken from one value, with this value.

    Example:
        >>> list(wholes({"x": 1, "s": Members({"a": 2}, whole=3)}))
        [(('s',), 3)]
    """
    for name, value in values.items():
        if isinstance(value, Members):
            if value.whole is not None:
                yield (*above, name), value.whole
            yield from whole_structs(value.values, (*above, name))


def map_values(values: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The same assignments with other values; `Members.whole` stays."""
    return {
        name: replace(value, values=map_values(value.values, change)) if isinstance(value, Members) else change(value)
        for name, value in values.items()
    }


def find_path(path: Sequence[str], schema: Struct) -> Path | None:
    """A path in the schema's spelling; None if it does not exist, or leads through a type other than struct."""
    field = schema.find(path[0]) if path else None
    if field is None:
        return None
    if len(path) == 1:
        return (field.name,)
    rest = find_path(path[1:], field.type) if isinstance(field.type, Struct) else None
    return None if rest is None else (field.name, *rest)


def build_assignments(pairs: Sequence[tuple[str, Path, Any]], option: str) -> dict[str, Any]:
    """Build assignments from pairs of paths and values, each with the user's key for it. Raises InvalidOption: a column
    or member is set twice, or a struct both as a whole and in part.
    """
    values: dict[str, Any] = {}
    for key, path, value in pairs:
        inner = values
        for name in path[:-1]:
            inner = inner.setdefault(name, _Open())
            if not isinstance(inner, _Open):
                raise _set_twice_error(option, key)
        if path[-1] in inner:
            raise _set_twice_error(option, key)
        inner[path[-1]] = value
    return _to_members(values)


class _Open(dict[str, Any]):
    """Members that are still being collected; the type differs from all user values."""


def _to_members(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Members(_to_members(value)) if isinstance(value, _Open) else value for name, value in values.items()}


def _set_twice_error(option: str, key: str) -> InvalidOption:
    return InvalidOption(
        option=option, value=key, reason=f"There is a conflict from these SET columns: [{key}], which is set twice."
    )
