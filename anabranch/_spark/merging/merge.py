"""Joins a table's rows with the source of a MERGE in Spark, and computes what each clause does.

Knows rows, Spark's joins, and how names of two sides are kept apart. Knows nothing of versions or conflicts.
Guarantees: the source, the join, its conditions and its new values are evaluated once. Their results are kept in hidden
folders, and everything later reads those. ``=`` never matches NULL, and a condition that is NULL does not hold. The
rows that a clause acts on, their number and their new images come from one evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._arrow.merge_clauses import resolve_clauses
from anabranch._arrow.merge_images import IMAGE, OLD, ROW_ID
from anabranch._arrow.merge_keys import fetch_candidates, resolve_join
from anabranch._arrow.merge_outcome import JoinResult, build_joined, outcome_of_table
from anabranch._protocol.layout.addresses import address_of, free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import Joined, MergePlan, ReservedIdentity, When
from anabranch._protocol.parquet_files import WrittenFiles
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.unsupported import why_unsupported
from anabranch._spark.columns.rules import Writing, enforce_rules
from anabranch._spark.columns.type_fit import default_value
from anabranch._spark.columns.types import arrow_rows, column, spark_type
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.merging.expression_checks import check_deterministic
from anabranch._spark.merging.merge_clauses import (
    Decider,
    Names,
    null_of,
    of_side,
    text_of,
    translate_clause_errors,
)
from anabranch._spark.merging.merge_outcome import query_outcome
from anabranch._spark.merging.merge_source import MergeSource, source_columns, source_frame, to_kept_field
from anabranch._spark.merging.row_numbers import count_rows_before
from anabranch._spark.reading.row_addresses import as_column, is_text
from anabranch._spark.reading.scan import scan
from anabranch._spark.writing import few_rows
from anabranch._spark.writing.scratch import check_types, keep, read_scratch
from anabranch._spark.writing.sites import site_of
from anabranch._spark.writing.write import are_few, coalesce_if_few, put_few, rows_in, write_into
from anabranch.errors import Nondeterministic

BROADCAST_BYTES = 64 << 20
"""Maximum size of a source that is broadcast, so that the table's rows need not be sorted.

Measured with 4 M rows in the table: with broadcast a source of 24 MB takes half the time, one of 73 MB the same.
"""

_RANDOM = "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"
_OUTCOME: Mapping[str, T.DataType] = {
    "path": T.StringType(),
    "row": T.LongType(),
    "number": T.LongType(),
    "clause": T.IntegerType(),
}
_KEPT = tuple(_OUTCOME)


def check(spark: SparkSession, files: FileSet, matching: MergePlan, source: T.StructType) -> None:
    """Raises an error unless a MERGE can run with a source of these columns; runs no job.

    Values may be nondeterministic, since each is evaluated once; conditions may not.

    Raises:
        InvalidCondition, UnknownColumn, SchemaMismatch: an expression does not fit, or needs more than a row.
        Nondeterministic: a condition may differ between evaluations.
        UnsupportedType: Parquet cannot hold the type of a source's column.
    """
    check_types(source)
    held = MergeSource("", T.StructType([to_kept_field(column_field) for column_field in source]), 0, 0)
    columns = source_columns(source)
    checked: list[When] = []
    are_texts = all(map(is_text, matching.expressions))
    if not (are_texts and why_unsupported(lambda: resolve_join(files, matching, columns)) is None):
        _ = _changes(spark, files, matching, held).schema
        checked += ["matched", "not matched by source"]
    are_known = are_texts and not files.rules.bind_rows
    if matching.inserts and not (
        are_known and why_unsupported(lambda: resolve_clauses(matching, "not matched", files, columns)) is None
    ):
        _ = _rows_to_insert(files, matching, held, source_frame(spark, held, _names(files, matching, held))).schema
        checked.append("not matched")
    _check_conditions(spark, files, matching, held, checked)


def _check_conditions(
    spark: SparkSession, files: FileSet, matching: MergePlan, held: MergeSource, checked: Collection[When]
) -> None:
    names = _names(files, matching, held)

    def side(when: When) -> DataFrame:
        source = source_frame(spark, held, names)
        if when == "not matched":
            return source
        target = _target(spark, files, names, matching, held)
        return target.crossJoin(source) if when == "matched" else target

    for clause in matching.clauses:
        if clause.condition is not None and clause.when in checked:
            try:
                with translate_clause_errors(text_of(clause), files.root):
                    check_deterministic(side(clause.when), [as_column(clause.condition, spark)])
            except Nondeterministic as error:
                raise Nondeterministic(**error.facts, delta_condition=_RANDOM) from None


def join(spark: SparkSession, files: FileSet, matching: MergePlan, held: MergeSource, folder: str) -> Joined:
    """Match the live rows of these files with the source's in one job, and find what each clause does.

    The MERGE is ambiguous if several source rows would change one row. Source rows that match but change nothing do not
    count, as on Databricks from 16.1 on and in other databases; delta-spark counts them (delta-io/delta #3413).

    Args:
        matching: text or Columns; NOT MATCHED BY SOURCE clauses can refer to the table's columns only.
        folder: a folder of this transaction in the table; a hidden folder in it is written.

    Raises:
        InvalidCondition, SchemaMismatch: an expression does not fit the columns.
        AmbiguousMerge: several source rows would change one row.
        ExecutionFailed: an expression cannot be evaluated, or does not fit its column, on some row.
    """
    updates, repeats = matching.columns_set(files.schema, "update"), matching.may_match_twice
    rows = _changes(spark, files, matching, held)
    if not len(files.files):
        return Joined({}, {})
    with translate_clause_errors(f"MERGE ON {matching.on}", files.root):
        collected = try_first(lambda: _few_changes(rows, files, held))
        if collected is not None:
            result = JoinResult(collected, updates, repeats, rows.schema)
            return build_joined(outcome_of_table(collected), result, files, matching)
        url = keep(spark, rows, files.root, f"{folder}/_changes-{uuid4().hex}")
        outcome = query_outcome(read_scratch(spark, [url], rows.schema), files)
        return build_joined(outcome, JoinResult(url, updates, repeats, rows.schema), files, matching)


def _few_changes(rows: DataFrame, files: FileSet, held: MergeSource) -> pa.Table | None:
    """The join's result in memory, if both sides are few."""
    count = rows_in(files)
    if held.here is None or not few_rows.is_small(files, count):
        return None
    return few_rows.try_collect(rows, count * max(held.rows, 1))


def write_images(spark: SparkSession, files: FileSet, joined: Joined, folder: str) -> WrittenFiles:
    """Write the new images of updated rows below ``folder``; no clause is evaluated again. Raises RowViolation if a new
    image breaks a rule of the table.
    """
    count = joined.updated + joined.updated_alone
    with translate_errors("the rows that MERGE updates", files.root, files.version):
        hidden = () if files.tracked is None else files.tracked.fields[:1]  # an image has no version of its own
        image_files = replace(files, schema=Struct((*files.schema.fields, *hidden)))
        images = new_rows(spark, files, joined.handle, [column_field.name for column_field in hidden])
        return _write(spark, images, image_files, folder, count, joined.pairs)


def _write(spark: SparkSession, rows: DataFrame, files: FileSet, folder: str, count: int, read: float) -> WrittenFiles:
    """Write rows of which ``count`` are expected, from ``read`` rows."""
    written = put_few(rows, files, folder, count)
    if written is None:
        write_into(spark, coalesce_if_few(rows, count, read), files, folder, few=are_few(count))
    return written


def new_rows(spark: SparkSession, files: FileSet, result: JoinResult, ids: Sequence[str] = ()) -> DataFrame:
    """The new images of the rows that a join updates, with their ids if ``ids`` names a column."""
    rows = _left_behind(spark, files, result).filter(F.col("clause").isin(*result.updates))
    acting = free_name("__anabranch_clause", files.schema.names)
    values = [F.col(_image(i)).alias(name) for i, name in enumerate(files.schema.names)]
    images = rows.select(*values, *[F.col(ROW_ID).alias(id_name) for id_name in ids], F.col("clause").alias(acting))
    return _obeying(images, files, result.updates, acting, beside=ids)


def old_rows(spark: SparkSession, files: FileSet, result: JoinResult, *, deleted: bool) -> DataFrame:
    """The old images of updated, or deleted, rows, as the join has recorded them."""
    rows = _left_behind(spark, files, result).filter("clause IS NOT NULL")
    is_updated = F.col("clause").isin(*result.updates)
    rows = rows.filter(~is_updated if deleted else is_updated)
    rows = rows.dropDuplicates(["path", "row"]) if deleted and result.repeats else rows
    return rows.select(*[F.col(_old_image(i)).alias(name) for i, name in enumerate(files.schema.names)])


def _left_behind(spark: SparkSession, files: FileSet, result: JoinResult) -> DataFrame:
    """The result of a join, by Arrow or Spark."""
    schema = result.schema or T.StructType([_left_column(name, files.schema) for name in result.rows.column_names])
    return read_scratch(spark, [result.place], schema)


def _left_column(name: str, schema: Struct) -> T.StructField:
    if name in _OUTCOME or name == ROW_ID:
        return T.StructField(name, _OUTCOME.get(name, T.LongType()))
    return T.StructField(name, spark_type(schema.fields[int(name.removeprefix(IMAGE).removeprefix(OLD))].type))


def write_inserts(
    spark: SparkSession, files: FileSet, matching: MergePlan, held: MergeSource, joined: Sequence[Joined], folder: str
) -> WrittenFiles:
    """Write the rows that NOT MATCHED clauses insert for the source rows that none of these joins matched, below
    ``folder``.

    Raises:
        InvalidCondition, SchemaMismatch: an expression does not fit the source's columns.
        ExecutionFailed: an expression cannot be evaluated, or does not fit its column, on some row.
        RowViolation: a new row breaks a rule of the table.
    """
    clauses = matching.enumerate_clauses("not matched")
    if not clauses:
        return []
    names = _names(files, matching, held)
    unmatched, other_joins = held.left(joined)
    if unmatched.here is not None and not len(unmatched.here):
        return []
    if held.here is not None:  # its rows are numbered from 0
        held, joined = unmatched, other_joins
    source = source_frame(spark, held, names)
    rows = _unmatched_source_rows(spark, source, joined, names)
    if any(isinstance(value, ReservedIdentity) for _, clause in clauses for value in clause.values.values()):
        place = column(names.number) if held.here is not None else count_rows_before(source, names.number)
        rows = rows.withColumn(names.place, place)
    decided = _rows_to_insert(files, matching, held, rows)
    with translate_clause_errors("the rows that MERGE inserts", files.root):
        acting = column(names.clause)
        images = decided.select(*_images(names, files.schema, files.schema.names.__getitem__), acting)
        inserts = matching.columns_set(files.schema, "insert")
        images = _obeying(images, files, inserts, names.clause, new=True)
        return _write(spark, images, files, folder, held.rows, held.rows)


def _rows_to_insert(files: FileSet, matching: MergePlan, held: MergeSource, rows: DataFrame) -> DataFrame:
    """Rows of the source with the images that NOT MATCHED clauses make, where one acts."""
    names, decider = _decider(files, matching, held)

    def default(field: Field) -> Column:
        return default_value(rows, field, files.rules, files.root)

    decided = decider.decide(rows, matching.enumerate_clauses("not matched"), F.lit(True), default)
    return decided.filter(column(names.clause).isNotNull())


def _obeying(
    images: DataFrame,
    files: FileSet,
    clauses: Mapping[int, frozenset[str]],
    acting: str,
    *,
    new: bool = False,
    beside: Sequence[str] = (),
) -> DataFrame:
    """The images with the table's rules enforced, by the columns that the acting clause sets."""
    writings = [Writing(column(acting) == i, assigned, new) for i, assigned in clauses.items()]
    return enforce_rules(images, files.schema, files.rules, writings, files.root, beside=beside)


# -- rows --------------------------------------------------------------------------------------------------------------


def _target(spark: SparkSession, files: FileSet, names: Names, matching: MergePlan, held: MergeSource) -> DataFrame:
    """The table's rows with their addresses: all of them, or those that can match."""
    address = address_of(files.schema)
    present = [name for name in files.schema.names if name not in matching.added]
    columns_of_table = [column(name) for name in present]
    address_columns = [column(address.path).alias(names.path), column(address.row).alias(names.row)]
    ids = [files.tracked.row_id] if files.tracked is not None and _keeps_ids(files, matching) else []
    address_columns += [column(id_name).alias(names.row_id) for id_name in ids]
    site, columns = site_of(spark, files.root), [*present, *ids]
    candidates = try_first(lambda: fetch_candidates(site, files, matching, held.source, columns, address))
    rows = scan(spark, files, address=True, ids=bool(ids)) if candidates is None else arrow_rows(spark, candidates)
    return rows.select(*columns_of_table, *address_columns).alias(names.target)


def _keeps_ids(files: FileSet, matching: MergePlan) -> bool:
    """Whether there are images that keep the ids of their rows."""
    return files.tracked is not None and bool(matching.columns_set(files.schema, "update"))


def _unmatched_source_rows(spark: SparkSession, source: DataFrame, joined: Sequence[Joined], names: Names) -> DataFrame:
    """The source rows that none of these joins matched."""
    results: list[JoinResult] = [joined_part.handle for joined_part in joined if joined_part.handle is not None]
    if not results:
        return source
    address = T.StructType(
        [T.StructField(name, type_) for name, type_ in _OUTCOME.items()]
    )  # without images, which may differ
    matched = read_scratch(spark, [result.place for result in results], address).select(
        F.col("number").alias(f"{names.number}_")
    )
    return source.join(matched, column(names.number) == column(f"{names.number}_"), "left_anti")


def is_broadcast(held: MergeSource, master: str | None) -> bool:
    """Whether a source is small enough to broadcast. In a local session its rows stay in this process. On a cluster
    they all pass through the driver, so their size in its memory counts: eight bytes for each value, for the row and
    for its number, and the bytes of variable-length values. Repetitive columns take next to nothing in a file.
    """
    if master is not None and master.startswith("local"):
        return held.bytes <= BROADCAST_BYTES
    return held.bytes + 8 * held.rows * (len(held.schema) + 2) <= BROADCAST_BYTES


def _changes(spark: SparkSession, files: FileSet, matching: MergePlan, held: MergeSource) -> DataFrame:
    """The plan of the join's result: address, source row, acting clause, and images if some clause updates."""
    names, decider = _decider(files, matching, held)
    sides = _sides(spark, _target(spark, files, names, matching, held), files, matching, held)
    kind = "left" if matching.acts_without_match else "inner"
    with translate_clause_errors(f"MERGE ON {matching.on}", files.root):
        rows = sides[0].join(sides[1], as_column(matching.on, spark), kind)
        _ = rows.schema  # otherwise Spark Connect analyses the condition only later
    old = _old(names, matching)
    old_values = {names.old(i): old(field) for i, field in enumerate(files.schema) if matching.recorded}
    rows = rows.select("*", *[value.alias(name) for name, value in old_values.items()])
    is_matched = column(names.number).isNotNull()
    rows = decider.decide(rows, matching.enumerate_clauses("matched"), is_matched, old)
    beside = [*([names.row_id] if _keeps_ids(files, matching) else ()), *old_values]
    if matching.acts_without_match:
        rows = _decide_without_match(decider, rows, matching, beside)
    kept_columns = [
        column(ours).alias(name)
        for ours, name in zip((names.path, names.row, names.number, names.clause), _KEPT, strict=True)
    ]
    if matching.columns_set(files.schema, "update"):
        kept_columns += _images(names, files.schema, _image)
    if _keeps_ids(files, matching):
        kept_columns.append(column(names.row_id).alias(ROW_ID))
    kept_columns += [column(name).alias(_old_image(i)) for i, name in enumerate(old_values)]
    return rows.select(*kept_columns)


def _sides(
    spark: SparkSession, target: DataFrame, files: FileSet, matching: MergePlan, held: MergeSource
) -> tuple[DataFrame, DataFrame]:
    """The table's rows and the source's, with the best hints for their join."""
    source = source_frame(spark, held, _names(files, matching, held))
    if matching.keys and held.here is not None and few_rows.is_small(files, rows_in(files)):
        # In one task, since a broadcast is a job of its own.
        return target.coalesce(1), source.coalesce(1).hint("shuffle_hash")
    if is_broadcast(held, spark.conf.get("spark.master", None)):
        source = F.broadcast(source)
    return target, source


def _old(names: Names, matching: MergePlan) -> Callable[[Field], Column]:
    """The old value of a column of the table; NULL for columns that the MERGE adds."""
    return lambda field: null_of(field) if field.name in matching.added else of_side(names.target, field.name)


def _decide_without_match(decider: Decider, rows: DataFrame, matching: MergePlan, beside: Sequence[str]) -> DataFrame:
    """Decide the rows without a match, by the table's columns alone, in rows whose matches have been decided. Keeps
    addresses and the columns ``beside``.
    """
    names, schema = decider.names, decider.schema
    address = [names.path, names.row, names.number, *beside]
    decided = [names.clause, *map(names.image, range(len(schema)))]
    clauses = matching.enumerate_clauses("not matched by source")
    table_columns = [of_side(names.target, name).alias(name) for name in schema.names if name not in matching.added]
    before = [column(name).alias(f"{name}_before") for name in decided]
    alone, is_alone = rows.select(*table_columns, *map(column, address), *before), column(names.number).isNull()
    rows = decider.decide(alone.alias(names.target), clauses, is_alone, _old(names, matching))
    merged = [F.when(is_alone, column(name)).otherwise(column(f"{name}_before")).alias(name) for name in decided]
    rows = rows.select(*map(column, address), *merged)
    return rows.filter(column(names.number).isNotNull() | column(names.clause).isNotNull())


def _decider(files: FileSet, matching: MergePlan, held: MergeSource) -> tuple[Names, Decider]:
    names = _names(files, matching, held)
    return names, Decider(files.root, files.schema, held.schema.names, names, matching.evolves)


def _names(files: FileSet, matching: MergePlan, held: MergeSource) -> Names:
    return Names.beside([*files.schema.names, *held.schema.names], matching)


def _images(names: Names, schema: Struct, named: Callable[[int], str]) -> list[Column]:
    return [column(names.image(i)).alias(named(i)) for i in range(len(schema))]


def _image(i: int) -> str:
    return f"{IMAGE}{i}"


def _old_image(i: int) -> str:
    return f"{OLD}{i}"
