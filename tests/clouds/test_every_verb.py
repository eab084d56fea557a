"""Every verb on every store, whose rows Spark reads and writes: in one process, on a cluster, and by Spark Connect."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clouds.running import SETTINGS, required, run_script, run_verbs
from tests.clouds.stores import STORES, Place
from tests.support.connect_scripts import the_port
from tests.support.spark_servers import cluster
from tools import bare_python

pytestmark = [pytest.mark.clouds, pytest.mark.spark]

WAYS = ["classic", "cluster", "connect"]


@pytest.mark.exhaustive(
    "tests/clouds/test_bad_networks.py::test_each_acknowledged_append_is_in_the_table_once",
    "tests/api/dataframe/test_install.py::test_a_job_of_delta_runs_as_it_is",
)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("store", STORES)
def test_every_verb_runs(store: str, way: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    why_absent, serving = STORES[store]
    required(why_absent())
    folder = tmp_path_factory.mktemp("servers")
    with serving(folder) as place, _master(way, folder) as master:
        run_verbs(f"{place.url}/all verbs {way}", master, _settings(place, way), _environment(place, way))


@pytest.mark.exhaustive(
    "tests/system/test_working_folder.py::test_a_relative_path_begins_where_spark_begins_wherever_python_has_gone_since",
    "tests/system/test_working_folder.py::test_a_file_system_of_the_sessions_own_is_never_taken_for_the_disk",
)
@pytest.mark.parametrize("way", ["classic", "cluster"])
def test_a_path_without_a_scheme_lies_on_the_default_file_system_by_every_door(
    way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    why_absent, serving = STORES["HDFS as the default"]
    required(why_absent())
    folder = tmp_path_factory.mktemp("servers")
    works = folder / "works"
    works.mkdir()
    with serving(folder) as place, _master(way, folder) as master:
        default = place.settings["spark.hadoop.fs.defaultFS"]
        arguments = (default, str(works), master, json.dumps(_settings(place, way)))
        run_script("tests.clouds.bare_paths", arguments, _environment(place, way))
    assert list(folder.rglob("*.parquet")) == []  # nor has a worker written to its own disk


@contextmanager
def _master(way: str, folder: Path) -> Iterator[str]:
    """What Spark runs on. The workers of the cluster have nothing of ours; the server of Spark Connect has."""
    if way == "cluster":
        required("" if bare_python.is_ready() else "there is no Python for the workers; `make clouds` brings it")
        with cluster(folder) as address:
            yield address
    elif way == "connect":
        pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
        with the_port():
            yield "connect"
    else:
        yield "local[2]"


def _settings(place: Place, way: str) -> dict[str, str]:
    java = f"{SETTINGS['spark.driver.extraJavaOptions']} {place.trusts}".strip()
    told = {**SETTINGS, **place.settings, "spark.driver.extraJavaOptions": java}
    if way != "cluster":
        return told
    told |= {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "768m", "spark.executor.extraJavaOptions": java}
    return told | {f"spark.executorEnv.{name}": value for name, value in place.environment.items()}


def _environment(place: Place, way: str) -> Mapping[str, str]:
    """Each machine of a cluster runs the python3 of its own PATH: the driver this one, the workers theirs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**place.environment, "PATH": path, "PYSPARK_PYTHON": "python3"} if way != "classic" else place.environment
