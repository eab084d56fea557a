"""What every store must do, written once: a backend subclasses ``StoreContract`` and says where its stores are.

A subclass gives a fixture ``location``, a fresh place for each test. Handles are opened anew in every thread, as
separate writers would open them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from anabranch._storage import Entry, Store, open_store
from anabranch.errors import AlreadyExists, NotFound, StoreError
from tests.storage.racing import LOG, Tally, author, processes_racing, threads_racing, version, wins
from tests.support.drawing import SLOW
from tests.support.patience import end
from tests.support.tiers import examples

ODD_NAMES = [
    "a b",
    " leading and trailing ",
    "p=1/x%20y",
    "p=a%2Fb/part",
    "100%",
    "what?#fragment",
    "staged#1",
    "é/ü/日本",
    "a+b&c=d;e,f",
    "~$'()*@!",
    "back\\slash",
    "..double.dots..",
    ".hidden",
    "x.tmp",
]

HOSTILE_NAMES = ["", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a/./b", ".", "a//b", "a/", "nul\0byte"]

calls_by_name = pytest.mark.parametrize(
    "call",
    [
        lambda store, name: store.get(name),
        lambda store, name: store.read_range(name, 0, 1),
        lambda store, name: store.head(name),
        lambda store, name: store.put_if_absent(name, b"x"),
        lambda store, name: store.put(name, b"x"),
        lambda store, name: store.put_stream(name, [b"x"]),
        lambda store, name: store.put_hint(name, b"x"),
        lambda store, name: store.delete(name),
    ],
    ids=["get", "read_range", "head", "put_if_absent", "put", "put_stream", "put_hint", "delete"],
)

# Leaves and folders never share a name, since a disk cannot hold both.
leaves = st.sampled_from(["0", "00", "1", "10", "2", "9", "A", "a", "a b", "a%20", "b#1", "é", "~", ".x"])
folders = st.sampled_from(["d/", "d1/", "D/", "é é/"])
names = st.builds(lambda parts, leaf: "".join(parts) + leaf, st.lists(folders, max_size=3), leaves)
file_names = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=40)
# One store serves all examples of a test, which clean up; and each backend runs the same test.
_shared = [*SLOW, HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
relaxed = settings(max_examples=examples(40, 8), suppress_health_check=_shared)


def assert_each_version_has_one_winner(store: Store, tallies: Sequence[Tally], versions: int) -> None:
    """Each loser was told, and from then on saw the winner's bytes, which still stand."""
    authors = [author(store.get(version(number)), number) for number in range(versions)]
    assert [tally.authors for tally in tallies] == [authors] * len(tallies)
    for writer, tally in enumerate(tallies):
        assert tally.won == [number for number in range(versions) if authors[number] == writer]
    assert [entry.name for entry in store.list_all()] == [version(number) for number in range(versions)]


class StoreContract:
    """Subclass it, name the class ``Test…``, and give a fixture ``location``.

    Args:
        versions_raced: how many versions all racing writers try to create.
        bound_to_one_process: why other processes cannot take part, where they cannot.
        confused: letters that the service takes for others, so that each name with one of them is refused.
    """

    versions_raced = 200
    bound_to_one_process = ""
    confused = ""

    @pytest.fixture
    def location(self) -> str:
        raise AssertionError("a backend says where its stores are")

    @pytest.fixture
    def store(self, location: str) -> Store:
        return open_store(location)

    def how_many_are_raced(self) -> int:
        return examples(self.versions_raced, max(3, self.versions_raced // 16))

    # -- put if absent -------------------------------------------------------------------------------------------------

    @pytest.mark.slow
    def test_of_32_racing_threads_one_wins_each_version_and_the_others_see_it(
        self, location: str, store: Store
    ) -> None:
        versions = self.how_many_are_raced()
        assert_each_version_has_one_winner(store, threads_racing(location, versions), versions)

    @pytest.mark.slow
    def test_of_8_racing_processes_one_wins_each_version_and_the_others_see_it(
        self, location: str, store: Store
    ) -> None:
        if self.bound_to_one_process:
            pytest.skip(self.bound_to_one_process)
        versions = self.how_many_are_raced()
        assert_each_version_has_one_winner(store, processes_racing(location, versions), versions)

    def test_a_loser_changes_nothing(self, store: Store) -> None:
        store.put_if_absent("name", b"first")
        before = store.head("name")
        with pytest.raises(AlreadyExists) as told:
            store.put_if_absent("name", b"second")
        assert (told.value.name, told.value.root) == ("name", store.url)
        assert store.get("name") == b"first"
        assert store.head("name") == before

    def test_a_hint_is_put_where_there_is_none_and_replaces_nothing(self, store: Store) -> None:
        store.put_hint("folder/hint", b"first")
        for data in (b"first", b"second"):
            with pytest.raises(AlreadyExists):
                store.put_hint("folder/hint", data)
        assert store.get("folder/hint") == b"first"
        assert [entry.name for entry in store.list_all("folder")] == ["folder/hint"]

    @pytest.mark.parametrize("sizes", [[], [0], [3], [3, 0, 4], [8 << 20, 8 << 20, 5]], ids=str)
    def test_a_stream_of_chunks_is_put_as_a_whole_and_replaces(self, store: Store, sizes: list[int]) -> None:
        chunks = [bytes([number]) * size for number, size in enumerate(sizes)]
        store.put("folder/name", b"before")
        store.put_stream("folder/name", iter(chunks))
        assert store.get("folder/name") == b"".join(chunks)
        assert [entry.name for entry in store.list_all("folder")] == ["folder/name"]

    @pytest.mark.parametrize("whole", [1, 3])
    def test_a_stream_that_breaks_off_changes_nothing(self, store: Store, whole: int) -> None:
        def broken() -> Iterator[bytes]:
            yield from [bytes(8 << 20)] * whole
            raise StoreError(name="source", root="elsewhere", reason="it broke off.")

        store.put("folder/name", b"before")
        with pytest.raises(StoreError, match="it broke off"):
            store.put_stream("folder/name", broken())
        assert store.get("folder/name") == b"before"
        assert [entry.name for entry in store.list_all("folder")] == ["folder/name"]

    def test_a_deleted_name_can_be_won_again(self, store: Store) -> None:
        store.put_if_absent("name", b"first")
        store.delete("name")
        store.put_if_absent("name", b"second")
        assert store.get("name") == b"second"

    def test_a_reader_never_sees_a_part(self, location: str, store: Store) -> None:
        data, done = bytes(range(256)) * 4096, threading.Event()
        torn: list[Entry] = []

        def read() -> None:
            handle = open_store(location)
            while not done.is_set():
                torn.extend(entry for entry in handle.list_from(LOG) if handle.get(entry.name) != data)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for number in range(10):
                store.put_if_absent(version(number), data)
                store.put(f"{LOG}replaced", data)
        finally:
            done.set()
            end(reader)
        assert not torn

    # -- the other calls -----------------------------------------------------------------------------------------------

    def test_what_was_put_is_read_by_everybody_at_once(self, location: str, store: Store) -> None:
        for put, name in ((store.put_if_absent, "a/created"), (store.put, "a/put")):
            put(name, b"bytes")
            other = open_store(location)
            assert other.get(name) == b"bytes"
            assert name in [entry.name for entry in other.list_from("a/")]
            assert other.head(name) == other.list_from(name)[0]

    def test_put_replaces(self, store: Store) -> None:
        store.put("hint", b"a longer first value")
        first = store.head("hint")
        store.put("hint", b"second")
        assert store.get("hint") == b"second"
        assert first is not None
        assert store.head("hint") != first

    def test_a_replaced_name_of_the_same_size_has_another_etag(self, store: Store) -> None:
        tags = set()
        for data in (b"one", b"two", b"six"):
            store.put("hint", data)
            entry = store.head("hint")
            assert entry is not None
            tags.add(entry.etag)
        assert len(tags) == 3

    def test_bytes_are_read_only_while_they_have_the_etag_that_was_seen(self, store: Store) -> None:
        store.put("folder/name", b"first")
        listed, seen = store.list_from("folder/")[0], store.head("folder/name")
        assert seen is not None
        assert store.get("folder/name", etag=listed.etag) == store.get("folder/name", etag=seen.etag) == b"first"
        store.put("folder/name", b"other")
        assert store.get("folder/name") == b"other"
        with pytest.raises(NotFound):
            store.get("folder/name", etag=seen.etag)

    def test_an_entry_says_size_and_time(self, store: Store) -> None:
        store.put("name", b"12345")
        entry = store.head("name")
        assert isinstance(entry, Entry)
        assert entry.size == 5
        assert entry.modified_ms > 1_700_000_000_000

    def test_nothing_and_twelve_megabytes_can_be_put(self, store: Store) -> None:
        big = bytes(range(250)) * 50_000
        for put, suffix in ((store.put_if_absent, "created"), (store.put, "put")):
            put(f"empty {suffix}", b"")
            put(f"big {suffix}", big)
            assert store.get(f"empty {suffix}") == b""
            assert store.get(f"big {suffix}") == big

    def test_an_absent_name_is_not_found(self, store: Store) -> None:
        store.put("folder/name", b"x")
        for absent in ("absent", "folder/absent", "absent/absent", "folder", "folder/name/below"):
            assert store.head(absent) is None
            first, last = partial(store.read_range, start=0), partial(store.read_range, start=-4)
            for read in (store.get, partial(first, length=4), partial(last, length=4)):
                with pytest.raises(NotFound):
                    read(absent)

    def test_delete_may_be_repeated(self, store: Store) -> None:
        store.put("folder/name", b"x")
        for name in ("folder/name", "folder/name", "never", "never/there"):
            store.delete(name)
        assert store.head("folder/name") is None

    def test_deleting_a_folder_deletes_nothing(self, store: Store) -> None:
        store.put("folder/name", b"x")
        store.delete("folder")
        assert store.get("folder/name") == b"x"

    def test_sync_takes_names_that_exist(self, store: Store) -> None:
        store.put("job/part 0", b"x")
        store.sync(["job/part 0"])
        store.sync([])

    def test_the_url_opens_the_same_store(self, store: Store) -> None:
        store.put("name", b"x")
        again = open_store(store.url)
        assert again.url == store.url
        assert not store.url.endswith("/")
        assert again.get("name") == b"x"

    # -- ranges --------------------------------------------------------------------------------------------------------

    @relaxed
    @given(data=st.binary(max_size=20), start=st.integers(-25, 25), length=st.integers(0, 25))
    def test_a_range_is_a_slice(self, store: Store, data: bytes, start: int, length: int) -> None:
        store.put("ranged", data)
        assert store.read_range("ranged", start, length) == data[start:][:length]

    def test_a_negative_length_is_refused(self, store: Store) -> None:
        store.put("name", b"x")
        with pytest.raises(ValueError, match="-1 bytes"):
            store.read_range("name", 0, -1)

    # -- lists ---------------------------------------------------------------------------------------------------------

    def test_a_list_begins_at_its_start(self, store: Store) -> None:
        for number in (0, 1, 2, 9, 10, 11):
            store.put(version(number), b"%d" % number)
        assert [entry.name for entry in store.list_from(version(9))] == [version(9), version(10), version(11)]
        assert [entry.name for entry in store.list_from(f"{LOG}{3:020}")] == [version(9), version(10), version(11)]

    def test_a_list_keeps_to_its_folder(self, store: Store) -> None:
        for name in ("a", "log/1", "log/1.d/x", "log/2", "log/z/y/x", "log1/1", "log 2/1", "z"):
            store.put(name, b"")
        assert [entry.name for entry in store.list_from("log/")] == ["log/1", "log/2"]
        assert [entry.name for entry in store.list_from("")] == ["a", "z"]
        assert [entry.name for entry in store.list_from("b")] == ["z"]
        assert [entry.name for entry in store.list_all("log")] == ["log/1", "log/1.d/x", "log/2", "log/z/y/x"]
        assert store.list_all("log/") == store.list_all("log")

    def test_an_absent_folder_is_empty(self, store: Store) -> None:
        assert store.list_all() == store.list_from("") == store.list_from(LOG) == store.list_from("a/b/c") == []
        store.put("name", b"x")
        assert store.list_from("name/") == store.list_all("name/below") == []

    @pytest.mark.parametrize("start", ["log/.", "log/..", "log/.x", "log/..x"])
    def test_a_list_may_begin_anywhere(self, store: Store, start: str) -> None:
        store.put("log/1", b"")
        assert [entry.name for entry in store.list_from(start)] == ["log/1"]

    @relaxed
    @given(data=st.data(), kept=st.sets(names, max_size=12))
    def test_lists_agree_with_a_sorted_set(self, store: Store, data: st.DataObject, kept: set[str]) -> None:
        for entry in store.list_all():
            store.delete(entry.name)
        for name in kept:
            store.put(name, b"")
        start = data.draw(names | st.sampled_from(["", "d/", "D/d/", *sorted(kept)]))
        folder = start[: start.rfind("/") + 1]
        beside = [name for name in kept if name.rpartition("/")[0] == folder.rstrip("/")]
        assert [entry.name for entry in store.list_from(start)] == sorted(name for name in beside if name >= start)
        assert [entry.name for entry in store.list_all()] == sorted(kept)
        assert [entry.name for entry in store.list_all(folder)] == sorted(n for n in kept if n.startswith(folder))

    # -- names ---------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_a_name_means_its_characters_or_is_refused(self, store: Store, name: str) -> None:
        if set(name) & set(self.confused):
            self.assert_is_refused(store, name)
            return
        store.put_if_absent(name, name.encode())
        assert store.get(name) == name.encode()
        assert store.read_range(name, 0, 2) == name.encode()[:2]
        assert store.list_from(name) == store.list_all() == [store.head(name)]
        assert not wins(store, name, b"again")
        store.delete(name)
        assert store.list_all() == []

    def assert_is_refused(self, store: Store, name: str) -> None:
        for call in (store.get, store.head, store.delete, partial(store.put, data=b""), partial(wins, store, data=b"")):
            with pytest.raises(StoreError, match="for another name") as told:
                call(name)
            assert type(told.value) is StoreError
        assert store.list_all() == store.list_from(name) == []

    @relaxed
    @given(name=file_names.filter(lambda name: name not in (".", "..")))
    def test_any_printable_name_can_be_kept(self, store: Store, name: str) -> None:
        assume(not set(name) & set(self.confused))
        store.put(name, b"x")
        assert [entry.name for entry in store.list_from(name)] == [name]
        store.delete(name)

    @calls_by_name
    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_a_name_that_leaves_the_root_is_refused(
        self, store: Store, call: Callable[[Store, str], object], name: str
    ) -> None:
        with pytest.raises(StoreError, match="no name below the root"):
            call(store, name)

    @pytest.mark.parametrize("folder", ["../", "/", "/etc/", "a/../../", "a//"])
    def test_a_folder_outside_the_root_is_not_listed(self, store: Store, folder: str) -> None:
        for listing in (store.list_from, store.list_all):
            with pytest.raises(StoreError, match="no name below the root"):
                listing(folder)
