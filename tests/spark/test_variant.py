"""Variants: written as the protocol's struct of two binaries, read back, and refused where nobody can compare them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError, InvalidCondition, InvalidOption, UnsupportedType
from tests.support.raw_logs import metadata, put_commit
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark

ROWS = """SELECT id, parse_json('{"a":' || id || ',"b":["x",null]}') AS v,
    named_struct('m', parse_json('"in"')) AS s, array(parse_json('1.5')) AS l FROM range(4)"""


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of which each test has a copy."""
    where = table_path(tmp_path_factory.mktemp("variants"))
    anabranch.install(spark).sql(ROWS).coalesce(1).write.format("delta").save(where)
    return where


@pytest.fixture
def path(written: str, tmp_path: Path) -> str:
    return shutil.copytree(written, table_path(tmp_path))


def numbers(spark: Any, path: str) -> list[tuple[int, int | None]]:
    rows = spark.read.format("delta").load(path).selectExpr("id", "variant_get(v, '$.a', 'int') AS a")
    return sorted((row["id"], row["a"]) for row in rows.collect())


def test_variants_come_back_at_any_depth(spark: Any, path: str) -> None:
    protocol = open_log(path).snapshot().protocol
    assert protocol.reader_features == {"deletionVectors", "variantType"}
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes) == {"id": "bigint", "v": "variant", "s": "struct<m:variant>", "l": "array<variant>"}
    texts = rows.selectExpr("to_json(v) AS v", "to_json(s.m) AS m", "to_json(l[0]) AS l").collect()
    assert {tuple(row) for row in texts} == {(f'{{"a":{i},"b":["x",null]}}', '"in"', "1.5") for i in range(4)}


def test_files_hold_the_two_binaries_and_nothing_shredded(spark: Any, path: str) -> None:
    """PROTOCOL.md, "Writer Requirements for Variant Data Type": exactly ``value`` and ``metadata``."""
    DeltaTable.forPath(spark, path).update("id = 1", {"v": "parse_json('{\"a\":70}')"})
    files = list(Path(path).rglob("*.parquet"))
    assert len(files) == 2
    for file in files:
        schema = pq.read_schema(file)
        for struct in (
            schema.field("v").type,
            schema.field("s").type.field("m").type,
            schema.field("l").type.value_type,
        ):
            assert {struct.field(i).name for i in range(struct.num_fields)} == {"value", "metadata"}


def test_variants_have_no_bounds(path: str) -> None:
    (stats,) = open_log(path).snapshot().files["stats"].to_pylist()
    stated = json.loads(stats)
    assert "v" not in stated["minValues"]
    assert "v" not in stated["maxValues"]
    assert stated["minValues"] == {"id": 0}


def test_rows_with_variants_are_changed_deleted_and_merged(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.update("variant_get(v, '$.a', 'int') = 2", {"v": "parse_json('{\"a\":20}')"})
    table.delete("id = 0")
    source = spark.sql("SELECT 3L AS id, parse_json('{\"a\":30}') AS v UNION ALL SELECT 9L, parse_json('{\"a\":90}')")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()
    assert numbers(spark, path) == [(1, 1), (2, 20), (3, 30), (9, 90)]
    assert table.check().is_clean


def test_a_variant_column_is_added_and_old_files_lack_it(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 0}, {"id": 1}])
    AddColumns(path, [NewColumn(Field("v", "variant"))]).run()
    spark.sql("SELECT 5L AS id, parse_json('{\"a\":5}') AS v").write.format("delta").mode("append").save(path)
    assert numbers(spark, path) == [(0, None), (1, None), (5, 5)]


@pytest.mark.usefixtures("compiled")
def test_shredded_files_of_another_writer_are_read(spark: Any, tmp_path: Path) -> None:
    path = Path(table_path(tmp_path))
    spark.sql("SELECT id, parse_json('{\"a\":' || id || '}') AS v FROM range(50)").repartition(1).write.option(
        "spark.sql.variant.inferShreddingSchema", "true"
    ).parquet(str(path))
    (file,) = path.glob("*.parquet")
    if "typed_value" not in str(pq.read_schema(file).field("v").type):
        pytest.skip("this version of Spark shreds no variants by itself")
    names = ["variantType", "variantShredding"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}
    schema = Struct((Field("id", "long"), Field("v", "variant")))
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 0}
    put_commit(path, 0, {"protocol": protocol}, metadata(schema), {"add": {**add, "dataChange": True}})
    assert numbers(spark, str(path)) == [(i, i) for i in range(50)]
    DeltaTable.forPath(spark, str(path)).update("id = 7", {"v": "parse_json('{\"a\":70}')"})
    assert (7, 70) in numbers(spark, str(path))


def test_variants_partition_nothing_and_are_compared_with_nothing(spark: Any, path: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="a variant cannot partition"):
        spark.sql(ROWS).write.format("delta").partitionBy("v").save(table_path(tmp_path))
    table = DeltaTable.forPath(spark, path)
    for refused in (lambda: table.delete("v = v"), lambda: table.update("v < parse_json('1')", {"id": "1"})):
        with pytest.raises(InvalidCondition):
            refused()
    same = table.alias("t").merge(spark.sql(ROWS).alias("s"), "t.v = s.v").whenMatchedDelete()
    with pytest.raises(AnabranchError):
        same.execute()
    assert len(anabranch.history(path)) == 1


def test_rows_at_hand_cannot_be_appended_beside_variants(path: str) -> None:
    with pytest.raises(UnsupportedType) as refused:
        anabranch.append(path, [{"id": 1}])
    assert refused.value.type == "variant"
    assert len(anabranch.history(path)) == 1


def test_a_table_that_has_variants_in_a_list_only_is_compacted(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    for i in range(2):
        rows = spark.sql(f"SELECT {i} AS id, array(parse_json('{i}')) AS l")
        rows.coalesce(1).write.format("delta").mode("append").save(path)
    assert spark.sql(f"OPTIMIZE delta.`{path}`").first()["metrics"]["numFilesRemoved"] == 2
    found = spark.sql(f"SELECT id, to_json(l[0]) AS l FROM delta.`{path}` ORDER BY id").collect()
    assert found == [(0, "0"), (1, "1")]


def test_a_mapped_table_with_variants_is_purged_and_its_wider_types_are_dropped(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    names = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    columns = "id INT, gone INT, v VARIANT, l ARRAY<VARIANT>"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ({names})")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, 2, parse_json('1'), array(parse_json('2'))")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN gone")
    purge = f"REORG TABLE delta.`{path}` APPLY (PURGE)"
    assert [spark.sql(purge).first()["metrics"]["numFilesRemoved"] for _ in range(2)] == [1, 0]
    spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE typeWidening")
    assert spark.sql(f"SELECT id, to_json(v) AS v, to_json(l[0]) AS l FROM delta.`{path}`").collect() == [(1, "1", "2")]
