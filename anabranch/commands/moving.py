"""Moving: rows written to other files as they are, as OPTIMIZE and REORG do.

Knows batches of files chosen by others, how they are staged, and the record of where each row went. Guarantees: not a
row comes or goes, or nothing is committed; deleted rows are left out; the commit says that no data changed, and, where
it can, where each row is now, so that neither it nor a change of those rows ever has to fail because of the other.
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
from anabranch._protocol.iceberg import folder_keys
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.layout.moves import Group, Origin, Output
from anabranch._protocol.layout.paths import decode, encode
from anabranch._protocol.partitions import hive_segment
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.commit import Committed
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, ReadSet, Source, Transaction
from anabranch.commands.context import Progress, RunContext
from anabranch.commands.engine import Engine, Jobs
from anabranch.commands.opening import file_set
from anabranch.commands.rewriting import NO_ROW
from anabranch.commands.row_changes import WholeFilesHandler, rows_of, stage_and_commit, with_counts
from anabranch.commands.staging import Staging
from anabranch.errors import ExecutionFailed


@dataclass(frozen=True)
class Batch:
    """Files of one partition that are written anew together: one behind the other as one file, or along a curve as
    several. ``tags`` are given to what is written.
    """

    files: pa.Table
    curve: Curve | None = None
    outputs: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Move:
    """Batches of a version's files that are to be written anew.

    Attributes:
        base: the version.
        batches: no file is in two of them.
        operation, parameters: the commit's names in the history.
        provider: what the log is to say of who has laid out the files (``clusteringProvider``).
        most_rows: a batch with more rows is not recorded where its order changes, since the record holds an address for
            each.
        workers: how many batches are written at once.
    """

    base: Snapshot
    batches: Sequence[Batch]
    operation: str
    parameters: Mapping[str, str]
    provider: str | None = None
    most_rows: int = 0
    workers: int = 1

    def run(self, engine: Engine, log: Log, context: RunContext) -> Committed | None:
        """Run it: where it stands; None where there is nothing to do, or others have moved all of it meanwhile.

        Raises:
            DeltaConcurrentModificationException: the table's metadata or protocol was changed meanwhile.
            ExecutionFailed: the engine did not write the rows that it was to write.
        """
        staging = Staging(log.store, str(context.runtime.new_id()))
        return stage_and_commit(MoveHandler(self, engine, staging, context.progress), log, context)[1]


class MoveHandler(WholeFilesHandler):
    """The handler of one move."""

    def __init__(self, move: Move, engine: Engine, staging: Staging, progress: Progress) -> None:
        super().__init__(NO_ROW, move.base, engine, staging)
        self._move, self._progress = move, progress

    def stage(self, runtime: Runtime) -> Transaction:
        """Write the batches, and hold that not a row came or went."""
        began, move, snapshot = runtime.now_ms(), self._move, self._snapshot
        chosen = [with_counts(snapshot, file_set(snapshot, batch.files)) for batch in move.batches]
        if chosen:
            self._staging.start()
        self._write(chosen)
        files = self._collect_new_files().to_pylist()
        parts = _by_batch(files, self._staging.folder, len(chosen))
        origins = self._origins()
        groups = tuple(self._group(i, each, parts[i], origins) for i, each in enumerate(chosen))
        rows = [row for each in chosen for row in each.files.to_pylist()]
        paths = frozenset(row["path"] for row in rows)
        ours = Transaction.on(
            snapshot,
            self._staging.txn_id,
            CommitInfo(move.operation, move.parameters, metrics={"executionTimeMs": runtime.now_ms() - began}),
            reads=ReadSet(NO_ROW, paths),
            does=Changes(
                removes=paths,
                sources={row["path"]: Source(row, self.vector(row)) for row in rows},
                adds=files_table([self._with_tags(i, row) for i, part in enumerate(parts) for row in part]),
                data_change=False,
                groups=groups,
            ),
        )
        return self._with_steps(ours)

    def _write(self, chosen: Sequence[FileSet]) -> None:
        self._progress("written", 0, len(chosen))
        packed = self._pack_together(chosen)
        if packed:
            self._progress("written", len(packed), len(chosen))
        rest = [(number, files) for number, files in enumerate(chosen) if number not in packed]
        written = _run_acts(self._engine, [partial(self._write_one, *each) for each in rest], self._move.workers)
        for done, _ in enumerate(written, len(packed) + 1):
            self._progress("written", done, len(chosen))

    def _pack_together(self, chosen: Sequence[FileSet]) -> frozenset[int]:
        """The batches that the engine has packed at once."""
        numbers = [number for number, batch in enumerate(self._move.batches) if batch.curve is None]
        bins = [(chosen[number], self._folder(number, chosen[number])) for number in numbers]
        return frozenset(numbers[place] for place in self._engine.pack_together(bins))

    def _write_one(self, number: int, files: FileSet) -> None:
        batch, folder = self._move.batches[number], self._folder(number, files)
        if batch.curve is None:
            self._engine.pack(files, folder)
            return
        # Where each row of an order went is kept for marks alone.
        kept = self._snapshot.properties.vectors and rows_of(files.files) <= self._move.most_rows
        moves = f"{self._staging.folder}/{_MOVES}/{number:05d}" if kept else None
        self._engine.cluster(files, batch.curve, batch.outputs, folder, moves)

    def _folder(self, number: int, files: FileSet) -> str:
        """The partition's own folder of a batch: no two batches share one, as no two jobs of Spark may."""
        (values,) = {tuple(each) for each in files.files["partitionValues"].to_pylist()}
        by_key, metadata = dict(values), self._metadata
        keys = zip(folder_keys(metadata), metadata.partition_keys, strict=True)
        return "/".join(
            [self._staging.folder, f"{number:05d}", *(hive_segment(name, by_key[key]) for name, key in keys)]
        )

    def _origins(self) -> Mapping[str, str]:
        """The files that say where rows came from: batch and number of the output -> path."""
        folder = f"{self._staging.folder}/{_MOVES}/"
        names = [entry.name for entry in self._staging.store.list_all(folder) if entry.name.endswith(".parquet")]
        visible = [name for name in names if not name[len(folder) :].partition("/")[2].startswith(("_", "."))]
        self._staging.store.sync(visible)
        return {_key(name[len(folder) :]): encode(name) for name in visible}

    def _group(self, number: int, files: FileSet, outputs: Sequence[FileRow], origins: Mapping[str, str]) -> Group:
        batch, vectors = self._move.batches[number], files.vectors
        live = rows_of(files.files) - count_of(vectors)
        written = sum(num_records(row["stats"]) or 0 for row in outputs)
        if written != live or (batch.curve is None and len(outputs) > 1):
            reason = f"{live} rows were to be kept, but {written} were written, in {len(outputs)} files."
            raise ExecutionFailed(what=self._move.operation, reason=reason)
        sources = tuple(
            Origin(row["path"], num_records(row["stats"]) or 0, row["deletionVector"])
            for row in files.files.to_pylist()
        )
        inside = len(self._staging.folder) + 1
        known = {row["path"]: origins.get(_key(decode(row["path"])[inside:])) for row in outputs}
        told = tuple(Output(row["path"], num_records(row["stats"]) or 0, known[row["path"]]) for row in outputs)
        return Group(sources, told, batch.curve is None)

    def _with_tags(self, number: int, row: FileRow) -> FileRow:
        return {**row, "tags": dict(self._move.batches[number].tags) or None, "clusteringProvider": self._move.provider}


_MOVES = "_moves"
"""The hidden folder, in that of the job, of what says where rows came from."""


def _run_acts(engine: Jobs, acts: Sequence[Callable[[], None]], workers: int) -> Iterator[None]:
    """Each act as it is done; on this thread where one worker is enough, so that a test may stop it anywhere."""
    if workers <= 1 or len(acts) <= 1:
        for act in acts:
            yield act()
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda carried: carried(), [engine.for_other_thread(act) for act in acts])


def _by_batch(files: Iterable[FileRow], folder: str, count: int) -> list[list[FileRow]]:
    """What was written, for each batch, in the order of the outputs."""
    parts: list[list[FileRow]] = [[] for _ in range(count)]
    for row in sorted(files, key=lambda row: row["path"]):
        parts[int(decode(row["path"])[len(folder) + 1 :].partition("/")[0])].append(row)
    return parts


def _key(name: str) -> str:
    """Batch and number of an output: what its file and the file of its origins have in common."""
    batch, _, rest = name.partition("/")
    return f"{batch}/{rest.rpartition('/')[2][: len('part-00000')]}"
