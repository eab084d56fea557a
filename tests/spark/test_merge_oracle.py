"""Random MERGEs on real Spark against DuckDB's own MERGE INTO: the same rows and counts, or both refuse."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch.commands.append import Append
from anabranch.errors import AmbiguousMerge, ExecutionFailed
from anabranch.merges import DeltaMergeBuilder
from tests.support.duck_merges import Answer, Duck
from tests.support.random_merges import RandomClause, RandomMerge, RandomTable, Text, arrow, merges, tables
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = int(os.environ.get("ANABRANCH_MERGE_EXAMPLES", "40"))
"""Tables, each with one to three MERGEs; documented in docs/testing.md."""

REFUSALS = {AmbiguousMerge: "ambiguous", ExecutionFailed: "no such value"}


def make(folder: Path, table: RandomTable) -> World:
    world = World(table_path(folder))
    properties = {"delta.enableDeletionVectors": str(table.vectors).lower()}
    for i, rows in enumerate(table.files):
        first = i == 0
        Append(world.path, table.partition_by if first else None, properties if first else {}).run(arrow(rows))
    return world


def run(spark: SparkSession, world: World, merge: RandomMerge) -> Answer:
    """The command through its door."""
    source = spark.createDataFrame(merge.source).alias("s")  # type: ignore[arg-type]
    asked = spelled(merge.on, merge)
    builder = DeltaTable.forPath(spark, world.path).alias("t").merge(source, asked)
    for clause in merge.clauses:
        builder = with_clause(builder, clause, merge)
    try:
        (done,) = builder.execute().collect()
    except tuple(REFUSALS) as refused:
        return Answer(Counter(), REFUSALS[type(refused)])
    kinds = {kind: done[f"num_{kind}_rows"] for kind in ("updated", "deleted", "inserted")}
    assert done["num_affected_rows"] == sum(kinds.values())
    return Answer(Counter({kind: count for kind, count in kinds.items() if count}))


def with_clause(builder: DeltaMergeBuilder, clause: RandomClause, merge: RandomMerge) -> DeltaMergeBuilder:
    condition = None if clause.condition is None else spelled(clause.condition, merge)
    name = "when" + clause.when.title().replace(" ", "") + clause.action.title()
    if clause.action == "delete":
        return getattr(builder, name)(condition)
    if clause.values is None:
        return getattr(builder, f"{name}All")(condition)
    return getattr(builder, name)(condition, {column: spelled(value, merge) for column, value in clause.values.items()})


def spelled(text: Text, merge: RandomMerge) -> Any:
    return F.expr(text.spark) if merge.as_columns else text.spark


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # to shrink takes minutes, and what fails is short enough to read
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(table=tables(), commands=st.lists(merges(), min_size=1, max_size=3))
@pytest.mark.timeout(300 + 10 * EXAMPLES)
def test_duckdb_and_ours_make_the_same_of_any_merge_or_both_refuse_it(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, table: RandomTable, commands: list[RandomMerge]
) -> None:
    world, duck = make(tmp_path_factory.mktemp("merges"), table), Duck(table)
    anabranch.install(spark)
    for merge in commands:
        note(f"{world.rows()}\n{merge}")
        before = world.version
        ours, theirs = run(spark, world, merge), duck.merge(merge)
        assert ours == theirs, "counts, or a refusal"
        assert same_rows(world.rows(), duck.rows())
        assert world.version - before == bool(ours.counts)
    duck.close()
    world.assert_clean()
