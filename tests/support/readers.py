"""Readers that we did not write: delta-rs and DuckDB, each giving a table's rows as plain Python values.

Both work offline and without a JVM, and both read deletion vectors: delta-rs through DataFusion (its older Arrow door
refuses them), DuckDB through the extension that a wheel carries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Row = Mapping[str, Any]


def deltalake_rows(path: str, version: int | None = None) -> list[Row]:
    """The rows of the newest version, or of another one, as delta-rs reads them, sorted."""
    found = QueryBuilder().register("t", DeltaTable(path, version=version)).execute("SELECT * FROM t").read_all()
    return sorted_rows(pa.table(found).to_pylist())


def duckdb_rows(path: str, version: int | None = None) -> list[Row]:
    """The rows of the newest version, or of another one, as DuckDB reads them, sorted."""
    scan = "delta_scan(?)" if version is None else f"delta_scan(?, version := {version})"
    with _duckdb().cursor() as cursor:
        return sorted_rows(cursor.execute(f"SELECT * FROM {scan}", [path]).to_arrow_table().to_pylist())


def same_rows(one: Iterable[Row], other: Iterable[Row]) -> bool:
    """Whether two bags hold the same rows, whatever the order of rows and columns; NULL is NULL and NaN is NaN."""
    return sorted(map(_spelled, one)) == sorted(map(_spelled, other))


@lru_cache(maxsize=1)
def _duckdb() -> duckdb.DuckDBPyConnection:
    """A connection with the wheel's extension, whose signature DuckDB cannot know, and nothing fetched from afar."""
    folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    settings = {"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"}
    connection = duckdb.connect(config=settings)
    connection.load_extension(str(folder / "delta.duckdb_extension"))
    return connection


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows in one order for all engines, with instants in UTC."""
    return sorted(({name: _plain(value) for name, value in row.items()} for row in rows), key=_spelled)


def _spelled(row: Row) -> str:
    """A row as text, which sorts and compares what Python's own values would not: None, NaN, and types apart."""
    return repr(sorted((name, _plain(value)) for name, value in row.items()))


def _plain(value: Any) -> Any:
    """Instants in UTC, whatever zone object they came with; the same inside lists, structs and maps."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(inner) for inner in value)
    return value
