"""Reads the changes of a range of versions as a DataFrame.

Knows rows, and the numbers of versions. Guarantee: each row is shown with the version that inserted or deleted it; rows
that a deletion vector hides are never shown, and no file is left out silently.

Each file is opened once, however many versions name it. The changes are joined to its rows by file, or by file and
position if only some rows changed, so the cost depends on how many rows changed and not on how often.

PROTOCOL.md, sections "Add CDC File" and "Deletion Vectors".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from anabranch._arrow.marks import words_of
from anabranch._protocol.actions import FILES
from anabranch._protocol.change_feed import (
    CHANGE_TYPE,
    COLUMNS,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    FIELDS,
    Feed,
    VersionChanges,
    change_data_columns,
)
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.types import arrow_rows, column, spark_schema
from anabranch._spark.frames.dataframe_source import with_source_alias
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.raw_rows import RawRows, open_files
from anabranch._spark.reading.row_positions import is_in_words, with_facts, word_lists
from anabranch.errors import ChangeFilesMissing, MissingDataFile
from anabranch.errors.rows import may_show_rows, without_partitions

_MOMENT = pa.timestamp("us", "UTC")


def changes(spark: SparkSession, feed: Feed) -> DataFrame:
    """The rows that were inserted and deleted, followed by `anabranch._protocol.change_feed.COLUMNS`.

    Raises:
        ChangeFilesMissing: a file is gone; the error names the first version whose changes it holds.
        InvalidPartitionValue, CorruptLog, UnknownStore: the files cannot be read.

    Example:
        >>> changes(spark, feed).filter("_change_type = 'delete'").count()
    """
    names = [*feed.schema.names, *COLUMNS]
    parts = [part.select(*map(column, names)) for part in _parts(spark, feed)]
    rows = reduce(DataFrame.unionAll, parts) if parts else _nothing(spark, feed)
    return with_source_alias(rows, feed.metadata.id, feed.read_at, commit=feed.commit, shown=may_show_rows(feed.root))


def _parts(spark: SparkSession, feed: Feed) -> Iterator[DataFrame]:
    if any(len(version.whole) for version in feed.versions):
        yield _whole(spark, feed)
    if any(len(version.partly) for version in feed.versions):
        yield _partly(spark, feed)
    if any(len(version.written) for version in feed.versions):
        yield _rows_of_change_files(spark, feed)


def _whole(spark: SparkSession, feed: Feed) -> DataFrame:
    """Files in which every row changed, except those deleted before."""
    changed_files = pa.concat_tables(entry.whole for entry in feed.versions)
    opened = _open_change_files(spark, feed, changed_files)
    hidden = [entry.hidden.get(path, BitMap64()) for entry in feed.versions for path in entry.whole["path"].to_pylist()]
    facts = {
        **_facts(feed.versions, [len(entry.whole) for entry in feed.versions]),
        "change": changed_files["change"].combine_chunks(),
        "bits": word_lists([words_of(rows) for rows in hidden]),
    }
    joined, (version, moment, change, bits) = with_facts(
        spark, opened.rows, opened.file, _spark_file_names(opened, changed_files), facts
    )
    live = joined.filter(~is_in_words(column(bits), column(opened.address.row)))
    return _with_feed_columns(live, change, version, moment)


def _partly(spark: SparkSession, feed: Feed) -> DataFrame:
    """The changed rows of files in which other rows did not change."""
    changed_files = pa.concat_tables(entry.partly for entry in feed.versions)
    opened = _open_change_files(spark, feed, changed_files)
    places = {place.log: i for i, place in enumerate(opened.places)}
    numbers = {"number": pa.array(range(len(places)), pa.int64())}
    numbered, (number,) = with_facts(spark, opened.rows, opened.file, [place.shown for place in opened.places], numbers)
    sets = [rows for entry in feed.versions for rows in entry.rows]
    repeats = np.repeat(np.arange(len(sets)), [len(rows) for rows in sets])
    facts = {
        "file": pa.array([places[path] for path in changed_files["path"].to_pylist()], pa.int64()),
        **_facts(feed.versions, [len(entry.partly) for entry in feed.versions]),
        "change": changed_files["change"].combine_chunks(),
    }
    names = [free_name(f"__anabranch_{name}", numbered.columns) for name in (*facts, "position")]
    changed = pa.table([values.take(pa.array(repeats)) for values in facts.values()], names=names[:-1])
    positions = np.concatenate([np.asarray(rows.to_array(), np.int64) for rows in sets])
    changed = changed.append_column(names[-1], pa.array(positions))
    file, version, moment, change, position = names
    at = (column(number) == column(file)) & (column(opened.address.row) == column(position))
    return _with_feed_columns(numbered.join(arrow_rows(spark, changed), at), change, version, moment)


def _rows_of_change_files(spark: SparkSession, feed: Feed) -> DataFrame:
    """Rows of files of change data, which hold their change types."""
    written_files = pa.concat_tables(entry.written for entry in feed.versions)
    layouts = {path: change_data_columns(layout) for path, layout in feed.layouts.items()}
    opened = _open_change_files(spark, feed, written_files, schema=change_data_columns(feed.schema), layouts=layouts)
    facts = _facts(feed.versions, [len(entry.written) for entry in feed.versions])
    joined, (version, moment) = with_facts(
        spark, opened.rows, opened.file, _spark_file_names(opened, written_files), facts
    )
    return _with_feed_columns(joined, CHANGE_TYPE, version, moment)


# -- files -------------------------------------------------------------------------------------------------------------


def _open_change_files(
    spark: SparkSession,
    feed: Feed,
    changed_files: pa.Table,
    schema: Struct | None = None,
    layouts: dict[str, Struct] | None = None,
) -> RawRows:
    """All rows of these files, each opened once. Raises ChangeFilesMissing if one is gone."""
    paths = changed_files["path"].to_pylist()
    first = {path: i for i, path in reversed(list(enumerate(paths)))}
    once = changed_files.take(pa.array(sorted(first.values()), pa.int64()))
    columns = [
        once[field.name] if field.name in once.column_names else pa.nulls(len(once), field.type) for field in FILES
    ]
    all_layouts = feed.layouts if layouts is None else layouts
    files_of = FileSet(
        feed.root,
        schema or feed.schema,
        feed.metadata.partition_columns,
        pa.table(columns, schema=FILES),
        {},
        layouts={path: all_layouts[path] for path in first if path in all_layouts},
        allowed=feed.allowed,
    )
    try:
        with translate_errors("the changes", feed.root):
            opened = open_files(spark, files_of)
            _ = opened.rows.columns  # otherwise Spark Connect looks for the files only later
        return opened
    except MissingDataFile as error:
        raise _missing(feed, first, error) from None


def _missing(feed: Feed, paths: Iterable[str], error: MissingDataFile) -> MissingDataFile:
    missing_path = _plain(str(error.facts["file"]))
    pairs = ((candidate, _plain(unquote(candidate))) for candidate in paths)
    path = next(
        (candidate for candidate, plain in pairs if missing_path.endswith((plain, without_partitions(plain)))),
        None,
    )
    if path is None or "version" not in error.facts:  # without one, the file exists, but Spark overlooks it
        return error
    return ChangeFilesMissing(table=feed.root, file=path, version=feed.version_of(path), reason="is gone")


def _plain(path: str) -> str:
    return re.sub("/+", "/", path)


def _spark_file_names(opened: RawRows, changed_files: pa.Table) -> list[str]:
    """Spark's name for the file of each of these changes."""
    shown = {place.log: place.shown for place in opened.places}
    return [shown[path] for path in changed_files["path"].to_pylist()]


# -- columns -----------------------------------------------------------------------------------------------------------


def _facts(versions: Iterable[VersionChanges], counts: list[int]) -> dict[str, pa.Array]:
    """The number and time of each version, repeated for each of its changes."""
    numbers = [(entry.version, entry.timestamp * 1000) for entry in versions]
    repeated = np.repeat(np.array(numbers, np.int64).reshape(-1, 2), counts, axis=0)
    return {"version": pa.array(repeated[:, 0]), "moment": pa.array(repeated[:, 1]).cast(_MOMENT)}


def _with_feed_columns(rows: DataFrame, change: str, version: str, moment: str) -> DataFrame:
    feed_columns = {CHANGE_TYPE: column(change), COMMIT_VERSION: column(version), COMMIT_TIMESTAMP: column(moment)}
    return rows.withColumns(feed_columns)


def _nothing(spark: SparkSession, feed: Feed) -> DataFrame:
    return spark.createDataFrame([], spark_schema(Struct((*feed.schema, *FIELDS))))
