"""Read-only commands: history, detail, check, files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from anabranch._api import functions
from anabranch._cli.arguments import Json, TableArgument, Wide, find_table, location_of
from anabranch._cli.output import print_json, print_table, print_text, print_values
from anabranch._protocol.schema.evolution import sql_name
from anabranch.commands.maintenance.check import check_table
from anabranch.commands.opening import open_log
from anabranch.commands.queries.describe import detail as describe_detail
from anabranch.commands.queries.describe import history as describe_history
from anabranch.commands.queries.read import FILE_COLUMNS


def history(
    table: TableArgument,
    limit: Annotated[int | None, typer.Option(help="Show at most this many commits.", min=0)] = None,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """List the commits, newest first: who did what. With --wide also parameters, writers, transactions and steps."""
    rows = describe_history(location_of(table), limit)
    if as_json:
        print_json(rows)
        return
    shown = (
        *("version", "timestamp", "operation", "operationParameters", "userName", "readVersion", "isolationLevel"),
        *("isBlindAppend", "engineInfo", "userMetadata", "txnId", "steps"),
    )
    print_table(shown, rows, importance=("version", "timestamp", "operation", "readVersion", "engineInfo"), wide=wide)


def detail(table: TableArgument, as_json: Json = False) -> None:
    """Describe the table: where it is, partitions, files, size, properties, protocol, columns."""
    path, entry = find_table(table)
    values = describe_detail(path)
    values = values if entry is None else {**values, "name": ".".join(entry.name)}
    columns = _columns_of(path)
    if as_json:
        print_json({**values, "columns": columns})
        return
    text = ", ".join(
        f"{column['name']} {column['type']}{'' if column['nullable'] else ' NOT NULL'}" for column in columns
    )
    print_values("property", {**values, "columns": text})


def _columns_of(path: str) -> list[dict[str, Any]]:
    fields = open_log(path).snapshot().schema.fields
    return [{"name": field.name, "type": sql_name(field.type), "nullable": field.nullable} for field in fields]


def check(
    table: TableArgument,
    version: Annotated[int | None, typer.Option(help="Check an older version.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every row too, and compare the statistics.")] = False,
    as_json: Json = False,
) -> None:
    """Check that what the log says of the table is true. Exit code 1 if not."""
    report = check_table(location_of(table), version, deep=deep)
    if as_json:
        findings = [{"rule": f.rule, "file": f.file, "problem": f.problem} for f in report.findings]
        print_json({"table": report.table, "version": report.version, "clean": report.is_clean, "findings": findings})
    else:
        print_text(str(report))
    raise typer.Exit(0 if report.is_clean else 1)


def files(
    table: TableArgument,
    where: Annotated[
        str | None, typer.Option(help="List only files that may hold rows for which this condition is TRUE.")
    ] = None,
    version: Annotated[int | None, typer.Option(help="List the files of an older version.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say how many files each part of the condition rules out.")
    ] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """List the files that may hold matching rows, or explain why no others do."""
    table = location_of(table)
    if explain:
        explanation = functions.explain(table, where or "true", version)
        print_json(asdict(explanation)) if as_json else print_text(str(explanation))
        return
    rows = functions.files(table, where, version).to_pylist()
    rows = [{**row, "partition_values": dict(row["partition_values"])} for row in rows]
    if as_json:
        print_json(rows)
        return
    print_table(FILE_COLUMNS, rows, importance=("path", "rows", "size", "vector"), wide=wide)
