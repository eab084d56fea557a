"""Finds in a Parquet footer which row groups may hold a value of a column, and their byte ranges.

Knows only the part of Parquet that this needs. Guarantee: a garbled footer is a ``ValueError``. Arrow could read the
same from a valid footer, but aborts the process on an inconsistent one: its access to a column chunk lets a C++
exception through.

Source: Apache Parquet, ``parquet.thrift``, for the numbers of fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

from anabranch._log.lazy import lazy
from anabranch._log.thrift import Bytes, Fields, struct
from anabranch._protocol.schema.types import LEVELS_IN_FILES
from anabranch._storage.native import Span
from anabranch.errors.process_state import memo

_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
"""FileMetaData.schema, num_rows and row_groups."""
_CHUNKS, _GROUP_ROWS, _CHUNK = 1, 3, 3
"""RowGroup.columns and num_rows, ColumnChunk.meta_data."""
_TYPE, _LENGTH, _REPETITION, _NAME, _MEMBERS, _REPEATED = 1, 2, 3, 4, 5, 2
"""SchemaElement.type (as ColumnMetaData.type), type_length, repetition_type, name and num_children;
FieldRepetitionType.REPEATED.
"""
_PATH_IN_SCHEMA, _CODEC, _VALUES, _STATISTICS, _NULLS = 3, 4, 5, 12, 3
"""ColumnMetaData.path_in_schema, codec, num_values and statistics, Statistics.null_count."""
_BYTES, _DATA, _DICTIONARY = 7, 9, 11
"""ColumnMetaData.total_compressed_size, data_page_offset and dictionary_page_offset."""
_SMALL = 1 << 16
"""Maximum size of a footer, in bytes, that is kept parsed, in which it takes some dozens of times as much memory."""
_PADDING = 128
"""Arrow reads up to 100 bytes more for chunks whose writer left the dictionary's header out of their size."""


class Leaf(NamedTuple):
    """A column that holds values: its path, physical type, length of each value if it is fixed, and whether values may
    repeat in a row.
    """

    path: list[bytes]
    kind: int | None
    length: int
    repeats: bool


class Chunk(NamedTuple):
    """A column in a row group: its bytes, whose end may overlap other chunks, its number of values, and the codec of
    its pages.
    """

    group: int
    leaf: Leaf
    span: Span
    values: int
    codec: int


class RowGroups:
    """The ``count`` row groups of a footer (its bytes, without those after it), which is parsed on first use. Every
    call raises ``ValueError`` where the footer contradicts itself.
    """

    def __init__(self, footer: bytes, count: int) -> None:
        self._footer, self._count = footer, count

    def holding(self, columns: set[str]) -> list[int]:
        """The row groups that may have a non-NULL value in one of these top-level columns."""
        if self._count <= 1:
            return list(range(self._count))
        with _translate_errors():
            return [number for number, group in enumerate(self._groups) if _may_hold(group, columns)]

    def spans(self, groups: Collection[int], columns: Sequence[str]) -> list[Span]:
        """The byte ranges of these columns (``add.path`` is a member of one) in these row groups."""
        prefixes = tuple(f"{name}." for name in columns)
        with _translate_errors():
            chunks = (chunk for number in groups for chunk in _chunks(self._groups[number]))
            return [_span(chunk) for chunk in chunks if _join_path(chunk[_PATH_IN_SCHEMA]).startswith(prefixes)]

    def chunks(self, groups: Collection[int], columns: Sequence[str]) -> list[Chunk]:
        """The chunks of these columns in these row groups."""
        prefixes = tuple(f"{name}." for name in columns)
        with _translate_errors():
            leaves = _leaves(_structs(self._fields, _SCHEMA))
            chosen = [number for number, leaf in enumerate(leaves) if _join_path(leaf.path).startswith(prefixes)]
            selected = [(group, number, _chunks(self._groups[group])[number]) for group in groups for number in chosen]
            return [
                Chunk(group, leaves[number], _span(chunk), chunk[_VALUES], chunk[_CODEC])
                for group, number, chunk in selected
            ]

    def check(self) -> None:
        """Raises ValueError unless the footer is consistent: its rows are those of the groups, each group has a chunk
        of the right type for each column of the schema, and each chunk has as many values as its group has rows, or
        more where they repeat.
        """
        with _translate_errors():
            _agree("groups", len(self._groups), self._count)
            _agree("rows", sum(group[_GROUP_ROWS] for group in self._groups), self._fields[_ROWS])
            leaves = _leaves(_structs(self._fields, _SCHEMA))
            for group in self._groups:
                _check_group(group, leaves)

    def rows(self, groups: Collection[int]) -> int:
        """The number of rows in these row groups."""
        with _translate_errors():
            return sum(self._groups[number][_GROUP_ROWS] for number in groups)

    def values(self, path: str) -> int | None:
        """The number of non-NULL values of a column (``add.path``), where the footer states it."""
        with _translate_errors():
            named = path.encode().split(b".")
            chunks = [chunk for group in self._groups for chunk in _chunks(group) if chunk[_PATH_IN_SCHEMA] == named]
            nulls = [chunk.get(_STATISTICS, {}).get(_NULLS) for chunk in chunks]
            return None if None in nulls else sum(chunk[_VALUES] for chunk in chunks) - sum(nulls)

    @lazy
    def _groups(self) -> list[Fields]:
        return _structs(self._fields, _GROUPS)

    @lazy
    def _fields(self) -> Fields:
        return _fields_in_small(self._footer) if len(self._footer) <= _SMALL else _fields_in(self._footer)


def _fields_in(footer: bytes) -> Fields:
    return struct(Bytes(footer), 0)


@memo("footers of Parquet files", 8)
def _fields_in_small(footer: bytes) -> Fields:
    """The fields of a small footer. A file is opened once for each of its parts that is read, and parsed once for
    all.
    """
    return _fields_in(footer)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"its footer is garbled ({type(error).__name__}: {error})") from None


def _agree(what: str, actual: int, stated: int) -> None:
    if actual != stated:
        raise ValueError(f"its footer contradicts itself: {actual} {what} where it states {stated}")


def _leaves(schema: list[Fields]) -> list[Leaf]:
    """The columns in their order; the schema is a tree in preorder."""
    leaves, remaining = list[Leaf](), iter(schema[1:])

    def walk(members: int, above: list[bytes], repeats: bool) -> None:
        if len(above) > LEVELS_IN_FILES:
            raise IndexError("it nests too deep")
        for _ in range(members):
            element = next(remaining, None)
            if element is None:
                raise IndexError("its schema ends too early")
            path = [*above, element[_NAME]]
            repeats_here = repeats or element.get(_REPETITION) == _REPEATED
            if element.get(_MEMBERS):
                walk(element[_MEMBERS], path, repeats_here)
            else:
                leaves.append(Leaf(path, element.get(_TYPE), element.get(_LENGTH, 0), repeats_here))

    walk(schema[0].get(_MEMBERS, 0), [], False)
    return leaves


def _check_group(group: Fields, leaves: list[Leaf]) -> None:
    chunks, rows = _chunks(group), group[_GROUP_ROWS]
    _agree("columns", len(chunks), len(leaves))
    if rows < 0:
        raise ValueError(f"its footer states {rows} rows")
    for chunk, (path, type_, _, repeats) in zip(chunks, leaves, strict=True):
        name, values = b".".join(path).decode(), chunk[_VALUES]
        if chunk[_PATH_IN_SCHEMA] != path:
            raise ValueError(
                f"its footer contradicts itself: it has {name} in place of the column {chunk[_PATH_IN_SCHEMA]}"
            )
        if chunk.get(_TYPE) != type_:
            raise ValueError(f"its footer contradicts itself: a chunk of {name} is of another type")
        if values < rows or (values > rows and not repeats):
            raise ValueError(f"its footer contradicts itself: {values} values of {name} in a group of {rows} rows")


def _may_hold(group: Fields, columns: set[str]) -> bool:
    return not all(_is_null(chunk) for chunk in _chunks(group) if chunk[_PATH_IN_SCHEMA][0].decode() in columns)


def _is_null(chunk: Fields) -> bool:
    nulls = chunk.get(_STATISTICS, {}).get(_NULLS)
    return nulls is not None and bool(nulls == chunk[_VALUES])


def _join_path(path: list[bytes]) -> str:
    """A path with a dot after each part, so that a prefix ends at a part."""
    return f"{b'.'.join(path).decode()}."


def _span(chunk: Fields) -> Span:
    start, dictionary = chunk[_DATA], chunk.get(_DICTIONARY, 0)
    start = dictionary if 0 < dictionary < start else start
    if start < 0 or chunk[_BYTES] < 0:
        raise IndexError("a chunk lies before the beginning")
    return Span(start, start + chunk[_BYTES] + _PADDING)


def _chunks(group: Fields) -> list[Fields]:
    return [cast(Fields, chunk[_CHUNK]) for chunk in _structs(group, _CHUNKS)]


def _structs(fields: Fields, number: int) -> list[Fields]:
    return cast(list[Fields], fields[number])
