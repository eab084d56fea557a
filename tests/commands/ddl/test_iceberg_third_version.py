"""The third version of Iceberg compatibility: row tracking with fixed field ids, deletion vectors, literal defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.features.row_tracking import COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from anabranch._protocol.iceberg import HIDDEN_IDS, check, lacks_numbers
from anabranch._protocol.layout.paths import decode
from anabranch._protocol.rules.table_rules import DEFAULT
from anabranch._protocol.schema.column_mapping import NESTED_IDS
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.upgrade_uniform import UpgradeUniform
from tests.support.worlds import World, table_path

V2, V3 = "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3"
TRACKED, VECTORS, MODE = "delta.enableRowTracking", "delta.enableDeletionVectors", "delta.columnMapping.mode"
ROWS = [{"p": i % 2, "id": i, "x": i * 10} for i in range(4)]


def made(tmp_path: Path, rows: list[dict[str, Any]] = ROWS, by: tuple[str, ...] = ("p",), **properties: str) -> World:
    named = {key.replace(".", "_", 1): value for key, value in properties.items()}
    return World(table_path(tmp_path)).create(rows, partition_by=by, **named)


def schemas(world: World) -> list[Any]:
    paths = world.log.snapshot().files["path"].to_pylist()
    return [pq.read_schema(f"{world.path}/{decode(path)}") for path in paths]


def hidden_of(world: World) -> tuple[str, str]:
    configuration = world.log.snapshot().metadata.configuration
    return configuration[ROW_ID_COLUMN], configuration[COMMIT_VERSION_COLUMN]


def assert_files_fit(world: World) -> None:
    configuration = world.log.snapshot().metadata.configuration
    for schema in schemas(world):
        assert not lacks_numbers(schema, configuration, hidden_of(world))
    world.assert_clean()


def ids(world: World) -> dict[int, int]:
    """The row id of each row, by its column ``id``."""
    snapshot, found = world.log.snapshot(), dict[int, int]()
    own, names = snapshot.schema.field("id").physical_name, hidden_of(world)
    for file in snapshot.files.to_pylist():
        rows = pq.read_table(f"{world.path}/{decode(file['path'])}", partitioning=None)
        stored = rows[names[0]].to_pylist() if names[0] in rows.column_names else [None] * len(rows)
        for place, (key, kept) in enumerate(zip(rows[own].to_pylist(), stored, strict=True)):
            found[key] = file["baseRowId"] + place if kept is None else kept
    return found


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_new_table_tracks_its_rows_in_hidden_columns_with_fixed_ids(tmp_path: Path, vectors: str, mode: str) -> None:
    world = made(tmp_path, **{V3: "true", VECTORS: vectors, MODE: mode})
    snapshot = world.log.snapshot()
    assert snapshot.metadata.configuration[TRACKED] == "true"
    needed = {"icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata"}
    assert needed <= (snapshot.protocol.writer_features or set())
    before = ids(world)
    world.update("id = 1", x=11)
    anabranch.table(world.path).update("id = 3", {"x": "-3"})
    world.delete("id = 2")
    world.merge([{"p": 0, "id": 0, "x": 5}, {"p": 7, "id": 7, "x": 70}])
    world.optimize()
    assert [(row["id"], row["p"], row["x"]) for row in world.rows()] == [(0, 0, 5), (1, 1, 11), (3, 1, -3), (7, 7, 70)]
    numbers = [
        {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema if field.name in hidden_of(world)}
        for schema in schemas(world)
    ]
    assert dict(zip(hidden_of(world), HIDDEN_IDS, strict=True)) in numbers
    assert {key: value for key, value in ids(world).items() if key in (0, 1, 3)} == {
        key: before[key] for key in (0, 1, 3)
    }
    partition = snapshot.schema.field("p").physical_name
    assert all(partition in schema.names for schema in schemas(world))
    assert_files_fit(world)


def test_elements_keys_and_values_are_numbered(tmp_path: Path) -> None:
    world = made(tmp_path, [{"id": 1, "l": [1, 2]}], (), **{V3: "true"})
    AddColumns(world.path, (NewColumn(Field("m", Map("string", Array("long")))),)).run()
    field = world.log.snapshot().schema.field("m")
    own = field.physical_name
    assert list(field.metadata[NESTED_IDS]) == [f"{own}.key", f"{own}.value", f"{own}.value.element"]
    world.append({"id": 2, "l": [3]})
    assert_files_fit(world)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({V3: "true", V2: "true"}, "one version"),
        ({V3: "true", MODE: "none"}, "needs"),
        ({V3: "true", TRACKED: "false"}, "enableRowTracking"),
    ],
    ids=["two versions", "no mapping", "no row tracking"],
)
def test_a_table_that_does_not_fit_is_not_created(tmp_path: Path, properties: dict[str, str], said: str) -> None:
    found = World(table_path(tmp_path))
    with pytest.raises(errors.InvalidProperty, match=said):
        Create(found.path, NewTable(Struct((Field("id", "long"),)), None, properties)).run()
    assert not found.log.exists()


@pytest.mark.parametrize(("text", "fits"), [("5", True), ("DATE '2020-01-01'", True), ("1 + 1", False), ("(", False)])
def test_defaults_are_literals(tmp_path: Path, text: str, fits: bool) -> None:
    metadata = made(tmp_path, **{V3: "true"}).log.snapshot().metadata
    after = metadata.with_schema(Struct((Field("id", "long", metadata={DEFAULT: text}),)), uuid4)
    if fits:
        check(after, vectors_listed=True)
    else:
        with pytest.raises(errors.InvalidProperty, match="is not a literal"):
            check(after, vectors_listed=True)


def test_variants_are_refused(tmp_path: Path) -> None:
    metadata = made(tmp_path, **{V3: "true"}).log.snapshot().metadata
    with pytest.raises(errors.InvalidProperty, match="variant"):
        check(metadata.with_schema(Struct((Field("v", "variant"),)), uuid4), vectors_listed=True)


def test_it_is_switched_on_over_deletion_vectors_and_off_again(tmp_path: Path) -> None:
    world = made(tmp_path, by=(), **{MODE: "name", VECTORS: "true"})
    world.delete("id = 1")
    with pytest.raises(errors.InvalidProperty, match="enableRowTracking"):
        SetProperties(world.path, {V3: "true"}).run()
    SetProperties(world.path, {V3: "true", TRACKED: "true"}).run()
    assert world.log.snapshot().files["deletionVector"].null_count == 0
    world.update("id = 2", x=21)
    with pytest.raises(errors.InvalidProperty, match="enableRowTracking"):
        SetProperties(world.path, {TRACKED: "false"}).run()
    assert_files_fit(world)
    UnsetProperties(world.path, (V3,)).run()
    world.update("id = 3", x=31)
    with pytest.raises(errors.InvalidProperty, match="field ids"):
        SetProperties(world.path, {V3: "true"}).run()
    world.assert_clean()


def test_partition_columns_are_never_replaced_by_others(tmp_path: Path) -> None:
    world = made(tmp_path, **{V3: "true"})
    other = Struct((Field("id", "long"), Field("q", "long")))
    with pytest.raises(errors.InvalidProperty, match="partitioned by other columns"):
        Replace(world.path, NewTable(other, ("q",), {V3: "true"})).run()


@pytest.mark.parametrize("before", [{}, {V2: "true"}, {TRACKED: "true"}], ids=["plain", "second version", "tracked"])
def test_any_table_is_upgraded_and_its_rows_keep_their_ids(tmp_path: Path, before: dict[str, str]) -> None:
    world = made(tmp_path, **before)
    world.update("id = 1", x=11)
    world.delete("id = 2")
    rows = world.rows()
    former = ids(world) if TRACKED in before else None
    UpgradeUniform(world.path, 3).run(world.engine)
    snapshot = world.log.snapshot()
    assert snapshot.metadata.configuration[V3] == "true"
    assert snapshot.metadata.configuration.get(V2, "false") == "false"
    assert world.rows() == rows
    if former is not None:
        assert {row["id"]: ids(world)[row["id"]] for row in rows} == {row["id"]: former[row["id"]] for row in rows}
    assert UpgradeUniform(world.path, 3).run(world.engine) is None
    world.update("id = 3", x=31)
    assert_files_fit(world)
