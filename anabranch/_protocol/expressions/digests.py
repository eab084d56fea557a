"""Entries that hash values: md5 and similar digests of texts, ``hash`` and ``xxhash64`` of any values.

``hash`` is 32-bit Murmur3 and ``xxhash64`` is 64-bit xxHash, both with the seed 42, as Spark defines them: the hash of
one argument is the seed of the next, and a NULL leaves it unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import unscaled_values
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Site,
    add,
    as_array,
    function,
)
from anabranch._protocol.schema.types import VOID, decimal_of
from anabranch._protocol.unsupported import Unsupported

# -- digests of texts --------------------------------------------------------------------------------------------------


@function("md5", "string", gives="string")
def _md5(values: Datum) -> Datum:
    return _digests(values, lambda text: hashlib.md5(text, usedforsecurity=False))


_SHA: dict[int, Callable[[bytes], Any]] = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


@function("sha2", "string =integer", gives="string")
def _sha2(values: Datum, bits: int) -> Datum:
    if bits not in _SHA:
        raise Unsupported("the number of bits of a digest is invalid")
    return _digests(values, _SHA[bits])


@function("sha, sha1", "string", gives="string")
def _sha1(values: Datum) -> Datum:
    return _digests(values, lambda text: hashlib.sha1(text, usedforsecurity=False))


def _digests(values: Datum, digest: Callable[[bytes], Any]) -> Datum:
    texts = [None if text is None else digest(text.encode()).hexdigest() for text in values.to_pylist()]
    return pa.array(texts, pa.string())


# -- hashes of any values ----------------------------------------------------------------------------------------------

_SEED = 42
_MAX_BYTES = 4096
"""The maximum number of bytes of a hashed text. All rows are mixed at once, word after word, so one long text costs as
many steps as if all were long.
"""
_MAX_LONG_DIGITS = 18
"""The maximum number of digits of a decimal that is hashed as a 64-bit integer."""
_AS_INTEGER = frozenset({"boolean", "byte", "short", "integer", "date", "float"})
_AS_LONG = frozenset({"long", "double", "timestamp", "timestamp_ntz"})
_AS_BYTES = frozenset({"string", "binary"})

Words = Any
"""A numpy array of unsigned words, whose products and sums wrap."""


@dataclass(frozen=True)
class _Bytes:
    """Texts, longest first, so that the texts with another word left are always the first ones.

    Attributes:
        data: the bytes of all texts.
        starts, lengths: of each text.
    """

    data: Any
    starts: Any
    lengths: Any

    def words(self, offset: int, width: int, count: int) -> Words:
        """The word at an offset of the first ``count`` texts, lowest byte first."""
        at = self.starts[:count, None] + (offset + np.arange(width))
        return np.ascontiguousarray(self.data[at]).view(f"<u{width}").ravel()

    def words_at(self, offsets: Any, width: int, chosen: Any) -> Words:
        """The word of each chosen text, at its own offset."""
        at = (self.starts + offsets)[chosen, None] + np.arange(width)
        return np.ascontiguousarray(self.data[at]).view(f"<u{width}").ravel()

    def with_more_than(self, length: int) -> int:
        """The number of texts that are longer."""
        return int(np.searchsorted(-self.lengths, -length, side="left"))


class _Murmur3:
    """32-bit Murmur3; the bytes behind the last whole word are mixed one by one, sign-extended."""

    word, gives = np.uint32, pa.int32()

    @staticmethod
    def _mix(seed: Words, value: Words) -> Words:
        mixed = _rotate(value * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        return _rotate(seed ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)

    @staticmethod
    def _finish(seed: Words, length: Any) -> Words:
        mixed = seed ^ np.asarray(length).astype(np.uint32)
        mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return mixed ^ (mixed >> np.uint32(16))

    def of_integers(self, seed: Words, values: Any) -> Words:
        return self._finish(self._mix(seed, values.astype(np.uint32)), 4)

    def of_longs(self, seed: Words, values: Any) -> Words:
        low, high = values.astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)
        return self._finish(self._mix(self._mix(seed, low), high), 8)

    def of_bytes(self, seed: Words, texts: _Bytes) -> Words:
        hashes, aligned = seed.copy(), texts.lengths & ~3
        for offset in range(0, int(texts.lengths.max(initial=0)) - 3, 4):
            count = texts.with_more_than(offset + 3)
            hashes[:count] = self._mix(hashes[:count], texts.words(offset, 4, count))
        for offset in range(3):
            chosen = np.flatnonzero(texts.lengths - aligned > offset)
            signed = texts.words_at(aligned + offset, 1, chosen).astype(np.int8).astype(np.int32)
            hashes[chosen] = self._mix(hashes[chosen], signed.astype(np.uint32))
        return self._finish(hashes, texts.lengths)


_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


class _XxHash64:
    """64-bit xxHash: four lanes for texts of at least 32 bytes, then words, half a word, and bytes."""

    word, gives = np.uint64, pa.int64()

    @staticmethod
    def _finish(seed: Words) -> Words:
        mixed = (seed ^ (seed >> np.uint64(33))) * _P2
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
        return mixed ^ (mixed >> np.uint64(32))

    @staticmethod
    def _mix_word(seed: Words, value: Words) -> Words:
        return _rotate(seed ^ (_rotate(value * _P2, 31) * _P1), 27) * _P1 + _P4

    @staticmethod
    def _mix_half(seed: Words, value: Words) -> Words:
        return _rotate(seed ^ (value.astype(np.uint64) * _P1), 23) * _P2 + _P3

    def of_integers(self, seed: Words, values: Any) -> Words:
        return self._finish(self._mix_half(seed + _P5 + np.uint64(4), values.astype(np.uint32)))

    def of_longs(self, seed: Words, values: Any) -> Words:
        return self._finish(self._mix_word(seed + _P5 + np.uint64(8), values))

    def of_bytes(self, seed: Words, texts: _Bytes) -> Words:
        hashes = self._begin(seed, texts) + texts.lengths.astype(np.uint64)
        at = np.where(texts.lengths >= 32, texts.lengths & ~31, 0)
        for _ in range(3 if len(at) else 0):
            at = self._mix_where(hashes, texts, at, 8)
        at = self._mix_where(hashes, texts, at, 4)
        for _ in range(3):
            at = self._mix_where(hashes, texts, at, 1)
        return self._finish(hashes)

    def _begin(self, seed: Words, texts: _Bytes) -> Words:
        """The seed of short texts, and the merged four lanes of the long ones."""
        count = texts.with_more_than(31)
        long = seed[:count]
        lanes = [long + _P1 + _P2, long + _P2, long.copy(), long - _P1]
        for offset in range(0, int(texts.lengths.max(initial=0)) - 31, 32):
            long_count = texts.with_more_than(offset + 31)
            for number, lane in enumerate(lanes):
                word = texts.words(offset + 8 * number, 8, long_count)
                lane[:long_count] = _rotate(lane[:long_count] + word * _P2, 31) * _P1
        merged = sum((_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint64(0))
        for lane in lanes:
            merged = (merged ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
        return np.concatenate([merged, seed[count:] + _P5])

    def _mix_where(self, hashes: Words, texts: _Bytes, at: Any, width: int) -> Any:
        """Mix the next word of this width into each text that has one, and return the new offsets."""
        chosen = np.flatnonzero(at + width <= texts.lengths)
        words = texts.words_at(at, width, chosen)
        if width == 8:
            hashes[chosen] = self._mix_word(hashes[chosen], words)
        elif width == 4:
            hashes[chosen] = self._mix_half(hashes[chosen], words)
        else:
            hashes[chosen] = _rotate(hashes[chosen] ^ (words.astype(np.uint64) * _P5), 11) * _P1
        return np.where(at + width <= texts.lengths, at + width, at)


def _rotate(words: Words, bits: int) -> Words:
    """Rotate the bits of words to the left."""
    kind = words.dtype.type
    return (words << kind(bits)) | (words >> kind(words.dtype.itemsize * 8 - bits))


def _is_hashed(kind: Any) -> bool:
    digits = decimal_of(kind) if isinstance(kind, str) else None
    return kind in _AS_INTEGER | _AS_LONG | _AS_BYTES | {VOID} or (digits is not None and digits[0] <= _MAX_LONG_DIGITS)


def _hashing(method: _Murmur3 | _XxHash64, gives: str) -> None:
    def fit(arguments: Sequence[Argument]) -> Fit:
        for argument in arguments:
            if not _is_hashed(argument.type):
                raise ArgumentsNotSupported(f"a value of {argument.type} is hashed by Spark")
        if not arguments:
            raise ArgumentsNotSupported("nothing is hashed")
        return Fit(gives, tuple(argument.type for argument in arguments if argument.type is not None))

    def kernel(arguments: Sequence[Datum], gives: Any, options: tuple[Any, ...], site: Site) -> Datum:
        hashes = np.full(site.count, _SEED, method.word)
        for argument in arguments:
            hashes = _mix_argument(method, hashes, as_array(argument, site.count))
        return pa.array(hashes.astype(method.word).view(method.gives.to_pandas_dtype()), method.gives)

    add("hash" if gives == "integer" else "xxhash64", fit, kernel)


def _mix_argument(method: _Murmur3 | _XxHash64, seed: Words, values: pa.Array) -> Words:
    if pa.types.is_null(values.type):
        return seed
    valid_rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    hashes = seed.copy()
    hashes[valid_rows] = _mix_valid(method, seed[valid_rows], values.drop_null())
    return hashes


def _mix_valid(method: _Murmur3 | _XxHash64, seed: Words, values: pa.Array) -> Words:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _mix_bytes(method, seed, values)
    if pa.types.is_floating(kind):
        return _mix_floats(method, seed, values)
    if pa.types.is_decimal(kind):
        return method.of_longs(seed, unscaled_values(values).to_numpy().view(np.uint64))
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return method.of_longs(seed, values.cast(pa.int64()).to_numpy().view(np.uint64))
    return method.of_integers(seed, values.cast(pa.int32()).to_numpy().view(np.uint32))


def _mix_floats(method: _Murmur3 | _XxHash64, seed: Words, values: pa.Array) -> Words:
    """Hashes -0.0 as 0.0, and every NaN alike."""
    numbers = values.to_numpy() + values.type.to_pandas_dtype()(0)
    numbers = np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers)
    if numbers.dtype == np.float32:
        return method.of_integers(seed, numbers.view(np.uint32))
    return method.of_longs(seed, numbers.view(np.uint64))


def _mix_bytes(method: _Murmur3 | _XxHash64, seed: Words, values: pa.Array) -> Words:
    lengths = pc.binary_length(values).to_numpy().astype(np.int64)
    if lengths.max(initial=0) > _MAX_BYTES:
        raise Unsupported(f"a text of more than {_MAX_BYTES} bytes is hashed")
    order = np.argsort(-lengths, kind="stable")
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values)].astype(np.int64)
    plain = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    hashes = np.empty_like(seed)
    hashes[order] = method.of_bytes(seed[order], _Bytes(plain, starts[order], lengths[order]))
    return hashes


_hashing(_Murmur3(), "integer")
_hashing(_XxHash64(), "long")
