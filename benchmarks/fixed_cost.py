"""What a command costs however little it does: each verb on a table of a hundred rows, over a count of such a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

import anabranch
from anabranch import DeltaTable
from benchmarks.harness import Cost, Line, Result, Tell, by_turns, compared, cost, spread

ROUNDS, WARM_UPS = 15, 4
ROWS = 100
PLAIN = "plain Parquet, count"
AT_MOST = {"read and count": 1.1, "append": 0.6, "DELETE": 1.5, "UPDATE": 2.0, "MERGE of two rows": 4.0}
"""The targets, as multiples of the count of one plain Parquet file."""

Work = Callable[[Any, str], Any]


def run(folder: Path, rows: int, tell: Tell, *, rounds: int = ROUNDS) -> Result:
    """Measure; ``rows`` does not matter here."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    try:
        anabranch.install(spark)
        table = _made(spark, folder)
        contenders = {name: partial(_once, spark, table, work) for name, work in _verbs(spark, folder).items()}
        found = by_turns(contenders, rounds, tell, warm_ups=WARM_UPS)
    finally:
        spark.stop()
    return _result(found, rounds)


def _result(found: Mapping[str, list[Cost]], rounds: int) -> Result:
    plain = found[PLAIN]
    ratios = [compared(f"{name} over the count", found[name], plain, at_most) for name, at_most in AT_MOST.items()]
    return Result(
        name="fixed_cost",
        title="Fixed cost of commands",
        setting=f"a table of {ROWS} rows in one file, local folder, warm session, {rounds} rounds by turns",
        lines=[Line(name, spread(costs)) for name, costs in found.items()],
        ratios=[each for both in ratios for each in both],
        notes=["Each command runs on a fresh copy of the table, made before the clock starts."],
    )


def _made(spark: Any, folder: Path) -> Path:
    """The table, and beside it the same rows as a plain Parquet file."""
    rows = table_rows(range(ROWS))
    anabranch.append(folder / "table", rows)
    spark.createDataFrame(rows).coalesce(1).write.parquet(str(folder / "plain"))
    return folder / "table"


def table_rows(ids: range | list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "word": [f"w{i}" for i in ids], "amount": [i / 4 for i in ids]})


def _verbs(spark: Any, folder: Path) -> dict[str, Work]:
    plain, two = str(folder / "plain"), table_rows([5, 1000])

    def merge(spark: Any, path: str) -> None:
        source = spark.createDataFrame(two).alias("s")
        builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return {
        PLAIN: lambda spark, path: spark.read.parquet(plain).count(),
        "read and count": lambda spark, path: DeltaTable.forPath(spark, path).toDF().count(),
        "append": lambda spark, path: spark.createDataFrame(two).write.format("delta").mode("append").save(path),
        "DELETE": lambda spark, path: DeltaTable.forPath(spark, path).delete("id = 7"),
        "UPDATE": lambda spark, path: DeltaTable.forPath(spark, path).update("id = 7", {"amount": "amount + 1"}),
        "MERGE of two rows": merge,
    }


def _once(spark: Any, table: Path, work: Work) -> Cost:
    copy = shutil.copytree(table, table.parent / uuid4().hex)
    measured = cost(lambda: work(spark, str(copy)))
    shutil.rmtree(copy)
    return measured
