"""Docstrings name only what exists: errors that are raised, functions of examples, and paths within the package."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest

import anabranch
from anabranch import errors

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path for path in (ROOT / "anabranch").rglob("*.py") if path.name != "__main__.py")
_OTHERS = frozenset({"ArrowInvalid", "Py4JJavaError", "SSLError"})
"""Errors of libraries that need not be there."""
_RAISED = re.compile(r"\bRaises ((?:`?[A-Z]\w+`?(?:, | or )?)+)[: ]")
_LISTED = re.compile(r"^ +((?:[A-Z]\w+(?:, )?)+): ", re.MULTILINE)
_CALLED = re.compile(r">>> (?:[\w, ]+ = )?([A-Za-z_]\w*)\(")
_PATH = re.compile(r"`(anabranch\.(?:_\w+|commands|errors|testing|tables)(?:\.\w+)*)`")
_DEFINED = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)
NAMES = frozenset(name for module in MODULES for name in _DEFINED.findall(module.read_text("utf-8")))
"""Every class and function of the package."""


def docstrings(module: Path) -> Iterator[tuple[int, str]]:
    """Those of modules, classes and functions, and the texts behind constants."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def errors_in(text: str) -> set[str]:
    """The errors that a docstring says are raised."""
    listed = text.partition("Raises:\n")[2].partition("\n\n")[0]
    groups = [*_RAISED.findall(text), *_LISTED.findall(listed)]
    return {name for group in groups for name in re.findall(r"[A-Z]\w+", group)}


def is_known(name: str, namespace: dict[str, Any]) -> bool:
    things = (errors, builtins, pyspark.errors)
    return name in namespace or name in NAMES or name in _OTHERS or any(hasattr(thing, name) for thing in things)


def is_path(dotted: str) -> bool:
    """Whether a dotted path leads to a module, or to something in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing: Any = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for name in parts[count:]:
            if not hasattr(thing, name) and name not in getattr(thing, "__annotations__", {}):
                return False
            thing = getattr(thing, name, None)
        return True
    return False


def gone(module: Path) -> list[str]:
    """What the docstrings of a module name and nothing has."""
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    namespace = vars(import_module(name))
    found = []
    for line, text in docstrings(module):
        unknown = {error for error in errors_in(text) if not is_known(error, namespace)}
        called = {c for c in _CALLED.findall(text) if not (is_known(c, namespace) or hasattr(anabranch, c))}
        unknown |= {c for c in called if f"def {c}" not in text and not re.search(rf"import .*\b{c}\b", text)}
        unknown |= {path for path in _PATH.findall(text) if not is_path(path)}
        found += [f"{line}: {one}" for one in sorted(unknown)]
    return found


@pytest.mark.slow
def test_docstrings_name_only_what_is_there() -> None:
    found = {str(module.relative_to(ROOT)): names for module in MODULES if (names := gone(module))}
    assert found == {}


def test_what_is_gone_is_noticed(tmp_path: Path) -> None:
    assert errors_in("Raises NoSuchThing: never.") == {"NoSuchThing"}
    assert errors_in("Does.\n\n    Raises:\n        One, Other: always.\n        Third: or not.\n\n    More: x.") == {
        "One",
        "Other",
        "Third",
    }
    assert not is_known("NoSuchThing", {})
    assert not is_path("anabranch._log.nowhere")
    assert not is_path("anabranch._log.log.Log.nothing")
    assert is_path("anabranch._log.log.Log.snapshot")
