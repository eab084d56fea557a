"""Iceberg compatibility: what its two versions ask of a table is asked before anything is written, and then done."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch._protocol.actions import Metadata
from anabranch._protocol.iceberg import check, lacks_numbers
from anabranch._protocol.schema.column_mapping import FIELD_ID, NESTED_IDS, fields_of
from anabranch._protocol.schema.types import Array, Field, Map, Struct, schema_json
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from tests.support.worlds import World, table_path

V1, V2 = "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"
ROWS = [{"id": i, "p": i % 2, "x": i * 10} for i in range(4)]
NESTED = [{"id": 1, "l": [{"a": 1}, None], "s": {"b": [[1, 2]]}}]


def world(tmp_path: Path, rows: list[dict[str, Any]], *, by: tuple[str, ...] = (), **properties: str) -> World:
    return World(table_path(tmp_path)).create(rows, partition_by=by, **properties)


def files_of(found: World) -> list[Any]:
    return [pq.read_schema(f"{found.path}/{path}") for path in found.log.snapshot().files["path"].to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("flag", [V1, V2])
def test_a_new_table_has_what_the_flag_asks_for_and_every_file_holds_its_partition(tmp_path: Path, flag: str) -> None:
    made = world(tmp_path, ROWS, by=("p",), **{flag.replace(".", "_", 1): "true"})
    snapshot = made.log.snapshot()
    assert snapshot.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert snapshot.metadata.configuration["delta.enableDeletionVectors"] == "false"
    assert (snapshot.protocol.min_reader, snapshot.protocol.reader_features) == (2, None)
    assert {"columnMapping", f"icebergCompat{flag[-2:]}"} <= (snapshot.protocol.writer_features or set())
    made.update("id = 1", x=11)
    made.delete("id = 2")
    made.merge([{"id": 3, "p": 1, "x": 31}, {"id": 7, "p": 5, "x": 70}])
    assert [(row["id"], row["p"], row["x"]) for row in made.rows()] == [(0, 0, 0), (1, 1, 11), (3, 1, 31), (7, 5, 70)]
    partition = snapshot.schema.field("p").physical_name
    for schema in files_of(made):
        assert schema.names[-1] == partition
        assert not lacks_numbers(schema, {flag: "true"})
    made.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("flag", [V1, V2])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_rows_that_are_tracked_keep_their_ids_in_hidden_columns_without_numbers(
    tmp_path: Path, flag: str, mode: str
) -> None:
    properties = {"delta_enableRowTracking": "true", flag.replace(".", "_", 1): "true"}
    made = world(tmp_path, ROWS, by=("p",), **properties, **{"delta_columnMapping.mode": mode})
    made.update("id = 1", x=11)
    made.delete("id = 2")
    assert [(row["id"], row["p"], row["x"]) for row in made.rows()] == [(0, 0, 0), (1, 1, 11), (3, 1, 30)]
    hidden = made.log.snapshot().metadata.configuration["delta.rowTracking.materializedRowIdColumnName"]
    assert any(hidden in schema.names for schema in files_of(made))
    UnsetProperties(made.path, (flag,)).run()
    SetProperties(made.path, {flag: "true"}).run()
    made.assert_clean()


def test_elements_keys_and_values_are_numbered_in_the_second_version(tmp_path: Path) -> None:
    made = world(tmp_path, NESTED, delta_enableIcebergCompatV2="true")
    made.append({"id": 2, "l": [{"a": 5}], "s": {"b": [[3]]}})
    AddColumns(made.path, (NewColumn(Field("m", Map("string", Array("long")))),)).run()
    schema = made.log.snapshot().schema
    field = schema.field("m")
    own = field.physical_name
    assert list(field.metadata[NESTED_IDS]) == [f"{own}.key", f"{own}.value", f"{own}.value.element"]
    numbers = [each.metadata[FIELD_ID] for each in fields_of(schema)]
    numbers += [number for each in fields_of(schema) for number in each.metadata.get(NESTED_IDS, {}).values()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert made.log.snapshot().metadata.configuration["delta.columnMapping.maxColumnId"] == str(len(numbers))
    assert not any(lacks_numbers(schema, {V2: "true"}) for schema in files_of(made))
    assert [row["s"] for row in made.rows()] == [{"b": [[1, 2]]}, {"b": [[3]]}]
    made.assert_clean()


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({V1: "true", V2: "true"}, "one version"),
        ({V1: "true", "delta.columnMapping.mode": "none"}, "needs"),
        ({V2: "true", "delta.enableDeletionVectors": "true"}, "deletion vectors"),
        ({V1: "true", "delta.enableDeletionVectors": "true"}, "deletion vectors"),
    ],
)
def test_a_table_that_does_not_fit_is_not_created(tmp_path: Path, properties: dict[str, str], said: str) -> None:
    found = World(table_path(tmp_path))
    with pytest.raises(errors.InvalidProperty, match=said):
        Create(found.path, NewTable(Struct((Field("id", "long"),)), None, properties)).run()
    assert not found.log.exists()


@pytest.mark.parametrize("type_", [Array("long"), Map("string", "long"), "void"])
def test_the_first_version_takes_no_arrays_maps_or_voids(tmp_path: Path, type_: Any) -> None:
    made = world(tmp_path, ROWS, delta_enableIcebergCompatV1="true")
    deep = Struct((Field("deep", type_),))
    with pytest.raises((errors.InvalidProperty, errors.UnsupportedType)):
        AddColumns(made.path, (NewColumn(Field("s", deep)),)).run()
    with pytest.raises(errors.InvalidProperty, match="type"):
        check(made.log.snapshot().metadata.with_schema(deep, uuid4), vectors_listed=False)
    assert made.version == 0


def test_types_that_iceberg_cannot_widen_are_refused() -> None:
    configuration = {V2: "true", "delta.columnMapping.mode": "name"}

    def changed(before: str, after: str) -> Metadata:
        change = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
        own = {FIELD_ID: 1, "delta.columnMapping.physicalName": "a", **change}
        return Metadata("x", schema_json(Struct((Field("a", after, metadata=own),))), (), configuration)

    for before, after in (("short", "long"), ("float", "double"), ("decimal(5,2)", "decimal(9,2)")):
        check(changed(before, after), vectors_listed=True)
    for before, after in (("integer", "double"), ("date", "timestamp_ntz"), ("decimal(5,2)", "decimal(9,3)")):
        with pytest.raises(errors.InvalidProperty, match="Iceberg"):
            check(changed(before, after), vectors_listed=True)


@pytest.mark.slow
def test_it_is_switched_on_where_all_files_fit_and_off_again(tmp_path: Path) -> None:
    made = world(tmp_path, ROWS, **{"delta_columnMapping.mode": "name", "delta_enableDeletionVectors": "false"})
    SetProperties(made.path, {V1: "true"}).run()
    assert "icebergCompatV1" in (made.log.snapshot().protocol.writer_features or ())
    made.update("id = 1", x=5)
    with pytest.raises(errors.InvalidProperty, match="vectors"):
        SetProperties(made.path, {"delta.enableDeletionVectors": "true"}).run()
    UnsetProperties(made.path, [V1]).run()
    SetProperties(made.path, {V2: "true"}).run()
    made.assert_clean()


@pytest.mark.parametrize(
    ("rows", "by", "properties", "said"),
    [
        (ROWS, ("p",), {}, "partitioned"),
        (NESTED, (), {}, "field ids"),
        (ROWS, (), {"delta_enableDeletionVectors": "true"}, "deletion vectors"),
    ],
)
def test_it_is_not_switched_on_over_files_that_do_not_fit(
    tmp_path: Path, rows: Any, by: tuple[str, ...], properties: dict[str, str], said: str
) -> None:
    off = {"delta_columnMapping.mode": "name", "delta_enableDeletionVectors": "false", **properties}
    made = world(tmp_path, rows, by=by, **off)
    with pytest.raises(errors.InvalidProperty, match=said):
        SetProperties(made.path, {V2: "true"}).run()
    assert made.version == 0


def test_files_from_before_the_mapping_and_those_with_vectors_stand_in_the_way(tmp_path: Path) -> None:
    made = world(tmp_path, ROWS, delta_enableDeletionVectors="false")
    SetProperties(made.path, {"delta.columnMapping.mode": "name"}).run()
    with pytest.raises(errors.InvalidProperty, match="field ids"):
        SetProperties(made.path, {V2: "true"}).run()
    other = world(tmp_path, ROWS, **{"delta_columnMapping.mode": "name"})
    other.delete("id = 1")
    with pytest.raises(errors.InvalidProperty, match="purged"):
        SetProperties(other.path, {V2: "true", "delta.enableDeletionVectors": "false"}).run()
    with pytest.raises(errors.InvalidProperty, match="feature dropped"):
        SetProperties(other.path, {V1: "true", "delta.enableDeletionVectors": "false"}).run()


def test_partition_columns_are_never_replaced_by_others(tmp_path: Path) -> None:
    made = world(tmp_path, ROWS, by=("p",), delta_enableIcebergCompatV2="true")
    other = Struct((Field("id", "long"), Field("q", "long")))
    with pytest.raises(errors.InvalidProperty, match="partitioned by other columns"):
        Replace(made.path, NewTable(other, ("q",), {V2: "true"})).run()
    RenameColumn(made.path, ("p",), "q").run()
    wider = Struct((Field("id", "string"), Field("q", "long")))
    Replace(made.path, NewTable(wider, ("q",), {V2: "true"})).run()
    Append(made.path, [{"id": "a", "q": 1}]).run()
    made.assert_clean()
