"""Void columns: NULL in every row, held by no file, whoever reads and writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.clone import Clone
from anabranch.errors import InvalidOption, SchemaMismatch, UnwritableVoid
from tests.support.raw_logs import PROTOCOL, listing, metadata, put_commit, put_rows
from tests.support.worlds import World, table_path

X = Field("x", "long")
SCHEMA = Struct(
    (
        Field("n", "void"),
        Field("id", "long"),
        Field(
            "s",
            Struct(
                (Field("v", "void"), Field("a", "long"), Field("t", Struct((Field("w", "void"), Field("b", "long")))))
            ),
        ),
    )
)


def world(tmp_path: Path, schema: Struct = SCHEMA) -> World:
    """A table as delta-spark makes it, whose one file holds none of the voids."""
    found = World(table_path(tmp_path))
    rows = [{"id": 1, "s": {"a": 1, "t": {"b": 1}}}, {"id": 2, "s": None}, {"id": 3, "s": {"a": 3, "t": None}}]
    put_commit(found.path, 0, PROTOCOL, metadata(schema), put_rows(found.path, "a.parquet", rows))
    return found


def row(id: int, s: object) -> dict[str, object]:
    return {"n": None, "id": id, "s": s}


FIRST = row(1, {"v": None, "a": 1, "t": {"w": None, "b": 1}})
SECOND = row(2, None)
THIRD = row(3, {"v": None, "a": 3, "t": None})


def held_by_files(table: World) -> set[str]:
    """Every column, by its dotted path, of the live files."""
    paths = anabranch.files(table.path)["path"].to_pylist()
    return {
        pq.read_metadata(f"{table.path}/{path}").schema.column(i).path
        for path in paths
        for i in range(pq.read_metadata(f"{table.path}/{path}").num_columns)
    }


@pytest.mark.slow
def test_voids_are_read_as_null_and_written_by_no_verb(tmp_path: Path) -> None:
    table = world(tmp_path)
    assert table.rows() == [FIRST, SECOND, THIRD]
    table.append({"id": 4, "s": {"a": 4}}, {"id": 5, "n": None, "s": None})
    fourth = row(4, {"v": None, "a": 4, "t": None})
    assert table.rows() == [FIRST, SECOND, THIRD, fourth, row(5, None)]
    table.update("id = 5", id=6)
    table.delete("n IS NULL AND id = 2")
    table.merge([{"id": 6, "n": None, "s": None}, {"id": 7, "n": None, "s": None}])
    table.optimize()
    expected = [FIRST, THIRD, fourth, row(6, None), row(7, None)]
    assert table.rows() == expected
    assert held_by_files(table) == {"id", "s.a", "s.t.b"}
    assert check(table.log.snapshot(), deep=True).is_clean
    assert [f.type for f in table.log.snapshot().schema] == [f.type for f in SCHEMA]
    table.restore(0)
    assert table.rows() == [FIRST, SECOND, THIRD]


def test_conditions_on_voids_skip_no_file_and_select_only_nulls(tmp_path: Path) -> None:
    table = world(tmp_path)
    for where in ("n IS NULL", "n = 1", "n IS NOT NULL", "s.v IS NULL", "n <=> NULL"):
        anabranch.files(table.path, where=where)
    assert len(anabranch.files(table.path, where="n IS NULL AND id = 1")) == 1
    assert table.delete("n IS NOT NULL OR n = 1").rows == 0
    assert table.delete("n IS NULL").rows == 3


def test_mapped_columns_hold_no_voids_either(tmp_path: Path) -> None:
    table = World(table_path(tmp_path)).create(
        [{"id": 1, "n": None, "s": {"a": 1, "v": None}}], **{"delta_columnMapping.mode": "name"}
    )
    table.append({"id": 2, "n": None, "s": None})
    assert table.rows() == [{"id": 1, "n": None, "s": {"a": 1, "v": None}}, {"id": 2, "n": None, "s": None}]
    assert len(held_by_files(table)) == 2
    assert check(table.log.snapshot(), deep=True).is_clean


def test_a_table_is_created_with_a_void_column(tmp_path: Path) -> None:
    table = World(table_path(tmp_path)).create([{"a": 1, "n": None}])
    assert table.log.snapshot().schema.field("n").type == "void"
    assert table.rows() == [{"a": 1, "n": None}]


@pytest.mark.parametrize(
    ("column", "named", "condition"),
    [
        (Array("void"), "c", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (Map("string", "void"), "c", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (Array(Struct((Field("v", "void"), X))), "c", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (Struct((Field("v", "void"),)), "c", "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS"),
        (
            Struct((X, Field("s", Struct((Field("v", "void"),))))),
            "c.s",
            "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS",
        ),
    ],
)
def test_no_rows_are_written_where_files_could_not_hold_them_but_they_are_read_and_deleted(
    tmp_path: Path, column: DataType, named: str, condition: str
) -> None:
    table = world(tmp_path, Struct((Field("id", "long"), Field("c", column))))
    assert [each["c"] for each in table.rows()] == [None] * 3
    before = listing(table.path)
    for write in (
        lambda: table.append({"id": 2}),
        lambda: table.update("id = 1", id=5),
        lambda: table.delete("id = 1"),
    ):
        with pytest.raises(UnwritableVoid) as refused:
            write()
        assert (refused.value.column, refused.value.getCondition()) == (named, condition)
    assert listing(table.path) == before
    table.delete("id > 0")  # which writes no file
    assert table.rows() == []


def test_a_table_of_nothing_but_voids_beside_its_partitions_takes_no_rows(tmp_path: Path) -> None:
    for rows, partitions in (([{"n": None}], ()), ([{"n": None, "p": 1}], ("p",))):
        path = table_path(tmp_path)
        with pytest.raises(UnwritableVoid) as refused:
            World(path).create(rows, partition_by=partitions)
        assert refused.value.getCondition() == "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS"
        assert listing(path) == {}


def test_a_value_for_a_void_column_is_refused(tmp_path: Path) -> None:
    table = world(tmp_path)
    before = listing(table.path)
    with pytest.raises(SchemaMismatch) as refused:
        table.append({"id": 2, "n": 5})
    assert (refused.value.column, refused.value.expected) == ("n", "void")
    with pytest.raises(SchemaMismatch):
        table.append({"id": 2, "s": {"a": 1, "v": 5}})
    assert listing(table.path) == before


def test_void_partitions_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="void"):
        World(table_path(tmp_path)).create([{"a": 1, "n": None}], partition_by=("n",))


def test_a_void_column_gets_a_type_without_type_widening(tmp_path: Path) -> None:
    table = world(tmp_path)
    ChangeColumn(table.path, ("n",), type="string").run()
    ChangeColumn(table.path, ("s", "t", "w"), type="decimal(5,2)").run()
    n = table.log.snapshot().schema.field("n")
    assert (n.type, n.metadata) == ("string", {})
    table.append({"id": 4, "n": "x", "s": None})
    assert {each["id"]: each["n"] for each in table.rows()} == {1: None, 2: None, 3: None, 4: "x"}
    assert "typeWidening" not in (table.log.snapshot().protocol.writer_features or ())


def test_a_clone_has_the_voids_of_its_source(tmp_path: Path) -> None:
    table, copy = world(tmp_path), World(table_path(tmp_path))
    Clone(table.path, copy.path).run()
    assert copy.rows() == table.rows()
