"""A folder of Parquet files becomes a table elsewhere, which names its files or copies them; the folder stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch._protocol.layout.paths import is_absolute
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.clone import Clone
from anabranch.testing import at_phase
from tests.support.worlds import World, assert_others_agree

BY_DAY = Struct((Field("day", "string"),))
both = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


def put(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Files in folders, at a path that is hard to spell."""
    folder = tmp_path / "the files é 50%"
    put(folder, "day=mon/1.parquet", [{"id": 1}, {"id": 2}])
    put(folder, "day=tue%2F/1.parquet", [{"id": 3}])
    return folder


@pytest.fixture
def target(tmp_path: Path) -> World:
    return World(str(tmp_path / "the clone #1"))


def listing(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@both
def test_the_clone_has_the_rows_of_the_files(origin: Path, target: World, shallow: bool) -> None:
    before = listing(origin)
    done = Clone(origin, target.path, shallow, properties={"team": "a"}, parquet=BY_DAY).run()
    assert target.rows() == [{"id": 1, "day": "mon"}, {"id": 2, "day": "mon"}, {"id": 3, "day": "tue/"}]
    assert done.metrics["numCopiedFiles"] == (0 if shallow else 2)
    snapshot = target.log.snapshot()
    assert all(is_absolute(path) == shallow for path in snapshot.files["path"].to_pylist())
    assert snapshot.metadata.configuration["team"] == "a"
    said = target.info()["operationParameters"]
    assert said["source"] == f"parquet.`file://{origin}`"
    assert said["isShallow"] == str(shallow).lower()
    target.delete("id = 2")
    target.update("id = 3", id=30)
    target.append({"id": 4, "day": "wed"})
    assert [row["id"] for row in target.rows()] == [1, 4, 30]
    assert listing(origin) == before
    assert check(target.log.snapshot()).is_clean


def test_the_statistics_rule_files_out(origin: Path, target: World) -> None:
    Clone(origin, target.path, True, parquet=BY_DAY).run()
    assert len(target.log.snapshot().facts.files) == 2
    assert '"numRecords":2' in target.log.snapshot().files["stats"].to_pylist()[0].replace(" ", "")


def test_a_deep_clone_is_read_by_others(origin: Path, target: World) -> None:
    Clone(origin, target.path, parquet=BY_DAY).run()
    assert_others_agree(target.path)


@both
def test_cloned_again_it_takes_only_what_is_new(origin: Path, target: World, shallow: bool) -> None:
    Clone(origin, target.path, shallow, parquet=BY_DAY).run()
    target.delete("id = 1")
    put(origin, "day=wed/1.parquet", [{"id": 5}])
    done = Clone(origin, target.path, shallow, replace=True, parquet=BY_DAY).run()
    assert [row["id"] for row in target.rows()] == [1, 2, 3, 5]
    assert done.metrics["numCopiedFiles"] == (0 if shallow else 1)
    assert check(target.log.snapshot()).is_clean


def test_what_is_no_folder_of_parquet_files_is_refused(origin: Path, target: World, tmp_path: Path) -> None:
    with pytest.raises(errors.UnexpectedPartition):
        Clone(origin, target.path, parquet=Struct()).run()
    with pytest.raises(errors.EmptyDirectory):
        Clone(tmp_path / "nothing", target.path, parquet=Struct()).run()
    table = World(str(tmp_path / "table")).create([{"id": 1}])
    with pytest.raises(errors.ConversionRefused, match="Delta table"):
        Clone(table.path, target.path, parquet=Struct()).run()
    with pytest.raises(errors.CloneRefused):
        Clone(origin, origin / "inside", parquet=BY_DAY).run()
    assert not Path(target.path).exists()


@both
def test_a_file_that_goes_meanwhile_is_told(origin: Path, target: World, shallow: bool) -> None:
    def goes() -> None:
        (origin / "day=mon/1.parquet").unlink()

    with pytest.raises(errors.MissingDataFile), at_phase("read", goes):
        Clone(origin, target.path, shallow, parquet=BY_DAY).run()
    assert not target.log.exists()
