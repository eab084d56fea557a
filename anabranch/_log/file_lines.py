"""Separates the lines of a commit file that are file actions from the others, and cuts them into bounded pieces.

Knows how such lines begin, and not their content. Pure. Guarantee: a line that does not begin as a file action counts
as another, whatever it holds; pieces are whole lines, and all of them in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

_FILE_LINE = (b'{"add":', b'{"remove":')
_BEFORE_OTHER_LINE = re.compile(rb'\n(?!\{"(?:add|remove)":)')
"""The end of a line before one that begins otherwise; a fixed first byte lets `re` search at memory's speed."""
PIECE_BYTES = 2 << 20
"""Bytes of file actions that each thread parses at once, approximately; this bounds the memory of parsing."""


@dataclass(frozen=True, eq=False)
class FileLines:
    """The file actions among some lines: ``runs`` of whole lines, as start and end in ``data``."""

    data: bytes
    runs: tuple[tuple[int, int], ...]

    def parts(self) -> Iterator[bytes]:
        """The file actions in parts of whole lines, each of about `PIECE_BYTES` at most, ending with a newline."""
        for start, end in self.runs:
            while start < end:
                cut = self.data.find(b"\n", start + PIECE_BYTES, end) + 1 or end
                part = self.data[start:cut]
                yield part if part.endswith(b"\n") else part + b"\n"
                start = cut


def separate_file_lines(data: bytes) -> tuple[FileLines, list[bytes]]:
    """The lines that begin as a file action, by position, and all others."""
    runs, others, start = [], [], 0
    first = () if data.startswith(_FILE_LINE) else (0,)
    for other in chain(first, (match.end() for match in _BEFORE_OTHER_LINE.finditer(data))):
        if start < other:
            runs.append((start, other))
        end = data.find(b"\n", other)
        end = len(data) if end < 0 else end
        others.append(data[other:end])
        start = end + 1
    if start < len(data):
        runs.append((start, len(data)))
    return FileLines(data, tuple(runs)), others


def pieces(parts: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """At least one piece of whole lines, all in order, each with the number of bytes before it."""
    pending: list[bytes] = []
    start = size = 0
    for part in parts:
        pending.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield start, b"".join(pending)
            pending, start, size = [], start + size, 0
    if pending or not start:
        yield start, b"".join(pending)
