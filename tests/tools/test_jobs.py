"""Which libraries are run, how a session of theirs is built on each engine, and in what two runs differ."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.jobs import comparison, library, runs, sources
from tools.jobs.comparison import Reason, compare
from tools.jobs.library import Library
from tools.jobs.plugins.one_engine import DELTA, Outcomes, ending, settings
from tools.jobs.runs import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jobs.md"
PASSED, FAILED = Outcome("passed"), Outcome("failed", "why")


# --- the libraries ----------------------------------------------------------------------------------------------


def test_at_least_six_libraries_are_run_and_each_is_pinned_by_a_hash() -> None:
    every = library.libraries()

    assert len(every) >= 6
    assert {len(each.pin) for each in every} <= {40, 64}
    assert all(set(each.pin) <= set("0123456789abcdef") for each in every)


@pytest.mark.parametrize(
    "facts", [{}, {"version": "1.0"}, {"sha256": "ab", "version": "1", "repository": "a/b", "commit": "c"}]
)
def test_a_library_comes_from_one_place_that_holds_it_to_a_hash(facts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="some: give version and sha256, or repository and commit"):
        Library("some", ("tests",), **facts)


def test_no_name_chooses_every_library_and_an_unknown_one_is_an_error() -> None:
    every = library.libraries()

    assert library.chosen([], every) == every
    assert library.chosen([every[1].name], every) == (every[1],)
    with pytest.raises(KeyError):
        library.chosen(["of nobody"], every)


def test_the_page_names_each_library_and_each_kind_of_difference() -> None:
    page = PAGE.read_text()

    assert [each.name for each in library.libraries() if f"| {each.name} |" not in page] == []
    assert [kind for kind, place in comparison.kinds().items() if kind not in page or place not in page] == []


# --- a source from git ------------------------------------------------------------------------------------------


def repository(folder: Path) -> str:
    """A repository with a commit, by its id."""
    (folder / "lib" / "tests").mkdir(parents=True)
    (folder / "lib" / "tests" / "test_one.py").write_text("PLACE = '/app/tests'\n")
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e"]
    for each in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *each], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
def test_a_source_from_git_is_that_of_the_commit_and_names_the_place_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commit = repository(tmp_path / "git" / "someone" / "lib")
    some = Library("some", ("tests",), repository="someone/lib", commit=commit, folder="lib", at="/app/")
    (tmp_path / "git" / "someone" / "lib" / "lib" / "later.py").write_text("")

    folder = sources.laid_out(some, sources.fetched(some, str(tmp_path / "git")), tmp_path / "run")

    assert (folder / "tests" / "test_one.py").read_text() == f"PLACE = '{folder}/tests'\n"
    assert not (folder / "later.py").exists()


# --- a session --------------------------------------------------------------------------------------------------

ASKED = {**DELTA, "spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0", "spark.sql.shuffle.partitions": "7"}


def test_on_anabranch_a_session_is_built_without_the_settings_of_delta() -> None:
    built = settings(ASKED, "anabranch", "a.jar")

    assert not {*DELTA, "spark.jars", "spark.jars.packages"} & set(built)
    assert built["spark.sql.shuffle.partitions"] == "7"


def test_on_anabranch_other_extensions_of_spark_stay() -> None:
    assert settings({"spark.sql.extensions": "org.other.Extension"}, "anabranch", "")["spark.sql.extensions"] == (
        "org.other.Extension"
    )


def test_on_delta_spark_a_session_has_its_settings_and_takes_the_jars_from_a_folder() -> None:
    for asked in (ASKED, {}):
        built = settings(asked, "delta-spark", "a.jar")

        assert DELTA.items() <= built.items()
        assert built["spark.jars"] == "a.jar"
        assert "spark.jars.packages" not in built


@pytest.mark.parametrize(("engine", "jars"), [("anabranch", "their.jar"), ("delta-spark", "their.jar,a.jar")])
def test_the_jars_that_a_library_brings_stay(engine: str, jars: str) -> None:
    assert settings({"spark.jars": "their.jar"}, engine, "a.jar")["spark.jars"] == jars


# --- outcomes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phases", "ended"),
    [
        ({"setup": "passed", "call": "passed", "teardown": "passed"}, "passed"),
        ({"setup": "passed", "call": "passed", "teardown": "failed"}, "failed"),
        ({"setup": "failed", "teardown": "passed"}, "failed"),
        ({"setup": "skipped", "teardown": "passed"}, "skipped"),
    ],
)
def test_a_test_ends_as_its_worst_phase(phases: dict[str, str], ended: str) -> None:
    assert ending(phases) == ended


def report(when: str, outcome: str, said: str = "") -> SimpleNamespace:
    longrepr = SimpleNamespace(reprcrash=SimpleNamespace(message=said)) if said else None
    return SimpleNamespace(nodeid="t.py::test_a", when=when, outcome=outcome, longrepr=longrepr)


def test_what_a_test_said_is_kept_though_its_teardown_says_nothing(tmp_path: Path) -> None:
    written = Outcomes(tmp_path / "outcomes")
    for each in (report("setup", "passed"), report("call", "failed", "boom"), report("teardown", "passed")):
        written.pytest_runtest_logreport(each)

    assert runs.read(tmp_path / "outcomes") == {"t.py::test_a": Outcome("failed", "boom")}


def test_a_run_that_wrote_nothing_has_no_outcomes(tmp_path: Path) -> None:
    assert runs.read(tmp_path / "none") == {}


# --- differences ------------------------------------------------------------------------------------------------

REASON = Reason("some", "a kind", "why", ("t.py::test_a", "t.py::test_many*"))


def test_only_what_passes_on_delta_spark_and_not_here_differs() -> None:
    theirs = {"t.py::test_a": PASSED, "t.py::test_b": PASSED, "t.py::test_c": FAILED, "t.py::test_gone": PASSED}
    ours = {"t.py::test_a": FAILED, "t.py::test_b": PASSED, "t.py::test_c": FAILED, "t.py::test_d": PASSED}

    found = compare("some", theirs, ours, [REASON])

    assert found.differing == {"t.py::test_a": REASON, "t.py::test_gone": None}
    assert found.unexplained == ("t.py::test_gone",)
    assert (found.theirs, found.ours, found.both) == (3, 2, 1)


def test_a_reason_holds_for_its_library_and_its_tests_only() -> None:
    assert REASON.holds_for("some", "t.py::test_many[1]")
    assert not REASON.holds_for("other", "t.py::test_a")
    assert not REASON.holds_for("some", "t.py::test_ab")


def test_a_reason_that_holds_for_no_test_any_more_is_named() -> None:
    assert compare("some", {"t.py::test_a": PASSED}, {"t.py::test_a": PASSED}, [REASON]).idle == (REASON,)


def test_the_reasons_are_of_five_kinds_at_most_and_of_libraries_that_are_run() -> None:
    kinds, known = comparison.kinds(), comparison.reasons()

    assert len(kinds) <= 5
    assert {each.kind for each in known} <= set(kinds)
    assert {each.library for each in known} <= {each.name for each in library.libraries()}


@pytest.mark.parametrize(
    ("theirs", "ours", "well"),
    [
        ({"t.py::test_a": PASSED}, {"t.py::test_a": FAILED}, True),
        ({"t.py::test_a": PASSED, "t.py::test_b": PASSED}, {"t.py::test_a": FAILED}, False),
        ({"t.py::test_a": PASSED}, {"t.py::test_a": PASSED}, False),
        ({"t.py::test_a": FAILED}, {"t.py::test_a": FAILED}, False),
        ({}, {}, False),
    ],
    ids=["each has a reason", "one has none", "a reason for nothing", "nothing passes", "nothing ran"],
)
@pytest.mark.whole
def test_a_comparison_is_well_where_tests_ran_and_differences_and_reasons_meet(
    theirs: dict[str, Outcome], ours: dict[str, Outcome], well: bool
) -> None:
    assert compare("some", theirs, ours, [REASON]).is_well is well


def test_the_table_counts_differences_with_and_without_a_reason() -> None:
    found = compare("some", {"t.py::test_a": PASSED, "t.py::test_b": PASSED}, {}, [REASON])

    assert comparison.table([found]).splitlines()[-1] == "| some | 2 | 0 | 0 | 1 | 1 |"
