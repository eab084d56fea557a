"""VACUUM removes what no retained version holds, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app
from anabranch._log.file_names import commit_name
from anabranch._log.log import Log, forget
from anabranch._protocol.actions import files_table
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch.commands.context import RunContext
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.vacuum import Vacuum, VacuumResult
from anabranch.commands.maintenance.vacuum_candidates import last_version
from anabranch.commands.maintenance.vacuum_retained import names_of
from anabranch.commands.staging import Staging
from anabranch.testing import Call, DictStore, ObservedStore, at_phase, mounted
from tests.support.patience import a_tick
from tests.support.worlds import World

HOUR = 3600
ROWS = [{"id": i, "x": i, "p": i % 2} for i in range(4)]


def aged(path: Path, hours: float) -> Path:
    """The same file, last written so many hours ago."""
    then = time.time() - hours * HOUR
    os.utime(path, (then, then), follow_symlinks=False)
    return path


def all_aged(path: str, hours: float) -> None:
    for folder, _, files in os.walk(path):
        if "_delta_log" not in folder:
            for name in files:
                aged(Path(folder, name), hours)


def put(root: str, name: str, hours: float = 1000, data: bytes = b"x") -> Path:
    path = Path(root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return aged(path, hours)


def vacuum(location: str, hours: float | None = 0, **how: Any) -> VacuumResult:
    a_tick()
    return Vacuum(location, hours, check_retention=False, **how).run()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create(ROWS, partition_by=("p",))


def names(path: str) -> set[str]:
    below = [Path(folder, name) for folder, _, files in os.walk(path) for name in files]
    return {str(each.relative_to(path)) for each in below if "_delta_log" not in each.parts}


JOB = str(uuid4())
LEFT_ALONE = {
    "a hidden file": "_SUCCESS",
    "a file with a dot": ".part-1.parquet.crc",
    "a file in a hidden folder": "_temporary/0/part-0.parquet",
    "a file in a folder with a dot": ".staging/part-0.parquet",
    "a folder like a partition that is none": "_q=1/part-0.parquet",
    "another table inside": "inner/part-0.parquet",
    "its log": "inner/_delta_log/00000000000000000000.json",
    "a young file": "young.parquet",
    "a young file of a dead job": f"job-{JOB}/young.parquet",
}
REMOVED = {
    "a file that nothing names": "part-0.parquet",
    "one in a folder": "old/day=1/part-0.parquet",
    "a vector that nothing names": f"deletion_vector_{uuid4()}.bin",
    "one in a partition whose name begins with an underscore": "_p=1/part-0.parquet",
    "a name with percent and blank": "a%20b c#?.parquet",
    "change data": "_change_data/cdc-0.parquet",
    "the marker of a dead job": f"job-{JOB}/_started_{JOB}",
    "its data": f"job-{JOB}/day=1/part-0.parquet",
    "its scratch": f"job-{JOB}/_temporary/0/part-0.parquet",
    "its relocation": f"job-{JOB}/_moves/0.parquet",
    "its checksums": f"job-{JOB}/day=1/.part-0.parquet.crc",
    "the checksum of a removed file": "old/day=1/.part-0.parquet.crc",
    "an ended job's marker": f"job-{uuid4()}/_committed_x",
}


def test_what_is_left_alone_and_what_goes(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1, "_p": 1}], partition_by=("_p",))
    live = names(world.path)
    for name in LEFT_ALONE.values():
        put(world.path, name, 0.5 if "young" in name else 1000)
    for name in REMOVED.values():
        put(world.path, name)
    tried = vacuum(world.path, 1, dry_run=True)
    assert {file.name for file in tried.files} == set(REMOVED.values())
    assert tried.bytes == len(REMOVED)
    assert names(world.path) == live | set(LEFT_ALONE.values()) - {LEFT_ALONE["its log"]} | set(REMOVED.values())
    done = vacuum(world.path, 1)
    assert [*done.files] == [*tried.files]
    assert names(world.path) == live | set(LEFT_ALONE.values()) - {LEFT_ALONE["its log"]}
    assert Path(world.path, LEFT_ALONE["its log"]).exists()
    assert not Path(world.path, "old").exists(), "a folder that holds nothing goes too"
    assert world.rows() == [{"id": 1, "_p": 1}]


@pytest.mark.slow
def test_nothing_of_a_retained_version_goes_and_everything_of_an_older_one(world: World) -> None:
    first = world.version
    world.update("id = 1", x=10)
    world.update("id = 1", x=11)
    world.delete("id = 2")
    before = {version: world.rows(version) for version in range(first, world.version + 1)}
    all_aged(world.path, 1000)
    assert not vacuum(world.path, 1).files or all(
        "_committed_" in f.name for f in vacuum(world.path, 1, dry_run=True).files
    )
    forget()
    for version, rows in before.items():
        assert world.rows(version) == rows
    newest = world.rows()
    assert vacuum(world.path).files
    forget()
    assert world.rows() == newest
    assert check(world.log.snapshot(), deep=True).is_clean
    with pytest.raises(errors.AnabranchError):
        world.rows(first + 1)


@pytest.mark.slow
def test_a_longer_retention_than_the_tables_is_kept_though_checkpoints_forget_removes(tmp_path: Path) -> None:
    short = {"delta_deletedFileRetentionDuration": "interval 0 hours", "delta_checkpointInterval": "1"}
    world = World(str(tmp_path / "t")).create(ROWS, **short)
    world.overwrite({"id": 9, "x": 9, "p": 9})
    all_aged(world.path, 1000)
    a_tick()
    world.append({"id": 10, "x": 9, "p": 9})
    forget()
    assert not [f for f in vacuum(world.path, 500).files if f.name.endswith(".parquet")]
    assert world.rows(0) == ROWS
    assert vacuum(world.path).files


def test_the_retention_is_checked(world: World) -> None:
    with pytest.raises(errors.RetentionTooShort) as error:
        anabranch.vacuum(world.path, 167)
    assert (error.value.hours, error.value.retained) == ("167", "168 hours")
    assert not error.value.retryable
    assert world.version == 0
    anabranch.vacuum(world.path, 168)
    anabranch.vacuum(world.path, 167, check_retention=False)
    for hours in (-1, float("nan"), float("inf")):
        with pytest.raises(errors.InvalidOption):
            anabranch.vacuum(world.path, hours, check_retention=False)


@pytest.mark.parametrize("hours", [1e9, 1e18, 1e300])
def test_a_retention_that_is_longer_than_time_itself_keeps_everything(world: World, hours: float) -> None:
    before = sorted(Path(world.path).rglob("*.parquet"))
    assert not Vacuum(world.path, hours).run().files
    assert sorted(Path(world.path).rglob("*.parquet")) == before


def test_the_tables_own_retention_is_the_default(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create(ROWS, delta_deletedFileRetentionDuration="interval 3 hours")
    put(world.path, "older.parquet", 3.1)
    put(world.path, "younger.parquet", 2.9)
    assert [file.name for file in anabranch.vacuum(world.path).files] == ["older.parquet"]


def test_the_history_says_what_was_to_be_done_and_what_was_done(world: World) -> None:
    world.overwrite({"id": 1, "x": 1, "p": 1})
    all_aged(world.path, 1)
    a_tick()
    done = vacuum(world.path)
    end, start = anabranch.history(world.path, 2)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": "false",
        "defaultRetentionMillis": "604800000",
        "specifiedRetentionMillis": "0",
    }
    size = sum(file.size for file in done.files)
    assert start["operationMetrics"] == {"numFilesToDelete": str(len(done.files)), "sizeOfDataToDelete": str(size)}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": str(len(done.files)), "numVacuumedDirectories": "5"}
    info = world.info(world.version - 1)
    raw = info["operationParameters"]
    assert raw == {"retentionCheckEnabled": False, "defaultRetentionMillis": 604800000, "specifiedRetentionMillis": 0}


def test_a_dry_run_changes_nothing(world: World) -> None:
    put(world.path, "old.parquet", data=b"12345")
    done = vacuum(world.path, 1, dry_run=True)
    assert [(file.name, file.size) for file in done.files] == [("old.parquet", 5)]
    assert done.dry_run
    assert done.folders == 0
    assert world.version == 0
    assert Path(world.path, "old.parquet").exists()


def test_commits_are_read_again_only_where_a_file_would_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read, original = list[int](), Log.read
    monkeypatch.setattr(Log, "read", lambda log, version, *keys: read.append(version) or original(log, version, *keys))
    vacuum(world.path, 1, dry_run=True)
    assert read == []
    put(world.path, "old.parquet")
    vacuum(world.path, 1, dry_run=True)
    assert read == [0]


def test_no_link_is_followed_or_removed(world: World, tmp_path: Path) -> None:
    outside = put(str(tmp_path), "elsewhere/precious.parquet")
    os.symlink(outside, Path(world.path, "link.parquet"))
    os.symlink(outside.parent, Path(world.path, "folder"))
    os.symlink("/no/such/place", Path(world.path, "dangling.parquet"))
    for name in ("link.parquet", "folder", "dangling.parquet"):
        aged(Path(world.path, name), 1000)
    assert not vacuum(world.path, 1).files
    assert outside.exists()
    assert {"link.parquet", "folder", "dangling.parquet"} <= set(os.listdir(world.path))


def rename_in_log(world: World, path_of: Any) -> None:
    log = Path(world.path, "_delta_log", "00000000000000000000.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for action in lines:
        if "add" in action:
            action["add"]["path"] = path_of(action["add"]["path"])
    log.write_text("".join(json.dumps(action) + "\n" for action in lines))
    forget()


def test_an_absolute_path_means_every_name_that_it_ends_with_and_a_relative_one_itself() -> None:
    absolute = files_table([{"path": "s3a://bucket/t/p=1/a%20b.parquet", "size": 1}])
    assert {"p=1/a b.parquet", "p=1/a%20b.parquet", "t/p=1/a b.parquet"} < names_of("s3://bucket/t", absolute)
    relative = files_table([{"path": "p=1/a%20b.parquet", "size": 1}])
    assert names_of("s3://bucket/t", relative) == {"p=1/a b.parquet", "p=1/a%20b.parquet"}


@pytest.mark.slow
def test_a_file_is_kept_however_its_path_is_spelled(tmp_path: Path) -> None:
    root = tmp_path / "t t"
    os.symlink(root, tmp_path / "other")
    spellings = {
        "absolute": lambda path: f"{root}/{path}",
        "a URI": lambda path: f"file:{root}/{path}".replace(" ", "%20"),
        "three slashes": lambda path: f"file://{root}/{path}",
        "through a link": lambda path: f"{tmp_path}/other/{path}",
        "not encoded": unquote,
    }
    for how, spelled in spellings.items():
        world = World(str(root)).create([{"id": 1, "s": "50 %41"}], partition_by=("s",))
        live = names(world.path)
        rename_in_log(world, spelled)
        all_aged(world.path, 1000)
        vacuum(world.path, 1)
        assert names(world.path) == live, how
        for path in sorted(root.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        forget()


def test_a_running_job_is_spared_and_named_and_a_dead_one_is_not(world: World) -> None:
    store = open_store(world.path)
    alive, dead = str(uuid4()), str(uuid4())
    for job, idle in ((alive, 300), (dead, 700)):
        Staging(store, job).start()
        put(world.path, f"job-{job}/part-0.parquet", 1)
        aged(Path(world.path, f"job-{job}/_started_{job}"), idle / HOUR)
    done = vacuum(world.path)
    assert done.spared == {alive}
    assert {file.name for file in done.files} == {f"job-{dead}/part-0.parquet", f"job-{dead}/_started_{dead}"}
    assert world.info(world.version - 1)["tags"]["anabranch.spares"] == alive


def test_the_heartbeat_of_a_job_that_began_long_ago_spares_it(world: World) -> None:
    job = str(uuid4())
    put(world.path, f"job-{job}/_started_{job}", 30)
    put(world.path, f"job-{job}/part-0.parquet", 29)
    put(world.path, f"job-{job}/_beating_{job}", 0.1)
    assert vacuum(world.path).spared == {job}
    aged(Path(world.path, f"job-{job}/_beating_{job}"), 1)
    assert len(vacuum(world.path).files) == 3


def test_what_cannot_be_removed_is_told_and_the_rest_goes(world: World) -> None:
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        put(world.path, name)

    def refuses(call: Call) -> errors.StoreError | None:
        if call.method == "delete" and call.about == "b.parquet":
            return errors.StorePermissionDenied(name="b.parquet", root=world.path, reason="not yours.")
        return None

    with mounted(ObservedStore(open_store(world.path), before=refuses)) as location:
        done = vacuum(location, 1)
    assert [file.name for file in done.files] == ["a.parquet", "c.parquet"]
    assert list(done.failed) == ["b.parquet"]
    assert "not yours" in done.failed["b.parquet"]
    assert anabranch.history(world.path, 1)[0]["operationParameters"] == {"status": "FAILED"}
    assert last_version(open_store(world.path)) is None
    assert [file.name for file in vacuum(world.path, 1).files] == ["b.parquet"]


def test_a_job_whose_witness_cannot_be_removed_loses_nothing(world: World) -> None:
    job = str(uuid4())
    put(world.path, f"job-{job}/_started_{job}")
    put(world.path, f"job-{job}/part-0.parquet")

    def refuses(call: Call) -> errors.StoreError | None:
        is_witness = call.method == "delete" and str(call.about).endswith(f"_started_{job}")
        return errors.StoreError(name=call.about, root=world.path, reason="no.") if is_witness else None

    with mounted(ObservedStore(open_store(world.path), before=refuses)) as location:
        done = vacuum(location, 1)
    assert not done.files
    assert set(done.failed) >= {f"job-{job}/part-0.parquet", f"job-{job}/_started_{job}"}
    assert Path(world.path, f"job-{job}/part-0.parquet").exists()


@pytest.mark.parametrize("phase", ["read", "staged", "put", "committed"])
def test_one_that_was_interrupted_can_be_run_again(world: World, phase: str) -> None:
    put(world.path, "old.parquet")
    before = world.rows()

    def dies() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), at_phase(phase, dies):
        vacuum(world.path, 1)
    assert Path(world.path, "old.parquet").exists()
    assert [file.name for file in vacuum(world.path, 1).files] == ["old.parquet"]
    assert world.rows() == before


def test_two_at_once_do_no_harm(world: World) -> None:
    put(world.path, "old.parquet")
    before = world.rows()
    with at_phase("committed", lambda: vacuum(world.path, 1)):
        done = vacuum(world.path, 1)
    assert [file.name for file in done.files] == ["old.parquet"], "one that is gone is as good as removed"
    operations = [entry["operation"] for entry in anabranch.history(world.path, 4)]
    assert operations == ["VACUUM END", "VACUUM END", "VACUUM START", "VACUUM START"]
    assert world.rows() == before


def test_what_was_committed_while_it_ran_is_kept(world: World) -> None:
    with at_phase("put", lambda: world.append({"id": 9, "x": 9, "p": 9})):
        vacuum(world.path)
    assert len(world.rows()) == 5


def test_a_table_that_is_changed_meanwhile_is_looked_at_again(world: World) -> None:
    from anabranch.commands.ddl.alter import SetProperties

    put(world.path, "old.parquet", 30)
    wider = {"delta.deletedFileRetentionDuration": "interval 60 hours"}
    with at_phase("put", lambda: SetProperties(world.path, wider).run()):
        done = vacuum(world.path, None)
    assert not done.files


def test_a_feature_that_is_not_known_is_refused(world: World) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["unheardOf"]}
    Path(world.path, "_delta_log", "00000000000000000001.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    put(world.path, "old.parquet")
    with pytest.raises(errors.UnsupportedFeature):
        vacuum(world.path, 1)
    assert Path(world.path, "old.parquet").exists()


def _unheard_of(path: str) -> None:
    """Another engine gives the table a feature that nobody here knows."""
    log = Path(path, "_delta_log")
    version = 1 + max(int(each.stem) for each in log.glob("*.json") if each.stem.isdigit())
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["unheardOf"]}
    (log / f"{version:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")


def test_nothing_goes_once_a_feature_has_come_behind_the_start(world: World) -> None:
    put(world.path, "old.parquet")
    with pytest.raises(errors.UnsupportedFeature), at_phase("committed", lambda: _unheard_of(world.path)):
        vacuum(world.path, 1)
    assert Path(world.path, "old.parquet").exists()
    assert [entry["operation"] for entry in anabranch.history(world.path, 2)][1:] == ["VACUUM START"]


def test_a_start_is_committed_again_where_another_table_has_taken_the_place_of_its_own(world: World) -> None:
    put(world.path, "old.parquet")
    other = World(f"{world.path}.other").create([{"id": 1}])
    other.append({"id": 2})

    def replaced() -> None:
        shutil.rmtree(Path(world.path, "_delta_log"))
        shutil.copytree(other.path, world.path, dirs_exist_ok=True)

    with at_phase("committed", replaced):
        vacuum(world.path, 1)
    operations = [entry["operation"] for entry in anabranch.history(world.path)]
    assert operations == ["VACUUM END", "VACUUM START", "WRITE", "WRITE"]
    assert not Path(world.path, "old.parquet").exists()


def test_no_end_is_written_under_a_feature_that_came_while_files_went(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    put(world.path, "old.parquet")
    plan = Vacuum(world.path, 1, check_retention=False, threads=1)
    done = plan.run(
        context=RunContext(progress=lambda step, *_: _unheard_of(world.path) if step == "removed" else None)
    )
    assert [file.name for file in done.files] == ["old.parquet"]
    assert "its end is not in the history" in caplog.text
    assert "VACUUM END" not in [entry["operation"] for entry in anabranch.history(world.path)]


def test_change_data_of_a_retained_version_is_kept(world: World) -> None:
    put(world.path, "_change_data/kept.parquet", 1000)
    put(world.path, "_change_data/old.parquet", 1000)
    cdc = {"cdc": {"path": "_change_data/kept.parquet", "partitionValues": {}, "size": 1, "dataChange": False}}
    info = {"commitInfo": {"operation": "UPDATE", "timestamp": 0}}
    text = "".join(json.dumps(action) + "\n" for action in (info, cdc))
    Path(world.path, "_delta_log", "00000000000000000001.json").write_text(text)
    assert [file.name for file in vacuum(world.path, 1).files] == ["_change_data/old.parquet"]


# -- LITE --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lite_removes_what_the_log_says_and_lists_nothing(world: World) -> None:
    world.update("id = 1", x=10)
    world.update("id = 1", x=11)
    world.overwrite({"id": 9, "x": 9, "p": 9})
    put(world.path, "unknown.parquet")
    before = world.rows()
    a_tick()
    store = ObservedStore(open_store(world.path))
    with mounted(store) as location:
        done = vacuum(location, lite=True)
    assert len([f for f in done.files if f.name.endswith(".parquet")]) == 4
    assert len([f for f in done.files if f.name.endswith(".bin")]) == 1
    assert not [call for call in store.calls if call.method == "list_all"]
    assert {f.name for f in vacuum(world.path, dry_run=True).files if "_committed_" not in f.name} == {
        "unknown.parquet"
    }
    assert not vacuum(world.path, lite=True).files
    assert world.rows() == before
    assert check(world.log.snapshot(), deep=True).is_clean


@pytest.mark.slow
def test_lite_goes_on_from_the_last_one(world: World) -> None:
    world.overwrite({"id": 9, "x": 9, "p": 9})
    assert vacuum(world.path, lite=True).files
    assert last_version(open_store(world.path)) == 1
    world.overwrite({"id": 10, "x": 9, "p": 9})
    store = ObservedStore(open_store(world.path))
    a_tick()
    with mounted(store) as location:
        assert len(vacuum(location, lite=True, dry_run=True).files) == 1


@pytest.mark.slow
def test_lite_is_refused_where_the_log_it_needs_is_gone(world: World) -> None:
    for number in range(3):
        world.overwrite({"id": number, "x": 9, "p": 9})
    log = Log(open_store(world.path))
    log.write_checkpoint(log.snapshot(), now_ms=int(time.time() * 1000))
    for version in range(3):
        Path(world.path, "_delta_log", f"{version:020}.json").unlink()
    forget()
    with pytest.raises(errors.LiteVacuumImpossible) as error:
        vacuum(world.path, lite=True)
    assert (error.value.needed, error.value.earliest) == (0, 3)
    assert error.value.getCondition() == "DELTA_CANNOT_VACUUM_LITE"
    assert vacuum(world.path).files
    assert not vacuum(world.path, lite=True).files, "the other kind has looked at all of it"


def test_a_file_whose_remove_does_not_say_when_is_kept(world: World) -> None:
    before = {name for name in names(world.path) if name.endswith(".parquet")}
    world.overwrite({"id": 9, "x": 9, "p": 9})
    commit = Path(world.path, commit_name(world.version))
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("remove", {}).pop("deletionTimestamp", None)
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    forget()
    all_aged(world.path, 1000)
    vacuum(world.path, 1)
    assert before < names(world.path)


# -- places and doors --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bucket_has_files_and_no_folders() -> None:
    store: Store = open_store(f"memory://vacuum-{uuid4()}/t")
    world = World(store.url).create(ROWS, partition_by=("p",))
    world.overwrite({"id": 9, "x": 9, "p": 9})
    store.put("old/part-0.parquet", b"x")
    store.put("_hidden/part-0.parquet", b"x")
    store.put("inner/_delta_log/00000000000000000000.json", b"x")
    store.put("inner/part-0.parquet", b"x")
    a_tick(1100)  # a bucket's clock may count in seconds
    done = vacuum(store.url)
    assert {"old/part-0.parquet"} < {file.name for file in done.files}
    assert done.folders == 0
    left = {entry.name for entry in store.list_all()}
    assert {"_hidden/part-0.parquet", "inner/part-0.parquet"} < left
    assert world.rows() == [{"id": 9, "x": 9, "p": 9}]


def test_progress_is_told(world: World) -> None:
    for name in ("a.parquet", "b.parquet"):
        put(world.path, name)
    seen: list[tuple[str, int, int]] = []
    anabranch.vacuum(world.path, progress=lambda *step: seen.append(step))
    assert seen[0][0] == "listed"
    assert seen[-1] == ("removed", 2, 2)


@pytest.mark.slow
def test_the_command_line(world: World) -> None:
    put(world.path, "old.parquet", data=b"12345")
    runner = CliRunner()
    tried = runner.invoke(app, ["vacuum", world.path, "--dry-run", "--json"])
    assert json.loads(tried.stdout)["files"] == [{"path": "old.parquet", "size": 5}]
    shown = runner.invoke(app, ["vacuum", world.path, "--dry-run"])
    assert "old.parquet" in shown.stdout
    assert "1 file, 5 bytes would be removed" in shown.stdout
    assert isinstance(
        runner.invoke(app, ["vacuum", world.path, "--retain-hours", "0"]).exception, errors.RetentionTooShort
    )
    done = runner.invoke(app, ["vacuum", world.path])
    assert done.exit_code == 0
    assert not Path(world.path, "old.parquet").exists()


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_command_line_checks_the_retention_unless_it_is_told_not_to(world: World, form: tuple[str, ...]) -> None:
    words = ["vacuum", world.path, "--retain-hours", "0", *form]
    assert isinstance(CliRunner().invoke(app, words).exception, errors.RetentionTooShort)
    assert CliRunner().invoke(app, [*words, "--no-check"]).exit_code == 0


def test_a_wrong_clock_removes_nothing(world: World) -> None:
    from anabranch._transaction.retry import Runtime

    put(world.path, "old.parquet", 1)
    ahead = Runtime(now_ms=lambda: time.time_ns() // 1_000_000 + 30 * 24 * HOUR * 1000)
    with pytest.raises(errors.TableError, match="clock"):
        Vacuum(world.path).run(context=RunContext(runtime=ahead))
    assert Path(world.path, "old.parquet").exists()


def test_a_table_with_dictionaries_for_a_disk_is_vacuumed_too() -> None:
    with mounted(DictStore(f"memory://vacuumed/{uuid4()}")) as location:
        world = World(location).create(ROWS)
        world.overwrite({"id": 9, "x": 9, "p": 9})
        assert vacuum(location).files
        assert world.rows() == [{"id": 9, "x": 9, "p": 9}]
        forget(location)
