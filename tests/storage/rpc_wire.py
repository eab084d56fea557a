"""How Hadoop frames its calls: a length, and a header with the number of the call; messages of Protocol Buffers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PREFACE_BYTES = 7  # "hrpc", version, class of service, kind of authentication
Fields = dict[int, int | bytes]


class Call(NamedTuple):
    """One request of a client; numbers below zero are of the connection itself."""

    number: int
    method: str
    frame: bytes
    asked: bytes


def exactly(source: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError: the other side has closed."""
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


def frame(source: socket.socket) -> bytes:
    """One message with the length before it."""
    length = exactly(source, 4)
    return length + exactly(source, struct.unpack(">i", length)[0])


def framing(data: bytes) -> bytes:
    """The message with its length before it."""
    return struct.pack(">i", len(data)) + data


def call_in(whole: bytes) -> Call:
    """What a frame asks."""
    header, end = delimited(whole, 4)
    count = number(fields(header), 3)
    count = (count >> 1) ^ -(count & 1)  # a sint32
    if count < 0:
        return Call(count, "", whole, b"")
    head, end = delimited(whole, end)
    method = fields(head).get(1, b"")
    return Call(count, method.decode() if isinstance(method, bytes) else "", whole, delimited(whole, end)[0])


# -- messages of Protocol Buffers --------------------------------------------------------------------------------------


def message(values: Mapping[int, int | bytes | Sequence[bytes]]) -> bytes:
    """A message with these fields."""
    found = bytearray()
    for each, value in values.items():
        for one in [value] if isinstance(value, (int, bytes)) else value:
            found += field(each, one)
    return bytes(found)


def field(which: int, value: int | bytes) -> bytes:
    """One field of a message."""
    if isinstance(value, int):
        return varint(which << 3) + varint(value)
    return varint(which << 3 | 2) + delimiting(value)


def delimiting(data: bytes) -> bytes:
    """A message with its length before it, as the messages themselves have it."""
    return varint(len(data)) + data


def delimited(data: bytes, at: int) -> tuple[bytes, int]:
    """A message whose length stands before it, and where it ends."""
    length, at = read_varint(data, at)
    return data[at : at + length], at + length


def delimited_from(source: socket.socket) -> bytes:
    """The next such message."""
    length = shift = 0
    while True:
        byte = exactly(source, 1)[0]
        length, shift = length | (byte & 127) << shift, shift + 7
        if byte < 128:
            return exactly(source, length)


def fields(data: bytes) -> Fields:
    """The fields of a message, as far as they are numbers or bytes; of several the last."""
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            found[key >> 3], at = read_varint(data, at)
        else:
            assert key & 7 == 2, "Hadoop's headers have no other kinds"
            found[key >> 3], at = delimited(data, at)
    return found


def number(found: Fields, which: int) -> int:
    """A field that is a number; zero where there is none."""
    value = found.get(which, 0)
    assert isinstance(value, int)
    return value


def inner(found: Fields, which: int) -> bytes:
    """A field that is a message."""
    value = found.get(which, b"")
    assert isinstance(value, bytes)
    return value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def varint(value: int) -> bytes:
    """A number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
