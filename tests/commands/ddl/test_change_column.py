"""ALTER COLUMN: comment, NULL, default, type and place of one column, beside other writers."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, Field, Struct, arrow_type
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.change_column import DROPPED, ChangeColumn, ChangeColumns
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.check import check
from anabranch.testing import at_phase
from tests.support.raw_logs import metadata, put_commit, put_rows
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

ON = {"delta.enableTypeWidening": "true"}
NTZ = {"delta.feature.timestampNtz": "supported"}
PLACE = pa.struct([("lat", pa.float32()), ("tags", pa.list_(pa.int16()))])
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "x": pa.array([10, None, 30], pa.int8()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(5, 2)),
        "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1500, 2, 3)], pa.date32()),
        "place": pa.array([{"lat": 1.5, "tags": [1, 2]}, None, {"lat": 0.5, "tags": None}], PLACE),
    }
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(table_path(tmp_path))
    Append(made.path, ROWS, None, ON).run()
    return made


def column(world: World, *path: str) -> Field:
    schema: Any = world.log.snapshot().schema
    for name in path[:-1]:
        schema = schema.field(name).type
    found = schema.field(path[-1])
    assert isinstance(found, Field)
    return found


# -- types -------------------------------------------------------------------------------------------------------------


def test_widening_is_switched_on_with_its_feature_in_one_commit(tmp_path: Path) -> None:
    plain = World(table_path(tmp_path)).create([{"id": 1}])
    with pytest.raises(errors.InvalidOption, match=r"set delta\.enableTypeWidening = true first"):
        ChangeColumn(plain.path, ("id",), type="decimal(20,0)").run()
    SetProperties(plain.path, ON).run()
    protocol = plain.log.snapshot().protocol
    assert protocol.reader_features is not None
    assert "typeWidening" in protocol.reader_features
    assert ChangeColumn(plain.path, ("id",), type="decimal(20,0)").run() is not None
    assert plain.rows() == [{"id": Decimal(1)}]


def test_old_files_are_read_with_the_wider_type_and_no_file_is_touched(world: World) -> None:
    SetProperties(world.path, NTZ).run()
    before = world.log.snapshot().files
    for name, wider in {"id": "long", "x": "double", "price": "decimal(10,3)", "day": "timestamp_ntz"}.items():
        ChangeColumn(world.path, (name,), type=wider).run()
    ChangeColumn(world.path, ("place", "lat"), type="double").run()
    ChangeColumn(world.path, ("place", "tags", "element"), type="long").run()
    assert world.log.snapshot().files.equals(before)
    world.append(
        {"id": 1 << 40, "x": 0.1, "price": Decimal("123456.789"), "day": dt.datetime(2021, 1, 1, 12), "place": None}
    )
    rows = {row["id"]: row for row in world.rows()}
    assert rows[3]["price"] == Decimal("-2.250")
    assert rows[3]["day"] == dt.datetime(1500, 2, 3)
    assert rows[1]["place"] == {"lat": 1.5, "tags": [1, 2]}
    assert rows[1 << 40]["price"] == Decimal("123456.789")
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)
    tags = column(world, "place", "tags")
    assert tags.type == Array("long")
    assert tags.metadata["delta.typeChanges"] == [{"fromType": "short", "toType": "long", "fieldPath": "element"}]


def test_rows_of_old_files_are_changed_deleted_and_skipped_as_others_are(world: World) -> None:
    ChangeColumn(world.path, ("id",), type="long").run()
    ChangeColumn(world.path, ("price",), type="decimal(10,3)").run()
    world.append({"id": 1 << 40, "price": Decimal("5.125")})
    world.update("id = 3", price=Decimal("7.125"))
    world.delete("price > 7")
    assert check(world.log.snapshot(), deep=True).is_clean
    assert {row["id"] for row in world.rows()} == {1, 2, 1 << 40}
    assert len(anabranch.files(world.path, where="id > 1000000000000")) == 1
    assert len(anabranch.files(world.path, where="price = 1.5")) == 1
    assert len(anabranch.files(world.path, where="price > 5")) == 1


@pytest.mark.parametrize(
    ("name", "first", "wider", "value"),
    [
        ("byte", 5, "decimal(12,2)", Decimal("5.00")),
        ("integer", 7, "long", 7),
        ("float", 0.5, "double", 0.5),
        ("decimal(5,2)", Decimal("1.50"), "decimal(8,3)", Decimal("1.500")),
        ("date", dt.date(2020, 2, 29), "timestamp_ntz", dt.datetime(2020, 2, 29)),
    ],
)
def test_partition_values_of_old_files_are_read_with_the_wider_type(
    tmp_path: Path, name: str, first: Any, wider: str, value: Any
) -> None:
    world = World(table_path(tmp_path))
    schema = Struct((Field("id", "long"), Field("p", name)))
    Create(world.path, NewTable(schema, ("p",), ON)).run()
    rows = pa.table({"id": [1, 2], "p": pa.array([first, None], arrow_type(name))})
    Append(world.path, rows).run()
    SetProperties(world.path, NTZ).run()
    ChangeColumn(world.path, ("p",), type=wider).run()
    world.append({"id": 3, "p": value})
    assert [row["p"] for row in world.rows()] == [value, None, value]
    world.delete("id = 1")
    assert [row["p"] for row in world.rows()] == [None, value]


def test_what_the_protocol_does_not_allow_names_both_types(world: World) -> None:
    for path, wider in [(("id",), "short"), (("id",), "string"), (("x",), "decimal(3,0)"), (("place",), "long")]:
        with pytest.raises(errors.InvalidOption) as refused:
            ChangeColumn(world.path, path, type=wider).run()
        assert refused.value.to_type in str(refused.value)
        assert refused.value.from_type.upper() in str(refused.value)
    assert world.version == 0


def test_a_day_becomes_a_moment_only_where_the_table_lists_the_feature(world: World) -> None:
    """As in delta-spark: readers that know wider types need not know moments without a zone."""
    with pytest.raises(errors.InvalidOption, match=r"set delta\.feature\.timestampNtz = supported first"):
        ChangeColumn(world.path, ("day",), type="timestamp_ntz").run()
    assert world.version == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [(b, a) for b in ("byte", "short", "integer") for a in ("decimal(10,0)", "decimal(13,3)", "decimal(38,28)")]
    + [("long", "decimal(20,0)"), ("long", "decimal(38,18)")],
)
def test_every_verb_takes_old_files_of_integers_that_became_decimals(tmp_path: Path, before: str, after: str) -> None:
    """PROTOCOL.md "Type Widening": 10 digits before the point for byte, short and int, 20 for long."""
    world, two = (
        World(table_path(tmp_path)),
        pa.table({"id": [1, 2, 3], "n": pa.array([5, None, -7], arrow_type(before))}),
    )
    Append(world.path, two, None, ON).run()
    for narrow in ("decimal(9,0)", "decimal(20,11)", "decimal(19,0)" if before == "long" else "decimal(12,3)"):
        with pytest.raises(errors.InvalidOption):
            ChangeColumn(world.path, ("n",), type=narrow).run()
    ChangeColumn(world.path, ("n",), type=after).run()
    big = Decimal(9_999_999_999)
    world.append({"id": 4, "n": big})
    assert [row["n"] for row in world.rows()] == [Decimal(5), None, Decimal(-7), big]
    assert len(anabranch.files(world.path, where="n > 6")) == len(anabranch.files(world.path, where="n < 0")) == 1
    assert len(anabranch.files(world.path, where="n BETWEEN -10 AND 9999999999")) == 2
    world.update("n = 5", n=Decimal(6))
    world.merge([{"id": 3, "n": Decimal(8)}, {"id": 9, "n": None}])
    world.delete("n = 6")
    world.optimize()
    assert check(world.log.snapshot(), deep=True).is_clean
    assert [(row["id"], row["n"]) for row in world.rows()] == [(2, None), (3, Decimal(8)), (4, big), (9, None)]


def test_a_column_of_a_constraint_keeps_its_type(world: World) -> None:
    AddConstraint(world.path, "positive", world.condition("id > 0")).run(world.engine)
    with pytest.raises(errors.InvalidOption, match="the constraint positive"):
        ChangeColumn(world.path, ("id",), type="long").run()


def test_a_preview_table_is_widened_as_it_is(world: World) -> None:
    """No second name of the feature is added to a table of an older delta-spark."""
    path = table_path(Path(world.path).parent)
    names = ["typeWidening-preview"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}
    schema = Struct((Field("id", "long"),))
    table = metadata(schema, delta_enableTypeWidening="true")
    put_commit(path, 0, {"protocol": protocol}, table, put_rows(path, "a.parquet", [{"id": 1}]))
    ChangeColumn(path, ("id",), type="decimal(22,2)").run()
    preview = World(path)
    assert preview.log.snapshot().protocol.reader_features == {"typeWidening-preview"}
    assert preview.rows() == [{"id": Decimal(1)}]


def test_rows_widen_columns_where_they_may_change_the_schema(world: World) -> None:
    wider = pa.table(
        {"id": pa.array([1 << 40], pa.int64()), "price": pa.array([Decimal("5.125")], pa.decimal128(9, 3))}
    )
    with pytest.raises(errors.SchemaMismatch):
        Write(world.path, wider, "append").run(world.engine)
    Write(world.path, wider, "append", schema_change="merge").run(world.engine)
    assert (column(world, "id").type, column(world, "price").type) == ("long", "decimal(9,3)")
    assert {row["id"] for row in world.rows()} == {1, 2, 3, 1 << 40}
    doubles = pa.table({"id": pa.array([0.5])})  # a long becomes no double
    with pytest.raises(errors.SchemaMismatch):
        Write(world.path, doubles, "append", schema_change="merge").run(world.engine)
    SetProperties(world.path, dict.fromkeys(ON, "false")).run()
    widest = pa.table({"price": pa.array([Decimal("5.1255")], pa.decimal128(12, 4))})
    with pytest.raises(errors.SchemaMismatch):
        Write(world.path, widest, "append", schema_change="merge").run(world.engine)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_a_comment_comes_and_goes(world: World) -> None:
    ChangeColumn(world.path, ("place", "lat"), comment="degrees north").run()
    assert column(world, "place", "lat").metadata == {"comment": "degrees north"}
    assert ChangeColumn(world.path, ("place", "lat"), comment="degrees north").run() is None
    ChangeColumn(world.path, ("PLACE", "LAT"), comment=DROPPED).run()
    assert column(world, "place", "lat").metadata == {}


def test_a_column_moves_and_its_rows_stay(world: World) -> None:
    before = world.rows()
    ChangeColumn(world.path, ("price",), first=True).run()
    ChangeColumn(world.path, ("id",), after="day").run()
    assert world.log.snapshot().schema.names == ("price", "x", "day", "id", "place")
    assert same_rows(world.rows(), before)
    world.append({"id": 9, "price": Decimal("9.99")})
    assert {row["id"] for row in world.rows()} == {1, 2, 3, 9}
    assert world.info(1)["operation"] == "CHANGE COLUMN"
    parameters = world.info(2)["operationParameters"]
    assert parameters["position"] == "AFTER day"
    assert json.loads(parameters["column"])["name"] == "id"


def test_not_null_is_dropped_freely_and_set_after_every_row_was_looked_at(world: World) -> None:
    with pytest.raises(errors.ConstraintNotMet) as refused:
        ChangeColumn(world.path, ("x",), nullable=False).run(world.engine)
    assert (refused.value.count, refused.value.rows) == (1, 3)
    world.delete("x IS NULL")
    ChangeColumn(world.path, ("x",), nullable=False).run(world.engine)
    assert "invariants" in (world.log.snapshot().protocol.writer_features or ())
    with pytest.raises(errors.NotNullViolated):
        world.append({"id": 4, "x": None})
    ChangeColumn(world.path, ("x",), nullable=True).run()
    world.append({"id": 4, "x": None})
    assert len(world.rows()) == 3


def test_not_null_is_not_set_over_rows_that_came_meanwhile(world: World) -> None:
    world.delete("x IS NULL")
    with (
        pytest.raises((errors.MetadataChangedException, errors.ConcurrentAppendException)),
        at_phase("staged", lambda: world.append({"id": 4, "x": None})),
    ):
        ChangeColumn(world.path, ("x",), nullable=False).run(world.engine)
    assert column(world, "x").nullable


def test_a_default_is_set_and_dropped(world: World) -> None:
    ChangeColumn(world.path, ("x",), default="7").run(world.engine)
    assert "allowColumnDefaults" in (world.log.snapshot().protocol.writer_features or ())
    anabranch.append(world.path, [{"id": 4}])
    ChangeColumn(world.path, ("x",), default=DROPPED).run()
    world.append({"id": 5})
    assert [row["x"] for row in world.rows() if row["id"] > 3] == [7, None]
    with pytest.raises(errors.InvalidOption, match="a member of another column"):
        ChangeColumn(world.path, ("place", "lat"), default="7").run(world.engine)


@pytest.mark.parametrize("change", [{"nullable": False}, {"default": "1"}])
def test_what_looks_at_rows_or_values_needs_an_engine(world: World, change: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidOption, match="engine"):
        ChangeColumn(world.path, ("id",), **change).run()


def test_elements_have_nothing_but_a_type(world: World) -> None:
    for change in ({"comment": "c"}, {"first": True}, {"nullable": True}):
        with pytest.raises(errors.InvalidOption, match="have a type"):
            ChangeColumn(world.path, ("place", "tags", "element"), **change).run()  # type: ignore[arg-type]
    with pytest.raises(errors.UnknownColumn):
        ChangeColumn(world.path, ("place", "lon"), comment="c").run()
    with pytest.raises(errors.InvalidOption):
        ChangeColumn(world.path, (), comment="c").run()


def test_a_change_of_a_column_and_any_other_write_that_have_not_seen_each_other_conflict(world: World) -> None:
    def change() -> None:
        ChangeColumn(world.path, ("id",), type="long").run()

    with pytest.raises(errors.MetadataChangedException), at_phase("staged", change):
        world.append({"id": 4})
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: world.append({"id": 4})):
        ChangeColumn(world.path, ("x",), type="short").run()
    forget()
    assert len(world.rows()) == 4


# -- several columns ---------------------------------------------------------------------------------------------------


def test_several_columns_are_changed_in_one_commit_or_none_of_them(world: World) -> None:
    def change(*path: str, **to: Any) -> ChangeColumn:
        return ChangeColumn(world.path, path, **to)

    before = world.version
    both = (change("id", comment="key"), change("place", "lat", type="double"), change("x", first=True))
    ChangeColumns(world.path, both).run()
    assert world.version == before + 1
    assert world.info()["operation"] == "CHANGE COLUMNS"
    assert column(world, "id").metadata["comment"] == "key"
    assert column(world, "place", "lat").type == "double"
    assert world.log.snapshot().schema.names[0] == "x"
    assert ChangeColumns(world.path, both).run() is None
    refused = (change("id", comment="other"), change("price", type="string"))
    with pytest.raises(errors.InvalidOption):
        ChangeColumns(world.path, refused).run()
    for twice in ((change("id", comment="a"), change("ID", first=True)), (change("place"), change("place", "lat"))):
        with pytest.raises(errors.InvalidOption, match="one after the other"):
            ChangeColumns(world.path, twice).run()
    with pytest.raises(errors.ConstraintNotMet):
        ChangeColumns(world.path, (change("id", nullable=False), change("x", nullable=False))).run(world.engine)
    assert world.version == before + 1
    assert column(world, "id").metadata["comment"] == "key"


def test_a_limited_text_may_only_get_longer(tmp_path: Path) -> None:
    world, limited = World(table_path(tmp_path)), Field("s", "string", True, {LENGTH: "varchar(3)", "comment": "c"})
    Create(world.path, NewTable(Struct((limited, Field("t", "string"))))).run()

    def typed(column_: str, length: str | None) -> Field:
        ChangeColumn(world.path, (column_,), type="string", length=length).run()
        return column(world, column_)

    assert typed("s", "varchar(5)").metadata == {LENGTH: "varchar(5)", "comment": "c"}
    for name, length in (("s", "varchar(4)"), ("s", "char(9)"), ("t", "varchar(9)")):
        with pytest.raises(errors.InvalidOption, match="longer texts"):
            typed(name, length)
    assert typed("s", None).metadata == {"comment": "c"}
    assert typed("t", None).metadata == {}
