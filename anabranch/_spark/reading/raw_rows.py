"""Raw rows: every row of some files, deleted or not, with its address.

Knows how Spark reads Parquet and names what it reads. Knows nothing of versions or conflicts. Guarantees: partition
values are the log's, whatever the folders say; columns that a file lacks, and void ones, are NULL; exactly these files
are read, and none is left out silently.

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

from anabranch._protocol.features.row_tracking import Tracked
from anabranch._protocol.layout.addresses import Address, address_of, free_name
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.partitions import map_column, names_no_instant, partition_arrays
from anabranch._protocol.schema.column_mapping import is_renamed, physical_schema
from anabranch._protocol.schema.lengths import LENGTH, char_length, pads
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch._protocol.schema.voids import columns_in_files, has_void
from anabranch._spark.columns.lengths import pad_chars
from anabranch._spark.columns.physical_names import logical
from anabranch._spark.columns.types import column, spark_schema, spark_type, tree_reduce
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading import row_ids
from anabranch._spark.reading.hive_folders import folders_agree
from anabranch._spark.reading.paths import Place, literal, log_prefix, places, spark_root
from anabranch._spark.reading.row_positions import is_marked, with_facts
from anabranch._spark.sessions.listing import few_tasks
from anabranch._storage.told import call_options

_READ_OPTIONS = {
    "ignoreMissingFiles": "false",  # whatever the session says: rows never vanish silently
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}
_TO_THE_END = 1 << 30


def read_options() -> dict[str, str]:
    """Options of every reader of a table's files: ours, and what is given of file systems for this call alone."""
    return {**call_options(), **_READ_OPTIONS}


@dataclass(frozen=True)
class Opened:
    """All rows of some files: the schema's columns, those of `address_of`, and perhaps more."""

    spark: SparkSession
    rows: DataFrame
    address: Address
    file: str
    places: tuple[Place, ...]

    def with_mark_flag(self, marks: Marks) -> tuple[Opened, Column]:
        """Whether each row is marked: the same rows, and a boolean column over them. A file without marks has none."""
        known = {place.shown: marks.get(place.log, BitMap64()) for place in self.places}
        rows, mark = is_marked(self.spark, self.rows, self.file, self.address.row, known)
        return replace(self, rows=rows), mark


def open_plain(spark: SparkSession, files: FileSet) -> DataFrame:
    """All rows of these files without addresses: at least the schema's columns, as cheaply as Spark can."""
    if files.layouts or not folders_agree(files):
        return open_files(spark, files).rows
    found = places(spark, files.root, files.files["path"].to_pylist(), files.allowed)
    read = _read(spark, files, found, files.schema)
    as_it_is = not is_renamed(files.schema) and not has_void(files.schema) and not any(map(_pads_inside, files.schema))
    return read if as_it_is else read.select(*_logical(files.schema))


def open_files(spark: SparkSession, files: FileSet, *, ids: bool = False, metadata: bool = False) -> Opened:
    """All rows of these files, with their addresses, with their ``ids`` where the table tracks its rows, and with what
    Spark calls their ``_metadata``.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read. (On Spark Connect a
            file that is not there is missed only when rows are asked for.)
    """
    found = places(spark, files.root, files.files["path"].to_pylist(), files.allowed)
    whole = not files.layouts and folders_agree(files)
    address, file = address_of(files.schema), free_name("__anabranch_file", files.schema.names)
    tracked = files.tracked if ids else None
    rows = _with_addresses(spark, files, found, whole, file, address.row, tracked, metadata)
    prefix, facts = log_prefix(found), {} if whole else _partition_values(files)
    if prefix is None:
        facts[address.path] = files.files["path"].combine_chunks()
    else:
        rows = rows.withColumn(address.path, _without(prefix, column(file)))
    known = {} if tracked is None else row_ids.defaults_from_log(files)
    rows = _with(spark, rows, files.schema, file, found, {**facts, **known})
    if tracked is not None:
        rows = row_ids.resolve_row_ids(rows, tracked, address.row, *known)
    return Opened(spark, rows, address, file, tuple(found))


def _with_addresses(
    spark: SparkSession,
    files: FileSet,
    found: list[Place],
    whole: bool,
    file: str,
    row: str,
    tracked: Tracked | None,
    shown: bool,
) -> DataFrame:
    """The rows with their places, and the ids that their files hold; files with other physical names are read apart."""
    parts = []
    for schema, some in _by_layout(files, found):
        wanted = schema if whole else Struct(tuple(each for each in schema if each.name not in files.partition_columns))
        wanted = wanted if tracked is None else tracked.beside(wanted)
        read = _read(spark, files, some, wanted, whole=whole)
        metadata = read.metadataColumn("_metadata")  # the hidden one, should the table have a column of that name
        columns = [*_logical(wanted), *([metadata.alias("_metadata")] if shown else ())]
        parts.append(read.select(*columns, metadata["file_path"].alias(file), metadata["row_index"].alias(row)))
    return tree_reduce(DataFrame.unionAll, parts)


def _by_layout(files: FileSet, found: list[Place]) -> list[tuple[Struct, list[Place]]]:
    """The files with the schema that has their names for physical ones."""
    groups: list[tuple[Struct, list[Place]]] = []
    by_text: dict[str, list[Place]] = {}
    for place in found:
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


def _read(spark: SparkSession, files: FileSet, found: list[Place], schema: Struct, *, whole: bool = True) -> DataFrame:
    """All rows under physical names; partition columns too where Spark may find them by itself, as a ``whole``."""
    reader = spark.read.schema(spark_schema(physical_schema(columns_in_files(schema)))).options(**read_options())
    if files.partition_columns and whole:
        # Several job folders may hold one partition each; without the second option Spark refuses that.
        reader = reader.options(basePath=spark_root(spark, files.root), ignoreInvalidPartitionPaths="true")
    else:
        # No folder is looked into, since all paths are files; but for each query Spark would ask about each of them.
        reader = reader.option("recursiveFileLookup", "true")
    with translate_errors("the scan", files.root, files.version), few_tasks(spark, files.root, len(found)):
        read = reader.parquet(*[literal(place.reader) for place in found])
    return _with_chars(read, files, schema) if whole else read


def _logical(schema: Struct) -> list[Column]:
    """The columns of what was read under logical names, with the blanks that Spark reads in chars inside of one."""
    both = zip(schema, logical(schema), strict=True)
    return [pad_chars(field, value).alias(field.name) if _pads_inside(field) else value for field, value in both]


def _pads_inside(field: Field) -> bool:
    return not isinstance(field.type, str) and pads(field)


def _with_chars(read: DataFrame, files: FileSet, schema: Struct) -> DataFrame:
    """The rows with partition columns of char as other columns of char are: of those Spark forgets the length."""
    chars = [each for each in schema if each.name in files.partition_columns and char_length([each]) is not None]
    names = {each.physical_name: _cast_column(column(each.physical_name), each, each.physical_name) for each in chars}
    return read.withColumns(names) if names else read


# -- what only the log says --------------------------------------------------------------------------------------------


def _partition_values(files: FileSet) -> dict[str, pa.Array]:
    values = partition_arrays(files.files, files.schema, files.partition_columns, files.root)
    return {name: _as_spark_reads(files, name, array) for name, array in values.items()}


def _as_spark_reads(files: FileSet, name: str, values: pa.Array) -> pa.Array:
    """The values, or the texts of timestamps without a zone: those mean the session's, as in delta-spark. An empty text
    is null there, too.
    """
    field = files.schema.field(name)
    if field.type == "timestamp" and names_no_instant(files.files, field.physical_name):
        texts = map_column(files.files["partitionValues"], field.physical_name)
        return pc.if_else(pc.is_valid(values), texts, None)
    return values


def _with(
    spark: SparkSession, rows: DataFrame, schema: Struct, file: str, found: list[Place], facts: Mapping[str, pa.Array]
) -> DataFrame:
    """The rows with one more column for each fact about their files."""
    if not facts:
        return rows
    joined, names = with_facts(spark, rows, file, [place.shown for place in found], facts)
    both = zip(facts, names, strict=True)
    return joined.withColumns({fact: _cast_column(column(name), schema.find(fact), fact) for fact, name in both})


def _cast_column(value: Column, field: Field | None, name: str) -> Column:
    """A value as Spark reads a column: one of char is padded, and known as such to comparisons."""
    if field is None:
        return value
    value, length = value.cast(spark_type(field.type)), char_length([field])
    return value if length is None else pad_chars(field, value).alias(name, metadata={LENGTH: f"char({length})"})
