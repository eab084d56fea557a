"""DESCRIBE HISTORY and DESCRIBE DETAIL in Delta's own columns."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.steps import TAG
from anabranch.commands.queries.describe import DETAIL, HISTORY, SHOWN_HISTORY, as_table, detail, history
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(str(tmp_path / "t")).create([{"id": i, "p": "ab"[i % 2]} for i in range(4)], partition_by=("p",))
    made.delete("id = 1")
    return made


def test_the_history_has_deltas_columns_newest_first(world: World) -> None:
    rows = history(world.path)
    assert [(row["version"], row["operation"]) for row in rows] == [(1, "DELETE"), (0, "WRITE")]
    assert set(HISTORY.names) <= set(rows[0])
    assert rows[0]["readVersion"] == 0
    assert rows[0]["operationMetrics"]["numDeletedRows"] == "1"
    assert rows[1]["isBlindAppend"] is False
    assert rows[0]["timestamp"].tzinfo == dt.UTC
    assert rows[0]["timestamp"] >= rows[1]["timestamp"]


@pytest.mark.parametrize("tags", [None, 7, "garbage", [1], {}, {TAG: None}])
def test_a_stranger_need_not_say_what_did_each_step(tmp_path: Path, tags: Any) -> None:
    put_commit(tmp_path, 0, info() if tags is None else info(tags=tags), PROTOCOL, metadata())
    (row,) = history(tmp_path)
    assert row["steps"] is None
    assert as_table([row], HISTORY).schema == HISTORY


@pytest.mark.parametrize("steps", [7, {"find": "spark"}, ["find"], "x" * 100_000])
def test_what_a_stranger_says_in_place_of_steps_is_a_text(tmp_path: Path, steps: Any) -> None:
    put_commit(tmp_path, 0, info(tags={TAG: steps}), PROTOCOL, metadata())
    (row,) = history(tmp_path)
    assert row["steps"] == (steps if isinstance(steps, str) else json.dumps(steps))
    assert "steps" not in SHOWN_HISTORY.names


def test_a_limit_keeps_the_newest(world: World) -> None:
    assert [row["version"] for row in history(world.path, 1)] == [1]


def test_parameters_and_metrics_of_others_become_texts(tmp_path: Path) -> None:
    put_commit(
        tmp_path,
        0,
        info(operationParameters={"mode": "x", "columns": ["a"], "n": 5}, operationMetrics={"numFiles": 3}),
        PROTOCOL,
        metadata(),
    )
    put_commit(tmp_path, 1, add("a"))
    put_commit(tmp_path, 2, info(operationParameters=None, operationMetrics=None, readVersion=1))
    newest, middle, oldest = history(tmp_path)
    assert oldest["operationParameters"]["n"] == "5"
    assert oldest["operationMetrics"] == {"numFiles": "3"}
    assert middle["operation"] is None
    assert newest["operationParameters"] is None
    assert oldest["operationParameters"]["columns"] == '["a"]'
    assert as_table([newest, middle, oldest], HISTORY).schema == HISTORY


def test_what_others_say_in_another_form_is_left_out(tmp_path: Path) -> None:
    odd = {"readVersion": "seven", "isBlindAppend": "yes", "operationMetrics": [1], "notebook": 5, "clusterId": 3}
    put_commit(tmp_path, 0, info(**odd, job={"jobId": 12, "more": 1}, userName=None), PROTOCOL, metadata())
    (row,) = history(tmp_path)
    absent = ("readVersion", "isBlindAppend", "operationMetrics", "notebook", "userName")
    assert [row[name] for name in absent] == [None] * 5
    assert (row["clusterId"], row["job"]["jobId"], row["job"]["runId"]) == ("3", "12", None)
    assert as_table([row], HISTORY).num_rows == 1


@pytest.mark.parametrize("limit", [-1, 1.5, "2", True])
def test_a_limit_is_a_whole_number_from_0(world: World, limit: Any) -> None:
    assert history(world.path, 0) == []
    with pytest.raises(errors.InvalidOption):
        history(world.path, limit)


def test_detail_names_the_clustering_columns(tmp_path: Path) -> None:
    schema = Struct((Field("id", "long"), Field("s", Struct((Field("a", "long"),)))))
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    domain = {"domain": "delta.clustering", "removed": False}
    said = {**domain, "configuration": json.dumps({"clusteringColumns": [["id"], ["s", "a"]]})}
    put_commit(tmp_path, 0, info(), {"protocol": protocol}, metadata(schema), {"domainMetadata": said})
    assert detail(tmp_path)["clusteringColumns"] == ["id", "s.a"]
    put_commit(tmp_path, 1, info(), {"domainMetadata": {**domain, "configuration": "[]"}})
    with pytest.raises(errors.CorruptLog, match="clustering columns"):
        detail(tmp_path)


def test_detail_says_what_the_table_is(world: World) -> None:
    found = detail(world.path)
    assert set(found) == set(DETAIL.names)
    assert (found["format"], found["location"]) == ("delta", world.log.table)
    assert (found["partitionColumns"], found["numFiles"]) == (["p"], 2)
    assert found["sizeInBytes"] == sum(file.stat().st_size for file in Path(world.path).rglob("p=*/*.parquet"))
    assert found["properties"]["delta.enableDeletionVectors"] == "true"
    assert (found["minReaderVersion"], found["minWriterVersion"]) == (3, 7)
    assert "deletionVectors" in found["tableFeatures"]
    assert found["createdAt"] <= found["lastModified"]
    assert as_table([found], DETAIL).schema == DETAIL


def test_an_empty_table_has_no_size(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata())
    found = detail(tmp_path)
    assert (found["numFiles"], found["sizeInBytes"], found["createdAt"]) == (0, 0, None)
    assert as_table([found], DETAIL).num_rows == 1


@pytest.mark.parametrize("ask", [history, detail])
def test_no_table_is_refused(tmp_path: Path, ask: object) -> None:
    with pytest.raises(errors.NotATable):
        ask(tmp_path / "nothing")  # type: ignore[operator]
