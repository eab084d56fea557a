"""House rules that a machine can hold: sizes, docstrings, forbidden words, and prose that names real things."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import anabranch
from tests.support.sources import tree_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "anabranch"
MODULES = sorted(PACKAGE.rglob("*.py"))

LONGEST_FILE_LINES = 500
LONGEST_FUNCTION_LINES = 70
UNFINISHED = re.compile(r"\b(NotImplementedError|TODO|FIXME|XXX)\b")
PRIVATE_SPARK = {"_jvm", "_jdf", "_jc", "_jsc"}

PROSE = sorted(ROOT.glob("*.md"))
TOP_LEVEL = {path.name for path in ROOT.iterdir()}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def against(rule: Callable[[Path], object]) -> dict[str, object]:
    """What a rule has against each module of the package, those left out that it has nothing against."""
    return {name_of(module): found for module in MODULES if (found := rule(module))}


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def lines_of_code(function: Function) -> int:
    """The length of `function` without its docstring, which may be as long as the promise is."""
    last = function.end_lineno or function.lineno
    whole = last - function.lineno + 1
    if ast.get_docstring(function) is None:
        return whole
    docstring = function.body[0]
    return whole - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def attributes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every attribute by name and line, those spelled `getattr(x, "name")` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def repository_paths(text: str) -> list[str]:
    """The paths in backticks that claim to stand in this repository.

    One that begins with a top-level name of ours, or that has a folder and ends in a file's ending, makes that claim;
    `delta.tables`, `s3://bucket/table`, `_delta_log/00.json` and `python -m x` do not.
    """
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    spelled = [re.sub(r":\d+$|::.*$", "", span) for span in spans if re.fullmatch(r"\.?\w[\w./:-]*", span)]
    return [span for span in spelled if claims_to_be_ours(span)]


def claims_to_be_ours(span: str) -> bool:
    first, slash, _ = span.partition("/")
    if "://" in span or first in ("_delta_log", "build"):  # what `make` writes is not always there
        return False
    if first in TOP_LEVEL:
        return True
    return bool(slash) and bool(re.search(r"\.(py|md|toml|sh|sql|ya?ml)$", span))


def stands_here(path: str) -> bool:
    """Whether `path` is there, counted from the repository's root or from the package's, as ARCHITECTURE.md does."""
    return (ROOT / path).exists() or (PACKAGE / path).exists()


def lines_of(module: Path) -> list[str]:
    return module.read_text(encoding="utf-8").splitlines()


def test_a_file_stays_under_500_lines() -> None:
    assert not against(lambda module: len(lines_of(module)) > LONGEST_FILE_LINES)


@pytest.mark.slow
def test_a_function_stays_under_70_lines() -> None:
    assert not against(
        lambda module: [f.name for f in functions(tree_of(module)) if lines_of_code(f) > LONGEST_FUNCTION_LINES]
    )


@pytest.mark.slow
def test_a_module_says_what_it_knows() -> None:
    silent = against(lambda module: not ast.get_docstring(tree_of(module)))
    assert not silent, "a module needs a docstring: what it knows, may not know, guarantees"


def test_nothing_is_left_unfinished() -> None:
    assert not against(lambda module: [line for line in lines_of(module) if UNFINISHED.search(line)])


@pytest.mark.slow
def test_only_public_pyspark_is_used() -> None:
    found = against(
        lambda module: [f"{line}: {name}" for name, line in attributes(tree_of(module)) if name in PRIVATE_SPARK]
    )
    assert not found, "Spark Connect has none of these"


TEXTS = frozenset({"anabranch/_spark/sessions/sql_text.py", "anabranch/_spark/sessions/session.py"})
"""Where text becomes SQL that Spark reads."""


def test_text_reaches_spark_in_one_place() -> None:
    def called(module: Path) -> list[str]:
        is_place = module.relative_to(ROOT).as_posix() in TEXTS or {"testing", "demo"} & set(module.parts)
        calls = r"F\.expr\((?!f?\"shiftleft)|\bplain_sql\(|\.selectExpr\(|spark\.sql\("
        return [] if is_place else re.findall(calls, _code(module))

    assert not against(called), "else nothing keeps Spark from filling variables in"


def _code(module: Path) -> str:
    """The module without its docstrings."""
    return re.sub(r'""".*?"""', "", module.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_no_handler_catches_everything_unnamed() -> None:
    def unnamed(module: Path) -> list[int]:
        handlers = (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ExceptHandler))
        return [handler.lineno for handler in handlers if handler.type is None]

    assert not against(unnamed)


def test_every_public_name_can_be_imported() -> None:
    assert not [name for name in anabranch.__all__ if not hasattr(anabranch, name)]


def test_no_public_name_is_given_twice() -> None:
    assert len(set(anabranch.__all__)) == len(anabranch.__all__)


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_path_named_in_prose_exists(page: Path) -> None:
    assert not [path for path in repository_paths(page.read_text(encoding="utf-8")) if not stands_here(path)]


@pytest.mark.parametrize(
    "text",
    ["`anabranch/_log/gone.py`", "`tests/test_gone.py:12`", "`commands/gone.py`", "`docs/gone.md`", "`tools/gone`"],
)
def test_a_path_that_does_not_exist_is_noticed_in_prose(text: str) -> None:
    assert [path for path in repository_paths(text) if not stands_here(path)]


@pytest.mark.parametrize(
    "text",
    [
        "`delta.tables`",
        "`s3://b/t.py`",
        "`_delta_log/00.json`",
        "`make test`",
        "`build/site`",
        "`file/set`",
        "```\ntools/gone.py\n```",
    ],
)
def test_what_is_no_path_of_ours_is_left_alone_in_prose(text: str) -> None:
    assert repository_paths(text) == []
