"""What Spark is given: planned beside the driver, read on executors that have nothing of ours."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition

from anabranch._streaming import arrow_rows, data_source
from anabranch._streaming.data_source import Reader
from tests.support.patience import PATIENCE
from tests.support.streams import stream_read
from tests.support.worlds import World, table_path

EXECUTOR = """
import pickle, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"anabranch", "pyroaring", "obstore", "sqlglot", "numpy", "pandas"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
with open(sys.argv[1], "rb") as file:
    reader, partitions = pickle.load(file), pickle.load(file)
print(sorted(row["id"] for each in partitions for batch in reader.read(each) for row in batch.to_pylist()))
"""


def on_an_executor(reader: Reader, partitions: list[InputPartition], folder: Path) -> str:
    """What a process without our packages reads."""
    for module in (arrow_rows, data_source):
        cloudpickle.register_pickle_by_value(module)
    sent = folder / "sent"
    sent.write_bytes(cloudpickle.dumps(reader) + pickle.dumps(partitions))
    command = [sys.executable, "-c", EXECUTOR, str(sent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_executors_read_rows_with_nothing_of_ours_installed(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "g": i % 2} for i in range(6)], partition_by=("g",))
    world.delete("id = 3")
    reader = Reader(stream_read(world.path).to_json(), "", "{}")
    start = reader.initialOffset()
    partitions = list(reader.partitions(start, reader.latestOffset()))
    fresh = Reader(stream_read(world.path).to_json(), "", "{}")  # as pickled before it plans anything
    assert on_an_executor(fresh, partitions, tmp_path) == "[0, 1, 2, 4, 5]"


def test_without_limits_a_batch_goes_to_the_newest_version_and_is_the_same_when_done_again(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    read = stream_read(world.path).to_json()
    reader = Reader(read, "", "{}")
    end = reader.latestOffset()  # before Spark asks where to begin, as PySpark 4.0 does for Trigger.AvailableNow
    world.append({"id": 2})
    for each in (reader, Reader(read, "", "{}")):
        tasks = [task.value for task in each.partitions(reader.initialOffset(), end)]
        assert [len(task["files"]) for task in tasks] == [1]
    later = reader.latestOffset()
    assert [len(task.value["files"]) for task in reader.partitions(end, later)] == [1]
    assert list(reader.partitions(later, reader.latestOffset())) == []
