"""The sample of mutants, what is left out of it, the tests that judge one, and what is kept of a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants import in_pytest
from tools.mutants.choosing import FIRST, Choice, Test, candidates, choice, files_of, mirrored
from tools.mutants.copies import Copy
from tools.mutants.drawing import drawn, shares
from tools.mutants.left_out import is_in, left_out, statement_lines
from tools.mutants.mutant import Mutant
from tools.mutants.results import Judged, Results, Verdict, survivors, table
from tools.mutants.tiers import TEST, TEST_ALL

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
from __future__ import annotations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os; size = 1

__all__ = ["a"] * 2
Kind = Struct | int | None


@cache(maxsize=3)
def f(given: Kind | None, other: int = 4) -> bytes | None:
    assert given == 5, "never"
    _logger.warning("that is %s", given + 6)
    text = "a" + other
    if given > 7:
        raise ValueError(f"no é {given - 8}")
    known: A | B = given or 9
    return known
"""


def mutant(path: str, line: int, operator: str = "AddNot", occurrence: int = 0) -> Mutant:
    return Mutant(path, line, 4, operator, occurrence)


ROOMS = {
    "log": [mutant("anabranch/_log/x.py", line, each) for line in range(1, 61) for each in ("AddNot", "Number")],
    "spark": [mutant("anabranch/_spark/y.py", line) for line in range(1, 31)],
}


def numbers_left() -> list[str]:
    """The figures of the source that may be mutated."""
    spans, lines = left_out(SOURCE), SOURCE.splitlines()
    return [
        character
        for number, line in enumerate(lines, start=1)
        for column, character in enumerate(line)
        if character.isdigit() and not is_in((number, column), spans)
    ]


def test_types_texts_decorators_and_assertions_are_left_out() -> None:
    assert numbers_left() == ["4", "7", "9"]


@pytest.mark.parametrize(("line", "sign"), [(9, "|"), (13, "|"), (16, "+"), (19, "|")])
def test_a_union_of_types_and_an_addition_to_a_text_are_no_decision(line: int, sign: str) -> None:
    assert is_in((line, SOURCE.splitlines()[line - 1].index(sign)), left_out(SOURCE))


def test_what_is_shown_of_a_value_or_checked_of_lengths_is_no_decision() -> None:
    source = "x = field(repr=False, default=0)\ny = zip(a, b, strict=True)\n"
    spans = left_out(source)
    places = [(1, source.index("False")), (2, source.splitlines()[1].index("True"))]
    assert [is_in(place, spans) for place in places] == [True, True]
    assert not is_in((1, source.index("0")), spans)


def test_a_column_counts_characters() -> None:
    source = "é = 'é' + a | b"
    assert is_in((1, 8), left_out(source))
    assert not is_in((1, 12), left_out(source))


def test_cosmic_ray_finds_the_decisions_and_nothing_else() -> None:
    pytest.importorskip("cosmic_ray")
    from tools.mutants.mutations import mutants_of

    found = {(each.line, each.operator) for each in mutants_of("anabranch/_log/x.py", SOURCE)}
    numbers = {(line, "NumberReplacer") for line in (13, 17, 19)}
    orders = {(17, f"ReplaceComparisonOperator_Gt_{each}") for each in ("Eq", "NotEq", "Lt", "LtE", "GtE")}
    assert found == {*numbers, *orders, (17, "AddNot"), (19, "ReplaceOrWithAnd")}


def test_a_mutant_is_one_change_of_the_file() -> None:
    pytest.importorskip("cosmic_ray")
    from tools.mutants.mutations import change, mutants_of, mutated

    (found,) = [each for each in mutants_of("anabranch/_log/x.py", SOURCE) if each.operator == "AddNot"]
    changed = mutated(SOURCE, found)
    assert changed is not None
    assert change(SOURCE, changed) == ["- if given > 7:", "+ if not given > 7:"]


def test_what_would_be_no_program_is_no_mutant() -> None:
    pytest.importorskip("cosmic_ray")
    from tools.mutants.mutations import mutants_of, mutated

    source = "if a := f():\n    pass\n"
    (found,) = mutants_of("anabranch/_log/x.py", source)
    assert mutated(source, found) is None


def test_a_handler_of_an_error_with_a_dotted_name_is_left_alone() -> None:
    pytest.importorskip("cosmic_ray")
    from tools.mutants.mutations import mutants_of, mutated

    source = (
        "try:\n    f()\nexcept pa.ArrowInvalid:\n    pass\nexcept (pa.ArrowException, OSError):\n    pass\n"
        "except (OSError, KeyError):\n    pass\n"
    )
    found = mutants_of("anabranch/_log/x.py", source)
    assert [(each.line, each.column) for each in found] == [(5, 27), (7, 8), (7, 17)]
    assert all(mutated(source, each) is not None for each in found)


def test_a_seed_draws_the_same_sample_and_another_seed_another_one() -> None:
    sample = drawn(ROOMS, 12, 1)
    assert sample == drawn({room: ROOMS[room][::-1] for room in reversed(ROOMS)}, 12, 1)
    assert sample != drawn(ROOMS, 12, 2)


def test_rooms_have_their_share_of_places_and_a_place_is_drawn_once() -> None:
    sample = drawn(ROOMS, 30, 1)
    assert [sum(each.room == room for each in sample) for room in ROOMS] == [20, 10]
    assert len({(each.path, each.line) for each in sample}) == 30


def test_another_mutant_is_drawn_for_one_that_is_no_program() -> None:
    sample = drawn(ROOMS, 30, 1, lambda each: each.line % 2 == 0)
    assert len(sample) == 30
    assert not [each for each in sample if each.line % 2]


@pytest.mark.parametrize(
    ("sizes", "count", "parts"),
    [
        ({"a": 5, "b": 5, "c": 5}, 4, {"a": 2, "b": 1, "c": 1}),
        ({"a": 20, "b": 1}, 3, {"a": 3, "b": 0}),
        ({"a": 2, "b": 1}, 3, {"a": 2, "b": 1}),
    ],
)
def test_shares_make_the_count(sizes: dict[str, int], count: int, parts: dict[str, int]) -> None:
    assert shares(sizes, count) == parts


def test_a_line_is_judged_by_its_own_test_file_then_by_the_tests_that_run_it_the_near_ones_first() -> None:
    own, other = Test("tests/log/test_x.py::a", 9.0), Test("tests/log/test_z.py::a", 1.0)
    near = Test("tests/log/test_z.py::b", 5.0)
    cheap, dear = Test("tests/doors/test_d.py::b", 2.0), Test("tests/doors/test_d.py::a", 3.0)
    run = {cheap.name, dear.name, near.name}
    assert candidates(run, set(), "anabranch/_log/x.py", [other, dear, cheap, near, own]) == [own, near, cheap, dear]


def test_files_come_with_the_modules_own_first_then_by_what_their_tests_take() -> None:
    own, dear, cheap = (Test(f"tests/{file}.py::test", cost) for file, cost in (("log/test_x", 9), ("b", 5), ("a", 1)))
    more = Test("tests/a.py::other", 1)
    assert files_of([dear, cheap, more, own], "anabranch/_log/x.py") == [own.file, cheap.file, dear.file]


def test_a_line_that_runs_on_import_only_is_judged_by_all_tests_of_the_module() -> None:
    own, module = Test("tests/log/test_x.py::a", 9.0), Test("tests/doors/test_d.py::a", 3.0)
    folder, far = Test("tests/log/test_z.py::a", 1.0), Test("tests/spark/test_s.py::a", 1.0)
    found = candidates(set(), {module.name}, "anabranch/_log/x.py", [far, folder, module, own])
    assert found == [own, module, folder]


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("anabranch/_log/x.py", "tests/log/test_x.py"),
        ("anabranch/_protocol/stats/__init__.py", "tests/protocol/stats/test_stats.py"),
    ],
)
def test_tests_mirror_the_package(path: str, file: str) -> None:
    assert mirrored(path) == file


def names(chosen: Choice) -> list[list[str]]:
    return [[test.name for test in each] for each in chosen.rounds]


def test_tests_without_a_jvm_go_first_in_a_short_round_and_a_long_one() -> None:
    tests = [Test("a", 1.0), Test("b", 2.0, True), Test("c", FIRST), Test("d", 30.0, True)]
    assert names(choice(tests, 100.0)) == [["a"], ["c"], ["b", "d"]]


def test_tests_beyond_the_budget_are_counted() -> None:
    tests = [Test(str(number), 9.0, number % 2 == 1) for number in range(8)]
    chosen = choice(tests, 40.0)
    assert (names(chosen), chosen.left) == ([["0"], ["2"], ["1", "3"]], 4)


def test_one_test_is_run_even_if_it_takes_more_than_the_budget() -> None:
    assert names(choice([Test("a", 500.0)], 40.0)) == [["a"]]


def test_tests_of_a_file_stay_together() -> None:
    tests = [Test(name, 0.1) for name in ("a::1", "b::1", "a::2")]
    assert names(choice(tests, 40.0)) == [["a::1", "a::2", "b::1"]]


@pytest.mark.parametrize(("line", "lines"), [(2, [2, 3]), (3, [2, 3]), (4, [4]), (6, [5, 6])])
def test_a_line_belongs_to_the_innermost_statement(line: int, lines: list[int]) -> None:
    source = "\nif (a and\n        b):\n    c = 1\n    d = (1 +\n         2)\n"
    assert list(statement_lines(source, line)) == lines


FIRST_MUTANT, SECOND_MUTANT = ROOMS["log"][0], ROOMS["spark"][0]
KILL = Verdict("failed", "tests/test_a.py::a", 2.0, 9, 0, 9)
SURVIVAL = Verdict("survived", "", 2.0, 9, 3, 8)


def test_verdicts_are_kept_until_the_package_changes(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    Results(file, "one").add(FIRST_MUTANT, ["- a", "+ b"], TEST, KILL)
    assert Results(file, "one").of(FIRST_MUTANT) == Judged(FIRST_MUTANT, ["- a", "+ b"], {TEST: KILL})
    with pytest.raises(ValueError, match="has changed"):
        Results(file, "two")


def test_the_table_counts_what_each_tier_kills() -> None:
    judged = [
        Judged(FIRST_MUTANT, [], {TEST: KILL}),
        Judged(SECOND_MUTANT, [], {TEST: SURVIVAL, TEST_ALL: KILL}),
        Judged(SECOND_MUTANT, [], {TEST: SURVIVAL, TEST_ALL: SURVIVAL}),
    ]
    assert table(judged, (TEST, TEST_ALL)).splitlines()[2:] == [
        "| log | 1 | 1 (100.0 %) | 0 (0.0 %) | 0 (0.0 %) |",
        "| spark | 2 | 0 (0.0 %) | 1 (50.0 %) | 1 (50.0 %) |",
        "| all | 3 | 1 (33.3 %) | 1 (33.3 %) | 1 (33.3 %) |",
    ]


def test_a_survivor_is_shown_with_its_change() -> None:
    judged = [Judged(FIRST_MUTANT, [], {TEST: KILL}), Judged(SECOND_MUTANT, ["- a", "+ b"], {TEST: SURVIVAL})]
    said = "anabranch/_spark/y.py:1 AddNot (8 tests run it, 9 were tried, 3 are beyond the budget)"
    assert survivors(judged).splitlines() == [said, "    - a", "    + b"]


@pytest.mark.slow
def test_pytest_runs_the_chosen_tests_in_their_order_and_says_which_failed(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    lines = [f"def test_{name}(): print('ran {name}'); assert {name!r} != 'b'" for name in "abc"]
    (tmp_path / "test_it.py").write_text("\n".join(lines))
    chosen, said = tmp_path / "chosen", tmp_path / "said"
    chosen.write_text(json.dumps(["test_it.py::test_c", "test_it.py::test_b"]))
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment = {**own, in_pytest.TESTS: str(chosen), in_pytest.SAID: str(said), "PYTHONPATH": str(ROOT)}
    plugins = ["-p", "tools.mutants.in_pytest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-s", "--tb=no", *plugins, "-n", "0"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert re.findall(r"ran (\w)", done.stdout) == ["c", "b"]
    assert list(map(json.loads, said.read_text().splitlines())) == ["test_it.py::test_b"]


@pytest.mark.slow
def test_a_run_of_pytest_within_a_test_takes_nothing_away_from_what_is_measured(tmp_path: Path) -> None:
    """It inherits what says where, and so would put its own lines in the place of those of the run around it."""
    pytest.importorskip("coverage")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    environment = {**os.environ, in_pytest.COVERAGE: str(tmp_path / "lines"), "PYTHONPATH": str(ROOT)}
    (tmp_path / "lines").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "tools.mutants.in_pytest", "-p", "no:cacheprovider", "-n", "0"]
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert len(list((tmp_path / "lines").glob("lines.*"))) == 2


def test_a_copy_gives_a_file_another_text_for_a_while_and_the_checkout_none(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("1")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    copy = Copy(root, tmp_path / "copy")
    with copy.changed("a.py", "2"):
        assert [(folder / "a.py").read_text() for folder in (root, copy.tree)] == ["1", "2"]
    assert (copy.tree / "a.py").read_text() == "1"
