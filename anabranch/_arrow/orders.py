"""Writes the live rows of data files in the order of a curve, by Arrow, on an executor or in this process.

Imports pyarrow and numpy only, as `anabranch._arrow.files` does, and gives the same guarantees. It first reads the
columns of the curve from all files; then, for as many outputs as fit into memory together, the rows of these outputs,
until all are written. Threads share the files and the outputs. The order is that of
`anabranch._spark.writing.relocating` for the same rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._arrow.dictionaries import with_dictionaries
from anabranch._arrow.files import PLACE_BITS, Cancelled, check, live_batches, new_path, remove, write_batches
from anabranch._arrow.places import bounds_of, curve_places, output_bounds, shorten, sort_indexes, splits_of, xxhash64
from anabranch._protocol.unsupported import Unsupported

TAKEN_ROWS = 1 << 17
_SPARE = 0.9
"""Fraction of the memory that is planned for: rows of later files may be wider than those of the first."""
Output = tuple[int, str, str, int]
"""Number of an output, its path, the path of its origins (empty if none are recorded), and its number of rows."""


def write_along_curve(task: Mapping[str, Any]) -> list[Output]:
    """Write the live rows of the task's files along its curve, where no reader sees them.

    Args:
        task: as for `anabranch._arrow.files.write_packed_file`, and: ``keys``, the paths of the curve's columns;
            ``cells``, if there are several keys, the place of each cell on the curve, and ``bits``, the bits of a
            number in a cell; ``outputs``, the number of new files; ``every``, the interval at which rows are sampled
            to partition them into outputs; ``moves``, the folder for origins, or None; ``most_bytes``, the maximum
            memory for rows; ``threads``, the number of threads.

    Raises:
        Unsupported, or anything that Arrow or the system raises: nothing is left behind.
    """
    check(task)
    outputs: list[Output] = []
    try:
        with _Crew.of(task) as crew:
            order = _Order.of(task, crew)
            _write_all(order, {**with_dictionaries(task), **crew.call_off_entry}, crew, outputs)
    except BaseException:
        for _, *paths, _ in outputs:
            for path in filter(None, paths):
                remove(path)
        raise
    return sorted(outputs)


def running(task: Mapping[str, Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for Spark to map over a single row: it yields the rows of `write_along_curve`, or one row with the
    error.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            try:
                outputs: list[tuple[Any, ...]] = [(*output, None) for output in write_along_curve(task)]
            except Exception as error:
                outputs = [(-1, "", "", 0, type(error).__name__)]  # the error's text may contain values of rows
            names, types = ["number", "path", "moves", "rows", "refused"], [pa.int64(), pa.string(), pa.string()]
            columns = [list(values) for values in zip(*outputs, strict=True)] or [[]] * len(names)
            typed_columns = zip(columns, [*types, pa.int64(), pa.string()], strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(values, kind) for values, kind in typed_columns], names)

    return run


# -- threads -----------------------------------------------------------------------------------------------------------


class _Crew:
    """Threads that share the parts of one task. If one fails or the task is cancelled, all of them stop."""

    def __init__(self, pool: ThreadPoolExecutor, is_called_off: Callable[[], bool]) -> None:
        self._pool, self._is_called_off, self._stopped = pool, is_called_off, threading.Event()

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> _Crew:
        """A crew with the task's number of threads."""
        return cls(ThreadPoolExecutor(task["threads"], "anabranch-order"), task.get("is_called_off", bool))

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    @property
    def call_off_entry(self) -> dict[str, Any]:
        """The entry by which a task makes its parts stop."""
        return {"is_called_off": lambda: self._stopped.is_set() or self._is_called_off()}

    def go_on(self) -> None:
        """Allow further work after a failure."""
        self._stopped.clear()

    def all(self, act: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Results of all parts. After a failure no further part begins; the error is raised once none is running."""
        failed: list[BaseException] = []

        def one(part: Any) -> Any:
            if self._stopped.is_set():
                raise Cancelled
            try:
                return act(part)
            except BaseException as error:
                failed.append(error)
                self._stopped.set()  # in the thread that fails: the waiting thread may notice later
                raise

        futures = [self._pool.submit(one, part) for part in parts]
        try:
            wait(futures)
        except BaseException:
            self._stopped.set()
            wait(futures)
            raise
        if failed:
            raise failed[0]
        return [future.result() for future in futures]


class _MemoryBudget:
    """Memory budget that several threads share, in bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._lock, self.used = most, threading.Lock(), 0

    def take(self, size: int) -> None:
        """Reserve memory. Raises _Full if the budget is exceeded."""
        with self._lock:
            self.used += size
            if self.used > self._most:
                raise _Full("the rows exceed the memory limit")


class _Full(Unsupported):
    """The rows do not fit into the memory budget."""


# -- the order ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Keys:
    """For the live rows of one file: the curve's columns, their origins, and which rows are in the sample."""

    values: list[pa.Array]
    origins: Any
    is_chosen: Any

    @classmethod
    def of(cls, file: Mapping[str, Any], task: Mapping[str, Any], budget: _MemoryBudget) -> _Keys:
        batches, is_chosen = list[pa.RecordBatch](), [np.empty(0, dtype=bool)]
        for batch in live_batches({**task, "files": [file]}):
            budget.take(batch.nbytes)
            batches.append(batch)
            is_chosen.append(xxhash64(batch[task["origin"]].to_numpy()) % task["every"] == 0)
        rows = pa.Table.from_batches(batches, task["wanted"])
        origins = rows[task["origin"]].to_numpy()
        return cls([_at(rows, path) for path in task["keys"]], origins, np.concatenate(is_chosen))


@dataclass(frozen=True)
class _Order:
    """Indexes of all live rows in curve order, and where each output begins. For the rows in file order: the number of
    rows before each file, and the origin of each row.
    """

    rows: Any
    begins: Any
    files: Any
    origins: Any

    @classmethod
    def of(cls, task: Mapping[str, Any], crew: _Crew) -> _Order:
        """Sort the rows by the columns of the curve."""
        columns = {path[0] for path in task["keys"]} | {task["origin"]}
        wanted = pa.schema([field for field in task["wanted"] if field.name in columns])
        key_task = {**task, **crew.call_off_entry, "wanted": wanted, "hidden": None}
        budget = _MemoryBudget(task["most_bytes"])
        keys: list[_Keys] = crew.all(partial(_Keys.of, task=key_task, budget=budget), task["files"])
        sample = np.flatnonzero(np.concatenate([file_keys.is_chosen for file_keys in keys]))
        places, sample_values = _places(keys, task, crew)
        splits = splits_of(sample_values, task["outputs"])
        ends = np.cumsum([0, *(len(file_keys.origins) for file_keys in keys)])
        origins = None if task["moves"] is None else np.concatenate([file_keys.origins for file_keys in keys])
        rows = sort_indexes(places)
        return cls(
            rows, output_bounds(places, rows, sample_values.take(pa.array(splits)), sample[splits]), ends, origins
        )


def _places(keys: Sequence[_Keys], task: Mapping[str, Any], crew: _Crew) -> tuple[pa.Array, pa.Array]:
    """Sort keys of all rows and of the sample: values of the only column, or places on the curve."""
    columns = list(zip(*(file_keys.values for file_keys in keys), strict=True))
    masks = [pa.array(file_keys.is_chosen) for file_keys in keys]
    samples = ([part.filter(mask) for part, mask in zip(parts, masks, strict=True)] for parts in columns)
    sample_columns = [shorten(pa.concat_arrays(parts)) for parts in samples]
    if len(columns) == 1:
        return pa.concat_arrays(columns[0]), sample_columns[0]
    ranges = (1 << task["bits"]) - 1  # besides the one of NULL
    bounds, cells = [bounds_of(column, ranges) for column in sample_columns], task["cells"].to_numpy()
    curve_keys = crew.all(lambda file_keys: curve_places(file_keys.values, bounds, task["bits"], cells), keys)
    return pa.array(np.concatenate(curve_keys)), pa.array(curve_places(sample_columns, bounds, task["bits"], cells))


def _at(rows: pa.Table, path: Sequence[str]) -> pa.Array:
    column = rows[path[0]]
    values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [_none(column.type)])
    return values if len(path) == 1 else pc.struct_field(values, list(path[1:]))


def _none(kind: pa.DataType) -> pa.Array:
    return pa.array([], kind)


# -- rows --------------------------------------------------------------------------------------------------------------


def _write_all(order: _Order, task: Mapping[str, Any], crew: _Crew, outputs: list[Output]) -> None:
    """Write all outputs, as many at once as memory allows, which is estimated from the rows read so far."""
    at = task["wanted"].get_field_index(task["origin"])
    row_task = {key: value for key, value in task.items() if key != "origin"} | {"wanted": task["wanted"].remove(at)}
    first, last, width = 0, len(order.begins) - 1, _width_of(row_task)
    while first < last:
        end = _end_of_range(order.begins, first, task["most_bytes"] / width)
        try:
            rows, index, width = _rows(order, first, end, row_task, crew)
        except _Full:
            if end - first == 1:
                raise
            width *= 2
            crew.go_on()
            continue
        begin = order.begins[first]
        writing = partial(_write, order=order, rows=rows, index=index, at=begin, task=row_task, outputs=outputs)
        crew.all(writing, range(first, end))
        first = end


def _width_of(task: Mapping[str, Any]) -> float:
    """Estimated memory of a row, in bytes, from the first batch."""
    first = next(live_batches(task), None)
    return 1.0 if first is None else max(1.0, first.nbytes / len(first))


def _end_of_range(begins: Any, first: int, rows: float) -> int:
    """The end of the range of outputs, from `first`, whose rows fit together; it has at least one."""
    end = np.searchsorted(begins, begins[first] + int(rows * _SPARE), side="right") - 1
    return max(first + 1, int(end))


def _rows(
    order: _Order, first: int, end: int, task: Mapping[str, Any], crew: _Crew
) -> tuple[pa.RecordBatch, Any, float]:
    """The rows of some outputs, for each row in curve order its index among them, and the memory of a row in bytes."""
    index, mask = order.rows[order.begins[first] : order.begins[end]], None
    if len(index) < len(order.rows):
        mask = np.zeros(len(order.rows), dtype=bool)
        mask[index] = True
        index = (np.cumsum(mask, dtype=np.uint32) - np.uint32(1))[index]
    budget = _MemoryBudget(task["most_bytes"])
    reading = partial(_rows_of, order=order, mask=mask, task=task, budget=budget)
    batches = [batch for batches_of_file in crew.all(reading, range(len(task["files"]))) for batch in batches_of_file]
    columns = [[batch.column(at) for batch in batches] for at in range(len(task["wanted"]))]
    del batches
    return _combine_columns(columns, task["wanted"], crew), index, max(1.0, budget.used / max(1, len(index)))


def _rows_of(
    number: int, order: _Order, mask: Any, task: Mapping[str, Any], budget: _MemoryBudget
) -> list[pa.RecordBatch]:
    """The rows of one file that the mask selects."""
    filtered_batches, (at, end) = list[pa.RecordBatch](), order.files[number : number + 2]
    for batch in live_batches({**task, "files": [task["files"][number]]}):
        rows = batch if mask is None else batch.filter(pa.array(mask[at : at + len(batch)]))
        at += len(batch)
        budget.take(rows.nbytes)
        filtered_batches.append(rows)
    if at != end:
        raise Unsupported("a file has other rows than before")
    return filtered_batches


def _combine_columns(columns: list[list[pa.Array]], wanted: pa.Schema, crew: _Crew) -> pa.RecordBatch:
    """Concatenate each column; its parts are released as it completes, so that not all rows are in memory twice."""

    def combine(at: int) -> pa.Array:
        parts, columns[at] = columns[at], []
        return pa.concat_arrays(parts or [_none(wanted.field(at).type)])

    return pa.RecordBatch.from_arrays(crew.all(combine, range(len(columns))), schema=wanted)


def _write(
    number: int,
    order: _Order,
    rows: pa.RecordBatch,
    index: Any,
    at: int,
    task: Mapping[str, Any],
    outputs: list[Output],
) -> None:
    """Write an output, if it has rows, and their origins; ``at`` is the position of ``index`` in the order."""
    begin, end = order.begins[number : number + 2]
    if begin == end:
        return
    path = new_path(task["folder"])
    moves = "" if task["moves"] is None else new_path(task["moves"])
    outputs.append((number, path, moves, int(end - begin)))
    write_batches(path, task, _take_batches(rows, index[begin - at : end - at], task))
    if moves:
        _write_moves(moves, order.origins[order.rows[begin:end]])


def _take_batches(rows: pa.RecordBatch, index: Any, task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(index), TAKEN_ROWS):
        if task["is_called_off"]():
            raise Cancelled
        yield rows.take(pa.array(index[at : at + TAKEN_ROWS]))


def _write_moves(path: str, origins: Any) -> None:
    columns = {"source": (origins >> PLACE_BITS).astype(np.int32), "row": origins & ((1 << PLACE_BITS) - 1)}
    packed = {"use_dictionary": ["source"], "column_encoding": {"row": "DELTA_BINARY_PACKED"}}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False, **packed)
