"""The documented matrix, cell by cell: ours x winner x where they meet, on every kind of table.

The table holds rows 0 and 1 in one file and 2 and 3 in another; only row 0 has x = 0, and that is what ours selects.
The winner commits between our transaction's reading and its put. What is expected is said by `expected`, in the words
of the documentation; what comes is found by running the real commands. A clustered table counts as not partitioned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from anabranch import errors
from anabranch._protocol.merges import Clause
from anabranch.testing import at_phase
from tests.support.tiers import few_of
from tests.support.worlds import World, insert_all, table_path, update_all

APPEND, DELETE_READ, DELETE_DELETE = (
    errors.ConcurrentAppendException,
    errors.ConcurrentDeleteReadException,
    errors.ConcurrentDeleteDeleteException,
)
Outcome = type[Exception] | None
COLUMNS = ("id", "p", "x", "y")


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    level: str
    dial: str
    vectors: bool
    layout: str = "neither"
    mapping: str = "none"

    @property
    def serializable(self) -> bool:
        return self.level == "Serializable"

    @property
    def by_rows(self) -> bool:
        """Whether two changes of one file can both land."""
        return self.dial == "row" and self.vectors

    def __str__(self) -> str:
        words = [self.level, self.dial, "vectors" if self.vectors else "plain"]
        words += [self.layout, *([] if self.mapping == "none" else [f"by-{self.mapping}"])]
        return "-".join(words)


LEVELS, DIALS, BOTH = ("WriteSerializable", "Serializable"), ("row", "file"), (True, False)
MAPPED = [
    Kind("WriteSerializable", "row", True, "partitioned", "name"),
    Kind("Serializable", "row", True, "clustered", "id"),
    Kind("WriteSerializable", "file", False, "partitioned", "id"),
]
LAYOUTS = ("neither", "partitioned", "clustered")
KINDS = [*(Kind(*each) for each in product(LEVELS, DIALS, BOTH, LAYOUTS)), *MAPPED]


def row(id: int, x: int, y: int = 0, p: int = 1) -> dict[str, int]:
    return {"id": id, "p": p, "x": x, "y": y}


def table_of(folder: Path, kind: Kind, rows: list[dict[str, int]], *, spare: bool = False) -> World:
    """A table of a kind with these rows; ``spare`` adds a column that nothing uses."""
    properties = {
        "delta_isolationLevel": kind.level,
        "anabranch_conflictResolution": kind.dial,
        "delta_enableDeletionVectors": str(kind.vectors).lower(),
        "delta_columnMapping.mode": kind.mapping,
    }
    made = World(table_path(folder))
    layout = {"partitioned": {"partition_by": ("p",)}, "clustered": {"cluster_by": ("p",)}}.get(kind.layout, {})
    return made.create([{**each, "spare": 0} if spare else each for each in rows], **layout, **properties)


def world(folder: Path, kind: Kind) -> World:
    made = table_of(folder, kind, [row(0, 0, p=0), row(1, 1, p=0)])
    made.append(row(2, 2), row(3, 3))
    return made


MINE: dict[str, Callable[[World], object]] = {
    "insert": lambda w: w.append(row(100, 0)),
    "delete": lambda w: w.delete("x = 0"),
    "update": lambda w: w.update("x = 0", y=7),
    # by key, and with a source row whose key is new: nothing in ON speaks of the table alone
    "merge": lambda w: w.merge([row(0, 0, 7, 0), row(50, 50)], update_all("y"), insert_all(*COLUMNS), by="x"),
    "overwrite": lambda w: w.overwrite(row(200, 200)),
}

_touch = Clause("matched", "update", None, {"y": 9})
WINNERS: dict[tuple[str, str], Callable[[World], object]] = {
    ("insert", "other rows"): lambda w: w.append(row(101, 9)),
    ("insert", "moved in"): lambda w: w.append(row(101, 0)),
    ("insert", "same new key"): lambda w: w.append(row(101, 50)),
    ("delete", "same row"): lambda w: w.delete("id = 0"),
    ("delete", "other row of the file"): lambda w: w.delete("id = 1"),
    ("delete", "other file"): lambda w: w.delete("id = 3"),
    ("update", "same row"): lambda w: w.update("id = 0", y=9),
    ("update", "other row of the file"): lambda w: w.update("id = 1", y=9),
    ("update", "other file"): lambda w: w.update("id = 3", y=9),
    ("update", "moved in"): lambda w: w.update("id = 3", x=0),
    ("update", "moved out"): lambda w: w.update("id = 0", x=9),
    ("update", "same new key"): lambda w: w.update("id = 3", x=50),
    ("merge", "same row"): lambda w: w.merge([row(0, 0)], _touch),
    ("merge", "other row of the file"): lambda w: w.merge([row(1, 0)], _touch),
    ("merge", "other file"): lambda w: w.merge([row(3, 0)], _touch),
    ("merge", "moved in"): lambda w: w.merge([row(101, 0)], insert_all(*COLUMNS)),
    ("merge", "same new key"): lambda w: w.merge([row(101, 50)], insert_all(*COLUMNS)),
    ("overwrite", "same row"): lambda w: w.overwrite(row(201, 0)),
}


def expected(ours: str, winner: str, where: str, kind: Kind) -> set[Outcome]:
    """What the documentation says of a cell; a cell without the row level may be refused or not, file by file."""
    if ours == "insert":
        return {None}  # a blind append cannot conflict, whoever wins
    new_key = ours == "merge" and where == "same new key"
    selects_new = ours == "overwrite" or where == "moved in" or new_key
    if winner == "insert":
        # WriteSerializable: cannot conflict, since ours stands before it. Serializable: can, on a row that ours selects
        may_see = selects_new or (ours == "merge" and not kind.by_rows)
        return {APPEND} if kind.serializable and may_see else {None}
    if kind.by_rows:
        return {_by_rows(ours, winner, where, selects_new)}
    return _by_files(ours, winner, where, selects_new)


def _by_rows(ours: str, winner: str, where: str, selects_new: bool) -> Outcome:
    """The row level: on the same row, or on a new row that ours selects."""
    both_delete = ours == "delete" and winner == "delete"
    if ours == "overwrite":  # it removes every row, so also the one that the winner changed; an insert it should see
        return APPEND if winner == "merge" and where in ("moved in", "same new key") else DELETE_READ
    if where == "same row":
        return DELETE_DELETE if both_delete else DELETE_READ
    if where == "moved out":
        return DELETE_READ  # ours had marked that row
    return APPEND if selects_new else None


def _by_files(ours: str, winner: str, where: str, selects_new: bool) -> set[Outcome]:
    """Without it: two changes that can touch one file; statistics on x keep the files of x = 2, 3 apart from x = 0."""
    if ours == "overwrite":
        return {APPEND, DELETE_READ}
    if ours == "merge":
        # it reads all files, since nothing in ON speaks of the table alone; an insert of the winner's may be seen too
        return {APPEND, DELETE_READ} if winner != "merge" or where not in ("moved in", "same new key") else {APPEND}
    if where == "other file" or (where == "same new key" and not selects_new):
        return {None}
    if winner == "overwrite" or where in ("same row", "other row of the file", "moved out"):
        return {APPEND, DELETE_READ, DELETE_DELETE}
    return {APPEND, DELETE_READ} if selects_new else {None}


def outcome(folder: Path, kind: Kind, ours: str, winner: str, where: str) -> tuple[Outcome, World]:
    made = world(folder, kind)
    try:
        with at_phase("staged", lambda: WINNERS[winner, where](made)):
            MINE[ours](made)
    except errors.DeltaConcurrentModificationException as refused:
        return type(refused), made
    return None, made


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("ours", MINE)
@pytest.mark.slow
def test_each_cell_is_as_documented(tmp_path: Path, ours: str, kind: Kind) -> None:
    wrong = {}
    for winner, where in few_of(list(WINNERS), 9):
        found, made = outcome(tmp_path, kind, ours, winner, where)
        if found is None and kind.by_rows:
            made.assert_clean()
        if found not in expected(ours, winner, where, kind):
            wrong[winner, where] = (found, expected(ours, winner, where, kind))
    assert not wrong


REDONE = [Kind(level, "redo", vectors, layout) for level, vectors, layout in product(LEVELS, BOTH, LAYOUTS)]


@pytest.mark.parametrize("kind", REDONE, ids=str)
@pytest.mark.parametrize("ours", MINE)
@pytest.mark.slow
def test_under_redo_no_cell_is_refused_and_ours_stands_behind_or_before(tmp_path: Path, ours: str, kind: Kind) -> None:
    for winner, where in few_of(list(WINNERS), 5):
        refused, made = outcome(tmp_path, kind, ours, winner, where)
        assert refused is None
        made.assert_clean()
        behind, before = world(tmp_path, kind), world(tmp_path, kind)
        for orders in ((behind, WINNERS[winner, where], MINE[ours]), (before, MINE[ours], WINNERS[winner, where])):
            other, *statements = orders
            for statement in statements:
                statement(other)
        assert made.rows() in (behind.rows(), before.rows()), (winner, where)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.by_rows], ids=str)
def test_no_change_of_one_file_stops_another_change_of_it(tmp_path: Path, kind: Kind) -> None:
    for ours, winner in product(("delete", "update", "merge"), repeat=2):
        assert outcome(tmp_path, kind, ours, winner, "other row of the file")[0] is None
