"""What a table holds, as engines see it that took no part in changing it: a count, and sums that tell which rows.

deltalake reads Delta tables, deletion vectors among them; DuckDB reads plain Parquet. Both are asked the same SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

_CENTS = "CAST(round(amount * 100) AS BIGINT)"
LARGE = ("count(*)", "sum(id)", "sum(percent)", "sum(few)", f"sum({_CENTS})", f"sum(id % 1000003 * {_CENTS})")
"""Of the large table; in whole numbers, so that no order of adding up matters."""

Judge = Callable[[Path], tuple[int, ...]]


def sums(expressions: tuple[str, ...], source: str, where: str = "") -> str:
    """The query for these expressions."""
    return f"SELECT {', '.join(expressions)} FROM {source}" + (f" WHERE {where}" if where else "")


def held(*expressions: str) -> Judge:
    """A judge of Delta tables, who asks for these."""

    def judge(table: Path) -> tuple[int, ...]:
        asked = QueryBuilder().register("t", DeltaTable(str(table))).execute(sums(expressions, "t"))
        return whole_numbers(pa.table(asked.read_all()))

    return judge


def held_in_parquet(*expressions: str) -> Judge:
    """The same of a folder of plain Parquet."""

    def judge(folder: Path) -> tuple[int, ...]:
        with duckdb.connect() as connection:
            asked = connection.execute(sums(expressions, f"read_parquet('{folder}/*.parquet')"))
            return whole_numbers(asked.to_arrow_table())

    return judge


def whole_numbers(rows: pa.Table) -> tuple[int, ...]:
    """The one row of an answer."""
    [row] = rows.to_pylist()
    return tuple(int(value or 0) for value in row.values())


large = held(*LARGE)
