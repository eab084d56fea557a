"""What a session says of a bucket, and what counts more."""

from __future__ import annotations

import os
import threading
from contextvars import copy_context
from pathlib import Path

import pytest

from anabranch._storage import open_store
from anabranch._storage.obstore_options import canonical_option
from anabranch._storage.store_settings import (
    adopt_settings,
    bucket_options,
    call_options,
    export_settings,
    use_settings,
)
from anabranch.errors import InvalidOption, NotBuilt, UnknownStore
from tests.support.patience import started
from tests.support.planted import SECRET

ONE, OTHER = object(), object()
KEYS = {"fs.s3a.access.key": "session's", "fs.s3a.secret.key": SECRET, "fs.s3a.endpoint.region": "eu-west-1"}
SAID = {"access_key_id": "session's", "secret_access_key": SECRET, "region": "eu-west-1"}
OWN = {"fs.s3a.access.key": "given", "fs.s3a.secret.key": SECRET}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in list(os.environ):
        if key.startswith(("AWS_", "AZURE_", "GOOGLE_", "HADOOP_")):
            monkeypatch.delenv(key)


def asked(options: dict[str, str] | None = None, scheme: str = "s3") -> dict[str, str]:
    return bucket_options(scheme, "lake", options or {})


def test_a_session_counts_within_its_block_only() -> None:
    assert asked() == {}
    with use_settings(ONE, lambda _: KEYS):
        assert asked() == SAID
        with use_settings(OTHER, lambda _: {"fs.s3a.access.key": "other's", "fs.s3a.secret.key": "s"}):
            assert asked()["access_key_id"] == "other's"
        assert asked() == SAID
    assert asked() == {}


def test_a_session_is_asked_once_in_a_block_and_only_of_a_bucket() -> None:
    calls: list[int] = []
    with use_settings(ONE, lambda _: calls.append(1) or KEYS):  # type: ignore[func-returns-value]
        open_store("/data/t")
        assert calls == []
        asked()
        with use_settings(ONE, lambda _: pytest.fail("it was asked")):
            assert asked() == SAID
    assert calls == [1]


def test_another_thread_hears_of_it_where_it_is_handed_on() -> None:
    found: list[dict[str, str]] = []
    with use_settings(ONE, lambda _: KEYS):
        for run in (copy_context().run, lambda work: work()):
            thread = threading.Thread(target=run, args=(lambda: found.append(asked()),))
            started(thread)
    assert found == [SAID, {}]


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "aws_skip_signature"])
def test_where_the_environment_has_credentials_nothing_of_a_session_is_used(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable.upper(), "x")
    with use_settings(ONE, lambda _: KEYS):
        assert asked() == {}


def test_a_region_of_the_environment_counts_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    with use_settings(ONE, lambda _: KEYS):
        assert asked() == {name: SAID[name] for name in ("access_key_id", "secret_access_key")}


def test_keys_of_a_session_are_not_sent_to_another_server_than_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://h")
    with use_settings(ONE, lambda _: {**KEYS, "fs.s3a.endpoint": "http://session"}):
        assert asked() == {}
    with use_settings(ONE, lambda _: KEYS):
        assert asked() == SAID


def test_keys_of_the_environment_are_not_sent_to_amazon_where_a_session_names_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment's")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for name in ("fs.s3a.endpoint", "fs.s3a.bucket.lake.endpoint"):
        with use_settings(ONE, lambda _, name=name: {**KEYS, name: "http://minio:9000"}):
            with pytest.raises(InvalidOption, match="AWS_ENDPOINT_URL") as refused:
                open_store("s3a://lake/t")
            assert SECRET not in str(refused.value)
            assert asked({"access_key_id": "k", "secret_access_key": "s"}) == {}, "the call says who asks"
    for name, server in (("fs.s3a.bucket.other.endpoint", "http://h"), ("fs.s3a.endpoint", "s3.amazonaws.com")):
        with use_settings(ONE, lambda _, name=name, server=server: {**KEYS, name: server}):
            assert asked() == {}, "the bucket is Amazon's for the session, too"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"])
def test_an_environment_with_keys_and_a_server_counts_alone(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment's")
    monkeypatch.setenv(variable, "http://mine")
    with use_settings(ONE, lambda _: {**KEYS, "fs.s3a.endpoint": "http://session"}):
        assert asked() == {}


@pytest.mark.parametrize("option", ["AWS_ACCESS_KEY_ID", "endpoint", "skip_signature"])
def test_where_options_say_who_or_where_nothing_of_a_session_is_used(option: str) -> None:
    with use_settings(ONE, lambda _: KEYS):
        assert asked({option: "x"}) == {}
        assert asked({"timeout": "60s"}) == SAID
        assert "region" not in asked({"region": "eu-north-1"})


def test_what_is_given_counts_more_than_the_session_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ROLE_ARN"):
        monkeypatch.setenv(name, "environment's")
    with use_settings(ONE, lambda _: KEYS), use_settings(ONE, lambda _: KEYS, OWN):
        assert asked() == {**SAID, "access_key_id": "given"}
        assert call_options() == OWN
    assert call_options() == {}


@pytest.mark.parametrize("variable", ["AWS_SESSION_TOKEN", "AWS_ENDPOINT", "AWS_SKIP_SIGNATURE"])
def test_a_variable_is_never_mixed_with_what_is_given(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, SECRET)
    with use_settings(ONE, lambda _: KEYS, OWN), pytest.raises(InvalidOption) as refused:
        asked()
    assert refused.value.facts["value"] == canonical_option("aws", variable)


def test_a_region_may_be_given_beside_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment's")
    with use_settings(ONE, lambda _: KEYS, {"fs.s3a.endpoint.region": "eu-north-1"}):
        assert asked() == {"region": "eu-north-1"}


def test_what_is_given_and_cannot_be_followed_is_refused_by_name() -> None:
    with use_settings(ONE, lambda _: KEYS, {"fs.s3a.encryption.algorithm": "SSE-KMS"}):
        with pytest.raises(NotBuilt, match=r"encryption\.algorithm"):
            asked()
        assert open_store("/data/t").url == "file:///data/t", "on a disk there is nothing to follow"
    with (
        use_settings(ONE, lambda _: {}, {"fs.s3a.access.key": SECRET}),
        pytest.raises(InvalidOption, match=r"secret\.key"),
    ):
        asked()


def test_a_session_whose_settings_our_client_does_not_know_is_not_refused() -> None:
    with use_settings(ONE, lambda _: {**KEYS, "fs.s3a.encryption.algorithm": "SSE-KMS"}):
        assert asked() == SAID


def test_a_session_is_asked_for_the_settings_of_the_kind_of_bucket_that_is_opened() -> None:
    prefixes: list[tuple[str, ...]] = []
    with use_settings(ONE, lambda names: prefixes.append(names) or {}):  # type: ignore[func-returns-value]
        asked()
        asked(scheme="abfss")
        asked(scheme="hdfs")
        open_store("/data/t")
    assert prefixes == [("fs.s3a.", "fs.s3."), ("fs.azure.",), ("dfs.", "fs.hdfs.", "fs.viewfs.")]


def test_buckets_of_two_sessions_are_two() -> None:
    def opened(key: str) -> object:
        with use_settings(object(), lambda _: {"fs.s3a.access.key": key, "fs.s3a.secret.key": SECRET}):
            return open_store("s3a://lake/t").bucket  # type: ignore[attr-defined]

    assert opened("one") is opened("one")
    assert opened("one") is not opened("other")


def test_a_key_file_that_is_not_here_is_not_used(tmp_path: object) -> None:
    here = f"{tmp_path}/key.json"
    with open(here, "w", encoding="utf-8") as file:
        file.write("{}")
    for path, found in ((here, {"service_account": here}), ("/on/the/server.json", {})):
        with use_settings(object(), lambda _, path=path: {"fs.gs.auth.service.account.json.keyfile": path}):
            assert asked(scheme="gs") == found


def test_hdfs_hears_of_a_session_unless_the_environment_names_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_settings(ONE, lambda _: {"dfs.nameservices": "lake"}):
        assert asked(scheme="hdfs") == {"dfs.nameservices": "lake"}
        monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
        assert asked(scheme="hdfs") == {}


def test_another_process_can_be_told_the_same() -> None:
    with use_settings(ONE, lambda _: {**KEYS, "fs.azure.account.key": "other"}, OWN):
        handed, here = export_settings("s3"), asked()
        assert export_settings("file") == {}
    assert handed == {"settings": {**KEYS, **OWN}, "given": OWN}

    def there() -> dict[str, str]:
        adopt_settings(**handed)
        return asked()

    assert copy_context().run(there) == here == {**SAID, "access_key_id": "given"}


def test_what_is_told_is_never_shown() -> None:
    with use_settings(ONE, lambda _: KEYS, OWN):
        asked()
        shown = repr([value for variable, value in copy_context().items() if variable.name == "anabranch_told"])
        assert "StoreSettings" in shown
        assert SECRET not in shown
        assert SECRET not in repr(open_store("s3a://lake/t"))


S3_HOME, HERE = "s3a://lake/user/ann", "file:/srv/jvm"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("folder", "path", "url"),
    [
        (S3_HOME, "/data/t", "s3://lake/data/t"),
        (S3_HOME, "//data//t/", "s3://lake/data/t"),
        (S3_HOME, "t", "s3://lake/user/ann/t"),
        (S3_HOME, "./../t", "s3://lake/user/t"),
        (S3_HOME, "../../../t", "s3://lake/t"),
        (S3_HOME, "/", "s3://lake"),
        (S3_HOME, "/data/50% of what? a#b", "s3://lake/data/50% of what? a#b"),
        (S3_HOME, Path("/data/t"), "s3://lake/data/t"),
        (S3_HOME, "s3a:///data/t", "s3://lake/data/t"),
        (S3_HOME, "s3a:/data/t", "s3://lake/data/t"),
        (S3_HOME, "file:/data/t", "file:///data/t"),
        (S3_HOME, "file:///data/t", "file:///data/t"),
        (S3_HOME, "memory://told/data/t", "memory://told/data/t"),
        (S3_HOME, "s3://pond/data/t", "s3://pond/data/t"),
        ("abfss://c@a.dfs.core.windows.net", "/t", "abfss://c@a.dfs.core.windows.net/t"),
        (HERE, "t", "file:///srv/jvm/t"),
        (HERE, "../t", "file:///srv/t"),
        (HERE, "/data/t", "file:///data/t"),
        ("file:///srv/a folder", "t", "file:///srv/a folder/t"),
    ],
)
def test_a_path_without_a_scheme_begins_in_the_working_folder_of_the_session(
    folder: str, path: str | Path, url: str
) -> None:
    with use_settings(ONE, lambda _: {}, folder=lambda: folder):
        store = open_store(path)
        assert store.url == url
        assert open_store(store.url).url == url
    assert open_store("/data/t").url == "file:///data/t"
    assert open_store("t").url == f"file://{os.getcwd()}/t"


def test_the_working_folder_is_asked_for_once_in_a_block_and_only_by_paths_without_a_scheme() -> None:
    calls: list[int] = []
    with use_settings(ONE, lambda _: {}, folder=lambda: calls.append(1) or HERE):  # type: ignore[func-returns-value]
        open_store("file:///data/t")
        assert calls == []
        for _ in range(3):
            open_store("/data/t")
    assert calls == [1]


@pytest.mark.parametrize("folder", ["ofs://om/volume", "dbfs:/", "http://host/folder"])
def test_a_path_on_a_file_system_that_is_not_known_is_never_taken_for_one_of_the_disk(folder: str) -> None:
    with (
        use_settings(ONE, lambda _: {}, folder=lambda: folder),
        pytest.raises(UnknownStore, match="for Spark it is on"),
    ):
        open_store("/data/t")


@pytest.mark.parametrize("folder", [HERE, "abfss://c@a.dfs.core.windows.net/", S3_HOME.replace("s3a", "gs")])
def test_a_url_without_a_server_is_refused_where_the_session_has_another_file_system(folder: str) -> None:
    with use_settings(ONE, lambda _: {}, folder=lambda: folder), pytest.raises(UnknownStore, match="must stand after"):
        open_store("s3a:///data/t")
