"""A conflict is a card: as text in a traceback of IPython, as HTML where it is displayed, and elsewhere nothing new."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import anabranch
from anabranch.errors import (
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    StagedFilesVacuumed,
)
from anabranch.errors.cards import as_text, card_sections, without_ours
from anabranch.testing import at_phase

HOSTILE = "<script>\x1b[2Jx"


def conflict(tmp_path: Path) -> DeltaConcurrentModificationException:
    """A RESTORE that loses to another one, caught where a user's code called it."""
    path = str(tmp_path / "table")
    for number in (1, 2):
        anabranch.append(path, [{"id": number}])
    with (
        pytest.raises(DeltaConcurrentModificationException) as caught,
        at_phase("staged", lambda: anabranch.restore(path, version=0)),
    ):
        anabranch.restore(path, version=0)
    return caught.value


def test_a_card_says_what_who_why_where_and_what_to_do(tmp_path: Path) -> None:
    said = card_sections(conflict(tmp_path))
    assert said["What"].endswith("was deleted or changed.")
    assert said["Winner"].startswith("version 2, RESTORE by ")
    assert said["Ours"].startswith("RESTORE where TRUE based on version 1 by ")
    assert said["Rule"] == "DELTA_CONCURRENT_DELETE_READ.EMPTY_READ_PREDICATES"
    assert said["File"].endswith(".parquet")
    assert said["What to do"].startswith("Run the command again")


def test_rows_that_were_in_the_way_are_on_the_card() -> None:
    error = ConcurrentDeleteReadException(table="/t", file="a.parquet", shown="[0] in it, with id = 2", rows=[0])
    assert card_sections(error)["Rows"] == "[0] in it, with id = 2"


@pytest.mark.parametrize("kind", [DeltaConcurrentModificationException, ConcurrentWriteException, StagedFilesVacuumed])
def test_a_card_leaves_out_what_is_not_known(kind: type[DeltaConcurrentModificationException]) -> None:
    said = card_sections(kind(table="/t"))
    assert set(said) == {"What", "Rule", "What to do"}
    assert "Run the command again" not in said["What"]
    assert "Reason" not in said["What"]


def test_nothing_that_a_stranger_wrote_runs_or_moves_the_cursor() -> None:
    error = ConcurrentWriteException(table="/t", winner=HOSTILE, shown=HOSTILE, file=HOSTILE, explanation=HOSTILE)
    page = error._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page + as_text(error)


def test_values_of_rows_that_may_not_be_shown_are_on_no_card(tmp_path: Path) -> None:
    from anabranch.errors import rows

    rows.note("file:///hidden", 1, {rows.PROPERTY: "false"})
    error = ConcurrentDeleteReadException(table="file:///hidden", file="day=2020-01-31/a.parquet")
    assert "2020" not in as_text(error) + error._repr_html_()


def test_the_lines_of_the_user_stay_and_ours_go(tmp_path: Path) -> None:
    error = conflict(tmp_path)
    whole = traceback.extract_tb(error.__traceback__)
    kept = traceback.extract_tb(without_ours(error.__traceback__))
    assert [frame.name for frame in kept] == ["conflict"]
    assert len(whole) > len(kept)
    assert kept[0] in whole


def test_where_every_line_is_ours_all_stay() -> None:
    try:
        raise ConcurrentWriteException(table="/t")
    except ConcurrentWriteException as error:
        theirs = error.__traceback__
        assert theirs is not None
        code = compile("def f(t): raise t", f"{Path(anabranch.__file__).parent}/x.py", "exec")
        names: dict[str, Any] = {}
        exec(code, names)
        with pytest.raises(ConcurrentWriteException) as caught:
            names["f"](error.with_traceback(None))
        ours = caught.value.__traceback__
        assert ours is not None
        assert without_ours(ours.tb_next) is ours.tb_next


def test_outside_ipython_the_traceback_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = conflict(tmp_path)
    monkeypatch.setitem(sys.modules, "IPython", None)  # type: ignore[arg-type]
    assert error._render_traceback_() == traceback.format_exception(error)
    assert "anabranch/_transaction/commit.py" in "".join(traceback.format_exception(error))


def test_a_shell_that_fails_to_format_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = conflict(tmp_path)

    def fails() -> None:
        raise RuntimeError("no shell")

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=fails))  # type: ignore[arg-type]
    assert error._render_traceback_() == traceback.format_exception(error)
