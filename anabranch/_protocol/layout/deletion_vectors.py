"""Deletion vectors: the deleted rows of a file.

Knows PROTOCOL.md, sections "Deletion Vectors" and "Deletion Vector Format". Pure: bytes in, bitmaps out. Guarantee: a
vector whose checksum, magic number, length or cardinality does not match the descriptor is never returned.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap64

from anabranch._protocol.layout.paths import decode as decode_path

MAGIC = 1681511377
"""The 64-bit portable Roaring form, the only one that the protocol allows."""

_FORMAT_VERSION = b"\x01"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


_STORAGE_TYPES = frozenset({"u", "p", "i"})


class UnknownStorage(ValueError):
    """A vector is stored in a way that is not known here, such as ``r`` of the feature `adaptiveMetadata`."""

    def __init__(self, storage_type: str) -> None:
        super().__init__(f"the storage type {storage_type!r} is unknown")
        self.storage_type = storage_type


@dataclass(frozen=True)
class Descriptor:
    """The location of a vector: ``u`` by a UUID below the table, ``p`` at an absolute path, ``i`` inline in the log."""

    storage_type: str
    path_or_inline: str
    size: int
    cardinality: int
    offset: int | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Descriptor:
        """From the ``deletionVector`` of an action. Raises ValueError: a required field is missing. UnknownStorage: it
        is stored in a way that PROTOCOL.md does not have.
        """
        for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"):
            if row.get(name) is None:
                raise ValueError(f"its descriptor has no {name}")
        if row["storageType"] not in _STORAGE_TYPES:
            raise UnknownStorage(row["storageType"])
        return cls(row["storageType"], row["pathOrInlineDv"], row["sizeInBytes"], row["cardinality"], row.get("offset"))

    def to_row(self) -> dict[str, Any]:
        """As the ``deletionVector`` of an action."""
        return {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            "offset": self.offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }

    @property
    def unique_id(self) -> str:
        """Distinguishes two vectors of one file (PROTOCOL.md, "Derived Fields")."""
        base = self.storage_type + self.path_or_inline
        return base if self.offset is None else f"{base}@{self.offset}"

    @property
    def name(self) -> str:
        """The store name of a ``u`` vector's file."""
        prefix, encoded = self.path_or_inline[:-20], self.path_or_inline[-20:]
        file = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
        return f"{decode_path(prefix)}/{file}" if prefix else file

    @property
    def span(self) -> tuple[int, int]:
        """Start and length in bytes of the framed vector (size, payload, checksum) in its file."""
        return self.offset or 0, self.size + 8


def vector_id(file: Mapping[str, Any]) -> str:
    """The `unique_id` of a file's vector, empty if it has none. Raises ValueError: as `Descriptor.from_row`."""
    row = file.get("deletionVector")
    return "" if row is None else Descriptor.from_row(row).unique_id


def z85_encode(data: bytes) -> str:
    """Z85 of bytes; the length must be a multiple of 4."""
    return base64.b85encode(data).translate(_TO_Z85).decode()


def z85_decode(text: str) -> bytes:
    """The bytes of a Z85 text. Raises ValueError: the text is not Z85."""
    if not set(text.encode()) <= set(_Z85):
        raise ValueError(f"{text!r} is not Z85")
    return base64.b85decode(text.encode().translate(_FROM_Z85))


def payload(vector: BitMap64) -> bytes:
    """A vector as bytes: the magic number, then the 64-bit portable Roaring form."""
    return struct.pack("<I", MAGIC) + vector.serialize()


def from_payload(data: bytes, *, cardinality: int) -> BitMap64:
    """Parse a payload. Raises ValueError: wrong magic number, damaged bytes, or another number of rows than in the
    descriptor.
    """
    if len(data) < 12 or struct.unpack_from("<I", data)[0] != MAGIC:
        raise ValueError("the magic number is not that of a 64-bit portable Roaring bitmap")
    vector = BitMap64.deserialize(data[4:])
    if len(vector) != cardinality:
        raise ValueError(f"it has {len(vector)} rows, but the log states {cardinality}")
    return vector


def inline(descriptor: Descriptor) -> BitMap64:
    """The vector of an ``i`` descriptor. Raises ValueError: as `from_payload`."""
    data = z85_decode(descriptor.path_or_inline)[: descriptor.size]
    return from_payload(data, cardinality=descriptor.cardinality)


def to_inline(vector: BitMap64) -> Descriptor:
    """The ``i`` descriptor of a vector."""
    data = payload(vector)
    padded = data + bytes(-len(data) % 4)
    return Descriptor("i", z85_encode(padded), len(data), len(vector))


def unframe(framed: bytes, descriptor: Descriptor) -> BitMap64:
    """The vector in the bytes of a descriptor's `span`. Raises ValueError: wrong length or checksum, or as
    `from_payload`.
    """
    if len(framed) != descriptor.size + 8:
        raise ValueError(f"its file ends after {len(framed)} of {descriptor.size + 8} bytes")
    (size,) = struct.unpack_from(">I", framed)
    data, (checksum,) = framed[4:-4], struct.unpack(">I", framed[-4:])
    if size != descriptor.size:
        raise ValueError(f"the log states {descriptor.size} bytes, but its file does not")
    if zlib.crc32(data) != checksum:
        raise ValueError("the checksum is wrong")
    return from_payload(data, cardinality=descriptor.cardinality)


def pack(
    vectors: Mapping[str, BitMap64], file_id: uuid.UUID, folder: str = ""
) -> tuple[str, bytes, dict[str, Descriptor]]:
    """One file with these vectors: its store name, its bytes, and a descriptor for each key.

    The file is in a folder (the prefix of a ``u``), or in the table's root, where every engine looks for it.
    """
    encoded, parts, offset, descriptors = folder + z85_encode(file_id.bytes), [_FORMAT_VERSION], 1, {}
    for key, vector in vectors.items():
        data = payload(vector)
        descriptors[key] = Descriptor("u", encoded, len(data), len(vector), offset)
        parts.append(struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
        offset += len(data) + 8
    name = f"deletion_vector_{file_id}.bin"
    return f"{folder}/{name}" if folder else name, b"".join(parts), descriptors
