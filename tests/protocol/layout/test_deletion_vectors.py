"""Deletion vectors come back as they were written, or not at all."""

from __future__ import annotations

import struct
import uuid
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from anabranch._protocol.layout.deletion_vectors import (
    MAGIC,
    Descriptor,
    from_payload,
    inline,
    pack,
    payload,
    unframe,
    z85_decode,
    z85_encode,
)
from tests.support.tiers import examples

FILE_ID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")

near = st.integers(0, 1 << 17)
far = st.integers(0, (1 << 63) - 1) | st.sampled_from([0, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33, 2**63 - 1])
ranges = st.builds(
    lambda start, length: set(range(start, start + length)), far.map(lambda x: x >> 1), st.integers(0, 99)
)
vectors = st.builds(lambda parts: BitMap64(set().union(*parts)), st.lists(st.sets(near | far) | ranges, max_size=4))
batches = st.dictionaries(st.text(min_size=1, max_size=5), vectors, min_size=1, max_size=5)


def framed(vector: BitMap64) -> tuple[bytes, Descriptor]:
    _, data, descriptors = pack({"only": vector}, FILE_ID)
    start, length = descriptors["only"].span
    return data[start : start + length], descriptors["only"]


# -- there and back ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(batches)
def test_every_vector_of_a_file_comes_back(batch: dict[str, BitMap64]) -> None:
    _, data, descriptors = pack(batch, FILE_ID)
    for key, vector in batch.items():
        start, length = descriptors[key].span
        assert unframe(data[start : start + length], descriptors[key]) == vector


@pytest.mark.slow
@given(batches)
def test_the_vectors_of_a_file_lie_side_by_side_behind_the_version_byte(batch: dict[str, BitMap64]) -> None:
    _, data, descriptors = pack(batch, FILE_ID)
    spans = [descriptors[key].span for key in batch]
    assert data[0] == 1
    assert [start for start, _ in spans] == [1 + sum(length for _, length in spans[:i]) for i in range(len(spans))]
    assert len(data) == 1 + sum(length for _, length in spans)


@given(vectors)
def test_an_inline_vector_comes_back(vector: BitMap64) -> None:
    data = payload(vector)
    padded = data + b"\0" * (-len(data) % 4)
    assert inline(Descriptor("i", z85_encode(padded), len(data), len(vector))) == vector


def test_positions_beyond_2_to_the_31_and_32_come_back() -> None:
    vector = BitMap64([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1])
    assert list(unframe(*framed(vector))) == [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1]


@given(st.binary().map(lambda data: data + b"\0" * (-len(data) % 4)))
def test_z85_comes_back(data: bytes) -> None:
    assert z85_decode(z85_encode(data)) == data


# -- what the protocol and other engines write -------------------------------------------------------------------------


def test_z85_is_the_one_of_its_specification() -> None:
    assert z85_encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85_decode("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


def test_the_protocols_example_of_a_uuid_path_names_its_file() -> None:
    """PROTOCOL.md, "Deletion Vector Descriptor Schema": the random prefix is a folder, the rest a UUID in Z85."""
    descriptor = Descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
    assert descriptor.name == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert replace(descriptor, path_or_inline="^-aqEH.-t@S}K{vb[*k^").name == f"deletion_vector_{FILE_ID}.bin"


def test_an_inline_vector_of_another_engine_is_read() -> None:
    """The rows of PROTOCOL.md's inline example, as delta-kernel's tests hold them."""
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    assert list(inline(Descriptor("i", text, 44, 6))) == [3, 4, 7, 11, 18, 29]


def test_what_is_packed_is_named_after_its_descriptors() -> None:
    name, _, descriptors = pack({"a": BitMap64([1])}, FILE_ID)
    assert name == descriptors["a"].name == f"deletion_vector_{FILE_ID}.bin"
    assert descriptors["a"].unique_id == "u^-aqEH.-t@S}K{vb[*k^@1"


def test_the_frame_is_size_magic_roaring_and_checksum() -> None:
    """PROTOCOL.md, "Deletion Vector File Storage Format": sizes and checksums are big-endian, the magic little."""
    frame, descriptor = framed(BitMap64([1, 2]))
    size, data, checksum = frame[:4], frame[4:-4], frame[-4:]
    assert size == struct.pack(">i", len(data)) == struct.pack(">i", descriptor.size)
    assert data[:4] == struct.pack("<i", MAGIC)
    assert checksum == struct.pack(">I", zlib.crc32(data))
    assert BitMap64.deserialize(data[4:]) == BitMap64([1, 2])


@given(st.sampled_from("upi"), st.text(max_size=5), st.integers(0), st.integers(0), st.none() | st.integers(0))
def test_a_descriptor_comes_back_from_its_action(
    kind: str, path: str, size: int, rows: int, offset: int | None
) -> None:
    descriptor = Descriptor(kind, path, size, rows, offset)
    assert Descriptor.from_row(descriptor.to_row()) == descriptor


def test_two_vectors_in_one_file_have_different_ids() -> None:
    _, _, descriptors = pack({"a": BitMap64([1]), "b": BitMap64([1])}, FILE_ID)
    assert descriptors["a"].unique_id != descriptors["b"].unique_id


# -- damage ------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(30, 6))
@given(vectors, st.data())
def test_a_frame_with_any_changed_bit_is_refused(vector: BitMap64, data: st.DataObject) -> None:
    frame, descriptor = framed(vector)
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match=r"\w"):
        unframe(bytes(changed), descriptor)


def test_each_single_changed_byte_of_a_frame_is_refused() -> None:
    frame, descriptor = framed(BitMap64([0, 7, 2**33]))
    for place in range(len(frame)):
        changed = frame[:place] + bytes([frame[place] ^ 0xFF]) + frame[place + 1 :]
        with pytest.raises(ValueError, match=r"checksum|bytes"):
            unframe(changed, descriptor)


def test_a_frame_cut_anywhere_is_refused() -> None:
    frame, descriptor = framed(BitMap64([0, 7, 2**33]))
    for length in range(len(frame)):
        with pytest.raises(ValueError, match="ends after"):
            unframe(frame[:length], descriptor)


def test_a_frame_of_another_length_than_the_log_says_is_refused() -> None:
    frame, descriptor = framed(BitMap64([0, 7]))
    wrong = struct.pack(">I", descriptor.size + 1) + frame[4:]
    with pytest.raises(ValueError, match="but its file does not"):
        unframe(wrong, descriptor)


@pytest.mark.parametrize("cardinality", [0, 1, 3, 2**40])
def test_another_number_of_rows_than_the_log_says_is_refused(cardinality: int) -> None:
    frame, descriptor = framed(BitMap64([0, 7]))
    with pytest.raises(ValueError, match=f"it has 2 rows, but the log states {cardinality}"):
        unframe(frame, replace(descriptor, cardinality=cardinality))


@pytest.mark.parametrize("magic", [0, MAGIC - 1, 1681511376, 2**32 - 1])
def test_another_magic_number_is_refused_even_under_a_right_checksum(magic: int) -> None:
    data = struct.pack("<I", magic) + payload(BitMap64([1]))[4:]
    frame = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    with pytest.raises(ValueError, match="magic"):
        unframe(frame, Descriptor("u", "x", len(data), 1, 1))


@given(st.binary(max_size=60), st.integers(0, 5))
def test_bytes_that_are_no_bitmap_are_refused_or_hold_the_rows_promised(junk: bytes, rows: int) -> None:
    """Inline vectors have no checksum; what is no bitmap must not crash, nor come back with another number of rows."""
    try:
        found = from_payload(struct.pack("<I", MAGIC) + junk, cardinality=rows)
    except ValueError:
        return
    assert len(found) == rows


@pytest.mark.parametrize("text", ["~~~~~", "é", "#####", "a b c", '"""""', "0000_", "`|;~_"])
def test_what_is_not_z85_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        z85_decode(text)


@pytest.mark.parametrize("text", ["", "tooshort", "é" * 20, "^-aqEH.-t@S}K{vb[*k^"[:-1]])
def test_a_path_that_holds_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        _ = Descriptor("u", text, 1, 1, 1).name


def test_a_prefix_that_leaves_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves the table"):
        _ = Descriptor("u", "../x^-aqEH.-t@S}K{vb[*k^", 1, 1, 1).name


@pytest.mark.parametrize("field", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_descriptor_without_a_required_field_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        Descriptor.from_row({**Descriptor("u", "x", 1, 1, 1).to_row(), field: None})
