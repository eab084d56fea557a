"""GENERATE symlink_format_manifest writes texts that list the files of one version, for readers without Delta.

Knows live files and partition folders. Guarantees: a manifest is either the complete old one or the complete new one;
none is written if a list of files cannot describe the table's rows; manifests of partitions without files are removed.
Manifests of several partitions do not change at once: a reader may see new and old ones together.

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
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.watching import watch
from anabranch.errors import InvalidOption, ManifestRefused
from anabranch.errors.html import ShownAsTable

FOLDER = "_symlink_format_manifest"
MODES = ("symlink_format_manifest",)
_WRITERS = 8


@dataclass(frozen=True)
class Manifests(ShownAsTable):
    """What a GENERATE did: the ``version`` of the manifests, and the names of those ``written`` and ``removed``."""

    version: int
    written: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Generate(SecretFree):
    """Write manifests of the newest version, one for each partition, and remove those of partitions without files.

    Example:
        >>> Generate("/data/flights").run().written
        ('_symlink_format_manifest/manifest',)
    """

    table: Location
    mode: str = MODES[0]
    storage_options: Mapping[str, str] | None = None

    @watch("GENERATE")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Manifests:
        """Run it.

        Raises:
            InvalidOption: there is no such mode.
            ManifestRefused: live files have deletion vectors, columns have other names in files, or the location of
                a file contains a line break.
            FileOutsideTable: a file lies on a store that is neither the table's own nor allowed.
            NotATable: there is no table. StoreError: some manifests may be new, and others old.
        """
        _check_mode(self.mode)
        snapshot = context.snapshot(open_log(self.table, self.storage_options))
        _check_listable(snapshot)
        manifests, store = _texts(snapshot), snapshot.store
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda name: store.put(name, manifests[name].encode()), manifests))
        names = [entry.name for entry in store.list_all(FOLDER + "/")]
        stale = tuple(name for name in names if name not in manifests and name.endswith("/manifest"))
        for name in stale:
            store.delete(name)
        return Manifests(snapshot.version, tuple(sorted(manifests)), stale)


def _check_mode(mode: str) -> None:
    if not isinstance(mode, str) or mode.strip().lower() not in MODES:
        matches = get_close_matches(str(mode).lower(), MODES, n=1, cutoff=0.5)
        suggestion = f" Did you mean {matches[0]}?" if matches else ""
        message = f"Specified mode '{mode}' is not supported. Supported modes are:"
        raise InvalidOption(option="mode", value=mode, reason=f"{message} {', '.join(MODES)}.{suggestion}")


def _check_listable(snapshot: Snapshot) -> None:
    """Raises an error unless the plain content of the files is the rows of the table."""
    if is_mapped(snapshot.metadata.configuration):
        reason = "its columns have other names in the files than in the table (delta.columnMapping.mode)."
        rule = "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"
        raise ManifestRefused(table=snapshot.table, delta_condition=rule, reason=reason)
    marked = len(snapshot.files) - snapshot.files["deletionVector"].null_count
    if marked:
        reason = (
            f"{marked} of its files have deletion vectors, and readers of the plain files would see deleted rows. "
            "Rewrite them first: REORG TABLE … APPLY (PURGE)."
        )
        rule = "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
        raise ManifestRefused(table=snapshot.table, delta_condition=rule, files=marked, reason=reason)


def _texts(snapshot: Snapshot) -> dict[str, str]:
    """The manifests by their names; a table without partitions has one, even without files."""
    lines: dict[str, list[str]] = {} if snapshot.partition_columns else {f"{FOLDER}/manifest": []}
    for row in snapshot.files.select(["path", "partitionValues"]).to_pylist():
        values = dict(row["partitionValues"])
        folders = [hive_segment(key, values.get(key)) for key in snapshot.partition_keys]
        lines.setdefault("/".join([FOLDER, *folders, "manifest"]), []).append(_location(snapshot, row["path"]))
    return {name: "".join(f"{line}\n" for line in sorted(locations)) for name, locations in lines.items()}


def _location(snapshot: Snapshot, path: str) -> str:
    """The absolute location of a data file, not percent-encoded, as Hadoop writes paths. Raises ManifestRefused: it
    contains a line break.
    """
    folder, name = locate_file(snapshot.table, path, allowed_stores(snapshot.store))
    location = f"{snapshot.table if folder is None else folder.rstrip('/')}/{name}"
    if "\n" in location or "\r" in location:
        reason = f"the location of its file {path!r} contains a line break, and a manifest has one file on each line."
        raise ManifestRefused(table=snapshot.table, reason=reason)
    return location
