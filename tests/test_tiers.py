"""Which tests, and which cases of a parametrized one, a short run takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import tiers
from tests.support.tiers import examples, few_of, shorten, thinned
from tests.test_storeys import ROOT


@pytest.mark.parametrize(
    ("cases", "most", "kept"),
    [
        (range(3), 3, [0, 1, 2]),
        (range(9), 3, [0, 4, 8]),
        (range(100), 4, [0, 33, 66, 99]),
        (range(5), 1, [0]),
    ],
)
def test_a_short_run_takes_the_first_the_last_and_others_evenly_between(
    cases: range, most: int, kept: list[int]
) -> None:
    assert thinned({"family": cases}, lambda _: most) == kept


def test_what_is_whole_stays_whole() -> None:
    families = {"whole": range(150), "thinned": range(200, 300)}
    assert thinned(families, lambda _: 2, lambda item: item < 200) == [*range(150), 200, 299]


def test_every_test_keeps_a_case() -> None:
    assert thinned({"one": ["a"], "many": ["b", "c", "d"]}, lambda _: 1) == ["a", "b"]


def test_a_test_with_a_loop_takes_few_examples_in_a_short_run_and_else_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_is_short", False)
    assert examples(40, 6) == 40
    assert few_of("abcde", 3) == "abcde"
    shorten()
    assert examples(40, 6) == 6
    assert few_of("abcde", 3) == ["a", "c", "e"]


def covers(file: Path) -> Iterator[tuple[str, str]]:
    """The tests of a file that only `make test-all` runs, each with a test that it names in its mark."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "exhaustive" in text else ():
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.exhaustive":
                yield from ((node.name, ast.literal_eval(each)) for each in mark.args)


@pytest.mark.slow
def test_what_only_test_all_runs_names_tests_of_make_test_that_show_the_same() -> None:
    beyond = {file: list(covers(file)) for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    assert any(beyond.values())
    for file, named in beyond.items():
        for name, cover in named:
            path, _, function = cover.partition("::")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {function}(" in text, (file.name, name, cover)
            assert function not in {other for other, _ in beyond.get(ROOT / path, [])}, (file.name, name, cover)
