"""Output of commands: tables and sentences for people, one JSON value for machines. Errors go to standard error.

Guarantee: people see control characters spelled out, so that no text of a table can control their terminal.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from anabranch._cli.layout import GAP, lay_out, wrap_text
from anabranch._cli.rendered_values import json_value, plain_text
from anabranch.errors.secrets import without_secrets
from anabranch.errors.visible import visible, visible_json

_PLAIN_WIDTH, _WIDEST = 80, 100_000
_ENDS = "\r\n"
"""Before Python 3.13 the CSV writer quotes no line ends other than its own."""


def _without_unusable_width() -> None:
    """Ignores a ``COLUMNS`` that no terminal has: rich would print nothing at all, or fail."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and not 0 < int(columns) <= _WIDEST:
        del os.environ["COLUMNS"]


_without_unusable_width()
console = Console()


def write_anything() -> None:
    """Makes standard output and errors escape characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_text(text: str, style: str = "") -> None:
    """Prints text unchanged, without wrapping."""
    console.print(Text(visible(text), style), soft_wrap=True)


def print_error(message: str) -> None:
    """Prints an error in red on standard error."""
    text = visible(f"anabranch: {message}")
    Console(stderr=True).print(text, style="red", highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Prints one JSON value; what JSON cannot represent becomes text."""
    is_narrow = (sys.stdout.encoding or "").lower().replace("-", "") not in ("utf8", "utf8sig")
    print(visible_json(json.dumps(json_value(value), ensure_ascii=is_narrow, allow_nan=False)))


def print_csv(lines: Iterable[Sequence[str]]) -> None:
    """Prints comma-separated values, unchanged unless on a terminal."""
    shown = visible if sys.stdout.isatty() else str
    for line in lines:
        written = io.StringIO()
        csv.writer(written, lineterminator=_ENDS).writerow(line)
        print(shown(written.getvalue().removesuffix(_ENDS)))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    importance: Sequence[str] = (),
    wide: bool = False,
) -> None:
    """Prints the rows' values of these columns, None as nothing; columns without room are left out, and listed below.

    Args:
        importance: the columns that get room first; the others follow in their order.
        wide: show every column.
    """
    texts = [[_text_of(row[name]) for name in columns] for row in rows]
    print_cells(columns, texts, importance=importance, wide=wide)


def print_cells(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    importance: Sequence[str] = (),
    wide: bool = False,
    ruled: bool = False,
) -> None:
    """As `print_table`, for texts in the order of the columns; ``ruled`` draws a line below the header."""
    table = lay_out(columns, rows, None if wide else width(), importance)
    _print_line(table.head, "bold")
    if ruled:
        _print_line((" " * GAP).join("─" * column_width for column_width in table.widths), "dim")
    for line in table.lines:
        _print_line(line)
    if table.left_out:
        _print_line(f"without {', '.join(table.left_out)}; --wide shows all columns", "dim")


def print_values(name: str, values: Mapping[str, Any]) -> None:
    """Prints a line per value, or several for a long one; ``name`` is the header of the names."""
    space = max(cell_len(label) for label in (name, *values)) + GAP
    _print_line(f"{name:<{space}}value", "bold")
    for key, value in values.items():
        first, *rest = wrap_text(visible(_text_of(value)), width() - space)
        _print_line(f"{key:<{space}}{first}".rstrip())
        for line in rest:
            _print_line(" " * space + line)


def width() -> int:
    """The number of columns of a line: from ``COLUMNS``, else the terminal's, or 80 without one."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    return console.width if console.is_terminal else _PLAIN_WIDTH


def _text_of(value: Any) -> str:
    """A value of a table's log as text without secrets, since the log may be anybody's."""
    return "" if value is None else without_secrets(plain_text(value))


def _print_line(line: str, style: str = "") -> None:
    console.print(Text(line, style), soft_wrap=True)
