"""Mutations: a real table, one of whose files was damaged, read, checked, appended to and vacuumed in child processes.

Knows the table's shapes (`laboratory.shapes`), the damage (`laboratory.damage`) and the product's commands. What is
held of every mutation, of log files and data files of every sort:

- reading gives the truth, or a typed error that names a file; where nobody could tell the damaged file from an honest
  one, it may give something else; what the checksum file of the version denies, the check finds;
- what a damaged checkpoint or compaction makes of the table, the deep check finds, where the commits are there;
- history, the deep check and an append end, and every error is a documented one;
- a VACUUM that retains nothing removes no file that is live in truth;
- the process goes on: no abort, no hang, no more memory than a bound. That is why children do it, which may die.

Of a data file that keeps its size nothing but its own pages could tell what its rows were. Rows that differ are
counted apart there; that their number differs has to be found by the deep check.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from anabranch._log.checksum import Checksum
from anabranch._log.file_names import (
    checkpoint_version,
    checksum_name,
    checksum_version,
    commit_version,
    compacted_range,
)
from anabranch._log.history import history
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.maintenance.vacuum_retained import names_of
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import Read
from anabranch.errors import AnabranchError, CorruptVector
from anabranch.testing import ArrowEngine
from laboratory.campaign import prepare
from laboratory.damage import Mutation, mutate, undecidable
from laboratory.shapes import KINDS, NOW_MS, Files, opened, table

COUNT = 10_000
STRETCH = 250
"""Mutations that a child tries before a fresh one takes over."""
SECONDS = 60.0
"""Whoever takes longer for one mutation hangs."""
MEMORY_BYTES = 8 << 30
_STEP = 37
"""Prime to a hundred: so any hundred mutations in a row have all sorts of files by their shares."""
_LATER_MS = NOW_MS + 3_600_000
_NEW = {"id": 99, "x": 0, "s": "new", "p": "a"}
_LOG = "_delta_log/"


@dataclass(frozen=True)
class Sort:
    """A sort of file: its share of a hundred mutations, its names, and the kinds of logs that have it.

    ``is_live``: only those are damaged that the newest version needs.
    """

    name: str
    share: int
    has: Callable[[str], bool]
    kinds: Sequence[str]
    is_live: bool = False


def _is_checkpoint(name: str) -> bool:
    return checkpoint_version(name) is not None


_V2 = [kind for kind in KINDS if kind.startswith("v2")]
_CLASSIC = [kind for kind in KINDS if kind.startswith("classic")]
_PARTS = [kind for kind in KINDS if kind.startswith("parts")]
SORTS = (
    Sort("sidecar", 20, lambda name: "/_sidecars/" in name, _V2),
    Sort("V2 checkpoint", 20, _is_checkpoint, _V2),
    Sort("checksum file", 20, lambda name: checksum_version(name) is not None, KINDS),
    Sort("commit", 8, lambda name: commit_version(name) is not None, KINDS),
    Sort("classic checkpoint", 6, _is_checkpoint, _CLASSIC),
    Sort("part of a checkpoint", 6, _is_checkpoint, _PARTS),
    Sort("log compaction", 5, lambda name: compacted_range(name) is not None, ["compacted"]),
    Sort("_last_checkpoint", 3, lambda name: name.endswith("_last_checkpoint"), [*_V2, *_CLASSIC, *_PARTS]),
    Sort("deletion vectors", 4, lambda name: "deletion_vector_" in name, KINDS, True),
    Sort("data file", 8, lambda name: name.endswith(".parquet") and not name.startswith(_LOG), KINDS, True),
)
"""What is damaged; the shares make a hundred."""
_ENDS = list(accumulate(sort.share for sort in SORTS))


@dataclass(frozen=True)
class Case:
    """The mutation of a number: of which sort of file, in which kind of log."""

    number: int
    sort: str
    kind: str
    before: Files
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.number}: {self.sort} of {self.kind}: {self.mutation}"


@dataclass(frozen=True)
class Truth:
    """What the whole table says: the version and its live files, and its rows; ``paths`` are those of all live files
    and their vectors.
    """

    read: tuple[Any, ...]
    rows: tuple[str, ...]
    paths: frozenset[str]


@dataclass
class Found:
    """What came of some mutations: (sort, outcome) -> how many; and what was wrong."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add another's."""
        self.outcomes += other.outcomes
        self.wrong += other.wrong

    @property
    def count(self) -> int:
        """How many mutations."""
        return sum(self.outcomes.values())

    def __str__(self) -> str:
        sorts = [sort.name for sort in SORTS if any(name == sort.name for name, _ in self.outcomes)]
        heads = sorted({outcome for _, outcome in self.outcomes}, key=lambda each: (each != TRUTH, each))
        lines = [f"| file | mutations | {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) + 1)]
        for name in sorts:
            cells = [self.outcomes[name, head] for head in heads]
            lines.append(f"| {name} | {sum(cells):,} | {' | '.join(f'{cell:,}' for cell in cells)} |")
        return "\n".join([*lines, f"{self.count:,} mutations; {len(self.wrong)} faults"])


TRUTH = "the truth"
NAMED = "an error that names the file"
OTHER_NAMED = "an error that names another file"
UNNAMED = "refused otherwise"
HONEST = "another honest table"
DENIED = "what a checksum file denies, found by CHECK"
ROWS = "other values in its rows"
FEWER = "other rows, found by CHECK"
UNREADABLE = "no Parquet to its reader"
FAULT = "a fault"


class Fault(Exception):
    """What may not happen."""


def case_of(number: int) -> Case:
    """The mutation of a number."""
    dice = random.Random(f"mutation {number}")
    sort = SORTS[bisect_right(_ENDS, number * _STEP % 100)]
    kind = dice.choice(sort.kinds)
    before = table(kind)
    names = truth_of(kind).paths if sort.is_live else before
    among = [name for name in names if sort.has(name)]
    while True:
        mutation = mutate(before, dice, among)
        if mutation.files != before:
            return Case(number, sort.name, kind, before, mutation)


_truths: dict[str, Truth] = {}


def truth_of(kind: str) -> Truth:
    """What a table with a whole log of this kind says."""
    if kind not in _truths:
        with opened(table(kind)) as (location, _):
            read = _read(location)
            rows = _rows(location)
            named = names_of(location, open_log(location).snapshot().files)
        _truths[kind] = Truth(read, rows, frozenset(named & set(table(kind))))
    return _truths[kind]


def _read(location: str) -> tuple[Any, ...]:
    """The newest version: what decides which rows the table has."""
    snapshot = open_log(location).snapshot()
    live = snapshot.files.select(["path", "size", "deletionVector", "partitionValues"]).to_pylist()
    _ = snapshot.tombstones
    metadata = snapshot.metadata
    bodies = tuple(sorted(json.dumps(file, sort_keys=True) for file in live))
    return snapshot.version, metadata.schema_string, metadata.partition_columns, bodies


def _rows(location: str) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(row, default=str) for row in ArrowEngine().rows(Read(location).run())))


# -- one mutation ------------------------------------------------------------------------------------------------------


def examined(case: Case, at: Callable[[str], None] = lambda phase: None) -> str:
    """What came of a mutation; ``at`` is told of each phase before it begins.

    Raises:
        Fault: something that may not be.
    """
    with opened(case.mutation.files) as (location, _):
        at("read")
        outcome = _outcome(case, location)
        at("history")
        _typed("history", lambda: list(history(open_log(location))))
        at("check")
        findings = _typed("check", lambda: check(open_log(location).snapshot(), deep=True).findings)
        _hold_found(case, outcome, findings)
        at("rows")
        if outcome == TRUTH:
            outcome = _of_rows(case, location, findings)
        at("append")
        _typed("append", lambda: Append(location, [_NEW]).run())
    at("vacuum")
    _vacuum(case)
    return outcome


def _hold_found(case: Case, outcome: str, findings: Any) -> None:
    """What a checksum file denies is found, and what a checkpoint or a compaction makes of the table, if the commits
    are there.
    """
    if outcome == DENIED and not findings:
        raise Fault("reading gives what the checksum file of the version denies, and CHECK finds nothing")
    is_a_way = case.sort not in ("commit", "checksum file", "deletion vectors", "data file")
    if outcome == HONEST and is_a_way and not case.kind.endswith("alone") and not findings:
        raise Fault("reading gives other files than the commits, and CHECK finds nothing")


def _typed(what: str, run: Callable[[], Any]) -> Any:
    """What it gives, or its error, which must be one of ours."""
    try:
        return run()
    except AnabranchError as error:
        return error
    except Exception as error:
        raise Fault(f"{what} ends in {error!r}") from error


def _outcome(case: Case, location: str) -> str:
    found, truth = _typed("read", lambda: _read(location)), truth_of(case.kind).read
    if isinstance(found, AnabranchError):
        return _of_error(case, found)
    if found == truth:
        return TRUTH
    if undecidable(case.before, case.mutation) is None:
        raise Fault("reading gives what is not true: the damage can be told from an honest file")
    return DENIED if _is_denied(case, found) else HONEST


def _of_error(case: Case, error: AnabranchError) -> str:
    file = error.facts.get("file", error.facts.get("name"))
    if file is None:
        return UNNAMED
    own = file in (case.mutation.name, case.mutation.other) or isinstance(error, CorruptVector)
    return NAMED if own else OTHER_NAMED  # a vector is named by the data file that it belongs to


def _is_denied(case: Case, found: tuple[Any, ...]) -> bool:
    """Whether the checksum file of the version, which is whole, says something else."""
    version, schema, _, bodies = found
    data = case.mutation.files.get(checksum_name(version))
    if data is None or data != case.before.get(checksum_name(version)):
        return False
    stated, live = Checksum.from_json(version, data), [json.loads(body) for body in bodies]
    vectors = [file["deletionVector"]["cardinality"] for file in live if file["deletionVector"]]
    sums = len(live), sum(file["size"] for file in live), len(vectors), sum(vectors), schema
    return sums != (stated.files, stated.size, stated.vectors, stated.deleted, stated.metadata.schema_string)


def _of_rows(case: Case, location: str, findings: Any) -> str:
    """What came of the rows of a table whose log says the truth."""
    found = _rows_told(location)
    truth = truth_of(case.kind).rows
    if isinstance(found, AnabranchError):
        return _of_error(case, found)
    if found == truth:
        return TRUTH
    if _is_another_vector(case, found):
        return ROWS
    if case.sort != "data file":
        raise Fault(f"{len(found) if isinstance(found, tuple) else found!r} for the {len(truth)} true rows")
    clean = not findings
    if not isinstance(found, tuple):
        if clean:
            raise Fault(f"CHECK finds nothing where rows cannot be read ({found!r})")
        return UNREADABLE
    if len(found) != len(truth):
        if clean:
            raise Fault(f"{len(found)} rows for {len(truth)}, and CHECK finds nothing")
        return FEWER
    return ROWS


_LENGTH = slice(1, 5)
"""Where a file of vectors says how long its first one is, behind the version of its format."""


def _is_another_vector(case: Case, found: Any) -> bool:
    """Whether a file of vectors stands in the place of another one of which all is true that the log says of that:
    where a vector lies, how long it is, how many rows it marks. Nobody can tell them.
    """
    name, other = case.mutation.name, case.mutation.other or ""
    is_one = case.sort == "deletion vectors" and other.endswith(".bin")
    is_as_long = is_one and case.before[name][_LENGTH] == case.before[other][_LENGTH]
    return is_as_long and isinstance(found, tuple) and len(found) == len(truth_of(case.kind).rows)


def _rows_told(location: str) -> Any:
    """The rows as Arrow reads them, which stands for an engine here: what it refuses is its own matter."""
    try:
        return _rows(location)
    except AnabranchError as error:
        return error
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        return error


def _vacuum(case: Case) -> None:
    """No file that is live in truth goes, whatever the log says now."""
    runtime = Runtime(now_ms=lambda: _LATER_MS, sleep=lambda seconds: None)
    with opened(case.mutation.files) as (location, store):
        vacuum = Vacuum(location, 0, check_retention=False, threads=1)
        _typed("vacuum", lambda: vacuum.run(context=RunContext(runtime=runtime)))
        lost = {name for name in truth_of(case.kind).paths if name in case.mutation.files and name not in store.kept}
    if lost:
        raise Fault(f"VACUUM removed {sorted(lost)}")


# -- children ----------------------------------------------------------------------------------------------------------


def campaign(numbers: Sequence[int], jobs: int = 1, progress: Callable[[Found], None] = lambda so_far: None) -> Found:
    """Try the mutations of these numbers in children, so many at a time."""
    total = Found()
    stretches = [numbers[start : start + STRETCH] for start in range(0, len(numbers), STRETCH)]
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(_by_children, stretches):
            total.add(found)
            progress(total)
    total.wrong.sort()
    return total


def _by_children(numbers: Sequence[int]) -> Found:
    """By one child after the other: where one dies or hangs, the next goes on behind the mutation that ended it."""
    found, left = Found(), list(numbers)
    while left:
        done, said = _by_child(left, found)
        left = left[done:]
        if said is not None:
            case = case_of(left[0])
            found.outcomes[case.sort, FAULT] += 1
            found.wrong.append((case.number, f"{case}: {said}"))
            left = left[1:]
    return found


def _by_child(numbers: Sequence[int], found: Found) -> tuple[int, str | None]:
    """How many of them a child has done, and how it ended in the next."""
    here, there = get_context("spawn").Pipe()
    child = get_context("spawn").Process(target=_child, args=(there, list(numbers)))
    child.start()
    there.close()
    done, phase = 0, "its start"
    try:
        while done < len(numbers):
            if not here.poll(SECONDS):
                return done, f"hangs in {phase}"
            what, said = here.recv()
            if what == "at":
                phase = said
                continue
            sort, outcome, wrong = said
            found.outcomes[sort, outcome] += 1
            found.wrong += [(numbers[done], wrong)] if wrong else []
            done, phase = done + 1, "between"
    except EOFError:
        child.join()
        return done, f"ends the process ({_ended(child.exitcode)}) in {phase}"
    finally:
        child.kill()
        child.join()
        here.close()
    return done, None


def _ended(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _child(parent: Connection, numbers: Sequence[int]) -> None:
    prepare()
    _bound_memory()
    for number in numbers:
        parent.send(("at", "its making"))
        case, outcome, wrong = case_of(number), FAULT, ""
        try:
            outcome = examined(case, lambda phase: parent.send(("at", phase)))
        except Fault as fault:
            wrong = f"{case}: {fault}"
        except Exception as error:
            wrong = f"{case}: {error!r}"
        parent.send(("done", (case.sort, outcome, wrong)))


def _bound_memory() -> None:
    with contextlib.suppress(ValueError, OSError):  # some systems know no such bound
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


# -- the command -------------------------------------------------------------------------------------------------------


def main(
    count: Annotated[int, typer.Option(help="How many mutations.")] = COUNT,
    seed: Annotated[int, typer.Option(help="The first number.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many children at a time.")] = os.cpu_count() or 2,
    tell: Annotated[int | None, typer.Option(help="Try the mutation of this number in this process.")] = None,
    keep: Annotated[Path | None, typer.Option(help="With --tell: write the damaged table into this folder.")] = None,
) -> None:
    """Try them; the exit code is 1 where anything is wrong."""
    if tell is not None:
        case = case_of(tell)
        if keep is not None:
            _write_to(keep, case.mutation.files)
        print(case, examined(case, lambda phase: print(f"  {phase}")), sep="\n")
        return
    total = campaign(range(seed, seed + count), jobs, lambda so_far: print(f"{so_far.count:,}", file=sys.stderr))
    print(total, *(f"{number}: {what}" for number, what in total.wrong[:50]), sep="\n")
    raise typer.Exit(1 if total.wrong else 0)


def _write_to(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    typer.run(main)
