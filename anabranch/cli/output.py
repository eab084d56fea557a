"""What commands print: tables and sentences for people, one JSON value for machines. Errors go to standard error."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console()


def print_text(text: str) -> None:
    """Text as it is, on lines as long as it needs."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_error(message: str) -> None:
    """An error in red on standard error."""
    Console(stderr=True).print(f"anabranch: {message}", style="red", highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value; moments as text."""
    print(json.dumps(value, default=plain_value, ensure_ascii=False))


def print_table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """The rows' values of these columns; None as nothing."""
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*("" if row[name] is None else str(plain_value(row[name])) for name in columns))
    console.print(table)


def print_values(name: str, values: Mapping[str, Any]) -> None:
    """A table with a row for each value; ``name`` heads the column of their names."""
    print_table((name, "value"), [{name: key, "value": value} for key, value in values.items()])


def plain_value(value: Any) -> Any:
    """A moment as text, any other value as it is."""
    return value.isoformat(sep=" ", timespec="milliseconds") if isinstance(value, dt.datetime) else value
