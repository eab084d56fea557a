"""Moves live rows, unchanged, into other files of their partition, in a fixed order.

Knows how Spark reads, sorts and writes. Knows nothing of versions or conflicts. Guarantees: rows keep their ids; a sort
by their old addresses fixes the order of the rows in each file, in whatever order Spark reads them, however it splits
the files, and however often it runs a task; the same files give the same outcome.

All files share their partition values, and ``folder`` is a folder of that partition that no other job uses. Spark does
not partition the rows itself, since it would sort them for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._arrow.clustering import leading, sampling_interval
from anabranch._arrow.files import PLACE_BITS
from anabranch._arrow.places import SAMPLE_LENGTH, bounds_of
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.layout.curves import ORIGINS, Curve, bits_per_column
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.assignments import find_path
from anabranch._protocol.schema.editing import field_at
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.curves import Steps, count_bounds_up_to, in_plan, place_on, ranges_of
from anabranch._spark.columns.types import arrow_rows, column
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.paths import spark_root
from anabranch._spark.reading.raw_rows import open_files
from anabranch._spark.reading.row_ids import names_of
from anabranch._spark.reading.row_positions import with_facts
from anabranch._spark.sessions import timestamps
from anabranch._spark.writing.write import write_files, write_options
from anabranch.errors import UnknownColumn

_TOKENS_ASKED = 16
_WHOLE = {"maxRecordsPerFile": "0"}
"""Writer options for one file per task, whatever the session's settings."""


def pack(spark: SparkSession, files: FileSet, folder: str) -> None:
    """Write the live rows of these files as one file: file by file in the given order, the rows of each in their
    order.

    Args:
        files: the files, which share their partition values.
        folder: a folder of that partition in the table, which no other job writes to.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        ExecutionFailed: some row cannot be read or written.
    """
    with translate_errors("the rows to pack", files.root):
        live = _live(spark, files)
        # One task, and no shuffle: each task sorts what it reads.
        _write(spark, files, live.rows.coalesce(1).sortWithinPartitions(live.origin), folder)


def cluster(spark: SparkSession, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
    """Write the live rows of these files in the order of a curve, as at most ``outputs`` files of about the same number
    of rows.

    The n-th file's name begins with ``part-`` and five digits, n from 0. Rows at one place of the curve keep their
    order: file by file, the rows of each in their order.

    Args:
        files: the files, which share their partition values.
        curve: the order.
        outputs: maximum number of files.
        folder: as for `pack`.
        moves: another such folder, for files with the same numbers that hold
            `anabranch._protocol.layout.curves.ORIGINS`, row by row; None if origins are not needed.

    Raises:
        UnknownColumn: the curve names a column that does not exist.
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        ExecutionFailed: some row cannot be read or written.
    """
    with translate_errors("the rows to cluster", files.root):
        order = _Order.of(spark, files, curve, outputs)
        _write(spark, files, order.sort_rows(spark, files), folder)
        if moves is not None:
            _write_origins(spark, files, order.sort_rows(spark, files), moves)


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Live:
    """The live rows of some files, and the column with their origins."""

    rows: DataFrame
    origin: Column


def _live(spark: SparkSession, files: FileSet) -> _Live:
    opened = open_files(spark, files, ids=True)
    if files.vectors:
        opened, deleted = opened.with_mark_flag(files.vectors)
        opened = replace(opened, rows=opened.rows.filter(~deleted))
    shown = [file_place.shown for file_place in opened.places]
    rows, (place,) = with_facts(
        spark, opened.rows, opened.file, shown, {"place": pa.array(range(len(shown)), pa.int64())}
    )
    origin = _origin_name(files)
    joined = F.shiftleft(column(place), PLACE_BITS).bitwiseOR(column(opened.address.row))
    return _Live(rows.select(*map(column, _names_to_keep(files)), joined.alias(origin)), column(origin))


def _names_to_keep(files: FileSet) -> tuple[str, ...]:
    return (*files.schema.names, *names_of(files))


def _origin_name(files: FileSet) -> str:
    return free_name("__anabranch_origin", _names_to_keep(files))


def _write(spark: SparkSession, files: FileSet, rows: DataFrame, folder: str) -> None:
    """Write the columns of the partition's files, without the origin; the folder is the partition's."""
    partition_fields = [files.schema.field(name) for name in files.partition_columns]
    non_partition = [field for field in files.with_ids.schema if field not in partition_fields]
    stored = Struct((*non_partition, *(partition_fields if files.rules.materialised else ())))
    write_files(spark, rows, stored, (), files.root, folder, files.rules, _WHOLE)


def _write_origins(spark: SparkSession, files: FileSet, rows: DataFrame, folder: str) -> None:
    origin, (source, row) = column(_origin_name(files)), ORIGINS.names
    origin_columns = [
        F.shiftright(origin, PLACE_BITS).cast("int").alias(source),
        origin.bitwiseAND(F.lit((1 << PLACE_BITS) - 1)).alias(row),
    ]
    writer = rows.select(*origin_columns).write.mode("append").options(**write_options(), **_WHOLE, compression="zstd")
    with timestamps.in_micros(spark):
        writer.parquet(f"{spark_root(spark, files.root)}/{folder}")


# -- the order ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Order:
    """A total order over rows, split into outputs: by these keys, then by the origin of a row.

    ``bounds``: bounds of the ranges of each column's values; None for a single column, whose values are the order.
    ``splits``: where all outputs but the first begin, as keys and origins, in ascending order. ``tokens``: for each
    output a value that Spark's hash partitioning sends to the task with its number.
    """

    curve: Curve
    bounds: tuple[pa.Array, ...] | None
    splits: pa.Array
    tokens: tuple[int, ...]

    @classmethod
    def of(cls, spark: SparkSession, files: FileSet, curve: Curve, outputs: int) -> _Order:
        """The order of these files' rows, split so that each output has about the same number of them."""
        sample = _sample(spark, files, curve, outputs)
        arrays = [sample.column(i).combine_chunks() for i in range(sample.num_columns - 1)]
        ranges = (1 << bits_per_column(len(arrays))) - 1  # besides the one of NULL
        bounds = tuple(bounds_of(values, ranges) for values in arrays) if len(arrays) > 1 else None
        order = cls(curve, bounds, pa.array([]), ())
        splits = order._splits_of(spark, sample, outputs)
        return replace(order, splits=splits, tokens=_tokens(spark, len(splits) + 1))

    def sort_rows(self, spark: SparkSession, files: FileSet) -> DataFrame:
        """The rows in this order, the n-th output in the n-th task."""
        live = _live(spark, files)
        steps = Steps(live.rows)
        keys = self._keys(spark, steps, [_value(files, name) for name in leading(self.curve)])
        output = steps.add_step(self._output(spark, steps, _place(keys, live.origin)))
        # As bigints, like those that the hash was computed for: an int has another hash.
        token = F.get(F.lit(list(self.tokens)).cast("array<bigint>"), output)
        # AQE keeps a number of partitions that is requested explicitly; no two rows have equal sort keys.
        partitioned = steps.rows.repartition(len(self.tokens), token)
        ordered = partitioned.sortWithinPartitions(*[key.asc_nulls_first() for key in keys], live.origin)
        return ordered.filter(_is_in_task(output))

    def _keys(self, spark: SparkSession, steps: Steps, values: Sequence[Column]) -> list[Column]:
        if self.bounds is None:
            return list(values)
        return [place_on(spark, steps, self.curve.kind, ranges_of(spark, steps, values, self.bounds))]

    def _output(self, spark: SparkSession, steps: Steps, place: Column) -> Column:
        if not len(self.splits):
            return F.lit(0)
        return count_bounds_up_to(steps, [(in_plan(spark, self.splits), len(self.splits))], [steps.add_step(place)])[0]

    def _splits_of(self, spark: SparkSession, sample: pa.Table, outputs: int) -> pa.Array:
        """Places in the order of the sample that split it into equal shares."""
        steps = Steps(arrow_rows(spark, sample))
        *values, origin = map(column, sample.column_names)
        place = _place(self._keys(spark, steps, values), origin).alias("place")
        ordered = steps.rows.select(place).sort("place").toArrow()["place"].combine_chunks()
        starts = sorted({len(ordered) * i // outputs for i in range(1, outputs)} - {0})
        return ordered.take(pa.array(starts, pa.int64()))


def _value(files: FileSet, name: str) -> Column:
    (path,) = paths_of([name])
    resolved = find_path(path, files.schema)
    if resolved is None:
        raise UnknownColumn(table=files.root, column=name, columns=", ".join(files.schema.names))
    return reduce(Column.getField, resolved[1:], column(resolved[0]))


def _place(keys: Sequence[Column], origin: Column) -> Column:
    """A row's place in the order, as one value to sort by: NULLs come first."""
    return F.struct(*[key.alias(f"key_{i}") for i, key in enumerate(keys)], origin.alias("origin"))


def _is_in_task(output: Column) -> Column:
    """TRUE for each row in the task of its output; a row in the task of another file would stop the job."""
    wrong = F.raise_error(F.lit("Anabranch found a row in the task of another file")).cast("boolean")
    return F.when(F.spark_partition_id() == output, F.lit(True)).otherwise(wrong)


def _sample(spark: SparkSession, files: FileSet, curve: Curve, outputs: int) -> pa.Table:
    """The columns of the curve and the origin, of a deterministic sample of rows."""
    live = _live(spark, files)
    interval = sampling_interval(files, outputs)
    is_chosen = F.pmod(F.xxhash64(live.origin), F.lit(interval)) == 0
    values = [_short(files, name).alias(f"value_{i}") for i, name in enumerate(leading(curve))]
    return live.rows.filter(is_chosen).select(*values, live.origin.alias("origin")).toArrow()


def _short(files: FileSet, name: str) -> Column:
    """A value, or the beginning of a long text, which splits rows about as well."""
    value, kind = _value(files, name), field_at(files.schema, paths_of([name])[0]).type
    return F.substring(value, 1, SAMPLE_LENGTH) if kind in ("string", "binary") else value


def _tokens(spark: SparkSession, count: int) -> tuple[int, ...]:
    """For each number below ``count`` a value that hash partitioning into ``count`` parts sends there."""
    by_part: dict[int, int] = {}
    candidates = count * _TOKENS_ASKED
    while len(by_part) < count:
        numbers = spark.range(candidates).select(F.pmod(F.hash(F.col("id")), F.lit(count)).alias("part"), "id")
        first = numbers.groupBy("part").agg(F.min("id").alias("id")).toArrow()
        by_part = dict(zip(first["part"].to_pylist(), first["id"].to_pylist(), strict=True))
        candidates *= 4
    return tuple(by_part[part] for part in range(count))
