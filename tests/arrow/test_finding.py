"""What Arrow finds and brings is what Spark finds and reads, or Arrow leaves it to Spark."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch._arrow import finding
from anabranch._arrow.site import Site
from anabranch._log.log import Log
from anabranch._protocol.actions import files_table
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.addresses import address_of
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.reading import row_addresses
from anabranch._spark.reading.scan import scan
from anabranch._spark.writing import sites
from anabranch._spark.writing.sites import site_of
from anabranch._sql.conditions import resolve_condition
from anabranch._storage import open_store
from anabranch.commands.opening import file_set as file_set_of
from tests.support.readers import duckdb_rows
from tests.support.spark_jobs import jobs
from tests.support.tiers import examples

pytestmark = pytest.mark.spark

ROWS = 1200
MOMENTS = [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 5, 0, 0, 1, tzinfo=UTC)]
VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "b": (pa.int8(), [None, -128, 0, 5, 127]),
    "s": (pa.int16(), [None, -5, 0, 5, 32767]),
    "i": (pa.int32(), [None, -5, 0, 5, 2**31 - 1]),
    "l": (pa.int64(), [None, -5, 0, 5, 2**53 + 1]),
    "f": (pa.float32(), [None, -1.5, -0.0, 0.0, 5.0, nan, inf]),
    "d": (pa.float64(), [None, -1.5, -0.0, 0.0, 5.0, nan, -inf]),
    "n": (pa.decimal128(9, 2), [None, Decimal("-1.00"), Decimal("5.00"), Decimal("1.50")]),
    "w": (pa.string(), [None, "", "a", "ab", "b", "\uffff", "\U0001f600", "a'b"]),
    "t": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, date(1969, 12, 31), date(2020, 1, 1), date(2024, 2, 29)]),
    "at": (
        pa.timestamp("us", "UTC"),
        [None, datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 5, 0, 0, 1, tzinfo=UTC)],
    ),
    "part": (pa.string(), [None, "x", "y z"]),
}
LITERALS: dict[str, Sequence[str]] = {
    **{name: ["5", "-5", "0", "5.0", "1.5", "NULL", "9999999999", "-129"] for name in "bsiln"},
    "f": ["0", "5", "1.5", "CAST('NaN' AS DOUBLE)", "NULL", "0.0"],
    "d": ["0", "5", "1.5", "CAST('NaN' AS DOUBLE)", "NULL", "-0.0", "5e0"],
    "w": ["'a'", "''", "'ab'", "'\uffff'", "'a''b'", "NULL"],
    "t": ["true", "false", "NULL"],
    "day": ["DATE '2020-01-01'", "'2020-01-01'", "DATE '1969-12-31'", "NULL"],
    "at": ["TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 05:00:00.000001'", "NULL"],
    "part": ["'x'", "'y z'", "NULL"],
}


def find_here(at: Site, files: FileSet, given: Condition) -> Marks | None:
    """What Arrow finds; None where it is left to Spark."""
    return try_first(lambda: finding.find(at, files, given))


def fetch_here(at: Site, files: FileSet, *given: Any) -> pa.Table | None:
    """What Arrow fetches; None where it is left to Spark."""
    return try_first(lambda: finding.fetch(at, files, *given))


def site(spark: SparkSession, files: FileSet) -> Site:
    """Where the session has these files."""
    return site_of(spark, files.root)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> str:
    """Three files or more of several row groups, with deleted rows, and a column that the first file lacks."""
    path, dice = str(tmp_path_factory.mktemp("finding") / "t"), random.Random(5)
    anabranch.append(path, drawn(dice).drop_columns(["i"]), partition_by=["part"])
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMN i INT")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq, "write_table", _in_small_groups(pq.write_table))
        for _ in range(2):
            anabranch.append(path, drawn(dice))
    anabranch.DeltaTable.forPath(spark, path).delete("l = -5 AND b = 0")
    return path


def _in_small_groups(plain: Any) -> Any:
    return lambda rows, sink, **options: plain(rows, sink, row_group_size=97, **options)


def drawn(dice: random.Random) -> pa.Table:
    return pa.table({name: pa.array(dice.choices(some, k=ROWS), kind) for name, (kind, some) in VALUES.items()})


def opened(path: str) -> FileSet:
    return file_set_of(Log(open_store(path)).snapshot())


def condition(path: str, text: str, spark: SparkSession) -> Condition:
    return resolve_condition(text, Log(open_store(path)).snapshot(), SparkEngine(spark))


def comparisons() -> list[str]:
    ops = ["=", "<=>", "<", "<=", ">", ">=", "<>"]
    single = [f"{name} {op} {literal}" for name, some in LITERALS.items() for literal in some for op in ops]
    several = [f"{name} IN ({', '.join(some[:2])})" for name, some in LITERALS.items()]
    nulls = [f"{name} IS {maybe}NULL" for name in LITERALS for maybe in ("", "NOT ")]
    return [
        *single,
        *several,
        *nulls,
        "w LIKE 'a%'",
        "length(w) = 1",
        "w LIKE '%b'",
        "i = l",
        "part = 'x' AND i = 5",
        "NOT (i = 5 OR w IS NULL)",
    ]


def combined(dice: random.Random) -> str:
    parts = dice.sample(comparisons(), 3)
    both, then, maybe = dice.choice(["AND", "OR"]), dice.choice(["AND", "OR"]), dice.choice(["", "NOT "])
    return f"({parts[0]} {both} {maybe}({parts[1]})) {then} {parts[2]}"


def test_every_comparison_finds_what_spark_finds(spark: SparkSession, table: str) -> None:
    files, dice = opened(table), random.Random(7)
    texts = [*dice.sample(comparisons(), examples(70, 30)), *(combined(dice) for _ in range(examples(30, 10)))]
    asked = {text: find_here(site(spark, files), files, condition(table, text, spark)) for text in texts}
    found = {text: marks for text, marks in asked.items() if marks is not None}
    assert len(found) > len(texts) // 3
    for text, marks in by_spark(spark, files, [*found]).items():
        assert found[text] == marks, text
    few = next(text for text, marks in found.items() if marks)
    assert row_addresses.find(spark, files, condition(table, few, spark)) == found[few]


def by_spark(spark: SparkSession, files: FileSet, texts: Sequence[str]) -> dict[str, Marks]:
    """The rows for which each condition is TRUE, of all of them in one query."""
    address = address_of(files.schema)
    are_true = [F.expr(text).alias(f"is_{i}") for i, text in enumerate(texts)]
    rows = scan(spark, files, address=True).select(address.path, address.row, *are_true).toArrow()
    found = {text: rows.filter(rows[f"is_{i}"]) for i, text in enumerate(texts)}
    return {text: marks_of(each.to_pydict(), address) for text, each in found.items()}


@pytest.mark.parametrize("text", ["true", "part IS NULL", "part = 'x' OR part IS NULL", "1 > 2"])
def test_conditions_on_no_column_of_the_files_are_judged_too(spark: SparkSession, table: str, text: str) -> None:
    files = opened(table)
    given = condition(table, text, spark)
    assert find_here(site(spark, files), files, given) == row_addresses.find(spark, files, given)


def marks_of(rows: dict[str, Any], address: Any) -> Marks:
    marks = defaultdict[str, BitMap64](BitMap64)
    for path, row in zip(rows[address.path], rows[address.row], strict=True):
        marks[path].add(row)
    return marks


@pytest.mark.parametrize(
    "text", ["i + 1 = 6", "+w = 'a'", "i = 5 AND rand() > 2", "soundex(w) = 'A000'", "w RLIKE 'b'", "f = i"]
)
def test_what_is_not_known_for_certain_is_left_to_spark(spark: SparkSession, table: str, text: str) -> None:
    assert find_here(site(spark, opened(table)), opened(table), condition(table, text, spark)) is None


def test_the_marked_rows_are_brought_as_spark_reads_them(spark: SparkSession, table: str) -> None:
    files = opened(table)
    address = address_of(files.schema)
    marks = find_here(site(spark, files), files, condition(table, "i = 5 OR w = 'a' OR d = 5", spark))
    assert marks
    here = fetch_here(site(spark, files), files, marks, files.schema.names, address)
    assert here is not None
    rows = scan(spark, files, address=True).toArrow()
    wanted = [row for row in rows.to_pylist() if row[address.row] in marks.get(row[address.path], BitMap64())]
    assert sorted(map(repr, here.to_pylist())) == sorted(map(repr, wanted))
    places = [
        (path, row) for path, row in zip(here[address.path].to_pylist(), here[address.row].to_pylist(), strict=True)
    ]
    order = files.files["path"].to_pylist()
    assert places == sorted(places, key=lambda each: (order.index(each[0]), each[1]))


@pytest.mark.parametrize(
    "values",
    [
        {"l": [5, -5, 2**53 + 1]},
        {"w": ["a", "\uffff"]},
        {"day": [date(2020, 1, 1)], "s": [5, 0]},
        {"part": ["x"], "b": [5]},
        {"l": [5, None]},
        {"w": [None, "a"], "s": [0, None]},
        {"part": [None, "x"]},
    ],
)
def test_live_rows_with_some_values_are_found_with_their_addresses(
    spark: SparkSession, table: str, values: dict[str, list[Any]]
) -> None:
    files = opened(table)
    kinds = {
        "l": pa.int64(),
        "s": pa.int64(),
        "b": pa.int64(),
        "w": pa.string(),
        "day": pa.date32(),
        "part": pa.string(),
    }
    asked = {name: pa.array(some, kinds[name]) for name, some in values.items()}
    found = finding.find_by_keys(site(spark, files), files, asked, ("path", "row"))
    assert found is not None
    address = address_of(files.schema)
    rows = scan(spark, files, [*values], address=True).toArrow().to_pylist()
    wanted = {
        (row[address.path], row[address.row]) for row in rows if all(row[name] in some for name, some in values.items())
    }
    assert {(row["path"], row["row"]) for row in found.to_pylist()} == wanted
    assert len(found) == len(wanted) > 0


def test_a_file_that_is_not_there_is_left_to_spark_which_says_so(spark: SparkSession, table: str) -> None:
    files = opened(table)
    gone = files.files.to_pylist()[0] | {"path": "part=x/gone.parquet"}
    files = replace(files, files=files_table([gone]), vectors={})
    assert find_here(site(spark, files), files, condition(table, "l = 5", spark)) is None


def test_more_than_may_be_brought_is_left_to_spark(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = opened(table)
    marks = find_here(site(spark, files), files, condition(table, "l = 5", spark))
    assert marks
    monkeypatch.setattr(finding, "MOST_BYTES", 100)
    assert fetch_here(site(spark, files), files, marks, ["l", "w"]) is None


def test_elsewhere_than_on_this_machine_only_small_files_are_read_here(spark: SparkSession, table: str) -> None:
    files, given = opened(table), condition(table, "l = 5", spark)
    elsewhere = replace(site(spark, files), most_bytes=sites.SMALL_BYTES)
    assert find_here(elsewhere, files, given) is not None
    assert find_here(replace(elsewhere, most_bytes=0), files, given) is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int64()),  # the table says integer
        pa.array([datetime(2020, 1, 1), None], pa.timestamp("ns")),
    ],
)
def test_files_that_arrow_reads_otherwise_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, column: pa.Array
) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, pa.table({"i": pa.array([1, 2], pa.int32())}))
    files = opened(path)
    file = Path(path) / files.files["path"][0].as_py()
    pq.write_table(pa.table({"i": column}), file)
    assert find_here(site(spark, files), files, condition(path, "i = 1", spark)) is None


def test_row_groups_without_marked_rows_are_not_read(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = opened(table)
    last = files.files["path"].to_pylist()[-1]
    marks: Marks = {last: BitMap64([0])}
    groups, plain = list[int](), pq.ParquetFile.iter_batches

    def noted(source: pq.ParquetFile, rows: int, *, row_groups: list[int], **named: Any) -> Any:
        groups.extend(row_groups)
        return plain(source, rows, row_groups=row_groups, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    here = fetch_here(site(spark, files), files, marks, ["l"])
    assert here is not None
    assert len(here) == 1
    assert groups == [0]


# -- members of structs ------------------------------------------------------------------------------------------------

NESTED = "u STRING, x BIGINT, deep STRUCT<v: BIGINT, y: DATE>"
MEMBERS = [
    *("inside.x = 5", "inside.u < 'b'", "inside.deep.y >= '2020-01-01'", "inside.deep.v IS NULL"),
    *(
        "inside.x IS NOT NULL AND k > 3",
        "NOT (inside.x = 5 OR inside.deep.v = 5) OR inside.u = 'b'",
        "INSIDE.X + 1 <=> 6",
    ),
]


@pytest.fixture(scope="module", params=["none", "name"])
def nested(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, request: pytest.FixtureRequest) -> str:
    """Rows by Spark and by Arrow, of which a struct, or one within it, is NULL, and a deleted one."""
    path = str(tmp_path_factory.mktemp(f"nested-{request.param}") / "t")
    anabranch.sql(
        spark,
        f"CREATE TABLE delta.`{path}` (k BIGINT, inside STRUCT<{NESTED}>) USING delta TBLPROPERTIES"
        f" ('delta.columnMapping.mode' = '{request.param}')",
    )
    y = date(2020, 1, 1)
    inside = [
        *(None, {"u": "a", "x": None, "deep": None}, {"u": None, "x": 5, "deep": {"v": 5, "y": None}}),
        *({"u": "b", "x": -5, "deep": {"v": None, "y": y}}, {"u": "a", "x": 5, "deep": {"v": 7, "y": y}}),
    ]
    rows = [{"k": k, "inside": value} for k, value in enumerate(inside * 2)]
    made = spark.createDataFrame(rows, f"k BIGINT, inside STRUCT<{NESTED}>")
    anabranch.install(spark)
    made.write.format("delta").mode("append").save(path)
    anabranch.append(path, pa.Table.from_pylist(rows))
    anabranch.DeltaTable.forPath(spark, path).delete("k = 7")
    return path


def test_rows_are_found_by_members_of_structs(spark: SparkSession, nested: str) -> None:
    files = opened(nested)
    is_mapped = any(each.physical_name != each.name for each in files.schema)
    found = {text: find_here(site(spark, files), files, condition(nested, text, spark)) for text in MEMBERS}
    if is_mapped:  # members have other names in files
        assert [*found.values()] == [None] * len(MEMBERS)
    else:
        assert found == by_spark(spark, files, MEMBERS)
        assert all(found.values())


def test_a_file_that_lacks_a_member_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, pa.Table.from_pylist([{"inside": {"x": 1}}]))
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMN inside.later BIGINT")
    assert find_here(site(spark, opened(path)), opened(path), condition(path, "inside.later IS NULL", spark)) is None
    assert find_here(site(spark, opened(path)), opened(path), condition(path, "inside.x = 1", spark))


# -- nested columns ----------------------------------------------------------------------------------------------------

DEEP = (
    "k BIGINT, v DOUBLE, tags ARRAY<STRING>, inside STRUCT<a: BIGINT, at: TIMESTAMP, l: ARRAY<STRUCT<x: DECIMAL(9,2)>>>"
)
DEEP += ", m MAP<STRING, STRUCT<y: DATE, f: DOUBLE>>"
DEEPER = [
    (
        1,
        0.5,
        ["a", None],
        {"a": 5, "at": MOMENTS[1], "l": [{"x": Decimal("1.50")}, None]},
        {"p": {"y": None, "f": nan}},
    ),
    (2, 0.5, None, None, None),
    (3, 0.5, [], {"a": None, "at": None, "l": []}, {}),
    (4, 0.5, [""], {"a": 7, "at": None, "l": None}, {"q": None, "é": {"y": date(1969, 12, 31), "f": -0.0}}),
]


@pytest.mark.parametrize("by", ["spark", "arrow"])
def test_an_update_of_a_table_with_nested_columns_keeps_them_without_a_job(
    spark: SparkSession, tmp_path: Path, by: str
) -> None:
    path, schema = str(tmp_path / "t"), spark.createDataFrame(DEEPER, DEEP).toArrow()
    anabranch.install(spark)
    if by == "spark":
        spark.createDataFrame(DEEPER, DEEP).coalesce(1).write.format("delta").save(path)
    else:
        anabranch.append(path, schema)
    table = anabranch.DeltaTable.forPath(spark, path)
    before = {row["k"]: row.asDict(recursive=True) for row in table.toDF().collect()}
    update = lambda: table.update("v < 1 OR inside.a = 5", {"v": "v + k"})  # noqa: E731
    assert jobs(spark, update) == 0
    after = {row["k"]: row.asDict(recursive=True) for row in table.toDF().collect()}
    assert repr(after) == repr({k: {**row, "v": 0.5 + k} for k, row in before.items()})
    duck = duckdb_rows(path)
    assert {row["k"]: row["tags"] for row in duck} == {k: row["tags"] for k, row in before.items()}
    table.update("k > 0", {"v": "nanvl(v % 2, 0)"})  # by Spark, of the rows that Arrow wrote
    again = {row["k"]: row.asDict(recursive=True) for row in table.toDF().collect()}
    assert repr(again) == repr({k: {**row, "v": (0.5 + k) % 2} for k, row in before.items()})
