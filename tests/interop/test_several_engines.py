"""Several engines write one table at once: ours by processes and by threads of one Spark, delta-rs, and delta-spark.

Every engine appends, updates, deletes, merges, vacuums and writes checkpoints, and one compacts, for as many seconds as
the environment variable ANABRANCH_ENGINES_SECONDS says; no two, since delta-rs would commit a compaction on top of
another one. What each was told is compared with the log and with the rows as readers see them that none of the writers
is. delta-spark's store of local files looks whether a version is free, and then renames a file over it: where it writes
too, each commit that is gone was seen to stand, and a commit of its own stands there now.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import anabranch
from anabranch._log.log import forget
from tests.clouds.running import SETTINGS, s3_copy, s3_settings
from tests.storage import moto_s3
from tests.support import racing
from tests.support.delta_spark import REQUIRED, DeltaSpark, DeltaSparkError
from tests.support.patience import PATIENCE, WHOLE_TEST
from tests.support.racing import Done, Racer, in_sql, seen_in
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World
from tools import connectors

SECONDS = float(os.environ.get("ANABRANCH_ENGINES_SECONDS", "60"))
pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.timeout(WHOLE_TEST + int(SECONDS))]

Running = list[tuple["subprocess.Popen[bytes]", Path]]
NOT_DELTA_RS = {"rs3": "optimize", "rs4": "optimize"}
NOT_OURS = {"spark": "optimize", "rs4": "optimize"}


def started(table: str, folder: Path, without: Mapping[str, str], more: Mapping[str, str] | None = None) -> Running:
    """Two threads of one Spark and a process of ours, and two processes of delta-rs, each without some verbs."""
    told = folder / "told"
    told.mkdir()
    settings = json.dumps(
        {**SETTINGS, **(more or {}), "spark.driver.memory": "1g", "without": without.get("spark", "")}
    )
    rest = [str(SECONDS), str(told)]
    words = {
        "spark": ["tests.clouds.racers", "spark", table, "1", *rest, settings],
        "plain": ["tests.clouds.racers", "plain", table, "2", *rest, settings],
        "rs3": ["tests.interop.delta_rs_racer", table, "3", *rest, without.get("rs3", "")],
        "rs4": ["tests.interop.delta_rs_racer", table, "4", *rest, without.get("rs4", "")],
    }
    return [_started(folder / f"{name}.log", each) for name, each in words.items()]


def _started(log: Path, words: Sequence[str]) -> tuple[subprocess.Popen[bytes], Path]:
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    with log.open("w") as said:
        return subprocess.Popen([sys.executable, "-m", *words], env=own, stdout=said, stderr=said), log


def ended(running: Running) -> None:
    """Wait for all of them."""
    for process, log in running:
        process.wait(timeout=PATIENCE + SECONDS)
        assert log.read_text().splitlines()[-1:] == ["all done"], log.read_text()[-4000:]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of the shared rows."""
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": each, "x": 0} for each in range(racing.SHARED)])
    return path


@pytest.mark.skipif(not REQUIRED, reason="it takes minutes; `make interop` runs it")
@pytest.mark.parametrize("without", [NOT_DELTA_RS, NOT_OURS], ids=["ours compacts", "delta-rs compacts"])
def test_ours_and_delta_rs_race_and_nothing_is_lost_or_twice(
    table: str, tmp_path: Path, without: Mapping[str, str]
) -> None:
    ended(started(table, tmp_path, without))
    told = racing.journals(tmp_path / "told")
    print(racing.summary(told))
    assert racing.faults(told, Path(table)) == []
    agree(table)
    acknowledged = {each.tag[:5] for each in told if each.told == "committed"}
    assert acknowledged == {"spark", "plain", "delta"}


@pytest.mark.skipif(not REQUIRED, reason="it takes minutes; `make interop` runs it")
def test_ours_and_delta_rs_race_on_s3_and_nothing_is_lost_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not connectors.jars():
        pytest.skip("Spark's connectors are not here; `make clouds` brings them")
    with moto_s3.serving() as s3:
        for name, value in s3.items():
            monkeypatch.setenv(name, value)
        anabranch.append("s3://bucket/engines", [{"id": each, "x": 0} for each in range(racing.SHARED)])
        ended(started("s3://bucket/engines", tmp_path, NOT_DELTA_RS, s3_settings(s3)))
        table = s3_copy(s3, "engines", tmp_path / "copy")
    told = racing.journals(tmp_path / "told")
    print(racing.summary(told))
    assert racing.faults(told, table) == []
    agree(str(table))


def test_what_is_lost_beside_delta_spark_was_overwritten_by_it(
    table: str, tmp_path: Path, delta_spark: DeltaSpark
) -> None:
    running = started(table, tmp_path, NOT_DELTA_RS)
    theirs = Racer("theirs", 5, in_sql(delta_spark.sql, table), told_by_delta_spark, look=seen_in(table))
    theirs.race(SECONDS, tmp_path / "told" / "theirs.jsonl")
    ended(running)
    told = racing.journals(tmp_path / "told")
    print(racing.summary(told))
    overwritten = lost(told, Path(table))
    print(f"overwritten: {sorted(overwritten.items())}")
    assert set(overwritten.values()) <= {"delta-spark"}, "nobody else takes a version that is taken"
    assert racing.faults(told, Path(table), overwritten) == []
    if not overwritten:
        agree(table)


def test_delta_rs_compacts_on_top_of_a_compaction_and_every_row_is_there_twice(tmp_path: Path) -> None:
    """Why no two compact above; the page of other engines says so. If it fails, delta-rs has mended it."""
    world = World(str(tmp_path / "t"))
    for each in range(3):
        anabranch.append(world.path, [{"id": each}])
    theirs = deltalake.DeltaTable(world.path)
    world.optimize()
    theirs.optimize.compact()
    assert [row["id"] for row in duckdb_rows(world.path)] == [0, 0, 1, 1, 2, 2]


def test_delta_rs_reads_vectors_by_its_query_builder_and_not_by_to_pandas(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": each, "x": 0} for each in range(3)])
    for delete in (None, "id = 1"):  # it refuses the feature, whether or not a row is deleted
        if delete:
            world.delete(delete)
        table = deltalake.DeltaTable(world.path)
        for read in (table.to_pandas, table.to_pyarrow_table, table.to_pyarrow_dataset):
            with pytest.raises(deltalake.exceptions.DeltaProtocolError, match="deletionVectors"):
                read()
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT id FROM t ORDER BY id")
    assert pa.table(query.read_all()).to_pydict() == {"id": [0, 2]}


def lost(told: Sequence[Done], table: Path) -> dict[str, str]:
    """The commits that were seen to stand and do not stand any more, with the engine whose commit took their place."""
    infos = racing.commit_infos(table)
    stands = {str(info.get("userMetadata")) for info in infos}
    gone = [each for each in told if each.stood is not None and each.tag not in stands]
    return {each.tag: engine_of(str(infos[each.stood or 0].get("engineInfo"))) for each in gone}


def engine_of(info: str) -> str:
    """The engine that says this of itself in its commits."""
    names = {"Apache-Spark": "delta-spark", "Anabranch": "anabranch", "delta-rs": "delta-rs"}
    return next((name for begin, name in names.items() if info.startswith(begin)), info)


def told_by_delta_spark(error: Exception) -> str:
    """What an error of delta-spark means: a conflict, or something else."""
    assert isinstance(error, DeltaSparkError)
    return "refused" if "CONCURRENT" in error.condition or "Concurrent" in error.kind + error.text else "failed"


def agree(table: str) -> None:
    """Three readers see the same rows, ours among them, and no file is missing."""
    forget()
    assert same_rows(duckdb_rows(table), deltalake_rows(table))
    rows = racing.plain_rows(Path(table))
    assert Counter(row["id"] for row in rows) == Counter(row["id"] for row in duckdb_rows(table))
    assert anabranch.check(table, deep=True).is_clean
