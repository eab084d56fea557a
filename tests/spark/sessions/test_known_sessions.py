"""Known sessions: an installed session is installed by whichever object it is reached, and its clones are."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._spark.sessions.known_sessions import (
    SETTING,
    PerSession,
    are_installed,
    formats_of,
    leave_mark,
    note_installed,
    note_uninstalled,
    session_of,
)
from tests.support.tiers import examples

BOTH = frozenset({"anabranch", "delta"})


class Conf:
    """The settings of a session, which count how often they are asked for."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.asked, self.is_away = values, 0, False

    def get(self, name: str, default: str | None = None) -> str | None:
        self.asked += 1
        if self.is_away:
            raise ConnectionError("the session has ended")
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value

    def unset(self, name: str) -> None:
        self.values.pop(name, None)


class Wrapper:
    """An object that stands for a session."""

    def __init__(self, conf: Conf | None = None) -> None:
        self.conf = conf or Conf({})

    def again(self) -> Any:
        return Wrapper(self.conf)

    def clone(self) -> Any:
        return Wrapper(Conf(dict(self.conf.values)))


@pytest.fixture
def spark() -> Any:
    return Wrapper()


def test_every_object_of_an_installed_session_knows_it_and_no_other_session_does(spark: Any) -> None:
    early = spark.again()
    assert not formats_of(early)
    note_installed(spark)
    assert {formats_of(each) for each in (spark, early, spark.again(), spark.clone(), spark.clone().clone())} == {BOTH}
    assert not formats_of(Wrapper())  # type: ignore[arg-type]
    assert session_of(early) is session_of(spark) is session_of(spark.again())
    assert session_of(spark.clone()) is not session_of(spark)
    note_uninstalled(spark.again())
    assert not any(map(formats_of, (spark, early, spark.again())))
    assert SETTING not in spark.conf.values


def test_a_clone_is_a_session_of_its_own(spark: Any) -> None:
    note_installed(spark)
    clone = spark.clone()
    note_uninstalled(clone)
    assert (formats_of(clone), formats_of(clone.again())) == (frozenset(), frozenset())
    assert formats_of(spark) == formats_of(spark.again()) == BOTH
    other = spark.clone()
    note_uninstalled(spark)
    assert formats_of(other) == BOTH


def test_a_clone_alone_is_no_reason_to_keep_anything_wrapped(spark: Any) -> None:
    before = are_installed()
    note_installed(spark)
    kept = spark.clone()
    assert formats_of(kept)
    assert are_installed()
    following = kept.again()
    del kept
    gc.collect()
    assert formats_of(following) == BOTH  # a batch's session, of which the object of the batch before is gone
    note_uninstalled(spark)
    assert are_installed() == before


def test_a_session_stays_installed_when_the_object_is_gone_by_which_it_was(spark: Any) -> None:
    note_installed(spark.again())
    gc.collect()
    assert formats_of(spark) == BOTH
    assert are_installed()


def test_each_object_asks_its_session_once(spark: Any) -> None:
    note_installed(spark)
    known, other = spark.again(), Wrapper()
    for each in (spark, known, other):
        formats_of(each)  # type: ignore[arg-type]
    asked = spark.conf.asked, other.conf.asked
    for _ in range(10):
        for each in (spark, known, other):
            formats_of(each)  # type: ignore[arg-type]
    assert (spark.conf.asked, other.conf.asked) == asked


def test_a_session_that_does_not_answer_is_as_it_was(spark: Any) -> None:
    note_installed(spark)
    spark.conf.is_away = True
    fresh = spark.again()
    assert formats_of(spark) == BOTH
    assert not formats_of(fresh)
    spark.conf.is_away = False
    assert formats_of(fresh) == BOTH


def test_who_unsets_the_setting_uninstalls_nothing_and_who_sets_another_installs_nothing(spark: Any) -> None:
    note_installed(spark)
    spark.conf.values.clear()  # RESET
    assert formats_of(spark) == BOTH
    late = spark.again()
    assert not formats_of(late)
    leave_mark(spark)
    assert formats_of(spark.again()) == BOTH
    note_installed(spark)
    assert formats_of(late) == BOTH
    other = Wrapper(Conf({SETTING.rpartition(".")[0]: "1", f"{SETTING.rpartition('.')[0]}.of_another_process": "1"}))
    assert not formats_of(other)  # type: ignore[arg-type]


def test_what_is_kept_of_a_session_is_found_by_each_of_its_objects(spark: Any) -> None:
    kept: PerSession[str] = PerSession()
    note_installed(spark)
    kept[spark.again()] = "gone with its object"
    early = spark.again()
    kept[early] = "views"
    assert kept[spark] == kept[spark.again()] == "views"
    assert spark.clone() not in kept


STEPS = st.lists(
    st.tuples(st.sampled_from(["again", "clone", "new", "install", "uninstall", "look", "drop"]), st.integers(0, 30)),
    max_size=30,
)


@given(steps=STEPS)
@settings(max_examples=examples(500, 60), deadline=None)
def test_whatever_is_done_in_whatever_order_each_object_knows_what_its_session_is(
    steps: list[tuple[str, int]],
) -> None:
    """A session is installed by `install`, or as the clone of one that is, until it is uninstalled."""
    wrappers: list[Any] = [Wrapper()]
    truth: dict[Conf, bool] = {}
    for step, number in steps:
        one = wrappers[number % len(wrappers)]
        match step:
            case "again":
                wrappers.append(one.again())
            case "clone":
                wrappers.append(one.clone())
                truth[wrappers[-1].conf] = truth.get(one.conf, False)
            case "new":
                wrappers.append(Wrapper())
            case "install":
                note_installed(one)
                truth[one.conf] = True
            case "uninstall":
                note_uninstalled(one)
                truth[one.conf] = False
            case "look":
                assert bool(formats_of(one)) == truth.get(one.conf, False)
            case "drop" if len(wrappers) > 1:
                wrappers.remove(one)
    for each in wrappers:
        assert bool(formats_of(each)) == truth.get(each.conf, False)
        for other in wrappers:
            if formats_of(each) and formats_of(other):
                assert (session_of(each) is session_of(other)) == (each.conf is other.conf)


def test_a_session_that_is_installed_is_not_told_so_again(spark: Any) -> None:
    """Jobs install at every turn, and some servers refuse settings of a session that runs."""
    note_installed(spark)
    mark = spark.conf.values[SETTING]
    note_installed(spark)
    assert spark.conf.values[SETTING] == mark
    spark.conf.unset(SETTING)
    note_installed(spark)
    assert spark.conf.values[SETTING] != mark
    clone = spark.clone()
    note_installed(clone)
    assert clone.conf.values[SETTING] != spark.conf.values[SETTING]
    assert formats_of(spark) == formats_of(clone) == BOTH
