"""Writes the live rows of data files in the order of a curve, by Arrow, on an executor or here.

Imports pyarrow and numpy only, as `anabranch._arrow.files`, whose guarantees hold here too. The files are read for
the columns of the curve first, and then for the rows of as many outputs as fit into memory together, again and again.
Threads share the files, and the outputs. The order is that of `anabranch._spark.writing.relocating`, for the same rows.
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
from anabranch._arrow.files import PLACE_BITS, CalledOff, check, live, new_path, remove, write_batches
from anabranch._arrow.places import begins, bounds_of, curve_places, short, sort_indexes, splits_of, xxhash64
from anabranch._protocol.unsupported import Unsupported

TAKEN_ROWS = 1 << 17
_SPARE = 0.9
"""Rows of later files may be wider than those of the first."""
Output = tuple[int, str, str, int]
"""The number of an output, its path, that of its origins (empty where nobody asks), and how many rows it has."""


def write_along_curve(task: Mapping[str, Any]) -> list[Output]:
    """Write the live rows of the task's files along its curve, where no reader sees them.

    Args:
        task: as for `anabranch._arrow.files.write_packed_file`, and: ``keys``, the paths of the curve's columns;
            ``cells``, for more than one of these the place of each cell on the curve, and ``bits``, those of a number
            in a cell; ``every``, of how many rows one is looked at to part them into so many ``outputs``; ``moves``,
            the folder for origins, or None; ``most_bytes``, how much memory rows may take; ``threads``, how many.

    Raises:
        Unsupported, or anything that Arrow or the system raises: nothing is left.
    """
    check(task)
    made: list[Output] = []
    try:
        with _Crew.of(task) as crew:
            order = _Order.of(task, crew)
            _write_all(order, {**with_dictionaries(task), **crew.call_off_entry}, crew, made)
    except BaseException:
        for _, *paths, _ in made:
            for path in filter(None, paths):
                remove(path)
        raise
    return sorted(made)


def running(task: Mapping[str, Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark maps over a single row: what `write_along_curve` gave, or one row that says why it gave nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            try:
                found: list[tuple[Any, ...]] = [(*each, None) for each in write_along_curve(task)]
            except Exception as error:
                found = [(-1, "", "", 0, type(error).__name__)]  # its words may hold values of rows
            names, types = ["number", "path", "moves", "rows", "refused"], [pa.int64(), pa.string(), pa.string()]
            columns = [list(each) for each in zip(*found, strict=True)] or [[]] * len(names)
            both = zip(columns, [*types, pa.int64(), pa.string()], strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(each, kind) for each, kind in both], names)

    return run


# -- threads -----------------------------------------------------------------------------------------------------------


class _Crew:
    """Threads that share the parts of one task; where one fails, or this one is interrupted, all of them stop."""

    def __init__(self, pool: ThreadPoolExecutor, is_called_off: Callable[[], bool]) -> None:
        self._pool, self._is_called_off, self._stopped = pool, is_called_off, threading.Event()

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> _Crew:
        """As many as the task says."""
        return cls(ThreadPoolExecutor(task["threads"], "anabranch-order"), task.get("is_called_off", bool))

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    @property
    def call_off_entry(self) -> dict[str, Any]:
        """What a task says so that its parts stop."""
        return {"is_called_off": lambda: self._stopped.is_set() or self._is_called_off()}

    def go_on(self) -> None:
        """Do not stop, although one failed."""
        self._stopped.clear()

    def all(self, act: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """What came of each part. Once one fails no other begins, and its error is raised when none runs any more."""
        failed: list[BaseException] = []

        def one(part: Any) -> Any:
            if self._stopped.is_set():
                raise CalledOff
            try:
                return act(part)
            except BaseException as error:
                failed.append(error)
                self._stopped.set()  # here, and not by who waits: it may come late to it
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
        return [each.result() for each in futures]


class _Room:
    """How much memory several threads may take together."""

    def __init__(self, most: int) -> None:
        self._most, self._lock, self.held = most, threading.Lock(), 0

    def take(self, size: int) -> None:
        """Take some of it. Raises _Full: there is not so much."""
        with self._lock:
            self.held += size
            if self.held > self._most:
                raise _Full("the rows take more memory than they may")


class _Full(Unsupported):
    """There are more rows than may be in memory."""


# -- the order ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Keys:
    """Of the live rows of one file: the curve's columns, where the rows came from, and which are in the sample."""

    values: list[pa.Array]
    origins: Any
    is_chosen: Any

    @classmethod
    def of(cls, file: Mapping[str, Any], task: Mapping[str, Any], room: _Room) -> _Keys:
        batches, is_chosen = list[pa.RecordBatch](), [np.empty(0, dtype=bool)]
        for batch in live({**task, "files": [file]}):
            room.take(batch.nbytes)
            batches.append(batch)
            is_chosen.append(xxhash64(batch[task["origin"]].to_numpy()) % task["every"] == 0)
        rows = pa.Table.from_batches(batches, task["wanted"])
        origins = rows[task["origin"]].to_numpy()
        return cls([_at(rows, path) for path in task["keys"]], origins, np.concatenate(is_chosen))


@dataclass(frozen=True)
class _Order:
    """The indexes of all live rows in their order, and where each output begins; of the rows as they are listed, how
    many are before each file, and where each came from.
    """

    rows: Any
    begins: Any
    files: Any
    origins: Any

    @classmethod
    def of(cls, task: Mapping[str, Any], crew: _Crew) -> _Order:
        """The order, by what is in the columns of the curve."""
        columns = {path[0] for path in task["keys"]} | {task["origin"]}
        wanted = pa.schema([field for field in task["wanted"] if field.name in columns])
        told, room = {**task, **crew.call_off_entry, "wanted": wanted, "hidden": None}, _Room(task["most_bytes"])
        keys: list[_Keys] = crew.all(partial(_Keys.of, task=told, room=room), task["files"])
        sample = np.flatnonzero(np.concatenate([each.is_chosen for each in keys]))
        places, looked_at = _places(keys, task, crew)
        splits = splits_of(looked_at, task["outputs"])
        ends = np.cumsum([0, *(len(each.origins) for each in keys)])
        origins = None if task["moves"] is None else np.concatenate([each.origins for each in keys])
        rows = sort_indexes(places)
        return cls(rows, begins(places, rows, looked_at.take(pa.array(splits)), sample[splits]), ends, origins)


def _places(keys: Sequence[_Keys], task: Mapping[str, Any], crew: _Crew) -> tuple[pa.Array, pa.Array]:
    """What rows are ordered by, of all of them and of the sample: a value, or a place on the curve."""
    values = list(zip(*(each.values for each in keys), strict=True))
    looked_at = [
        short(pa.concat_arrays([part.filter(pa.array(each.is_chosen)) for part, each in zip(parts, keys, strict=True)]))
        for parts in values
    ]
    if len(values) == 1:
        return pa.concat_arrays(values[0]), looked_at[0]
    ranges = (1 << task["bits"]) - 1  # besides the one of NULL
    bounds, cells = [bounds_of(each, ranges) for each in looked_at], task["cells"].to_numpy()
    found = crew.all(lambda each: curve_places(each.values, bounds, task["bits"], cells), keys)
    return pa.array(np.concatenate(found)), pa.array(curve_places(looked_at, bounds, task["bits"], cells))


def _at(rows: pa.Table, path: Sequence[str]) -> pa.Array:
    column = rows[path[0]]
    found = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [_none(column.type)])
    return found if len(path) == 1 else pc.struct_field(found, list(path[1:]))


def _none(kind: pa.DataType) -> pa.Array:
    return pa.array([], kind)


# -- rows --------------------------------------------------------------------------------------------------------------


def _write_all(order: _Order, task: Mapping[str, Any], crew: _Crew, made: list[Output]) -> None:
    """Write all outputs, as many at once as have room: how many that is, the rows tell that were read before."""
    at = task["wanted"].get_field_index(task["origin"])
    told = {key: value for key, value in task.items() if key != "origin"} | {"wanted": task["wanted"].remove(at)}
    first, last, width = 0, len(order.begins) - 1, _width_of(told)
    while first < last:
        end = _fitting(order.begins, first, task["most_bytes"] / width)
        try:
            rows, index, width = _rows(order, first, end, told, crew)
        except _Full:
            if end - first == 1:
                raise
            width *= 2
            crew.go_on()
            continue
        begin = order.begins[first]
        writing = partial(_write, order=order, rows=rows, index=index, at=begin, task=told, made=made)
        crew.all(writing, range(first, end))
        first = end


def _width_of(task: Mapping[str, Any]) -> float:
    """How much memory a row takes, by the first ones."""
    first = next(live(task), None)
    return 1.0 if first is None else max(1.0, first.nbytes / len(first))


def _fitting(begins: Any, first: int, rows: float) -> int:
    """The output before which those end that have room for their rows together, at least one."""
    end = np.searchsorted(begins, begins[first] + int(rows * _SPARE), side="right") - 1
    return max(first + 1, int(end))


def _rows(
    order: _Order, first: int, end: int, task: Mapping[str, Any], crew: _Crew
) -> tuple[pa.RecordBatch, Any, float]:
    """The rows of some outputs, the index among them of each row in its order, and how much memory a row takes."""
    index, kept = order.rows[order.begins[first] : order.begins[end]], None
    if len(index) < len(order.rows):
        kept = np.zeros(len(order.rows), dtype=bool)
        kept[index] = True
        index = (np.cumsum(kept, dtype=np.uint32) - np.uint32(1))[index]
    room = _Room(task["most_bytes"])
    reading = partial(_rows_of, order=order, kept=kept, task=task, room=room)
    batches = [batch for each in crew.all(reading, range(len(task["files"]))) for batch in each]
    columns = [[batch.column(at) for batch in batches] for at in range(len(task["wanted"]))]
    del batches
    return _combine_columns(columns, task["wanted"], crew), index, max(1.0, room.held / max(1, len(index)))


def _rows_of(number: int, order: _Order, kept: Any, task: Mapping[str, Any], room: _Room) -> list[pa.RecordBatch]:
    """Those rows of one file that are kept."""
    found, (at, end) = list[pa.RecordBatch](), order.files[number : number + 2]
    for batch in live({**task, "files": [task["files"][number]]}):
        rows = batch if kept is None else batch.filter(pa.array(kept[at : at + len(batch)]))
        at += len(batch)
        room.take(rows.nbytes)
        found.append(rows)
    if at != end:
        raise Unsupported("a file has other rows than before")
    return found


def _combine_columns(columns: list[list[pa.Array]], wanted: pa.Schema, crew: _Crew) -> pa.RecordBatch:
    """Each column in one piece; its parts are let go when it is done, so that not all rows are there twice."""

    def combine(at: int) -> pa.Array:
        parts, columns[at] = columns[at], []
        return pa.concat_arrays(parts or [_none(wanted.field(at).type)])

    return pa.RecordBatch.from_arrays(crew.all(combine, range(len(columns))), schema=wanted)


def _write(
    number: int, order: _Order, rows: pa.RecordBatch, index: Any, at: int, task: Mapping[str, Any], made: list[Output]
) -> None:
    """Write an output, if it has rows, and where these came from; ``at`` is where ``index`` begins in the order."""
    begin, end = order.begins[number : number + 2]
    if begin == end:
        return
    path = new_path(task["folder"])
    moves = "" if task["moves"] is None else new_path(task["moves"])
    made.append((number, path, moves, int(end - begin)))
    write_batches(path, task, _take_batches(rows, index[begin - at : end - at], task))
    if moves:
        _write_moves(moves, order.origins[order.rows[begin:end]])


def _take_batches(rows: pa.RecordBatch, index: Any, task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(index), TAKEN_ROWS):
        if task["is_called_off"]():
            raise CalledOff
        yield rows.take(pa.array(index[at : at + TAKEN_ROWS]))


def _write_moves(path: str, origins: Any) -> None:
    columns = {"source": (origins >> PLACE_BITS).astype(np.int32), "row": origins & ((1 << PLACE_BITS) - 1)}
    packed = {"use_dictionary": ["source"], "column_encoding": {"row": "DELTA_BINARY_PACKED"}}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False, **packed)
