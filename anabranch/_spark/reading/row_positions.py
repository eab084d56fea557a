"""Row positions: sets of rows by file and position, as bitmaps in Python and as columns in Spark.

Knows the address of a row (a file's name and a position counted from 0) and how to test it against sets of positions
without Python workers. Does not know why rows are marked. Guarantee: a row of a file that is not in the map makes the
query fail; it is never taken for unmarked. A position past the end of a file's bits is unmarked.

Two ways, measured on 20 M rows in 8 files (CPU time over that of the plain scan): bits as one value inside the plan,
1.3x; a broadcast join with file -> bits, 1.5x. The first carries its bits with every task and looks through the files
one by one, so it serves while both are few. Both know a file by the checksum of its name; a join by the name itself
takes 2.0x.

Of the first, nearly half is Spark's own: to count ``_metadata.row_index`` takes 1.15x to 1.2x, before anything is
tested. A test written out file by file (nested CASE WHEN) is a little faster for eight files; with 64 its code became
so long that the scan of one column took 25x, most likely since the JVM compiles no method of that length.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._arrow.marks import Words, words_of
from anabranch._protocol.layout.addresses import free_name
from anabranch._spark.columns.types import arrow_rows, column

IN_PLAN_FILES = 64
IN_PLAN_WORDS = 1 << 20
"""Up to this size (8 MB, 64 M rows) the plan holds the bits."""

IN_TEXT_WORDS = 256
"""Up to this size they are written into the expression, for a value of another query costs a job of Spark."""


# -- files in expressions ----------------------------------------------------------------------------------------------


def file_keys(names: Sequence[str]) -> tuple[pa.Array, Callable[[Column], Column]]:
    """A short key for each of these names, and the expression that gives a name's key.

    Checksums where no two names have the same, which is a good deal faster than names; else the names themselves.
    """
    checksums = [zlib.crc32(name.encode()) for name in names]
    if len(set(checksums)) == len(set(names)):
        return pa.array(checksums, pa.int64()), F.crc32
    return pa.array(names, pa.string()), lambda name: name


def is_marked(
    spark: SparkSession, rows: DataFrame, file: str, position: str, marks: Mapping[str, BitMap64]
) -> tuple[DataFrame, Column]:
    """Whether each row is in ``marks``: the rows, perhaps with more columns, and a boolean column over them.

    Args:
        file: the column with the file's name, as in the keys of ``marks``; a name that is not there stops the query.
        position: the column with the position.
        marks: name -> positions, for every file that can come up.
    """
    names, bits = list(marks), [words_of(each) for each in marks.values()]
    if len(bits) <= IN_PLAN_FILES and sum(map(len, bits)) <= IN_PLAN_WORDS:
        return rows, is_in_words(_words_in_plan(spark, file, names, bits), column(position))
    joined, (words,) = with_facts(spark, rows, file, names, {"bits": word_lists(bits)})
    return joined, is_in_words(column(words), column(position))


def _words_in_plan(spark: SparkSession, file: str, names: list[str], bits: list[Words]) -> Column:
    keys, key = file_keys(names)
    known = F.array(*[F.lit(each) for each in keys.to_pylist()])
    # array_position gives 0 for an unknown key, and at -1 there is nothing.
    found = F.get(_sets(spark, bits), F.array_position(known, key(column(file))).cast("int") - 1)
    return F.coalesce(found, _unknown(file))


def _sets(spark: SparkSession, bits: list[Words]) -> Column:
    """All sets as one value."""
    if sum(map(len, bits)) <= IN_TEXT_WORDS:
        return F.array(*map(_constant_array, bits))
    lists = word_lists(bits)
    one_list = pa.ListArray.from_arrays(pa.array([0, len(lists)], pa.int32()), lists)
    return spark.createDataFrame(pa.table({"sets": one_list})).scalar()


def _constant_array(words: Words) -> Column:
    """A set as a constant: Spark splits and casts the text while it plans."""
    if not len(words):
        return F.array().cast("array<bigint>")
    return F.split(F.lit(",".join(map(str, words.tolist()))), ",").cast("array<bigint>")


def with_facts(
    spark: SparkSession, rows: DataFrame, file: str, names: Sequence[str], facts: Mapping[str, pa.Array]
) -> tuple[DataFrame, list[str]]:
    """Rows with what is known of their files, by a broadcast join: the rows, and the names of the new columns.

    A file that is not among ``names`` stops the query; rows of one that is there several times come as often.
    """
    keys, key = file_keys(names)
    table = {"key": keys, "known": pa.array([True] * len(names)), **facts}
    added = [free_name(f"__anabranch_{each}", rows.columns) for each in table]
    broadcast = F.broadcast(arrow_rows(spark, pa.table(dict(zip(added, table.values(), strict=True)))))
    joined = rows.join(broadcast, key(column(file)) == column(added[0]), "left")
    return joined.filter(F.coalesce(column(added[1]), _unknown(file))), added[2:]


def is_in_words(words: Column, position: Column) -> Column:
    """Whether a position is in a set, given as `word_lists` has it."""
    word = F.get(words, F.shiftright(position, 6).cast("int"))
    return F.coalesce(F.getbit(word, position.bitwiseAND(63).cast("int")) == 1, F.lit(False))


def _unknown(file: str) -> Column:
    return F.raise_error(F.concat(F.lit("Anabranch does not know the file "), column(file)))


def word_lists(bits: list[Words]) -> pa.ListArray:
    """Sets of positions as one column."""
    offsets = np.cumsum([0, *map(len, bits)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(bits)))
