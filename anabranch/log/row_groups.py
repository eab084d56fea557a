"""Finds in a Parquet footer which row groups may hold a value of a column, and their byte ranges.

Knows Thrift's compact protocol, and only the part of Parquet that this needs. Guarantee: a garbled footer is a
``ValueError``. Arrow could tell the same from a valid footer, but aborts the process on an inconsistent one: its access
to a column chunk lets an exception of C++ through.

Source: Apache Thrift, "Thrift compact protocol"; Apache Parquet, ``parquet.thrift``, for the numbers of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from anabranch.log.lazy import lazy
from anabranch.protocol.schema.types import LEVELS_IN_FILES
from anabranch.storage.native import Span

_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
"""FileMetaData.schema, num_rows and row_groups."""
_CHUNKS, _GROUP_ROWS, _CHUNK = 1, 3, 3
"""RowGroup.columns and num_rows, ColumnChunk.meta_data."""
_TYPE, _REPETITION, _NAME, _MEMBERS, _REPEATED = 1, 3, 4, 5, 2
"""SchemaElement.type (as ColumnMetaData.type), repetition_type, name, num_children; FieldRepetitionType.REPEATED."""
_PATH, _VALUES, _STATISTICS, _NULLS = 3, 5, 12, 3
"""ColumnMetaData.path_in_schema, num_values and statistics, Statistics.null_count."""
_BYTES, _DATA, _DICTIONARY = 7, 9, 11
"""ColumnMetaData.total_compressed_size, data_page_offset and dictionary_page_offset."""
_PADDING = 128
"""Arrow reads up to 100 bytes more for chunks whose writer left the dictionary's header out of their size."""
_DEEPEST = 32
_MOST_BITS = 70

Fields = Mapping[int, Any]
_Leaf = tuple[list[bytes], int | None, bool]


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
        with _garbled():
            return [number for number, group in enumerate(self._groups) if _may_hold(group, columns)]

    def spans(self, groups: Collection[int], columns: Sequence[str]) -> list[Span]:
        """The byte ranges of these columns (``add.path`` is a member of one) in these row groups."""
        wanted = tuple(f"{name}." for name in columns)
        with _garbled():
            chunks = (chunk for number in groups for chunk in _chunks(self._groups[number]))
            return [_span(each) for each in chunks if f"{b'.'.join(each[_PATH]).decode()}.".startswith(wanted)]

    def check(self) -> None:
        """Raises unless the footer is consistent: its rows are those of the groups, each group has a chunk of the right
        type for each column of the schema, and each chunk has as many values as its group has rows, or more where they
        repeat.
        """
        with _garbled():
            _agree("groups", len(self._groups), self._count)
            _agree("rows", sum(group[_GROUP_ROWS] for group in self._groups), self._fields[_ROWS])
            leaves = _leaves(_structs(self._fields, _SCHEMA))
            for group in self._groups:
                _check_group(group, leaves)

    def rows(self, groups: Collection[int]) -> int:
        """The number of rows in these row groups."""
        with _garbled():
            return sum(self._groups[number][_GROUP_ROWS] for number in groups)

    def values(self, path: str) -> int | None:
        """The number of non-NULL values of a column (``add.path``), where the footer says it."""
        with _garbled():
            named = path.encode().split(b".")
            chunks = [chunk for group in self._groups for chunk in _chunks(group) if chunk[_PATH] == named]
            nulls = [chunk.get(_STATISTICS, {}).get(_NULLS) for chunk in chunks]
            return None if None in nulls else sum(chunk[_VALUES] for chunk in chunks) - sum(nulls)

    @lazy
    def _groups(self) -> list[Fields]:
        return _structs(self._fields, _GROUPS)

    @lazy
    def _fields(self) -> Fields:
        return _struct(_Bytes(self._footer), 0)


@contextmanager
def _garbled() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"its footer is garbled ({type(error).__name__}: {error})") from None


def _agree(what: str, found: int, stated: int) -> None:
    if found != stated:
        raise ValueError(f"its footer contradicts itself: {found} {what} where it states {stated}")


def _leaves(schema: list[Fields]) -> list[_Leaf]:
    """Path and type of each column, and whether its values may repeat; the schema is a tree in preorder."""
    found, left = list[_Leaf](), iter(schema[1:])

    def walk(members: int, above: list[bytes], repeats: bool) -> None:
        if len(above) > LEVELS_IN_FILES:
            raise IndexError("it nests too deep")
        for _ in range(members):
            element = next(left, None)
            if element is None:
                raise IndexError("its schema ends too early")
            path = [*above, element[_NAME]]
            again = repeats or element.get(_REPETITION) == _REPEATED
            if element.get(_MEMBERS):
                walk(element[_MEMBERS], path, again)
            else:
                found.append((path, element.get(_TYPE), again))

    walk(schema[0].get(_MEMBERS, 0), [], False)
    return found


def _check_group(group: Fields, leaves: list[_Leaf]) -> None:
    chunks, rows = _chunks(group), group[_GROUP_ROWS]
    _agree("columns", len(chunks), len(leaves))
    if rows < 0:
        raise ValueError(f"its footer states {rows} rows")
    for chunk, (path, type_, repeats) in zip(chunks, leaves, strict=True):
        name, values = b".".join(path).decode(), chunk[_VALUES]
        if chunk[_PATH] != path:
            raise ValueError(f"its footer contradicts itself: it says {name} of the column {chunk[_PATH]}")
        if chunk.get(_TYPE) != type_:
            raise ValueError(f"its footer contradicts itself: a chunk of {name} is of another type")
        if values < rows or (values > rows and not repeats):
            raise ValueError(f"its footer contradicts itself: {values} values of {name} in a group of {rows} rows")


def _may_hold(group: Fields, columns: set[str]) -> bool:
    return not all(_is_null(chunk) for chunk in _chunks(group) if chunk[_PATH][0].decode() in columns)


def _is_null(chunk: Fields) -> bool:
    nulls = chunk.get(_STATISTICS, {}).get(_NULLS)
    return nulls is not None and bool(nulls == chunk[_VALUES])


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


# -- Thrift ------------------------------------------------------------------------------------------------------------


class _Bytes:
    """Bytes that are read from front to back; an IndexError at the end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        """The next one."""
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> bytes:
        """The next so many."""
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise IndexError("it ends too early")
        return self._data[start : self._at]

    def number(self) -> int:
        """The next number, seven bits to a byte."""
        byte = self.byte()
        value, shift = byte & 0x7F, 7
        while byte & 0x80:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > _MOST_BITS:
                raise IndexError("a number does not end")
        return value


def _struct(data: _Bytes, depth: int) -> Fields:
    """The fields of a struct by their numbers."""
    if depth > _DEEPEST:
        raise IndexError("it nests too deep")
    found: dict[int, Any] = {}
    number = 0
    while head := data.byte():
        step, kind = head >> 4, head & 15
        number = number + step if step else _signed(data, depth)
        found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else _READ[kind](data, depth)
    return found


def _list(data: _Bytes, depth: int) -> list[Any]:
    head = data.byte()
    size, read = head >> 4, _READ[head & 15]
    return [read(data, depth) for _ in range(data.number() if size == _LONG else size)]


def _signed(data: _Bytes, depth: int) -> int:
    value = data.number()
    return (value >> 1) ^ -(value & 1)


_TRUE, _FALSE, _LONG = 1, 2, 15
_READ: Mapping[int, Callable[[_Bytes, int], Any]] = {
    _TRUE: lambda data, depth: data.byte() == _TRUE,
    _FALSE: lambda data, depth: data.byte() == _TRUE,
    3: lambda data, depth: data.byte(),
    4: _signed,
    5: _signed,
    6: _signed,
    7: lambda data, depth: data.take(8),
    8: lambda data, depth: data.take(data.number()),
    9: lambda data, depth: _list(data, depth + 1),
    10: lambda data, depth: _list(data, depth + 1),
    12: lambda data, depth: _struct(data, depth + 1),
}
"""How to read a value of each Thrift type, alone or in a list; Parquet has no maps."""
