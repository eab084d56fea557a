"""Rows at hand obey the table's rules without Spark, or are refused where only Spark could tell."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.row_rules import enforce_rules
from anabranch._protocol.rules.table_rules import NotNull, Rules
from anabranch._protocol.schema.lengths import Inside, Step
from anabranch._protocol.schema.types import Array, Field, Map, Struct, arrow_type
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import all_nullable
from anabranch.testing import at_phase
from tests.support.raw_logs import listing, metadata, put_commit
from tests.support.readers import same_rows
from tests.support.worlds import World, insert_all, update_all

PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": [
            "deletionVectors",
            "appendOnly",
            "invariants",
            "checkConstraints",
            "generatedColumns",
            "allowColumnDefaults",
        ],
    }
}
ID, X = Field("id", "long"), Field("x", "long")


def world_of(tmp_path: Path, *fields: Field, **constraints: str) -> World:
    """An empty table, as another engine would have made it."""
    forget()
    world = World(str(tmp_path / "t"))
    properties = {f"delta_constraints.{name}": text for name, text in constraints.items()}
    put_commit(world.path, 0, PROTOCOL, metadata(Struct(fields), delta_enableDeletionVectors="true", **properties))
    return world


def append(world: World, *rows: dict[str, Any]) -> int:
    return anabranch.append(world.path, list(rows))


def refused(world: World, error: type[errors.AnabranchError], *rows: dict[str, Any]) -> Any:
    before = listing(world.path)
    with pytest.raises(error) as caught:
        append(world, *rows)
    assert listing(world.path) == before, "a refused append left something"
    return caught.value


# -- CHECK -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, None])
def test_a_row_for_which_a_constraint_is_false_or_null_is_refused_and_shown(tmp_path: Path, bad: int | None) -> None:
    world = world_of(tmp_path, ID, X, positive="x > 0")
    append(world, {"id": 1, "x": 1})
    error = refused(world, errors.CheckConstraintViolated, {"id": 2, "x": 3}, {"id": 3, "x": bad})
    shown = None if bad is None else str(bad)
    assert (error.constraint, error.expression, error.values) == ("positive", "x > 0", {"x": shown})
    assert error.getCondition() == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert isinstance(error, errors.RowViolation)
    assert f"x = {'NULL' if bad is None else 0}" in str(error)
    assert world.rows() == [{"id": 1, "x": 1}]


def test_a_constraint_that_only_spark_understands_refuses_rows_by_name(tmp_path: Path) -> None:
    world = world_of(tmp_path, ID, X, odd="x RLIKE '[13579]$'")
    error = refused(world, errors.NotBuilt, {"id": 1, "x": 1})
    assert "odd (x RLIKE '[13579]$')" in str(error)
    assert "Append through Spark" in str(error)


def test_a_column_that_the_rows_lack_is_null_to_a_constraint(tmp_path: Path) -> None:
    world = world_of(tmp_path, ID, X, positive="x > 0")
    assert refused(world, errors.CheckConstraintViolated, {"id": 1}).values == {"x": None}


def test_an_invariant_is_a_constraint(tmp_path: Path) -> None:
    rule = {"delta.invariants": json.dumps({"expression": {"expression": "x > 0"}})}
    world = world_of(tmp_path, ID, Field("x", "long", metadata=rule))
    assert refused(world, errors.CheckConstraintViolated, {"id": 1, "x": -1}).values == {"x": "-1"}
    assert append(world, {"id": 1, "x": 1}) == 1


def test_a_new_table_is_born_with_its_constraints(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(errors.CheckConstraintViolated):
        anabranch.append(path, [{"id": 0}], properties={"delta.constraints.positive": "id > 0"})
    assert not Path(path).exists()
    anabranch.append(path, [{"id": 1}], properties={"delta.constraints.positive": "id > 0"})
    world = World(path)
    refused(world, errors.CheckConstraintViolated, {"id": 0})
    assert world.log.snapshot().protocol.writer_features == {
        "deletionVectors",
        "appendOnly",
        "invariants",
        "checkConstraints",
    }
    world.assert_clean()


@pytest.mark.parametrize("key", ["delta.constraints.", "delta.Constraints.a", "delta.constraints.A"])
def test_a_constraint_needs_a_name_as_delta_spells_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(errors.InvalidProperty, match="spelled"):
        anabranch.append(tmp_path / "t", [{"id": 1}], properties={key: "id > 0"})
    with pytest.raises(errors.InvalidProperty, match="condition in SQL"):
        anabranch.append(tmp_path / "t", [{"id": 1}], properties={"delta.constraints.a": " "})


def test_every_other_way_to_write_obeys_too(tmp_path: Path) -> None:
    """The commands, on an engine without a JVM; Spark's own tests are elsewhere."""
    world = world_of(tmp_path, ID, X, positive="x > 0")
    append(world, {"id": 1, "x": 1}, {"id": 2, "x": 2})
    before = listing(world.path)
    for run in (
        lambda: world.update("id = 1", x=0),
        lambda: world.overwrite({"id": 1, "x": -1}),
        lambda: world.merge([{"id": 1, "x": 0}], update_all("x")),
        lambda: world.merge([{"id": 9, "x": 0}], insert_all("id", "x")),
    ):
        with pytest.raises(errors.CheckConstraintViolated):
            run()
    assert listing(world.path) == before
    world.update("id = 1", x=7)
    world.assert_clean()


def test_a_redo_on_a_winners_rows_obeys_too(tmp_path: Path) -> None:
    """A blind append brings a row that my UPDATE selects, and whose new image breaks a constraint."""
    world = world_of(tmp_path, ID, X, small="x < 10")
    append(world, {"id": 1, "x": 1}, {"id": 5, "x": -5})
    update = Update(world.path, {"x": lambda row: row["x"] + 5}, world.condition("x > 0"))

    def one_more() -> None:
        append(world, {"id": 2, "x": 7})
        world.update("id = 5", x=-6)

    with pytest.raises(errors.CheckConstraintViolated) as caught, at_phase("staged", one_more):
        update.run(world.engine)
    assert caught.value.values == {"x": "12"}
    assert world.rows() == [{"id": 1, "x": 1}, {"id": 2, "x": 7}, {"id": 5, "x": -6}]


# -- NOT NULL ----------------------------------------------------------------------------------------------------------

STRICT = Struct((Field("a", "long", nullable=False), Field("b", "long")))


@pytest.mark.parametrize(
    ("kind", "good", "bad", "column"),
    [
        (STRICT, [None, {"a": 1, "b": None}], {"a": None, "b": 1}, "c.a"),
        (Array("long", False), [None, [], [1]], [1, None], "c.element"),
        (Array(STRICT, True), [[None, {"a": 1, "b": 2}]], [{"a": None, "b": 2}], "c.element.a"),
        (Map("string", "long", False), [None, {}, {"k": 1}], {"k": None}, "c.value"),
        (Map("string", STRICT, True), [{"k": None}], {"k": {"a": None, "b": 1}}, "c.value.a"),
    ],
)
def test_not_null_holds_inside_nested_columns(
    tmp_path: Path, kind: Any, good: list[Any], bad: Any, column: str
) -> None:
    world = world_of(tmp_path, ID, Field("c", kind))
    loose = pa.schema([("id", pa.int64()), ("c", arrow_type(all_nullable(Struct((Field("c", kind),))).fields[0].type))])

    def rows(values: list[Any]) -> pa.Table:
        shaped = [list(value.items()) if isinstance(kind, Map) and value is not None else value for value in values]
        return pa.Table.from_pylist([{"id": i, "c": value} for i, value in enumerate(shaped)], schema=loose)

    with pytest.raises(errors.NotNullViolated) as caught:
        anabranch.append(world.path, rows([*good, bad]))
    assert (caught.value.column, caught.value.values["id"]) == (column, str(len(good)))
    anabranch.append(world.path, rows(good))
    assert len(world.rows()) == len(good)


NESTED = Array(Map("string", Struct((Field("a", "long"), Field("l", Array("long")))), True), True)
PATHS: list[tuple[Step, ...]] = [
    ("c",),
    ("c", Inside.ELEMENTS),
    ("c", Inside.ELEMENTS, Inside.VALUES),
    ("c", Inside.ELEMENTS, Inside.VALUES, "a"),
    ("c", Inside.ELEMENTS, Inside.VALUES, "l"),
    ("c", Inside.ELEMENTS, Inside.VALUES, "l", Inside.ELEMENTS),
    ("c", Inside.ELEMENTS, Inside.KEYS),
]


def is_broken(value: Any, path: tuple[Step, ...]) -> bool:
    if not path or value is None:
        return not path and value is None
    match path[0]:
        case Inside.ELEMENTS:
            inside = value
        case Inside.KEYS:
            inside = [key for key, _ in value]
        case Inside.VALUES:
            inside = [each for _, each in value]
        case name:
            inside = [value[name]]
    return any(is_broken(each, path[1:]) for each in inside)


def drawn(dice: random.Random) -> Any:
    """A value of `NESTED`, in which anything but a key may be NULL."""

    def some(make: Any, most: int = 3) -> Any:
        return None if dice.random() < 0.1 else [make() for _ in range(dice.randint(0, most))]

    def struct() -> Any:
        number = lambda: dice.choice([None, 1, 2, 3, 4, 5, 6, 7, 8, 9])  # noqa: E731
        return None if dice.random() < 0.1 else {"a": number(), "l": some(number)}

    return some(lambda: some(lambda: (dice.choice("kl"), struct()), 2))


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_of_nested_values_the_first_row_that_breaks_not_null_is_found(path: tuple[Step, ...]) -> None:
    dice, kind, broken = random.Random(3), arrow_type(NESTED), 0
    schema, rules = Struct((Field("c", NESTED),)), Rules(not_null=(NotNull(path),))
    for _ in range(60):
        values = [drawn(dice) for _ in range(6)]
        chunks = pa.chunked_array([pa.array(values[:4], kind).slice(1), pa.array(values, kind).slice(4, 2)])
        there = values[1:]
        expected = next((i for i, each in enumerate(there) if is_broken(each, path[1:])), None)
        try:
            enforce_rules("/t", pa.table({"c": chunks}), schema, rules, frozenset())
            found = None
        except errors.NotNullViolated as error:
            found, broken = error.values["c"], broken + 1
        assert found == (None if expected is None else shown(there[expected])), there
    assert broken > 5 or Inside.KEYS in path


def shown(value: Any) -> str | None:
    return None if value is None else str(value)[:200]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("timestamp", pa.scalar(-62135600400000000, pa.timestamp("us", "UTC")), "0000-12-31 23:00:00.000000Z"),
        ("date", pa.scalar(6585411, pa.int32()).cast(pa.date32()), "20000-03-30"),
    ],
)
def test_moments_beyond_the_years_of_python_are_shown(kind: str, value: pa.Scalar, text: str) -> None:
    schema, rules = Struct((ID, Field("t", kind))), Rules(not_null=(NotNull(("id",)),))
    rows = pa.table({"id": pa.nulls(1, pa.int64()), "t": pa.repeat(value, 1)})
    with pytest.raises(errors.NotNullViolated) as caught:
        enforce_rules("/t", rows, schema, rules, frozenset())
    assert caught.value.values == {"id": None, "t": text}
    many = pa.table({"id": pa.nulls(1, pa.int64()), "t": pa.array([pa.repeat(value, 1)], pa.list_(value.type))})
    with pytest.raises(errors.NotNullViolated, match="outside the years"):
        enforce_rules("/t", many, Struct((ID, Field("t", Array(kind)))), rules, frozenset())


def test_a_nested_column_itself_may_be_not_null(tmp_path: Path) -> None:
    world = world_of(tmp_path, ID, Field("c", Array("long"), nullable=False))
    assert refused(world, errors.NotNullViolated, {"id": 1, "c": None}).column == "c"
    append(world, {"id": 1, "c": [1, None]})


# -- lengths -----------------------------------------------------------------------------------------------------------


def test_texts_are_padded_cut_of_blanks_and_refused_as_spark_does(tmp_path: Path) -> None:
    char, varchar = (
        Field(name, "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": f"{kind}(3)"})
        for name, kind in (("cchar", "char"), ("vvarchar", "varchar"))
    )
    world = world_of(tmp_path, ID, char, varchar)
    append(world, {"id": 1, "cchar": "é", "vvarchar": "é"}, {"id": 2, "cchar": "ab   ", "vvarchar": "ab   "}, {"id": 3})
    assert [(row["cchar"], row["vvarchar"]) for row in world.rows()] == [("é  ", "é"), ("ab ", "ab "), (None, None)]
    for name, limit in (("cchar", "char(3)"), ("vvarchar", "varchar(3)")):
        error = refused(world, errors.LengthExceeded, {"id": 1, name: "abcd"})
        assert (error.column, error.limit, error.values) == (name, limit, {name: "abcd"})
        assert error.getCondition() == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"


def test_lengths_inside_nested_columns_need_spark(tmp_path: Path) -> None:
    world = world_of(
        tmp_path, ID, Field("c", Array("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "array<char(2)>"})
    )
    refused(world, errors.NotBuilt, {"id": 1, "c": ["abc"]})


# -- defaults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("long", "5", 5),
        ("byte", "-5", -5),
        ("string", "'é'", "é"),
        ("boolean", "true", True),
        ("date", "DATE '2024-01-02'", dt.date(2024, 1, 2)),
        ("decimal(5,2)", "1.5", None),
        ("long", "NULL", None),
    ],
)
def test_a_column_that_rows_lack_has_its_default(tmp_path: Path, kind: str, text: str, value: Any) -> None:
    world = world_of(tmp_path, ID, Field("d", kind, metadata={"CURRENT_DEFAULT": text}))
    append(world, {"id": 1})
    assert world.rows() == [{"id": 1, "d": Decimal("1.50") if kind.startswith("decimal") else value}]
    append(world, {"id": 2, "d": None})
    assert world.rows()[-1]["d"] is None, "a NULL that is given is NULL"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("timestamp", "current_timestamp()"),
        ("byte", "300"),
        ("long", "'5'"),
        ("decimal(5,2)", "1.234"),
    ],
)
def test_a_default_that_only_spark_computes_refuses_rows_that_lack_it(tmp_path: Path, kind: str, text: str) -> None:
    world = world_of(tmp_path, ID, Field("d", kind, metadata={"CURRENT_DEFAULT": text}))
    assert text in str(refused(world, errors.NotBuilt, {"id": 1}))
    append(world, {"id": 1, "d": None})


def test_a_default_obeys_the_other_rules(tmp_path: Path) -> None:
    world = world_of(tmp_path, ID, Field("x", "long", metadata={"CURRENT_DEFAULT": "0"}), positive="x > 0")
    assert refused(world, errors.CheckConstraintViolated, {"id": 1}).values == {"x": "0"}


# -- generated columns -------------------------------------------------------------------------------------------------


def generated(tmp_path: Path, text: str) -> World:
    return world_of(tmp_path, ID, Field("g", "long", metadata={"delta.generationExpression": text}))


def test_a_generated_column_is_computed_or_has_to_be_what_would_be_computed(tmp_path: Path) -> None:
    world = generated(tmp_path, "id * 2")
    append(world, {"id": 1}, {"id": None})
    append(world, {"id": 2, "g": 4}, {"id": None, "g": None})
    error = refused(world, errors.CheckConstraintViolated, {"id": 3, "g": 6}, {"id": 4, "g": 4})
    assert (error.constraint, error.expression, error.values) == (
        "Generated Column",
        "g <=> id * 2",
        {"id": "4", "g": "4"},
    )
    found = [(row["id"], row["g"]) for row in world.rows()]
    assert sorted(found, key=str) == [(1, 2), (2, 4), (None, None), (None, None)]


def test_a_generated_column_is_of_the_text_that_is_stored(tmp_path: Path) -> None:
    limit = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    of_text = Field("g", "string", metadata={"delta.generationExpression": "concat(c, '  ')", **limit})
    world = world_of(tmp_path, Field("c", "string", metadata=limit), of_text)
    append(world, {"c": "ab    "}, {"c": "a"})
    append(world, {"c": "b  ", "g": "b  "})
    assert same_rows(world.rows(), [{"c": "ab ", "g": "ab "}, {"c": "a", "g": "a  "}, {"c": "b  ", "g": "b  "}])


@pytest.mark.parametrize("text", ["shiftright(id % 7, 0)", "id * 9223372036854775807"])
def test_a_generated_column_that_only_spark_computes_needs_spark(tmp_path: Path, text: str) -> None:
    world = generated(tmp_path, text)
    for row in ({"id": 2}, {"id": 2, "g": 4}):
        assert "without Spark" in str(refused(world, errors.NotBuilt, row))
