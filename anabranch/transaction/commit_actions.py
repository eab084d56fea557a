"""Placing: a transaction as the lines of one commit file.

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

from anabranch.errors import StoreError
from anabranch.protocol.actions import FileRow, add_body, add_lines, files_table, line, remove_body
from anabranch.protocol.deletion_vectors import Descriptor, pack
from anabranch.protocol.features.in_commit_timestamps import IN_COMMIT
from anabranch.protocol.layout import moves
from anabranch.protocol.session_says import current
from anabranch.protocol.stats.statistics import num_records, with_wide_bounds
from anabranch.storage.contract import Store
from anabranch.transaction.footprint import READ, RESERVED_FOR, Transaction
from anabranch.transaction.retry import Chance
from anabranch.transaction.row_ids import NO_ROW_IDS, RowIds

_logger = logging.getLogger(__name__)
ENGINE = "Anabranch/0.1.0"


@dataclass(frozen=True)
class VectorFile:
    """The vectors that a transaction would commit, in one file of the store; ``name`` is None where there are none."""

    name: str | None
    descriptors: Mapping[str, Descriptor]


def write_vectors(mine: Transaction, store: Store, chance: Chance) -> VectorFile:
    """Put the joined vectors of all files that mine marks; a file whose every row is deleted needs none.

    Raises:
        StoreError: nothing was committed.
    """
    vectors = {path: vector for path in sorted(mine.marks) if (vector := _joined(mine, path)) is not None}
    vectors |= {row["path"]: rows for row in _buried(mine) if (rows := _partly(mine, row)) is not None}
    if not vectors:
        return VectorFile(None, {})
    name, data, descriptors = pack(vectors, chance.new_id())
    try:
        store.put(name, data)
    except BaseException:
        remove_vectors(store, name)  # it may stand there all the same
        raise
    return VectorFile(name, descriptors)


def remove_vectors(store: Store, name: str) -> None:
    """Remove a vectors' file that no commit names; one that cannot be removed is left to VACUUM."""
    try:
        store.delete(name)
    except StoreError as error:
        _logger.warning("the vectors' file %s, which nothing names, was left in %s: %s", name, store.url, error)


def _joined(mine: Transaction, path: str) -> BitMap64 | None:
    source = mine.sources[path]
    vector = source.vector | mine.marks[path]
    return None if len(vector) == num_records(source.row.get("stats")) else vector


def _buried(mine: Transaction) -> list[FileRow]:
    """The new files in which winners have deleted rows."""
    if not mine.buried:
        return []
    found: list[FileRow] = mine.adds.filter(pc.is_in(mine.adds["path"], pa.array(list(mine.buried)))).to_pylist()
    return found


def _partly(mine: Transaction, row: FileRow) -> BitMap64 | None:
    """The rows that were deleted in a new file; None where these are all."""
    rows = mine.buried[row["path"]]
    return None if len(rows) == num_records(row.get("stats")) else rows


def _new_files(mine: Transaction, files: pa.Table, vectors: VectorFile) -> pa.Table:
    """The new files as they are committed: where winners have deleted rows, with their vectors; empty ones not."""
    if not mine.buried:
        return files
    rows = [row for row in files.to_pylist() if row["path"] not in mine.buried or row["path"] in vectors.descriptors]
    return files_table([_with_vector(row, vectors.descriptors.get(row["path"])) for row in rows])


def _with_vector(row: FileRow, descriptor: Descriptor | None) -> FileRow:
    return row if descriptor is None else _marked(row, descriptor)


def commit_lines(
    mine: Transaction,
    vectors: VectorFile,
    ids: RowIds = NO_ROW_IDS,
    *,
    now_ms: int,
    user: str | None,
    in_commit_ms: int | None = None,
) -> Iterator[str]:
    """The lines of the commit file, ``commitInfo`` first; ``ids`` are the rows' at the version that is tried."""
    stamp = {} if in_commit_ms is None else {IN_COMMIT: in_commit_ms}
    yield line("commitInfo", {**stamp, **commit_info(mine, vectors, ids, now_ms=now_ms, user=user)})
    if mine.protocol is not None:
        yield line("protocol", mine.protocol.to_json())
    if mine.metadata is not None:
        yield line("metaData", mine.metadata.to_json())
    yield from (line("txn", t.to_json()) for t in mine.app_transactions)
    yield from (line("domainMetadata", d.to_json()) for d in (*mine.domains, *ids.domains))
    for path in sorted(mine.touched):
        row = mine.sources[path].row
        yield line("remove", remove_body(row, deletion_timestamp=now_ms, data_change=mine.data_change))
        if path in vectors.descriptors:
            marked = ids.of(_marked(row, vectors.descriptors[path]))
            yield line("add", add_body(marked, data_change=mine.data_change))
    for path in sorted(ids.recommitted(mine)):
        yield line("add", add_body(ids.of(mine.sources[path].row), data_change=False))
    yield from add_lines(_new_files(mine, ids.new_files(mine), vectors), data_change=mine.data_change)


def commit_info(
    mine: Transaction, vectors: VectorFile, ids: RowIds = NO_ROW_IDS, *, now_ms: int, user: str | None
) -> dict[str, Any]:
    """The commit's provenance (PROTOCOL.md, "Commit Provenance Information"), our footprint under ``tags``."""
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": mine.operation,
        "operationParameters": dict(mine.parameters),
        "isolationLevel": mine.isolation,
        "isBlindAppend": mine.is_blind,
        "operationMetrics": {name: str(value) for name, value in _metrics(mine, vectors).items()},
        "engineInfo": ENGINE,
        "txnId": mine.txn_id,
        "tags": {**_tags(mine), **ids.tags},
    }
    if user is not None:
        info["userName"] = user
    if mine.base is not None:
        info["readVersion"] = mine.base.version
    said = mine.user_metadata if mine.user_metadata is not None else current().user_metadata
    if said is not None:
        info["userMetadata"] = said
    return info


def _tags(mine: Transaction) -> dict[str, str]:
    """What later writers may want to prove more with: the cut, what was read and how mine was carried over."""
    tags = {"anabranch.cut": str(mine.settled), "anabranch.carriedOver": ",".join(map(str, mine.carried))}
    if mine.reserved_for is not None:
        tags[RESERVED_FOR] = mine.reserved_for
    if mine.groups is not None:
        tags[moves.TAG] = moves.to_text(mine.groups)
    if mine.reads is not None:
        tags[READ] = mine.reads.condition.text
        tags["anabranch.rowLocal"] = str(mine.reads.row_local).lower()
    return {**tags, **mine.tags}


def _metrics(mine: Transaction, vectors: VectorFile) -> dict[str, int]:
    """The command's own metrics with those that depend on where mine stands, in Delta's names; a command that is judged
    by whole files alone has counted them itself.
    """
    if not mine.touched or "numRemovedFiles" in mine.metrics:
        return dict(mine.metrics)
    with_old = [path for path in mine.touched if mine.sources[path].row.get("deletionVector") is not None]
    kept = set(vectors.descriptors)
    gone = mine.touched - kept
    moved = {} if mine.groups is None else _metrics_of_moves(mine)
    return {
        **mine.metrics,
        **moved,
        "numRemovedFiles": len(gone),
        "numAddedFiles": len(mine.adds),
        "numRemovedBytes": sum(mine.sources[path].row["size"] for path in gone),
        "numAddedBytes": sum(mine.adds["size"].to_pylist()),
        "numDeletionVectorsAdded": len(kept),
        "numDeletionVectorsRemoved": len(with_old),
        "numDeletionVectorsUpdated": len(kept & set(with_old)),
        "numAddedChangeFiles": 0,
    }


def _metrics_of_moves(mine: Transaction) -> dict[str, int]:
    """What was moved, what was left out, and how large the files are into which it went."""
    groups = mine.groups or ()
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    sizes = sorted(mine.adds["size"].to_pylist())
    places = (0, len(sizes) // 4, len(sizes) // 2, len(sizes) * 3 // 4, len(sizes) - 1)
    return {
        **({name: sizes[place] for name, place in zip(names, places, strict=True)} if sizes else {}),
        "numCopiedRows": sum(each.records for group in groups for each in group.outputs),
        "numDeletionVectorRowsRemoved": sum(each.records - each.live for group in groups for each in group.sources),
    }


def _marked(row: FileRow, descriptor: Descriptor) -> FileRow:
    """The file with its new vector; its bounds may now be wider than its rows."""
    stats = row.get("stats")
    wide = with_wide_bounds(stats) if stats else stats
    return {**row, "deletionVector": descriptor.to_row(), "stats": wide}
