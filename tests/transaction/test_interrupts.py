"""Interrupts: what is interrupted leaves nothing behind that no commit names, and no commit without its files.

Every call of every verb is interrupted once before its effect and once behind it, and every phase once. The lists are
those of the calls that were seen, so that what is called later is swept later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch._log.vectors import vector_location
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.layout.paths import store_name
from anabranch._protocol.parquet_files import parquet_bytes
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch._storage import open_store
from anabranch._storage.open import mounted
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.testing import at_phase
from anabranch.testing.faults import INTERRUPTS, Fault, instant
from anabranch.testing.stores import Call, DictStore, StoredObject
from tests.support.tiers import examples
from tests.support.worlds import World

HERE, THERE = "memory://interrupts/here", "memory://interrupts/there"
ROWS = [{"id": i, "x": i, "p": i % 2} for i in range(6)]
MORE = pa.table({"id": [10, 11], "x": [10, 11], "p": [0, 1]})


@dataclass(frozen=True)
class Verb:
    """A command, the table that it finds, and what the history calls it; None where it makes several commits."""

    run: Callable[[World], Any]
    operation: str | None
    prepare: Callable[[World], Any] = lambda world: made(world)


def made(world: World, **properties: str) -> None:
    world.create(ROWS[:3], partition_by=("p",), **properties)
    world.append(*ROWS[3:])
    world.delete("id = 2")


def due(world: World) -> None:
    """The next commit is a checkpoint as well."""
    made(world, delta_checkpointInterval="3")


def numbered(world: World) -> None:
    number = Field("n", "long", True, identity_metadata(1, 1, explicit=False))
    Create(world.path, NewTable(Struct((Field("id", "long"), number)))).run()
    world.append({"id": 1})


def parquet(world: World) -> None:
    for name in ("a.parquet", "b.parquet"):
        open_store(world.path).put(name, parquet_bytes(MORE))


def overwritten_twice(world: World) -> None:
    made(world)
    world.overwrite(*ROWS[:2])


VERBS = {
    "append": Verb(lambda world: world.append({"id": 9, "x": 9, "p": 1}), "WRITE"),
    "append at a checkpoint": Verb(lambda world: world.append({"id": 9, "x": 9, "p": 1}), "WRITE", due),
    "append with identity values": Verb(lambda world: world.append({"id": 9}, {"id": 10}), "WRITE", numbered),
    "write": Verb(lambda world: Write(world.path, MORE, "append").run(world.engine), "WRITE"),
    "overwrite": Verb(lambda world: Write(world.path, MORE, "overwrite").run(world.engine), "WRITE"),
    "dynamic overwrite": Verb(
        lambda world: Write(world.path, MORE, "overwrite", dynamic=True).run(world.engine), "WRITE"
    ),
    "replaceWhere": Verb(
        lambda world: Write(world.path, MORE, "overwrite", replace_where=world.condition("id < 100 AND x > 2")).run(
            world.engine
        ),
        "WRITE",
    ),
    "delete": Verb(lambda world: world.delete("x > 3"), "DELETE"),
    "delete by files": Verb(
        lambda world: world.delete("x > 3"), "DELETE", partial(made, delta_enableDeletionVectors="false")
    ),
    "update": Verb(lambda world: world.update("x > 3", x=0), "UPDATE"),
    "merge": Verb(lambda world: world.merge([{"id": 4, "x": 20, "p": 0}, {"id": 30, "x": 30, "p": 0}]), "MERGE"),
    "optimize": Verb(lambda world: world.optimize(), "OPTIMIZE"),
    "zorder": Verb(lambda world: world.optimize("x"), "OPTIMIZE"),
    "purge": Verb(lambda world: world.reorg(), "REORG"),
    "restore": Verb(lambda world: world.restore(0), "RESTORE"),
    "replace": Verb(lambda world: Replace(world.path, NewTable(Struct((Field("y", "long"),)))).run(), "REPLACE TABLE"),
    "alter": Verb(lambda world: SetProperties(world.path, {"team": "harbour"}).run(), "SET TBLPROPERTIES"),
    "deep clone": Verb(lambda world: cloned(world), "CLONE"),
    "shallow clone": Verb(lambda world: cloned(world, shallow=True), "CLONE"),
    "convert": Verb(lambda world: Convert(world.path).run(), "CONVERT", lambda world: parquet(world)),
    "vacuum": Verb(lambda world: vacuumed(world), None, lambda world: overwritten_twice(world)),
    "drop feature": Verb(lambda world: DropFeature(world.path, "deletionVectors").run(world.engine), None),
}


def cloned(world: World, shallow: bool = False) -> None:
    Clone(THERE, world.path, shallow=shallow, replace=True).run()


def vacuumed(world: World) -> None:
    Vacuum(world.path, 0, check_retention=False, threads=1).run(context=RunContext(runtime=instant()))


@pytest.fixture
def bases() -> Iterator[Callable[[Verb], Mapping[str, StoredObject]]]:
    """What the store holds before a verb runs."""
    source = DictStore(THERE)
    with mounted(source):
        World(THERE).create(ROWS, partition_by=("p",))

        def base(verb: Verb) -> Mapping[str, StoredObject]:
            store = DictStore(HERE)
            with mounted(store):
                verb.prepare(World(HERE))
            return dict(store.kept)

        yield base
    forget()


def interrupted(verb: Verb, base: Mapping[str, StoredObject], fault: Fault, number: int) -> bool:
    """Interrupt one call of a verb and look at what it left; whether it came that far."""
    forget()
    inner = DictStore(HERE, base)
    store, raised = fault.store(inner, number), None
    with mounted(store):
        try:
            verb.run(World(HERE))
        except KeyboardInterrupt as error:
            raised = error
    with mounted(inner):
        forget()
        met = store.calls[number - 1 : number]
        if raised is not None:
            look(verb, inner, base, met[0], raised)
        elif met:  # the call failed by itself: there was nothing behind which to interrupt it
            assert (fault.is_after, met[0].is_commit) == (True, False), f"{met[0]} was not interrupted"
    return bool(met)


def look(verb: Verb, store: DictStore, base: Mapping[str, StoredObject], call: Call, raised: BaseException) -> None:
    world = World(HERE)
    if call.is_commit:
        assert isinstance(raised.__cause__, errors.CommitOutcomeUnknown), f"{call}: the interrupt does not say so"
    if not world.log.exists():
        assert {name for name in store.kept if name not in base} == set(), call
        return
    report = check(world.log.snapshot(), deep=True)
    here = [each for each in report.findings if not each.file.startswith(THERE)]  # a mounted store has no neighbours
    assert not here, f"{call}: {report}"
    stands = any(is_of(verb, world, version) for version in new_versions(world, base))
    left = [name for name in store.kept if name not in base and not name.startswith("_delta_log/")]
    named = named_by(world, base)
    unnamed = sorted(name for name in left if name not in named)
    if stands:
        unnamed = [name for name in unnamed if not is_a_marker(name)]
    if not call.is_commit:
        assert unnamed == [], f"{call} left them behind"


def new_versions(world: World, base: Mapping[str, StoredObject]) -> range:
    before = sum(name.startswith("_delta_log/0") and name.endswith(".json") for name in base)
    return range(before, world.version + 1)


def is_of(verb: Verb, world: World, version: int) -> bool:
    return verb.operation is None or str(world.info(version)["operation"]).startswith(verb.operation)


def named_by(world: World, base: Mapping[str, StoredObject]) -> set[str]:
    """The files and vectors that new versions name."""
    found = set()
    for version in new_versions(world, base):
        for row in world.log.snapshot(version).files.to_pylist():
            found.add(store_name(HERE, row["path"]))
            if (vector := row["deletionVector"]) is not None:
                found.add(vector_location(world.log.store, Descriptor.from_row(vector))[1])
    return {name for name in found if name is not None}


def is_a_marker(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("/"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", INTERRUPTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("name", VERBS)
def test_an_interrupt_in_any_call_leaves_nothing_that_no_commit_names(
    bases: Callable[[Verb], Mapping[str, StoredObject]], name: str, fault: Fault
) -> None:
    verb, number, step = VERBS[name], 1, examples(1, 4)
    base = bases(verb)
    while interrupted(verb, base, fault, number):
        number += step
        assert number < 400, "the command never completes"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("phase", ["read", "staged", "checked", "put"])
@pytest.mark.parametrize("name", [name for name in VERBS if name not in ("vacuum", "drop feature")])
def test_an_interrupt_in_any_phase_before_the_put_leaves_the_store_as_it_was(
    bases: Callable[[Verb], Mapping[str, StoredObject]], name: str, phase: str, kind: type[BaseException]
) -> None:
    def interrupt() -> None:
        raise kind

    verb = VERBS[name]
    base = bases(verb)
    store = DictStore(HERE, base)
    with mounted(store), at_phase(phase, interrupt), pytest.raises(kind):
        verb.run(World(HERE))
    assert {each for each in store.kept if each not in base and not each.startswith("_delta_log")} == set()
    reserved = 1 if "identity" in name and phase != "read" else 0
    assert sum(each.endswith(".json") for each in store.kept if each not in base) == reserved
