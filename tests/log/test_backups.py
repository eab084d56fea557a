"""Whatever a process remembers of a table, a copy that is put back, or another table of that name, is read as it is.

Two processes of ours and another engine commit to one table; now and then a copy of it is taken or put back, its newest
commit is taken away, or the table is made again. After each step the process that remembers most reads the rows of the
model, and each checksum file that ours wrote says what the commits say.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from anabranch._log.checksum import Checksum
from anabranch._log.file_names import checksum_name, checksum_version, commit_name
from anabranch._log.log import forget
from anabranch._storage.contract import Entry
from anabranch.errors import CorruptLog
from anabranch.errors.process_state import STATE
from anabranch.testing import DictStore, Row, mounted
from anabranch.testing.stores import StoredObject
from tests.support.tiers import examples
from tests.support.worlds import World

URL = "memory://backups/t"
STEPS = 10
HISTORIES = int(os.environ.get("ANABRANCH_EXAMPLES", 0)) or examples(400, 5)


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def store_with(names: Mapping[str, StoredObject], puts: int) -> DictStore:
    """A store that holds these, in which so many puts have been, so that no later one has the etag of another."""
    store = DictStore(URL, {**names, "_": StoredObject(b"", puts, Entry("_", 0, 0, str(puts)))})
    store.delete("_")
    return store


@dataclass(frozen=True)
class Table:
    """A store, the ids of the rows of each version, and the versions whose checksum file lies."""

    store: DictStore
    versions: tuple[tuple[int, ...], ...] = ()
    lies: frozenset[int] = frozenset()

    def then(self, ids: tuple[int, ...]) -> Table:
        return replace(self, versions=(*self.versions, ids))


@dataclass
class History:
    """What happens to a table, drawn by ``dice``; ``told`` are its steps in words."""

    dice: random.Random
    table: Table = field(default_factory=lambda: Table(DictStore(URL)))
    beside: Table | None = None
    copies: list[tuple[Table, dict[str, StoredObject]]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    next_id: int = 0
    past: int = 0

    def run(self) -> None:
        self.step("make", self.make)
        actions: dict[str, Callable[[], None]] = {
            "append": self.append,
            "delete": self.delete,
            "append elsewhere": self.append_elsewhere,
            "append by another engine": self.append_by_another_engine,
            "copy": lambda: self.copies.append((self.table, dict(self.table.store.kept))),
            "put back": self.put_back,
            "take the newest commit away": self.take_away,
            "make again": self.make,
            "turn to the same name at another endpoint": self.turn,
        }
        for _ in range(STEPS):
            name = self.dice.choices(list(actions), [5, 2, 4, 2, 2, 2, 2, 1, 1])[0]
            self.step(name, actions[name])

    def step(self, name: str, act: Callable[[], None]) -> None:
        self.told.append(name)
        act()
        try:
            rows = self.rows()
        except CorruptLog as error:
            self.remedy(error)
            rows = self.rows()
        assert rows == sorted(self.table.versions[-1]), self.told
        with STATE.as_another_process():
            self.assert_sums()

    def rows(self) -> list[int]:
        with self.world() as world:
            return [row["id"] for row in world.rows()]

    def remedy(self, error: CorruptLog) -> None:
        """What the error says: to remove the checksum file. Only where a commit is missing is it one word against
        another, that of a checkpoint.
        """
        version = len(self.table.versions) - 1
        assert error.facts["file"] == checksum_name(version), self.told
        assert version in self.table.lies, self.told
        assert any(commit_name(each) not in self.table.store.kept for each in range(version)), self.told
        self.drop_checksum(version)
        self.table = replace(self.table, lies=self.table.lies - {version})

    @contextmanager
    def world(self) -> Iterator[World]:
        with mounted(self.table.store) as location:
            yield World(location)

    def make(self) -> None:
        self.table = Table(store_with({}, self.puts()))
        properties = {"delta_checkpointInterval": self.dice.choice(["2", "3", "10"])}
        with STATE.as_another_process(), self.world() as world:
            world.create([self.row()], **properties)
        self.table = self.table.then((self.next_id,))

    def append(self) -> None:
        with self.world() as world:
            world.append(self.row())
        self.table = self.table.then((*self.table.versions[-1], self.next_id))

    def delete(self) -> None:
        ids = self.table.versions[-1]
        chosen = self.dice.choice(ids or (0,))
        with self.world() as world:
            world.delete(f"id = {chosen}")
        left = tuple(each for each in ids if each != chosen)
        self.table = self.table.then(left) if left != ids else self.table

    def append_elsewhere(self) -> None:
        with STATE.as_another_process():
            self.append()

    def append_by_another_engine(self) -> None:
        """Its checksum file lies, or there is none."""
        self.append_elsewhere()
        version = len(self.table.versions) - 1
        store, name = self.table.store, commit_name(version)
        lines = [json.loads(line) for line in store.get(name).splitlines()]
        lines[0]["commitInfo"] |= {"engineInfo": "Another/1.0"}
        store.delete(name)
        store.put(name, "".join(json.dumps(line) + "\n" for line in lines).encode())
        self.drop_checksum(version)
        if self.dice.random() < 0.5:
            with STATE.as_another_process(), self.world() as world:
                true = json.loads(world.log.snapshot().checksum().to_json())
            lie = json.dumps({**true, "numFiles": 99, "txnId": lines[0]["commitInfo"]["txnId"]})
            store.put(checksum_name(version), lie.encode())
            self.table = replace(self.table, lies=self.table.lies | {version})

    def turn(self) -> None:
        """Another table, or one that is a copy of this one."""
        copied = replace(self.table, store=store_with(self.table.store.kept, self.puts()))
        self.table, self.beside = self.beside or copied, self.table

    def put_back(self) -> None:
        if self.copies:
            table, names = self.dice.choice(self.copies)
            self.table = replace(table, store=store_with(names, self.puts()))

    def take_away(self) -> None:
        """Its checkpoint stays, and speaks for it."""
        version = len(self.table.versions) - 1
        names = self.table.store.kept
        if version == 0 or commit_name(version) not in names:
            return
        self.table.store.delete(commit_name(version))
        self.drop_checksum(version)
        if any(f"{version:020}.checkpoint" in name for name in names):
            return
        self.table = replace(self.table, versions=self.table.versions[:-1], lies=self.table.lies - {version})

    def puts(self) -> int:
        """So many, so that there were fewer in all stores before."""
        self.past += 1000
        return self.past

    def drop_checksum(self, version: int) -> None:
        if checksum_name(version) in self.table.store.kept:
            self.table.store.delete(checksum_name(version))

    def row(self) -> Row:
        """A new row, in a file of another size than most."""
        self.next_id += 1
        return {"id": self.next_id, "s": "x" * self.dice.randrange(200)}

    def assert_sums(self) -> None:
        stated = {v: name for name in self.table.store.kept if (v := checksum_version(name)) is not None}
        with self.world() as world:
            for version in stated.keys() - self.table.lies:
                found = Checksum.from_json(version, self.table.store.get(stated[version]))
                assert not found.differs(world.log.snapshot(version).checksum()), (version, self.told)


@pytest.mark.slow
def test_no_history_of_copies_and_other_writers_is_read_otherwise_or_summed_up_wrongly() -> None:
    for seed in range(HISTORIES):
        forget()
        History(random.Random(f"copies {seed}")).run()
