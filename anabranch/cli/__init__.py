"""``anabranch``: one subcommand per command. A door; paths, URLs or names in, people's tables or ``--json`` out.

Only what can be no path is looked up as a name, so that paths need no Spark where the command itself needs none.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from anabranch.api import functions
from anabranch.commands.maintenance.check import check_table
from anabranch.commands.maintenance.fsck import MISSING
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.queries.describe import detail as describe_detail
from anabranch.commands.queries.describe import history as describe_history
from anabranch.commands.queries.read import FILE_COLUMNS
from anabranch.errors import AnabranchError, InvalidOption, UnknownPathOrName
from anabranch.errors.secrets import without_secrets
from anabranch.protocol.layout.clustering import paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anabranch.catalog.entries import Entry
    from anabranch.commands.maintenance.vacuum import Vacuumed
    from anabranch.testing.matrix import Cell, Matrix

app = typer.Typer(help="Transactions for open Delta tables.", no_args_is_help=True, add_completion=False)
_console = Console()
_SHOWN_FILES = 50

_SPARKS = ("pyspark.errors.exceptions.base.PySparkException", "py4j.protocol.Py4JJavaError")

Path_ = Annotated[str, typer.Argument(metavar="TABLE", help="Path, URL or name of the table.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON value, for machines.")]


@app.command()
def demo(keep: Annotated[Path | None, typer.Option(help="Keep the tables in this folder.")] = None) -> None:
    """Concurrent writers on real data, and a proof that nothing was lost."""
    from anabranch.cli.demo.story import demo as tell  # needs Spark, which the other commands do not

    raise typer.Exit(0 if tell(keep, _console) else 1)


@app.command()
def history(
    table: Path_,
    limit: Annotated[int | None, typer.Option(help="At most so many.", min=0)] = None,
    as_json: Json = False,
) -> None:
    """Who did what: the commits, newest first."""
    rows = describe_history(_place(table), limit)
    if as_json:
        _print_json(rows)
        return
    shown = ("version", "timestamp", "operation", "operationParameters", "readVersion", "isBlindAppend", "engineInfo")
    _print_table(shown, rows)


@app.command()
def detail(table: Path_, as_json: Json = False) -> None:
    """What the table is: schema, files, size, properties, protocol."""
    path, entry = _found(table)
    found = describe_detail(path)
    found = found if entry is None else {**found, "name": ".".join(entry.name)}
    if as_json:
        _print_json(found)
        return
    _print_table(("property", "value"), [{"property": name, "value": value} for name, value in found.items()])


@app.command()
def check(
    table: Path_,
    version: Annotated[int | None, typer.Option(help="An older version.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every row and compare the statistics.")] = False,
    as_json: Json = False,
) -> None:
    """Is what the log says true? Exit code 1 if not."""
    report = check_table(_place(table), version, deep=deep)
    if as_json:
        findings = [{"rule": f.rule, "file": f.file, "problem": f.problem} for f in report.findings]
        _print_json({"table": report.table, "version": report.version, "clean": report.is_clean, "findings": findings})
    else:
        _print_text(str(report))
    raise typer.Exit(0 if report.is_clean else 1)


@app.command()
def clone(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Path, URL or name of the table.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Path or URL of the clone.")],
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Name the source's files instead of copying them.")
    ] = False,
    version: Annotated[int | None, typer.Option(help="An older version of the source.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="The source as it was at a moment, in UTC.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In the place of a table that is there.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A property of the clone, as key=value.")] = None,
    as_json: Json = False,
) -> None:
    """Make another table of one, which names its files or copies them."""
    given = [each.partition("=") for each in set_ or ()]
    for key, equals, _ in given:
        if not key or not equals:
            raise InvalidOption(option="--set", value=key, reason="it takes key=value.")
    done = functions.clone(
        _place(source),
        target,
        shallow=shallow,
        version=version,
        timestamp=timestamp,
        replace=replace,
        properties={key: value for key, _, value in given},
    )
    if as_json:
        _print_json({"table": without_secrets(target), "version": done.version, **done.metrics})
        return
    rows = [{"metric": name, "value": value} for name, value in {"version": done.version, **done.metrics}.items()]
    _print_table(("metric", "value"), rows)


@app.command()
def files(
    table: Path_,
    where: Annotated[str | None, typer.Option(help="Only files that may hold rows for which this is TRUE.")] = None,
    version: Annotated[int | None, typer.Option(help="An older version.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="How many files, and what each part ruled out.")] = False,
    as_json: Json = False,
) -> None:
    """Which files may hold rows that matter, and why no others."""
    table = _place(table)
    if explain:
        found = functions.explain(table, where or "true", version)
        _print_json(asdict(found)) if as_json else _print_text(str(found))
        return
    rows = functions.files(table, where, version).to_pylist()
    rows = [{**row, "partition_values": dict(row["partition_values"])} for row in rows]
    _print_json(rows) if as_json else _print_table(FILE_COLUMNS, rows)


@app.command()
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="SQL; several statements are run one after the other.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read them from this file.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most so many rows of a table.", min=1)] = 1000,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values, with a line of names.")] = False,
) -> None:
    """Run SQL on Delta tables: delta.`path`, or names. Without a statement or file it is read from standard input."""
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
            _print_json([dict(zip(names, row, strict=True)) for row in rows])
        else:
            csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
        return
    rows = [_plain_row(row) for row in found.take(limit + 1)]
    table = Table(*map(escape, names), box=SIMPLE)
    for row in rows[:limit]:
        table.add_row(*(Text("NULL", style="dim") if each is None else Text(str(each)) for each in row))
    _console.print(table)
    if len(rows) > limit:
        _print_text(f"and more; --limit shows more than {limit} rows")


def _plain_row(row: Any) -> list[Any]:
    return [each.asDict(recursive=True) if hasattr(each, "asDict") else _plain(each) for each in row]


@app.command()
def restore(
    table: Path_,
    version: Annotated[int | None, typer.Option(help="Back to this version.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Back to what it was at this moment (UTC).")] = None,
    ignore_missing: Annotated[bool, typer.Option("--ignore-missing", help="Do without files that are gone.")] = False,
    as_json: Json = False,
) -> None:
    """Make the table again what it was."""
    path, entry = _found(table)
    done = functions.restore(path, version, timestamp, ignore_missing=ignore_missing)
    if entry is not None:
        _let_follow(entry)
    stands = None if done.committed is None else done.committed.version
    found = {"restoredTo": done.version, "version": stands, **done.row, "missing": list(done.missing)}
    if as_json:
        _print_json(found)
        return
    _print_table(("property", "value"), [{"property": name, "value": value} for name, value in found.items()])


@app.command()
def fsck(
    table: Path_,
    repair: Annotated[bool, typer.Option("--repair", help="Take these files out of the table.")] = False,
    as_json: Json = False,
) -> None:
    """Which files of the table are gone? Exit code 1 if some are and stay in it."""
    done = functions.fsck(_place(table), dry_run=not repair)
    stands = None if done.committed is None else done.committed.version
    if as_json:
        _print_json({"files": done.files, "lookedAt": done.version, "version": stands, "missing": done.rows})
    else:
        _print_table(tuple(MISSING.names), done.rows)
        end = "" if stands is None else f"; version {stands} does without them"
        _print_text(f"{len(done.missing)} of {done.files} files are missing at version {done.version}{end}")
    raise typer.Exit(1 if done.missing and done.committed is None else 0)


@app.command()
def generate(
    table: Path_,
    mode: Annotated[str, typer.Option(help="What to generate.")] = "symlink_format_manifest",
    as_json: Json = False,
) -> None:
    """Write manifests: texts that list the live files, for readers that know no Delta."""
    done = functions.generate(_place(table), mode)
    if as_json:
        _print_json(asdict(done))
        return
    _print_text(f"{len(done.written)} manifests of version {done.version}, {len(done.removed)} old ones removed")


Where = Annotated[str | None, typer.Option(help="Only partitions for which this is TRUE.")]


@app.command()
def optimize(
    table: Path_,
    where: Where = None,
    zorder_by: Annotated[str | None, typer.Option(help="Columns to lay rows out by, separated by commas.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All files of a clustered table, also those laid out.")] = False,
    as_json: Json = False,
) -> None:
    """Lay out the files anew: fewer, and such that more of them can be skipped. Needs Spark."""
    names = [each.strip() for each in zorder_by.split(",")] if zorder_by is not None else []
    _move(Optimize(_place(table), zorder_by=paths_of(names), full=full), where, as_json)


@app.command()
def reorg(table: Path_, where: Where = None, as_json: Json = False) -> None:
    """Write files anew without what is deleted or dropped in them: REORG … APPLY (PURGE). Needs Spark."""
    _move(Purge(_place(table)), where, as_json)


def _move(command: Optimize | Purge, where: str | None, as_json: bool) -> None:
    from anabranch.api.optimize_builder import optimized  # needs Spark, which the other commands do not
    from anabranch.api.session import session

    spark = session(f"anabranch {type(command).__name__.lower()}")
    with Progress(console=Console(stderr=True), transient=True, disable=as_json) as progress:
        task = progress.add_task("files", total=None)
        done = optimized(spark, command, where, lambda ready, of: progress.update(task, completed=ready, total=of))
    version = None if done.committed is None else done.committed.version
    if as_json:
        _print_json({"table": without_secrets(str(command.table)), "version": version, "metrics": done.metrics})
        return
    if version is None:
        _print_text("there was nothing to do")
        return
    rows = [{"metric": name, "value": value} for name, value in {"version": version, **done.metrics}.items()]
    _print_table(("metric", "value"), rows)


@app.command()
def vacuum(
    table: Path_,
    retain_hours: Annotated[float | None, typer.Option(help="Retain files for so long.", min=0)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; only say what would go.")] = False,
    lite: Annotated[bool, typer.Option("--lite", help="Go by the log alone, and list no folder.")] = False,
    check: Annotated[bool, typer.Option(help="Refuse to retain less than the table says.")] = True,
    as_json: Json = False,
) -> None:
    """Remove the files that no retained version needs. Exit code 1 if one could not be removed."""
    table = _place(table)
    if as_json:
        done = functions.vacuum(table, retain_hours, dry_run, lite, check_retention=check)
        files = [{"path": file.name, "size": file.size} for file in done.files]
        said = {"table": done.table, "dryRun": dry_run, "files": files, "bytes": done.bytes, "folders": done.folders}
        _print_json({**said, "failed": dict(done.failed), "spared": sorted(done.spared)})
    else:
        with Progress(console=_console, transient=True) as shown:
            done = functions.vacuum(table, retain_hours, dry_run, lite, check_retention=check, progress=_Shown(shown))
        _print_vacuumed(done)
    raise typer.Exit(1 if done.failed else 0)


@app.command()
def matrix(
    resolution: Annotated[Literal["row", "file"] | None, typer.Option(help="Only with this resolution.")] = None,
    level: Annotated[
        Literal["WriteSerializable", "Serializable"] | None, typer.Option(help="Only at this isolation level.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the documented matrices of conflicts, here and now. Exit code 1 if a cell differs."""
    from anabranch.testing import matrix as tried  # the other commands need no tools for tests

    found = []
    dials, levels = (resolution,) if resolution else tried.DIALS, (level,) if level else tried.LEVELS
    for each in tried.matrices(dials, levels):
        found.append(each)
        if not as_json:
            _print_matrix(each)
    same = all(each.as_documented for each in found)
    if as_json:
        _print_json({"asDocumented": same, "matrices": [tried.as_json(each) for each in found]})
    else:
        _console.print("Every cell is as documented, or beyond it." if same else "Some cell is not as documented.")
    raise typer.Exit(0 if same else 1)


def _place(table: str) -> str:
    return _found(table)[0]


def _found(table: str) -> tuple[str, Entry | None]:
    """Where a table lies, and what the catalog says of it where it was given by its name.

    Raises:
        UnknownPathOrName: it is neither.
    """
    if "/" in table or "\\" in table or Path(table).exists():
        return table, None
    try:
        from anabranch.api.session import looked_up  # needs Spark, which a path does not
    except ModuleNotFoundError as error:
        raise UnknownPathOrName(name=table, reason=f"names are Spark's, and {error.name} is not installed.") from None
    entry = looked_up(table)
    return (table, None) if entry is None else (entry.location, entry)


def _let_follow(entry: Entry) -> None:
    """Let the catalog say what columns a table has now."""
    from anabranch.api.session import session
    from anabranch.catalog.named_tables import refresh

    refresh(session(), entry)


def main() -> None:
    """The entry point: an error is one sentence on the terminal, never a stack."""
    try:
        app()
    except AnabranchError as error:
        _print_error(error.message)
        raise SystemExit(2) from None
    except Exception as error:
        if not _is_sparks(error):
            raise
        _print_error(_message_of(error))
        raise SystemExit(2) from None


def _print_error(message: str) -> None:
    Console(stderr=True).print(f"anabranch: {message}", style="red", highlight=False, markup=False, soft_wrap=True)


def _is_sparks(error: Exception) -> bool:
    """Whether an error is one that Spark tells its users, in whose words it is shown."""
    return any(f"{kind.__module__}.{kind.__name__}" in _SPARKS for kind in type(error).__mro__)


def _message_of(error: Exception) -> str:
    """What Spark says, without the plan and the frames that it adds."""
    lines = str(error).strip().splitlines()
    end = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("'", "+-", "at ", "JVM stack"))), None)
    return "\n".join(lines[:end]).rstrip(" ;\n")


def _print_text(text: str) -> None:
    _console.print(text, highlight=False, markup=False, soft_wrap=True)


def _print_json(value: Any) -> None:
    print(json.dumps(value, default=_plain, ensure_ascii=False))


def _print_table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*("" if row[name] is None else str(_plain(row[name])) for name in columns))
    _console.print(table)


class _Shown:
    """The steps of a VACUUM as bars."""

    def __init__(self, shown: Progress) -> None:
        self._shown, self._bars = shown, dict[str, TaskID]()

    def __call__(self, step: str, done: int, of: int) -> None:
        if step not in self._bars:
            self._bars[step] = self._shown.add_task(step, total=of)
        self._shown.update(self._bars[step], completed=done, total=of)


def _print_vacuumed(done: Vacuumed) -> None:
    rows = [{"file": file.name, "bytes": file.size} for file in done.files[:_SHOWN_FILES]]
    _print_table(("file", "bytes"), rows)
    if len(done.files) > _SHOWN_FILES:
        _print_text(f"… and {len(done.files) - _SHOWN_FILES} more")
    would = "would be removed" if done.dry_run else "removed"
    _print_text(f"{len(done.files)} files, {done.bytes} bytes {would}; {len(done.spared)} running jobs spared")
    for name, reason in done.failed.items():
        _console.print(f"✗ {name}: {reason}", style="red", highlight=False, markup=False, soft_wrap=True)


def _print_matrix(found: Matrix) -> None:
    """A row for each kind of ours, a column for each kind of winner; below it each run that went another way."""
    winners = list(dict.fromkeys(cell.winner for cell in found.cells))
    table = Table("ours", *(f"winner: {each}" for each in winners), box=SIMPLE, show_lines=True)
    for ours in dict.fromkeys(cell.ours for cell in found.cells):
        table.add_row(ours, *(_in_words(cell) for cell in found.cells if cell.ours == ours))
    _console.print(f"anabranch.conflictResolution = {found.dial}, {found.level}", style="bold", highlight=False)
    _console.print(table)
    for run in (run for cell in found.cells for run in cell.runs if not run.as_documented):
        said = f"committed, {'right' if run.right_rows else 'wrong'} rows" if run.condition is None else run.condition
        _console.print(f"✗ {run.ours} against {run.winner}, {run.where}: {said}", style="red", highlight=False)


def _in_words(cell: Cell) -> str:
    beyond = ": beyond the matrix, here they cannot" if cell.is_beyond else ""
    happened = f"{cell.refused} of {len(cell.runs)} runs refused{beyond}"
    return f"{'✓' if cell.as_documented else '✗'} {cell.documented}\n  {happened}"


def _plain(value: Any) -> Any:
    return value.isoformat(sep=" ", timespec="milliseconds") if isinstance(value, dt.datetime) else value


if __name__ == "__main__":
    main()
