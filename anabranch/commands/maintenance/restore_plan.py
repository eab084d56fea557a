"""What has to be done to a table so that it looks like one of its older versions.

Knows two snapshots and no store. Guarantee: what identifies things goes on, so that no number is given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.file_names import commit_name
from anabranch._log.replay import keys
from anabranch._log.snapshot import Snapshot
from anabranch._protocol import iceberg
from anabranch._protocol.actions import FILES, DomainMetadata, Metadata, Protocol, files_table
from anabranch._protocol.features import row_tracking
from anabranch._protocol.features.table_features import (
    check_writable,
    reader_features,
    upgrade_for_metadata,
    with_features,
    writer_features,
)
from anabranch._protocol.layout import clustering
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.properties import PROTECTED_BEFORE
from anabranch._protocol.rules.identity import identities, is_watermark, keep_assigned_values, marks_of
from anabranch._protocol.schema.column_mapping import MAX_ID, number_in
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction
from anabranch.commands.ddl.metadata_history import metadata_between
from anabranch.commands.row_changes import with_counts
from anabranch.commands.sources import whole_table
from anabranch.errors import AppendOnlyTable, CorruptLog


@dataclass(frozen=True)
class Plan:
    """What makes ``base`` look like ``target``.

    Attributes:
        adds: the files of the target that are not live, or have another vector now.
        removes: the live ones that the target does not have so.
        again: live ones that stay, and are named again since they lack row ids that the table is to have.
        left_out: the files of the target that it has to do without.
        metadata, protocol, domains: what the table is to say; None, or none, where it says so.
        row_mark: the highest row id of the target, where it was forgotten since.
    """

    base: Snapshot
    target: Snapshot
    adds: pa.Table
    removes: pa.Table
    again: pa.Table
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    domains: tuple[DomainMetadata, ...] = ()
    row_mark: int = row_tracking.NOTHING
    left_out: pa.Table = field(default_factory=FILES.empty_table)

    @property
    def is_nothing(self) -> bool:
        """Whether the table is like that already."""
        changes_files = len(self.adds) or len(self.removes) or len(self.again)
        return not changes_files and self.metadata is None and self.protocol is None and not self.domains

    def without(self, paths: set[str]) -> Plan:
        """The same without these files among those that come back."""
        gone = pc.is_in(self.adds["path"], value_set=pa.array(list(paths), pa.string()))
        return replace(self, adds=self.adds.filter(pc.invert(gone)), left_out=self.adds.filter(gone))

    def transaction(self, parameters: Mapping[str, Any], runtime: Runtime) -> Transaction:
        """All of it as one transaction.

        What a vector of a live file holds is never asked: after a RESTORE it counts for nothing, and whoever touches
        that file meanwhile is a conflict. So a table whose newest vectors are lost can be restored.
        """
        base = self.base
        touched = pa.concat_tables([self.removes, self._with_row_counts(self.again)]).to_pylist()
        return Transaction.on(
            base,
            str(runtime.new_id()),
            CommitInfo("RESTORE", parameters, metrics=self._metrics()),
            reads=whole_table(base),
            does=Changes(
                removes=frozenset(self.removes["path"].to_pylist()),
                sources={row["path"]: Source(row, BitMap64()) for row in touched},
                adds=self._with_row_counts(self.adds),
                recommits=frozenset(self.again["path"].to_pylist()),
                row_mark=self.row_mark,
            ),
            says=Declarations(metadata=self.metadata, protocol=self.protocol, domains=self.domains),
        )

    def _with_row_counts(self, files: pa.Table) -> pa.Table:
        """These files, each with its number of rows where it is to get row ids."""
        protocol, metadata = self.protocol or self.base.protocol, self.metadata or self.base.metadata
        if not row_tracking.assigns(protocol, metadata):
            return files
        chosen = FileSet(self.base.table, metadata.schema, metadata.partition_columns, files, {})
        return with_counts(self.target, chosen).files

    def _metrics(self) -> dict[str, int]:
        kept = self.target.files
        kept = kept.filter(pc.invert(pc.is_in(kept["path"], value_set=_set(self.left_out["path"]))))
        return {
            "tableSizeAfterRestore": _bytes(kept),
            "numOfFilesAfterRestore": len(kept),
            "numRemovedFiles": len(self.removes),
            "numRestoredFiles": len(self.adds),
            "removedFilesSize": _bytes(self.removes),
            "restoredFilesSize": _bytes(self.adds),
        }


def _bytes(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def make_plan(base: Snapshot, target: Snapshot, new_id: Callable[[], object]) -> Plan:
    """What has to be done to ``base`` so that it looks like ``target``; a ``new_id`` names hidden columns.

    Raises:
        AppendOnlyTable: files would go, and the table's may not. UnsupportedFeature: it may not be written here.
    """
    check_writable(base.table, base.protocol, base.metadata)
    now, then = keys(base.files), keys(target.files)
    removes = base.files.filter(pc.invert(pc.is_in(now, value_set=_set(then))))
    if len(removes) and base.properties.append_only:
        raise AppendOnlyTable(table=base.table, operation="RESTORE")
    began_anew, adds = _began_anew(base, target), target.files.filter(pc.invert(pc.is_in(then, value_set=_set(now))))
    adds = _with_known_ids(row_tracking.without_ids(adds) if began_anew else adds, removes)
    mark = _mark(target)
    forgotten = mark > _mark(base)
    between = metadata_between(base, target) if identities(target.schema) else ()
    old = row_tracking.with_present_columns(target.metadata, base.metadata, new_id) if began_anew else target.metadata
    metadata = restore_metadata(base.metadata, old, between)
    after = metadata or base.metadata
    protocol = restore_protocol(base, target, after)
    iceberg.check_partitioning(base.metadata, after)
    check_writable(base.table, protocol or base.protocol, after)
    stays = base.files.filter(pc.is_in(now, value_set=_set(then)))
    lacks = pc.is_null(stays["baseRowId"])
    again = stays.filter(lacks) if row_tracking.is_enabled(after) else stays.slice(0, 0)
    if metadata is None and forgotten:
        metadata = base.metadata  # said again as it is: whoever gives ids meanwhile would give some that come back
    row_mark = mark if forgotten else row_tracking.NOTHING
    return Plan(base, target, adds, removes, again, metadata, protocol, _domains(base, target), row_mark)


def _set(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], pa.string())


def _began_anew(base: Snapshot, target: Snapshot) -> bool:
    """Whether files that stay may have got row ids which the old version has for other rows: those of before row
    tracking was dropped and listed anew. Its hidden columns have other names since, or none.
    """
    now, then = (each.metadata.configuration.get(row_tracking.ROW_ID_COLUMN) for each in (base, target))
    if now is not None and now == then:
        return False
    stays = pc.is_in(base.files["path"], value_set=_set(target.files["path"]))
    return bool(pc.any(pc.and_(stays, pc.is_valid(base.files["baseRowId"]))).as_py())


def _with_known_ids(adds: pa.Table, removes: pa.Table) -> pa.Table:
    """The files that come back; one that is live now with row ids keeps them, though it had none then."""
    lacking = adds.filter(pc.is_null(adds["baseRowId"]))["path"]
    both = removes.filter(
        pc.and_(pc.is_valid(removes["baseRowId"]), pc.is_in(removes["path"], value_set=_set(lacking)))
    )
    if not len(both):
        return adds
    known = {row["path"]: {name: row[name] for name in row_tracking.FILE_FIELDS} for row in both.to_pylist()}
    return files_table([{**row, **known.get(row["path"], {})} for row in adds.to_pylist()])


def _mark(snapshot: Snapshot) -> int:
    """The highest row id that was given by then; of a table without, that nothing was."""
    domain = snapshot.state.domains.get(row_tracking.DOMAIN)
    try:
        return row_tracking.NOTHING if domain is None else row_tracking.mark_of(domain)
    except (ValueError, RecursionError) as error:
        reason = f"the domain {row_tracking.DOMAIN} is not as it must be ({error})."
        raise CorruptLog(table=snapshot.table, file=commit_name(snapshot.version), reason=reason) from None


def restore_metadata(base: Metadata, target: Metadata, between: Iterable[Metadata] = ()) -> Metadata | None:
    """The metadata of an older version as it may stand again; None where the table says the same already.

    ``between`` are those that the table had in the meantime, of which only identity values matter.

    What identifies things goes on: identity values that were reserved, numbers that columns were given, the names of
    the columns that hold row ids, the version up to which history is guarded.
    """
    names = (row_tracking.ROW_ID_COLUMN, row_tracking.COMMIT_VERSION_COLUMN)
    kept = {key: base.configuration[key] for key in names if key in base.configuration}
    configuration = {**kept, **target.configuration}
    for key in (MAX_ID, PROTECTED_BEFORE):
        known = [number_in(each.configuration, key) for each in (base, target) if key in each.configuration]
        if known:
            configuration[key] = str(max(known))
    found = replace(target, configuration=configuration)
    for each in (*between, base):
        found = keep_assigned_values(each, found)
    only_marks = is_watermark(base, found) and marks_of(base.schema) == marks_of(found.schema)
    return None if found == base or only_marks else found


def restore_protocol(base: Snapshot, target: Snapshot, metadata: Metadata) -> Protocol | None:
    """What the table has to ask for: all that it asks for now, and what the old files and metadata need; None where it
    does. Raises UnsupportedFeature: the old version needs what is not written here.
    """
    check_writable(target.table, target.protocol, target.metadata)
    needed = reader_features(target.protocol) | writer_features(target.protocol)
    merged = with_features(base.protocol, needed)
    merged = upgrade_for_metadata(merged, metadata) or merged
    return None if merged == base.protocol else merged


def _domains(base: Snapshot, target: Snapshot) -> tuple[DomainMetadata, ...]:
    """The clustering of the old version; other writers' domains are left as they are."""
    now, then = (each.state.domains.get(clustering.DOMAIN) for each in (base, target))
    if then is not None:
        return () if clustering.same_clustering(then, now) else (then,)
    return () if now is None else (replace(now, removed=True),)
