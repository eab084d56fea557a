"""Leaf columns of a schema, which are not structs, and which of them get statistics.

Knows schemas and the two properties that choose columns for statistics. Knows nothing of files. Pure. Guarantee: leaves
are in the schema's order, and counted as Delta does: a list or a map is one leaf, whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, Struct, decimal_of, kind_of
from anabranch.errors import InvalidProperty

STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_BOUNDED = (*INTEGERS, "float", "double", "string", "date", "timestamp", "timestamp_ntz")
_WORD = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))\s*")


@dataclass(frozen=True)
class Leaf:
    """A column that is not a struct, with its enclosing structs."""

    path: tuple[Field, ...]

    @property
    def field(self) -> Field:
        """The innermost field."""
        return self.path[-1]

    @property
    def type(self) -> DataType:
        """Its type."""
        return self.path[-1].type

    @property
    def names(self) -> tuple[str, ...]:
        """Its path of logical names."""
        return tuple(field.name for field in self.path)

    @property
    def name(self) -> Name:
        """Its name, or its path if structs enclose it."""
        return self.names[0] if len(self.path) == 1 else self.names

    @property
    def keys(self) -> tuple[str, ...]:
        """Its path of names in data files and statistics."""
        return tuple(field.physical_name for field in self.path)


def leaves_of(fields: Sequence[Field], enclosing: tuple[Field, ...] = ()) -> Iterator[Leaf]:
    """All leaves, in order."""
    for field in fields:
        if isinstance(field.type, Struct):
            yield from leaves_of(field.type.fields, (*enclosing, field))
        else:
            yield Leaf((*enclosing, field))


def leaf_at(schema: Struct, name: Name) -> Leaf | None:
    """The leaf of this name or path; None if there is none, or it is a struct.

    Example:
        >>> leaf_at(Struct((Field("s", Struct((Field("a", "long"),))),)), ("s", "a")).type
        'long'
    """
    path: list[Field] = []
    inside: DataType = schema
    for step in (name,) if isinstance(name, str) else name:
        field = inside.find(step) if isinstance(inside, Struct) else None
        if field is None:
            return None
        path.append(field)
        inside = field.type
    return None if isinstance(inside, Struct) else Leaf(tuple(path))


def select_columns(schema: Struct, names: Iterable[Name]) -> Struct:
    """The columns of these names, in the schema's order; of a struct, the named members.

    Example:
        >>> select_columns(Struct((Field("s", Struct((Field("a", "long"), Field("b", "long")))),)), [("s", "b")])
        Struct(fields=(Field(name='s', type=Struct(fields=(Field(name='b', type='long', ...
    """
    return _only(schema, [(name,) if isinstance(name, str) else tuple(name) for name in names])


def _only(schema: Struct, paths: Collection[tuple[str, ...]]) -> Struct:
    fields = []
    for field in schema:
        below = [path[1:] for path in paths if path[0] == field.name]
        if isinstance(field.type, Struct) and all(below):
            fields += [replace(field, type=_only(field.type, below))] if below else []
        elif below:
            fields.append(field)
    return Struct(tuple(fields), schema.exact)


def leaves_with_stats(
    schema: Struct, columns: Collection[Name] | int, partition_columns: Collection[str]
) -> list[Leaf]:
    """The leaves that get statistics. ``columns`` lists columns, members by their paths, or structs for all their
    leaves, in any case; or it is the number of leaves, without partition columns (negative: all).
    """
    leaves = [leaf for leaf in leaves_of(schema.fields) if leaf.path[0].name not in partition_columns]
    if isinstance(columns, int):
        return leaves if columns < 0 else leaves[:columns]
    paths = {_lower_names((name,) if isinstance(name, str) else name) for name in columns}
    return [leaf for leaf in leaves if not paths.isdisjoint(_paths_to(leaf))]


def _paths_to(leaf: Leaf) -> list[tuple[str, ...]]:
    """The leaf's path and those of the enclosing structs."""
    names = _lower_names(leaf.names)
    return [names[: i + 1] for i in range(len(names))]


def _lower_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


# -- the property ------------------------------------------------------------------------------------------------------


def column_list(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse a list of paths such as ``a, s.b, `x.y` ``.

    Raises:
        ValueError: it is malformed; names of more than letters, digits and underscores need backticks.

    Example:
        >>> column_list("a, s.b, `x.y`")
        (('a',), ('s', 'b'), ('x.y',))
    """
    paths: list[list[str]] = [[]]
    end, has_more = 0, bool(text.strip())
    while has_more:
        match = _PART.match(text, end)
        if match is None:
            raise ValueError("it takes names of columns, separated by commas; unusual names need backticks")
        paths[-1].append(match[2] if match[1] is None else match[1].replace("``", "`"))
        end = match.end()
        if end == len(text):
            break
        if text[end] not in ".,":
            raise ValueError(f"after {paths[-1][-1]} comes a comma or the end; unusual names need backticks")
        paths += [[]] if text[end] == "," else []
        end += 1
    return tuple(tuple(path) for path in paths if path)


def format_column_list(paths: Iterable[Sequence[str]]) -> str:
    """Format a list of paths, as `column_list` reads it; names that are not plain words are in backticks.

    Example:
        >>> format_column_list([("a",), ("s", "b c")])
        'a,s.`b c`'
    """
    return ",".join(".".join(map(_quote_if_needed, path)) for path in paths)


def _quote_if_needed(name: str) -> str:
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def check_stats_columns(schema: Struct, partition_columns: Collection[str], configuration: Mapping[str, str]) -> None:
    """Raises InvalidProperty unless all columns chosen for statistics can have bounds, as in delta-spark: a column is
    unknown, has no order, is a partition column, or is listed twice.
    """
    text = configuration.get(STATS_COLUMNS, "")
    seen: set[tuple[str, ...]] = set()
    for path in column_list(text):
        for leaf in _find_leaves(text, schema, path):
            if leaf.path[0].name in partition_columns:
                raise _refusal(text, f"{leaf.path[0].name} partitions the table, so its values are in the log anyway.")
            if leaf.type not in _BOUNDED and decimal_of(leaf.type) is None:
                reason = f"{'.'.join(leaf.names)} is of the type {kind_of(leaf.type)}, which has no bounds."
                raise _refusal(text, reason)
            if leaf.names in seen:
                raise _refusal(text, f"{'.'.join(leaf.names)} is named twice.")
            seen.add(leaf.names)


def _find_leaves(text: str, schema: Struct, path: tuple[str, ...]) -> list[Leaf]:
    leaves = leaves_with_stats(schema, [path], ())
    if not leaves:
        raise _refusal(text, f"there is no column {'.'.join(path)}; the columns are {', '.join(schema.names)}.")
    return leaves


def _refusal(text: str, reason: str) -> InvalidProperty:
    return InvalidProperty(property=STATS_COLUMNS, value=text, reason=reason)
