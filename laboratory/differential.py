"""One command on one table, by every way in which it may be run: rows, statistics, changes and conflicts are the same.

A pair, of a table and a command, is made from one integer. It is run on copies of the table (`laboratory.sites`), some
of them at a version behind which another has committed; what each copy holds then is read by the laboratory's own
reader (`laboratory.sights`), and all must agree. `python -m laboratory.differential --pairs 5000 --spark 200`
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import pyarrow.parquet as pq
import typer
from rich.progress import track

from anabranch._log.log import forget
from anabranch._storage import open_store
from anabranch.commands.dml.append import Append
from anabranch.commands.opening import open_log
from anabranch.testing import DictStore, mounted
from laboratory.campaign import prepare
from laboratory.drawn_tables import Drawn
from laboratory.sights import LEFT, Pair, differs, ended, pair_of, seen_at
from laboratory.sites import PLACES, THREADS, Place, sql

STRETCH = 100
_numbers = count()


# -- pairs -------------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """What came of some pairs: how many there were by their ends, at how many sites they ran, and what differs."""

    pairs: int = 0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add another's."""
        self.pairs += other.pairs
        self.ends += other.ends
        self.sites += other.sites
        self.differences += other.differences


def compared(seed: int, places: Sequence[Place] | None = None) -> Found:
    """Run the pair of an integer at all places: what differs from the first of them that runs it.

    Args:
        places: on a disk; None: those without Spark.
    """
    pair, found = pair_of(seed), Found(1)
    if places is None:
        places = (*PLACES, *(each for i, each in enumerate(THREADS) if seed % 8 == 4 * i))
    else:
        pair = replace(pair, on_disk=True)
    with ExitStack() as stack:
        below = stack.enter_context(tempfile.TemporaryDirectory()) if pair.on_disk else ""
        copies, version = stack.enter_context(_based(pair, Path(below)))
        seen = {}
        for place in places:
            with copies() as location:
                one = seen_at(place, pair, location, version)
            if one is not None:
                seen[place.name] = one
    first = next((each for each in seen.values() if each.ended != LEFT), next(iter(seen.values())))
    found.ends[type(pair.command).__name__, first.ended] += 1
    found.sites.update(list(seen))
    ends = {name: seen[name].ended for name in (each.name for each in places if each.words is sql) if name in seen}
    if LEFT in ends.values() and len({*ends.values()}) > 1:
        found.differences.append((seed, f"some leave it to Spark: {ends}"))
    for name, one in seen.items():
        found.differences += [(seed, f"{name}: {each}") for each in [*one.wrong, *differs(first, one)]]
    return found


@contextmanager
def _based(pair: Pair, folder: Path) -> Iterator[tuple[Callable[[], Any], int]]:
    """The table of a pair, with its winner: what makes copies of it, and the version that commands read."""
    store = DictStore(f"memory://laboratory/pair-{next(_numbers)}")
    with _located(pair, store, folder) as location:
        with patch.object(pq, "write_table", _in_groups(pair.table.group_rows)):
            for rows in pair.table.files:
                Append(location, pair.table.arrow(rows), **_new(pair.table)).run()
            for command in pair.before:
                _ = ended(command, pair, location)
        version = open_log(location).snapshot().version
        if pair.winner is not None:
            _ = ended(pair.winner, pair, location)
        files = _files_of(location)
    yield lambda: _located(pair, _filled(files), folder, files), version


def _new(table: Drawn) -> dict[str, Any]:
    """What an append says of a table that it makes."""
    cluster_by = tuple((name,) for name in table.cluster_by) or None
    return {"partition_by": table.partition_by or None, "properties": table.properties, "cluster_by": cluster_by}


def _in_groups(rows: int) -> Callable[..., None]:
    write = pq.write_table
    return lambda *given, **named: write(*given, **{**named, "row_group_size": rows})


@contextmanager
def _located(pair: Pair, store: DictStore, folder: Path, files: Mapping[str, bytes] | None = None) -> Iterator[str]:
    """A place for a table: a store, or a folder with these files."""
    if not pair.on_disk:
        with mounted(store) as location:
            yield location
            forget(location)
        return
    root = folder / f"table-{next(_numbers)}"
    root.mkdir()
    for name, data in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    yield str(root)
    forget(str(root))


def _filled(files: Mapping[str, bytes]) -> DictStore:
    store = DictStore(f"memory://laboratory/pair-{next(_numbers)}")
    for name, data in files.items():
        store.put(name, data)
    return store


def _files_of(location: str) -> dict[str, bytes]:
    """All files of a table."""
    store = open_store(location)
    if isinstance(store, DictStore):
        return {name: kept.data for name, kept in store.kept.items()}
    return {str(each.relative_to(location)): each.read_bytes() for each in Path(location).rglob("*") if each.is_file()}


# -- many pairs --------------------------------------------------------------------------------------------------------


def differences(seeds: Sequence[int]) -> Found:
    """Run the pairs of these integers, in this process."""
    found = Found()
    for seed in seeds:
        found.add(compared(seed))
    gc.collect()
    return found


def on_spark(seeds: Sequence[int]) -> Found:
    """Run the pairs of these integers with Spark too, in one session."""
    from laboratory import spark_site  # here, so that all else works without PySpark

    spark, found = spark_site.session(), Found()
    for seed in track(seeds, description="on Spark"):
        found.add(compared(seed, (PLACES[0], *spark_site.places(spark))))
    spark.stop()
    return found


def main(
    pairs: Annotated[int, typer.Option(help="How many pairs to run without Spark.")] = 5_000,
    spark: Annotated[int, typer.Option(help="How many of them to run with Spark too.")] = 0,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
) -> None:
    """Run pairs; the exit code is 1 where anything differs."""
    began, found = time.monotonic(), Found()
    stretches = [range(first, min(first + STRETCH, seed + pairs)) for first in range(seed, seed + pairs, STRETCH)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(differences, stretch) for stretch in stretches]):
            found.add(done.result())
    if spark:
        found.add(on_spark(range(seed, seed + spark)))
    for number, what in sorted(found.differences)[:20]:
        print(number, what)
    for (command, end), times in sorted(found.ends.items()):
        print(f"{command}: {end}: {times:,}")
    print(", ".join(f"{name}: {times:,}" for name, times in found.sites.items()))
    print(f"{found.pairs:,} pairs in {time.monotonic() - began:.0f} s, {len(found.differences)} differences")
    raise typer.Exit(1 if found.differences else 0)


if __name__ == "__main__":
    typer.run(main)
