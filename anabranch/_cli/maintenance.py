"""Commands that change a table's files and not its rows, or bring back old rows: clone, restore, fsck, generate,
optimize, reorg, vacuum.
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
    from anabranch.commands.maintenance.vacuum import Vacuumed

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
    replace: Annotated[bool, typer.Option("--replace", help="Replace a table that is there.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Set a property of the clone, as key=value.")] = None,
    as_json: Json = False,
) -> None:
    """Make a copy of a table, which copies its files or only names them."""
    given = [each.partition("=") for each in set_ or ()]
    for key, equals, _ in given:
        if not key or not equals:
            raise InvalidOption(option="--set", value=key, reason="it takes key=value.")
    done = functions.clone(
        location_of(source),
        target,
        shallow=shallow,
        version=version,
        timestamp=timestamp,
        replace=replace,
        properties={key: value for key, _, value in given},
    )
    if as_json:
        print_json({"table": without_secrets(target), "version": done.version, **done.metrics})
        return
    print_values("metric", {"version": done.version, **done.metrics})


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
    done = functions.restore(path, version, timestamp, ignore_missing=ignore_missing, dry_run=dry_run)
    if entry is not None and not dry_run:
        _refresh(entry)
    stands = None if done.committed is None else done.committed.version
    found = {"restoredTo": done.version, "version": stands, **done.row, "missing": list(done.missing)}
    if as_json:
        print_json({**found, "dryRun": dry_run})
        return
    if not done.changes:
        print_text(f"the table is what it was at version {done.version} already: there was nothing to do")
        return
    print_values("property", {name: value for name, value in found.items() if value not in (None, [])})
    if dry_run:
        print_text("dry run: nothing was committed")


def _refresh(entry: Entry) -> None:
    """Write the table's new columns into its entry in the catalog."""
    from anabranch._catalog.named_tables import refresh

    refresh(get_or_start_session("anabranch restore"), entry)


def fsck(
    table: TableArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Take the missing files out of the table.")] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """List the table's files that are missing. Exit code 1 if some are, and are not taken out."""
    done = functions.fsck(location_of(table), dry_run=not repair)
    stands = None if done.committed is None else done.committed.version
    if as_json:
        print_json({"files": done.files, "lookedAt": done.version, "version": stands, "missing": done.rows})
    else:
        if done.rows:
            print_table(tuple(MISSING.names), done.rows, wide=wide)
        print_text(_format_repair(done, stands))
    raise typer.Exit(1 if done.missing and done.committed is None else 0)


def _format_repair(done: Repair, stands: int | None) -> str:
    """What a look for missing files found, in one line."""
    if not done.missing:
        return f"no file of version {done.version} is missing ({amount(done.files, 'file')} looked for)"
    end = "" if stands is None else f"; version {stands} does without them"
    return f"{len(done.missing)} of {amount(done.files, 'file')} missing at version {done.version}{end}"


def generate(
    table: TableArgument,
    mode: Annotated[str, typer.Option(help="What to generate.")] = "symlink_format_manifest",
    as_json: Json = False,
) -> None:
    """Write manifests: text files that list the live files, for readers without Delta."""
    done = functions.generate(location_of(table), mode)
    if as_json:
        print_json(asdict(done))
        return
    removed = f"; {amount(len(done.removed), 'old one')} removed" if done.removed else ""
    print_text(f"{amount(len(done.written), 'manifest')} of version {done.version} written{removed}")


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
    names = [each.strip() for each in zorder_by.split(",")] if zorder_by is not None else []
    _rewrite(Optimize(location_of(table), zorder_by=paths_of(names), full=full), where, as_json)


def reorg(table: TableArgument, where: PartitionFilter = None, as_json: Json = False) -> None:
    """Rewrite files without deleted rows and dropped columns: REORG … APPLY (PURGE). Needs Spark."""
    _rewrite(Purge(location_of(table)), where, as_json)


def _rewrite(command: Optimize | Purge, where: str | None, as_json: bool) -> None:
    spark = get_or_start_session(f"anabranch {type(command).__name__.lower()}")
    from anabranch._api.optimize_builder import run_optimize  # needs Spark, which the other commands do not

    with Progress(console=Console(stderr=True), transient=True, disable=as_json) as progress:
        task = progress.add_task("files", total=None)
        done = run_optimize(
            spark, command, where, lambda _, ready, of: progress.update(task, completed=ready, total=of)
        )
    version = None if done.committed is None else done.committed.version
    if as_json:
        print_json({"table": without_secrets(str(command.table)), "version": version, "metrics": done.metrics})
        return
    if version is None:
        print_text("there was nothing to do")
        return
    print_values("metric", {"version": version, **done.metrics})


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
        done = functions.vacuum(table, retain_hours, dry_run, lite, check_retention=check)
        files = [{"path": file.name, "size": file.size} for file in done.files]
        said = {"table": done.table, "dryRun": dry_run, "files": files, "bytes": done.bytes, "folders": done.folders}
        print_json({**said, "failed": dict(done.failed), "spared": sorted(done.spared)})
    else:
        with Progress(console=Console(stderr=True), transient=True) as shown:
            done = functions.vacuum(
                table, retain_hours, dry_run, lite, check_retention=check, progress=_ProgressBars(shown)
            )
        _print_vacuum(done)
    raise typer.Exit(1 if done.failed else 0)


class _ProgressBars:
    """Shows each step of a VACUUM as a bar."""

    def __init__(self, shown: Progress) -> None:
        self._shown, self._bars = shown, dict[str, TaskID]()

    def __call__(self, step: str, done: int, of: int) -> None:
        if step not in self._bars:
            self._bars[step] = self._shown.add_task(step, total=of)
        self._shown.update(self._bars[step], completed=done, total=of)


def _print_vacuum(done: Vacuumed) -> None:
    rows = [{"file": file.name, "bytes": file.size} for file in done.files[:_SHOWN_FILES]]
    if rows:
        print_table(("file", "bytes"), rows)
    if len(done.files) > _SHOWN_FILES:
        print_text(f"… and {len(done.files) - _SHOWN_FILES} more")
    print_text(_sum_of(done))
    for name, reason in done.failed.items():
        print_text(f"✗ {name}: {reason}", style="red")


def _sum_of(done: Vacuumed) -> str:
    """A VACUUM in one line."""
    spared = f"; {amount(len(done.spared), 'running job')} spared" if done.spared else ""
    if not done.files and not done.failed:
        return f"no file is old enough to be removed{spared}"
    would = "would be removed" if done.dry_run else "removed"
    return f"{amount(len(done.files), 'file')}, {done.bytes} bytes {would}{spared}"
