"""Old files are read with the wider types that a table got since, for every pair that the protocol allows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.schema.types import Array, Field, Map, Struct, arrow_type, decimal_of
from anabranch._spark.engine import SparkEngine
from anabranch._spark.reading.scan import scan
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError, ConstraintNotMet, InvalidCondition, InvalidOption
from tests.spark.tables import file_row, file_set
from tests.support.raw_logs import add, metadata, put_commit
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


OLD: dict[str, list[Any]] = {
    "byte": [1, None, -128],
    "short": [1, None, -32768],
    "integer": [1, None, -(2**31)],
    "long": [1, None, -(2**63)],
    "float": [1.5, None, pa.scalar(0.1, pa.float32()).as_py()],
    "date": [dt.date(2020, 2, 29), None, dt.date(1500, 2, 3)],
    "decimal(5,2)": [Decimal("1.25"), None, Decimal("-999.99")],
    "decimal(12,2)": [Decimal("1.25"), None, Decimal("-9999999999.99")],
    "decimal(20,2)": [Decimal("1.25"), None, Decimal("-999999999999999999.99")],
}
"""How an old file holds them: decimals as INT32, INT64 and bytes."""

WIDER: dict[str, tuple[str, ...]] = {
    "byte": ("short", "integer", "long", "double", "decimal(10,0)", "decimal(12,2)", "decimal(38,10)"),
    "short": ("integer", "long", "double", "decimal(10,0)", "decimal(12,2)", "decimal(38,10)"),
    "integer": ("long", "double", "decimal(10,0)", "decimal(12,2)", "decimal(38,10)"),
    "long": ("decimal(20,0)", "decimal(22,2)", "decimal(38,10)"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
    "decimal(5,2)": ("decimal(6,2)", "decimal(15,5)", "decimal(38,2)"),
    "decimal(12,2)": ("decimal(13,3)", "decimal(30,2)"),
    "decimal(20,2)": ("decimal(21,2)", "decimal(38,10)"),
}
WIDENING = {"delta.enableTypeWidening": "true"}
PAIRS = [(before, after) for before, several in WIDER.items() for after in several]
WRITERS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "data_page_version": "2.0"},
    "decimals as integers": {"store_decimal_as_integer": True},
}


def wide(value: Any, after: str) -> Any:
    """The value as the wider type has it."""
    digits = decimal_of(after)
    if value is None:
        return None
    if digits is not None:
        return Decimal(value).quantize(Decimal((0, (1,), -digits[1])), context=Context(prec=38))
    if after == "timestamp_ntz":
        return dt.datetime.combine(value, dt.time())
    return float(value) if after == "double" else value


def everywhere(data_type: str) -> Struct:
    """Columns that hold a type in every place where one can stand."""
    member = Struct((Field("m", data_type),))
    several = {"c": data_type, "s": member, "a": Array(data_type), "k": Map(data_type, data_type), "l": Array(member)}
    return Struct(tuple(Field(name, each) for name, each in several.items()))


def row_of(value: Any) -> dict[str, Any]:
    keyed = [(value, value)] if value is not None else None
    return {"c": value, "s": {"m": value}, "a": [value], "k": keyed, "l": [{"m": value}]}


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_spark_reads_old_values_with_the_wider_type_wherever_they_stand(
    spark: Any, tmp_path: Path, before: str, after: str
) -> None:
    """PROTOCOL.md, "Reader Requirements for Type Widening". Spark does all of it by itself, so `scan` does nothing."""
    rows, arrow = [row_of(value) for value in OLD[before]], to_arrow_all(everywhere(before))
    described = []
    for writer, options in WRITERS.items():
        described.append(file_row(tmp_path, f"{writer}.parquet", pa.Table.from_pylist(rows, schema=arrow)))
        pq.write_table(pa.Table.from_pylist(rows, schema=arrow), tmp_path / f"{writer}.parquet", **options)
    files = file_set(tmp_path, described, everywhere(after))
    expected = [row_of(wide(value, after)) for value in OLD[before]] * len(WRITERS)
    found = [plain(row) for row in scan(spark, files).collect()]
    assert sorted(found, key=repr) == sorted(map(plain_row, expected), key=repr)


def to_arrow_all(schema: Struct) -> pa.Schema:
    return pa.schema([pa.field(each.name, arrow_type(each.type)) for each in schema])


def plain(row: Any) -> dict[str, Any]:
    return plain_row(row.asDict(recursive=True))


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    keyed = row["k"]
    return {**row, "k": None if keyed is None else dict(keyed)}


@pytest.mark.parametrize("before", ["byte", "short", "integer"])
def test_a_literal_beyond_the_old_type_overlooks_no_row_of_an_old_file(spark: Any, tmp_path: Path, before: str) -> None:
    """Spark hands conditions to the reader, which knows the file's narrow type: 2^32 + 1 must not become 1 there."""
    table = pa.table({"c": pa.array([1, -7, None], arrow_type(before))})
    files = file_set(tmp_path, [file_row(tmp_path, "a.parquet", table)], Struct((Field("c", "long"),)))
    rows = scan(spark, files)
    assert rows.filter(f"c < {2**32 + 1}").count() == 2
    assert rows.filter(f"c = {2**32 + 1} OR c IN ({2**32 - 7}, {2**33 + 1})").count() == 0
    assert rows.filter("c = 1").count() == 1


def test_a_widened_table_is_written_read_skipped_changed_and_merged(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    narrow = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("d", pa.date32()), ("p", pa.decimal128(5, 2))])
    first = {"id": 1, "f": 1.5, "d": dt.date(2020, 2, 29), "p": Decimal("1.25")}
    anabranch.append(path, pa.Table.from_pylist([first], schema=narrow), properties=WIDENING)
    SetProperties(path, {"delta.feature.timestampNtz": "supported"}).run()
    for name, after in {"id": "long", "f": "double", "d": "timestamp_ntz", "p": "decimal(12,4)"}.items():
        ChangeColumn(path, (name,), type=after).run()
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"id": "bigint", "f": "double", "d": "timestamp_ntz", "p": "decimal(12,4)"}
    late = "SELECT 5000000000 AS id, 0.1D AS f, TIMESTAMP_NTZ'2021-01-01 12:00:00' AS d, 2.0625BD AS p"
    spark.sql(late).write.format("delta").mode("append").save(path)
    assert len(anabranch.files(path, where="id > 4000000000")) == 1
    assert len(anabranch.files(path, where="d = '2020-02-29'")) >= 1
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"f": "f + 0.25"})
    source = spark.sql("SELECT 1L AS id, 3.0625BD AS p UNION ALL SELECT 7L, 4.5BD")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"p": "s.p"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"}).execute()
    table.delete("p = 4.5")
    found = {row["id"]: row for row in spark.read.format("delta").load(path).collect()}
    assert found[1]["f"] == 1.75
    assert found[1]["p"] == Decimal("3.0625")
    assert found[1]["d"] == dt.datetime(2020, 2, 29)
    assert set(found) == {1, 5000000000}
    assert table.check().is_clean


def test_rows_of_a_data_frame_widen_columns_with_merge_schema(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    nested = pa.array([{"n": 1}], pa.struct({"n": pa.int16()}))
    anabranch.append(path, pa.table({"id": pa.array([1], pa.int32()), "s": nested}), properties=WIDENING)
    wider = spark.sql("SELECT 5000000000 AS id, named_struct('n', 70000) AS s, 'x' AS new")
    wider.write.format("delta").mode("append").option("mergeSchema", True).save(path)
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"id": "bigint", "s": "struct<n:int>", "new": "string"}
    found = {(row["id"], row["s"]["n"], row["new"]) for row in rows.collect()}
    assert found == {(1, 1, None), (5000000000, 70000, "x")}


def test_an_insert_by_position_widens_columns_with_schema_evolution(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    short, nested = pa.array([1], pa.int16()), pa.array([{"b": 1}], pa.struct({"b": pa.int16()}))
    anabranch.append(path, pa.table({"a": short, "s": nested, "d": short}), properties=WIDENING)
    with pytest.raises(AnabranchError):
        anabranch.sql(spark, f"INSERT INTO {table} SELECT 70000, NULL, NULL")
    evolving = f"INSERT WITH SCHEMA EVOLUTION INTO {table}"
    anabranch.sql(spark, f"{evolving} SELECT 70000, named_struct('x', 70000), CAST(2.25 AS DECIMAL(12, 2))")
    anabranch.sql(spark, f"{evolving} (a) VALUES (5000000000)")
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"a": "bigint", "s": "struct<b:int>", "d": "decimal(12,2)"}
    found = [(1, (1,), 1), (70000, (70000,), Decimal("2.25")), (5000000000, None, None)]
    assert [tuple(each) for each in rows.orderBy("a").collect()] == found


@pytest.mark.exhaustive(
    "tests/spark/test_widening.py::test_a_widened_table_is_written_read_skipped_changed_and_merged",
    "tests/commands/ddl/test_change_column.py::test_every_verb_takes_old_files_of_integers_that_became_decimals",
)
def test_integers_that_became_decimals_are_read_skipped_changed_merged_and_compacted(
    spark: Any, tmp_path: Path
) -> None:
    path = table_path(tmp_path)
    table, wider = (
        f"delta.`{path}`",
        {"b": "decimal(12,2)", "i": "decimal(38,28)", "l": "decimal(22,2)", "p": "decimal(10,0)"},
    )
    first = spark.sql("SELECT 1 AS id, 2Y AS b, -3 AS i, 4L AS l, 5S AS p UNION ALL SELECT 2, NULL, NULL, NULL, NULL")
    first.write.format("delta").partitionBy("p").option("delta.enableTypeWidening", "true").save(path)
    for name, after in wider.items():
        anabranch.sql(spark, f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {after}")
    anabranch.sql(spark, f"INSERT INTO {table} VALUES (3, 7.25, -1.5, 8.25, 5), (4, 7.25, -1.5, 8.25, 6)")
    for where in ("b < 3", "i = -3", "l = 4", "p = 5 AND b < 3"):
        assert anabranch.sql(spark, f"SELECT id FROM {table} WHERE {where}").collect() == [(1,)], where
        assert len(anabranch.files(path, where=where)) == 1, where
    anabranch.sql(spark, f"UPDATE {table} SET b = 2.5 WHERE l = 4 AND p = 5")
    source = "SELECT 2 AS id, CAST(9.75 AS DECIMAL(12, 2)) AS b"
    anabranch.sql(spark, f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = s.b")
    anabranch.sql(spark, f"DELETE FROM {table} WHERE i = -1.5 AND p = 6")
    anabranch.sql(spark, f"OPTIMIZE {table}")
    found = {row["id"]: (row["b"], row["l"], row["p"]) for row in spark.read.format("delta").load(path).collect()}
    assert found == {
        1: (Decimal("2.50"), 4, 5),
        2: (Decimal("9.75"), None, None),
        3: (Decimal("7.25"), Decimal("8.25"), 5),
    }
    assert anabranch.check(path, deep=True).is_clean


def test_a_merge_of_whole_rows_widens_columns_where_it_may(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    narrow = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("kept", pa.int32())])
    old = [{"id": 1, "f": 1.5, "kept": 7}, {"id": 2, "f": 2.5, "kept": 8}]
    anabranch.append(path, pa.Table.from_pylist(old, schema=narrow), properties=WIDENING)
    source = spark.sql("SELECT 2L AS id, 0.1D AS f, 'x' AS new UNION ALL SELECT 5000000000, 0.2D, 'y'")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    whole = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(AnabranchError):
        whole.execute()
    whole.withSchemaEvolution().execute()
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"id": "bigint", "f": "double", "kept": "int", "new": "string"}
    assert {tuple(row) for row in rows.collect()} == {
        (1, 1.5, 7, None),
        (2, 0.1, 8, "x"),
        (5000000000, 0.2, None, "y"),
    }
    assert DeltaTable.forPath(spark, path).check().is_clean


@pytest.mark.exhaustive(
    "tests/spark/test_widening.py::test_a_merge_of_whole_rows_widens_columns_where_it_may",
    "tests/expressions/test_sides.py::test_what_a_clause_sets_may_widen_what_is_there",
)
def test_a_merge_that_names_columns_widens_those(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    old = spark.sql("SELECT 1 AS id, 2 AS x, named_struct('n', 3) AS s, 4 AS left")
    old.write.format("delta").option("delta.enableTypeWidening", "true").save(path)
    source = "SELECT 1 AS id, 2.5D AS x, named_struct('n', 3.5D) AS s, 4.5D AS left"
    anabranch.sql(
        spark,
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` t USING ({source}) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET t.x = s.x, s.n = s.s.n",
    )
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"id": "int", "x": "double", "s": "struct<n:double>", "left": "int"}
    assert [(row["x"], row["s"]["n"], row["left"]) for row in rows.collect()] == [(2.5, 3.5, 4)]


@pytest.mark.parametrize(("said", "becomes"), [("ALWAYS", "double"), ("SAME_FAMILY_TYPE", None), ("never", None)])
def test_the_session_says_how_far_rows_widen(spark: Any, tmp_path: Path, said: str, becomes: str | None) -> None:
    path, name = table_path(tmp_path), "spark.databricks.delta.typeWidening.allowAutomaticWidening"
    anabranch.append(path, pa.table({"id": pa.array([1], pa.int32())}), properties=WIDENING)
    spark.conf.set(name, said)
    try:
        writer = spark.sql("SELECT 2.5D AS id").write.format("delta").mode("append").option("mergeSchema", True)
        if becomes is None:
            with pytest.raises(AnabranchError):
                writer.save(path)
        else:
            writer.save(path)
    finally:
        spark.conf.unset(name)
    assert spark.read.format("delta").load(path).dtypes == [("id", becomes or "int")]


MERGE = "MERGE WITH SCHEMA EVOLUTION INTO {} t USING ({}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.parametrize("statement", ["INSERT WITH SCHEMA EVOLUTION INTO {} {}", MERGE])
def test_a_statement_makes_a_day_a_moment_only_where_the_table_lists_the_feature(
    spark: Any, tmp_path: Path, statement: str
) -> None:
    path = table_path(tmp_path)
    first = pa.table({"id": pa.array([1], pa.int32()), "day": [dt.date(2020, 1, 1)]})
    anabranch.append(path, first, properties=WIDENING)
    text = statement.format(f"delta.`{path}`", "SELECT 2 AS id, TIMESTAMP_NTZ'2020-01-02 03:04:05' AS day")
    with pytest.raises(InvalidOption, match=r"set delta\.feature\.timestampNtz = supported first"):
        anabranch.sql(spark, text)
    assert open_log(path).snapshot().version == 0
    SetProperties(path, {"delta.feature.timestampNtz": "supported"}).run()
    anabranch.sql(spark, text)
    assert [str(row["day"]) for row in spark.read.format("delta").load(path).orderBy("id").collect()] == [
        "2020-01-01 00:00:00",
        "2020-01-02 03:04:05",
    ]


def test_not_null_and_defaults_are_looked_at_by_spark(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    rows = spark.sql("SELECT 1 AS id, named_struct('n', CAST(NULL AS INT)) AS s UNION ALL SELECT 2, NULL")
    rows.write.format("delta").save(path)
    engine = SparkEngine(spark)
    with pytest.raises(ConstraintNotMet) as refused:
        ChangeColumn(path, ("s", "n"), nullable=False).run(engine)
    assert (refused.value.count, refused.value.rows) == (1, 2)
    ChangeColumn(path, ("id",), nullable=False).run(engine)
    with pytest.raises(InvalidCondition):
        ChangeColumn(path, ("id",), default="id + 1").run(engine)
    ChangeColumn(path, ("id",), default="40 + 2").run(engine)
    spark.sql("SELECT NULL AS s").write.format("delta").mode("append").save(path)
    assert spark.read.format("delta").load(path).filter("id = 42").count() == 1


TIGHT: dict[str, tuple[str, list[Any]]] = {
    "byte": ("decimal(4,1)", [1, None, -128]),
    "short": ("decimal(6,1)", [1, None, -32768]),
    "long": ("decimal(19,0)", [1, None, -(2**63)]),
}
"""Changes that the protocol does not list, although all values fit; older versions of delta-spark made them."""


@pytest.mark.parametrize("before", sorted(TIGHT))
def test_a_decimal_that_just_holds_all_integers_is_read_and_changed(spark: Any, tmp_path: Path, before: str) -> None:
    """delta-kernel-rs, tests/data/type-widening: ``byte`` to ``decimal(4,1)``."""
    path, (after, values) = Path(table_path(tmp_path)), TIGHT[before]
    facts = {"delta.typeChanges": [{"fromType": before, "toType": after, "tableVersion": 1}]}
    inside = Struct((Field("c", after, metadata=facts),))
    columns = Struct((Field("id", "long"), Field("c", after, metadata=facts), Field("s", inside)))
    names = {name: ["typeWidening-preview"] for name in ("readerFeatures", "writerFeatures")}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **names}}
    adds = []
    for name, kind, numbers in (("old", before, values), ("new", after, [Decimal(2)])):
        typed = pa.array(numbers, arrow_type(kind))
        rows = {"id": range(len(numbers)), "c": typed, "s": pa.StructArray.from_arrays([typed], ["c"])}
        path.mkdir(exist_ok=True)
        pq.write_table(pa.table(rows), path / f"{name}.parquet")
        adds.append(add(f"{name}.parquet", size=(path / f"{name}.parquet").stat().st_size))
    put_commit(path, 0, protocol, metadata(columns), *adds)
    expected = sorted([Decimal(value) for value in (*values, 2) if value is not None])
    assert dict(spark.read.format("delta").load(str(path)).dtypes)["c"] == after
    for shown in ("c", "s.c"):
        read = spark.read.format("delta").load(str(path)).selectExpr(f"{shown} AS c").where("c IS NOT NULL").collect()
        assert sorted(row["c"] for row in read) == expected
    assert sorted(anabranch.table(str(path)).to_arrow(["c"])["c"].drop_null().to_pylist()) == expected
    table = DeltaTable.forPath(spark, str(path))
    table.update("c = 1", {"id": "7"})
    table.update("soundex(string(c)) IS NOT NULL AND c < 0", {"id": "8"})
    rows = spark.read.format("delta").load(str(path)).where("id > 6").orderBy("id").collect()
    assert [(row["id"], row["c"], row["s"]["c"]) for row in rows] == [(7, 1, 1), (8, values[2], values[2])]
