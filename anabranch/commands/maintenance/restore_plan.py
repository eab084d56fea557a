"""Plans the changes that make a table look like one of its older versions.

Knows two snapshots and no store. Guarantee: identifiers only move forward, so no number is assigned twice.
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
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._protocol.layout import clustering
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.identity import identities, is_watermark, keep_assigned_values, marks_of
from anabranch._protocol.schema.column_mapping import MAX_ID, number_in
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction
from anabranch.commands.ddl.metadata_history import metadata_between
from anabranch.commands.row_changes import with_row_counts
from anabranch.commands.sources import whole_table
from anabranch.errors import AppendOnlyTable, CorruptLog


@dataclass(frozen=True)
class RestorePlan:
    """The changes that make ``base`` look like ``target``.

    Attributes:
        adds: the files of the target that are not live, or have another vector now.
        removes: the live files that the target does not have, or has with another vector.
        again: live files that stay and are committed again because they lack the row ids that the table requires.
        left_out: the files of the target that are missing and not restored.
        metadata, protocol, domains: the new metadata; None, or empty, if unchanged.
        row_mark: the highest row id of the target, if the table has lost that mark since.
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
        """Whether the table equals the target already."""
        changes_files = len(self.adds) or len(self.removes) or len(self.again)
        return not changes_files and self.metadata is None and self.protocol is None and not self.domains

    def without(self, paths: set[str]) -> RestorePlan:
        """The plan without these files, which cannot come back."""
        is_missing = pc.is_in(self.adds["path"], value_set=pa.array(list(paths), pa.string()))
        return replace(self, adds=self.adds.filter(pc.invert(is_missing)), left_out=self.adds.filter(is_missing))

    def transaction(self, parameters: Mapping[str, Any], runtime: Runtime) -> Transaction:
        """The plan as one transaction.

        It never reads the vector of a live file: a RESTORE replaces it, and a transaction that touches the file
        meanwhile is a conflict. So a table whose newest vectors are lost can be restored.
        """
        base = self.base
        files = pa.concat_tables([self.removes, self._with_row_counts(self.again)]).to_pylist()
        return Transaction.on(
            base,
            str(runtime.new_id()),
            CommitInfo("RESTORE", parameters, metrics=self._metrics()),
            reads=replace(whole_table(base), own_table=False),  # what comes back is of a version that never changes
            changes=Changes(
                removes=frozenset(self.removes["path"].to_pylist()),
                sources={row["path"]: Source(row, BitMap64()) for row in files},
                adds=self._with_row_counts(self.adds),
                recommits=frozenset(self.again["path"].to_pylist()),
                row_mark=self.row_mark,
            ),
            declarations=Declarations(metadata=self.metadata, protocol=self.protocol, domains=self.domains),
        )

    def _with_row_counts(self, files: pa.Table) -> pa.Table:
        """The files, with row counts if they get row ids."""
        protocol, metadata = self.protocol or self.base.protocol, self.metadata or self.base.metadata
        if not row_tracking.assigns(protocol, metadata):
            return files
        file_set = FileSet(self.base.table, metadata.schema, metadata.partition_columns, files, {})
        return with_row_counts(self.target, file_set).files

    def _metrics(self) -> dict[str, int]:
        files = self.target.files
        files = files.filter(pc.invert(pc.is_in(files["path"], value_set=_set(self.left_out["path"]))))
        return {
            "tableSizeAfterRestore": _bytes(files),
            "numOfFilesAfterRestore": len(files),
            "numRemovedFiles": len(self.removes),
            "numRestoredFiles": len(self.adds),
            "removedFilesSize": _bytes(self.removes),
            "restoredFilesSize": _bytes(self.adds),
        }


def _bytes(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def make_plan(base: Snapshot, target: Snapshot, new_id: Callable[[], object]) -> RestorePlan:
    """The plan that makes ``base`` look like ``target``; ``new_id`` makes ids for hidden columns.

    Raises:
        AppendOnlyTable: it would remove files of an append-only table. UnsupportedFeature: the table cannot be written.
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
        metadata = base.metadata  # a commit of it conflicts with writers that would assign ids which come back
    row_mark = mark if forgotten else row_tracking.NOTHING
    return RestorePlan(base, target, adds, removes, again, metadata, protocol, _domains(base, target), row_mark)


def _set(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], pa.string())


def _began_anew(base: Snapshot, target: Snapshot) -> bool:
    """Whether files that stay may have row ids that the old version uses for other rows: row tracking was dropped and
    added again in between. Its hidden columns then have other names, or none.
    """
    now, then = (snapshot.metadata.configuration.get(row_tracking.ROW_ID_COLUMN) for snapshot in (base, target))
    if now is not None and now == then:
        return False
    stays = pc.is_in(base.files["path"], value_set=_set(target.files["path"]))
    return bool(pc.any(pc.and_(stays, pc.is_valid(base.files["baseRowId"]))).as_py())


def _with_known_ids(adds: pa.Table, removes: pa.Table) -> pa.Table:
    """The files that come back; one that is live with row ids keeps them, even if the target has none for it."""
    lacking = adds.filter(pc.is_null(adds["baseRowId"]))["path"]
    with_ids = removes.filter(
        pc.and_(pc.is_valid(removes["baseRowId"]), pc.is_in(removes["path"], value_set=_set(lacking)))
    )
    if not len(with_ids):
        return adds
    ids = {row["path"]: {name: row[name] for name in row_tracking.FILE_FIELDS} for row in with_ids.to_pylist()}
    return files_table([{**row, **ids.get(row["path"], {})} for row in adds.to_pylist()])


def _mark(snapshot: Snapshot) -> int:
    """The highest row id assigned up to a version; `NOTHING` for a table without row tracking."""
    domain = snapshot.state.domains.get(row_tracking.DOMAIN)
    try:
        return row_tracking.NOTHING if domain is None else row_tracking.mark_of(domain)
    except (ValueError, RecursionError) as error:
        reason = f"the domain {row_tracking.DOMAIN} is not as it must be ({error})."
        raise CorruptLog(table=snapshot.table, file=commit_name(snapshot.version), reason=reason) from None


def restore_metadata(base: Metadata, target: Metadata, between: Iterable[Metadata] = ()) -> Metadata | None:
    """The metadata of an older version, adapted so that it can be committed again; None if the table has it already.

    ``between`` are the metadata of the versions in between, of which only identity values matter.

    Identifiers only move forward: reserved identity values, column numbers, the names of the columns that hold row ids,
    the version up to which history is protected.
    """
    names = (row_tracking.ROW_ID_COLUMN, row_tracking.COMMIT_VERSION_COLUMN)
    identifiers = {key: base.configuration[key] for key in names if key in base.configuration}
    configuration = {**identifiers, **target.configuration}
    for key in (MAX_ID, PROTECTED_BEFORE):
        numbers = [
            number_in(metadata.configuration, key) for metadata in (base, target) if key in metadata.configuration
        ]
        if numbers:
            configuration[key] = str(max(numbers))
    restored = replace(target, configuration=configuration)
    for metadata in (*between, base):
        restored = keep_assigned_values(metadata, restored)
    only_marks = is_watermark(base, restored) and marks_of(base.schema) == marks_of(restored.schema)
    return None if restored == base or only_marks else restored


def restore_protocol(base: Snapshot, target: Snapshot, metadata: Metadata) -> Protocol | None:
    """The protocol with the features that the old files and metadata need added to the present ones; None if it has
    them. Raises UnsupportedFeature: the old version needs a feature that cannot be written.
    """
    check_writable(target.table, target.protocol, target.metadata)
    needed = reader_features(target.protocol) | writer_features(target.protocol)
    merged = with_features(base.protocol, needed)
    merged = upgrade_for_metadata(merged, metadata) or merged
    return None if merged == base.protocol else merged


def _domains(base: Snapshot, target: Snapshot) -> tuple[DomainMetadata, ...]:
    """The clustering domain of the old version; other domains stay unchanged."""
    now, then = (snapshot.state.domains.get(clustering.DOMAIN) for snapshot in (base, target))
    if then is not None:
        return () if clustering.same_clustering(then, now) else (then,)
    return () if now is None else (replace(now, removed=True),)
