"""GENERATE symlink_format_manifest: for readers that know no Delta, texts that list the files of one version.

Knows live files and partition folders. Guarantees: a manifest is the whole old one or the whole new one, never a part;
none is written where a list of files could not say what the table holds; manifests of partitions that have no file any
more are removed. Manifests of several partitions do not change at once: a reader may see some of them new, some old.

Source: Delta Lake documentation, "Presto, Trino, and Athena to Delta Lake integration".
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches

from anabranch._log.file_locations import allowed_stores
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout.outside_files import locate_file
from anabranch._protocol.partitions import hive_segment
from anabranch._protocol.schema.column_mapping import is_mapped
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.commands.watching import watched
from anabranch.errors import InvalidOption, ManifestRefused
from anabranch.errors.html import ShownAsTable

FOLDER = "_symlink_format_manifest"
MODES = ("symlink_format_manifest",)
_WRITERS = 8


@dataclass(frozen=True)
class Manifests(ShownAsTable):
    """What a GENERATE did: the ``version`` that the manifests list, the names of those ``written`` and ``removed``."""

    version: int
    written: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Generate(Masked):
    """Write manifests of the newest version, one for each partition, and remove those of partitions that are gone.

    Example:
        >>> Generate("/data/flights").run().written
        ('_symlink_format_manifest/manifest',)
    """

    table: Location
    mode: str = MODES[0]
    storage_options: Mapping[str, str] | None = None

    @watched("GENERATE")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Manifests:
        """Run it.

        Raises:
            InvalidOption: there is no such mode.
            ManifestRefused: live files have deletion vectors, columns have other names in files, or the location of
                a file is more than one line.
            FileOutsideTable: a file lies on a store that is neither the table's own nor allowed.
            NotATable: there is no table. StoreError: some manifests may be new, and others old.
        """
        _check_mode(self.mode)
        snapshot = context.snapshot(open_log(self.table, self.storage_options))
        _check_listable(snapshot)
        wanted, store = _texts(snapshot), snapshot.store
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda name: store.put(name, wanted[name].encode()), wanted))
        found = [entry.name for entry in store.list_all(FOLDER + "/")]
        stale = tuple(name for name in found if name not in wanted and name.endswith("/manifest"))
        for name in stale:
            store.delete(name)
        return Manifests(snapshot.version, tuple(sorted(wanted)), stale)


def _check_mode(mode: str) -> None:
    if not isinstance(mode, str) or mode.strip().lower() not in MODES:
        near = get_close_matches(str(mode).lower(), MODES, n=1, cutoff=0.5)
        meant = f" Did you mean {near[0]}?" if near else ""
        said = f"Specified mode '{mode}' is not supported. Supported modes are:"
        raise InvalidOption(option="mode", value=mode, reason=f"{said} {', '.join(MODES)}.{meant}")


def _check_listable(snapshot: Snapshot) -> None:
    """Raises an error unless whoever reads the files as they are reads the rows of the table."""
    if is_mapped(snapshot.metadata.configuration):
        reason = "its columns have other names in the files than in the table (delta.columnMapping.mode)."
        rule = "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"
        raise ManifestRefused(table=snapshot.table, delta_condition=rule, reason=reason)
    marked = len(snapshot.files) - snapshot.files["deletionVector"].null_count
    if marked:
        reason = (
            f"{marked} of its files have deletion vectors, and who reads the files as they are would see deleted rows. "
            "Have them written anew first: REORG TABLE … APPLY (PURGE)."
        )
        rule = "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
        raise ManifestRefused(table=snapshot.table, delta_condition=rule, files=marked, reason=reason)


def _texts(snapshot: Snapshot) -> dict[str, str]:
    """The manifests by their names; a table without partitions has one, even where it has no file."""
    lines: dict[str, list[str]] = {} if snapshot.partition_columns else {f"{FOLDER}/manifest": []}
    for row in snapshot.files.select(["path", "partitionValues"]).to_pylist():
        values = dict(row["partitionValues"])
        folders = [hive_segment(key, values.get(key)) for key in snapshot.partition_keys]
        lines.setdefault("/".join([FOLDER, *folders, "manifest"]), []).append(_location(snapshot, row["path"]))
    return {name: "".join(f"{line}\n" for line in sorted(each)) for name, each in lines.items()}


def _location(snapshot: Snapshot, path: str) -> str:
    """Where a data file lies, absolute, and not percent-encoded, as Hadoop spells paths. Raises ManifestRefused: a
    reader would take it for two lines.
    """
    folder, name = locate_file(snapshot.table, path, allowed_stores(snapshot.store))
    found = f"{snapshot.table if folder is None else folder.rstrip('/')}/{name}"
    if "\n" in found or "\r" in found:
        reason = f"the location of its file {path!r} holds the end of a line, and a manifest has one file on each line."
        raise ManifestRefused(table=snapshot.table, reason=reason)
    return found
