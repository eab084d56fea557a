"""The documented matrices come true by running them, and a product that differs does not get away with it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from typer.testing import CliRunner

from anabranch._cli import app
from anabranch._transaction import conflicts
from anabranch.testing import matrix
from anabranch.testing.matrix import CHANGES, DIALS, GROUPS, LEVELS, MOVES, Cell, Matrix, Run, matrices
from tests.support.tiers import is_short

pytestmark = pytest.mark.slow

UPDATES = ", ".join(CHANGES)
FEW: Mapping[str, tuple[str, ...]] = {**GROUPS, UPDATES: ("MERGE",), "OPTIMIZE": MOVES[1:]}
"""In a short run the verbs of all matrices but the first."""


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Matrix]:
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        for each in matrices():
            made[each.dial, each.level] = each
            patch.setattr(matrix, "GROUPS", groups(is_first=False))
    return made


def groups(*, is_first: bool) -> Mapping[str, tuple[str, ...]]:
    return FEW if is_short() and not is_first else GROUPS


def cell(found: Matrix, ours: str, winner: str) -> Cell:
    return next(each for each in found.cells if (each.ours, each.winner) == (ours, winner))


def test_every_cell_is_as_documented(found: dict[tuple[str, str], Matrix]) -> None:
    assert list(found) == [(dial, level) for dial in DIALS for level in LEVELS]
    for each in found.values():
        wrong = [run for cell in each.cells for run in cell.runs if not run.as_documented]
        assert not wrong, (each.dial, each.level)
        assert each.as_documented


def test_every_pair_of_verbs_is_run_in_every_place(found: dict[tuple[str, str], Matrix]) -> None:
    for number, each in enumerate(found.values()):
        runs = [(run.ours, run.winner, run.where) for cell in each.cells for run in cell.runs]
        verbs = [verb for group in groups(is_first=number == 0).values() for verb in group]
        assert {(ours, winner) for ours, winner, _ in runs} == {(m, w) for m in verbs for w in verbs}
        moves = len(set(verbs) & set(MOVES))
        assert len(set(runs)) == len(runs) == len(verbs) * (4 * (len(verbs) - moves) + moves)


def test_optimize_conflicts_with_nobody_which_is_beyond_the_matrix(found: dict[tuple[str, str], Matrix]) -> None:
    for number, each in enumerate(found.values()):
        cells = [cell for cell in each.cells if "OPTIMIZE" in (cell.ours, cell.winner)]
        assert len(cells) == 2 * len(GROUPS) - 1
        assert not any(cell.refusal_count for cell in cells)
        beyond = {(cell.ours, cell.winner) for cell in each.cells if cell.is_beyond}
        assert beyond == {("OPTIMIZE", UPDATES), (UPDATES, "OPTIMIZE"), ("OPTIMIZE", "OPTIMIZE")}
        for cell in cells:
            by_zorder = {"ZORDER BY" in run.ours or "ZORDER BY" in run.winner for run in cell.runs}
            assert by_zorder == {"ZORDER BY" in move for move in groups(is_first=number == 0)["OPTIMIZE"]}


def test_an_insert_is_never_refused_and_refuses_nobody_at_write_serializable(
    found: dict[tuple[str, str], Matrix],
) -> None:
    for (_, level), each in found.items():
        for winner in ("INSERT", UPDATES):
            assert cell(each, "INSERT", winner).refusal_count == 0
        assert (cell(each, UPDATES, "INSERT").refusal_count == 0) == (level == "WriteSerializable")


@pytest.mark.parametrize("level", LEVELS)
def test_the_row_level_lets_other_rows_of_a_file_through(found: dict[tuple[str, str], Matrix], level: str) -> None:
    refused = {
        dial: {run.where for run in cell(found[dial, level], UPDATES, UPDATES).runs if run.condition} for dial in DIALS
    }
    assert refused["row"] == {"same row"}
    assert refused["file"] == {"same row", "same file", "other file"}  # the last for MERGE only


@pytest.mark.parametrize("level", LEVELS)
def test_under_redo_no_cell_is_refused_and_the_rows_are_those_of_a_serial_order(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "GROUPS", groups(is_first=False))
    (found,) = matrices(["redo"], [level])
    assert not [run for cell in found.cells for run in cell.runs if not run.as_documented]


# -- a product that differs --------------------------------------------------------------------------------------------


def one() -> Matrix:
    (only,) = matrices(("row",), ("WriteSerializable",))
    return only


@pytest.mark.exhaustive("tests/testing/test_matrix.py::test_the_command_exits_with_1_where_a_cell_differs")
def test_a_product_without_conflicts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "ROW_RULES", ())
    each = one()
    wrong = cell(each, UPDATES, UPDATES)
    assert not wrong.as_documented
    assert not each.as_documented
    assert {run.where for run in wrong.runs if not run.as_documented} == {"same row"}


@pytest.mark.exhaustive("tests/testing/test_matrix.py::test_the_command_exits_with_1_where_a_cell_differs")
def test_a_product_that_refuses_too_much_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "uses_row_rules", lambda ours: False)
    each = one()
    assert not cell(each, UPDATES, UPDATES).as_documented


def test_wrong_rows_are_caught_even_where_nobody_was_refused() -> None:
    run = Run("UPDATE", "DELETE", "same file", refusal_expected=False, condition=None, right_rows=False)
    assert not run.as_documented
    assert not Cell("UPDATE", "DELETE", "cannot conflict", (run,)).as_documented


# -- the command -------------------------------------------------------------------------------------------------------


def invoke(*words: str) -> Any:
    only = ("--resolution", "row", "--level", "WriteSerializable")
    return CliRunner().invoke(app, ["matrix", *only, *words], env={"COLUMNS": "300"})


def test_the_command_exits_with_1_where_a_cell_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "ROW_RULES", ())
    monkeypatch.setattr(matrix, "GROUPS", FEW)
    shown = invoke()
    assert shown.exit_code == 1
    assert "✗ can conflict" in shown.output
    assert "✗ MERGE against MERGE, same row: committed, wrong rows" in shown.output
    assert "Some cell is not as documented." in shown.output


@pytest.mark.exhaustive("tests/testing/test_matrix.py::test_the_command_exits_with_1_where_a_cell_differs")
def test_an_optimize_that_refuses_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "relocation_of", lambda winner: None)
    monkeypatch.setattr(conflicts, "relocations_in", lambda window: ())
    each = one()
    wrong = cell(each, UPDATES, "OPTIMIZE")
    assert not wrong.as_documented
    assert not wrong.is_beyond


def test_the_command_shows_a_tick_for_each_cell_and_says_which_go_beyond(
    found: dict[tuple[str, str], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "matrices", lambda dials, levels: (found[each] for each in product(dials, levels)))
    shown = invoke()
    assert shown.exit_code == 0
    assert shown.output.count("✓") == 9
    assert shown.output.count("beyond the matrix") == 3
    assert "✗" not in shown.output
    assert "Every cell is as documented, or beyond it." in shown.output
