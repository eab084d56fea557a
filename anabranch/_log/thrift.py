"""Thrift's compact protocol, as Parquet uses it: the fields of a struct by their numbers.

Pure. Guarantee: garbled bytes raise a ``KeyError``, ``TypeError`` or ``IndexError``; deep nesting raises no
``RecursionError``.

Source: Apache Thrift, "Thrift compact protocol".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MAX_DEPTH = 32
_MAX_BITS = 70

Fields = Mapping[int, Any]


class Bytes:
    """Bytes that are read from front to back; an IndexError at the end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at(self) -> int:
        """The number of bytes read."""
        return self._at

    def byte(self) -> int:
        """The next byte."""
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
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
            if shift > _MAX_BITS:
                raise IndexError("a number does not end")
        return value


def struct(data: Bytes, depth: int) -> Fields:
    """The fields of a struct by their numbers."""
    if depth > _MAX_DEPTH:
        raise IndexError("it nests too deep")
    fields: dict[int, Any] = {}
    number = 0
    while head := data.byte():
        step, kind = head >> 4, head & 15
        number = number + step if step else _read_signed(data, depth)
        fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else _READ[kind](data, depth)
    return fields


def _list(data: Bytes, depth: int) -> list[Any]:
    head = data.byte()
    size, read = head >> 4, _READ[head & 15]
    return [read(data, depth) for _ in range(data.number() if size == _LONG else size)]


def _read_signed(data: Bytes, depth: int) -> int:
    value = data.number()
    return (value >> 1) ^ -(value & 1)


_TRUE, _FALSE, _LONG = 1, 2, 15
_READ: Mapping[int, Callable[[Bytes, int], Any]] = {
    _TRUE: lambda data, depth: data.byte() == _TRUE,
    _FALSE: lambda data, depth: data.byte() == _TRUE,
    3: lambda data, depth: data.byte(),
    4: _read_signed,
    5: _read_signed,
    6: _read_signed,
    7: lambda data, depth: data.take(8),
    8: lambda data, depth: data.take(data.number()),
    9: lambda data, depth: _list(data, depth + 1),
    10: lambda data, depth: _list(data, depth + 1),
    12: lambda data, depth: struct(data, depth + 1),
}
"""Readers of a value of each Thrift type, alone or in a list; Parquet has no maps."""
