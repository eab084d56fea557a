"""Servers of Spark for tests: a standalone cluster, and a server of Spark Connect, whose Python has nothing of ours."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.support.patience import PATIENCE
from tests.support.spark_options import QUICK_JAVA
from tools import bare_python

SPARK_HOME = Path(pyspark.__file__).parent

CONNECT_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"


def required(variable: str, reason: str) -> None:
    """Skip a test for this reason, if there is one; where a variable says that it was asked for, let it fail."""
    if reason:
        (pytest.fail if os.environ.get(variable) == "required" else pytest.skip)(reason)


def missing(target: str) -> str:
    """Why there are no servers; empty where there may be some."""
    if os.environ.get(f"ANABRANCH_{target.upper()}") != "required":
        return f"`make {target}` runs it"
    return "" if bare_python.is_ready() else f"there is no Python for the server; `make {target}` brings it"


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """A server of Spark Connect with two cores; the address of it."""
    port = _free_port()
    said = {"spark.connect.grpc.binding.port": str(port), "spark.driver.extraJavaOptions": QUICK_JAVA, **settings}
    configured = [word for name, value in said.items() for word in ("--conf", f"{name}={value}")]
    command = ["spark-submit", "--class", CONNECT_CLASS, "--master", "local[2]", *configured, "spark-internal"]
    with _running(command, folder / "connect.log", port, memory="2g"):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[str]:
    """A master and workers of one core each, with processes of their own; the address of the master."""
    port = _free_port()
    with ExitStack() as running:
        master = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(_free_port())]
        running.enter_context(_running(["spark-class", MASTER_CLASS, *master], folder / "master.log", port))
        for number in range(workers):
            own, host = _free_port(), f"127.0.0.{number + 2}"  # no host runs two attempts of one task
            worker = ["--host", host, "--port", str(own), "--webui-port", str(_free_port()), "--cores", "1"]
            worker += ["--memory", memory, "--work-dir", str(folder / f"worker-{number}")]
            command = ["spark-class", WORKER_CLASS, *worker, f"spark://127.0.0.1:{port}"]
            running.enter_context(_running(command, folder / f"worker-{number}.log", own, host=host))
        yield f"spark://127.0.0.1:{port}"


def _environment(memory: str) -> dict[str, str]:
    left = ("PYSPARK_", "SPARK_", "PYTHON", "ANABRANCH_", "VIRTUAL_ENV")
    own = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    daemon = {"SPARK_DAEMON_MEMORY": memory, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME)}
    path = f"{bare_python.python().parent}{os.pathsep}{own['PATH']}"
    return {**own, **daemon, "PATH": path, "PYSPARK_PYTHON": "python3", "PYSPARK_DRIVER_PYTHON": "python3"}


@contextmanager
def _running(command: list[str], log: Path, port: int, host: str = "127.0.0.1", memory: str = "256m") -> Iterator[None]:
    """A process of Spark's that listens at a port."""
    with log.open("wb") as told:
        words = [str(SPARK_HOME / "bin" / command[0]), *command[1:]]
        process = subprocess.Popen(
            words, stdout=told, stderr=subprocess.STDOUT, env=_environment(memory), cwd=log.parent
        )
    try:
        _wait_for(process, (host, port), log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)  # it has nothing more to do, and is killed if it does not end by itself
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], address: tuple[str, int], log: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(address) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"{log.name}: no server at {address}: " + log.read_text(errors="replace")[-3000:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
