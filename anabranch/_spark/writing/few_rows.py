"""Few rows: rows that are brought here instead of being kept in files, and written from here without a job of Spark.

Knows Arrow, Parquet and stores; not what the rows mean. Guarantees: at most `MOST_ROWS` rows are ever held, and texts
of at most about `MOST_BYTES`; what is more, or of a type that Arrow and Spark may see differently, is left to Spark.
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
from anabranch._spark.columns.types import delta_type, quote_identifier
from anabranch._spark.sessions.sql_text import select_sql
from anabranch._storage import open_store
from anabranch._storage.contract import Entry
from anabranch._storage.native import native_file

MOST_ROWS = 10_000
MOST_BYTES = 8 << 20
_VALUE_BYTES = 16
"""So much, at most, takes a value that is no text."""

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
    """Whether so many rows of these columns may be held, as far as that can be told before their texts are seen."""
    return are_plain(schema) and count <= MOST_ROWS and count * len(schema) * _VALUE_BYTES <= MOST_BYTES


def are_plain(schema: T.StructType, *, nested: bool = False) -> bool:
    """Whether Arrow and Spark see the same in values of these columns, which may be ``nested``."""
    return all(_is_plain(each.dataType, nested=nested) for each in schema)


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
    """Whether files with at most so many rows are read in no time."""
    return count <= MOST_ROWS and sum(files.files["size"].to_pylist()) <= MOST_BYTES


def try_collect(rows: DataFrame, count: float, most_rows: int | None = None) -> pa.Table | None:
    """Evaluate rows, at most ``count`` by what the caller knows (less than infinite), and bring them here; None where
    they turn out to be too many (more than ``most_rows``, `MOST_ROWS` where None) or too large.

    Their names must differ. Whatever comes back was evaluated once, and None says that nothing of it is used.
    """
    limit = MOST_ROWS if most_rows is None else most_rows
    schema, most = rows.schema, int(min(count, limit))
    if not are_few(schema, min(most, MOST_ROWS)):
        return None
    rows = rows if count <= limit else rows.limit(most + 1)
    texts = [each.name for each in schema if each.dataType in _TEXTS]
    found = (_without_long(rows, texts, MOST_BYTES // max(min(most, MOST_ROWS), 1)) if texts else rows).toArrow()
    if len(found) > most or (texts and pc.any(found.column(len(schema))).as_py()):
        return None
    return as_arrow(found.select(range(len(schema))), schema)


def _without_long(rows: DataFrame, texts: Sequence[str], most: int) -> DataFrame:
    """The rows, and whether the texts of each have more bytes than they may; then they are not there.

    As SQL, since each Column that is made costs calls into the JVM, which a small write consists of.
    """
    sizes = [f"octet_length({quote_identifier(name)})" for name in texts]
    if len(sizes) > 1:  # of one alone, NULL says as well that nothing is too long
        sizes = [f"coalesce({each}, 0)" for each in sizes]
    fits = f"{' + '.join(sizes)} <= {most}"
    named = {name: quote_identifier(name) for name in rows.columns}
    shown = [f"CASE WHEN {fits} THEN {each} END AS {each}" if name in texts else each for name, each in named.items()]
    return select_sql(rows, [*shown, f"NOT ({fits}) AS {_LONG}"])


def arrow_of(rows: DataFrame) -> pa.Table:
    """All rows of a DataFrame, with Arrow's types for its columns."""
    return as_arrow(rows.toArrow(), rows.schema)


def as_arrow(rows: pa.Table, schema: T.StructType) -> pa.Table:
    """Rows with Arrow's types for these columns."""
    types = [arrow_type(delta_type(each.dataType, each.name)) for each in schema]
    columns = [one.cast(wanted) for one, wanted in zip(rows.columns, types, strict=True)]
    return pa.table(columns, schema=pa.schema(list(zip(schema.names, types, strict=True))))


# -- rows that Spark has kept ------------------------------------------------------------------------------------------


def files_in(root: str, folder: str) -> list[Entry] | None:
    """The files that Spark has kept rows in; None where they are too many to be looked at one by one."""
    found = [each for each in open_store(root).list_all(f"{folder}/") if _is_kept(each.name[len(folder) + 1 :])]
    return found if len(found) <= _MOST_FILES else None


def _is_kept(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def count_and_read_rows(
    root: str, files: Sequence[Entry], schema: T.StructType, most_bytes: int = MOST_BYTES
) -> tuple[int, pa.Table | None]:
    """How many rows these files hold, and the rows, where they take at most so many bytes; each small file is asked for
    once.
    """
    store = open_store(root)
    if sum(each.size for each in files) > most_bytes:
        return sum(read_footer(store, each).num_rows for each in files), None
    opened = [pq.ParquetFile(native_file(store.get(each.name))) for each in files]
    count = sum(each.metadata.num_rows for each in opened)
    return count, _rows_of(opened, schema, most_bytes) if opened and are_plain(schema) else None


def _rows_of(files: Sequence[pq.ParquetFile], schema: T.StructType, left: int) -> pa.Table | None:
    """The rows of these files; None where they are longer, or a file counts days in another way."""
    batches: list[pa.RecordBatch] = []
    for file in files:
        if any(key in (file.metadata.metadata or {}) for key in _OLD_CALENDAR):
            return None
        for batch in file.iter_batches(_AT_ONCE):
            batches.append(batch)
            left -= batch.nbytes
            if left < 0:
                return None
    return as_arrow(pa.Table.from_batches(batches, files[0].schema_arrow), schema)
