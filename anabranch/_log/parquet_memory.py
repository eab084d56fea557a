"""Bounds the memory that the columns of a Parquet file take, before they are read.

Knows how Parquet encodes values: pages are compressed, and a page may refer to the values of a dictionary, or share a
prefix with the value before. So a few bytes may expand to any size. Guarantees: sizes come from the page headers, which
Arrow follows, not from the footer; counting itself takes about as much memory as is allowed, at most.

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

_TYPE, _UNCOMPRESSED, _COMPRESSED, _DATA, _DATA_2 = 1, 2, 3, 5, 8
"""PageHeader.type, uncompressed_page_size and compressed_page_size, and the headers of data pages."""
_DATA_HEADERS, _DICTIONARY_PAGE = {0: _DATA, 3: _DATA_2}, 2
"""PageType.DATA_PAGE and DATA_PAGE_V2; DICTIONARY_PAGE."""
_VALUES, _ENCODINGS = 1, {_DATA: 2, _DATA_2: 4}
"""num_values and encoding in DataPageHeader and DataPageHeaderV2."""
_DICTIONARY_ENCODINGS, _PREFIX_ENCODING = {2, 8}, 7
"""Encoding.PLAIN_DICTIONARY and RLE_DICTIONARY; DELTA_BYTE_ARRAY."""
_TEXT, _FIXED = 6, 7
"""Type.BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY."""
_VALUE_BYTES = 8
"""Bytes of a value, or of a text's offset; about as much for a NULL."""
_HEADER_BYTES = (256, 1 << 16, 1 << 24)
"""Sizes of the successive attempts to read a page's header, which may hold statistics."""
_BATCH_BYTES, _ROWS = 32 << 20, 1 << 16
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_DICTIONARY_BYTES = 4 << 20
"""Maximum size of a dictionary whose texts are examined; writers give up a dictionary of 1 MiB."""
_ENTRIES = (b"key_value", b"map", b"entries")
"""Names that writers give to the entries of a map, of which Arrow reads both parts or none."""


class TooLarge(ValueError):
    """The columns take more memory than is allowed."""


class _Sizes(NamedTuple):
    """The memory of a chunk, in bytes.

    Attributes:
        sure: lower bound.
        name_count: how many values refer to the dictionary.
        dictionary_bytes: upper bound on the texts that these refer to.
        prefix_bytes: upper bound on the values with a shared prefix.
        longest: upper bound on one of the latter.
        dictionary: uncompressed size, position and compressed size of the largest dictionary.
    """

    chunk: Chunk
    sure: int
    name_count: int
    dictionary_bytes: int
    prefix_bytes: int
    longest: int
    dictionary: tuple[int, int, int]

    @property
    def possible(self) -> int:
        """Upper bound on the bytes beyond ``sure``."""
        return self.dictionary_bytes + self.prefix_bytes


def check_memory(source: pa.NativeFile, footer: pq.FileMetaData, chunks: Sequence[Chunk], max_bytes: int) -> None:
    """Raises an error unless these chunks of a file take about ``max_bytes`` bytes or fewer.

    Raises:
        TooLarge: they take more.
        ValueError: a page is garbled.
    """
    sizes, sure = list[_Sizes](), 0
    for chunk in chunks:
        sizes.append(_sizes(source, chunk))
        sure += sizes[-1].sure
        _check_size(sure, max_bytes)
    if sure + sum(s.possible for s in sizes) > max_bytes:
        sizes = [_bound_by_longest(source, s) for s in sizes]
    if sure + sum(s.possible for s in sizes) > max_bytes:
        share = (max_bytes - sure) // len(sizes)
        prefix_bytes = {
            _path(s.chunk.leaf) for s in sizes if s.prefix_bytes
        }  # Arrow reads no such page as a dictionary
        texts = {_path(c.leaf) for c in chunks if c.leaf.kind == _TEXT} - prefix_bytes
        _count_texts(source, footer, [s for s in sizes if s.possible > share], sorted(texts), max_bytes - sure)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLarge


# -- pages -------------------------------------------------------------------------------------------------------------


def _sizes(source: pa.NativeFile, chunk: Chunk) -> _Sizes:
    sure = chunk.values * max(chunk.leaf.length if chunk.leaf.kind == _FIXED else 0, _VALUE_BYTES)
    name_count = prefix_bytes = page = 0
    dictionary = (0, 0, 0)
    for header, position in _pages(source, chunk):
        uncompressed, kind = header[_UNCOMPRESSED], _DATA_HEADERS.get(header[_TYPE])
        sure += uncompressed
        if header[_TYPE] == _DICTIONARY_PAGE:
            dictionary = max(dictionary, (uncompressed, position, header[_COMPRESSED]))
        elif kind is not None:
            values, encoding = header[kind][_VALUES], header[kind][_ENCODINGS[kind]]
            if encoding in _DICTIONARY_ENCODINGS:
                name_count += values
            elif encoding == _PREFIX_ENCODING:
                prefix_bytes, page = prefix_bytes + values * uncompressed, max(page, uncompressed)
    longest = max(page, dictionary[0]) if prefix_bytes else 0
    dictionary_bytes = name_count * dictionary[0] if chunk.leaf.kind == _TEXT else 0
    return _Sizes(chunk, sure, name_count, dictionary_bytes, prefix_bytes, longest, dictionary)


def _pages(source: pa.NativeFile, chunk: Chunk) -> Iterator[tuple[Fields, int]]:
    """The headers of a chunk's pages, with the positions of their bytes, as far as Arrow reads: for all values."""
    position, remaining = chunk.span.start, chunk.values
    while remaining > 0 and position < chunk.span.end:
        header, header_size = _read_header(source, position, chunk.span.end)
        yield header, position + header_size
        position += header_size + header[_COMPRESSED]
        if (kind := _DATA_HEADERS.get(header[_TYPE])) is not None:
            remaining -= header[kind][_VALUES]


def _read_header(source: pa.NativeFile, position: int, end: int) -> tuple[Fields, int]:
    for length in _HEADER_BYTES:
        data = Bytes(source.read_at(min(length, end - position), position))
        try:
            header = struct(data, 0)
            kind = _DATA_HEADERS.get(header[_TYPE])
            counts = [] if kind is None else [header[kind][field] for field in (_VALUES, _ENCODINGS[kind])]
            if min(header[_UNCOMPRESSED], header[_COMPRESSED], *counts) >= 0:
                return header, data.at
        except (IndexError, KeyError, TypeError):
            continue
    raise ValueError("the head of a page is garbled")


def _bound_by_longest(source: pa.NativeFile, sizes: _Sizes) -> _Sizes:
    """The same, bounded by the longest text of a small dictionary instead of its total size."""
    uncompressed, position, compressed = sizes.dictionary
    if not sizes.dictionary_bytes or uncompressed > _DICTIONARY_BYTES or sizes.chunk.codec not in (0, *_CODECS):
        return sizes
    data = source.read_at(compressed, position)
    if sizes.chunk.codec:
        try:
            data = pa.decompress(data, uncompressed, _CODECS[sizes.chunk.codec], asbytes=True)
        except (pa.ArrowException, OSError, ValueError):
            return sizes
    position = longest = 0
    while position + 4 <= len(data):
        length = int.from_bytes(data[position : position + 4], "little")
        longest, position = max(longest, length), position + 4 + length
    return sizes._replace(dictionary_bytes=sizes.name_count * longest)


# -- values ------------------------------------------------------------------------------------------------------------


def _count_texts(
    source: pa.NativeFile, footer: pq.FileMetaData, sizes: Sequence[_Sizes], texts: Sequence[str], max_bytes: int
) -> None:
    """Raises TooLarge: the texts of these chunks take more. While they are read, each text of a dictionary is held
    once, and only a few of those with a shared prefix.

    Args:
        texts: the paths of all text columns that Arrow can read as dictionaries, including those beside one in a map.
    """
    _check_size(
        sum(s.prefix_bytes for s in sizes if s.chunk.leaf.repeats), max_bytes
    )  # one row may hold any number of them
    rows = max(1, min(_ROWS, _BATCH_BYTES // max(1, *(s.longest for s in sizes))))
    parquet = pq.ParquetFile(source, metadata=footer, read_dictionary=texts)
    size = 0
    for group in sorted({s.chunk.group for s in sizes}):
        columns = sorted({_column_path(s.chunk.leaf) for s in sizes if s.chunk.group == group})
        for batch in parquet.iter_batches(rows, row_groups=[group], columns=columns):
            size += sum(_text_bytes(leaf) for column in batch.columns for leaf in _leaves(column))
            _check_size(size, max_bytes)


def _path(leaf: Leaf) -> str:
    return b".".join(leaf.path).decode()


def _column_path(leaf: Leaf) -> str:
    """The path of a column, or of the outermost map that contains it."""
    ends = next((at for at, part in enumerate(leaf.path) if at and part in _ENTRIES), len(leaf.path))
    return b".".join(leaf.path[:ends]).decode()


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_struct(kind):
        for child in values.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        for part in (values.keys, values.items) if pa.types.is_map(kind) else (values.values,):
            yield from _leaves(part.slice(first, last - first))
    else:
        yield values


def _text_bytes(values: pa.Array) -> int:
    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(values.indices)).as_py() or 0)
