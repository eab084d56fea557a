"""How many bytes the columns of a Parquet file take in memory, before they are read.

Knows how Parquet folds values: pages are compressed, and a page may name the values of a dictionary, or repeat the
beginning of the value before it. So a few bytes may mean any number. Guarantees: what a page says of its own size
counts, as Arrow goes by it, and not what the footer says; counting takes about as much memory as is allowed, at most.

Source: Apache Parquet, ``parquet.thrift``, for the numbers of fields; "Encodings".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._log.row_groups import Chunk, Leaf
from anabranch._log.thrift import Bytes, Fields, struct

_TYPE, _UNFOLDED, _FOLDED, _DATA, _DATA_2 = 1, 2, 3, 5, 8
"""PageHeader.type, uncompressed_page_size and compressed_page_size, and the headers of data pages."""
_OF_VALUES, _OF_DICTIONARY = {0: _DATA, 3: _DATA_2}, 2
"""PageType.DATA_PAGE and DATA_PAGE_V2; DICTIONARY_PAGE."""
_VALUES, _ENCODINGS = 1, {_DATA: 2, _DATA_2: 4}
"""num_values and encoding in DataPageHeader and DataPageHeaderV2."""
_BY_DICTIONARY, _BY_BEGINNINGS = {2, 8}, 7
"""Encoding.PLAIN_DICTIONARY and RLE_DICTIONARY; DELTA_BYTE_ARRAY."""
_TEXT, _FIXED = 6, 7
"""Type.BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY."""
_VALUE_BYTES = 8
"""Of a value, or of what says where a text ends; about as much for one that is NULL."""
_HEAD_BYTES = (256, 1 << 16, 1 << 24)
"""How much is looked at for a page's head, one after the other; statistics may stand in it."""
_LOOKED_AT_BYTES, _ROWS = 32 << 20, 1 << 16
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_DICTIONARY_BYTES = 4 << 20
"""Writers give up a dictionary of 1 MiB; in a larger one no text is looked at."""
_ENTRIES = (b"key_value", b"map", b"entries")
"""How writers call the entries of a map, of which Arrow reads both parts or none."""


class TooLarge(ValueError):
    """It takes more than is allowed."""


class _Sizes(NamedTuple):
    """A chunk's bytes: those it takes for sure, and at most so many for the ``names`` of texts of its dictionary, and
    for beginnings that are repeated; how long a text of the latter may be; where the dictionary is.
    """

    chunk: Chunk
    sure: int
    names: int
    named: int
    begun: int
    longest: int
    dictionary: tuple[int, int, int]

    @property
    def perhaps(self) -> int:
        """What it may take besides what it takes for sure."""
        return self.named + self.begun


def check_unfolded(source: pa.NativeFile, footer: pq.FileMetaData, chunks: Sequence[Chunk], most: int) -> None:
    """Raises an error unless these chunks of a file take about ``most`` bytes or fewer.

    Raises:
        TooLarge: they take more.
        ValueError: a page is garbled.
    """
    found, sure = list[_Sizes](), 0
    for chunk in chunks:
        found.append(_sizes(source, chunk))
        sure += found[-1].sure
        _hold(sure, most)
    if sure + sum(each.perhaps for each in found) > most:
        found = [_by_longest(source, each) for each in found]
    if sure + sum(each.perhaps for each in found) > most:
        share = (most - sure) // len(found)
        begun = {_path(each.chunk.leaf) for each in found if each.begun}  # Arrow reads no such page as a dictionary
        texts = {_path(each.leaf) for each in chunks if each.leaf.kind == _TEXT} - begun
        _count(source, footer, [each for each in found if each.perhaps > share], sorted(texts), most - sure)


def _hold(size: int, most: int) -> None:
    if size > most:
        raise TooLarge


# -- pages -------------------------------------------------------------------------------------------------------------


def _sizes(source: pa.NativeFile, chunk: Chunk) -> _Sizes:
    sure = chunk.values * max(chunk.leaf.length if chunk.leaf.kind == _FIXED else 0, _VALUE_BYTES)
    names = begun = page = 0
    dictionary = (0, 0, 0)
    for head, at in _pages(source, chunk):
        unfolded, kind = head[_UNFOLDED], _OF_VALUES.get(head[_TYPE])
        sure += unfolded
        if head[_TYPE] == _OF_DICTIONARY:
            dictionary = max(dictionary, (unfolded, at, head[_FOLDED]))
        elif kind is not None:
            values, encoding = head[kind][_VALUES], head[kind][_ENCODINGS[kind]]
            if encoding in _BY_DICTIONARY:
                names += values
            elif encoding == _BY_BEGINNINGS:
                begun, page = begun + values * unfolded, max(page, unfolded)
    longest = max(page, dictionary[0]) if begun else 0
    named = names * dictionary[0] if chunk.leaf.kind == _TEXT else 0
    return _Sizes(chunk, sure, names, named, begun, longest, dictionary)


def _pages(source: pa.NativeFile, chunk: Chunk) -> Iterator[tuple[Fields, int]]:
    """The heads of a chunk's pages, and where their bytes begin, as far as it has values: Arrow reads no further."""
    at, left = chunk.span.start, chunk.values
    while left > 0 and at < chunk.span.end:
        head, size = _head(source, at, chunk.span.end)
        yield head, at + size
        at += size + head[_FOLDED]
        if (kind := _OF_VALUES.get(head[_TYPE])) is not None:
            left -= head[kind][_VALUES]


def _head(source: pa.NativeFile, at: int, end: int) -> tuple[Fields, int]:
    for length in _HEAD_BYTES:
        data = Bytes(source.read_at(min(length, end - at), at))
        try:
            head = struct(data, 0)
            kind = _OF_VALUES.get(head[_TYPE])
            of_values = [] if kind is None else [head[kind][each] for each in (_VALUES, _ENCODINGS[kind])]
            if min(head[_UNFOLDED], head[_FOLDED], *of_values) >= 0:
                return head, data.at
        except (IndexError, KeyError, TypeError):
            continue
    raise ValueError("the head of a page is garbled")


def _by_longest(source: pa.NativeFile, sizes: _Sizes) -> _Sizes:
    """The same, by the longest text of a small dictionary in place of all of them."""
    unfolded, at, folded = sizes.dictionary
    if not sizes.named or unfolded > _DICTIONARY_BYTES or sizes.chunk.codec not in (0, *_CODECS):
        return sizes
    data = source.read_at(folded, at)
    if sizes.chunk.codec:
        try:
            data = pa.decompress(data, unfolded, _CODECS[sizes.chunk.codec], asbytes=True)
        except (pa.ArrowException, OSError, ValueError):
            return sizes
    at = longest = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return sizes._replace(named=sizes.names * longest)


# -- values ------------------------------------------------------------------------------------------------------------


def _count(
    source: pa.NativeFile, footer: pq.FileMetaData, found: Sequence[_Sizes], texts: Sequence[str], most: int
) -> None:
    """Raises TooLarge: the texts of these chunks take more. While they are read, each text of a dictionary is held
    once, and of those that repeat a beginning only few.

    Args:
        texts: the paths of all columns of texts that Arrow can read so, those beside one in a map among them.
    """
    _hold(sum(each.begun for each in found if each.chunk.leaf.repeats), most)  # one row may hold any number of them
    rows = max(1, min(_ROWS, _LOOKED_AT_BYTES // max(1, *(each.longest for each in found))))
    parquet = pq.ParquetFile(source, metadata=footer, read_dictionary=texts)
    size = 0
    for group in sorted({each.chunk.group for each in found}):
        columns = sorted({_around(each.chunk.leaf) for each in found if each.chunk.group == group})
        for batch in parquet.iter_batches(rows, row_groups=[group], columns=columns):
            size += sum(_text_bytes(leaf) for column in batch.columns for leaf in _leaves(column))
            _hold(size, most)


def _path(leaf: Leaf) -> str:
    return b".".join(leaf.path).decode()


def _around(leaf: Leaf) -> str:
    """The path of a column, or of the outermost map that it is in."""
    ends = next((at for at, part in enumerate(leaf.path) if at and part in _ENTRIES), len(leaf.path))
    return b".".join(leaf.path[:ends]).decode()


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_struct(kind):
        for each in values.flatten():
            yield from _leaves(each)
    elif pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        for each in (values.keys, values.items) if pa.types.is_map(kind) else (values.values,):
            yield from _leaves(each.slice(first, last - first))
    else:
        yield values


def _text_bytes(values: pa.Array) -> int:
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(values.indices)).as_py() or 0)
