"""What a session says of buckets reaches our own client, through the doors, and only while one of them is used."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.sessions.file_settings import settings_of, use_session_settings, uses_session_settings
from anabranch._storage.store_settings import bucket_options, call_options
from anabranch.commands.opening import open_log
from tests.storage import moto_s3
from tests.support.planted import SECRET

pytestmark = [
    pytest.mark.spark,
    pytest.mark.classic("Spark Connect shows no setting whose name looks like that of a secret"),
]

KEYS = {"fs.s3a.access.key": "KEY", "fs.s3a.secret.key": SECRET}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in list(os.environ):
        if key.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(key)


@pytest.fixture
def told(spark: Any) -> Any:
    """A session of its own, in which a test may say what it likes."""
    return spark.newSession()


def say(spark: Any, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def test_a_setting_of_the_session_counts_before_that_of_its_context(told: Any) -> None:
    say(told, {"spark.hadoop.fs.s3a.endpoint": "context", "spark.hadoop.fs.s3a.endpoint.region": "r", "spark.x": "y"})
    assert settings_of(told, ("fs.s3a.",)) == {"fs.s3a.endpoint": "context", "fs.s3a.endpoint.region": "r"}
    say(told, {"fs.s3a.endpoint": "own"})
    assert settings_of(told, ("fs.s3a.",))["fs.s3a.endpoint"] == "own"


def test_a_command_asks_for_no_secret_that_it_does_not_need_so_that_no_log_has_it(
    told: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(told, {**KEYS, "spark.hadoop.fs.azure.account.key": SECRET})
    with caplog.at_level(logging.DEBUG, "py4j"):
        anabranch.append(f"{tmp_path}/t", [{"id": 1}], spark=told)
        assert settings_of(told, ("fs.gs.",)) == {}
        assert anabranch.read(f"{tmp_path}/t", spark=told).count() == 1
    assert any(record.name.startswith("py4j") for record in caplog.records)
    assert SECRET not in caplog.text
    caplog.clear()
    assert settings_of(told, ("fs.s3a.",))["fs.s3a.secret.key"] == SECRET


def test_two_sessions_do_not_know_of_each_other(told: Any, spark: Any) -> None:
    say(told, KEYS)
    with use_session_settings(told):
        assert bucket_options("s3", "lake", {})["access_key_id"] == "KEY"
        with use_session_settings(spark):
            assert bucket_options("s3", "lake", {}) == {}
    assert bucket_options("s3", "lake", {}) == {}


def test_the_methods_of_a_door_speak_for_its_session_and_for_what_it_was_given(told: Any) -> None:
    @uses_session_settings
    class Door:
        def __init__(self) -> None:
            self._spark, self._file_settings = told, KEYS

        def said(self) -> tuple[dict[str, str], dict[str, str]]:
            """Both."""
            return bucket_options("s3", "lake", {}), call_options()

    options, handed = Door().said()
    assert (options["secret_access_key"], handed) == (SECRET, KEYS)
    assert Door.said.__doc__ == "Both."


def test_the_doors_open_a_bucket_as_the_session_says(told: Any) -> None:
    with moto_s3.serving() as server:
        say(told, {**KEYS, "fs.s3a.endpoint": server["AWS_ENDPOINT"], "fs.s3a.path.style.access": "true"})
        place = "s3a://bucket/t"
        anabranch.append(place, [{"id": 1}], spark=told)
        with anabranch.appender(place, spark=told) as appender:
            assert appender.append([{"id": 2}]) == 1
        assert DeltaTable.isDeltaTable(told, place)
        assert DeltaTable.forPath(told, place).history().count() == 2
        assert anabranch.sql(told, f"DESCRIBE HISTORY delta.`{place}`").count() == 2
        DeltaTable.createOrReplace(told).location(f"{place}2").addColumn("id", "BIGINT").execute()
        with use_session_settings(told):
            assert open_log(place).snapshot().version == 1


def test_who_has_no_session_hears_nothing_of_it(told: Any) -> None:
    say(told, KEYS)
    with use_session_settings(told):
        inside = open_log("s3a://bucket/t").store
    assert open_log("s3a://bucket/t").store.bucket is not inside.bucket  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "settings", [{"fs.s3a.access.key": SECRET}, {**KEYS, "fs.s3a.assumed.role.arn": "arn"}, {**KEYS, "fs.s3a.x": "y"}]
)
def test_hadoop_conf_that_our_client_cannot_follow_is_refused_without_a_request(
    spark: Any, settings: dict[str, str]
) -> None:
    for call in (
        lambda: DeltaTable.forPath(spark, "s3a://bucket/t", settings),
        lambda: anabranch.install(spark).read.format("delta").options(**settings).load("s3a://bucket/t"),
    ):
        with pytest.raises((errors.NotBuilt, errors.InvalidOption)) as refused:
            call()
        assert SECRET not in str(refused.value)


def test_options_of_a_new_table_are_no_settings_of_its_bucket(spark: Any) -> None:
    text = "CREATE TABLE delta.`s3a://bucket/t` (id INT) USING delta OPTIONS ('fs.s3a.endpoint.region' = 'r')"
    with pytest.raises(errors.NotBuilt, match=r"fs\.s3a\.endpoint\.region"):
        anabranch.sql(spark, text)


def test_storage_options_that_spark_cannot_be_told_are_refused(spark: Any) -> None:
    with pytest.raises(errors.NotBuilt, match="proxy_url"):
        anabranch.read("s3a://bucket/t", storage_options={"proxy_url": "http://proxy"}, spark=spark)


def test_hadoop_conf_that_is_no_mapping_is_refused_without_its_value(spark: Any) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        DeltaTable.forPath(spark, "s3a://bucket/t", SECRET)  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)
