"""Commands come to the same however they are run, and a way that does not is noticed; `make lab` runs thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from anabranch._arrow import finding
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.site import site_without_spark
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.stats import footers
from anabranch._storage import Store
from laboratory.campaign import prepare
from laboratory.differential import compared, differences
from laboratory.drawn_commands import Delete, Insert, Merge, Update
from laboratory.mutants import MUTANTS
from laboratory.sights import pair_of
from laboratory.sites import PLACES, Place, in_pieces, sql
from tests.support.tiers import examples


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.slow
def test_every_way_of_running_a_command_comes_to_the_same() -> None:
    found = differences(range(1, examples(100, 20) + 1))
    assert found.differences == []
    assert found.sites["whole"] == found.sites["in pieces"] == found.pairs
    assert found.sites["reference"] > found.pairs / 2
    assert sum(times for (_, end), times in found.ends.items() if end == "done") > found.pairs / 2


@pytest.mark.slow
def test_rows_come_in_pieces_where_they_are_to() -> None:
    batches, plain = list[int](), finding.plain
    with in_pieces(), pytest.MonkeyPatch.context() as watched:
        watched.setattr(finding, "plain", lambda batch, fields: (batches.append(len(batch)), plain(batch, fields))[1])
        for seed, _ in zip(_seeds(Update), range(5), strict=False):
            assert compared(seed, (_place("whole"),)).differences == []
    assert batches, "rows were read"
    assert max(batches) <= 2


class Losing(ArrowBackend):
    """Forgets the last row of what an UPDATE or MERGE writes."""

    def _fetch_rows(self, files: FileSet, marks: Marks | None) -> Iterator[finding.FileRows]:
        for each in super()._fetch_rows(files, marks):
            yield finding.FileRows(each.path, each.positions[:-1], each.rows.slice(0, len(each.rows) - 1))


def _losing(store: Store) -> ArrowBackend:
    return Losing(site_without_spark(store))


@contextmanager
def _cutting() -> Iterator[None]:
    """Texts of bounds are cut to three characters."""
    with patch.object(footers, "PREFIX", 3):
        yield


@contextmanager
def _forgetting() -> Iterator[None]:
    """Marked rows conflict with nothing."""
    (mutant,) = (each for each in MUTANTS if each.name == "C1 dropped")
    with mutant.alive():
        yield


def _place(name: str, engine: Callable[[Store], Any] = PLACES[0].engine, within: Any = None) -> Place:
    return Place(name, engine, sql, *([within] if within else []))


BROKEN: Mapping[str, tuple[Place, type, str]] = {
    "a lost row": (_place("broken", _losing), Update, "rows"),
    "bounds that are cut": (_place("broken", within=_cutting), Insert, "the bounds"),
    "a conflict that is not seen": (_place("broken", within=_forgetting), Delete, "ended in"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "command", "said"), BROKEN.values(), ids=BROKEN)
def test_a_way_that_comes_to_something_else_is_noticed(broken: Place, command: type, said: str) -> None:
    seeds = (seed for seed in _seeds(command) if broken.within is not _forgetting or pair_of(seed).winner is not None)
    found = (compared(seed, (PLACES[0], broken)).differences for seed, _ in zip(seeds, range(60), strict=False))
    assert any(said in what for several in found for _, what in several)


def _seeds(command: type) -> Iterator[int]:
    """Integers of pairs with such a command."""
    return (seed for seed in range(1, 10_000) if isinstance(pair_of(seed).command, command))


def test_a_pair_is_made_of_its_integer_alone() -> None:
    assert [repr(_told(pair_of(seed))) for seed in range(50)] == [repr(_told(pair_of(seed))) for seed in range(50)]
    kinds = {type(pair_of(seed).command) for seed in range(100)}
    assert {Delete, Update, Merge, Insert} < kinds


def _told(pair: Any) -> tuple[Any, ...]:
    return pair.table, pair.command, pair.winner, pair.late, pair.on_disk


@pytest.mark.spark
def test_the_ways_of_a_session_come_to_the_same(spark: Any) -> None:
    from laboratory import spark_site

    for seed, _ in zip(_seeds(Update), range(examples(20, 1)), strict=False):
        found = compared(seed, (PLACES[0], *spark_site.places(spark)))
        assert found.differences == []
        assert {each.name for each in spark_site.places(spark)} <= set(found.sites), found.ends
