"""What commands print: tables and sentences for people, one JSON value for machines. Errors go to standard error.

Guarantee: what people see was made visible: no text of a table, whoever wrote it, is obeyed by their terminal.
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
from anabranch._cli.values import json_value, plain_text
from anabranch.errors.secrets import without_secrets
from anabranch.errors.visible import visible, visible_json

_PLAIN_WIDTH, _WIDEST = 80, 100_000
_ENDS = "\r\n"
"""Before Python 3.13 the writer of comma-separated values quotes no other ends of lines than its own."""


def _without_unusable_width() -> None:
    """Forget what ``COLUMNS`` says where no line has so many columns: rich would print nothing at all, or fail."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and not 0 < int(said) <= _WIDEST:
        del os.environ["COLUMNS"]


_without_unusable_width()
console = Console()


def write_anything() -> None:
    """From now on standard output and errors spell out what their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_text(text: str, style: str = "") -> None:
    """Text as it is, on lines as long as it needs."""
    console.print(Text(visible(text), style), soft_wrap=True)


def print_error(message: str) -> None:
    """An error in red on standard error."""
    said = visible(f"anabranch: {message}")
    Console(stderr=True).print(said, style="red", highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value; what JSON cannot hold is text."""
    is_narrow = (sys.stdout.encoding or "").lower().replace("-", "") not in ("utf8", "utf8sig")
    print(visible_json(json.dumps(json_value(value), ensure_ascii=is_narrow, allow_nan=False)))


def print_csv(lines: Iterable[Sequence[str]]) -> None:
    """Comma-separated values, exactly as they are, but on a terminal."""
    seen = visible if sys.stdout.isatty() else str
    for line in lines:
        written = io.StringIO()
        csv.writer(written, lineterminator=_ENDS).writerow(line)
        print(seen(written.getvalue().removesuffix(_ENDS)))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    importance: Sequence[str] = (),
    wide: bool = False,
) -> None:
    """The rows' values of these columns, None as nothing; columns that have no room are left out, and named below.

    Args:
        importance: the columns that are kept first; the others follow in their order.
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
    """As `print_table`, of texts in the order of the columns; ``ruled`` draws a line below their names."""
    table = lay_out(columns, rows, None if wide else width(), importance)
    _print_line(table.head, "bold")
    if ruled:
        _print_line((" " * GAP).join("─" * each for each in table.widths), "dim")
    for line in table.lines:
        _print_line(line)
    if table.left_out:
        _print_line(f"without {', '.join(table.left_out)}; --wide shows all columns", "dim")


def print_values(name: str, values: Mapping[str, Any]) -> None:
    """A line for each value, or several where it is long; ``name`` heads the column of their names."""
    space = max(cell_len(each) for each in (name, *values)) + GAP
    _print_line(f"{name:<{space}}value", "bold")
    for key, value in values.items():
        first, *rest = wrap_text(visible(_text_of(value)), width() - space)
        _print_line(f"{key:<{space}}{first}".rstrip())
        for line in rest:
            _print_line(" " * space + line)


def width() -> int:
    """How many columns of text a line has: what ``COLUMNS`` says, the terminal's, or 80 where there is none."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said):
        return int(said)
    return console.width if console.is_terminal else _PLAIN_WIDTH


def _text_of(value: Any) -> str:
    """A value of a table's log as text: the log may be a stranger's, and hold locations with secrets."""
    return "" if value is None else without_secrets(plain_text(value))


def _print_line(line: str, style: str = "") -> None:
    console.print(Text(line, style), soft_wrap=True)
