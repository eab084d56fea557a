"""Writes the live rows of data files in the order of a curve, by Arrow, on an executor or here.

Imports pyarrow and numpy only, as `anabranch.spark.arrow_files`, whose guarantees hold here too. All rows are in memory
at once; more than that is refused. The order is that of `anabranch.spark.relocating`, for the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.spark.arrow_files import PLACE_BITS, Unlike, check, live, new_path, remove, written

SAMPLE_LENGTH = 1024
_TAKEN_ROWS = 1 << 17
_BY = [("is_known", "ascending"), ("key", "ascending"), ("origin", "ascending")]
Output = tuple[int, str, str, int]
"""The number of an output, its path, that of its origins (empty where nobody asks), and how many rows it has."""


def bounds_of(sample: pa.Array, ranges: int) -> pa.Array:
    """The lowest values of all ranges but the first, so that about as many of these values lie in each.

    NULL has the first range for itself.
    """
    values = sample.drop_null()
    ordered = values.take(pc.sort_indices(values))
    places = sorted({len(ordered) * i // ranges for i in range(1, ranges)} - {0}) if len(ordered) else []
    return pc.unique(ordered.take(pa.array(places, pa.int64())))


def ordered(task: Mapping[str, Any]) -> list[Output]:
    """Write the live rows of the task's files along its curve, where no reader sees them.

    Args:
        task: as for `anabranch.spark.arrow_files.attempted`, and: ``origin``, the name of the column of ``wanted`` that
            says where a row comes from; ``keys``, the paths of the curve's columns; ``cells``, for more than one of
            these the place of each cell on the curve, and ``bits``, those of a number in a cell; ``every``, of how many
            rows one is looked at to part them into so many ``outputs``; ``moves``, the folder for origins, or None;
            ``most_bytes``, how much memory rows may take.

    Raises:
        Unlike, or anything that Arrow or the system raises: nothing is left.
    """
    check(task)
    rows = _all_rows(task)
    order, outputs = _order(rows, task)
    made: list[Output] = []
    try:
        for number in range(task["outputs"]):
            begin, end = np.searchsorted(outputs, [number, number + 1])
            if begin < end:
                _write(number, rows, order[begin:end], task, made)
    except BaseException:
        for _, *paths, _ in made:
            for path in filter(None, paths):
                remove(path)
        raise
    return made


def running(task: Mapping[str, Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark maps over a single row: what `ordered` gave, or one row that says why it gave nothing."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            try:
                found: list[tuple[Any, ...]] = [(*each, None) for each in ordered(task)]
            except Exception as error:
                found = [(-1, "", "", 0, type(error).__name__)]  # its words may hold values of rows
            names, types = ["number", "path", "moves", "rows", "refused"], [pa.int64(), pa.string(), pa.string()]
            columns = [list(each) for each in zip(*found, strict=True)] or [[]] * len(names)
            both = zip(columns, [*types, pa.int64(), pa.string()], strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(each, kind) for each, kind in both], names)

    return run


def _all_rows(task: Mapping[str, Any]) -> pa.Table:
    batches, held = list[pa.RecordBatch](), 0
    for batch in live(task):
        batches.append(batch)
        held += batch.nbytes
        if held > task["most_bytes"]:
            raise Unlike("there are more rows than may be in memory")
    return pa.Table.from_batches(batches, task["wanted"]).combine_chunks()


def _write(number: int, rows: pa.Table, order: Any, task: Mapping[str, Any], made: list[Output]) -> None:
    stored = rows.drop_columns([task["origin"]])
    path = new_path(task["folder"])
    moves = "" if task["moves"] is None else new_path(task["moves"])
    made.append((number, path, moves, len(order)))
    parts = (order[i : i + _TAKEN_ROWS] for i in range(0, len(order), _TAKEN_ROWS))
    taken = (batch for part in parts for batch in stored.take(pa.array(part)).combine_chunks().to_batches())
    written(path, {**task, "wanted": stored.schema}, taken)
    if moves:
        came = rows[task["origin"]].to_numpy()[order]
        columns = {"source": (came >> PLACE_BITS).astype(np.int32), "row": came & ((1 << PLACE_BITS) - 1)}
        pq.write_table(pa.table(columns), moves, compression="zstd", store_schema=False)


# -- the order ---------------------------------------------------------------------------------------------------------


def _order(rows: pa.Table, task: Mapping[str, Any]) -> tuple[Any, Any]:
    """The indexes of all rows in their order, and the number of the output of each."""
    origin = _whole(rows[task["origin"]])
    values = [_at(rows, path) for path in task["keys"]]
    chosen = pa.array(_hashed(origin.to_numpy()) % task["every"] == 0)
    looked_at = [_short(each.filter(chosen)) for each in values]
    if len(values) == 1:
        key, sample_key = values[0], looked_at[0]
    else:
        ranges = (1 << task["bits"]) - 1  # besides the one of NULL
        bounds = [bounds_of(each, ranges) for each in looked_at]
        key, sample_key = (_placed(several, bounds, task) for several in (values, looked_at))
    sample = pa.table({"key": sample_key, "origin": origin.filter(chosen)})
    return _parted(pa.table({"key": key, "origin": origin}), _splits(sample, task["outputs"]))


def _splits(sample: pa.Table, outputs: int) -> pa.Table:
    """Where all outputs but the first begin, with equal shares of the sample between them."""
    starts = sorted({len(sample) * i // outputs for i in range(1, outputs)} - {0})
    return sample.take(_sorted(sample)).take(pa.array(starts, pa.int64()))


def _parted(keys: pa.Table, splits: pa.Table) -> tuple[Any, Any]:
    """A stable sort, in which a split comes before the row that is at its place."""
    order = _sorted(pa.concat_tables([splits, keys])).to_numpy()
    is_split = order < len(splits)
    return order[~is_split].astype(np.int64) - len(splits), np.cumsum(is_split)[~is_split]


def _sorted(keys: pa.Table) -> pa.Array:
    """The indexes of these keys in their order, NULLs first; keys that are alike stay as they are."""
    known = keys.append_column("is_known", keys["key"].is_valid())
    return pc.sort_indices(known.combine_chunks(), sort_keys=_BY)


def _placed(values: Sequence[pa.Array], bounds: Sequence[pa.Array], task: Mapping[str, Any]) -> pa.Array:
    """The places of rows on the curve."""
    numbers = [_range_numbers(*both) for both in zip(values, bounds, strict=True)]
    cell = reduce(lambda left, right: left << task["bits"] | right, numbers)
    return task["cells"].take(pa.array(cell))


def _range_numbers(values: pa.Array, bounds: pa.Array) -> Any:
    """The number of each value's range; that of NULL is 0."""
    order = pc.sort_indices(pa.concat_arrays([bounds, values.drop_null()])).to_numpy()  # stable, as above
    reached = np.empty(len(order), np.int64)
    reached[order] = np.cumsum(order < len(bounds))
    found = np.zeros(len(values), np.int64)
    found[values.is_valid().to_numpy(zero_copy_only=False)] = reached[len(bounds) :] + 1
    return found


def _at(rows: pa.Table, path: Sequence[str]) -> pa.Array:
    found = _whole(rows[path[0]])
    return found if len(path) == 1 else pc.struct_field(found, list(path[1:]))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _short(values: pa.Array) -> pa.Array:
    """Long texts by their beginnings, which part the others about as well."""
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, SAMPLE_LENGTH)
    return pc.binary_slice(values, 0, SAMPLE_LENGTH) if pa.types.is_binary(values.type) else values


# -- the sample --------------------------------------------------------------------------------------------------------

_P = [np.uint64(each) for each in (0, 11400714785074694791, 14029467366897019727, 1609587929392839161)]
_P4, _P5, _SEED = np.uint64(9650029242287828579), np.uint64(2870177450012600261), np.uint64(42)


def _hashed(values: Any) -> Any:
    """What Spark's ``xxhash64`` makes of numbers, so that both look at the same rows."""
    with np.errstate(over="ignore"):
        mixed = _turned(values.astype(np.uint64) * _P[2], 31) * _P[1]
        found = _turned((_SEED + _P5 + np.uint64(8)) ^ mixed, 27) * _P[1] + _P4
        for shift, factor in ((33, _P[2]), (29, _P[3]), (32, np.uint64(1))):
            found = (found ^ (found >> np.uint64(shift))) * factor
    return found.astype(np.int64)


def _turned(values: Any, bits: int) -> Any:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)
