"""The rooms below the doors work without Spark: each imports where pyspark cannot be imported at all.

Who may import whom is read from the sources by `lint-imports` (contracts in pyproject.toml). This file runs the
imports, and so also sees what no reading shows: an import made by name, or by a library that we call.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("_protocol", "_storage", "_log", "_arrow", "_transaction", "_expressions", "commands", "_sql/grammar")

IMPORT_WITHOUT_SPARK = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "delta"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
for module in sys.argv[1:]:
    importlib.import_module(module)
"""


def modules_of(room: str) -> list[str]:
    """Every module of `room` by its dotted name; none where the room does not exist yet."""
    files = sorted((ROOT / "anabranch" / room).rglob("*.py"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]


def import_without_spark(*modules: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", IMPORT_WITHOUT_SPARK, *modules]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_the_package_and_the_rooms_below_the_doors_import_without_spark() -> None:
    """In one process, since each room's import begins with that of the package."""
    assert all(map(modules_of, ROOMS))
    done = import_without_spark("anabranch", *(module for room in ROOMS for module in modules_of(room)))
    assert done.returncode == 0, done.stderr


def test_the_block_is_real() -> None:
    assert "No module named 'pyspark'" in import_without_spark("pyspark.sql").stderr


def test_the_table_of_rooms_names_every_folder_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    said = {room.rstrip("/") for cell in table for room in re.findall(r"`(anabranch/[^`]*)`", cell)}
    there = {init.parent.relative_to(ROOT).as_posix() for init in (ROOT / "anabranch").rglob("__init__.py")}
    assert said - {"anabranch/tables.py"} == there - {"anabranch"}


def test_importing_the_package_loads_nothing_that_takes_time() -> None:
    heavy = "{'pyarrow', 'pyspark', 'numpy', 'obstore', 'sqlglot', 'rich'}"
    code = f"import sys, anabranch; found = {heavy} & sys.modules.keys(); sys.exit(str(found) if found else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
