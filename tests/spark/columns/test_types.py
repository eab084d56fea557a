"""Types at Spark's door: what a table can hold comes back, in every session; what none can hold is refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.types import arrow_rows, tree_reduce
from anabranch.commands.opening import open_log
from anabranch.errors import UnsupportedType
from tests.support.raw_logs import PROTOCOL, metadata, put_commit, put_rows
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"


@pytest.fixture(autouse=True)
def installed(spark: Any) -> Iterator[None]:
    anabranch.install(spark)
    yield
    spark.conf.set(ZONE, "UTC")


@pytest.mark.parametrize("partition_by", [(), ("t",)])
def test_a_timestamp_without_zone_is_the_same_in_every_zone(
    spark: Any, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    """2:30 on the day when clocks jump from 2 to 3 is a time like any other."""
    path = table_path(tmp_path)
    moments = [dt.datetime(2021, 3, 28, 2, 30), dt.datetime(1500, 1, 1, 0, 0, 0, 7), None]
    spark.conf.set(ZONE, "Europe/Berlin")
    rows = spark.createDataFrame(list(enumerate(moments)), "id int, t timestamp_ntz").repartition(3, "id")
    rows.write.format("delta").partitionBy(*partition_by).save(path)
    assert open_log(path).snapshot().protocol.reader_features == {"deletionVectors", "timestampNtz"}
    spark.conf.set(ZONE, "America/Los_Angeles")
    wanted: list[dict[str, Any]] = [{"id": i, "t": moment} for i, moment in enumerate(moments)]
    found = [row.asDict() for row in spark.read.format("delta").load(path).collect()]
    for read in (found, deltalake_rows(path), duckdb_rows(path)):
        assert same_rows(read, wanted)
    where = "t = TIMESTAMP_NTZ'2021-03-28 02:30:00'"
    assert [row["id"] for row in anabranch.read(path, where=where, spark=spark).collect()] == [0]
    table = DeltaTable.forPath(spark, path)
    table.update(where, {"t": "TIMESTAMP_NTZ'2021-03-28 02:30:00.5'"})
    table.delete("t < TIMESTAMP_NTZ'1900-01-01 00:00:00'")
    spark.conf.set(ZONE, "UTC")
    left = [row.asDict() for row in spark.read.format("delta").load(path).collect()]
    assert same_rows(left, [{"id": 0, "t": dt.datetime(2021, 3, 28, 2, 30, 0, 500_000)}, {"id": 2, "t": None}])
    assert table.check().is_clean


@pytest.mark.parametrize(
    "odd", ["make_interval(1)", "'a' COLLATE UTF8_LCASE", "array('a' COLLATE UTF8_LCASE)", "array(make_interval(1))"]
)
def test_a_type_that_no_table_can_hold_is_refused_before_anything_is_written(
    spark: Any, tmp_path: Path, odd: str
) -> None:
    path = table_path(tmp_path)
    with pytest.raises(UnsupportedType):
        spark.sql(f"SELECT 1 AS id, {odd} AS odd").write.format("delta").save(path)
    assert not Path(path).exists()


@pytest.mark.parametrize("strange", ["interval", "interval month to day", "INTERVAL Year", "geometry(4326)"])
def test_a_column_of_such_a_type_keeps_a_table_from_being_read(spark: Any, tmp_path: Path, strange: str) -> None:
    path = table_path(tmp_path)
    schema = Struct((Field("id", "long"), Field("odd", strange)))
    put_commit(path, 0, PROTOCOL, metadata(schema), put_rows(path, "a.parquet", [{"id": 1}]))
    with pytest.raises(UnsupportedType) as refused:
        spark.read.format("delta").load(path).collect()
    assert (refused.value.column, refused.value.type) == ("odd", strange)


def test_a_column_with_a_collation_is_read_as_text_and_never_skipped_by(spark: Any, tmp_path: Path) -> None:
    """PROTOCOL.md: the collation stands in the metadata; statistics of another order say nothing about it."""
    path = table_path(tmp_path)
    facts = {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}
    schema = Struct((Field("c", "string", metadata=facts),))
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["collations", "domainMetadata"]}
    stats = '{"numRecords":1,"minValues":{"c":"A"},"maxValues":{"c":"A"},"nullCount":{"c":0}}'
    put_commit(
        path, 0, {"protocol": features}, metadata(schema), put_rows(path, "a.parquet", [{"c": "A"}], stats=stats)
    )
    assert [row["c"] for row in spark.read.format("delta").load(path).collect()] == ["A"]
    assert len(anabranch.files(path, where="c = 'zz'")) == 1


def test_rows_that_are_none_have_their_nested_columns_all_the_same(spark: Any) -> None:
    kinds = {"l": pa.list_(pa.int32()), "s": pa.struct({"x": pa.string()}), "m": pa.map_(pa.string(), pa.int64())}
    none = pa.schema(list(kinds.items())).empty_table()
    found = arrow_rows(spark, none)
    assert found.columns == ["l", "s", "m"]
    assert found.collect() == []
    assert found.unionAll(
        arrow_rows(spark, pa.table({"l": [[1]], "s": [{"x": "a"}], "m": [None]}, none.schema))
    ).count()


def test_parts_are_joined_two_by_two_in_their_order() -> None:
    assert tree_reduce(lambda one, other: f"({one} {other})", "abcde") == "(((a b) (c d)) e)"
    assert tree_reduce(lambda one, other: one + other, [7]) == 7
