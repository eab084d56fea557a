"""Collects few rows into memory instead of files, so that they are written without a job of Spark.

Knows Arrow, Parquet and stores; not what the rows mean. Guarantees: at most `MOST_ROWS` rows are ever held, and texts
of at most about `MOST_BYTES`; larger sets, and types that Arrow and Spark may read differently, are left to Spark.
Files hold what Spark's own writer would have put there.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anabranch._log.footers import read_footer
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.types import arrow_type
from anabranch._spark.columns.months import months_as_numbers
from anabranch._spark.columns.types import delta_type, quote_identifier
from anabranch._spark.sessions.sql_text import select_sql
from anabranch._storage import open_store
from anabranch._storage.contract import Entry
from anabranch._storage.native import native_file

MOST_ROWS = 10_000
MOST_BYTES = 8 << 20
_VALUE_BYTES = 16
"""Upper bound on the bytes of a fixed-width value."""

_MOST_FILES = 16
_AT_ONCE = 1 << 12
_LONG = "__anabranch_long"
_TEXTS = (T.StringType(), T.BinaryType())
_PLAIN = (
    *(T.LongType(), T.IntegerType(), T.ShortType(), T.ByteType(), T.FloatType(), T.DoubleType(), T.BooleanType()),
    *(T.DateType(), T.TimestampType(), T.TimestampNTZType()),
)
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def are_few(schema: T.StructType, count: float) -> bool:
    """Whether this number of rows may be held, judging by the columns alone, before the sizes of texts are known."""
    return are_plain(schema) and count <= MOST_ROWS and count * len(schema) * _VALUE_BYTES <= MOST_BYTES


def are_plain(schema: T.StructType, *, nested: bool = False) -> bool:
    """Whether Arrow reads values of these columns, which may be ``nested``, just as Spark does."""
    return all(_is_plain(field.dataType, nested=nested) for field in schema)


def _is_plain(kind: T.DataType, *, nested: bool) -> bool:
    match kind:
        case T.StructType() if nested:
            return are_plain(kind, nested=True)
        case T.ArrayType() if nested:
            return _is_plain(kind.elementType, nested=True)
        case T.MapType() if nested:
            return _is_plain(kind.keyType, nested=True) and _is_plain(kind.valueType, nested=True)
    return isinstance(kind, T.DecimalType) or kind in (*_PLAIN, *_TEXTS)


def is_small(files: FileSet, count: float) -> bool:
    """Whether files with at most this number of rows are fast to read."""
    return count <= MOST_ROWS and sum(files.files["size"].to_pylist()) <= MOST_BYTES


def try_collect(rows: DataFrame, count: float, most_rows: int | None = None) -> pa.Table | None:
    """Evaluate rows and collect them; None if they turn out to be too many or too large.

    Their names must differ. Rows that are returned were evaluated once; if None is returned, no result is used.

    Args:
        count: upper bound on the number of rows, or infinity if unknown.
        most_rows: maximum number of rows; None: `MOST_ROWS`.
    """
    limit = MOST_ROWS if most_rows is None else most_rows
    schema, most = rows.schema, int(min(count, limit))
    if not are_few(schema, min(most, MOST_ROWS)):
        return None
    rows = rows if count <= limit else rows.limit(most + 1)
    texts = [field.name for field in schema if field.dataType in _TEXTS]
    collected = (_without_long(rows, texts, MOST_BYTES // max(min(most, MOST_ROWS), 1)) if texts else rows).toArrow()
    if len(collected) > most or (texts and pc.any(collected.column(len(schema))).as_py()):
        return None
    return as_arrow(collected.select(range(len(schema))), schema)


def _without_long(rows: DataFrame, texts: Sequence[str], most: int) -> DataFrame:
    """The rows, and a column that is TRUE for rows whose texts have more than ``most`` bytes; these texts become NULL.

    As SQL text, because creating a Column costs calls into the JVM, which dominate the time of a small write.
    """
    sizes = [f"octet_length({quote_identifier(name)})" for name in texts]
    if len(sizes) > 1:  # for a single text, NULL likewise means that nothing is too long
        sizes = [f"coalesce({size}, 0)" for size in sizes]
    fits = f"{' + '.join(sizes)} <= {most}"
    quoted = {name: quote_identifier(name) for name in rows.columns}
    shown = [f"CASE WHEN {fits} THEN {sql} END AS {sql}" if name in texts else sql for name, sql in quoted.items()]
    return select_sql(rows, [*shown, f"NOT ({fits}) AS {_LONG}"])


def arrow_of(rows: DataFrame) -> pa.Table:
    """All rows of a DataFrame, in the Arrow types of its columns."""
    return as_arrow(months_as_numbers(rows).toArrow(), rows.schema)


def as_arrow(rows: pa.Table, schema: T.StructType) -> pa.Table:
    """Rows converted to the Arrow types of these columns."""
    types = [arrow_type(delta_type(field.dataType, field.name)) for field in schema]
    columns = [array.cast(arrow_kind) for array, arrow_kind in zip(rows.columns, types, strict=True)]
    return pa.table(columns, schema=pa.schema(list(zip(schema.names, types, strict=True))))


# -- rows that Spark has written ---------------------------------------------------------------------------------------


def files_in(root: str, folder: str) -> list[Entry] | None:
    """The files in which Spark has kept rows; None if they are too many to be read one by one."""
    data_files = [
        entry for entry in open_store(root).list_all(f"{folder}/") if _is_data_file(entry.name[len(folder) + 1 :])
    ]
    return data_files if len(data_files) <= _MOST_FILES else None


def _is_data_file(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def count_and_read_rows(
    root: str, files: Sequence[Entry], schema: T.StructType, most_bytes: int = MOST_BYTES
) -> tuple[int, pa.Table | None]:
    """Count the rows in these files, and read them if they take at most ``most_bytes``; each small file is read
    once.
    """
    store = open_store(root)
    if sum(file.size for file in files) > most_bytes:
        return sum(read_footer(store, file).num_rows for file in files), None
    opened = [pq.ParquetFile(native_file(store.get(file.name))) for file in files]
    count = sum(parquet_file.metadata.num_rows for parquet_file in opened)
    return count, _rows_of(opened, schema, most_bytes) if opened and are_plain(schema) else None


def _rows_of(files: Sequence[pq.ParquetFile], schema: T.StructType, bytes_left: int) -> pa.Table | None:
    """The rows of these files; None if they are too large, or a file uses the old calendar."""
    batches: list[pa.RecordBatch] = []
    for file in files:
        if any(key in (file.metadata.metadata or {}) for key in _OLD_CALENDAR):
            return None
        for batch in file.iter_batches(_AT_ONCE):
            batches.append(batch)
            bytes_left -= batch.nbytes
            if bytes_left < 0:
                return None
    return as_arrow(pa.Table.from_batches(batches, files[0].schema_arrow), schema)
