"""The grid again, with those who only look after the table: OPTIMIZE, ZORDER, clustering, REORG, RESTORE, VACUUM.

What the statements of the grid do to rows is written down here a second time, as functions of a list of rows; whatever
was let through must have left the rows of a serial order. A file of these tables holds a deleted row where it can, and
each partition has two files, so that there is always something to move.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns
from anabranch.testing import at_phase
from tests.support.tiers import few_of
from tests.support.worlds import World
from tests.transaction.test_grid import (
    COLUMNS,
    DELETE_READ,
    KINDS,
    MAPPED,
    MINE,
    WINNERS,
    Kind,
    Outcome,
    expected,
    row,
    table_of,
)

Rows = list[dict[str, int]]
Model = Callable[[Rows], Rows]
Key = tuple[str, str]

BASE: Rows = [row(0, 0, p=0), row(1, 1, p=0), row(4, 4, p=0), row(2, 2), row(3, 3), row(5, 5)]
"""The rows of `world`."""


def world(folder: Path, kind: Kind) -> World:
    """Two files in each of two places, two of them with a deleted row each, where the kind of table marks rows."""
    return _original(kind).copy(folder)


@cache
def _original(kind: Kind) -> World:
    """Made once for each kind; what every test gets is a copy of its own."""
    folder = Path(tempfile.mkdtemp(prefix="anabranch-grid-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = table_of(folder, kind, [row(0, 0, p=0), row(1, 1, p=0), row(8, 8, p=0)], spare=kind.mapping != "none")
    more = {"spare": 0} if kind.mapping != "none" else {}
    for rows in ([row(2, 2), row(3, 3), row(9, 9)], [row(4, 4, p=0)], [row(5, 5)]):
        made.append(*({**each, **more} for each in rows))
    made.delete("id >= 8")
    if kind.mapping != "none":
        DropColumns(made.path, (("spare",),)).run()
    return made


def cluster(made: World) -> object:
    return made.optimize(full=True)


MOVES: dict[str, Callable[[World], object]] = {
    "OPTIMIZE": lambda w: w.optimize(),
    "ZORDER": lambda w: cluster(w) if w.log.snapshot().clustering_columns else w.optimize("x", "y"),
    "REORG": lambda w: w.reorg(),
}
"""A clustered table takes no ZORDER BY: there it stands for OPTIMIZE FULL."""


# -- what the statements do, written down again ------------------------------------------------------------------------


def changing(where: Callable[[dict[str, int]], bool], **values: int) -> Model:
    return lambda rows: [{**each, **values} if where(each) else each for each in rows]


def deleting(where: Callable[[dict[str, int]], bool]) -> Model:
    return lambda rows: [each for each in rows if not where(each)]


def adding(*new: dict[str, int]) -> Model:
    return lambda rows: [*rows, *new]


def merging(source: Rows, by: str, *, inserts: bool) -> Model:
    """An upsert of y; without inserts it sets y = 9."""

    def merged(rows: Rows) -> Rows:
        wanted = {each[by]: each for each in source}
        values = {key: each["y"] if inserts else 9 for key, each in wanted.items()}
        kept = [{**each, "y": values[each[by]]} if each[by] in wanted else each for each in rows]
        new = [each for each in source if each[by] not in {old[by] for old in rows}]
        return [*kept, *(new if inserts else [])]

    return merged


def inserting(new: dict[str, int]) -> Model:
    """A MERGE that only inserts, by id."""
    return lambda rows: rows if new["id"] in {each["id"] for each in rows} else [*rows, new]


MINES: dict[str, Model] = {
    "insert": adding(row(100, 0)),
    "delete": deleting(lambda r: r["x"] == 0),
    "update": changing(lambda r: r["x"] == 0, y=7),
    "merge": merging([row(0, 0, 7, 0), row(50, 50)], "x", inserts=True),
    "overwrite": lambda rows: [row(200, 200)],
}
THEIRS: dict[Key, Model] = {
    ("insert", "other rows"): adding(row(101, 9)),
    ("insert", "moved in"): adding(row(101, 0)),
    ("insert", "same new key"): adding(row(101, 50)),
    ("delete", "same row"): deleting(lambda r: r["id"] == 0),
    ("delete", "other row of the file"): deleting(lambda r: r["id"] == 1),
    ("delete", "other file"): deleting(lambda r: r["id"] == 3),
    ("update", "same row"): changing(lambda r: r["id"] == 0, y=9),
    ("update", "other row of the file"): changing(lambda r: r["id"] == 1, y=9),
    ("update", "other file"): changing(lambda r: r["id"] == 3, y=9),
    ("update", "moved in"): changing(lambda r: r["id"] == 3, x=0),
    ("update", "moved out"): changing(lambda r: r["id"] == 0, x=9),
    ("update", "same new key"): changing(lambda r: r["id"] == 3, x=50),
    ("merge", "same row"): merging([row(0, 0)], "id", inserts=False),
    ("merge", "other row of the file"): merging([row(1, 0)], "id", inserts=False),
    ("merge", "other file"): merging([row(3, 0)], "id", inserts=False),
    ("merge", "moved in"): inserting(row(101, 0)),
    ("merge", "same new key"): inserting(row(101, 50)),
    ("overwrite", "same row"): lambda rows: [row(201, 0)],
}


def bag(rows: Iterable[dict[str, int]]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(each[name] for name in COLUMNS) for each in rows)


def after(models: Sequence[Model]) -> Counter[tuple[int, ...]]:
    rows = BASE
    for model in models:
        rows = model(rows)
    return bag(rows)


def serial(*models: Model) -> list[Counter[tuple[int, ...]]]:
    """What each serial order leaves."""
    return [after(order) for order in permutations(models)]


def meeting(made: World, ours: Callable[[World], object], other: Callable[[World], object], phase: str) -> Outcome:
    """Run ours with the other inside it: the kind of its conflict, None where it was let through."""
    try:
        with at_phase(phase, lambda: other(made)):
            ours(made)
    except errors.DeltaConcurrentModificationException as refused:
        return type(refused)
    return None


def has_work(move: str, kind: Kind) -> bool:
    """Whether the table of a kind holds what the move looks for."""
    return move != "REORG" or kind.vectors or kind.mapping != "none"


BETWEEN = [
    Kind("WriteSerializable", "row", True),
    Kind("Serializable", "row", True, "partitioned"),
    Kind("Serializable", "row", True, "clustered"),
    MAPPED[0],
    Kind("WriteSerializable", "file", True, "partitioned"),
]
PLAIN = [Kind("WriteSerializable", "row", False, "partitioned"), Kind("Serializable", "file", False)]
SOME = [*BETWEEN, *PLAIN]
"""What kinds differ in occurs here, not each combination; those are run where ANABRANCH_GRID says `whole`."""

kinds = pytest.mark.parametrize("kind", KINDS if os.environ.get("ANABRANCH_GRID") == "whole" else SOME, ids=str)
some_kinds = pytest.mark.parametrize("kind", SOME, ids=str)
moves = pytest.mark.parametrize("move", MOVES)


@pytest.mark.slow
def test_what_the_statements_do_is_the_same_in_both_books(tmp_path: Path) -> None:
    """Alone, each leaves the rows that are written down for it."""
    kind = Kind("WriteSerializable", "row", True)
    assert bag(world(tmp_path, kind).rows()) == bag(BASE)
    assert MINES.keys() == MINE.keys()
    assert THEIRS.keys() == WINNERS.keys()
    for statement, model in [*((MINE[n], MINES[n]) for n in MINE), *((WINNERS[n], THEIRS[n]) for n in WINNERS)]:
        made = world(tmp_path, kind)
        statement(made)
        assert bag(made.rows()) == after([model])


# -- moves and changes -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@moves
@kinds
def test_a_move_is_never_refused_and_loses_and_brings_back_no_row(tmp_path: Path, kind: Kind, move: str) -> None:
    for name, change in MINE.items():
        made = world(tmp_path, kind)
        assert meeting(made, MOVES[move], change, "staged") is None, name
        assert bag(made.rows()) == after([MINES[name]]), name
        made.assert_clean()


@pytest.mark.slow
@moves
@kinds
def test_a_change_that_meets_a_move_follows_its_rows_where_there_are_vectors(
    tmp_path: Path, kind: Kind, move: str
) -> None:
    """Without them there is no way to take a part of a file away: a conflict, but for whoever takes all or nothing."""
    for name, change in MINE.items():
        made = world(tmp_path, kind)
        before = made.version
        found = meeting(made, change, MOVES[move], "staged")
        moved = made.info(before + 1)["operation"] in ("OPTIMIZE", "REORG")
        all_or_nothing = name in ("insert", "overwrite") or move == "REORG" or not moved
        assert found == (None if kind.vectors or all_or_nothing else DELETE_READ), name
        assert moved or not (kind.vectors or move != "REORG")
        assert bag(made.rows()) == after([MINES[name]] if found is None else []), name
        made.assert_clean()


@pytest.mark.slow
@moves
@pytest.mark.parametrize("kind", [kind for kind in SOME if kind.level == "WriteSerializable"], ids=str)
def test_it_makes_no_difference_if_they_meet_at_the_last_moment(tmp_path: Path, kind: Kind, move: str) -> None:
    for name, change in MINE.items() if has_work(move, kind) else ():
        made = world(tmp_path, kind)
        assert meeting(made, MOVES[move], change, "put") is None
        assert bag(made.rows()) == after([MINES[name]])
        if kind.vectors:
            made = world(tmp_path, kind)
            assert meeting(made, change, MOVES[move], "put") is None
            assert bag(made.rows()) == after([MINES[name]])


@pytest.mark.parametrize("ours", MINE)
@pytest.mark.parametrize("kind", BETWEEN, ids=str)
@pytest.mark.slow
def test_moves_before_and_behind_a_winner_change_no_cell(tmp_path: Path, kind: Kind, ours: str) -> None:
    """By files a move can only bring rows nearer to each other, so there only the rows that are left are asked for."""
    wrong = {}
    for (winner, where), change in few_of(list(WINNERS.items()), 6):

        def winners(made: World, change: Callable[[World], object] = change) -> None:
            MOVES["ZORDER"](made)
            change(made)
            MOVES["OPTIMIZE"](made)

        made = world(tmp_path, kind)
        found = meeting(made, MINE[ours], winners, "staged")
        theirs = THEIRS[winner, where]
        left = serial(MINES[ours], theirs) if found is None else [after([theirs])]
        if bag(made.rows()) not in left or (kind.by_rows and found not in expected(ours, winner, where, kind)):
            wrong[winner, where] = found
        if found is None:
            made.assert_clean()
    assert not wrong


@moves
@pytest.mark.parametrize("kind", BETWEEN, ids=str)
@pytest.mark.slow
def test_a_move_takes_along_what_several_winners_did(tmp_path: Path, kind: Kind, move: str) -> None:
    for first, second in (("delete", "update"), ("merge", "delete"), ("update", "overwrite"), ("insert", "merge")):
        made = world(tmp_path, kind)

        def both(made: World, first: str = first, second: str = second) -> None:
            MINE[first](made)
            WINNERS[second, "other file" if second != "overwrite" else "same row"](made)

        assert meeting(made, MOVES[move], both, "staged") is None
        other = THEIRS[second, "other file" if second != "overwrite" else "same row"]
        assert bag(made.rows()) == after([MINES[first], other])
        made.assert_clean()


# -- moves and moves ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@moves
@pytest.mark.parametrize("other", MOVES)
@some_kinds
def test_two_moves_of_the_same_rows_never_refuse_each_other(tmp_path: Path, kind: Kind, move: str, other: str) -> None:
    made = world(tmp_path, kind)
    before = made.version
    assert meeting(made, MOVES[move], MOVES[other], "put" if has_work(move, kind) else "staged") is None
    assert bag(made.rows()) == bag(BASE)
    assert before <= made.version <= before + 2
    made.assert_clean()


# -- RESTORE -----------------------------------------------------------------------------------------------------------


def back(made: World) -> Any:
    """To version 1: two appends and a DELETE ago, with 8 and 9 alive again, and neither 4 nor 5."""
    return made.restore(1)


THEN: Rows = [row(0, 0, p=0), row(1, 1, p=0), row(8, 8, p=0), row(2, 2), row(3, 3), row(9, 9)]
UNMAPPED = [kind for kind in SOME if kind.mapping == "none"]
"""Where no column was dropped meanwhile: else the RESTORE is a change of metadata, which fails everyone."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNMAPPED, ids=str)
def test_a_restore_stands_behind_blind_appends_at_write_serializable_only(tmp_path: Path, kind: Kind) -> None:
    for key, change in few_of(list(WINNERS.items()), 6):
        made = world(tmp_path, kind)
        found = meeting(made, back, change, "staged")
        may = key[0] == "insert" and not kind.serializable
        assert (found is None) == may, key
        left = [bag(THEIRS[key](THEN)), bag(THEN)] if may else [after([THEIRS[key]])]
        assert bag(made.rows()) in left, key


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNMAPPED, ids=str)
def test_whoever_is_let_through_behind_a_restore_has_as_good_as_seen_it(tmp_path: Path, kind: Kind) -> None:
    for name, change in MINE.items():
        made = world(tmp_path, kind)
        found = meeting(made, change, back, "staged")
        assert found is None or name != "insert"
        assert bag(made.rows()) == bag(MINES[name](THEN) if found is None else THEN), name


@pytest.mark.slow
@moves
@pytest.mark.parametrize("kind", UNMAPPED, ids=str)
def test_a_move_that_meets_a_restore_is_let_through_and_leaves_the_old_rows(
    tmp_path: Path, kind: Kind, move: str
) -> None:
    made = world(tmp_path, kind)
    assert meeting(made, MOVES[move], back, "staged") is None
    assert bag(made.rows()) == bag(THEN)
    made.assert_clean()


@pytest.mark.slow
@moves
@pytest.mark.parametrize("kind", UNMAPPED, ids=str)
def test_a_restore_that_meets_a_move_leaves_the_old_rows_or_is_refused(tmp_path: Path, kind: Kind, move: str) -> None:
    made = world(tmp_path, kind)
    found = meeting(made, back, MOVES[move], "staged")
    assert bag(made.rows()) == bag(THEN if found is None else BASE)
    made.assert_clean()


# -- VACUUM ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("hours", [None, 0.0], ids=["within the retention", "retaining nothing"])
@some_kinds
def test_a_vacuum_is_in_nobodys_way(tmp_path: Path, kind: Kind, hours: float | None) -> None:
    everyone = [*MINE.items(), *MOVES.items()]
    for name, act in everyone:
        made = world(tmp_path, kind)
        assert meeting(made, act, lambda w: w.vacuum(hours), "staged") is None, name
        assert bag(made.rows()) == after([MINES[name]] if name in MINES else []), name


@pytest.mark.slow
@pytest.mark.parametrize("hours", [None, 0.0], ids=["within the retention", "retaining nothing"])
@some_kinds
def test_nobody_is_in_the_way_of_a_vacuum(tmp_path: Path, kind: Kind, hours: float | None) -> None:
    for name, act in [*MINE.items(), *MOVES.items()]:
        made = world(tmp_path, kind)
        assert meeting(made, lambda w: w.vacuum(hours), act, "staged") is None, name
        assert bag(made.rows()) == after([MINES[name]] if name in MINES else []), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNMAPPED, ids=str)
def test_a_restore_and_a_vacuum_that_retains_its_files_do_not_meet(tmp_path: Path, kind: Kind) -> None:
    for ours, other in ((back, World.vacuum), (World.vacuum, back)):
        made = world(tmp_path, kind)
        assert meeting(made, ours, other, "staged") is None
        assert bag(made.rows()) == bag(THEN)
        made.assert_clean()
