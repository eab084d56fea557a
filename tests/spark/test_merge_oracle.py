"""Random MERGEs on real Spark against an oracle of joins in DuckDB: the same rows and counts, or both refuse."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._arrow import backend, merge_keys
from anabranch.commands.dml.append import Append
from anabranch.errors import AmbiguousMerge, ExecutionFailed
from tests.support.drawing import SLOW
from tests.support.duck_merges import Answer, Duck
from tests.support.patience import WHOLE_TEST
from tests.support.random_merges import (
    COLUMNS,
    RandomClause,
    RandomMerge,
    RandomTable,
    Text,
    arrow,
    flat_tables,
    merges,
    merges_by_keys,
    tables,
)
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

ASKED = os.environ.get("ANABRANCH_MERGE_EXAMPLES")
EXAMPLES = int(ASKED or 20)
"""Tables, each with one to three MERGEs; documented in docs/testing.md."""

REFUSALS = {AmbiguousMerge: "ambiguous", ExecutionFailed: "no such value"}


def make(folder: Path, table: RandomTable) -> World:
    world = World(table_path(folder))
    properties = {"delta.enableDeletionVectors": str(table.vectors).lower()}
    for i, rows in enumerate(table.files):
        first = i == 0
        Append(
            world.path, arrow(rows, table.columns), table.partition_by if first else None, properties if first else {}
        ).run()
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


# the same tables each time, but where more are asked for
drawing = settings(
    max_examples=EXAMPLES,
    derandomize=ASKED is None,
    phases=[Phase.explicit, Phase.generate],  # to shrink takes minutes, and what fails is short enough to read
    suppress_health_check=[*SLOW, HealthCheck.large_base_example],
)
histories = given(table=tables(), commands=st.lists(merges(), min_size=1, max_size=3))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_rows_that_match_are_updated_or_deleted_and_the_others_inserted",
    "tests/spark/merging/test_merge.py::test_of_several_clauses_the_first_whose_condition_is_true_acts",
    "tests/spark/merging/test_merge.py::test_rows_without_a_match_may_be_changed_by_their_own_columns",
    "tests/spark/merging/test_merge.py::test_several_source_rows_that_would_change_one_row_are_ambiguous",
    "tests/spark/merging/test_merge.py::test_null_keys_match_only_where_the_condition_says_so",
    "tests/spark/merging/test_merge.py::test_what_fails_on_a_row_is_typed_and_writes_no_data_files",
)
@pytest.mark.timeout(WHOLE_TEST + 10 * EXAMPLES)
@drawing
@histories
def test_spark_and_the_oracle_make_the_same_of_any_merge_or_both_refuse_it(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, table: RandomTable, commands: list[RandomMerge]
) -> None:
    compare(spark, tmp_path_factory.mktemp("merges"), table, commands)


def compare(spark: SparkSession, folder: Path, table: RandomTable, commands: list[RandomMerge]) -> None:
    world, duck = make(folder, table), Duck(table)
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


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.exhaustive("tests/arrow/test_merge_keys.py::test_random_merges_end_the_same_whoever_joins")
@pytest.mark.timeout(WHOLE_TEST + 10 * EXAMPLES)
def test_arrow_and_the_oracle_make_the_same_of_a_merge_by_keys(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[bool] = []

    def seen(*given: Any) -> Any:
        joined.append(False)
        found = merge_keys.join_by_keys(*given)
        joined[-1] = True
        return found

    monkeypatch.setattr(backend, "join_by_keys", seen)

    @drawing
    @given(table=flat_tables(), commands=st.lists(merges_by_keys(), min_size=1, max_size=3))
    def race(table: RandomTable, commands: list[RandomMerge]) -> None:
        compare(spark, tmp_path_factory.mktemp("merges"), table, commands)

    race()
    assert sum(joined) > len(joined) / 4


# -- the oracle itself -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_drawn_comes_to_every_kind_of_end() -> None:
    ends: Counter[str] = Counter()

    @drawing
    @histories
    def draw(table: RandomTable, commands: list[RandomMerge]) -> None:
        with closing(Duck(table)) as duck:
            for answer in map(duck.merge, commands):
                ends.update([answer.refused or "run", *answer.counts])

    draw()
    assert set(ends) == {"run", "ambiguous", "no such value", "updated", "deleted", "inserted"}


EMPTY = dict.fromkeys(COLUMNS)


def known(*clauses: RandomClause, keys: Sequence[int | None] = (1, 2, None, 9)) -> tuple[Answer, list[tuple[Any, Any]]]:
    """What the oracle says of a source with v = 7 and these keys, and keys 1, 2, 3 and NULL with v = 0 in the table."""
    table = RandomTable([[{**EMPTY, "k": key, "v": 0} for key in (1, 2, 3, None)]], (), True)
    source = [{**EMPTY, "k": key, "v": 7} for key in keys]
    with closing(Duck(table)) as duck:
        answer = duck.merge(RandomMerge(source, COLUMNS, False, Text.of("t.k = s.k"), clauses, False))
        return answer, sorted(((row["k"], row["v"]) for row in duck.rows()), key=str)


UPDATE, DELETE = RandomClause("matched", "update"), RandomClause("matched", "delete")
INSERT = RandomClause("not matched", "insert")


@pytest.mark.slow
def test_the_oracle_knows_what_merge_means() -> None:
    done, rows = known(RandomClause("matched", "delete", Text.of("t.k = 2")), UPDATE, INSERT)
    assert done == Answer(Counter(updated=1, deleted=1, inserted=2))
    assert rows == [(1, 7), (3, 0), (9, 7), (None, 0), (None, 7)]
    alone = RandomClause("not matched by source", "update", Text.of("t.k = 3"), {"v": Text.of("t.v - 1")})
    done, rows = known(RandomClause("matched", "update", Text.of("s.v < 0")), alone)
    assert (done.counts, rows) == (Counter(updated=1), [(1, 0), (2, 0), (3, -1), (None, 0)])


@pytest.mark.slow
def test_the_oracle_refuses_what_hangs_on_chance_and_no_more() -> None:
    assert known(UPDATE, keys=(1, 1))[0].refused == "ambiguous"
    assert known(RandomClause("matched", "update", Text.of("s.v < 0")), keys=(1, 1))[0] == Answer(Counter())
    assert known(DELETE, keys=(1, 1)) == (Answer(Counter(deleted=1)), [(2, 0), (3, 0), (None, 0)])
    assert known(RandomClause("matched", "delete", Text.of("s.v > 0")), keys=(1, 1))[0].refused == "ambiguous"
    assert known(INSERT, keys=(9, 9))[0].counts == Counter(inserted=2)
