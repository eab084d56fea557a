"""The compression of Parquet files: which codec a table and its session ask for, and how Arrow names it.

Knows PROTOCOL.md, the property ``delta.parquet.compression.codec`` in its table of properties, and Spark's names of
codecs. Pure. Guarantee: a codec that is not known here compresses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from anabranch.errors import InvalidProperty

CODEC_PROPERTY = "delta.parquet.compression.codec"
DEFAULT_CODEC = "zstd"
"""The codec where neither the table nor its session names one, as PROTOCOL.md recommends."""
_of_session: ContextVar[str | None] = ContextVar("anabranch_codec", default=None)
_CODECS = {name: name for name in ("snappy", "zstd", "gzip", "lz4_raw", "uncompressed")}
_CODECS |= {"lz4": "lz4_raw", "none": "uncompressed"}
_IN_ARROW = {"lz4_raw": "lz4", "uncompressed": "none"}  # Arrow names the raw format lz4
_LEVELS = {"zstd": 3, "gzip": 6}
"""The levels of Spark's writer, which differ from Arrow's defaults."""


def codec_text(configuration: Mapping[str, str]) -> str:
    """The codec for new files as a text that may be unknown: the table's, else the session's, else the default.

    Example:
        >>> codec_text({"delta.parquet.compression.codec": "ZSTD"})
        'ZSTD'
    """
    return configuration.get(CODEC_PROPERTY, _of_session.get() or DEFAULT_CODEC)


@contextmanager
def use_codec(codec: str | None) -> Iterator[None]:
    """Let this codec, a session's, count within the block for tables that name none; None: the default does."""
    token = _of_session.set(codec)
    try:
        yield
    finally:
        _of_session.reset(token)


def parse_codec(text: str) -> str:
    """A compression codec of Parquet files, by Spark's name. Raises InvalidProperty: the codec is unknown.

    Example:
        >>> parse_codec("LZ4"), parse_codec("none")
        ('lz4_raw', 'uncompressed')
    """
    codec = _CODECS.get(text.strip().lower())
    if codec is None:
        raise InvalidProperty(property=CODEC_PROPERTY, value=text, reason=f"it takes {', '.join(sorted(_CODECS))}.")
    return codec


def arrow_options(codec: str) -> dict[str, Any]:
    """The options of Arrow's Parquet writer for a codec by Spark's name, at the level that Spark's writer has."""
    return {"compression": _IN_ARROW.get(codec, codec), "compression_level": _LEVELS.get(codec)}
