"""``df.write.insertInto``: rows by position, whatever their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch.commands.ddl.alter import SetProperties
from anabranch.errors import ConcurrentAppendException, InvalidOption, NotATable, SchemaMismatch
from anabranch.testing import at_phase
from tests.support.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture
def sql(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture
def path(sql: SparkSession, tmp_path: Path) -> str:
    made = str(tmp_path / "a ` table")
    struct = pa.struct([("a", pa.int32()), ("b", pa.string())])
    types = pa.schema([("id", pa.int32()), ("name", pa.string()), ("s", struct)])
    anabranch.append(made, pa.Table.from_pylist([{"id": 1, "name": "one", "s": {"a": 1, "b": "x"}}], types))
    return made


def named(path: str, format: str = "delta") -> str:
    return f"{format}.`{path.replace('`', '``')}`"


def rows_of(path: str) -> list[Any]:
    def plain(value: Any) -> Any:
        return tuple(value.values()) if isinstance(value, dict) else value

    return [tuple(map(plain, row.values())) for row in World(path).rows()]


def frame(sql: SparkSession, *rows: Any, ddl: str = "name long, id string, s struct<b: int, z: string>") -> DataFrame:
    return sql.createDataFrame(list(rows), ddl)


def test_the_first_column_goes_to_the_first_and_members_of_structs_too(sql: SparkSession, path: str) -> None:
    """The names say otherwise: `name` comes first here, and `b`."""
    frame(sql, (2, "two", (2, "y"))).write.insertInto(named(path))
    frame(sql, (3, "three", None)).write.mode("append").insertInto(named(path, "anabranch"))
    assert rows_of(path) == [(1, "one", (1, "x")), (2, "two", (2, "y")), (3, "three", None)]
    assert anabranch.history(path)[0]["isBlindAppend"] is True


def test_inside_arrays_and_maps_as_well(sql: SparkSession, tmp_path: Path) -> None:
    path, struct = str(tmp_path / "t"), pa.struct([("a", pa.int32()), ("b", pa.int32())])
    types = pa.schema([("list", pa.list_(struct)), ("map", pa.map_(pa.string(), struct))])
    anabranch.append(path, types.empty_table())
    turned = "x array<struct<b: int, a: int>>, y map<string, struct<b: int, a: int>>"
    frame(sql, ([(5, 6)], {"k": (7, 8)}), ddl=turned).write.insertInto(named(path))
    added = sql.read.format("delta").load(path).where("list[0].a = 5").first()
    assert added is not None
    assert (added["list"][0]["b"], added["map"]["k"]["a"], added["map"]["k"]["b"]) == (6, 7, 8)


def test_overwriting_replaces_what_is_there(sql: SparkSession, path: str) -> None:
    frame(sql, (2, "two", None)).write.insertInto(named(path), overwrite=True)
    assert rows_of(path) == [(2, "two", None)]
    frame(sql, (3, "three", None)).write.mode("overwrite").insertInto(named(path))
    assert rows_of(path) == [(3, "three", None)]
    frame(sql, (4, "four", None)).write.mode("overwrite").insertInto(named(path), overwrite=False)
    assert len(rows_of(path)) == 2


def test_columns_must_be_as_many_as_the_tables(sql: SparkSession, path: str) -> None:
    with pytest.raises(SchemaMismatch, match="need 3, and these have 2") as few:
        frame(sql, (2, "two"), ddl="id int, name string").write.insertInto(named(path))
    assert few.value.column == "s"
    four = frame(sql, (2, "two", None, 7), ddl="id int, name string, s struct<a: int, b: string>, more long")
    with pytest.raises(SchemaMismatch, match="need 3, and these have 4"):
        four.write.insertInto(named(path))
    four.write.option("mergeSchema", "true").insertInto(named(path))
    assert sorted(sql.read.format("delta").load(path).columns) == ["id", "more", "name", "s"]


def test_a_value_that_the_column_cannot_hold_stops_the_insert(sql: SparkSession, path: str) -> None:
    with pytest.raises(anabranch.errors.AnabranchError, match="does not fit"):
        frame(sql, (1 << 40, "two", None)).write.insertInto(named(path))
    with pytest.raises(SchemaMismatch):
        frame(sql, (b"2", "two", None), ddl="id binary, n string, s struct<a: int, b: string>").write.insertInto(
            named(path)
        )
    assert len(anabranch.history(path)) == 1


def test_rows_of_the_table_itself_are_judged_as_read(sql: SparkSession, path: str) -> None:
    SetProperties(path, {"delta.isolationLevel": "Serializable"}).run()
    again = sql.read.format("delta").load(path)
    with (
        pytest.raises(ConcurrentAppendException),
        at_phase("staged", lambda: anabranch.append(path, [{"id": 5, "name": "five"}])),
    ):
        again.write.option("readsTarget", "true").insertInto(named(path))
    assert len(rows_of(path)) == 2


def test_where_there_is_no_table_nothing_is_made(sql: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotATable):
        frame(sql, (1, "one", None)).write.insertInto(named(str(tmp_path / "none")))
    assert not (tmp_path / "none").exists()


def test_a_layout_is_refused_and_other_names_are_sparks(sql: SparkSession, path: str) -> None:
    rows = frame(sql, (1, "one", None))
    with pytest.raises(InvalidOption, match="own layout"):
        rows.write.partitionBy("id").insertInto(named(path))
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.write.insertInto("nowhere")
