"""How settings are read: cheaply, and never changed but for what the session itself asks for. No JVM but for one."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anabranch._protocol import settings
from anabranch._protocol.session_settings import current, has_settings
from anabranch._spark.sessions import settings as reading
from anabranch._spark.sessions.session import HIDDEN
from anabranch._spark.sessions.settings import find_settings, honour_settings, honours, list_settings, listing
from anabranch.commands.idempotence import application_of
from anabranch.errors import UnknownSetting, UnsupportedSetting
from anabranch.errors.process_state import forget


class Conf:
    """A session's settings, which count how they are asked for."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.gets, self.lists, self.asked = values, 0, 0, list[str]()

    def get(self, name: str, default: Any = None) -> Any:
        self.gets += 1
        self.asked.append(name)
        return self.values.get(name, default)

    def unset(self, name: str) -> None:
        del self.values[name]


class Session:
    """A session as far as its settings go."""

    def __init__(self, **values: str) -> None:
        self.conf = Conf({settings.PREFIX + name.replace("__", "."): value for name, value in values.items()})

    def sql(self, text: str, args: Any = None) -> SimpleNamespace:
        assert text == "SET"
        self.conf.lists += 1
        rows = [(name, HIDDEN if "secret" in name else value) for name, value in self.conf.values.items()]
        return SimpleNamespace(collect=lambda: rows)


@pytest.fixture(autouse=True)
def nobody_was_warned() -> None:
    forget("settings warned of")


def test_all_settings_are_listed_once_a_second_and_else_only_the_named_ones_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, now = Session(commitInfo__userMetadata="note"), [100.0]
    monkeypatch.setattr(reading.time, "monotonic", lambda: now[0])
    for moment in (100.0, 100.5, 100.9, 101.2):
        now[0] = moment
        with honour_settings(session, "DELETE"):  # type: ignore[arg-type]
            assert current().user_metadata == "note"
    assert session.conf.lists == 2
    assert session.conf.gets == 2 * len(settings.NAMED)


def test_a_door_within_a_door_asks_no_second_time_and_behind_them_nothing_is_said() -> None:
    session = Session(commitInfo__userMetadata="note")
    with honour_settings(session, "MERGE"), honour_settings(session, "DELETE"):  # type: ignore[arg-type]
        assert has_settings()
    assert session.conf.lists + session.conf.gets == 1
    assert not has_settings()
    assert current().user_metadata is None


def test_a_command_lists_the_settings_once_and_the_next_one_anew() -> None:
    session = Session(commitInfo__userMetadata="note")
    with honour_settings(session, "DELETE"):  # type: ignore[arg-type]
        assert reading.list_settings(session) == reading.list_settings(session) == session.conf.values  # type: ignore[arg-type]
        assert session.conf.lists == 1
        assert reading.list_settings(Session()) == {}  # type: ignore[arg-type]
    session.conf.values["parquet.encryption.footer.key"] = "k"
    with honour_settings(session, "DELETE"):  # type: ignore[arg-type]
        assert "parquet.encryption.footer.key" in reading.list_settings(session)  # type: ignore[arg-type]
    session.conf.values.clear()
    assert reading.list_settings(session) == {}  # type: ignore[arg-type]


def test_of_settings_that_spark_hides_only_those_that_are_needed_are_asked_for() -> None:
    session = Session()
    session.conf.values |= {"fs.s3a.secret.key": "k", "fs.azure.secret": "a", "fs.s3a.endpoint": "e"}
    assert find_settings(session, ("fs.s3a.",)) == {"fs.s3a.secret.key": "k", "fs.s3a.endpoint": "e"}  # type: ignore[arg-type]
    assert session.conf.asked == ["fs.s3a.secret.key"]


def test_the_version_is_unset_only_where_it_was_used_and_the_command_ended_well() -> None:
    said = {"write__txnAppId": "a", "write__txnVersion": "1", "write__txnVersion__autoReset__enabled": "true"}
    session = Session(**said)
    with honour_settings(session, "OPTIMIZE"):  # type: ignore[arg-type]
        pass
    with pytest.raises(ZeroDivisionError), honour_settings(session, "DELETE"):  # type: ignore[arg-type]
        assert application_of() is None or 1 / 0
    assert session.conf.values[settings.TXN_VERSION] == "1"
    with honour_settings(session, "DELETE"):  # type: ignore[arg-type]
        application_of()
    assert settings.TXN_VERSION not in session.conf.values
    other = Session(**{**said, "write__txnVersion__autoReset__enabled": "false"})
    with honour_settings(other, "DELETE"):  # type: ignore[arg-type]
        application_of()
    assert settings.TXN_VERSION in other.conf.values


@pytest.mark.parametrize(
    "wrong",
    [
        {"replaceWhere__dataColumns__enabled": "yes"},
        {"autoCompact__minNumFiles": "-1"},
        {"autoCompact__enabled": "sometimes"},
        {"delete__deletionVectors__persistent": "false"},
    ],
)
def test_a_setting_that_cannot_be_held_stops_the_method_of_a_door_before_it_begins(wrong: dict[str, str]) -> None:
    class Door:
        spark = Session(**wrong)

        @honours("DELETE")
        def act(self) -> None:
            raise AssertionError("it began")

    with pytest.raises(UnsupportedSetting):
        Door().act()


def test_an_unknown_setting_is_warned_of_once_in_a_process() -> None:
    def run() -> None:
        with honour_settings(Session(nope="1"), "DELETE"):  # type: ignore[arg-type]
            pass

    with pytest.warns(UnknownSetting, match="not documented by Delta Lake"):
        run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()


@pytest.mark.spark
@pytest.mark.classic("a server lists them in one call")
def test_while_a_command_waits_its_settings_are_listed_as_they_are_then(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LISTED_S", math.inf)
    with honour_settings(spark, "WRITE"):
        pass  # the first of a session lists them at once
    try:
        with honour_settings(spark, "WRITE"):
            with listing(spark):
                pass
            spark.conf.set("spark.anabranch.later", "x")
            assert "spark.anabranch.later" not in list_settings(spark)
            assert "spark.app.name" in list_settings(spark)
        with listing(spark):  # without a command there is nobody to keep them for
            pass
        assert "spark.anabranch.later" in list_settings(spark)
    finally:
        spark.conf.unset("spark.anabranch.later")
