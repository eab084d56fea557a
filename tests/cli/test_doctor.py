"""The doctor: what it decides of what was found, and that it tries a store for real and leaves nothing behind."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from moto.s3.responses import S3Response
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app, diagnosis, machine
from anabranch._cli.diagnosis import Check, worst
from anabranch._cli.machine import connector, requirements, workers
from anabranch._cli.store_probe import at_once_check, put_check, put_checks, store_checks
from anabranch._spark.sessions.java import release_of
from anabranch._storage import open_store
from anabranch.errors import StoreError, StorePermissionDenied
from tests.storage import moto_s3
from tests.support.patience import until
from tests.test_docs import rows_of_table
from tests.test_storeys import ROOT

CLOCK = ("clock of the store", "ok")
NAME = "_anabranch_doctor_test/name"
OWN = (3, 12, 1)


def test_nothing_that_lies_in_the_working_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a folder that everybody may write to, as /tmp."""
    for name in ("json", "pyarrow"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(tmp_path)
    workers(sys.executable)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("version", "state"), [((3, 10, 9), "failed"), ((3, 11, 0), "ok"), ((3, 13, 2), "ok"), ((3, 14, 0), "warning")]
)
def test_python_is_supported_tested_or_neither(version: tuple[int, ...], state: str) -> None:
    assert diagnosis.python_check(version).state == state


@pytest.mark.parametrize(
    ("version", "state"),
    [
        (None, "warning"),
        ("3.5.6", "failed"),
        ("4.0.0", "ok"),
        ("4.3.1", "ok"),
        ("4.4.0.dev1", "warning"),
        ("5.0", "warning"),
    ],
)
def test_pyspark_is_supported_tested_or_neither(version: str | None, state: str) -> None:
    assert diagnosis.pyspark_check(version).state == state


def test_the_tested_versions_are_those_of_the_page() -> None:
    stated = [cells[0] for cells in rows_of_table(ROOT / "docs" / "concepts" / "versions.md", "PySpark")]
    assert stated[0] == diagnosis.text_of(diagnosis.NEWEST_SPARK)
    assert stated[-1] == diagnosis.text_of(diagnosis.OLDEST_SPARK)


@pytest.mark.parametrize(
    ("path", "release", "has_pyspark", "state"),
    [
        ("/j", 17, True, "ok"),
        ("/j", 21, False, "ok"),
        ("/j", 11, True, "failed"),
        ("/j", 11, False, "warning"),
        ("/j", None, True, "warning"),
        (None, None, True, "failed"),
        (None, None, False, "warning"),
    ],
)
def test_java_matters_where_there_is_pyspark(
    path: str | None, release: int | None, has_pyspark: bool, state: str
) -> None:
    found = diagnosis.java_check(path, release, "there is none.", "Install one.", has_pyspark=has_pyspark)
    assert found.state == state
    assert bool(found.advice) == (state != "ok")


def test_the_release_of_a_java_is_read_without_starting_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    assert release_of(str(java)) is None
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.4"\n')
    assert release_of(str(java)) == 21


@pytest.mark.parametrize(
    ("version", "pyarrow", "state"),
    [
        (OWN, "20.0", "ok"),
        ((3, 12, 9), "20.0", "ok"),
        ((3, 11, 1), "20.0", "failed"),
        (OWN, None, "warning"),
        (None, None, "failed"),
    ],
)
def test_workers_need_the_same_python_with_pyarrow(version: Any, pyarrow: str | None, state: str) -> None:
    assert diagnosis.workers_check("python3", version, pyarrow, OWN).state == state


@pytest.mark.slow
def test_the_python_of_workers_is_asked(tmp_path: Path) -> None:
    assert workers(sys.executable).state == "ok"
    assert "does not start" in workers(str(tmp_path / "none")).found


@pytest.mark.parametrize(
    ("version", "state"), [("30.1", "ok"), ("30", "ok"), ("29.9", "failed"), ("31.0", "failed"), (None, "failed")]
)
def test_packages_are_within_their_bounds(version: str | None, state: str) -> None:
    assert diagnosis.package_check("sqlglot", version, ">=30,<31").state == state


def test_what_is_required_is_read_from_the_package_and_optional_parts_are_none_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert {"obstore", "pyarrow", "sqlglot"} <= {name for name, _ in requirements()}
    said = ["obstore >=0.8, <1", 'pyspark>=4.0; extra == "spark"', "sqlglot"]
    monkeypatch.setattr(machine.metadata, "requires", lambda package: said)
    assert requirements() == [("obstore", ">=0.8,<1"), ("sqlglot", "")]


@pytest.mark.parametrize(
    ("modified", "state", "words"),
    [
        (1_000_000, "ok", "same"),
        (1_030_000, "ok", "+30 s"),
        (1_090_000, "warning", "+90 s"),
        (910_000, "warning", "-90 s"),
    ],
)
def test_a_clock_a_minute_away_is_a_warning(modified: int, state: str, words: str) -> None:
    found = diagnosis.skew_check(modified, 1_000_000, 1_000_000)
    assert found.state == state
    assert words in found.found


@pytest.mark.parametrize(("refused", "kept"), [(False, True), (False, False), (True, False)])
def test_a_store_that_lets_the_second_put_through_fails(refused: bool, kept: bool) -> None:
    assert put_check(refused=refused, kept=kept).state == "failed"
    assert put_check(refused=True, kept=True).state == "ok"


@pytest.mark.parametrize(
    ("jars", "package", "named", "state"),
    [((), None, False, "ok"), (("a.jar",), "g:a", False, "ok"), ((), "g:a", True, "ok"), ((), "g:a", False, "warning")],
)
def test_a_connector_is_beside_sparks_jars_or_named(jars: Any, package: Any, named: bool, state: str) -> None:
    assert diagnosis.connector_check("s3", jars, package, named=named, has_pyspark=True).state == state
    assert diagnosis.connector_check("s3", jars, package, named=named, has_pyspark=False).state == "ok"


def test_the_package_of_a_connector_has_the_version_of_sparks_own_hadoop(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    assert "hadoop-aws, in the version of Spark's own Hadoop" in connector("s3").advice
    (tmp_path / "jars" / "hadoop-client-api-3.4.2.jar").touch()
    assert "org.apache.hadoop:hadoop-aws:3.4.2." in connector("s3").advice
    assert "org.apache.hadoop:hadoop-azure:3.4.2." in connector("az").advice
    assert "in the version of" in connector("gs").advice
    assert connector("hdfs").state == "ok"


def test_the_worst_check_is_the_state_of_all() -> None:
    checks = [Check("a", "ok", ""), Check("b", "failed", ""), Check("c", "warning", "")]
    assert worst(checks) == "failed"
    assert worst(checks[::2]) == "warning"
    assert worst([]) == "ok"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    anabranch.append(str(tmp_path / "t"), [{"id": 1}])
    return tmp_path / "t"


def everything(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


def test_a_table_is_tried_and_stays_as_it_is(table: Path) -> None:
    before = everything(table.parent)
    found = {each.name: each for each in store_checks(str(table))}
    assert found["table"].found == "version 0"
    assert found["puts at once"] == Check("puts at once", "ok", "one of 8 won")
    assert found["put-if-absent"].state == found["clock of the store"].state == "ok"
    assert "cleaning up" not in found
    assert everything(table.parent) == before


def test_a_place_without_a_folder_has_none_afterwards(tmp_path: Path) -> None:
    assert {each.state for each in store_checks(str(tmp_path / "none" / "deep"))} == {"ok"}
    assert everything(tmp_path) == set()


class Careless:
    """A store that puts over what is there, or does not delete."""

    url = "memory://careless"

    def __init__(self, location: str, *, deletes: bool, refusal: type[StoreError] = StoreError) -> None:
        self._store, self._deletes, self._refusal = open_store(location), deletes, refusal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._store.put(name, data)

    def delete(self, name: str) -> None:
        if not self._deletes:
            raise self._refusal(name=name, root=self.url, reason="no.")
        self._store.delete(name)


def test_a_store_without_put_if_absent_is_found(tmp_path: Path) -> None:
    store: Any = Careless(str(tmp_path), deletes=True)
    failed = [("put-if-absent", "failed"), ("puts at once", "failed")]
    assert [(each.name, each.state) for each in put_checks(store, NAME)] == [*failed, CLOCK]
    assert store.list_all() == []


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    store: Any = Careless(str(tmp_path), deletes=False)
    *_, last = put_checks(store, NAME)
    assert (last.name, last.state) == ("cleaning up", "warning")
    assert NAME in last.advice


def test_keys_that_may_not_delete_fail(tmp_path: Path) -> None:
    store: Any = Careless(str(tmp_path), deletes=False, refusal=StorePermissionDenied)
    *_, last = put_checks(store, NAME)
    assert (last.name, last.state) == ("deleting", "failed")
    assert last.found == "these keys may not delete; Spark's writes and VACUUM need it"
    assert NAME in last.advice


@pytest.mark.parametrize(("won", "kept"), [(2, True), (8, False), (1, False), (0, False)])
def test_more_than_one_winner_and_lost_bytes_of_a_winner_fail(won: int, kept: bool) -> None:
    assert at_once_check(won, kept=kept).state == "failed"
    assert at_once_check(1, kept=True).state == at_once_check(0, kept=True).state == "ok"


@pytest.mark.clouds
@pytest.mark.slow
def test_a_server_that_looks_before_it_writes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto refuses the second of two puts, and lets several win that come at once."""
    looked, at_once = S3Response._get_checksum, list[str]()

    def together(self: S3Response, headers: dict[str, object]) -> object:
        if self.path.endswith("-at-once"):
            at_once.append(self.path)
            until(lambda: len(at_once) > 3, "another put of the name")  # moto may fail of itself at some of the eight
        return looked(self, headers)

    monkeypatch.setattr(S3Response, "_get_checksum", together)
    with moto_s3.serving(turn=nullcontext()) as environment:
        found = {each.name: each for each in put_checks(open_store("s3://bucket/looks", environment), NAME)}
    assert found["put-if-absent"].state == "ok"
    assert found["puts at once"].state == "failed"
    assert "were told that they won" in found["puts at once"].found


@pytest.mark.slow
@pytest.mark.clouds
def test_a_server_is_tried_and_a_bucket_that_is_missing_needs_no_other_credentials() -> None:
    with moto_s3.serving() as environment:
        store = open_store("s3://bucket/tried", environment)
        assert worst(put_checks(store, NAME)) == "ok"
        assert store.list_all() == []
        (missing,) = put_checks(open_store("s3://elsewhere/x", environment), NAME)
    assert (missing.state, missing.advice) == ("failed", "")
    assert "There is no bucket" in missing.found


@pytest.mark.parametrize("location", ["nothing://x/y", pytest.param("http://127.0.0.1:9/x", marks=pytest.mark.slow)])
def test_a_store_that_cannot_be_used_fails(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two questions
    assert worst(store_checks(location)) == "failed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_fails(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert worst(store_checks(str(tmp_path))) == "failed"
    tmp_path.chmod(0o700)


@pytest.mark.slow
def test_the_exit_code_is_1_if_a_check_fails(table: Path) -> None:
    assert CliRunner().invoke(app, ["doctor", str(table)]).exit_code == 0
    done = CliRunner().invoke(app, ["doctor", "nothing://x/y"])
    assert done.exit_code == 1
    assert "failed   store: [STORE_UNKNOWN]" in done.output


@pytest.mark.slow
def test_no_secret_of_a_location_is_printed() -> None:
    done = CliRunner().invoke(app, ["doctor", "s3://key:hunter2@bucket/x"])
    assert "hunter2" not in done.output


@pytest.mark.spark
def test_a_job_runs_in_workers_if_it_is_asked_for(spark: Any) -> None:
    done = CliRunner().invoke(app, ["doctor", "--spark", "--json"])
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert checks["Spark"]["found"] == spark.version
    assert checks["job in workers"]["state"] == "ok"


@pytest.mark.spark
def test_spark_writes_and_reads_at_the_location_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "not" / "there"
    done = CliRunner().invoke(app, ["doctor", str(place), "--spark", "--json"])
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert checks["Spark at the store"]["state"] == "ok", checks
    assert "cleaning up" not in checks
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("root", "why"),
    [
        ("s3://no-such-bucket-here/t", "Spark has no connector for s3://no-such-bucket-here/t: start it with"),
        ("memory://doctor/t", "it lives in this Python process, where Spark cannot see it."),
    ],
)
def test_a_store_that_spark_cannot_reach_fails_by_its_reason(spark: Any, root: str, why: str) -> None:
    from anabranch._cli.spark_probe import check_write_and_read

    check = check_write_and_read(spark, root, "folder/spark")
    assert check.state == "failed"
    assert why in check.found


@pytest.mark.spark
def test_spark_that_may_not_write_fails(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    from anabranch._cli.spark_probe import check_write_and_read

    check = check_write_and_read(spark, f"file://{tmp_path}/file", "folder/spark")
    assert check.state == "failed"
    assert "at org.apache" not in check.found


def test_a_folder_that_may_not_be_looked_into_fails_the_checks_and_not_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(folder: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "exists", denied)  # root may look into any folder
    assert [check.state for check in store_checks(str(tmp_path))] == ["ok"] * 5
