"""File lines: the lines of a commit file that are file actions, told from the others, and in pieces of bounded size.

Knows how such lines begin, and not what they hold. Pure. Guarantee: a line that does not begin as a file action is told
apart, whatever it holds; pieces are whole lines, and all of them in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

_FILE_LINE = (b'{"add":', b'{"remove":')
_BEFORE_ANOTHER = re.compile(rb'\n(?!\{"(?:add|remove)":)')
"""The end of a line before one that begins otherwise; a fixed first byte lets `re` search at memory's speed."""
PIECE_BYTES = 2 << 20
"""About this many bytes of file actions are parsed at once by each thread, which bounds the memory of parsing."""


@dataclass(frozen=True, eq=False)
class FileLines:
    """The file actions among some lines: ``runs`` of whole lines, as start and end in ``data``."""

    data: bytes
    runs: tuple[tuple[int, int], ...]

    def parts(self) -> Iterator[bytes]:
        """The same in parts of whole lines, each about `PIECE_BYTES` at most and ending with a newline."""
        for start, end in self.runs:
            while start < end:
                cut = self.data.find(b"\n", start + PIECE_BYTES, end) + 1 or end
                part = self.data[start:cut]
                yield part if part.endswith(b"\n") else part + b"\n"
                start = cut


def separate_file_lines(data: bytes) -> tuple[FileLines, list[bytes]]:
    """The lines that begin as a file action, by position, and all others."""
    runs, others, at = [], [], 0
    begins = () if data.startswith(_FILE_LINE) else (0,)
    for begin in chain(begins, (match.end() for match in _BEFORE_ANOTHER.finditer(data))):
        if at < begin:
            runs.append((at, begin))
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        others.append(data[begin:end])
        at = end + 1
    if at < len(data):
        runs.append((at, len(data)))
    return FileLines(data, tuple(runs)), others


def pieces(parts: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """At least one piece of whole lines, all in order, each with the number of bytes before it."""
    held: list[bytes] = []
    start = size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield start, b"".join(held)
            held, start, size = [], start + size, 0
    if held or not start:
        yield start, b"".join(held)
