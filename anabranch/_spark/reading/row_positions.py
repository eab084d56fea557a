"""Represents sets of row positions as bitmaps in Python and as columns in Spark.

Knows the address of a row (a file's name and a position counted from 0) and how to test it against sets of positions
without Python workers. Does not know why rows are marked. Guarantee: a row of a file that is not in the map makes the
query fail; it is never taken for unmarked. A position past the end of a file's bits is unmarked.

There are two ways, measured on 20 M rows in 8 files (CPU time relative to the plain scan): bits as one value inside the
plan, 1.3x; a broadcast join with file -> bits, 1.5x. The first sends its bits with every task and searches the files
linearly, so it is used while both are few. Both identify a file by the checksum of its name; a join by the name itself
takes 2.0x.

Of the first, nearly half is Spark's own: counting ``_metadata.row_index`` takes 1.15x to 1.2x, before anything is
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
"""Maximum number of words (8 MB, 64 M rows) for which the plan holds the bits."""

IN_TEXT_WORDS = 256
"""Maximum number of words that are written into the expression; a value from another query costs a job of Spark."""


# -- files in expressions ----------------------------------------------------------------------------------------------


def file_keys(names: Sequence[str]) -> tuple[pa.Array, Callable[[Column], Column]]:
    """A short key for each of these names, and the expression that computes a name's key.

    Checksums if no two names have the same one, which are much faster than names; otherwise the names themselves.
    """
    checksums = [zlib.crc32(name.encode()) for name in names]
    if len(set(checksums)) == len(set(names)):
        return pa.array(checksums, pa.int64()), F.crc32
    return pa.array(names, pa.string()), lambda name: name


def is_marked(
    spark: SparkSession, rows: DataFrame, file: str, position: str, marks: Mapping[str, BitMap64]
) -> tuple[DataFrame, Column]:
    """The rows, perhaps with more columns, and a boolean column that is TRUE for rows in ``marks``.

    Args:
        file: the column with the file's name, as in the keys of ``marks``; an unknown name stops the query.
        position: the column with the position.
        marks: name -> positions, for every file that can occur.
    """
    names, bits = list(marks), [words_of(positions) for positions in marks.values()]
    if len(bits) <= IN_PLAN_FILES and sum(map(len, bits)) <= IN_PLAN_WORDS:
        return rows, is_in_words(_words_in_plan(spark, file, names, bits), column(position))
    joined, (words,) = with_facts(spark, rows, file, names, {"bits": word_lists(bits)})
    return joined, is_in_words(column(words), column(position))


def _words_in_plan(spark: SparkSession, file: str, names: list[str], bits: list[Words]) -> Column:
    keys, key = file_keys(names)
    known_keys = F.array(*[F.lit(file_key) for file_key in keys.to_pylist()])
    # array_position returns 0 for an unknown key, and get returns NULL at -1.
    words = F.get(_sets(spark, bits), F.array_position(known_keys, key(column(file))).cast("int") - 1)
    return F.coalesce(words, _unknown(file))


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
    """Join rows with facts about their files, by broadcast. Returns the rows, and the names of the new columns.

    A file that is not among ``names`` stops the query; rows of a file that is named several times are repeated.
    """
    keys, key = file_keys(names)
    table = {"key": keys, "known": pa.array([True] * len(names)), **facts}
    new_names = [free_name(f"__anabranch_{name}", rows.columns) for name in table]
    broadcast = F.broadcast(arrow_rows(spark, pa.table(dict(zip(new_names, table.values(), strict=True)))))
    joined = rows.join(broadcast, key(column(file)) == column(new_names[0]), "left")
    return joined.filter(F.coalesce(column(new_names[1]), _unknown(file))), new_names[2:]


def is_in_words(words: Column, position: Column) -> Column:
    """Whether a position is in a set in the format of `word_lists`."""
    word = F.get(words, F.shiftright(position, 6).cast("int"))
    return F.coalesce(F.getbit(word, position.bitwiseAND(63).cast("int")) == 1, F.lit(False))


def _unknown(file: str) -> Column:
    return F.raise_error(F.concat(F.lit("Anabranch does not know the file "), column(file)))


def word_lists(bits: list[Words]) -> pa.ListArray:
    """Sets of positions as one column."""
    offsets = np.cumsum([0, *map(len, bits)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(bits)))
