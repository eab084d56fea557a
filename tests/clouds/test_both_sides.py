"""What one side is told suffices for both: in an environment that knows no store, on two servers with other keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clouds.both_sides import STAGES
from tests.clouds.running import required, s3_settings
from tests.clouds.stores import STORES
from tests.storage import minio_s3
from tests.support.connect_scripts import the_port
from tests.support.planted import SECRET

pytestmark = [pytest.mark.clouds, pytest.mark.spark]

ANOTHER = f"{SECRET} of the second server"


class Servers(NamedTuple):
    """Two servers: where their files are, the settings of a session, and those that are given for one call."""

    folder: Path
    session: Mapping[str, str]
    second: Mapping[str, str]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Buckets of the second server: ``second``, which the session knows, and others, which it does not."""
    required(STORES["S3 (MinIO)"][0]())
    folder = tmp_path_factory.mktemp("servers")
    buckets = ("second", "third", "fourth")
    with minio_s3.serving(folder / "1") as one, minio_s3.serving(folder / "2", buckets, ANOTHER) as other:
        names = {"endpoint": "AWS_ENDPOINT", "access.key": "AWS_ACCESS_KEY_ID", "secret.key": "AWS_SECRET_ACCESS_KEY"}
        told = {name: other[variable] for name, variable in names.items()}
        own = {f"spark.hadoop.fs.s3a.bucket.second.{name}": value for name, value in told.items()}
        yield Servers(folder, {**s3_settings(one), **own}, {f"fs.s3a.{name}": value for name, value in told.items()})


@pytest.mark.parametrize("stage", STAGES)
def test_settings_of_one_side_suffice(stage: str, servers: Servers) -> None:
    run(stage, "local[2]", servers)


@pytest.mark.parametrize("stage", ["settings_of_a_call", "storage_options_of_a_read"])
def test_settings_of_a_call_suffice_on_connect(stage: str, servers: Servers) -> None:
    """Of a session's settings Spark Connect shows none that holds a secret, so only what is given counts there."""
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    with the_port():
        run(stage, "connect", servers)


def run(stage: str, master: str, servers: Servers) -> None:
    """One stage, in a process of its own; it leaves no secret in what it prints, nor in what lies on the servers."""
    settings = dict(servers.session)
    if stage == "settings_of_a_call":  # there the session says nothing of the second server
        settings = {name: value for name, value in settings.items() if ".bucket.second." not in name}
    command = [sys.executable, "-m", "tests.clouds.both_sides", stage, master]
    command += [json.dumps(settings), json.dumps(servers.second)]
    done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).replace(SECRET, "<the secret>")
    assert done.stdout.splitlines()[-1:] == ["all done"], said[-6000:]
    assert SECRET not in done.stdout + done.stderr, said[-6000:]
    found = [file for file in stored(servers.folder) if SECRET.encode() in file.read_bytes()]
    assert found == []


def stored(folder: Path) -> Iterator[Path]:
    """What lies in the buckets, beside what the servers keep of themselves."""
    return (file for file in folder.rglob("*") if file.is_file() and ".minio.sys" not in file.parts)


def plain_environment() -> dict[str, str]:
    """This process's, without what speaks of stores or of Spark."""
    others = ("PYSPARK", "SPARK_", "AWS_", "AZURE_", "GOOGLE_", "HADOOP_")
    return {key: value for key, value in os.environ.items() if not key.startswith(others)}
