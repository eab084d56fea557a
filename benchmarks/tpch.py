"""The 22 queries of TPC-H, on tables without vectors and on tables with 1% of the rows marked, beside plain Parquet and
delta-spark.

DuckDB's extension, which a wheel carries, generates the rows and has the text of the queries. Every engine must return
the same rows for every query. What an engine takes for all queries is the sum over one round.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_tpch
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import anabranch
from anabranch import DeltaTable
from benchmarks import peers
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, cost, ratio, spread
from benchmarks.race import OURS, ROUNDS, Contender, Race, over, race
from benchmarks.targets import limits

NAME = "tpch"
FULL_ROWS = 20_000_000
"""Where the other benchmarks' tables have so many rows, the scale factor is 1."""
FILES = 4
ROWS_OF_A_FILE = 1000
"""A table of fewer rows is one file."""
WHOLE, MARKED = "", ", 1% marked"
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
KEYS = {
    **{"lineitem": "l_orderkey", "orders": "o_orderkey", "customer": "c_custkey"},
    **{"part": "p_partkey", "partsupp": "ps_partkey", "supplier": "s_suppkey"},
}
"""The tables of which rows are marked, with the column that says which."""

Ask = Callable[[str], pa.Table]


def run(folder: Path, rows: int, tell: Tell, *, scale: float | None = None) -> Result:
    """Measure at a scale factor; by default that of 20 million rows is 1."""
    factor = scale or rows / FULL_ROWS
    tell(f"generating rows at scale factor {factor:g}")
    queries = generated(folder, factor)
    mark(folder, tell)
    races = {kind: _raced(kind, queries, folder, tell) for kind in (WHOLE, MARKED)}
    single = [each for found in races.values() for each in found]
    return Result(
        name=NAME,
        title="TPC-H",
        setting=f"scale factor {factor:g}, {FILES} files to a table; {peers.SETTING}, warm, {ROUNDS} rounds by turns",
        lines=[
            *(line for kind, found in races.items() for line in _total_lines(kind, found)),
            *(line for each in single for line in each.lines),
        ],
        ratios=[
            *(ratio for kind, found in races.items() for ratio in _total_ratios(kind, found)),
            *(ratio for each in single for ratio in each.ratios(NAME)),
        ],
        differences=[text for each in single for text in each.differences],
        notes=["Plain Parquet beside marked tables holds the rows that are left.", peers.MEMORY_NOTE],
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def generated(folder: Path, factor: float) -> list[tuple[int, str]]:
    """Make Delta tables, marked ones to be, and plain Parquet of the same rows; returns the queries by number."""
    extension = Path(duckdb_extension_tpch.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.load_extension(str(extension / "tpch.duckdb_extension"))
        connection.execute(f"CALL dbgen(sf = {factor})")
        for name in TABLES:
            _write(folder, name, connection.execute(f"FROM {name}").to_arrow_table())
        return connection.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()


def _write(folder: Path, name: str, rows: pa.Table) -> None:
    size = max(ROWS_OF_A_FILE, -(-rows.num_rows // FILES))
    for number, start in enumerate(range(0, rows.num_rows, size)):
        part = rows.slice(start, size)
        for kind, vectors in ((WHOLE, "false"), (MARKED, "true")):
            properties = {"delta.enableDeletionVectors": vectors} if number == 0 else None
            anabranch.append(delta(folder, kind, name), part, properties=properties)
            left = part.filter(~_is_marked(name)) if kind and name in KEYS else part
            path = plain(folder, kind, name) / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(left, path)


def _is_marked(table: str) -> pc.Expression:
    """One row of a hundred; Arrow has no remainder, so it is what is left of the quotient."""
    column = pc.field(KEYS[table])
    quotient = pc.divide(column, pc.scalar(100))
    return pc.subtract(column, pc.multiply(quotient, pc.scalar(100))) == 17


def mark(folder: Path, tell: Tell) -> None:
    """Delete 1% of the rows of the tables that have such rows."""
    for name, column in KEYS.items():
        tell(f"marking rows of {name}")
        DeltaTable.forPath(peers.session(), str(delta(folder, MARKED, name))).delete(f"{column} % 100 = 17")


def delta(folder: Path, kind: str, table: str) -> Path:
    """Where a Delta table stands."""
    return folder / ("marked" if kind else "whole") / table


def plain(folder: Path, kind: str, table: str) -> Path:
    """Where the plain Parquet files of the same rows stand."""
    return folder / ("plain-left" if kind else "plain") / table


# -- queries -----------------------------------------------------------------------------------------------------------


def _raced(kind: str, queries: Sequence[tuple[int, str]], folder: Path, tell: Tell) -> list[Race]:
    engines = asking(folder, kind)
    return [
        race(f"Q{number}{kind}", [_contender(name, ask, text) for name, ask in engines.items()], tell)
        for number, text in queries
    ]


def asking(folder: Path, kind: str) -> dict[str, Ask]:
    """The engines, each with a view of each table; plain Parquet's stand in a session beside ours."""
    ours, beside, theirs = peers.session(), peers.session().newSession(), peers.delta_spark()
    for table in TABLES:
        view = f"CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT * FROM"
        beside.read.parquet(str(plain(folder, kind, table))).createOrReplaceTempView(table)
        ours.sql(f"{view} delta.`{delta(folder, kind, table)}`")
        if theirs:
            theirs.sql(f"{view} delta.`{delta(folder, kind, table)}`")
    found: dict[str, Ask] = {
        peers.PLAIN: lambda text: beside.sql(text).toArrow(),
        OURS: lambda text: ours.sql(text).toArrow(),
    }
    return found | ({peers.DELTA_SPARK: theirs.query} if theirs else {})


def _contender(name: str, ask: Ask, text: str) -> Contender:
    answers: list[pa.Table] = []

    def once() -> Cost:
        answers.clear()
        return cost(lambda: answers.append(ask(text.rstrip().rstrip(";"))), peers.of(name))

    return Contender(name, once, lambda: spelled(answers[0]))


def spelled(rows: pa.Table) -> list[tuple[str, ...]]:
    """Rows in an order that all engines share, and values as text, so that a decimal is what it is worth."""
    return sorted(tuple(map(_spelled, row.values())) for row in rows.to_pylist())


def _spelled(value: Any) -> str:
    if isinstance(value, Decimal | float):
        return f"{value:.4f}"
    return value.isoformat() if isinstance(value, dt.date) else str(value).rstrip()


# -- all of them together ----------------------------------------------------------------------------------------------


def totals(races: Sequence[Race]) -> Mapping[str, list[Cost]]:
    """For each engine and round, what all queries cost together."""
    names = races[0].costs if races else ()
    return {name: list(map(_sum, zip(*(each.costs[name] for each in races), strict=True))) for name in names}


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(c.wall_s for c in costs), sum(c.cpu_s for c in costs), max(c.peak_mb for c in costs))


def _total_lines(kind: str, races: Sequence[Race]) -> list[Line]:
    return [Line(f"all queries{kind}, {name}", spread(costs)) for name, costs in totals(races).items()]


def _total_ratios(kind: str, races: Sequence[Race]) -> list[Ratio]:
    is_valid, found, ratios = not any(each.differences for each in races), totals(races), []
    for peer in found:
        if peer != OURS:
            walls = [[each.wall_s for each in found[name]] for name in (OURS, peer)]
            what = over(f"all queries{kind}", peer)
            ratios.append(ratio(what, *walls, **limits(NAME, what), is_valid=is_valid))
    return ratios
