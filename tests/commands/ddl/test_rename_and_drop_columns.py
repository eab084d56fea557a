"""Columns are renamed and dropped without touching a file; what speaks of them stands in the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.actions import Protocol
from anabranch._protocol.merges import Clause, SourceColumn
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION, INVARIANT
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.dml.new_table import NewTable
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

ROWS = [{"id": i, "p": i % 2, "x": i * 10, "s": {"a": i, "b": [{"c": i}]}} for i in range(4)]
MAPPED = {"delta_columnMapping.mode": "name"}
KEY = "delta.columnMapping.maxColumnId"


@pytest.fixture(params=["name", "id", "name, later"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A partitioned table with a mapping from the start, or one that got it afterwards."""
    mode, *later = request.param.split(", ")
    properties = {} if later else {"delta_columnMapping.mode": mode}
    made = World(table_path(tmp_path)).create(ROWS, partition_by=("p",), **properties)
    if later:
        SetProperties(made.path, {"delta.columnMapping.mode": "name"}).run()
    yield made
    made.assert_clean()


def said(world: World) -> tuple[str, dict[str, str]]:
    return world.info()["operation"], dict(world.info()["operationParameters"])


# -- switching on ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_mapping_is_switched_on_for_a_table_with_files(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",), delta_enableDeletionVectors="false")
    SetProperties(world.path, {"delta.columnMapping.mode": "name"}).run()
    snapshot = world.log.snapshot()
    assert snapshot.protocol == Protocol(2, 7, None, frozenset({"appendOnly", "invariants", "columnMapping"}))
    assert [each.physical_name for each in snapshot.schema] == ["id", "p", "x", "s"]
    assert snapshot.metadata.configuration[KEY] == "7"
    assert world.rows() == ROWS
    world.append({"id": 9, "p": 1, "x": 0, "s": {"a": 9, "b": [{"c": 9}]}})
    world.update("id = 0 AND p = 0", x=5)
    world.delete("p = 1 AND id = 9")
    assert world.rows() == [{**ROWS[0], "x": 5}, *ROWS[1:]]
    world.assert_clean()


def test_a_mapping_is_not_changed_to_another_one(world: World) -> None:
    other = "id" if world.log.snapshot().properties["delta.columnMapping.mode"] == "name" else "name"
    with pytest.raises(errors.InvalidProperty, match="columnMapping"):
        SetProperties(world.path, {"delta.columnMapping.mode": other}).run()
    with pytest.raises(errors.InvalidProperty):
        UnsetProperties(world.path, [KEY]).run()


def test_mode_id_is_for_new_tables_and_the_highest_number_is_the_tables_own(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    for properties in ({"delta.columnMapping.mode": "id"}, {KEY: "70"}):
        with pytest.raises(errors.InvalidProperty):
            SetProperties(world.path, properties).run()
    assert world.version == 0


def test_numbers_are_never_given_again_when_a_table_is_replaced(world: World) -> None:
    before = world.log.snapshot().metadata
    properties = {"delta.columnMapping.mode": "name"}
    Replace(world.path, NewTable(Struct((Field("id", "long"),)), None, properties)).run()
    after = world.log.snapshot().metadata
    assert int(after.configuration[KEY]) == int(before.configuration[KEY]) + 1
    assert world.rows() == []
    assert world.rows(world.version - 1) == ROWS


# -- renaming ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_column_is_renamed_and_every_verb_knows_it_by_its_new_name_only(world: World) -> None:
    RenameColumn(world.path, ("X",), "y").run()
    assert said(world) == ("RENAME COLUMN", {"oldColumnPath": "x", "newColumnPath": "y"})
    assert [row["y"] for row in world.rows()] == [0, 10, 20, 30]
    world.update("y = 10", y=11)
    world.append({"id": 9, "p": 1, "y": 90, "s": {"a": 1, "b": [{"c": 1}]}})
    world.merge([{"id": 2, "y": 21}], _set_y())
    assert [row["y"] for row in world.rows()] == [0, 11, 21, 30, 90]
    assert len(anabranch.files(world.path, where="y > 80")) < len(anabranch.files(world.path))
    with pytest.raises(errors.UnknownColumn):
        RenameColumn(world.path, ("x",), "z").run()


def _set_y() -> Clause:
    return Clause("matched", "update", None, {"y": SourceColumn("y")})


def test_a_partition_column_is_renamed(world: World) -> None:
    RenameColumn(world.path, ("p",), "part of: it").run()
    snapshot = world.log.snapshot()
    assert snapshot.partition_columns == ("part of: it",)
    assert len(anabranch.files(world.path, where="`part of: it` = 1")) == 1
    assert anabranch.files(world.path)["partition_values"].to_pylist()[0][0][0] == "part of: it"
    world.append({"id": 9, "part of: it": 1, "x": 0, "s": {"a": 9, "b": [{"c": 9}]}})
    world.delete("`part of: it` = 0")
    assert [row["part of: it"] for row in world.rows()] == [1, 1, 1]


@pytest.mark.slow
def test_a_member_is_renamed_also_inside_an_array(world: World) -> None:
    RenameColumn(world.path, ("s", "A"), "aa").run()
    RenameColumn(world.path, ("s", "b", "ELEMENT", "c"), "c.d").run()
    assert said(world)[1] == {"oldColumnPath": "s.b.element.c", "newColumnPath": "s.b.element.`c.d`"}
    assert [row["s"] for row in world.rows()] == [{"aa": i, "b": [{"c.d": i}]} for i in range(4)]
    world.append({"id": 9, "p": 1, "s": {"aa": 5, "b": [{"c.d": 6}]}})
    assert world.rows()[-1]["s"] == {"aa": 5, "b": [{"c.d": 6}]}
    RenameColumn(world.path, ("s", "b"), "list").run()
    assert world.rows()[0]["s"] == {"aa": 0, "list": [{"c.d": 0}]}


def test_only_the_case_of_a_name_may_change_and_the_same_name_is_no_change(world: World) -> None:
    assert RenameColumn(world.path, ("x",), "x").run() is None
    RenameColumn(world.path, ("x",), "X").run()
    assert world.rows()[1]["X"] == 10


def test_a_name_that_is_taken_is_refused(world: World) -> None:
    before = world.version
    for path, name in ((("x",), "ID"), (("s", "a"), "B"), (("x",), "")):
        with pytest.raises(errors.InvalidOption):
            RenameColumn(world.path, path, name).run()
    for path in (("no",), ("s", "no"), ("x", "no"), ("s", "b", "c"), ("s", "b", "element", "no")):
        with pytest.raises(errors.UnknownColumn):
            RenameColumn(world.path, path, "new").run()
    assert world.version == before


# -- dropping ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_are_dropped_and_their_values_never_come_back(world: World) -> None:
    last = int(world.log.snapshot().metadata.configuration[KEY])
    DropColumns(world.path, (("x",), ("s", "a"))).run()
    assert said(world) == ("DROP COLUMNS", {"columns": '["x","s.a"]'})
    assert world.rows()[1] == {"id": 1, "p": 1, "s": {"b": [{"c": 1}]}}
    assert world.rows(world.version - 1) == ROWS
    AddColumns(world.path, (NewColumn(Field("x", "long")), NewColumn(Field("a", "long"), parent=("s",)))).run()
    assert world.log.snapshot().metadata.configuration[KEY] == str(last + 2)
    assert [(row["x"], row["s"]["a"]) for row in world.rows()] == [(None, None)] * 4
    world.update("id = 1", x=7)
    assert [row["x"] for row in world.rows()] == [None, 7, None, None]
    assert len(anabranch.files(world.path, where="x = 30")) < len(anabranch.files(world.path))


def test_what_must_stay_is_not_dropped(world: World) -> None:
    before = world.version
    with pytest.raises(errors.ColumnInUse, match="the partitioning") as refused:
        DropColumns(world.path, (("p",),)).run()
    assert (refused.value.column, refused.value.users) == ("p", "the partitioning")
    refusals: list[tuple[type[Exception], tuple[tuple[str, ...], ...]]] = [
        (errors.InvalidOption, ()),
        (errors.InvalidOption, (("s", "b", "element", "c"),)),
        (errors.InvalidOption, (("id",), ("x",), ("s",))),
        (errors.UnknownColumn, (("x",), ("x",))),
        (errors.UnknownColumn, (("no",),)),
    ]
    for error, paths in refusals:
        with pytest.raises(error):
            DropColumns(world.path, paths).run()
    assert world.version == before


@pytest.mark.parametrize("command", [lambda p: RenameColumn(p, ("x",), "y"), lambda p: DropColumns(p, (("x",),))])
def test_without_a_mapping_columns_stay(tmp_path: Path, command: Callable[[str], RenameColumn | DropColumns]) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    with pytest.raises(errors.InvalidProperty, match="column mapping only"):
        command(world.path).run()
    assert world.version == 0


# -- who speaks of columns ---------------------------------------------------------------------------------------------

INVARIANTS = {INVARIANT: json.dumps({"expression": {"expression": "own > 0"}})}
RULED = Struct(
    (
        Field("id", "long"),
        Field("checked", "long"),
        Field("source", "long"),
        Field("made", "long", metadata={GENERATION: "source + 1"}),
        Field("own", "long", metadata=INVARIANTS),
        Field("given", "long", metadata={DEFAULT: "7"}),
        Field("short", Struct((Field("t", "string"),)), metadata={LENGTH: "struct<t:varchar(3)>"}),
        Field("m", Map("string", Struct((Field("a", "long"), Field("b", "long"))))),
        Field("l", Array(Struct((Field("a", "long"), Field("b", "long"))))),
    )
)


@pytest.fixture
def ruled(tmp_path: Path) -> World:
    world = World(table_path(tmp_path))
    properties = {"delta.columnMapping.mode": "name", "delta.constraints.c": "checked > 0"}
    Create(world.path, NewTable(RULED, None, properties)).run()
    return world


@pytest.mark.parametrize(
    ("column", "user"), [("checked", "the constraint c (checked > 0)"), ("source", "the generated column made")]
)
def test_a_column_of_which_a_rule_speaks_is_neither_renamed_nor_dropped(ruled: World, column: str, user: str) -> None:
    for command in (RenameColumn(ruled.path, (column,), "new"), DropColumns(ruled.path, ((column,),))):
        with pytest.raises(errors.ColumnInUse) as refused:
            command.run()
        assert refused.value.users.startswith(user)
        assert refused.value.getCondition() == "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    assert ruled.version == 0


def test_a_member_beside_the_one_of_which_a_rule_speaks_is_free(tmp_path: Path) -> None:
    world = World(table_path(tmp_path))
    pair = Struct((Field("a", "long"), Field("b", "long"), Field("c", "long")))
    properties = {"delta.columnMapping.mode": "name", "delta.constraints.k": "s.a > 0"}
    Create(world.path, NewTable(Struct((Field("s", pair),)), None, properties)).run()
    for path in (("s",), ("s", "a")):
        with pytest.raises(errors.ColumnInUse, match=r"check constraint\(s\): k "):
            RenameColumn(world.path, path, "new").run()
    RenameColumn(world.path, ("s", "b"), "new").run()
    DropColumns(world.path, (("s", "c"),)).run()
    assert world.log.snapshot().schema.field("s").type.names == ("a", "new")


def test_a_rule_of_a_column_goes_with_it(ruled: World) -> None:
    with pytest.raises(errors.ColumnInUse, match="own > 0"):
        RenameColumn(ruled.path, ("own",), "new").run()
    RenameColumn(ruled.path, ("made",), "built").run()
    RenameColumn(ruled.path, ("given",), "taken").run()
    DropColumns(ruled.path, (("own",), ("source",), ("built",))).run()
    assert ruled.log.snapshot().schema.names == ("id", "checked", "taken", "short", "m", "l")
    with pytest.raises(errors.NotBuilt):
        RenameColumn(ruled.path, ("short", "t"), "u").run()
    DropColumns(ruled.path, (("m", "value", "a"), ("l", "element", "b"))).run()
    schema = ruled.log.snapshot().schema
    assert schema.field("m").type.value.names == ("b",)  # type: ignore[union-attr]
    assert schema.field("l").type.element.names == ("a",)  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_columns_with_statistics_follow(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, **MAPPED, **{"delta_dataSkippingStatsColumns": "x, s.a, id"})
    key = "delta.dataSkippingStatsColumns"
    RenameColumn(world.path, ("s",), "t").run()
    assert world.log.snapshot().metadata.configuration[key] == "x,t.a,id"
    RenameColumn(world.path, ("x",), "y").run()
    DropColumns(world.path, (("t", "a"),)).run()
    assert world.log.snapshot().metadata.configuration[key] == "y,id"
    world.append({"id": 50, "p": 1, "y": 500})
    assert len(anabranch.files(world.path, where="y > 400")) == 1
    DropColumns(world.path, (("y",),)).run()
    assert world.log.snapshot().metadata.configuration[key] == "id"
    world.assert_clean()
    DropColumns(world.path, (("id",),)).run()
    assert key not in world.log.snapshot().metadata.configuration


@pytest.mark.parametrize(
    ("said", "path", "new", "then"),
    [
        ("`s`.`a`,id", ("s", "a"), "z", "s.z,id"),
        ("s . a , id", ("S",), "t t", "`t t`.a,id"),
        ("`x,y`,id", ("y",), "z", "`x,y`,id"),
        ("`x,y`,id", ("x,y",), "a`b", "`a``b`,id"),
        ("`s.a`,id", ("s", "a"), "z", "`s.a`,id"),
        ("y,id", ("y",), "a,b", "`a,b`,id"),
    ],
)
def test_names_of_any_letters_follow_in_the_list_of_columns_with_statistics(
    tmp_path: Path, said: str, path: tuple[str, ...], new: str, then: str
) -> None:
    row = {"id": 1, "y": 2, "x,y": 3, "s.a": 4, "s": {"a": 5, "b": 6}}
    key = "delta.dataSkippingStatsColumns"
    world = World(table_path(tmp_path)).create([row], **MAPPED, **{key.replace(".", "_", 1): said})
    before = world.log.snapshot().files["stats"][0].as_py()
    RenameColumn(world.path, path, new).run()
    assert world.log.snapshot().metadata.configuration[key] == then
    world.append(world.rows()[0])
    assert world.log.snapshot().files["stats"].to_pylist() == [before, before]


@pytest.mark.parametrize("path", [("day",), ("s",), ("s", "a"), ("other",)])
def test_a_column_by_which_a_table_is_clustered_is_renamed_like_any_other(
    tmp_path: Path, path: tuple[str, ...]
) -> None:
    row = {"id": 1, "day": 2, "other": 3, "s": {"a": 5, "b": 6}}
    world = World(table_path(tmp_path)).create([row], cluster_by=("day", "s.a"), **MAPPED)
    domain = world.log.snapshot().state.domains["delta.clustering"]
    RenameColumn(world.path, path, "new").run()
    snapshot = world.log.snapshot()
    assert snapshot.state.domains["delta.clustering"] == domain
    columns = {("day",): ("day",), ("s", "a"): ("s", "a")}
    renamed = {each: (*path[:-1], "new", *each[len(path) :]) for each in columns if each[: len(path)] == path}
    assert snapshot.clustering_columns == tuple(renamed.get(each, each) for each in columns)
    world.append(world.rows()[0])
    with pytest.raises(errors.ColumnInUse, match="the clustering"):
        DropColumns(world.path, (snapshot.clustering_columns[0],)).run()


# -- beside other writers ----------------------------------------------------------------------------------------------

OTHERS: dict[str, Callable[[World], object]] = {
    "append": lambda w: w.append({"id": 9, "p": 1, "x": 0, "s": {"a": 9, "b": [{"c": 9}]}}),
    "update": lambda w: w.update("id = 1", x=5),
    "delete": lambda w: w.delete("id = 1"),
    "merge": lambda w: w.merge([{"id": 1, "p": 1, "x": 3, "s": {"a": 9, "b": [{"c": 9}]}}]),
    "add columns": lambda w: AddColumns(w.path, (NewColumn(Field("y", "long")),)).run(),
    "rename": lambda w: RenameColumn(w.path, ("x",), "z").run(),
}


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_a_write_that_has_not_seen_a_rename_fails_and_so_does_a_rename_behind_one(world: World, other: str) -> None:
    def rename() -> object:
        return RenameColumn(world.path, ("x",), "renamed").run()

    with pytest.raises(errors.MetadataChangedException), at_phase("staged", rename):
        OTHERS[other](world)
    RenameColumn(world.path, ("renamed",), "x").run()
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: OTHERS[other](world)):
        DropColumns(world.path, (("x",),)).run()


@pytest.mark.slow
def test_two_writers_that_add_columns_never_share_a_number(world: World) -> None:
    def add(name: str) -> object:
        return AddColumns(world.path, (NewColumn(Field(name, "long")),)).run()

    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: add("y")):
        add("z")
    add("z")
    schema = world.log.snapshot().schema
    assert len({each.metadata["delta.columnMapping.id"] for each in schema}) == len(schema)


@pytest.mark.slow
def test_the_rows_that_a_conflict_shows_have_the_names_of_now(world: World) -> None:
    RenameColumn(world.path, ("s", "a"), "aa").run()
    other = at_phase("staged", lambda: world.update("id = 1", x=1))
    with pytest.raises(errors.ConcurrentDeleteReadException) as lost, other:
        world.update("id = 1", x=2)
    assert lost.value.samples == [{"id": 1, "p": 1, "x": 10, "s": {"aa": 1, "b": [{"c": 1}]}}]


# -- NOT NULL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_are_never_null_are_known_in_files_by_their_physical_names(tmp_path: Path, mode: str) -> None:
    world = World(table_path(tmp_path))
    schema = Struct((Field("id", "long", nullable=False), Field("p", "long", nullable=False), Field("x", "long")))
    Create(world.path, NewTable(schema, ("p",), {"delta.columnMapping.mode": mode})).run()
    RenameColumn(world.path, ("id",), "key").run()
    world.append({"key": 1, "p": 1, "x": None})
    world.update("key = 1", x=5)
    with pytest.raises(errors.NotNullViolated):
        world.append({"key": None, "p": 1, "x": 1}, {"key": 2, "p": 1, "x": 1})
    assert world.rows() == [{"key": 1, "p": 1, "x": 5}]
    world.assert_clean()
