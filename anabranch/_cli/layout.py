"""Tables as lines of text, pure: as many columns as fit into a width; words are never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from anabranch.errors.visible import visible

GAP = 3
"""Blanks between two columns."""


@dataclass(frozen=True)
class TextTable:
    """A table as text: its header and its lines, and the columns without room.

    Attributes:
        widths: the widths of the shown columns.
    """

    head: str
    lines: tuple[str, ...]
    left_out: tuple[str, ...]
    widths: tuple[int, ...]


def lay_out(
    columns: Sequence[str], rows: Sequence[Sequence[str]], room: int | None, importance: Sequence[str] = ()
) -> TextTable:
    """A table in ``room`` columns of a terminal, or as wide as needed if that is None.

    Args:
        columns: the names of the columns, in order.
        rows: the texts of each row, without line breaks.
        importance: the columns that get room first, the most important first; the others follow in their order. The
            first one is shown whatever its width.
    """
    cells = [[visible(" ".join(text.splitlines())) for text in row] for row in (columns, *rows)]
    widths = {name: max(cell_len(row[i]) for row in cells) for i, name in enumerate(columns)}
    visible_names = set(
        choose_columns(widths, (*importance, *(name for name in columns if name not in importance)), room)
    )
    shown = [i for i, name in enumerate(columns) if name in visible_names]
    lines = [_line([row[i] for i in shown], [widths[columns[i]] for i in shown]) for row in cells]
    left_out = tuple(name for name in columns if name not in visible_names)
    return TextTable(lines[0], tuple(lines[1:]), left_out, tuple(widths[columns[i]] for i in shown))


def choose_columns(widths: Mapping[str, int], importance: Sequence[str], room: int | None) -> tuple[str, ...]:
    """Chooses the columns that fit, by their importance; the most important one always does.

    Example:
        >>> choose_columns({"a": 10, "b": 90, "c": 5}, ["a", "b", "c"], 80)
        ('a', 'c')
    """
    chosen, total = list[str](), -GAP
    for name in importance:
        if not chosen or room is None or total + GAP + widths[name] <= room:
            chosen.append(name)
            total += GAP + widths[name]
    return tuple(chosen)


def wrap_text(text: str, room: int) -> list[str]:
    """Wraps a text between words; a word longer than a line stays whole."""
    return textwrap.wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
    return (" " * GAP).join(padded).rstrip()
