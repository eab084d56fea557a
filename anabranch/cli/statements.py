"""The command ``sql``: statements from the command line, a file or standard input, run in a session."""

from __future__ import annotations

import csv
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from anabranch.cli.arguments import Json
from anabranch.cli.output import console, plain_value, print_json, print_text
from anabranch.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sql(
    statement: Annotated[
        str | None, typer.Argument(help="SQL statements; several are run one after the other.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statements from this file.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many rows of a result.", min=1)] = 1000,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, with a header.")] = False,
) -> None:
    """Run SQL on Delta tables, given as delta.`path` or by name. Without a statement or file, reads standard input."""
    from anabranch.api.session import session  # needs Spark, which most commands do not
    from anabranch.statements.reading import split
    from anabranch.statements.sql import sql as run

    if as_json and as_csv:
        raise InvalidOption(option="--csv", value="true", reason="it goes without --json.")
    text = _text_of(statement, file)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # else PySpark prints each error as well
    spark = session("anabranch-sql")
    for each in split(text):
        found = run(spark, each)
        if found.columns:
            _print_rows(found, limit, as_json=as_json, as_csv=as_csv)


def _text_of(statement: str | None, file: Path | None) -> str:
    if statement is not None and file is not None:
        raise InvalidOption(option="--file", value=str(file), reason="it goes without a statement beside it.")
    if statement is not None and statement != "-":
        return statement
    if file is None:
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(option="--file", value=str(file), reason=f"it cannot be read ({error}).") from None


def _print_rows(found: DataFrame, limit: int, *, as_json: bool, as_csv: bool) -> None:
    """Every row as a machine reads it, or the first ones for people."""
    names = found.columns
    if as_json or as_csv:
        rows = [_plain_row(row) for row in found.collect()]
        if as_json:
            print_json([dict(zip(names, row, strict=True)) for row in rows])
        else:
            csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
        return
    rows = [_plain_row(row) for row in found.take(limit + 1)]
    table = Table(*map(escape, names), box=SIMPLE)
    for row in rows[:limit]:
        table.add_row(*(Text("NULL", style="dim") if each is None else Text(str(each)) for each in row))
    console.print(table)
    if len(rows) > limit:
        print_text(f"and more; --limit shows more than {limit} rows")


def _plain_row(row: Any) -> list[Any]:
    return [each.asDict(recursive=True) if hasattr(each, "asDict") else plain_value(each) for each in row]
