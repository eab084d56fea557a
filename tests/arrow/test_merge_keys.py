"""A MERGE that Arrow joins does what the same MERGE does that Spark joins, which an oracle has judged."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch._arrow import backend, merge_keys
from anabranch._arrow.merge_source import SourceColumns
from anabranch._arrow.site import Site
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.merges import NOTHING_MORE, UNREAD, Clause, MergePlan
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.columns.types import arrow_rows
from anabranch._spark.writing import few_rows
from anabranch.errors import AmbiguousMerge, ChangeDataNotRecorded, RowViolation
from tests.spark.tables import file_set
from tests.support.readers import deltalake_rows
from tests.support.spark_jobs import jobs, left_to_spark
from tests.support.tiers import examples
from tests.support.worlds import World, update_all

pytestmark = pytest.mark.spark

KINDS: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.int64(), [None, *range(-3, 20), 2**40]),
    "j": (pa.string(), [None, "", "a", "b"]),
    "v": (pa.int32(), [None, *range(5)]),
    "x": (pa.float64(), [None, 0.5, float("nan"), -0.0]),
    "w": (pa.string(), [None, "x", "yy"]),
}
NARROW = {"k": pa.int32(), "v": pa.int16()}
CLAUSES = [
    "WHEN MATCHED THEN UPDATE SET *",
    "WHEN MATCHED THEN DELETE",
    "WHEN MATCHED THEN UPDATE SET t.w = s.w",
    "WHEN MATCHED THEN UPDATE SET w = s.w, x = s.x",
    "WHEN MATCHED AND s.v > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET *",
    "WHEN MATCHED AND t.v IS NULL THEN UPDATE SET v = s.v + 1",
    "WHEN MATCHED THEN UPDATE SET w = concat(t.w, s.w)",
    "",
    "WHEN MATCHED AND s.v > t.v THEN UPDATE SET v = s.v + t.v, w = lower(s.w) WHEN MATCHED AND t.x IS NULL THEN DELETE",
    "WHEN MATCHED AND t.w = 'x' THEN UPDATE SET w = coalesce(s.j, t.j), x = s.v "
    "WHEN MATCHED AND s.w <=> t.w THEN UPDATE SET *",
    "WHEN MATCHED THEN UPDATE SET v = 20000 + s.v, w = CASE WHEN s.x > t.x THEN 'up' ELSE t.w END",
    "WHEN MATCHED AND s.v = 4 THEN UPDATE SET k = s.k + 1, j = NULL",
    "WHEN MATCHED AND s.w RLIKE 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET j = upper(s.w)",
]
INSERTS = [
    "WHEN NOT MATCHED THEN INSERT *",
    "",
    "WHEN NOT MATCHED AND s.v > 1 THEN INSERT (k, w) VALUES (s.k, 'new')",
    "WHEN NOT MATCHED AND s.v % 2 = 0 THEN INSERT * WHEN NOT MATCHED THEN INSERT *",
    "WHEN NOT MATCHED AND s.x IS NULL THEN INSERT (k, v) VALUES (s.k, s.v + 1) "
    "WHEN NOT MATCHED AND s.j = 'a' THEN INSERT *",
    "WHEN NOT MATCHED AND v > 2 THEN INSERT (k, j, v) VALUES (k, concat(w, '!'), v % 2)",
]
NULL_SAFE = [
    "t.k <=> s.k",
    "t.k = s.k AND t.j <=> s.j",
    "equal_null(s.j, t.j) AND s.k IS NOT DISTINCT FROM t.k",
    "t.k <=> s.k AND t.v > 1",
    "t.w <=> s.w AND t.k <=> s.k AND s.v < 3",
]
ONS = [
    "t.k = s.k",
    "t.k = s.k AND t.j = s.j",
    "s.j = t.j AND (t.k == s.k)",
    "t.k = s.k AND t.v > 1",
    "t.j = s.j AND s.v < t.v",
    "t.k = s.k AND (s.w = t.w OR t.x > 0.5 AND s.v BETWEEN 1 AND 3)",
    *NULL_SAFE,
]
ALONES = [
    *[""] * 4,
    "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "WHEN NOT MATCHED BY SOURCE AND t.v > 2 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND w = 'x' THEN UPDATE SET j = 'gone'",
    "WHEN NOT MATCHED BY SOURCE AND t.x IS NULL THEN UPDATE SET v = v + 1, w = NULL "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
]
PROPERTIES: list[dict[str, str]] = [
    {},
    {},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.constraints.small": "v IS NULL OR v < 5000"},
    {"delta.enableDeletionVectors": "false"},
]
PLAIN = [(clause, insert) for clause in [*CLAUSES[:4], ""] for insert in INSERTS if clause or insert]
ALONE = [(clause, insert) for clause in CLAUSES for insert in INSERTS if clause or insert]


def drawn(
    dice: random.Random, rows: int, keys: list[Any] | None = None, kinds: Mapping[str, pa.DataType] = {}
) -> pa.Table:
    columns = {name: pa.array(dice.choices(some, k=rows), kind) for name, (kind, some) in KINDS.items()}
    if keys is not None:
        columns["k"] = pa.array(keys, pa.int64())
    columns = {
        name: column.cast(kinds[name], safe=False) if name in kinds else column for name, column in columns.items()
    }
    return pa.table(columns)


def made(path: Path, dice: random.Random, partition_by: list[str], properties: dict[str, str]) -> str:
    state = dice.getstate()
    given = {"delta.enableDeletionVectors": "true", **properties}
    anabranch.append(str(path), drawn(dice, 30), partition_by=partition_by, properties=given)
    anabranch.append(str(path), drawn(dice, 30))
    World(str(path)).delete("v = 4")
    dice.setstate(state)
    return str(path)


def outcome(spark: SparkSession, path: str, text: str, source: str) -> Any:
    try:
        done = anabranch.sql(spark, text.format(f"delta.`{path}`", source)).collect()[0].asDict()
    except AmbiguousMerge as error:
        return error.facts["count"], rows(path)
    except RowViolation as error:
        return error.condition, rows(path)
    return done, rows(path), recorded(spark, path)


def recorded(spark: SparkSession, path: str) -> Counter[str]:
    """What the table recorded of the newest commit, if it records changes."""
    newest = anabranch.history(path, 1)[0]["version"]
    try:
        found = anabranch.changes(path, newest, spark=spark).drop("_commit_timestamp").collect()
    except ChangeDataNotRecorded:
        return Counter()
    return Counter(map(repr, found))


def rows(path: str) -> Counter[str]:
    return Counter(map(repr, deltalake_rows(path)))


def raced(spark: SparkSession, folder: Path, seed: int, *, few: bool, null_safe: bool = False) -> tuple[bool, str]:
    """Run one random MERGE both ways; whether Arrow did the join, or at least found the rows."""
    dice = random.Random(seed)
    partition_by = dice.choice([[], [], ["w"]])
    is_plain = seed % 2 == 0
    on, (clause, insert) = dice.choice(ONS[:3] if is_plain else ONS), dice.choice(PLAIN if is_plain else ALONE)
    on = dice.choice(NULL_SAFE[:3]) if null_safe and is_plain else dice.choice(NULL_SAFE) if null_safe else on
    keys = None if dice.random() < 0.3 else dice.sample([*range(-3, 25), *[None] * null_safe], 12)
    source = drawn(dice, 12, keys, dice.choice([{}, {}, NARROW]))
    alone, properties = dice.choice(ALONES), dice.choice(PROPERTIES)
    pair = [made(folder / f"a{seed}", random.Random(seed), partition_by, properties), str(folder / f"s{seed}")]
    shutil.copytree(*pair)
    text = f"MERGE INTO {{}} t USING {{}} s ON {on} {clause} {insert} {alone}"
    spark.createDataFrame(source).createOrReplaceTempView("given_rows")
    joined: list[bool] = []

    def seen(*given: Any) -> Any:
        joined.append(False)
        found = merge_keys.join_by_keys(*given)
        joined[-1] = True
        return found

    with (
        patch.object(backend, "join_by_keys", seen),
        patch.object(few_rows, "MOST_ROWS", few_rows.MOST_ROWS if few else 1),
    ):
        by_arrow = outcome(spark, pair[0], text, "given_rows")
    with patch.object(Site, "check_read", left_to_spark):
        by_spark = outcome(spark, pair[1], text, "given_rows")
    assert by_arrow == by_spark, f"seed {seed}: {text}"
    return any(joined), text


@pytest.mark.parametrize("few", [True, False], ids=["few rows", "many rows"])
def test_random_merges_end_the_same_whoever_joins(spark: SparkSession, tmp_path: Path, few: bool) -> None:
    count = examples(30, 3)
    done = [raced(spark, tmp_path, seed, few=few)[0] for seed in range(count)]
    assert sum(done) >= count // 2


@pytest.mark.parametrize("few", [True, False], ids=["few rows", "many rows"])
def test_random_merges_by_null_safe_keys_end_the_same_whoever_joins(
    spark: SparkSession, tmp_path: Path, few: bool
) -> None:
    count = examples(30, 4)
    done = [raced(spark, tmp_path, seed, few=few, null_safe=True)[0] for seed in range(count)]
    assert sum(done) >= count // 2


COMPUTED = [
    (ONS[0], CLAUSES[4], ""),
    (ONS[0], CLAUSES[5], ""),
    (ONS[0], CLAUSES[6], ""),
    (ONS[3], CLAUSES[2], ""),
    (ONS[4], CLAUSES[1], ""),
    (ONS[5], CLAUSES[8], ""),
    (ONS[0], CLAUSES[9], ""),
    (ONS[0], CLAUSES[10], ""),
    (ONS[0], "", INSERTS[2]),
    (ONS[3], CLAUSES[0], INSERTS[4]),
    (ONS[0], CLAUSES[1], INSERTS[5]),
    (ONS[0], CLAUSES[0], ALONES[4]),
    (ONS[3], CLAUSES[2], ALONES[5]),
    (ONS[0], "", ALONES[6]),
    (NULL_SAFE[0], CLAUSES[0], INSERTS[0]),
    (NULL_SAFE[2], CLAUSES[1], ALONES[4]),
    (NULL_SAFE[4], CLAUSES[2], INSERTS[1]),
]


@pytest.mark.classic("a client is told of no jobs")
@pytest.mark.parametrize(("on", "clause", "insert"), COMPUTED)
def test_conditions_and_values_over_both_sides_need_no_spark(
    spark: SparkSession, tmp_path: Path, on: str, clause: str, insert: str
) -> None:
    path, source = made(tmp_path / "t", random.Random(1), [], {}), str(tmp_path / "s")
    anabranch.append(source, drawn(random.Random(2), 12, random.Random(3).sample(range(-3, 25), 12)))
    text = f"MERGE INTO delta.`{path}` t USING delta.`{source}` s ON {on} {clause} {insert}"
    assert jobs(spark, lambda: anabranch.sql(spark, text)) == 0


def test_a_merge_by_keys_records_what_rows_were_where_the_table_records_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"k": 1, "w": "a"}], properties={"delta.enableChangeDataFeed": "true"})
    spark.createDataFrame([(1, "b")], "k long, w string").createOrReplaceTempView("given_rows")
    anabranch.sql(spark, f"MERGE INTO delta.`{path}` t USING given_rows s ON t.k = s.k {CLAUSES[0]} {INSERTS[0]}")
    changes = anabranch.changes(path, 1, spark=spark).select("k", "w", "_change_type").collect()
    assert sorted(map(tuple, changes)) == [(1, "a", "update_preimage"), (1, "b", "update_postimage")]


def test_a_merge_whose_conditions_and_values_are_computed_here_is_joined_without_spark(tmp_path: Path) -> None:
    files = file_set(tmp_path, [], Struct((Field("k", "long"), Field("v", "long"))))
    source = SourceColumns(("k", "v"), ("long", "long"))
    plain = MergePlan(None, (update_all("k", "v"),), keys=(("k", "k"),), rest=NOTHING_MORE)
    assert merge_keys.resolve_join(files, plain, source).matched
    alone = Clause("not matched by source", "delete")
    assert merge_keys.resolve_join(files, replace(plain, recorded=True), source).matched
    assert merge_keys.resolve_join(files, replace(plain, clauses=(*plain.clauses, alone)), source).alone
    for other in (
        replace(plain, rest=UNREAD),
        replace(plain, evolves=True),
        replace(plain, added=("w",)),
        replace(plain, clauses=(replace(alone, condition="rand() < 0.5"),)),
        replace(plain, clauses=(Clause("matched", "delete", "rand() < 0.5"),)),
        replace(plain, clauses=(Clause("matched", "update", None, {"v": "rand()"}),)),
        replace(plain, keys=()),
        replace(plain, keys=(("k", "k"), ("k", "v")), null_safe=frozenset({"k"})),
    ):
        with pytest.raises(Unsupported):
            merge_keys.resolve_join(files, other, source)
    assert merge_keys.resolve_join(replace(files, tracked=HiddenColumns("i", "c")), plain, source).update


EMPTY_CHUNKS = pa.table({"k": pa.chunked_array([[3], [], [1, 2]], pa.int64())})


def test_no_row_behind_an_empty_chunk_of_an_arrow_table_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    assert sorted(arrow_rows(spark, EMPTY_CHUNKS).collect()) == [(1,), (2,), (3,)]
    given = EMPTY_CHUNKS.append_column("p", pa.array(["a", "b", "c"]))
    anabranch.append(str(tmp_path), given, partition_by=["p"], spark=spark)
    assert sorted(row["k"] for row in deltalake_rows(str(tmp_path))) == [1, 2, 3]


@pytest.mark.parametrize("properties", [{"delta.enableChangeDataFeed": "true"}, {"delta.constraints.c": "k < 9"}])
def test_no_row_is_lost_where_a_file_between_others_has_none(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    for rows_of_file in ([1, 5], [2], [4, 3], [6]):
        anabranch.append(path, [{"k": k, "v": k} for k in rows_of_file], properties=properties)
        properties = {}
    spark.createDataFrame([(1, 7), (2, 7), (4, 7)], "k long, v long").createOrReplaceTempView("given_rows")
    anabranch.sql(
        spark,
        f"MERGE INTO delta.`{path}` t USING given_rows s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED BY SOURCE AND t.v IN (5, 6) THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
    )
    assert sorted((row["k"], row["v"]) for row in deltalake_rows(path)) == [(1, 7), (2, 7), (3, 0), (4, 7)]
    deleted = [key for key in recorded(spark, path) if "'delete'" in key]
    assert len(deleted) in (0, 2)
    assert bool(deleted) == bool(recorded(spark, path))


def test_a_source_may_have_a_column_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"k": 1, "v": 1}])
    source = "(SELECT 1L AS k, 7L AS number, 8L AS at, 9L AS clause)"
    text = f"MERGE INTO delta.`{path}` t USING {source} s ON t.k = s.k AND s.number > t.v WHEN MATCHED AND s.at > 1"
    anabranch.sql(spark, f"{text} THEN UPDATE SET v = s.number + s.clause")
    assert rows(path) == Counter([repr({"k": 1, "v": 16})])
