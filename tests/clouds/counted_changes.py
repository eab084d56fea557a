"""How often UPDATE, DELETE and MERGE ask S3: ``… -m tests.clouds.counted_changes OPTIONS SETTINGS`` prints it as JSON.

Of each verb: the requests of Anabranch's own client, those of Spark's, and those of deltalake on an equal table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import pyarrow as pa
import pytest
from deltalake import DeltaTable as Theirs
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable as Ours
from tests.support.patience import PATIENCE
from tests.support.requests_counted import Counted, counted

COMMITS = 5
SOURCE = pa.table({"id": pa.array([7, 1_000], pa.int64()), "x": pa.array([1, 1], pa.int64())})


def rows(commit: int) -> pa.Table:
    """The rows of a commit, which overlap with those of no other one."""
    ids = pa.array(range(commit * 100, commit * 100 + 100), pa.int64())
    return pa.table({"id": ids, "x": pa.array([0] * 100, pa.int64())})


def merged(spark: SparkSession, place: str) -> None:
    source = spark.createDataFrame([(7, 1), (1_000, 1)], "id BIGINT, x BIGINT")
    merge = Ours.forPath(spark, place).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def merged_by_deltalake(table: Theirs) -> None:
    merge = table.merge(SOURCE, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


OURS: dict[str, Callable[[SparkSession, str], object]] = {
    "DELETE of a row": lambda spark, place: Ours.forPath(spark, place).delete("id = 7"),
    "UPDATE of a row": lambda spark, place: Ours.forPath(spark, place).update("id = 7", {"x": "1"}),
    "MERGE of two rows": merged,
    "read of a row": lambda spark, place: spark.read.format("delta").load(place).where("id = 7").collect(),
}
DELTALAKE: dict[str, Callable[[Theirs], object]] = {
    "DELETE of a row": lambda table: table.delete("id = 7"),
    "UPDATE of a row": lambda table: table.update(updates={"x": "1"}, predicate="id = 7"),
    "MERGE of two rows": merged_by_deltalake,
    "read of a row": lambda table: table.to_pyarrow_table(filters=[("id", "=", 7)]),
}


def made(place: str, options: dict[str, str]) -> None:
    """A table of one file per commit."""
    for commit in range(COMMITS):
        anabranch.append(place, rows(commit), storage_options=options)


def count_ours(options: dict[str, str], settings: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Of each verb: the requests of our client, and of Spark's."""
    found = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        asked, ours = stack.enter_context(counted(options))
        by_spark, sparks = stack.enter_context(counted(options))
        for name, value in asked.items():
            patch.setenv(name, value)
        told = settings | {"spark.hadoop.fs.s3a.endpoint": by_spark["AWS_ENDPOINT"]}
        spark = anabranch.install(anabranch.session("counted", "local[2]", **told))
        for verb, run in OURS.items():
            for place in ("s3a://bucket/warm-up", "s3a://bucket/counted"):
                made(f"{place}/{verb}", options)
                _forget(ours, sparks)
                run(spark, f"{place}/{verb}")
            found[verb] = len(ours.seen), len(sparks.seen)
    return found


def _forget(*counts: Counted) -> None:
    for each in counts:
        each.seen.clear()


def count_deltalake(options: Mapping[str, str], verb: str) -> int:
    """The requests of a verb, in a process of its own: deltalake would let no thread of this one answer it."""
    place = f"s3://bucket/deltalake/{verb}"
    for commit in range(COMMITS):
        write_deltalake(place, rows(commit), mode="append", storage_options=dict(options))
    with counted(options) as (asked, counts):
        command = [sys.executable, "-m", __spec__.name, verb, place, json.dumps(asked)]
        subprocess.run(command, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    return len(counts.seen)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        DELTALAKE[sys.argv[1]](Theirs(sys.argv[2], storage_options=json.loads(sys.argv[3])))
        os._exit(0)  # its threads may still run, and would abort a process that ends as usual
    else:
        store = json.loads(sys.argv[1])
        told = count_ours(store, json.loads(sys.argv[2]))
        print(json.dumps({verb: [*told[verb], count_deltalake(store, verb)] for verb in OURS}))
