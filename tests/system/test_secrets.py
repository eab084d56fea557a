"""Secrets in locations and options: used where they can be, shown and stored nowhere."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app
from anabranch._storage import open_store
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert
from anabranch.errors.secrets import without_secrets
from anabranch.testing import ArrowEngine
from tests.storage import fake_s3
from tests.support.counting import Counting, counting
from tests.support.planted import SECRET, Watch
from tests.support.raw_logs import PROTOCOL, add, metadata, text_of
from tests.support.worlds import World

ROWS = [{"id": 1}, {"id": 2}]
PLACES = [
    "{scheme}://KEY:{secret}@{host}/{path}",
    "{scheme}://{secret}@{host}/{path}",
    "{scheme}://KEY:{secret}/with/slashes@{host}/{path}",
    "{scheme}://{host}/{path}?sig={secret}",
    "{scheme}://{host}/{path}?sv=2024&sig={secret}&se=1",
    "{scheme}://{host}/{path}?token={secret}",
    "{scheme}://{host}/{path}?X-Amz-Credential={secret}&X-Amz-Signature={secret}",
    "{scheme}://{host}/{path}#access_token={secret}",
]
each_place = pytest.mark.parametrize("place", PLACES)


def spelled(place: str, scheme: str = "memory", host: str = "", path: str = "t") -> str:
    return place.format(scheme=scheme, secret=SECRET, host=host or uuid4().hex, path=path)


@pytest.fixture
def server() -> Iterator[Counting]:
    with counting() as server:
        yield server


# -- the one spelling --------------------------------------------------------------------------------------------------


@each_place
@pytest.mark.parametrize("scheme", ["s3", "S3A", "gs", "abfss", "http", "https", "memory", "hdfs", "webhdfs"])
def test_a_location_is_spelled_without_its_secrets(place: str, scheme: str) -> None:
    if scheme == "abfss" and place.startswith("{scheme}://{secret}@"):
        return  # that is a container's name
    location = spelled(place, scheme, "host")
    assert SECRET not in without_secrets(location)
    assert SECRET not in without_secrets(f"There is no '{location}', and no {location} either")
    found = without_secrets(location)
    if scheme != "abfss":  # of which the container is no secret
        assert found == f"{scheme}://host/t"
    assert without_secrets(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "/data/a:/b@c",
        "file:///data/t?token=5",
        "s3://bucket/what?/p=a@b/x.parquet",
        "abfss://container@account.dfs.core.windows.net/t",
        "http://[::1]:80/t",
        "s3://bucket/t@v3",
        "a = 'x' AND b > 5",
        "memory://m:8/t",
    ],
)
def test_what_holds_no_secret_is_spelled_as_it_is(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("file://u:{s}@h/x", "file://h/x"),
        ("file://u:a/{s}@h/x", "file://h/x"),
        ("//u:{s}@h/x", "//h/x"),
        ("//u:a/{s}@h/x", "//h/x"),
        ("https://u:a@b/{s}@h/t", "https://h/t"),
        ("https://u:a\n{s}@h/t", "https://h/t"),
        ("https://h/t\n?sig={s}", "https://h/t"),
        ("s3://b/t ? sig={s}", "s3://b/t"),
        ("memory://n/t;sig={s}", "memory://n/t"),
        ("memory://n/t;a=1;sig={s}", "memory://n/t"),
        ("memory://n/t?s%69g={s}", "memory://n/t"),
        ("memory://n/t?s%2569g={s}", "memory://n/t"),
        ("memory://n/t%3Fa=1%26sig%3D{s}", "memory://n/t"),
        (" s3://KEY:{s}@lake/t", " s3://lake/t"),
        ("file:///home/ s3:/KEY:{s}@lake/t", "file:///home/ s3:/lake/t"),
    ],
)
def test_a_rare_spelling_hides_no_secret(location: str, shown: str) -> None:
    assert without_secrets(location.format(s=SECRET)) == shown
    if "a\n" not in location:  # else nobody can tell it from prose
        assert SECRET not in without_secrets(f"the path '{location.format(s=SECRET)}' names no file")
    assert SECRET not in str(errors.UnknownStore(location=location.format(s=SECRET), reason="no").facts)


def _encoded(text: str, which: int) -> str:
    """A text of which each letter whose bit is set is percent-encoded."""
    return "".join(f"%{ord(sign):02X}" if which >> i & 1 else sign for i, sign in enumerate(text))


_SCHEMES = st.sampled_from(
    ["s3", "S3A", "gs", "az", "hdfs", "webhdfs", "memory", "oss", "https", "http", "jdbc:postgresql", "file"]
)
_BEFORE = st.sampled_from(["", " ", "in '", "x: "])
_NOISE = st.text(st.sampled_from("abcAZ09-_.~+"), max_size=6)
_KEYS = st.sampled_from(["sig", "Signature", "token", "X-Amz-Security-Token", "password", "client_secret", "api_key"])


@given(
    _SCHEMES,
    _NOISE,
    _NOISE,
    st.sampled_from(["", "/", "@", ":", "%40", "/@"]),
    _BEFORE,
)
def test_a_password_in_a_url_is_hidden_however_it_is_written(
    scheme: str, user: str, path: str, sign: str, before: str
) -> None:
    said = f"{before}{scheme}://{user}:a{sign}{SECRET}@host/{path}"
    found = without_secrets(said)
    assert SECRET not in found
    assert without_secrets(found) == found
    assert found.startswith(before + scheme)


@given(
    _SCHEMES.filter(lambda each: each != "file"),
    _NOISE,
    _KEYS,
    st.integers(0, 1 << 20),
    st.sampled_from(["?", "#", ";", "?a=1&", "?a=1;", "\n?", " ?", "?&", "%3F", "%3fa=1%26"]),
    _BEFORE,
)
def test_a_parameter_of_a_url_is_hidden_however_it_is_written(
    scheme: str, path: str, key: str, which: int, sign: str, before: str
) -> None:
    said = f"{before}{scheme}://host/{path}{sign}{_encoded(key, which)}={SECRET}"
    found = without_secrets(said)
    assert found == without_secrets(found) == f"{before}{scheme}://host/{path}"


def test_a_location_whose_password_has_no_clear_end_is_opened_by_nobody(tmp_path: Path) -> None:
    with pytest.raises(errors.UnknownStore, match=r"memory://place/t"):
        open_store(f"memory://u:a@b/{SECRET}@place/t")
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    held = add("s3://u:a@b/hidden@place/x.parquet")
    (log / f"{0:020}.json").write_text(text_of(PROTOCOL, metadata(), held))
    with pytest.raises((errors.CorruptLog, errors.FileOutsideTable), match=r"s3://place/") as refused:
        Clone(str(tmp_path / "t"), str(tmp_path / "c"), shallow=True).run()
    assert "hidden" not in str(refused.value.facts)


@given(st.text(max_size=40))
def test_any_text_is_spelled_once_and_for_all(text: str) -> None:
    found = without_secrets(text)
    assert without_secrets(found) == found


# -- stores ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@each_place
@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "memory", "http", "https"])
def test_a_store_s_url_holds_no_secret_and_opens_it_again(place: str, scheme: str) -> None:
    store = open_store(spelled(place, scheme, "host"))
    assert store.url == f"{scheme.replace('s3a', 's3')}://host/t"
    assert SECRET not in repr(store)
    assert open_store(store.url) == store


def test_a_token_of_the_web_goes_with_each_request_and_is_shown_by_none(server: Counting) -> None:
    server.data = b"x"
    store = open_store(f"{server.url}/t?token={SECRET}")
    assert open_store(store.url).get("a") == b"x"
    assert server.requests == [f"GET /t/a?token={SECRET}"]


def test_what_is_not_used_of_a_location_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        open_store(f"memory://KEY:{SECRET}@{uuid4().hex}/t")
    assert "not used" in caplog.text
    assert SECRET not in caplog.text


def test_an_option_s_secret_is_in_no_message() -> None:
    for options in ({"account_key": SECRET, "account_name": "a/b"}, {"sas_token": SECRET, "account_name": "a/b"}):
        with pytest.raises(errors.AnabranchError) as told:
            open_store("az://container/t", options).get("a")
        assert SECRET not in everything(told.value)
    with pytest.raises(errors.UnknownStore):
        open_store("s3://bucket/t", {"secret_key_of_mine": SECRET})


@each_place
@pytest.mark.slow
def test_a_store_that_fails_shows_no_secret(place: str, server: Counting) -> None:
    server.server_close()
    store = open_store(spelled(place, "http", server.url.removeprefix("http://")), {"timeout": "200ms"})
    with pytest.raises(errors.AnabranchError) as told:
        store.get("a")
    assert SECRET not in everything(told.value)


@each_place
def test_a_store_of_no_known_kind_shows_no_secret(place: str) -> None:
    with pytest.raises(errors.AnabranchError) as told:
        open_store(spelled(place, "ftp", "host")).get("a")
    assert SECRET not in everything(told.value)


def test_a_bucket_that_refuses_shows_no_secret() -> None:
    with fake_s3.serving() as s3:
        store = open_store(f"s3://KEY:{SECRET}@bucket/t", s3.options)
        s3.fault = lambda: 403
        with pytest.raises(errors.AnabranchError) as told:
            store.put_if_absent("a", b"x")
        assert SECRET not in everything(told.value)


def everything(error: BaseException) -> str:
    """All that an error shows or carries, tracebacks too."""
    facts = getattr(error, "facts", {})
    return f"{error} {error!r} {facts} {pickle.dumps(error)!r} {''.join(traceback.format_exception_only(error))}" + (
        everything(error.__cause__) if error.__cause__ else ""
    )


# -- doors -------------------------------------------------------------------------------------------------------------


def stored(host: str) -> bytes:
    """Every name and byte under a host in memory."""
    store = open_store(f"memory://{host}")
    return b"".join(entry.name.encode() + store.get(entry.name) for entry in store.list_all())


@pytest.mark.slow
@each_place
def test_no_door_stores_or_shows_a_secret(place: str, caplog: pytest.LogCaptureFixture) -> None:
    host = uuid4().hex
    source, copy, deep = (spelled(place, "memory", host, name) for name in ("source", "copy", "deep"))
    shown = [str(Append(source, ROWS).run())]
    Write(source, pa.Table.from_pylist(ROWS), "overwrite").run(ArrowEngine())
    World(source).delete("id = 1")
    shown += [str(Clone(source, copy, shallow=True).run()), str(Clone(source, deep).run())]
    assert World(copy).rows() == World(deep).rows() == [{"id": 2}]
    for path in (source, copy, deep):
        shown += [str(anabranch.history(path)), str(anabranch.check(path, deep=True)), str(anabranch.fsck(path))]
        shown += [str(anabranch.files(path)), str(anabranch.vacuum(path)), repr(World(path).log.snapshot())]
        shown += [CliRunner().invoke(app, [*words, path, "--json"]).output for words in CLI]
    shown += [CliRunner().invoke(app, ["clone", source, spelled(place, "memory", host, "third"), "--json"]).output]
    assert SECRET not in "".join(shown)
    assert SECRET.encode() not in stored(host)
    assert SECRET not in caplog.text


CLI = (["history"], ["detail"], ["check"], ["fsck"])
FAILING: dict[str, Callable[[str], Any]] = {
    "read": lambda path: World(path).rows(),
    "history": anabranch.history,
    "check": anabranch.check,
    "files": anabranch.files,
    "fsck": anabranch.fsck,
    "generate": anabranch.generate,
    "vacuum": anabranch.vacuum,
    "restore": lambda path: anabranch.restore(path, version=0),
    "clone": lambda path: anabranch.clone(path, f"{path}x", shallow=True),
    "convert": lambda path: Convert(path).run(),
    "travel": lambda path: anabranch.check(path, version=7),
}


@pytest.mark.slow
@each_place
def test_no_error_of_a_door_shows_a_secret(place: str) -> None:
    for door in FAILING.values():
        for scheme in ("memory", "ftp"):
            with pytest.raises(errors.AnabranchError) as told:
                door(spelled(place, scheme))
            assert SECRET not in everything(told.value)


@pytest.mark.slow
@each_place
def test_the_command_line_shows_no_secret(place: str) -> None:
    for words in CLI:
        result = CliRunner().invoke(app, [*words, spelled(place)])
        assert result.exit_code
        assert SECRET not in result.output + str(result.exception)


@each_place
def test_a_converted_folder_stores_no_secret(place: str) -> None:
    host = uuid4().hex
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    open_store(f"memory://{host}/t").put("a.parquet", sink.getvalue().to_pybytes())
    Convert(spelled(place, "memory", host)).run()
    assert SECRET.encode() not in stored(host)


def test_a_secret_in_a_stranger_s_log_is_not_copied_by_a_clone() -> None:
    host = uuid4().hex
    Append(f"memory://{host}/origin", ROWS).run()
    [file] = World(f"memory://{host}/origin").log.snapshot().files.to_pylist()
    path = f"memory://KEY:{SECRET}@{host}/origin/{file['path']}"
    log = text_of(PROTOCOL, metadata(), add(path, size=file["size"])).encode()
    open_store(f"memory://{host}/source").put("_delta_log/00000000000000000000.json", log)
    Clone(f"memory://{host}/source", f"memory://{host}/a/copy", shallow=True).run()
    Clone(f"memory://{host}/source", f"memory://{host}/a/deep").run()
    for clone in ("copy", "deep"):
        assert SECRET.encode() not in stored(f"{host}/a/{clone}")
        assert len(World(f"memory://{host}/a/{clone}").log.snapshot().files) == 1


def test_commands_and_refused_options_show_none() -> None:
    command = Clone(f"http://me:{SECRET}@h/t", "/t", storage_options={"secret_access_key": SECRET})
    assert SECRET not in repr(command)
    error = errors.InvalidOption(option="fs.s3a.secret.key", value=SECRET, reason="there is no such option.")
    assert SECRET not in everything(error)


# -- the watch ---------------------------------------------------------------------------------------------------------


def test_the_watch_finds_what_shows_a_secret(tmp_path: Path) -> None:
    watch = Watch()
    watch.emit(logging.LogRecord("anabranch.x", logging.INFO, "", 0, "%s", (SECRET,), None))
    assert "a log record of anabranch.x" in watch.told()
    watch.look_at_error(ValueError(SECRET))
    assert "ValueError" in watch.told()
    folder = tmp_path / "t" / "_delta_log"
    folder.mkdir(parents=True)
    commit = folder / "00000000000000000000.json"
    commit.write_text(SECRET)
    watch.look_at_files(tmp_path)
    assert "the commit" in watch.told()
    assert not watch.told()
    commit.unlink()
