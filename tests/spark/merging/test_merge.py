"""MERGE's rows: what matches, which clause acts, and what lies in the folders afterwards."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import NOTHING_MORE, Clause, Joined, MergePlan, SourceColumn
from anabranch._protocol.partitions import parse_hive_path
from anabranch._spark.engine import SparkEngine
from anabranch._spark.merging.merge_source import MergeSource, hold
from anabranch._spark.writing import few_rows
from anabranch.commands.engine import Engine
from anabranch.errors import (
    AmbiguousMerge,
    AnabranchError,
    ExecutionFailed,
    InvalidCondition,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedType,
)
from tests.spark.tables import file_row, file_set, numbered, one_file
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]
NUMBERS = ("id", "key", "n", "k", "low", "high")


@pytest.fixture(params=[few_rows.MOST_ROWS, -1], ids=["few rows", "as if many rows"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Each test goes the short way and the long one."""
    monkeypatch.setattr(few_rows, "MOST_ROWS", request.param)
    return int(request.param)


@dataclass
class Outcome:
    """What a MERGE found and wrote."""

    joined: Joined
    images: Rows
    inserts: Rows
    held: Any

    @property
    def counts(self) -> tuple[int, int, int, int]:
        found = self.joined
        return found.updated, found.deleted, found.updated_alone, found.deleted_alone


def update(condition: Any = None, when: Any = "matched", **values: Any) -> Clause:
    return Clause(when, "update", condition, values)


def delete(condition: Any = None, when: Any = "matched") -> Clause:
    return Clause(when, "delete", condition)


def insert(condition: Any = None, **values: Any) -> Clause:
    return Clause("not matched", "insert", condition, values)


def merge(
    spark: SparkSession, files: FileSet, source: Any, on: Any, *clauses: Clause, aliases: Any = ("t", "s")
) -> Outcome:
    """All that a command asks of the engine, in its order."""
    engine: Engine = SparkEngine(spark)
    matching = MergePlan(on, clauses, *aliases)
    held = source if isinstance(source, MergeSource) else engine.hold(source, files.schema, files.root, "job")
    joined = engine.join(files, matching, held, "job")
    engine.write_images(files, joined, "job/images")
    engine.write_inserts(files, matching, held, [joined], "job/inserts")
    return Outcome(joined, written(job(files) / "images"), written(job(files) / "inserts"), held)


def job(files: FileSet) -> Path:
    return Path(files.root.removeprefix("file://")) / "job"


def written(folder: Path) -> Rows:
    """The rows of the data files, with partition values as texts."""
    rows: Rows = []
    for file in sorted(folder.rglob("*.parquet")):
        keys = [part.partition("=")[0] for part in file.relative_to(folder).parts[:-1]]
        values = parse_hive_path(str(file.relative_to(folder)), keys)
        rows += [{**row, **values} for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(rows, key=lambda row: str(list(row.values())))


def source_of(*rows: tuple[Any, ...], columns: str = "id s") -> pa.Table:
    """Rows of a source at hand: numbers in the columns that are named in ``NUMBERS``, else texts."""
    names = columns.split()
    schema = pa.schema([(name, pa.int64() if name in NUMBERS else pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


def frame_of(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """The same as a DataFrame, which a job has to evaluate."""
    return spark.createDataFrame(list(rows), "id long, s string")


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    """Ids 0 to 4 and 5 to 9, of which 0 is deleted."""
    root = tmp_path / "ta ble%20[1]é"
    return numbered(root, {"a b.parquet": 5, "c.parquet": 5}, {"a%20b.parquet": [0]})


@pytest.fixture(scope="module")
def held(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MergeSource:
    """A source for merges that fail: ids 1 and 20."""
    return hold(spark, frame_of(spark, (1, "x"), (20, "y")), f"file://{tmp_path_factory.mktemp('held')}", "job")


# -- who matches, and who acts -----------------------------------------------------------------------------------------


@pytest.mark.whole
def test_rows_that_match_are_updated_or_deleted_and_the_others_inserted(spark: SparkSession, files: FileSet) -> None:
    source = frame_of(spark, (0, "new"), (1, "one"), (6, "gone"), (7, "kept"), (11, "new"))
    found = merge(
        spark,
        files,
        source,
        "t.id = s.id",
        update("s.s = 'one'", s="concat(t.s, '-', s.s)"),
        delete("s.s = 'gone'"),
        insert(id="s.id", s=F.col("s.s")),
    )
    assert found.joined.marks == {"a%20b.parquet": BitMap64([1]), "c.parquet": BitMap64([1])}
    assert found.joined.matched == {"a%20b.parquet": BitMap64([1]), "c.parquet": BitMap64([1, 2])}
    assert found.counts == (1, 1, 0, 0)
    assert found.images == [{"id": 1, "s": "1-one"}]
    assert found.inserts == [{"id": 0, "s": "new"}, {"id": 11, "s": "new"}]
    assert found.held.rows == 5


def test_expressions_may_be_columns_and_names_without_an_alias(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, 10), (11, 20), columns="key n")
    found = merge(
        spark,
        files,
        source,
        F.col("id") == F.col("key"),
        update(F.col("n") > 5, id=F.col("id") + F.col("n")),
        insert(F.col("n") > 5, id=F.col("key"), s=SourceColumn("N")),
        aliases=(None, None),
    )
    assert found.images == [{"id": 11, "s": "1"}]
    assert found.inserts == [{"id": 11, "s": "20"}]


def test_of_several_clauses_the_first_whose_condition_is_true_acts(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, None), (2, "x"), (2, "a"), (3, "y"))  # where one of two acts, nothing is ambiguous
    clauses = (update("s.s = 'x'", s="'first'"), update("s.s >= 'x'", s="'second'"), delete("s.s is null and t.id > 1"))
    found = merge(spark, files, source, "t.id = s.id", *clauses)
    assert found.images == [{"id": 2, "s": "first"}, {"id": 3, "s": "second"}]
    assert found.joined.marks == {"a%20b.parquet": BitMap64([2, 3])}, "NULL is not TRUE: 1 stays"
    assert found.joined.matched == {"a%20b.parquet": BitMap64([1, 2, 3])}


@pytest.mark.parametrize(("on", "matched", "inserted"), [("t.k = s.k", 0, 1), ("t.k <=> s.k", 1, 0)])
def test_null_keys_match_only_where_the_condition_says_so(
    spark: SparkSession, tmp_path: Path, on: str, matched: int, inserted: int
) -> None:
    files = one_file(tmp_path, pa.table({"k": pa.array([None, 1], pa.int64())}))
    found = merge(spark, files, source_of((None,), columns="k"), on, delete(), insert(k="s.k"))
    assert (found.joined.deleted, len(found.inserts)) == (matched, inserted)


def test_rows_without_a_match_may_be_changed_by_their_own_columns(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "a"), (5, "b"), (20, "c"))
    alone = "not matched by source"
    found = merge(
        spark,
        files,
        source,
        "t.id = s.id",
        update("id > 8", alone, s="concat(s, '?', t.id)"),  # `s` alone is the table's, though the source has one
        delete("id in (1, 3)", alone),
        update("t.id = 1", s="s.s"),
        insert(id="s.id"),
    )
    assert found.counts == (1, 0, 1, 1)
    assert found.joined.marks == {"a%20b.parquet": BitMap64([1, 3]), "c.parquet": BitMap64([4])}
    assert found.joined.matched == {"a%20b.parquet": BitMap64([1]), "c.parquet": BitMap64([0])}
    assert found.images == [{"id": 1, "s": "a"}, {"id": 9, "s": "9?9"}]
    assert found.inserts == [{"id": 20, "s": None}]


def test_a_clause_for_rows_without_a_match_cannot_speak_of_the_source(
    spark: SparkSession, files: FileSet, held: MergeSource
) -> None:
    with pytest.raises(InvalidCondition, match=r"NOT MATCHED BY SOURCE AND s\.s IS NULL"):
        merge(spark, files, held, "t.id = s.id", delete("s.s IS NULL", "not matched by source"))


def test_an_insert_cannot_speak_of_the_table(spark: SparkSession, files: FileSet, held: MergeSource) -> None:
    with pytest.raises(InvalidCondition, match=r"NOT MATCHED THEN INSERT id = t\.id"):
        merge(spark, files, held, "t.id = s.id", insert(id="t.id"))


def test_an_empty_table_takes_everything_and_an_empty_source_gives_nothing(spark: SparkSession, files: FileSet) -> None:
    clauses = (update(s="s.s"), insert(id="s.id", s="s.s"))
    empty = files.restrict_to(set())
    found = merge(spark, empty, source_of((1, "x")), "t.id = s.id", *clauses)
    assert (found.joined, found.images, found.inserts) == (Joined({}, {}), [], [{"id": 1, "s": "x"}])
    nothing = merge(spark, files, source_of(), "t.id = s.id", *clauses)
    assert (nothing.joined.marks, nothing.images, nothing.held.rows) == ({}, [], 0)


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_expressions_may_be_columns_and_names_without_an_alias",
    "tests/spark/merging/test_merge.py::test_rows_that_match_are_updated_or_deleted_and_the_others_inserted",
)
def test_a_join_on_anything_but_equality_is_as_good(spark: SparkSession, files: FileSet) -> None:
    source = source_of((2, 4, "x"), (7, 8, "y"), columns="low high s")
    found = merge(spark, files, source, "t.id >= s.low and t.id < s.high", update(s="s.s"))
    assert found.images == [{"id": 2, "s": "x"}, {"id": 3, "s": "x"}, {"id": 7, "s": "y"}]


def test_what_several_joins_matched_is_not_inserted(spark: SparkSession, files: FileSet) -> None:
    engine, matching = SparkEngine(spark), MergePlan("t.id = s.id", (insert(id="s.id"),), "t", "s")
    held = engine.hold(source_of((1, "x"), (6, "y"), (12, "z")), files.schema, files.root, "job")
    joined = [engine.join(files.restrict_to({path}), matching, held, "job") for path in ("a%20b.parquet", "c.parquet")]
    assert [each.matched for each in joined] == [{"a%20b.parquet": BitMap64([1])}, {"c.parquet": BitMap64([1])}]
    assert [each.marks for each in joined] == [{}, {}]
    engine.write_inserts(files.restrict_to(set()), matching, held, joined, "job/inserts")
    assert written(job(files) / "inserts") == [{"id": 12, "s": None}]


# -- several matches for one row ---------------------------------------------------------------------------------------


def test_several_source_rows_that_would_change_one_row_are_ambiguous(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "x"), (1, "y"), (2, "x"), (2, "y"), (2, "z"), (3, "x"))
    with pytest.raises(AmbiguousMerge) as caught:
        merge(spark, files, source, "t.id = s.id", update(s="s.s"))
    assert caught.value.facts == {"table": files.root, "count": 2}
    with pytest.raises(AmbiguousMerge):
        merge(spark, files, source, "t.id = s.id", delete("t.id = 1"))


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_of_several_clauses_the_first_whose_condition_is_true_acts",
    "tests/spark/merging/test_merge.py::test_several_source_rows_that_would_change_one_row_are_ambiguous",
)
def test_a_source_row_that_changes_nothing_does_not_make_a_merge_ambiguous(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "x"), (1, "y"), (2, "y"))
    found = merge(spark, files, source, "t.id = s.id", update("s.s = 'x'", s="s.s"))
    assert found.images == [{"id": 1, "s": "x"}]
    assert found.joined.matched == {"a%20b.parquet": BitMap64([1, 2])}


def test_a_delete_without_condition_may_match_twice(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "x"), (1, "y"), (2, "x"), (30, "z"), (30, "z"))
    found = merge(spark, files, source, "t.id = s.id", delete(), insert(id="s.id"))
    assert found.joined.deleted == 2
    assert found.joined.marks == {"a%20b.parquet": BitMap64([1, 2])}
    assert [row["id"] for row in found.inserts] == [30, 30]


# -- one evaluation ----------------------------------------------------------------------------------------------------


def test_a_source_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(50), pa.int64()), "u": pa.array([None] * 50, pa.string())})
    # Not SQL's uuid(), which Spark gives a seed: it says the same when it is asked again.
    fresh = F.udf(lambda _: str(uuid4()), "string").asNondeterministic()
    source = spark.range(100).select("id", fresh("id").alias("u"))
    found = merge(spark, one_file(tmp_path, table), source, "t.id = s.id", update(u="s.u"), insert(id="s.id", u="s.u"))
    (folder,) = (tmp_path / "job").glob("_source-*")
    held = {row["c0"]: row["c1"] for row in written(folder)}
    assert {row["id"]: row["u"] for row in [*found.images, *found.inserts]} == held


def test_what_is_random_is_decided_once(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(100), pa.int64()), "i": pa.array([0] * 100, pa.int32())})
    coin = update("rand() < 0.5", i="if(rand() < 0.5, null, 5L)")  # a second throw of the coin would not fit
    other = update("rand() < 0.5", "not matched by source", i="7")
    found = merge(spark, one_file(tmp_path, table), spark.range(50), "t.id = s.id", coin, other)
    marked = sorted(found.joined.marks["a.parquet"])
    assert sorted(row["id"] for row in found.images) == marked
    assert {row["i"] for row in found.images if row["id"] < 50} == {None, 5}
    assert {row["i"] for row in found.images if row["id"] >= 50} == {7}
    assert sum(found.counts) == len(marked) < 100


def test_what_is_kept_lies_in_hidden_folders(spark: SparkSession, files: FileSet, way: int) -> None:
    if way > 0:
        pytest.skip("few rows are kept here")
    merge(spark, files, frame_of(spark, (1, "x")), "t.id = s.id", delete())
    kept = sorted(each.name.partition("-")[0] for each in job(files).iterdir())
    assert kept == ["_changes", "_source"]


def test_a_large_source_is_joined_without_a_broadcast(
    spark: SparkSession, files: FileSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch._spark.merging.merge.BROADCAST_BYTES", 0)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        found = merge(spark, files, spark.range(5, 12), "t.id = s.id", update(s="'x'"), insert(id="s.id"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert ([row["id"] for row in found.images], [row["id"] for row in found.inserts]) == ([5, 6, 7, 8, 9], [10, 11])


# -- columns and types -------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_any_name_will_do",
    "tests/spark/merging/test_merge.py::test_expressions_may_be_columns_and_names_without_an_alias",
    "tests/api/dataframe/test_merge_into.py::test_rows_are_merged_into_a_name",
)
def test_a_star_takes_the_sources_column_of_that_name(spark: SparkSession, files: FileSet, held: MergeSource) -> None:
    star = {"id": SourceColumn("id"), "s": SourceColumn("S")}
    found = merge(spark, files, held, "t.id = s.id", update(**star), insert(**star))
    assert (found.images, found.inserts) == ([{"id": 1, "s": "x"}], [{"id": 20, "s": "y"}])


def test_a_column_that_the_source_or_the_table_lacks_is_refused(
    spark: SparkSession, files: FileSet, held: MergeSource
) -> None:
    with pytest.raises(InvalidCondition, match="the source has no column more"):
        merge(spark, files, held, "t.id = s.id", update(s=SourceColumn("more")))
    with pytest.raises(UnknownColumn):
        merge(spark, files, held, "t.id = s.id", update(nope="1"))


def test_an_update_may_move_rows_to_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"id": pa.array([1, 2], pa.int64())})
    rows = [file_row(tmp_path, f"p={p}/a.parquet", one, {"p": p}) for p in "xy"]
    files = file_set(tmp_path, rows, pa.schema({"p": pa.string(), "id": pa.int64()}), ("p",))
    source = source_of((1, "x", "z"), (2, "y", "y"), (3, "x", "w"), columns="id p q")
    on, same = "t.id = s.id and t.p = s.p", {"id": "s.id", "p": "s.q"}
    found = merge(spark, files, source, on, update(p="s.q"), insert(**same))
    assert found.joined.marks == {"p=x/a.parquet": BitMap64([0]), "p=y/a.parquet": BitMap64([1])}
    assert found.images == [{"id": 1, "p": "z"}, {"id": 2, "p": "y"}]
    assert found.inserts == [{"id": 3, "p": "w"}]
    assert not list((tmp_path / "job/images").rglob("_*"))


MOMENT = dt.datetime(2024, 3, 31, 2, 30, 0, 5)
TYPES = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "m": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "t": pa.array([MOMENT.replace(tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
        "n": pa.array([MOMENT, None], pa.timestamp("us")),
        "d": pa.array([dt.date(1, 1, 1), None], pa.date32()),
        "b": pa.array([b"\xff", None], pa.binary()),
        "l": pa.array([[{"x": 1}, None], None], pa.list_(pa.struct({"x": pa.int64()}))),
        "o": pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int64()))),
    }
)


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_column_mapping.py::test_rows_are_changed_by_every_verb",
    "tests/arrow/test_assigned_values.py::test_every_plain_value_is_what_spark_stores",
    "tests/spark/writing/test_write.py::test_timestamps_are_int64_micros_whatever_the_session_says",
)
def test_values_of_every_type_survive(spark: SparkSession, tmp_path: Path) -> None:
    star = {name: SourceColumn(name) for name in TYPES.column_names}
    new = TYPES.set_column(0, "id", pa.array([2, 3], pa.int64()))
    alone = update(None, "not matched by source", id="-id")
    found = merge(spark, one_file(tmp_path, TYPES), new, "t.id = s.id", update(**star), alone, insert(**star))
    kept, *images = found.images
    assert [*images, *found.inserts] == new.to_pylist()
    assert kept == TYPES.to_pylist()[0] | {"id": -1}, "columns that are not named keep their values"
    (file,) = (tmp_path / "job/images").glob("*.parquet")
    assert pq.ParquetFile(file).schema.column(2).physical_type == "INT64"


def test_a_source_may_hold_what_a_table_cannot(spark: SparkSession, files: FileSet) -> None:
    source = spark.sql("select 1L id, null nothing, interval '1' day day, parse_json('[1]') json, 1 twice, 2 twice")
    found = merge(
        spark,
        files,
        source,
        "t.id = s.id",
        update(s="coalesce(s.nothing, to_json(s.json), 'x') || extract(day from s.day)"),
    )
    assert found.images == [{"id": 1, "s": "[1]1"}]
    with pytest.raises(InvalidCondition, match=r"(?i)ambiguous.*twice"):
        merge(spark, files, source, "t.id = s.twice", delete())
    with pytest.raises(UnsupportedType, match="span"):
        merge(spark, files, spark.sql("select make_interval(1) span"), "t.id = 1", delete())


@pytest.mark.exhaustive(
    "tests/spark/writing/test_write.py::test_a_value_that_fits_its_column_is_stored",
    "tests/spark/merging/test_merge.py::test_what_is_random_is_decided_once",
)
def test_values_are_fitted_as_those_of_an_update(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "12"), (20, "13"))
    found = merge(spark, files, source, "t.id = s.id", update(id="s.s"), insert(id="s.s", s="date'2024-01-02'"))
    assert (found.images, found.inserts) == ([{"id": 12, "s": "1"}], [{"id": 13, "s": "2024-01-02"}])


def test_a_value_that_does_not_fit_is_refused_by_its_columns_name(spark: SparkSession, files: FileSet) -> None:
    source = source_of((1, "12"), (20, "13"))
    for clause in few_of((update(id="'x'"), insert("s.id = 20", id="'x'")), 1):
        with pytest.raises(ExecutionFailed, match="does not fit the column id"):
            merge(spark, files, source, "t.id = s.id", clause)
    with pytest.raises(SchemaMismatch, match="id"):
        merge(spark, files, source, "t.id = s.id", update(id="array(1)"))


ODD = ["a b", "a.b", "a`b", "größe ☃", "__anabranch_path", "__anabranch_mrow", "number", "clause", "t", "s"]


def test_any_name_will_do(spark: SparkSession, tmp_path: Path) -> None:
    names = [*few_of(ODD, 4)]
    quoted = {odd: "`" + odd.replace("`", "``") + "`" for odd in names}
    table, source = (
        pa.table({"id": pa.array(ids, pa.int64()), **{odd: [first, "y"] for odd in names}})
        for ids, first in (([1, 2], "x"), ([2, 3], "new"))
    )
    star = {name: SourceColumn(name) for name in ["id", *names]}
    both = update(**{odd: f"concat(t.{name}, s.{name})" for odd, name in quoted.items()})
    alone = update(None, "not matched by source", **{odd: f"upper({name})" for odd, name in quoted.items()})
    found = merge(spark, one_file(tmp_path, table), source, "t.id = s.id", both, insert(**star), alone)
    assert found.images == [{"id": 1, **dict.fromkeys(names, "X")}, {"id": 2, **dict.fromkeys(names, "ynew")}]
    assert found.inserts == [{"id": 3, **dict.fromkeys(names, "y")}]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "clause", "words"),
    [
        ("id = s.id", delete(), "ambiguous"),
        ("t.id = s.nope", delete(), r"ON|nope"),
        ("t.id", delete(), "BOOLEAN"),
        ("t.id = s.id and rand() < 1", delete(), "deterministic"),
        ("t.id = s.id", delete("sum(t.id) > 1"), "WHEN MATCHED AND sum"),
        ("t.id = s.id", update(s="explode(array(1))"), "UPDATE s = explode"),
        ("t.id = s.id", update("t.id +", s="1"), "WHEN MATCHED AND t.id"),
    ],
)
def test_an_expression_that_does_not_fit_is_refused(
    spark: SparkSession, files: FileSet, held: MergeSource, on: str, clause: Clause, words: str
) -> None:
    with pytest.raises(InvalidCondition, match=words) as caught:
        merge(spark, files, held, on, clause)
    assert "__anabranch" not in str(caught.value)


def test_a_condition_of_an_insert_is_checked_though_all_else_is_put_as_it_is(
    spark: SparkSession, files: FileSet
) -> None:
    clause, keys = insert("s.id + 1", id=SourceColumn("id"), s=SourceColumn("s")), (("id", "id"),)
    matching = MergePlan("t.id = s.id", (clause,), "t", "s", keys=keys, rest=NOTHING_MORE)
    with pytest.raises(InvalidCondition, match=r"NOT MATCHED AND s\.id \+ 1"):
        SparkEngine(spark).check_merge(files, matching, source_of((1, "x")))


def test_names_of_ours_are_not_shown(spark: SparkSession, files: FileSet, held: MergeSource) -> None:
    with pytest.raises(InvalidCondition, match=r"\[`id`.*\]|\[`s`.*\]") as caught:
        merge(spark, files, held, "mrow = 1", delete(), aliases=(None, None))
    assert "__anabranch" not in str(caught.value)


def test_a_column_bound_to_the_users_frame_is_explained(spark: SparkSession, files: FileSet, held: MergeSource) -> None:
    source = frame_of(spark, (1, "x"))
    calls: list[tuple[Any, Clause]] = [
        (F.col("t.id") == source["id"], delete()),
        ("t.id = s.id", update(s=source["s"])),
        ("t.id = s.id", delete(source["s"] == "x")),
        ("t.id = s.id", insert(s=source["s"])),
    ]
    for on, clause in few_of(calls, 2):
        with pytest.raises(InvalidCondition, match=r"F\.col\('alias\.column'\)"):
            merge(spark, files, held, on, clause)


def test_what_fails_on_a_row_is_typed_and_writes_no_data_files(
    spark: SparkSession, files: FileSet, held: MergeSource
) -> None:
    failing = (insert(id="1 div (s.id - 20)"), update(id="1 div (t.id - 1)"), delete("1 div (t.id - 1) = 1"))
    for clause in few_of(failing, 1):
        with pytest.raises(ExecutionFailed, match="DIVIDE_BY_ZERO"):
            merge(spark, files, held, "t.id = s.id", clause)
    broken = spark.range(3).select((F.lit(1) / (F.col("id") - 1)).alias("id"))
    with pytest.raises(AnabranchError, match="the source of the MERGE"):
        merge(spark, files, broken, "t.id = s.id", delete())
    assert written(job(files) / "images") == []


# -- names of sources --------------------------------------------------------------------------------------------------


def test_a_source_is_spoken_of_by_its_alias(spark: SparkSession, files: FileSet) -> None:
    engine, rows = SparkEngine(spark), spark.range(1)
    assert [engine.alias(rows.alias(name)) for name in ("s", "a b", "a.b`c")] == ["s", "a b", "a.b`c"]
    assert engine.alias(rows.alias("s").filter("id > 0").dropDuplicates()) == "s"
    assert engine.alias(rows.alias("s").groupBy("id").count()) is None
    assert engine.alias(spark.sql("SELECT * FROM VALUES (1, 2) AS v (id, x)")) == "v"
    assert engine.alias(spark.sql("SELECT id + 1 AS id FROM VALUES (1) AS v (id)")) is None
    assert engine.alias(rows) is None
    assert engine.alias(pa.table({"id": [1]})) is None
    assert engine.alias(engine.to_df(files)) is None
    rows.createOrReplaceTempView("anabranch_test_updates")
    assert engine.alias(spark.table("anabranch_test_updates")) == "anabranch_test_updates"
