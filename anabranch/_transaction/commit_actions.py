"""Converts a transaction to the lines of one commit file.

Knows actions and vectors, and the store only to put the vectors' file beside the data, before the commit that names it.
Guarantee: for each path at most one ``remove`` and one ``add``; a ``remove`` names the newest state of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import ENGINE
from anabranch._protocol.actions import FileRow, add_body, add_lines, files_table, line, remove_body
from anabranch._protocol.change_feed import cdc_body
from anabranch._protocol.in_commit_timestamps import IN_COMMIT
from anabranch._protocol.layout import moves
from anabranch._protocol.layout.deletion_vectors import Descriptor, pack, to_inline
from anabranch._protocol.session_settings import current
from anabranch._protocol.stats.statistics import num_records, with_wide_bounds
from anabranch._protocol.steps import TAG as STEPS
from anabranch._storage.contract import Store
from anabranch._transaction.retry import Runtime
from anabranch._transaction.row_ids import NO_ROW_IDS, RowIds
from anabranch._transaction.transaction import READ, RESERVED_FOR, Transaction
from anabranch.errors import StoreError

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class VectorFile:
    """The vectors that a transaction would commit, in one file of the store; ``name`` is None where there are none."""

    name: str | None
    descriptors: Mapping[str, Descriptor]


def write_vectors(ours: Transaction, store: Store, runtime: Runtime) -> VectorFile:
    """Put the joined vectors of all files that ours marks; a file whose every row is deleted needs none. Raises
    StoreError: nothing was committed.
    """
    vectors = _vectors(ours)
    if not vectors:
        return VectorFile(None, {})
    name, data, descriptors = pack(vectors, runtime.new_id())
    try:
        store.put(name, data)
    except BaseException:
        remove_vectors(store, name)  # the file may exist in spite of the error
        raise
    return VectorFile(name, descriptors)


def inline_vectors(ours: Transaction) -> VectorFile:
    """The same vectors inside the commit itself, for a commit that only its own transaction reads."""
    return VectorFile(None, {path: to_inline(vector) for path, vector in _vectors(ours).items()})


def _vectors(ours: Transaction) -> dict[str, BitMap64]:
    """The vectors of all files that stay with deleted rows."""
    vectors = {path: vector for path in sorted(ours.changes.marks) if (vector := join_vector(ours, path)) is not None}
    return vectors | {
        row["path"]: rows for row in buried_files(ours) if (rows := _partial_vector(ours, row)) is not None
    }


def remove_vectors(store: Store, name: str) -> None:
    """Remove a vectors' file that no commit names; if that fails, VACUUM will."""
    try:
        store.delete(name)
    except StoreError as error:
        _logger.warning("the vectors' file %s, which nothing names, was left in %s: %s", name, store.url, error)


def join_vector(ours: Transaction, path: str) -> BitMap64 | None:
    """The rows of a file that winners or ours delete; None where these are all of its rows."""
    source = ours.changes.sources[path]
    vector = source.vector | ours.changes.marks[path]
    return None if len(vector) == num_records(source.row.get("stats")) else vector


def buried_files(ours: Transaction) -> list[FileRow]:
    """The new files in which winners have deleted rows."""
    adds, buried = ours.changes.adds, ours.changes.buried
    files: list[FileRow] = adds.filter(pc.is_in(adds["path"], pa.array(list(buried)))).to_pylist() if buried else []
    return files


def _partial_vector(ours: Transaction, row: FileRow) -> BitMap64 | None:
    """The deleted rows of a new file; None where these are all of its rows."""
    rows = ours.changes.buried[row["path"]]
    return None if len(rows) == num_records(row.get("stats")) else rows


def _new_files(ours: Transaction, files: pa.Table, vectors: VectorFile) -> pa.Table:
    """The new files as they are committed: with vectors where winners have deleted rows, and without emptied files."""
    if not ours.changes.buried:
        return files
    buried, descriptors = ours.changes.buried, vectors.descriptors
    rows = [row for row in files.to_pylist() if row["path"] not in buried or row["path"] in descriptors]
    return files_table([_with_vector(row, vectors.descriptors.get(row["path"])) for row in rows])


def _with_vector(row: FileRow, descriptor: Descriptor | None) -> FileRow:
    return row if descriptor is None else _with_new_vector(row, descriptor)


def commit_lines(
    ours: Transaction,
    vectors: VectorFile,
    ids: RowIds = NO_ROW_IDS,
    *,
    now_ms: int,
    user: str | None,
    in_commit_ms: int | None = None,
) -> Iterator[str]:
    """The lines of the commit file, ``commitInfo`` first; ``ids`` are the row ids for the version that is tried."""
    stamp = {} if in_commit_ms is None else {IN_COMMIT: in_commit_ms}
    yield line("commitInfo", {**stamp, **commit_info(ours, vectors, ids, now_ms=now_ms, user=user)})
    if ours.declarations.protocol is not None:
        yield line("protocol", ours.declarations.protocol.to_json())
    if ours.declarations.metadata is not None:
        yield line("metaData", ours.declarations.metadata.to_json())
    yield from (line("txn", t.to_json()) for t in ours.declarations.app_transactions)
    yield from (line("domainMetadata", d.to_json()) for d in (*ours.declarations.domains, *ids.domains))
    for path in sorted(ours.touched_paths):
        row = ours.changes.sources[path].row
        yield line("remove", remove_body(row, deletion_timestamp=now_ms, data_change=ours.changes.data_change))
        if path in vectors.descriptors:
            with_vector = ids.of(_with_new_vector(row, vectors.descriptors[path]))
            yield line("add", add_body(with_vector, data_change=ours.changes.data_change))
    for path in sorted(ids.paths_to_recommit(ours)):
        yield line("add", add_body(ids.of(ours.changes.sources[path].row), data_change=False))
    yield from add_lines(_new_files(ours, ids.new_files(ours), vectors), data_change=ours.changes.data_change)
    yield from (line("cdc", cdc_body(file)) for file in ours.changes.change_files.to_pylist())


def commit_info(
    ours: Transaction, vectors: VectorFile, ids: RowIds = NO_ROW_IDS, *, now_ms: int, user: str | None
) -> dict[str, Any]:
    """The commit's provenance (PROTOCOL.md, "Commit Provenance Information"), our footprint under ``tags``."""
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": ours.info.operation,
        "operationParameters": dict(ours.info.parameters),
        "isolationLevel": ours.isolation,
        "isBlindAppend": ours.is_blind,
        "operationMetrics": {name: str(value) for name, value in _metrics(ours, vectors).items()},
        "engineInfo": ENGINE,
        "txnId": ours.txn_id,
        "tags": {**_tags(ours), **ids.tags},
    }
    if user is not None:
        info["userName"] = user
    if ours.base is not None:
        info["readVersion"] = ours.base.version
    user_metadata = ours.info.user_metadata if ours.info.user_metadata is not None else current().user_metadata
    if user_metadata is not None:
        info["userMetadata"] = user_metadata
    return info


def _tags(ours: Transaction) -> dict[str, str]:
    """Tags from which later writers may prove more: the cut, the reads and the carry-overs of ours; and, for people,
    the backend of each step.
    """
    tags = {
        "anabranch.cut": str(ours.position.rebased_to),
        "anabranch.carriedOver": ",".join(map(str, ours.position.rebased_over)),
    }
    if ours.identity.reserved_for is not None:
        tags[RESERVED_FOR] = ours.identity.reserved_for
    if ours.changes.groups is not None:
        tags[moves.TAG] = moves.to_text(ours.changes.groups)
    if ours.reads is not None:
        tags[READ] = ours.reads.condition.text
        tags["anabranch.rowLocal"] = str(ours.reads.row_local).lower()
    if ours.info.steps.steps:
        tags[STEPS] = ours.info.steps.commit_text
    return {**tags, **ours.info.tags}


def _metrics(ours: Transaction, vectors: VectorFile) -> dict[str, int]:
    """The command's own metrics with those that depend on its position, in Delta's names; a command that is judged by
    whole files alone has counted these itself.
    """
    if not ours.touched_paths or "numRemovedFiles" in ours.info.metrics:
        return dict(ours.info.metrics)
    had_vector = [
        path for path in ours.touched_paths if ours.changes.sources[path].row.get("deletionVector") is not None
    ]
    marked = set(vectors.descriptors)
    removed = ours.touched_paths - marked
    move_metrics = {} if ours.changes.groups is None else _move_metrics(ours)
    return {
        **ours.info.metrics,
        **move_metrics,
        "numRemovedFiles": len(removed),
        "numAddedFiles": len(ours.changes.adds),
        "numRemovedBytes": sum(ours.changes.sources[path].row["size"] for path in removed),
        "numAddedBytes": sum(ours.changes.adds["size"].to_pylist()),
        "numDeletionVectorsAdded": len(marked),
        "numDeletionVectorsRemoved": len(had_vector),
        "numDeletionVectorsUpdated": len(marked & set(had_vector)),
        "numAddedChangeFiles": len(ours.changes.change_files),
    }


def _move_metrics(ours: Transaction) -> dict[str, int]:
    """The moved rows, the removed rows, and the sizes of the new files."""
    groups = ours.changes.groups or ()
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    sizes = sorted(ours.changes.adds["size"].to_pylist())
    places = (0, len(sizes) // 4, len(sizes) // 2, len(sizes) * 3 // 4, len(sizes) - 1)
    return {
        **({name: sizes[place] for name, place in zip(names, places, strict=True)} if sizes else {}),
        "numCopiedRows": sum(output.records for group in groups for output in group.outputs),
        "numDeletionVectorRowsRemoved": sum(
            source.records - source.live for group in groups for source in group.sources
        ),
    }


def _with_new_vector(row: FileRow, descriptor: Descriptor) -> FileRow:
    """The file with its new vector; its bounds may now be wider than its rows."""
    stats = row.get("stats")
    wide = with_wide_bounds(stats) if stats else stats
    return {**row, "deletionVector": descriptor.to_row(), "stats": wide}
