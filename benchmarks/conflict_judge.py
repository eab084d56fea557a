"""The judge of the contest of conflicts: which refusals were needless, and which rows acknowledged operations explain.

Knows operations, versions and rows; only `owners` and `held` read a table. It does not ask an engine why it refused.

*A refusal is needless* if the refused operation, as it was computed, could have been committed after its winners in a
serial order: none of them changed a row that its conditions select, and no row that one of them added satisfies its
conditions. Then it would have come to the same if it had begun after them. So

- an increment of a row is refused needlessly unless a winner changed that row;
- an UPDATE of a group, unless a winner changed that group or added a row to it;
- a MERGE, unless a winner changed or inserted one of its keys;
- an INSERT of rows, always: it selects none;
- an OPTIMIZE, always, and a change that only an OPTIMIZE beat: moving a row changes none.

An order in which an UPDATE stands before an INSERT that was committed first would be allowed at WriteSerializable; a
refusal that it would have spared is not called needless here.

*Winners* are all operations that committed between the newest version that was there before the attempt began and the
newest one when it was refused. The transaction read the first of these or a later one, so these are its winners and
maybe some more: what is counted is a lower bound of the needless refusals, for all contenders in the same way.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from benchmarks.conflict_work import Operation, Row

Owners = Mapping[int, frozenset[int]]
"""The numbers of the operations that each version brought."""


def is_needless(refused: Operation, winners: Iterable[Operation]) -> bool:
    """Whether it could have been committed as it was, after these."""
    return not any(refused.selects & winner.changes for winner in winners)


def winners_between(owners: Owners, before: int, after: int) -> list[int]:
    """The numbers of the operations of the versions after the first, up to the second."""
    return [number for version in range(before + 1, after + 1) for number in sorted(owners.get(version, ()))]


# -- effects -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """An acknowledged operation: the newest version before its last attempt, and its own, infinite if it has none."""

    operation: Operation
    before: int
    version: float


@dataclass
class Counters:
    """The counters of rows by their ids: the most each can be, and by how much it may be less.

    A new row may lack the increment of an UPDATE of its group that was committed later but began earlier: the level
    WriteSerializable lets that UPDATE stand before the INSERT. What began after the INSERT was there may miss nothing.
    """

    most: dict[int, int]
    less: Counter[int] = field(default_factory=Counter)
    added: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """The new rows of each group, with their versions."""

    def apply(self, done: Done) -> None:
        """One operation more."""
        each = done.operation
        for key in each.ids:
            self.most[key] += 1
        for key, version in self.added.get(-1 if each.group is None else each.group, ()):
            self.most[key] += 1
            self.less[key] += version > done.before
        for row in each.rows:
            if row.id not in self.most:
                self.added.setdefault(row.g, []).append((row.id, done.version))
            self.most[row.id] = self.most.get(row.id, 0) + row.n


def replayed(initial: Iterable[Row], done: Iterable[Done]) -> Counters:
    """The counters after these operations, in the order of their versions; those without one count as well."""
    counters = Counters({row.id: row.n for row in initial})
    for each in sorted(done, key=lambda each: each.version):
        counters.apply(each)
    return counters


def versions(owners: Owners) -> dict[int, int]:
    """The version of each operation."""
    return {number: version for version, numbers in owners.items() for number in numbers}


def compared(found: Sequence[tuple[int, int]], expected: Counters) -> tuple[int, int]:
    """How many ids have not exactly one row with a counter that is explained: effects were lost, doubled or nobody's.
    And how many increments new rows lack for an UPDATE that was placed before them.
    """
    rows: dict[int, list[int]] = {}
    for key, counter in found:
        rows.setdefault(key, []).append(counter)
    lacking = {key: _lacking(rows.get(key, []), expected, key) for key in rows.keys() | expected.most.keys()}
    wrong = [key for key, lacks in lacking.items() if not 0 <= lacks <= expected.less[key]]
    return len(wrong), sum(int(lacks) for key, lacks in lacking.items() if key not in wrong)


def _lacking(counters: Sequence[int], expected: Counters, key: int) -> float:
    """By how much the row's counter is less than it could be; not a number of increments if it is not one row."""
    if len(counters) != 1 or key not in expected.most:
        return math.inf
    return expected.most[key] - counters[0]


# -- the table ---------------------------------------------------------------------------------------------------------


def held(table: Path) -> list[tuple[int, int]]:
    """The id and the counter of each row, as deltalake reads them."""
    rows = pa.table(QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT id, n FROM t").read_all())
    return list(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))


def owners(table: Path) -> dict[int, frozenset[int]]:
    """Whose each version is: the numbers in the column ``op`` of its new files that no version before had."""
    seen, files, found = {0}, set[str](), dict[int, frozenset[int]]()
    for version, commit in enumerate(sorted((table / "_delta_log").glob("0*.json"))):
        new = [path for path in _added(commit) if path not in files]
        numbers = {number for path in new for number in _numbers(table / path)} - seen
        files.update(new)
        seen |= numbers
        found[version] = frozenset(numbers)
    return found


def _added(commit: Path) -> list[str]:
    actions = map(json.loads, commit.read_text(encoding="utf-8").splitlines())
    return [unquote(action["add"]["path"]) for action in actions if "add" in action]


def _numbers(file: Path) -> list[int]:
    return [each for each in pc.unique(pq.read_table(file, columns=["op"])["op"]).to_pylist() if each is not None]
