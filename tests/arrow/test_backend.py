"""The engine over Arrow: what an attempt leaves behind, and ids of rows wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch._arrow import backend, finding, writing
from anabranch._arrow.site import site_without_spark
from anabranch._arrow.writing import put_all
from anabranch._protocol.actions import empty_files
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.types import Field, Struct
from anabranch._storage import open_store
from anabranch.commands.opening import file_set
from anabranch.errors import NeedsSpark, StagedFilesRemain, StoreError

TRACKED = {"delta.enableRowTracking": "true"}


def ids(table: Table) -> dict[int, int]:
    """The id of each row, by its number."""
    snapshot = table.snapshot()
    files = file_set(snapshot)
    assert files.tracked is not None
    columns = ["id", files.tracked.row_id]
    found = [each.rows for each in finding.fetch_file_rows(site_without_spark(snapshot.store), files, None, columns)]
    return dict(zip(*(pa.Table.from_batches(found).column(name).to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_rows_that_are_packed_keep_their_ids_wherever_they_lie(tmp_path: Path, place: str) -> None:
    path = f"memory://{uuid4()}/t" if place == "memory" else str(tmp_path / "t")
    anabranch.append(path, [{"id": i, "x": i} for i in range(9)], properties=TRACKED)
    table = anabranch.table(path)
    for first in (10, 20):
        table.append([{"id": first + i, "x": 0} for i in range(9)])
    table.update("id % 5 = 0", {"x": "x + 1"})
    before = ids(table)
    assert table.optimize().compact().metrics["numAddedFiles"] == 1
    assert ids(table) == before


def test_the_rows_of_many_small_files_are_computed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, computed = str(tmp_path), list[int]()
    for first in range(0, 60, 3):
        properties = TRACKED if not first else None
        anabranch.append(path, [{"id": first + i, "x": i} for i in range(3)], properties=properties)
    table, assign = anabranch.table(path), backend.assign_values
    monkeypatch.setattr(
        backend, "assign_values", lambda rows, *given: computed.append(len(rows)) or assign(rows, *given)
    )
    before = ids(table)
    table.update("x > 0", {"x": "id * 2"})
    assert computed == [40]
    assert ids(table) == before
    rows = table.to_arrow().to_pylist()
    assert all(row["x"] == (row["id"] * 2 if row["id"] % 3 else 0) for row in rows)


# -- attempts ----------------------------------------------------------------------------------------------------------


def files_of(path: Path) -> FileSet:
    return FileSet(path.as_uri(), Struct((Field("id", "long"),)), (), empty_files(), {})


def failing(count: int) -> Iterator[pa.Table]:
    """So many tables, and then an error."""
    for each in range(count):
        yield pa.table({"id": pa.array([each], pa.int64())})
    raise ValueError("no more")


def test_of_an_attempt_that_fails_no_file_is_left(tmp_path: Path) -> None:
    site, put = site_without_spark(open_store(tmp_path.as_uri())), list[str]()
    with pytest.raises(ValueError, match="no more"):
        put_all(site, "job", (put.append("") or each for each in failing(20)), files_of(tmp_path), most_rows=1)
    assert len(put) == 20
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_what_cannot_be_removed_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path.as_uri())

    def stays(store: Any, name: str) -> None:
        raise StoreError(operation="delete", path=name, reason="not allowed")

    monkeypatch.setattr(type(store), "delete", stays)
    with pytest.raises(StagedFilesRemain, match="could not be removed"):
        put_all(site_without_spark(store), "job", failing(9), files_of(tmp_path), most_rows=1)


def test_a_command_that_takes_spark_after_it_has_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anabranch.append(str(tmp_path / "t"), [{"id": i, "name": "x" * i} for i in range(40)])
    table, written = anabranch.table(str(tmp_path / "t")), list[Any]()
    put = writing.put_rows
    monkeypatch.setattr(writing, "put_rows", lambda *given: (written.append(given), put(*given)))
    table.append([{"id": 99, "name": "2024-13-45"}])
    with pytest.raises(NeedsSpark):
        table.update(None, {"name": "CAST(CAST(CASE WHEN id = 99 THEN name END AS DATE) AS STRING)"})
    assert not list((tmp_path / "t").glob("job-*/*.parquet"))
    assert table.check().is_clean
