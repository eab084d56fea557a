"""Maintenance commands, which keep the rows or restore old ones: clone, restore, fsck, generate, optimize, reorg,
vacuum.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from anabranch._api import functions
from anabranch._cli.arguments import Json, TableArgument, Wide, find_table, location_of
from anabranch._cli.output import print_json, print_table, print_text, print_values
from anabranch._cli.sessions import get_or_start_session
from anabranch._protocol.layout.clustering import paths_of
from anabranch.commands.maintenance.fsck import MISSING
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.errors import InvalidOption
from anabranch.errors.secrets import without_secrets
from anabranch.errors.visible import amount

if TYPE_CHECKING:
    from anabranch._catalog.entry import Entry
    from anabranch.commands.maintenance.fsck import Repair
    from anabranch.commands.maintenance.vacuum import VacuumResult

_SHOWN_FILES = 50
PartitionFilter = Annotated[str | None, typer.Option(help="Only partitions for which this is TRUE.")]


def clone(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Path, URL or name of the table.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Path or URL of the clone.")],
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Name the source's files instead of copying them.")
    ] = False,
    version: Annotated[int | None, typer.Option(help="Clone an older version of the source.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Clone the source as it was at this time (UTC).")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing table.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Set a property of the clone, as key=value.")] = None,
    as_json: Json = False,
) -> None:
    """Make a copy of a table, which copies its files or only names them."""
    pairs = [pair.partition("=") for pair in set_ or ()]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InvalidOption(option="--set", value=key, reason="it takes key=value.")
    result = functions.clone(
        location_of(source),
        target,
        shallow=shallow,
        version=version,
        timestamp=timestamp,
        replace=replace,
        properties={key: value for key, _, value in pairs},
    )
    if as_json:
        print_json({"table": without_secrets(target), "version": result.version, **result.metrics})
        return
    print_values("metric", {"version": result.version, **result.metrics})


def restore(
    table: TableArgument,
    version: Annotated[int | None, typer.Option(help="Restore this version.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Restore the version of this time (UTC).")] = None,
    ignore_missing: Annotated[bool, typer.Option("--ignore-missing", help="Leave out files that are missing.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Commit nothing; only show what would be restored.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Restore an older version of the table, given by --version or --timestamp."""
    if version is None and timestamp is None:
        reason = "anabranch history TABLE lists the versions, and --dry-run shows what restoring one would change."
        raise InvalidOption(option="--version or --timestamp", value=None, reason=reason)
    path, entry = find_table(table)
    result = functions.restore(path, version, timestamp, ignore_missing=ignore_missing, dry_run=dry_run)
    if entry is not None and not dry_run:
        _refresh(entry)
    committed = None if result.committed is None else result.committed.version
    report = {"restoredTo": result.version, "version": committed, **result.row, "missing": list(result.missing)}
    if as_json:
        print_json({**report, "dryRun": dry_run})
        return
    if not result.changes:
        print_text(f"the table is what it was at version {result.version} already: there was nothing to do")
        return
    print_values("property", {name: value for name, value in report.items() if value not in (None, [])})
    if dry_run:
        print_text("dry run: nothing was committed")


def _refresh(entry: Entry) -> None:
    """Updates the table's entry in the catalog with its new columns."""
    from anabranch._catalog.named_tables import refresh

    refresh(get_or_start_session("anabranch restore"), entry)


def fsck(
    table: TableArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Take the missing files out of the table.")] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """List the table's files that are missing. Exit code 1 if some are, and are not taken out."""
    result = functions.fsck(location_of(table), dry_run=not repair)
    committed = None if result.committed is None else result.committed.version
    if as_json:
        print_json({"files": result.files, "lookedAt": result.version, "version": committed, "missing": result.rows})
    else:
        if result.rows:
            print_table(tuple(MISSING.names), result.rows, wide=wide)
        print_text(_format_repair(result, committed))
    raise typer.Exit(1 if result.missing and result.committed is None else 0)


def _format_repair(result: Repair, committed: int | None) -> str:
    """A summary of a search for missing files, in one line."""
    if not result.missing:
        return f"no file of version {result.version} is missing ({amount(result.files, 'file')} looked for)"
    end = "" if committed is None else f"; version {committed} does without them"
    return f"{len(result.missing)} of {amount(result.files, 'file')} missing at version {result.version}{end}"


def generate(
    table: TableArgument,
    mode: Annotated[str, typer.Option(help="What to generate.")] = "symlink_format_manifest",
    as_json: Json = False,
) -> None:
    """Write manifests: text files that list the live files, for readers without Delta."""
    result = functions.generate(location_of(table), mode)
    if as_json:
        print_json(asdict(result))
        return
    removed = f"; {amount(len(result.removed), 'old one')} removed" if result.removed else ""
    print_text(f"{amount(len(result.written), 'manifest')} of version {result.version} written{removed}")


def optimize(
    table: TableArgument,
    where: PartitionFilter = None,
    zorder_by: Annotated[str | None, typer.Option(help="Columns to order rows by, separated by commas.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All files of a clustered table, also those that are clustered already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Rewrite small files as fewer large ones, ordered so that queries skip more. Needs Spark."""
    names = [name.strip() for name in zorder_by.split(",")] if zorder_by is not None else []
    _rewrite(Optimize(location_of(table), zorder_by=paths_of(names), full=full), where, as_json)


def reorg(table: TableArgument, where: PartitionFilter = None, as_json: Json = False) -> None:
    """Rewrite files without deleted rows and dropped columns: REORG … APPLY (PURGE). Needs Spark."""
    _rewrite(Purge(location_of(table)), where, as_json)


def _rewrite(command: Optimize | Purge, where: str | None, as_json: bool) -> None:
    spark = get_or_start_session(f"anabranch {type(command).__name__.lower()}")
    from anabranch._api.optimize_builder import run_optimize  # imports Spark, which the other commands do not need

    with Progress(console=Console(stderr=True), transient=True, disable=as_json) as progress:
        task = progress.add_task("files", total=None)
        result = run_optimize(
            spark, command, where, lambda _, ready, of: progress.update(task, completed=ready, total=of)
        )
    version = None if result.committed is None else result.committed.version
    if as_json:
        print_json({"table": without_secrets(str(command.table)), "version": version, "metrics": result.metrics})
        return
    if version is None:
        print_text("there was nothing to do")
        return
    print_values("metric", {"version": version, **result.metrics})


def vacuum(
    table: TableArgument,
    retain_hours: Annotated[
        float | None, typer.Option(help="Keep files that were removed within this many hours.", min=0)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing; only list what would be removed.")
    ] = False,
    lite: Annotated[bool, typer.Option("--lite", help="Read only the log, and list no folder.")] = False,
    check: Annotated[bool, typer.Option(help="Refuse to keep files for less time than the table says.")] = True,
    as_json: Json = False,
) -> None:
    """Delete the files that no kept version needs. Exit code 1 if one could not be deleted."""
    table = location_of(table)
    if as_json:
        result = functions.vacuum(table, retain_hours, dry_run, lite, check_retention=check)
        files = [{"path": file.name, "size": file.size} for file in result.files]
        report = {
            "table": result.table,
            "dryRun": dry_run,
            "files": files,
            "bytes": result.bytes,
            "folders": result.folders,
        }
        print_json({**report, "failed": dict(result.failed), "spared": sorted(result.spared)})
    else:
        with Progress(console=Console(stderr=True), transient=True) as bars:
            result = functions.vacuum(
                table, retain_hours, dry_run, lite, check_retention=check, progress=_ProgressBars(bars)
            )
        _print_vacuum(result)
    raise typer.Exit(1 if result.failed else 0)


class _ProgressBars:
    """Shows each step of a VACUUM as a bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._bars = progress, dict[str, TaskID]()

    def __call__(self, step: str, done: int, of: int) -> None:
        if step not in self._bars:
            self._bars[step] = self._progress.add_task(step, total=of)
        self._progress.update(self._bars[step], completed=done, total=of)


def _print_vacuum(result: VacuumResult) -> None:
    rows = [{"file": file.name, "bytes": file.size} for file in result.files[:_SHOWN_FILES]]
    if rows:
        print_table(("file", "bytes"), rows)
    if len(result.files) > _SHOWN_FILES:
        print_text(f"… and {len(result.files) - _SHOWN_FILES} more")
    print_text(_sum_of(result))
    for name, reason in result.failed.items():
        print_text(f"✗ {name}: {reason}", style="red")


def _sum_of(result: VacuumResult) -> str:
    """A summary of a VACUUM, in one line."""
    spared = f"; {amount(len(result.spared), 'running job')} spared" if result.spared else ""
    if not result.files and not result.failed:
        return f"no file is old enough to be removed{spared}"
    would = "would be removed" if result.dry_run else "removed"
    return f"{amount(len(result.files), 'file')}, {result.bytes} bytes {would}{spared}"
