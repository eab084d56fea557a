"""Each thing that can be wrong with a table is found, at its file, and nothing is found on a table that is well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._log.vectors import forget_vectors
from anabranch._protocol.layout.paths import decode
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.maintenance.check import Report, check, check_table
from tests.support.raw_logs import PROTOCOL, WITH_VECTORS, add, info, metadata, put_commit, put_rows
from tests.support.worlds import World

ROWS = [{"id": i, "x": i * 10 if i else None} for i in range(6)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two files, one of them with a vector."""
    made = World(str(tmp_path / "t")).create(ROWS)
    made.append({"id": 100, "x": 7})
    made.delete("id = 2")
    return made


def report(world: World, *, deep: bool = True) -> Report:
    forget()
    return check(world.log.snapshot(), deep=deep)


def rules(world: World, *, deep: bool = True) -> list[tuple[str, str]]:
    return [(finding.rule, finding.file) for finding in report(world, deep=deep).findings]


def files(world: World) -> dict[bool, dict[str, Any]]:
    """The live files by whether they have a vector, as bodies of an add."""
    rows = world.log.snapshot().files.to_pylist()
    return {
        row["deletionVector"] is not None: {k: v for k, v in row.items() if v is not None} | {"partitionValues": {}}
        for row in rows
    }


def file_of(world: World, body: dict[str, Any]) -> Path:
    return Path(world.path) / decode(body["path"])


def said_anew(world: World, body: dict[str, Any], **fields: Any) -> str:
    """Say something else of a live file, in a new commit; its path."""
    changed = {name: value for name, value in {**body, **fields}.items() if value is not None}
    put_commit(world.path, world.version + 1, {"add": {**changed, "dataChange": False}})
    return str(body["path"])


# -- well --------------------------------------------------------------------------------------------------------------


def test_nothing_is_found_on_a_table_that_is_well(world: World) -> None:
    world.append({"id": 101, "x": 8})
    found = report(world)
    assert found.is_clean
    assert (found.files, found.vectors, found.rows, found.version, found.deep) == (3, 1, 7, 3, True)
    assert str(found) == f"deep check of {world.log.table} at version 3: 3 files, 1 vector: clean"


@pytest.mark.slow
@pytest.mark.parametrize("deep", [True, False])
def test_every_version_of_a_busy_table_is_well(tmp_path: Path, deep: bool) -> None:
    rows = [{"id": i, "p": "ab"[i % 2], "f": [1.5, None, float("nan")][i % 3], "s": "x" * i} for i in range(9)]
    world = World(str(tmp_path / "t")).create(rows, partition_by=("p",), **{"delta_checkpointInterval": "2"})
    world.update("id = 1", f=2.5)
    world.delete("p = 'a' AND id > 3")
    world.append({"id": 50, "p": None, "f": None, "s": "é" * 50})
    world.overwrite(rows[0])
    for version in range(world.version + 1):
        found = check_table(world.path, version, deep=deep)
        assert found.is_clean, str(found)


def test_a_table_without_files_is_well(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, PROTOCOL, metadata())
    assert (report(world).files, report(world).rows) == (0, 0)
    assert report(world).is_clean


def test_rows_are_not_counted_where_the_log_does_not_say_them(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, PROTOCOL, metadata(), put_rows(world.path, "a.parquet", [{"id": 1, "x": 1}], stats=None))
    assert report(world).rows is None
    assert report(world).is_clean


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_a_file_elsewhere_is_looked_at_where_it_lies(tmp_path: Path, spelling: str) -> None:
    """As a shallow clone's, which may be another table's to remove."""
    world, elsewhere = World(str(tmp_path / "t")), tmp_path / "an origin é"
    action = put_rows(elsewhere, "a b.parquet", [{"id": 1, "x": 1}])
    path = spelling.format(quote(str(elsewhere / "a b.parquet")))
    put_commit(world.path, 0, PROTOCOL, metadata(), {"add": {**action["add"], "path": path}})
    assert check(world.log.snapshot(), deep=True).is_clean
    (elsewhere / "a b.parquet").unlink()
    assert rules(world) == [("each live file exists", path)]


def test_a_file_that_cannot_be_looked_for_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_ALLOWED_STORES", "ftp://other")
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, PROTOCOL, metadata(), add("ftp://other/a.parquet"))
    assert rules(world) == [("each live file exists", "ftp://other/a.parquet")]
    assert "names no store" in str(report(world))


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_missing_file_is_found(world: World) -> None:
    body = files(world)[False]
    file_of(world, body).unlink()
    assert rules(world) == [("each live file exists", body["path"])]
    assert not report(world).is_clean
    assert body["path"] in str(report(world))


def test_a_file_of_another_size_is_found(world: World) -> None:
    body = files(world)[False]
    with file_of(world, body).open("ab") as file:
        file.write(b"x")
    assert rules(world) == [("each live file has its size", body["path"])]


@pytest.mark.parametrize("size", [0, 3, 7, 8, 11, 12, 500])
def test_a_file_that_is_no_parquet_is_found_whatever_its_size(world: World, size: int) -> None:
    body = files(world)[False]
    file_of(world, body).write_bytes(b"\xff" * size)
    path = said_anew(world, body, size=size)
    assert rules(world) == [("each live file is Parquet", path)]


def test_a_file_whose_rows_are_damaged_is_found_by_the_deep_check(world: World) -> None:
    body = files(world)[False]
    data = bytearray(file_of(world, body).read_bytes())
    data[4:30] = bytes(byte ^ 0xFF for byte in data[4:30])
    file_of(world, body).write_bytes(bytes(data))
    assert rules(world, deep=False) == []
    assert rules(world) == [("each live file is Parquet", body["path"])]


@pytest.mark.parametrize("path", ["../outside.parquet", "a/../../b.parquet", "a//b.parquet", "%2e%2e/x", "./a"])
def test_a_path_that_is_no_name_in_the_table_is_found(world: World, path: str) -> None:
    put_commit(world.path, 3, add(path))
    assert rules(world) == [("each path stays in the table", path)]


def test_a_path_that_is_live_twice_is_found(world: World) -> None:
    """As two vectors of one file that both survived."""
    body = files(world)[True]
    path = said_anew(world, body, deletionVector=None)
    assert ("each path is live once", path) in rules(world)


# -- vectors -----------------------------------------------------------------------------------------------------------


def vector_file(world: World) -> Path:
    (found,) = Path(world.path).glob("deletion_vector_*.bin")
    return found


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "garbage", "empty"])
def test_a_damaged_vector_is_found(world: World, damage: str) -> None:
    file, body = vector_file(world), files(world)[True]
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        flipped = data[:12] + bytes([data[12] ^ 1]) + data[13:]
        file.write_bytes({"cut": data[:-1], "flipped": flipped, "garbage": b"x" * len(data), "empty": b""}[damage])
    forget_vectors()
    assert rules(world) == [("each vector is whole", body["path"])]


def test_another_number_of_deleted_rows_than_the_log_says_is_found(world: World) -> None:
    body = files(world)[True]
    path = said_anew(world, body, deletionVector={**_plain(body["deletionVector"]), "cardinality": 2})
    assert ("each vector is whole", path) in rules(world)


def _plain(vector: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in vector.items() if value is not None}


def test_a_vector_that_lies_outside_its_file_is_found(world: World) -> None:
    """The vector of the bigger file stands at the smaller one, too: it has no row 2."""
    marked, plain = files(world)[True], files(world)[False]
    stats = json.dumps({"numRecords": 1})
    put_commit(
        world.path,
        3,
        {"remove": {"path": plain["path"], "dataChange": False}},
        {"add": {**plain, "deletionVector": _plain(marked["deletionVector"]), "stats": stats, "dataChange": False}},
    )
    assert rules(world) == [("each vector lies in its file", plain["path"])]


def test_a_vector_without_the_number_of_rows_is_found(world: World) -> None:
    path = said_anew(world, files(world)[True], stats=None)
    assert rules(world) == [("a file with a vector has numRecords", path)]


# -- statistics --------------------------------------------------------------------------------------------------------

STATED = "statistics agree with the file"


@pytest.mark.parametrize(
    ("stats", "said"),
    [
        ({"numRecords": 2}, "it holds 1 rows, the log says 2"),
        ({"numRecords": 1, "minValues": {"id": 101}}, "the least id is 100, below the stated 101"),
        ({"numRecords": 1, "maxValues": {"id": 99}}, "the greatest id is 100, above the stated 99"),
        ({"numRecords": 1, "nullCount": {"x": 1}}, "x holds 0 NULLs, not the stated 1"),
    ],
)
@pytest.mark.parametrize("deep", [True, False])
def test_wrong_statistics_are_found(world: World, stats: dict[str, Any], said: str, deep: bool) -> None:
    path = said_anew(world, files(world)[False], stats=json.dumps(stats))
    assert rules(world, deep=deep)[0] == (STATED, path)
    assert report(world, deep=deep).findings[0].problem == said


@pytest.mark.parametrize(
    "stats",
    [
        {"numRecords": 1, "minValues": {"id": 50}, "maxValues": {"id": 500}},
        {"numRecords": 1, "minValues": {"id": None}, "maxValues": {}},
        {"numRecords": 1},
        {},
    ],
)
def test_statistics_that_are_only_wider_than_need_be_are_well(world: World, stats: dict[str, Any]) -> None:
    said_anew(world, files(world)[False], stats=json.dumps(stats))
    assert rules(world) == []


def test_bounds_beside_a_vector_are_held_against_the_live_rows(world: World) -> None:
    """Row 2 is deleted; bounds may leave it out, but no row that lives."""
    body = files(world)[True]
    said = {"numRecords": 6, "minValues": {"id": 0}, "maxValues": {"id": 4}, "tightBounds": False}
    path = said_anew(world, body, stats=json.dumps(said))
    assert rules(world, deep=False) == []
    assert rules(world) == [(STATED, path)]


# -- protocol and log --------------------------------------------------------------------------------------------------


def test_vectors_under_a_protocol_that_does_not_list_them_are_found(world: World) -> None:
    put_commit(world.path, 3, PROTOCOL)
    (found,) = report(world).findings
    assert found.rule == "the protocol lists what is used"
    assert "deletionVectors" in found.problem


@pytest.mark.parametrize(("readers", "writers"), [(["deletionVectors"], []), ([], ["deletionVectors"])])
def test_a_feature_that_stands_in_one_list_only_is_found(world: World, readers: list[str], writers: list[str]) -> None:
    lists = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": writers}
    put_commit(world.path, 3, {"protocol": lists})
    assert {rule for rule, _ in rules(world)} == {"the protocol lists what is used"}


def test_a_used_feature_of_the_metadata_that_is_not_listed_is_found(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, WITH_VECTORS, metadata(**{"delta_constraints.c": "id > 0"}))
    assert [finding.problem for finding in report(world).findings] == ["checkConstraints is used but not listed"]


def test_a_feature_that_is_listed_under_the_name_of_its_preview_is_listed(tmp_path: Path) -> None:
    """As in a table of delta-kernel-rs's tests."""
    lists = {"readerFeatures": ["variantType-preview"], "writerFeatures": ["variantType-preview"]}
    columns = Struct((Field("v", "variant"),))
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}, metadata(columns))
    assert report(world).is_clean


@pytest.mark.slow
def test_a_gap_behind_a_checkpoint_is_found(tmp_path: Path) -> None:
    """The version can be opened all the same."""
    world = World(str(tmp_path / "t")).create([{"id": 0, "x": 0}], **{"delta_checkpointInterval": "4"})
    for i in range(1, 5):
        world.append({"id": i, "x": i})
    (Path(world.path) / commit_name(2)).unlink()
    assert rules(world) == [("the log has no gap", commit_name(2))]


@pytest.mark.slow
def test_a_log_that_was_cleaned_up_has_no_gap(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 0, "x": 0}], **{"delta_checkpointInterval": "4"})
    for i in range(1, 6):
        world.append({"id": i, "x": i})
    for version in range(3):
        (Path(world.path) / commit_name(version)).unlink()
    assert rules(world) == []


@pytest.mark.parametrize("damage", [commit_name(1), commit_name(2)])
def test_a_version_that_cannot_be_opened_is_an_error(world: World, damage: str) -> None:
    (Path(world.path) / damage).write_text("garbage")
    forget()
    with pytest.raises(errors.CorruptLog) as refused:
        check_table(world.path)
    assert refused.value.file == damage


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        check_table(tmp_path / "nothing")


def test_several_things_are_found_at_once(world: World) -> None:
    bodies = files(world)
    file_of(world, bodies[False]).unlink()
    vector_file(world).unlink()
    forget_vectors()
    put_commit(world.path, 3, info(), add("gone.parquet"))
    assert sorted(rule for rule, _ in rules(world)) == [
        "each live file exists",
        "each live file exists",
        "each vector is whole",
    ]
    shutil.rmtree(world.path)


@pytest.mark.parametrize(("stated", "said"), [({}, "no inCommitTimestamp"), ({"inCommitTimestamp": 100}, "says 100")])
def test_a_commit_that_does_not_say_when_it_was_made_is_found(
    tmp_path: Path, stated: dict[str, int], said: str
) -> None:
    on = metadata(delta_enableInCommitTimestamps="true")
    listed = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    put_commit(tmp_path, 0, info(inCommitTimestamp=100), {"protocol": listed}, on)
    put_commit(tmp_path, 1, info(**stated))
    put_commit(tmp_path, 2, info(inCommitTimestamp=101))
    (finding,) = check_table(tmp_path).findings
    assert (finding.rule, finding.file) == ("each commit says when it was made", commit_name(1))
    assert said in finding.problem
