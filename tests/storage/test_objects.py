"""What a bucket's answers mean, above all when there is none."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from functools import partial

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._storage import Store, open_store
from anabranch.errors import AlreadyExists, NotFound, PutOutcomeUnknown, StoreError, StorePermissionDenied
from tests.storage.contract import relaxed
from tests.storage.fake_s3 import FakeS3, serving
from tests.storage.racing import version
from tests.support.patience import PATIENCE

NAME = version(0)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeS3]:
    with serving() as server:
        yield server


@pytest.fixture
def s3(server: FakeS3) -> FakeS3:
    server.objects.clear()
    server.requests.clear()
    server.fault = lambda: None
    return server


@pytest.fixture
def store(s3: FakeS3) -> Store:
    return open_store("s3://bucket/a table", s3.options)


# -- put if absent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "limit_s"), [("lost", PATIENCE), ("slow", 2)])
def test_a_reply_that_never_came_leaves_the_outcome_unknown_until_the_put_is_repeated(
    s3: FakeS3, store: Store, fault: str, limit_s: int
) -> None:
    faults = iter([fault])
    s3.given_up.clear()
    s3.fault = lambda: next(faults, None)
    # of the slow answer the time in which the request must reach the server, and after which the client gives up
    hasty = open_store(store.url, s3.options | {"timeout": f"{limit_s}s"})
    with pytest.raises(PutOutcomeUnknown) as told:
        hasty.put_if_absent(NAME, b"ours")
    s3.given_up.set()
    assert told.value.retryable
    assert s3.puts() == 1
    with pytest.raises(AlreadyExists):
        store.put_if_absent(NAME, b"ours")
    assert store.get(NAME) == b"ours"


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 425, 429])
def test_a_server_that_may_have_written_leaves_the_outcome_unknown(s3: FakeS3, store: Store, status: int) -> None:
    s3.fault = lambda: status
    with pytest.raises(PutOutcomeUnknown, match=f"status code: {status}"):
        store.put_if_absent(NAME, b"x")
    assert s3.puts() == 1, "a request repeated by itself could lose against itself"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, StoreError), (404, StoreError), (401, StorePermissionDenied), (403, StorePermissionDenied)],
)
def test_a_refusal_is_definite(s3: FakeS3, store: Store, status: int, kind: type[StoreError]) -> None:
    s3.fault = lambda: status
    for put in (store.put_if_absent, store.put):
        with pytest.raises(kind) as told:
            put(NAME, b"x")
        assert type(told.value) is kind
        assert f"status code: {status}" in told.value.reason
        assert "\n" not in told.value.reason


def test_a_service_that_lacks_the_condition_refuses(s3: FakeS3, store: Store) -> None:
    s3.fault = lambda: 501
    with pytest.raises(StoreError, match="status code: 501") as told:
        store.put_if_absent(NAME, b"x")
    assert type(told.value) is StoreError


@pytest.mark.parametrize("status", [409, 412])
def test_a_conflict_without_a_winner_is_no_loss(s3: FakeS3, store: Store, status: int) -> None:
    s3.fault = lambda: status
    with pytest.raises(PutOutcomeUnknown, match="shows no winner"):
        store.put_if_absent(NAME, b"x")


def test_a_conflict_with_a_winner_is_a_loss(s3: FakeS3, store: Store) -> None:
    store.put_if_absent(NAME, b"x")
    s3.fault = lambda: 409
    with pytest.raises(AlreadyExists):
        store.put_if_absent(NAME, b"x")


def test_nobody_listening_leaves_the_outcome_unknown() -> None:
    with serving() as gone:
        options = gone.options
    with pytest.raises(PutOutcomeUnknown):
        open_store("s3://bucket/t", options).put_if_absent(NAME, b"x")


# -- the other calls ---------------------------------------------------------------------------------------------------


def test_names_are_kept_under_the_root(s3: FakeS3, store: Store) -> None:
    store.put("p=a b/é#1", b"x")
    assert list(s3.objects) == ["/bucket/a%20table/p%3Da%20b/%C3%A9%231"]
    entry = store.head("p=a b/é#1")
    assert entry is not None
    assert (entry.name, entry.size, entry.modified_ms) == ("p=a b/é#1", 1, 1_735_689_600_000)


@pytest.mark.slow
@relaxed
@given(data=st.binary(max_size=12), start=st.integers(-15, 15), length=st.integers(0, 15))
def test_a_range_is_a_slice_where_an_empty_one_is_an_error(
    s3: FakeS3, store: Store, data: bytes, start: int, length: int
) -> None:
    store.put("ranged", data)
    assert store.read_range("ranged", start, length) == data[start:][:length]


@pytest.mark.parametrize(("start", "length"), [(-3, 3), (-100, 4), (-3, 100), (-1, 0)])
def test_a_range_from_the_end_works_where_the_service_has_none(
    store: Store, monkeypatch: pytest.MonkeyPatch, start: int, length: int
) -> None:
    """Azure has none."""

    def unsupported(*_: object, options: object = None) -> None:
        raise obstore.exceptions.NotSupportedError("no suffix ranges")

    store.put("name", b"0123456789")
    monkeypatch.setattr(obstore, "get", unsupported)
    assert store.read_range("name", start, length) == b"0123456789"[start:][:length]


def test_an_answer_that_spells_its_etag_in_another_way_is_not_taken_for_another_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may mark an etag as weak where it answers in another encoding."""
    get = obstore.get

    class Spelled:
        def __init__(self, found: obstore.GetResult) -> None:
            self.bytes, self.meta = found.bytes, {**found.meta, "e_tag": f"W/{found.meta['e_tag']}"}

    monkeypatch.setattr(obstore, "get", lambda *asked, **options: Spelled(get(*asked, **options)))
    store.put("name", b"first")
    seen = store.head("name")
    assert seen is not None
    assert store.get("name", etag=seen.etag) == b"first"
    store.put("name", b"other")
    with pytest.raises(NotFound):
        store.get("name", etag=seen.etag)


def test_an_absent_name_is_not_found(store: Store) -> None:
    assert store.head("absent") is None
    with pytest.raises(NotFound) as told:
        store.get("absent")
    assert (told.value.name, told.value.root) == ("absent", "s3://bucket/a table")


def test_a_name_that_obstore_cannot_spell_is_refused(store: Store) -> None:
    for call in (store.get, store.head, partial(store.put, data=b""), partial(store.put_if_absent, data=b"")):
        with pytest.raises(StoreError, match="illegal character") as told:
            call("line\nbreak")
        assert type(told.value) is StoreError


def test_a_store_says_nothing_of_its_credentials(s3: FakeS3) -> None:
    store = open_store("s3://bucket/t", s3.options | {"secret_access_key": "topsecret"})
    assert "topsecret" not in repr(store)
    s3.fault = lambda: 403
    with pytest.raises(StorePermissionDenied) as told:
        store.put("name", b"")
    assert "topsecret" not in str(told.value)


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_store_can_be_sent_to_another_process(store: Store) -> None:
    store.put("name", b"x")
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.get("name") == b"x"


def refusal_in_child(store: Store, answers: multiprocessing.SimpleQueue[str]) -> None:
    try:
        store.get("name")
    except StoreError as error:
        answers.put(error.reason)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_is_refused_instead_of_waiting_for_ever(store: Store) -> None:
    store.put("name", b"x")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=refusal_in_child, args=(store, answers))
    child.start()
    child.join(PATIENCE)
    alive = child.is_alive()
    child.kill()
    assert not alive
    assert "forked" in answers.get()
