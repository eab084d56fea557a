"""The notebook in `examples/` runs from top to bottom, and shows what it says that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.notebooks import ROOT, execute, nbformat, pages, traceback_of
from tests.test_public_surface import imports, is_public

NOTEBOOK = ROOT / "examples" / "first_hour.ipynb"


def committed() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_kept_without_outputs() -> None:
    notebook = committed()
    nbformat.validate(notebook)
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert codes
    assert not [cell for cell in codes if cell.outputs or cell.execution_count]


def test_it_imports_only_what_is_public() -> None:
    codes = [cell.source for cell in committed().cells if cell.cell_type == "code"]
    assert not [each for code in codes for each in imports(code) if not is_public(*each)]


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_install.py::test_a_job_of_delta_runs_as_it_is",
    "tests/errors/test_in_notebooks.py::test_a_conflict_is_a_card_below_the_lines_of_the_user",
)
@pytest.mark.spark
@pytest.mark.slow
def test_it_runs_from_top_to_bottom(tmp_path: Path) -> None:
    cells = execute(committed(), tmp_path).cells
    shown = {cell.source: cell.outputs for cell in cells if cell.cell_type == "code"}

    def of(source: str) -> list[Any]:
        (found,) = [outputs for text, outputs in shown.items() if source in text and "import" not in text]
        return found

    (failing,) = [cell for cell in cells if "raises-exception" in cell.metadata.get("tags", [])]
    card = traceback_of(failing.outputs)
    assert 'flights.update("flight = 1545", {"delay": "delay + 1"})' in card
    assert "  Winner      version 6, UPDATE by " in card
    assert "  Rule        DELTA_CONCURRENT_DELETE_READ.ROW_LEVEL_CHANGES" in card
    assert "flight = 1545" in card
    assert "anabranch/_transaction" not in card
    (history,) = pages(of("anabranch.history"))
    assert history.count("UPDATE") == 5
    assert "MERGE" in history
    (explained,) = pages(of("anabranch.explain"))
    assert "rules out" in explained
    assert "clean" in pages(of("flights.check"))[0]
    assert "numRestoredFiles" in pages(of("anabranch.restore"))[0]
