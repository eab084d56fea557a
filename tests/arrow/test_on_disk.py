"""Files that lie on no disk are brought to one, and what comes of them to the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch._arrow.on_disk import on_disk
from anabranch._arrow.site import Site, site_without_spark
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._storage.local import LocalStore
from anabranch.commands.opening import file_set, open_log
from anabranch.errors import MissingDataFile, StoreError


def table_at(path: str) -> tuple[Site, FileSet]:
    """The site and the files of a new table of two files, of which the first has a deleted row."""
    anabranch.append(path, [{"id": 1}, {"id": 2}])
    anabranch.append(path, [{"id": 3}])
    anabranch.table(path).delete("id = 1")
    snapshot = open_log(path).snapshot()
    return site_without_spark(snapshot.store), file_set(snapshot)


@pytest.fixture
def bucket() -> tuple[Site, FileSet]:
    return table_at(f"memory://{uuid4()}/t")


def leave_files(site: Site, files: FileSet, then: Callable[[], object]) -> None:
    """Leave two files for the table."""
    with on_disk(site, files, "new") as (disk, _):
        disk.store.put("new/a.parquet", b"x")
        disk.store.put("new/b.parquet", b"x")
        then()


def test_files_on_a_disk_are_used_where_they_are(tmp_path: Path) -> None:
    site, files = table_at(str(tmp_path))
    with on_disk(site, files, "new") as found:
        assert found == (site, files)


def test_others_are_copied_with_their_deleted_rows_and_the_copies_go(bucket: tuple[Site, FileSet]) -> None:
    site, files = bucket
    with on_disk(site, files) as (disk, copies):
        assert isinstance(disk.store, LocalStore)
        place = Path(disk.store.root)
        names = copies.files["path"].to_pylist()
        assert sorted(x for name in names for x in pq.read_table(place / name)["id"].to_pylist()) == [1, 2, 3]
        (marked,) = copies.vectors
        assert pq.read_table(place / marked)["id"].to_pylist() == [1, 2]
        assert list(copies.vectors.values()) == list(files.vectors.values())
    assert not place.exists()


def test_what_the_block_leaves_in_the_folders_comes_to_the_table(bucket: tuple[Site, FileSet]) -> None:
    site, files = bucket
    with on_disk(site, files, "job/new", None, "job/moves") as (disk, _):
        assert isinstance(disk.store, LocalStore)
        for name in ("job/new/a.parquet", "job/other/b.parquet"):
            path = Path(disk.store.root, name)
            path.parent.mkdir(parents=True)
            path.write_bytes(b"x" * 10)
    assert [each.name for each in site.store.list_all("job")] == ["job/new/a.parquet"]
    assert site.store.get("job/new/a.parquet") == b"x" * 10


def test_of_a_block_that_fails_nothing_comes_to_the_table(bucket: tuple[Site, FileSet]) -> None:
    site, files = bucket
    with pytest.raises(ZeroDivisionError):
        leave_files(site, files, lambda: 1 / 0)
    assert site.store.list_all("new") == []


def test_of_files_that_cannot_all_be_put_none_stays(
    bucket: tuple[Site, FileSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, files = bucket
    put = type(site.store).put_stream

    def failing(store: object, name: str, chunks: object) -> None:
        if name.endswith("b.parquet"):
            raise StoreError(name=name, root="t", reason="it is full")
        put(store, name, chunks)  # type: ignore[arg-type]

    with pytest.raises(StoreError):
        leave_files(site, files, lambda: monkeypatch.setattr(type(site.store), "put_stream", failing))
    assert site.store.list_all("new") == []


def test_a_file_that_is_not_there_is_told(bucket: tuple[Site, FileSet]) -> None:
    site, files = bucket
    site.store.delete(files.files["path"].to_pylist()[1])
    with pytest.raises(MissingDataFile, match="is not there"), on_disk(site, files):
        pytest.fail("nothing may be done")
