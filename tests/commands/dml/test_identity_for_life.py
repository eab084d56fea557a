"""Values of identity columns are given once in the life of a table, whatever its columns were in the meantime."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch._protocol.actions import Metadata
from anabranch._protocol.rules.identity import GIVEN, identities, identity_metadata, keep_assigned_values
from anabranch._protocol.schema.types import Field, Struct
from anabranch._transaction.retry import Runtime
from anabranch.commands.ddl.alter import SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.identity_values import reserve
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.clone import Clone
from anabranch.errors import InvalidProperty
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

MAPPED = {"delta.columnMapping.mode": "name"}


def columns(start: int | None = 1, step: int = 1, name: str = "n", explicit: bool = False) -> Struct:
    known = [Field("id", "long")]
    if start is not None:
        known.append(Field(name, "long", True, identity_metadata(start, step, explicit=explicit)))
    return Struct(tuple(known))


COUNTED, WITHOUT = columns(), columns(None)


def created(folder: Path, schema: Struct = COUNTED, **properties: str) -> World:
    path = table_path(folder)
    Create(path, NewTable(schema, (), properties)).run()
    return World(path)


def replaced(world: World, schema: Struct, **properties: str) -> None:
    Replace(world.path, NewTable(schema, (), properties)).run()


def given(world: World, id_: int, name: str = "n") -> int:
    """The value that a new row gets."""
    world.append({"id": id_})
    return next(int(row[name]) for row in world.rows() if row["id"] == id_)


@pytest.mark.slow
def test_a_column_that_was_replaced_away_and_restored_goes_on(tmp_path: Path) -> None:
    world = created(tmp_path)
    world.append({"id": 1})
    old = world.version
    world.append({"id": 2}, {"id": 3})
    replaced(world, WITHOUT)
    world.restore(old)
    assert given(world, 4) == 4
    world.assert_clean()


def test_a_column_that_was_replaced_away_and_declared_again_goes_on(tmp_path: Path) -> None:
    world = created(tmp_path)
    world.append({"id": 1}, {"id": 2}, {"id": 3})
    replaced(world, WITHOUT)
    SetProperties(world.path, {"team": "harbour"}).run()
    replaced(world, WITHOUT)
    replaced(world, columns())
    assert given(world, 4) == 4


@pytest.mark.parametrize(
    ("start", "step", "value"),
    [
        (1, 1, 6),
        (2, 3, 8),  # 2, 5, 8: what the protocol allows is start + k * step
        (100, 1, 100),
        (9, -1, 0),
        (0, -1, 0),
        (9, -6, -3),
    ],
)
def test_another_start_and_step_never_meet_the_values_that_were_given(
    tmp_path: Path, start: int, step: int, value: int
) -> None:
    world = created(tmp_path)
    world.append(*({"id": i} for i in range(1, 6)))
    replaced(world, columns(start, step))
    assert given(world, 9) == value


def test_a_dropped_column_that_is_restored_goes_on(tmp_path: Path) -> None:
    world = created(tmp_path, **MAPPED)
    old = world.version
    world.append({"id": 1}, {"id": 2})
    DropColumns(world.path, (("n",),)).run()
    world.restore(old)
    assert given(world, 4) == 3


def test_a_renamed_column_counts_on_under_either_name(tmp_path: Path) -> None:
    world = created(tmp_path, **MAPPED)
    world.append({"id": 1})
    old = world.version
    RenameColumn(world.path, ("n",), "m").run()
    assert given(world, 2, "m") == 2
    DropColumns(world.path, (("m",),)).run()
    world.restore(old)
    assert given(world, 3) == 3


def test_a_restore_looks_at_what_another_engine_has_forgotten(tmp_path: Path) -> None:
    """delta-spark's REPLACE TABLE keeps no property, and no mark of a column that goes."""
    world = created(tmp_path)
    old = world.version
    world.append({"id": 1}, {"id": 2})
    replaced(world, WITHOUT)
    forget(world)
    world.restore(old)
    assert given(world, 3) == 3


def forget(world: World) -> None:
    """Take the property out of the newest commit, as if its writer had not known it."""
    file = Path(world.path) / "_delta_log" / f"{world.version:020}.json"
    checksum = file.with_suffix(".crc")
    before = file.read_text()
    after = before.replace(r'"anabranch.identityValuesGiven":"{\"n\":[1,2]}"', "")
    assert after != before
    file.write_text(after.replace(",}", "}").replace("{,", "{"))
    checksum.unlink()


def test_a_clone_in_its_place_gives_neither_its_values_nor_the_sources(tmp_path: Path) -> None:
    source, world = created(tmp_path, columns(1, 1)), created(tmp_path, columns(1, 1))
    source.append({"id": 1}, {"id": 2})
    world.append(*({"id": i} for i in range(5)))
    Clone(source.path, world.path, replace=True).run()
    assert given(world, 9) == 6


def test_values_that_are_reserved_while_the_column_is_replaced_away_are_remembered(tmp_path: Path) -> None:
    world = created(tmp_path)
    old = world.version
    world.append({"id": 1})

    with at_phase("staged", lambda: reserve(world.log, ["n"], 1, "another", Runtime())):
        replaced(world, WITHOUT)
    world.restore(old)
    assert given(world, 3) == 3


def test_it_is_forgotten_once_a_column_says_it_again(tmp_path: Path) -> None:
    world = created(tmp_path)
    old = world.version
    world.append({"id": 1})
    replaced(world, WITHOUT)
    assert world.log.snapshot().metadata.configuration[GIVEN] == '{"n":[1,1]}'
    world.restore(old)
    assert GIVEN not in world.log.snapshot().metadata.configuration


def test_no_user_sets_or_unsets_what_the_table_remembers(tmp_path: Path) -> None:
    world = created(tmp_path)
    world.append({"id": 1})
    replaced(world, WITHOUT)
    with pytest.raises(InvalidProperty, match="no user sets it"):
        SetProperties(world.path, {GIVEN: "{}"}).run()
    with pytest.raises(InvalidProperty, match="as long as it lasts"):
        UnsetProperties(world.path, (GIVEN,)).run()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "[]", "7", '{"n": 1}', '{"n": [2, 1]}', '{"n": [1, 1e999]}', "[" * 100_000),
        *('{"n": [1, 2.0]}', '{"n": [1.0, 2]}', '{"n": [true, 2]}'),
    ],
)
def test_a_damaged_memory_stops_who_would_write_metadata(tmp_path: Path, text: str) -> None:
    world = created(tmp_path)
    known: Metadata = world.log.snapshot().metadata
    with pytest.raises(InvalidProperty, match="damaged"):
        keep_assigned_values(replace(known, configuration={GIVEN: text}), known)


def test_a_check_finds_values_that_would_be_given_again(tmp_path: Path) -> None:
    world = created(tmp_path)
    world.append({"id": 1}, {"id": 2})
    assert check(world.log.snapshot()).is_clean
    log = Path(world.path) / "_delta_log"
    for file in log.glob("*.json"):
        file.write_text(
            file.read_text().replace(r"\"delta.identity.highWaterMark\":2", r"\"delta.identity.highWaterMark\":1")
        )
    for file in log.glob("*.crc"):
        file.unlink()
    (found,) = check(world.log.snapshot()).findings
    assert found.rule == "no identity value is given twice"
    assert found.problem == "the column n holds 2, and its mark says that 1 was the last"


# -- random lives ------------------------------------------------------------------------------------------------------


class Life:
    """One table and what is known of the values that it has given."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder, self.mapped = folder, self.random.random() < 0.5
        self.properties = MAPPED if self.mapped else {}
        self.world = created(folder, self._columns(), **self.properties)
        self.next_row = 0
        self.given: dict[tuple[str, int], int] = {}
        self.told: list[str] = []

    def _columns(self) -> Struct:
        pick = self.random
        if pick.random() < 0.3:
            return WITHOUT
        return columns(pick.randint(-5, 5), pick.choice([-3, -2, -1, 1, 1, 1, 2, 3]), explicit=True)

    def step(self) -> None:
        verbs = [
            self.insert,
            self.insert,
            self.explicitly,
            self.sync,
            self.replace,
            self.restore,
            self.drop,
            self.clone,
        ]
        verb = self.random.choice([*verbs, self.rename, self.overwrite])
        self.told.append(verb.__name__)
        verb()
        self.remember()

    def _identity(self) -> str | None:
        found = identities(self.world.log.snapshot().schema)
        return found[0].column if found else None

    def _rows(self) -> list[dict[str, Any]]:
        self.next_row += 3
        return [{"id": self.next_row - i} for i in range(self.random.randint(1, 3))]

    def insert(self) -> None:
        rows, name = self._rows(), self._identity()
        self.world.append(*rows)
        if name is None:
            return
        ids = {row["id"] for row in rows}
        for row in self.world.rows():
            if row["id"] in ids:
                for key in self._keys(name):
                    assert (key, row[name]) not in self.given, f"{row[name]} was given twice: {self.told}"

    def _keys(self, name: str) -> set[str]:
        """What the column is known by: its name, and what its data files call it."""
        return {name, self.world.log.snapshot().schema.field(name).physical_name}

    def remember(self) -> None:
        """What rows hold now was given to them."""
        name = self._identity()
        if name is not None:
            for row in self.world.rows():
                self.given |= {(key, row[name]): row["id"] for key in self._keys(name) if self._was_given(row[name])}

    def _was_given(self, value: int | None) -> bool:
        return value is not None and abs(value) < 1000

    def explicitly(self) -> None:
        name = self._identity()
        if name is not None:
            row = {**self._rows()[0], name: 1000 * self.random.choice([-1, 1]) + self.next_row}
            self.world.append(row)

    def sync(self) -> None:
        name = self._identity()
        if name is None:
            return
        SyncIdentity(self.world.path, name).run(self.world.engine)
        (identity,) = identities(self.world.log.snapshot().schema)
        values = [row[name] for row in self.world.rows() if row[name] is not None]
        assert all((identity.next - value) * identity.step > 0 for value in values), self.told

    def replace(self) -> None:
        replaced(self.world, self._columns(), **self.properties)

    def restore(self) -> None:
        if self.world.version:
            self.world.restore(self.random.randrange(self.world.version))

    def drop(self) -> None:
        name = self._identity()
        if self.mapped and name is not None:
            DropColumns(self.world.path, ((name,),)).run()

    def rename(self) -> None:
        name = self._identity()
        if self.mapped and name is not None:
            RenameColumn(self.world.path, (name,), {"n": "m", "m": "n"}[name]).run()

    def overwrite(self) -> None:
        self.world.overwrite(*self._rows())

    def clone(self) -> None:
        source = created(self.folder, self._columns(), **self.properties)
        Append(source.path, [{"id": -1}, {"id": -2}]).run()
        Clone(source.path, self.world.path, replace=True).run()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_no_value_is_given_twice_in_any_life(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed)
    for _ in range(20):
        life.step()
    assert check(life.world.log.snapshot()).is_clean
