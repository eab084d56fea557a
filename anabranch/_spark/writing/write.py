"""Writes rows as Parquet files into a folder that no other job uses.

Knows Spark's own Parquet writer and the texts of partition values. Knows nothing of the log. Guarantees: files hold
exactly the schema's columns without partition and void columns; folder names decode to the partition values that the
log must have; timestamps are INT64 microseconds, so that footers have their statistics.

PROTOCOL.md, section "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, inf
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._arrow import finding, writing
from anabranch._protocol.actions import empty_files
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch._protocol.materialised_partitions import folder_key
from anabranch._protocol.parquet_files import WrittenFiles
from anabranch._protocol.partitions import HIVE_NULL
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.assignments import Path, leaves
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.schema.voids import check_writable, type_in_files
from anabranch._protocol.stats.statistics import num_records
from anabranch._spark.columns.members import Assignments, is_set, rebuild_column
from anabranch._spark.columns.physical_names import is_stored_as_it_is, to_file_column
from anabranch._spark.columns.rules import Writing, enforce_rules
from anabranch._spark.columns.type_fit import fit_to_schema, present_columns
from anabranch._spark.columns.types import arrow_rows, column, tree_reduce
from anabranch._spark.frames.failures import format_expression, translate_errors
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.reading.paths import spark_root
from anabranch._spark.reading.raw_rows import open_files
from anabranch._spark.reading.row_addresses import alias_for_expressions, as_column
from anabranch._spark.reading.row_ids import id_columns_to_keep, names_of
from anabranch._spark.reading.scan import scan
from anabranch._spark.sessions import timestamps, writer_settings
from anabranch._spark.sessions.settings import listing
from anabranch._spark.sessions.writer_settings import footer_metadata
from anabranch._spark.writing import few_rows
from anabranch._spark.writing.rebalance import rebalance_rows
from anabranch._spark.writing.sites import site_of
from anabranch._storage import open_store
from anabranch._storage.store_settings import call_options

_ONE_TASK_ROWS = 20_000
"""Maximum number of rows that the writing task reads itself: a shuffle costs a job, which takes longer than reading
them.
"""
_FEW_FILES = 64
_WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    **timestamps.OPTIONS,
    "spark.sql.variant.inferShreddingSchema": "false",  # otherwise Spark shreds variants, which not every reader knows
}


def write_options() -> dict[str, str]:
    """Options of every writer of a table's files: our own, and settings of file systems for this call."""
    return {**call_options(), **_WRITE_OPTIONS}


def write(
    spark: SparkSession,
    rows: DataFrame,
    schema: Struct,
    partition_columns: Sequence[str],
    root: str,
    folder: str,
    rules: Rules = NONE,
) -> WrittenFiles:
    """Write rows below ``root/folder``, fitted to a schema.

    Args:
        rows: the rows; columns match by name, ignoring case.
        partition_columns: columns of the schema that become folders.
        root: URL of the table.
        folder: a folder in it that no other job writes to: two jobs in one folder would delete each other's files.
        rules: the table's rules for rows.

    Raises:
        SchemaMismatch: a column does not fit.
        ExecutionFailed: a row could not be computed.
        RowViolation: a row breaks a rule.
    """
    with translate_errors("the rows to write", root):
        writings = [Writing(F.lit(True), present_columns(rows, schema), new=True)]
        obedient = enforce_rules(fit_to_schema(rows, schema, root, rules), schema, rules, writings, root)
        files = FileSet(root, schema, tuple(partition_columns), empty_files(), {}, rules)
        written = put_few(obedient, files, folder, inf) if rows.isLocal() else None
        if written is not None:
            return written
        even = rebalance_rows(spark, obedient, partition_columns, rules)
        write_files(spark, even, schema, partition_columns, root, folder, rules)
        return None


def update(
    spark: SparkSession, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str
) -> WrittenFiles:
    """Write the new images of exactly the marked rows, selected by position: no condition is evaluated again.

    Args:
        files: the files that hold them.
        marks: path as in the log -> positions.
        assignments: column -> SQL text or Column over the old row, or `Members` of these; all are evaluated at once.
        folder: as for `write`.

    Raises:
        InvalidCondition: an assignment does not parse or fit the columns.
        SchemaMismatch: its type does not fit the column's.
        ExecutionFailed: it could not be computed, or its value does not fit, on some row.
        RowViolation: a new image breaks a rule of the table.
    """
    count, with_ids = count_of(marks), files.with_ids
    site = site_of(spark, files.root)
    fetched = try_first(lambda: finding.fetch(site, files, marks, with_ids.schema.names))
    rows = marked_rows(spark, files, marks) if fetched is None else arrow_rows(spark, fetched)
    read = count if fetched is not None else rows_in(files.restrict_to(dict(marks)))
    images = assign_where(coalesce_if_few(rows, count, read), files, assignments, F.lit(True))
    with translate_errors(text_of(assignments), files.root, files.version):  # a job may be cancelled
        written = None if fetched is None else put_few(images, with_ids, folder, count)
    if written is None:
        write_tracked(spark, files, images, text_of(assignments), folder, few=are_few(count))
    return written


def marked_rows(spark: SparkSession, files: FileSet, marks: Marks) -> DataFrame:
    """The marked rows of these files, with their ids if the table tracks its rows."""
    opened, marked = open_files(spark, files.restrict_to(dict(marks)), ids=True).with_mark_flag(marks)
    return opened.rows.filter(marked).select(*map(column, (*files.schema.names, *names_of(files))))


def rewrite(
    spark: SparkSession, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str
) -> None:
    """Write every live row of these files in one pass, with marked ones updated, or left out if there are no
    assignments.

    Arguments and errors as for `update`.
    """
    if assignments is None:
        all_deleted = {path: files.vectors.get(path, BitMap64()) | rows for path, rows in marks.items()}
        remaining = scan(spark, replace(files, vectors={**files.vectors, **all_deleted}), ids=True)
        return write_tracked(spark, files, remaining, "the rows to keep", folder)
    opened, deleted = open_files(spark, files, ids=True).with_mark_flag(files.vectors)
    opened, marked = opened.with_mark_flag(marks)
    flag = free_name("__anabranch_marked", files.schema.names)
    kept_columns = map(column, (*files.schema.names, *names_of(files)))
    rows = opened.rows.filter(~deleted).select(*kept_columns, marked.alias(flag))
    images = assign_where(rows, files, assignments, column(flag))
    return write_tracked(spark, files, images, text_of(assignments), folder)


def assign_where(
    rows: DataFrame, files: FileSet, assignments: Mapping[str, Any], where: Column, beside: Sequence[str] = ()
) -> DataFrame:
    """The rows with new values in the assigned columns where ``where`` is true: the schema's columns, those ``beside``
    them, and hidden ids.

    Columns that are generated from assigned ones are computed anew, and changed rows obey the table's rules.

    Raises:
        InvalidCondition, SchemaMismatch: as for `update`.
    """
    assigned = list(leaves(assignments))
    new = {path: free_name(f"__anabranch_new_{i}", rows.columns) for i, (path, _) in enumerate(assigned)}
    values = {new[path]: as_column(value, rows.sparkSession) for path, value in assigned}
    rows = alias_for_expressions(rows, (value for _, value in assigned))
    with translate_errors(text_of(assignments), files.root, files.version):
        # A WHERE accepts only expressions over single rows; a SELECT also accepts aggregates, windows and generators.
        _ = rows.filter(tree_reduce(Column.__or__, [value.isNull() for value in values.values()])).schema
        with_values = rows.select("*", *[F.when(where, value).alias(name) for name, value in values.items()])
        types = with_values.schema
    # In columns of their own, because the cast would evaluate nondeterministic expressions a second time.
    images = [_image(field, new, types, where, files.root).alias(field.name) for field in files.schema]
    images += [*map(column, beside), *id_columns_to_keep(files, where)]
    if not files.rules.bind_rows:
        return with_values.select(*images)
    flag = free_name("__anabranch_changed", files.schema.names)
    rows, writing = with_values.select(*images, where.alias(flag)), Writing(column(flag), frozenset(assignments))
    return enforce_rules(rows, files.schema, files.rules, [writing], files.root, beside=[*beside, *names_of(files)])


def _image(field: Field, new: Mapping[Path, str], types: T.StructType, where: Column, table: str) -> Column:
    old = column(field.name)
    return (
        F.when(where, rebuild_column(field, old, Assignments(new, types, table))).otherwise(old)
        if is_set(field, new)
        else old
    )


def partition_text(value: Column, data_type: str) -> Column:
    """A partition value as the log's text, the same in every session.

    A timestamp becomes ISO 8601 in UTC with microseconds. Binary must be UTF-8, and no text may be Hive's name for
    NULL: such a row stops the query.
    """
    if data_type == "timestamp":
        return _utc_text(value)
    text = value.cast("string")
    if data_type == "binary":
        value = F.when(~F.is_valid_utf8(text), _fail_with("a binary partition value must be UTF-8"))
        return value.otherwise(partition_text(text, "string"))
    if data_type == "string":
        return F.when(text == HIVE_NULL, _fail_with(f"{HIVE_NULL} stands for NULL in a partition")).otherwise(text)
    return text


def _fail_with(reason: str) -> Column:
    return F.raise_error(F.lit(reason)).cast("string")


def _utc_text(value: Column) -> Column:
    """``2020-01-31T09:30:00.000000Z``, by arithmetic without zones: no hour is missing or occurs twice."""
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    seconds = (F.unix_micros(value).cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(18,6)")
    text = (epoch + F.make_dt_interval(secs=seconds)).cast("string")  # without fraction digits if they are zero
    date, clock, fraction = F.substring(text, 1, 10), F.substring(text, 12, 8), F.substring(text, 21, 6)
    return F.concat(date, F.lit("T"), clock, F.lit("."), F.rpad(fraction, 6, "0"), F.lit("Z"))


def coalesce_if_few(rows: DataFrame, count: float, read: float = inf) -> DataFrame:
    """Put few rows into one file, instead of one for each part that was read. ``count`` and ``read`` bound the rows
    written and read.
    """
    if read <= _ONE_TASK_ROWS:
        return rows.coalesce(1)
    return rows.repartition(1) if are_few(count) else rows


def rows_in(files: FileSet) -> float:
    """Upper bound on the number of rows in these files; infinite if it cannot be found cheaply."""
    counts = [num_records(stats) for stats in files.files["stats"].slice(0, _FEW_FILES + 1).to_pylist()]
    return inf if len(counts) > _FEW_FILES else sum(inf if count is None else count for count in counts)


def are_few(count: float) -> bool:
    """Whether this number of rows goes into one file."""
    return count <= writing.FILE_ROWS


def files_for(count: float) -> int:
    """Number of files for this number of rows, where all but the last are full; at least one.

    Example:
        >>> files_for(600_000)
        3
    """
    return max(1, ceil(count / writing.FILE_ROWS))


def write_tracked(
    spark: SparkSession, files: FileSet, rows: DataFrame, what: str, folder: str, *, few: bool = False
) -> None:
    """As `write_into`, with hidden ids if the table tracks its rows; errors name ``what`` was written."""
    with translate_errors(what, files.root, files.version):
        write_into(spark, rows, files.with_ids, folder, few=few)


def write_into(spark: SparkSession, rows: DataFrame, files: FileSet, folder: str, *, few: bool) -> None:
    """Write rows with the columns of a file set below a folder of its table; if they are ``few``, they are coalesced
    already.
    """
    rows = rows if few else rebalance_rows(spark, rows, files.partition_columns, files.rules)
    write_files(spark, rows, files.schema, files.partition_columns, files.root, folder, files.rules)


def write_files(
    spark: SparkSession,
    rows: DataFrame,
    schema: Struct,
    partition_columns: Sequence[str],
    root: str,
    folder: str,
    rules: Rules,
    options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write rows with a schema's columns as they are. Files hold partition columns only if the rules say
    ``materialised``. ``options`` are further options of the writer. Raises UnwritableVoid if no file can hold such rows
    because of their void columns.
    """
    stored_columns, folders = _columns_and_folders(schema, partition_columns, rules)
    writer_options = {**write_options(), **options, "compression": rules.compression}
    writer_options |= {"parquet.writer.version": "v2"} if rules.pages == "2.0" else {}
    writer_options |= {} if rules.most_rows is None else {"maxRecordsPerFile": str(rules.most_rows)}
    writer = rows.select(*stored_columns).write.mode("append").options(**writer_options)
    with timestamps.in_micros(spark):
        writer.partitionBy(*folders).parquet(f"{spark_root(spark, root)}/{folder}")


def _columns_and_folders(
    schema: Struct, partition_columns: Sequence[str], rules: Rules
) -> tuple[list[Column], list[str]]:
    """A schema's columns in their form for files, and partition values as texts; and the names of partition folders.
    Raises UnwritableVoid if no file can hold such rows.
    """
    check_writable(schema, partition_columns)
    partitions = [schema.field(name) for name in partition_columns]
    non_partition = [field for field in schema if field not in partitions and type_in_files(field.type) is not None]
    stored = [*non_partition, *(partitions if rules.materialised else ())]
    data = [to_file_column(field, numbered_inside=rules.numbered_inside) for field in stored]
    folders = [folder_key(field.physical_name, materialised=rules.materialised) for field in partitions]
    named_partitions = zip(partitions, folders, strict=True)
    values = [partition_text(column(field.name), str(field.type)).alias(name) for field, name in named_partitions]
    return [*data, *values], folders


def put_few(rows: DataFrame, files: FileSet, folder: str, count: float) -> WrittenFiles:
    """Write rows as `write_into` does, but without a writing job. None if nothing was written, because the rows are not
    few, or Arrow cannot compute some of them.
    """
    stored_rows = try_first(lambda: _try_collect_file_rows(rows, files, count))
    if stored_rows is None:
        return None
    shape = writing.shape_of(files, footer_metadata(rows.sparkSession))
    return writing.put(open_store(files.root), folder, *stored_rows, shape)


def _try_collect_file_rows(
    rows: DataFrame, files: FileSet, count: float
) -> tuple[pa.Table, Mapping[str, pa.ChunkedArray]] | None:
    """Evaluate rows with the columns of a file set, at most ``count``, and collect them in their form for files, with
    the texts of their partition values; None if they are too many or too large, or only Spark can write them.
    """
    spark = rows.sparkSession
    if not writer_settings.may_be_plain(spark):
        return None
    file_rows, folders = _file_rows_and_folders(rows, files)
    with listing(spark):
        collected = few_rows.try_collect(file_rows, count)
    if collected is None or not writer_settings.are_plain(spark):
        return None
    keys = [files.schema.field(name).physical_name for name in files.partition_columns]
    texts = {key: collected[folder] for key, folder in zip(keys, folders, strict=True)}
    writing.check_folders(texts)
    return writing.with_field_ids(collected.drop_columns(folders), files.schema), texts


def _file_rows_and_folders(rows: DataFrame, files: FileSet) -> tuple[DataFrame, list[str]]:
    """The rows in their form for files, and the names of folders.

    Rows that already have this form are passed through: avoiding calls that create columns speeds up small writes.

    Raises:
        UnwritableVoid: no file can hold such rows.
    """
    schema, partitions = files.schema, files.partition_columns
    if not partitions and tuple(rows.columns) == tuple(schema.names) and all(map(is_stored_as_it_is, schema)):
        check_writable(schema)
        return rows, []
    stored_columns, folders = _columns_and_folders(schema, partitions, files.rules)
    return rows.select(*stored_columns), folders


def text_of(assignments: Mapping[str, Any]) -> str:
    """Assignments for error messages."""
    return ", ".join(f"{'.'.join(path)} = {format_expression(expression)}" for path, expression in leaves(assignments))
