"""Moves rows unchanged to other files, for OPTIMIZE and REORG.

Knows batches of files, which its callers choose, how they are staged, and the record of where each row went.
Guarantees: the number of live rows stays the same, or nothing is committed; deleted rows are left out; the commit
declares that no data changed, and records, where it can, the new position of each row, so that neither it nor a
concurrent change of those rows has to fail because of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, files_table
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.layout.moves import Group, Origin, Output
from anabranch._protocol.layout.paths import decode, encode
from anabranch._protocol.materialised_partitions import folder_keys
from anabranch._protocol.partitions import hive_segment
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, ReadSet, Source, Transaction
from anabranch.commands.context import Progress, RunContext
from anabranch.commands.engine import Engine, Jobs
from anabranch.commands.opening import file_set
from anabranch.commands.rewriting import NO_ROW
from anabranch.commands.row_changes import WholeFilesHandler, count_rows, stage_and_commit, with_row_counts
from anabranch.commands.staging import Staging
from anabranch.errors import ExecutionFailed


@dataclass(frozen=True)
class Batch:
    """Files of one partition that are rewritten together: concatenated to one file, or along a curve to several. The
    new files get ``tags``.
    """

    files: pa.Table
    curve: Curve | None = None
    outputs: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Move:
    """Batches of a version's files to rewrite.

    Attributes:
        base: the version.
        batches: the batches; no file is in two of them.
        operation, parameters: operation and parameters in the history.
        provider: the ``clusteringProvider`` of the new files.
        most_rows: maximum number of rows of a batch whose moves are recorded if their order changes: the record holds
            an address for each row.
        workers: number of batches written at once.
    """

    base: Snapshot
    batches: Sequence[Batch]
    operation: str
    parameters: Mapping[str, str]
    provider: str | None = None
    most_rows: int = 0
    workers: int = 1

    def run(self, engine: Engine, log: Log, context: RunContext) -> CommitResult | None:
        """Run it and return its commit; None if there is nothing to do, or others moved all files meanwhile.

        Raises:
            DeltaConcurrentModificationException: the table's metadata or protocol was changed meanwhile.
            ExecutionFailed: the engine did not write exactly the live rows.
        """
        staging = Staging(log.store, str(context.runtime.new_id()))
        return stage_and_commit(MoveHandler(self, engine, staging, context.progress), log, context)[1]


class MoveHandler(WholeFilesHandler):
    """The handler of one move."""

    def __init__(self, move: Move, engine: Engine, staging: Staging, progress: Progress) -> None:
        super().__init__(NO_ROW, move.base, engine, staging)
        self._move, self._progress = move, progress

    def stage(self, runtime: Runtime) -> Transaction:
        """Write the batches. Raises ExecutionFailed unless the number of live rows stays the same."""
        began, move, snapshot = runtime.now_ms(), self._move, self._snapshot
        file_sets = [with_row_counts(snapshot, file_set(snapshot, batch.files)) for batch in move.batches]
        if file_sets:
            self._staging.start()
        self._write(file_sets)
        files = self._collect_new_files().to_pylist()
        parts = _by_batch(files, self._staging.folder, len(file_sets))
        origins = self._origins()
        groups = tuple(
            self._group(number, files_of_batch, parts[number], origins)
            for number, files_of_batch in enumerate(file_sets)
        )
        rows = [row for files_of_batch in file_sets for row in files_of_batch.files.to_pylist()]
        paths = frozenset(row["path"] for row in rows)
        ours = Transaction.on(
            snapshot,
            self._staging.txn_id,
            CommitInfo(move.operation, move.parameters, metrics={"executionTimeMs": runtime.now_ms() - began}),
            reads=ReadSet(NO_ROW, paths),
            changes=Changes(
                removes=paths,
                sources={row["path"]: Source(row, self.vector(row)) for row in rows},
                adds=files_table([self._with_tags(number, row) for number, part in enumerate(parts) for row in part]),
                data_change=False,
                groups=groups,
            ),
        )
        return self._with_steps(ours)

    def _write(self, file_sets: Sequence[FileSet]) -> None:
        self._progress("written", 0, len(file_sets))
        packed = self._pack_together(file_sets)
        if packed:
            self._progress("written", len(packed), len(file_sets))
        rest = [(number, files) for number, files in enumerate(file_sets) if number not in packed]
        written = _run_all(self._engine, [partial(self._write_one, *numbered) for numbered in rest], self._move.workers)
        for done, _ in enumerate(written, len(packed) + 1):
            self._progress("written", done, len(file_sets))

    def _pack_together(self, file_sets: Sequence[FileSet]) -> frozenset[int]:
        """Let the engine pack batches together; return the numbers of those that it packed."""
        numbers = [number for number, batch in enumerate(self._move.batches) if batch.curve is None]
        bins = [(file_sets[number], self._folder(number, file_sets[number])) for number in numbers]
        return frozenset(numbers[place] for place in self._engine.pack_together(bins))

    def _write_one(self, number: int, files: FileSet) -> None:
        batch, folder = self._move.batches[number], self._folder(number, files)
        if batch.curve is None:
            self._engine.pack(files, folder)
            return
        # Only deletion vectors need the record of where each row of a changed order went.
        is_recorded = self._snapshot.properties.vectors and count_rows(files.files) <= self._move.most_rows
        moves = f"{self._staging.folder}/{_MOVES}/{number:05d}" if is_recorded else None
        self._engine.cluster(files, batch.curve, batch.outputs, folder, moves)

    def _folder(self, number: int, files: FileSet) -> str:
        """The folder of a batch, with its partition's: no two Spark jobs may share one, so no two batches do."""
        (values,) = {tuple(pairs) for pairs in files.files["partitionValues"].to_pylist()}
        by_key, metadata = dict(values), self._metadata
        named = folder_keys(metadata, materialised=files.rules.materialised)
        keys = zip(named, metadata.partition_keys, strict=True)
        return "/".join(
            [self._staging.folder, f"{number:05d}", *(hive_segment(name, by_key[key]) for name, key in keys)]
        )

    def _origins(self) -> Mapping[str, str]:
        """The files that record where rows came from: batch and number of the output -> path."""
        folder = f"{self._staging.folder}/{_MOVES}/"
        names = [entry.name for entry in self._staging.store.list_all(folder) if entry.name.endswith(".parquet")]
        visible = [name for name in names if not name[len(folder) :].partition("/")[2].startswith(("_", "."))]
        self._staging.store.sync(visible)
        return {_key(name[len(folder) :]): encode(name) for name in visible}

    def _group(self, number: int, files: FileSet, outputs: Sequence[FileRow], origins: Mapping[str, str]) -> Group:
        batch, vectors = self._move.batches[number], files.vectors
        live = count_rows(files.files) - count_of(vectors)
        written = sum(num_records(row["stats"]) or 0 for row in outputs)
        if written != live or (batch.curve is None and len(outputs) > 1):
            reason = f"{live} rows were expected, but {written} were written, in {len(outputs)} files."
            raise ExecutionFailed(what=self._move.operation, reason=reason)
        sources = tuple(
            Origin(row["path"], num_records(row["stats"]) or 0, row["deletionVector"])
            for row in files.files.to_pylist()
        )
        inside = len(self._staging.folder) + 1
        paths_of_origins = {row["path"]: origins.get(_key(decode(row["path"])[inside:])) for row in outputs}
        written_files = tuple(
            Output(row["path"], num_records(row["stats"]) or 0, paths_of_origins[row["path"]]) for row in outputs
        )
        return Group(sources, written_files, batch.curve is None)

    def _with_tags(self, number: int, row: FileRow) -> FileRow:
        return {**row, "tags": dict(self._move.batches[number].tags) or None, "clusteringProvider": self._move.provider}


_MOVES = "_moves"
"""The hidden folder, inside the job folder, of the files that record where rows came from."""


def _run_all(engine: Jobs, acts: Sequence[Callable[[], None]], workers: int) -> Iterator[None]:
    """Run the acts and yield as each ends; on this thread if one worker suffices, so a test can stop it anywhere."""
    if workers <= 1 or len(acts) <= 1:
        for act in acts:
            yield act()
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda work: work(), [engine.for_other_thread(act) for act in acts])


def _by_batch(files: Iterable[FileRow], folder: str, count: int) -> list[list[FileRow]]:
    """The written files of each batch, in the order of the outputs."""
    parts: list[list[FileRow]] = [[] for _ in range(count)]
    for row in sorted(files, key=lambda row: row["path"]):
        parts[int(decode(row["path"])[len(folder) + 1 :].partition("/")[0])].append(row)
    return parts


def _key(name: str) -> str:
    """Batch and number of an output, which its file and the file of its origins share."""
    batch, _, rest = name.partition("/")
    return f"{batch}/{rest.rpartition('/')[2][: len('part-00000')]}"
