"""The public surface is what five ``__all__`` list, and the documentation's examples import nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_docs import PAGES, ROOT, blocks, name_of

PUBLIC = ("anabranch", "anabranch.tables", "anabranch.errors", "anabranch.commands", "anabranch.testing")

DEEPER = {
    "docs/verbs/matrix.md": "runs the command line in this process",
}
"""Pages whose examples need more than the public modules, each with the reason. This list only shrinks."""

EXAMPLES = [page for page in [ROOT / "README.md", *PAGES] if any(each.language == "python" for each in blocks(page))]


def exports(module: str) -> set[str]:
    return set(import_module(module).__all__)


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "anabranch"


def imports(code: str) -> Iterator[tuple[str, str | None]]:
    """Each import from the package: its module, and the name that is taken from it, if there is one."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names if is_ours(each.name))
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            yield from ((str(node.module), each.name) for each in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "anabranch":
            yield "anabranch", node.attr


def is_public(module: str, name: str | None) -> bool:
    return module in PUBLIC and (name is None or name in exports(module) or f"{module}.{name}" in PUBLIC)


def private_imports(page: Path) -> set[str]:
    found = [each for block in blocks(page) if block.language == "python" for each in imports(block.text)]
    return {f"{module}:{name}" for module, name in found if not is_public(module, name)}


@pytest.mark.parametrize("page", EXAMPLES, ids=name_of)
def test_examples_import_only_what_is_public(page: Path) -> None:
    if name_of(page) not in DEEPER:
        assert not private_imports(page)


def test_every_exception_is_still_needed() -> None:
    assert {name_of(page) for page in EXAMPLES if private_imports(page)} == set(DEEPER)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_exists_once(module: str) -> None:
    listed = import_module(module).__all__
    assert listed
    assert len(listed) == len(set(listed))
    assert not [name for name in listed if name.startswith("_") or not hasattr(import_module(module), name)]


@pytest.mark.parametrize(
    "code",
    [
        "from anabranch._log.log import forget",
        "from anabranch.errors import NoSuchError",
        "import anabranch._spark.engine",
        "import anabranch\nanabranch.storage",
        "def f():\n    from anabranch._storage import open_store",
    ],
)
def test_an_import_of_what_is_not_public_is_noticed(code: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\n{textwrap.dedent(code)}\n```\n", encoding="utf-8")
    assert private_imports(page)


@pytest.mark.slow
def test_the_import_of_the_package_loads_no_pandas() -> None:
    """Which would be a third of its time; Arrow loads pandas for the first array that it makes of a list."""
    code = "import sys, anabranch; assert callable(anabranch.append); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_every_public_name_is_listed_before_it_is_used() -> None:
    code = "import anabranch; print(sorted(set(anabranch.__all__) - set(dir(anabranch))), len(dir(anabranch)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] ")
