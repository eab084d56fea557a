"""The column ``_metadata``: the file and position of each row, and its ids.

Knows Spark's fields about files, and those that Delta adds if rows are tracked. Guarantee: whatever the files are, the
column has the same fields, under the names of Spark and delta-spark.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column
from anabranch._spark.reading import row_ids

NAME = "_metadata"
_OF_FILES = {
    "file_path": T.StringType(),
    "file_name": T.StringType(),
    "file_size": T.LongType(),
    "file_block_start": T.LongType(),
    "file_block_length": T.LongType(),
    "file_modification_time": T.TimestampType(),
    "row_index": T.LongType(),
}
_OF_ROWS = ("base_row_id", "default_row_commit_version", "row_id", "row_commit_version")


def type_of(files: FileSet) -> T.StructType:
    """The type of the column in a table."""
    struct = T.StructType()
    for name, type_ in {**_OF_FILES, **dict.fromkeys(_OF_ROWS if files.tracked else (), T.LongType())}.items():
        struct = struct.add(name, type_)
    return struct


def with_all_fields(rows: DataFrame, files: FileSet) -> DataFrame:
    """Rows with all fields of the column, which has only Spark's own so far."""
    fields = [column(NAME)[name].alias(name) for name in _OF_FILES]
    if files.tracked is not None:
        of_rows = (*row_ids.defaults_from_log(files), *row_ids.names_of(files))
        fields += [column(name).alias(shown) for name, shown in zip(of_rows, _OF_ROWS, strict=True)]
    return rows.withColumn(NAME, F.struct(*fields))
