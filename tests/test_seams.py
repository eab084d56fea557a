"""Tests and the laboratory reach into the product by its seams alone: they take no private name of it.

Where something has to be seen or replaced, the product has a parameter or a public name for that, `at_phase`, stores
with faults, clocks, or `anabranch.errors.process_state.forget`. So a change inside a room breaks no test that is about
what the room promises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = "anabranch"
ROOMS = frozenset(folder.name for folder in (ROOT / PRODUCT).iterdir() if folder.is_dir())
"""Most have an underscore, since users take nothing out of them; tests are about what they promise."""
MODULES = sorted(path for folder in ("tests", "laboratory") for path in (ROOT / folder).rglob("*.py"))
OF_NAMED_TUPLES = frozenset({"_asdict", "_fields", "_make", "_replace"})
"""Public, in spite of their names."""
OF_LOGS = r"(?!delta_log|last_checkpoint)"
MAY_TAKE_ONE = re.compile(
    rf"(?<!self)(?<!cls)\._{OF_LOGS}[A-Za-z]|(['\"])_{OF_LOGS}[A-Za-z]\w*\1"
    r"|import\b[^\n]*\b_[A-Za-z]|^ +_[A-Za-z]\w*,$",
    re.MULTILINE,
)
"""A text without this takes none; most files need not be parsed."""


def is_private(name: str) -> bool:
    """Whether this is a name of a room's own; hooks of IPython and of Python itself end with an underscore too."""
    is_name = name.isidentifier() and name not in OF_NAMED_TUPLES | ROOMS
    return is_name and name.startswith("_") and not name.endswith("_")


def is_of_product(module: str) -> bool:
    return module.partition(".")[0] == PRODUCT


def imported(nodes: Sequence[ast.AST]) -> set[str]:
    """The names under which a file has modules, classes and functions of the product."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and is_of_product(node.module or ""):
            found |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname or PRODUCT for each in node.names if is_of_product(each.name)}
    return found


def root_of(node: ast.AST) -> str:
    """The name at which a chain of attributes, calls and indexes begins; empty where it begins otherwise."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def made_by(known: set[str], nodes: Sequence[ast.AST]) -> set[str]:
    """The names that a file gives to what the product's own names have made."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and root_of(node.value) in known:
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.withitem) and root_of(node.context_expr) in known:
            found |= {node.optional_vars.id} if isinstance(node.optional_vars, ast.Name) else set()
    return found


def imports_in(node: ast.AST) -> Iterator[str]:
    """Private modules and names that a statement imports from the product."""
    paths = []
    if isinstance(node, ast.ImportFrom) and is_of_product(node.module or ""):
        paths = [f"{node.module}.{each.name}" for each in node.names]
    elif isinstance(node, ast.Import):
        paths = [each.name for each in node.names if is_of_product(each.name)]
    yield from (path for path in paths if any(map(is_private, path.split("."))))


def spelled_in(node: ast.AST, known: set[str]) -> Iterator[str]:
    """Private names in quotes: behind a thing of the product, as in ``setattr``, or in a whole path."""
    parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
    for thing, name in pairwise(parts):
        is_name = isinstance(name, ast.Constant) and isinstance(name.value, str) and is_private(name.value)
        if is_name and root_of(thing) in known:
            yield f"{ast.unparse(thing)}, {ast.unparse(name)}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{PRODUCT}."):
        parts_of_path = node.value.split(".")
        if all(each.isidentifier() for each in parts_of_path) and any(map(is_private, parts_of_path)):
            yield node.value


def reached_into(tree: ast.AST) -> list[str]:
    """The places at which a file takes a private name of the product, with their lines."""
    nodes = list(ast.walk(tree))
    known = imported(nodes)
    known |= made_by(known, nodes)
    found = set[tuple[int, str]]()
    for node in nodes:
        line = getattr(node, "lineno", 0)
        found.update((line, each) for each in (*imports_in(node), *spelled_in(node, known)))
        if isinstance(node, ast.Attribute) and is_private(node.attr) and root_of(node) in known:
            found.add((line, ast.unparse(node)))
    return [f"{line}: {what}" for line, what in sorted(found)]


@pytest.mark.slow
def test_no_file_of_tests_or_of_the_laboratory_takes_a_private_name_of_the_product() -> None:
    found = {}
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        if PRODUCT in text and MAY_TAKE_ONE.search(text) and (places := reached_into(ast.parse(text))):
            found[module.relative_to(ROOT).as_posix()] = places
    assert found == {}, "give it a parameter or a public name, or look at what can be seen from outside"


@pytest.mark.parametrize(
    "text",
    [
        "from anabranch._log.commits import _parse",
        "from anabranch._inner import parse",
        "import anabranch._log._inner",
        "from anabranch._log import commits\ncommits._parse('x')",
        "from anabranch._log import commits as module\nreal = module._parse",
        "import anabranch._log.commits\nanabranch.log.commits._parse",
        "from anabranch._log.log import Log\nLog('t').snapshot()._files",
        "import anabranch\ndef test_x():\n    found = anabranch.appender('t')\n    found._lock",
        "import anabranch\ndef test_x():\n    with anabranch.appender('t') as it:\n        it._lock.acquire()",
        "from anabranch._log import commits\nmonkeypatch.setattr(commits, '_parse', None)",
        "from anabranch._log import commits\nmonkeypatch.setattr(commits.Commit, '_parse', None)",
        "from anabranch._log import commits\ngetattr(commits, '_parse')",
        "from anabranch._log import commits\npatch.object(commits, '_parse', None)",
        "from anabranch._log import commits\nMUTANTS = [(commits, '_parse', None)]",
        "monkeypatch.setattr('anabranch._log.commits._parse', None)",
    ],
)
def test_a_private_name_that_is_taken_is_noticed(text: str) -> None:
    assert reached_into(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from anabranch._log import commits\nmonkeypatch.setattr(commits, 'parse_commit', None)",
        "import anabranch\nanabranch.timeline('t')._repr_html_()",
        "from anabranch._log.commits import Commit\nclass Mine(Commit):\n    def of(self):\n        return self._mine",
        "from moto.s3.responses import S3Response\nmonkeypatch.setattr(S3Response, '_get_checksum', None)",
        "path = 'anabranch/_delta_log/00.json'",
        "from anabranch._protocol.points import Point\nPoint(1)._replace(x=2)",
    ],
)
def test_what_is_public_or_of_others_is_left_alone(text: str) -> None:
    assert not reached_into(ast.parse(text))
