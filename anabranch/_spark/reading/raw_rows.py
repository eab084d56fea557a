"""Reads every row of some files, deleted or not, with its address.

Knows how Spark reads Parquet and names what it reads. Knows nothing of versions or conflicts. Guarantees: partition
values come from the log, not from folders; columns that a file lacks, and void ones, are NULL; exactly these files are
read, and none is left out silently.

PROTOCOL.md, sections "Add File and Remove File" and "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.features.widening import types_to_read
from anabranch._protocol.layout.addresses import Address, address_of, free_name
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.partitions import map_column, names_no_instant, partition_arrays
from anabranch._protocol.schema.column_mapping import is_renamed, physical_schema
from anabranch._protocol.schema.lengths import LENGTH, char_length, pads
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch._protocol.schema.voids import columns_in_files, has_void
from anabranch._spark.columns.lengths import pad_chars
from anabranch._spark.columns.months import to_months
from anabranch._spark.columns.physical_names import logical
from anabranch._spark.columns.types import column, spark_schema, spark_type, tree_reduce
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading import row_ids
from anabranch._spark.reading.hive_folders import folders_agree
from anabranch._spark.reading.paths import Place, literal, log_prefix, places, spark_root
from anabranch._spark.reading.row_positions import is_marked, with_facts
from anabranch._spark.sessions.listing import few_tasks
from anabranch._storage.store_settings import call_options

_READ_OPTIONS = {
    "ignoreMissingFiles": "false",  # whatever the session's setting: rows never vanish silently
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}
_TO_THE_END = 1 << 30


def read_options() -> dict[str, str]:
    """Options of every reader of a table's files: our own, and settings of file systems for this call."""
    return {**call_options(), **_READ_OPTIONS}


@dataclass(frozen=True)
class RawRows:
    """All rows of some files: the schema's columns, those of `address_of`, and perhaps more."""

    spark: SparkSession
    rows: DataFrame
    address: Address
    file: str
    places: tuple[Place, ...]

    def with_mark_flag(self, marks: Marks) -> tuple[RawRows, Column]:
        """The same rows, and a boolean column that is TRUE for marked rows. Files may have no marks."""
        marks_by_file = {place.shown: marks.get(place.log, BitMap64()) for place in self.places}
        rows, mark = is_marked(self.spark, self.rows, self.file, self.address.row, marks_by_file)
        return replace(self, rows=rows), mark


def open_plain(spark: SparkSession, files: FileSet) -> DataFrame:
    """All rows of these files without addresses: at least the schema's columns, as cheaply as Spark can."""
    if files.layouts or not folders_agree(files):
        return open_files(spark, files).rows
    file_places = places(spark, files.root, files.files["path"].to_pylist(), files.allowed)
    read = _read(spark, files, file_places, files.schema)
    is_unchanged = (
        not is_renamed(files.schema)
        and not has_void(files.schema)
        and not any(map(_pads_inside, files.schema))
        and types_to_read(files.schema) == files.schema
    )
    return read if is_unchanged else read.select(*_logical(files.schema))


def open_files(spark: SparkSession, files: FileSet, *, ids: bool = False, metadata: bool = False) -> RawRows:
    """All rows of these files with their addresses; with ``ids`` if the table tracks its rows, and with Spark's
    ``_metadata`` column on request.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read. (On Spark Connect a
            missing file is noticed only when rows are requested.)
    """
    file_places = places(spark, files.root, files.files["path"].to_pylist(), files.allowed)
    whole = not files.layouts and folders_agree(files)
    address, file = address_of(files.schema), free_name("__anabranch_file", files.schema.names)
    tracked = files.tracked if ids else None
    rows = _with_addresses(spark, files, file_places, whole, file, address.row, tracked, metadata)
    prefix, facts = log_prefix(file_places), {} if whole else _partition_values(files)
    if prefix is None:
        facts[address.path] = files.files["path"].combine_chunks()
    else:
        rows = rows.withColumn(address.path, _without(prefix, column(file)))
    id_defaults = {} if tracked is None else row_ids.defaults_from_log(files)
    rows = _with(spark, rows, files.schema, file, file_places, {**facts, **id_defaults})
    if tracked is not None:
        rows = row_ids.resolve_row_ids(rows, tracked, address.row, *id_defaults)
    return RawRows(spark, rows, address, file, tuple(file_places))


def _with_addresses(
    spark: SparkSession,
    files: FileSet,
    file_places: list[Place],
    whole: bool,
    file: str,
    row: str,
    tracked: HiddenColumns | None,
    shown: bool,
) -> DataFrame:
    """The rows with their addresses, and the ids that their files store. Files with other physical names are read
    separately.
    """
    parts = []
    for schema, layout_places in _by_layout(files, file_places):
        selected = (
            schema if whole else Struct(tuple(field for field in schema if field.name not in files.partition_columns))
        )
        selected = selected if tracked is None else tracked.beside(selected)
        read = _read(spark, files, layout_places, selected, whole=whole)
        metadata = read.metadataColumn("_metadata")  # the hidden one, should the table have a column of that name
        columns = [*_logical(selected), *([metadata.alias("_metadata")] if shown else ())]
        parts.append(read.select(*columns, metadata["file_path"].alias(file), metadata["row_index"].alias(row)))
    return tree_reduce(DataFrame.unionAll, parts)


def _by_layout(files: FileSet, file_places: list[Place]) -> list[tuple[Struct, list[Place]]]:
    """The files by the schema that has their physical names."""
    groups: list[tuple[Struct, list[Place]]] = []
    by_text: dict[str, list[Place]] = {}
    for place in file_places:
        schema = files.layouts.get(place.log, files.schema)
        key = schema_json(schema) if place.log in files.layouts else ""
        if key not in by_text:
            by_text[key] = []
            groups.append((schema, by_text[key]))
        by_text[key].append(place)
    return groups


def _without(prefix: str, text: Column) -> Column:
    # In bytes, since a substring of characters steps through all of them: 7 s for 20 M rows, not 1.
    return F.substring(text.cast("binary"), len(prefix.encode()) + 1, _TO_THE_END).cast("string")


def _read(
    spark: SparkSession, files: FileSet, file_places: list[Place], schema: Struct, *, whole: bool = True
) -> DataFrame:
    """All rows under physical names; if ``whole``, Spark finds partition columns by itself."""
    reader = spark.read.schema(spark_schema(physical_schema(columns_in_files(types_to_read(schema))))).options(
        **read_options()
    )
    if files.partition_columns and whole:
        # Several job folders may each hold a single partition, which Spark refuses without the second option.
        reader = reader.options(basePath=spark_root(spark, files.root), ignoreInvalidPartitionPaths="true")
    else:
        # All paths are files, so no folder is searched; without it Spark would query the store about each path.
        reader = reader.option("recursiveFileLookup", "true")
    with translate_errors("the scan", files.root, files.version), few_tasks(spark, files.root, len(file_places)):
        read = reader.parquet(*[literal(place.reader) for place in file_places])
    return _with_chars(read, files, schema) if whole else read


def _logical(schema: Struct) -> list[Column]:
    """The columns of read rows under logical names, with chars inside columns padded as Spark does."""
    pairs = zip(schema, logical(schema), strict=True)
    return [pad_chars(field, value).alias(field.name) if _pads_inside(field) else value for field, value in pairs]


def _pads_inside(field: Field) -> bool:
    return not isinstance(field.type, str) and pads(field)


def _with_chars(read: DataFrame, files: FileSet, schema: Struct) -> DataFrame:
    """The rows with char partition columns treated as other char columns: Spark forgets the length of partition
    columns.
    """
    chars = [field for field in schema if field.name in files.partition_columns and char_length([field]) is not None]
    names = {
        field.physical_name: _cast_column(column(field.physical_name), field, field.physical_name) for field in chars
    }
    return read.withColumns(names) if names else read


# -- columns from the log ----------------------------------------------------------------------------------------------


def _partition_values(files: FileSet) -> dict[str, pa.Array]:
    values = partition_arrays(files.files, files.schema, files.partition_columns, files.root)
    return {name: _as_spark_reads(files, name, array) for name, array in values.items()}


def _as_spark_reads(files: FileSet, name: str, values: pa.Array) -> pa.Array:
    """The values, or, for timestamps without a zone, their texts, which are in the session's zone as in delta-spark. An
    empty text is null there, too.
    """
    field = files.schema.field(name)
    if field.type == "timestamp" and names_no_instant(files.files, field.physical_name):
        texts = map_column(files.files["partitionValues"], field.physical_name)
        return pc.if_else(pc.is_valid(values), texts, None)
    return values


def _with(
    spark: SparkSession,
    rows: DataFrame,
    schema: Struct,
    file: str,
    file_places: list[Place],
    facts: Mapping[str, pa.Array],
) -> DataFrame:
    """The rows with one more column for each fact about their files."""
    if not facts:
        return rows
    joined, names = with_facts(spark, rows, file, [place.shown for place in file_places], facts)
    pairs = zip(facts, names, strict=True)
    return joined.withColumns({fact: _cast_column(column(name), schema.find(fact), fact) for fact, name in pairs})


def _cast_column(value: Column, field: Field | None, name: str) -> Column:
    """A value as Spark reads a column: a char is padded, and marked as char for comparisons."""
    if field is None:
        return value
    value, length = to_months(value, spark_type(field.type)), char_length([field])
    return value if length is None else pad_chars(field, value).alias(name, metadata={LENGTH: f"char({length})"})
