"""Notebooks, run by a real kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE

nbclient = pytest.importorskip("nbclient", reason="notebooks run in a kernel: nbclient and ipykernel are not there")
nbformat = pytest.importorskip("nbformat", reason="notebooks are read by nbformat, which is not there")
pytest.importorskip("ipykernel", reason="notebooks run in a kernel: ipykernel is not there")

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*cells: str, folder: Path, allow_errors: bool = False) -> list[list[Any]]:
    """The outputs of each of these cells, run in this order by one kernel whose folder this is."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    return outputs(execute(notebook, folder, allow_errors=allow_errors))


def execute(notebook: Any, folder: Path, *, allow_errors: bool = False) -> Any:
    """Run a notebook in place; a cell that fails without leave fails the test with its traceback."""
    client = nbclient.NotebookClient(
        notebook,
        timeout=PATIENCE,
        allow_errors=allow_errors,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    return notebook


def outputs(notebook: Any) -> list[list[Any]]:
    """What each cell of code shows."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def pages(shown: list[Any]) -> list[str]:
    """The HTML among what a cell shows."""
    return [each["data"]["text/html"] for each in shown if "text/html" in each.get("data", {})]


def traceback_of(shown: list[Any]) -> str:
    """The traceback that a cell shows, without colours."""
    (error,) = [each for each in shown if each["output_type"] == "error"]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
