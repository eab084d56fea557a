"""The sink on Spark Connect: a server without the package refuses it in words."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from anabranch._streaming import on_connect
from anabranch._streaming.on_connect import OnServer
from anabranch._streaming.sink import query_of
from anabranch.errors import ExecutionFailed

SERVER = """
import pickle, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "anabranch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
with open(sys.argv[1], "rb") as file:
    pickle.load(file)(None, 0)
"""


@pytest.mark.slow
def test_a_server_without_the_package_says_what_it_needs(tmp_path: Path) -> None:
    cloudpickle.register_pickle_by_value(on_connect)
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps(OnServer(b"", "", "Anabranch/9")))
    done = subprocess.run([sys.executable, "-c", SERVER, str(sent)], capture_output=True, text=True, cwd=tmp_path)
    assert "[NOT_BUILT_YET]" in done.stderr
    assert "needs Anabranch/9, and has none: install it there" in done.stderr


def test_a_server_with_another_version_says_so() -> None:
    with pytest.raises(RuntimeError, match="needs Anabranch/9, and has"):
        OnServer(pickle.dumps(None), "", "Anabranch/9")(None, 0)


def test_the_id_of_a_query_is_that_of_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "some-id"}))
    assert query_of(str(tmp_path)) == "some-id"
    (tmp_path / "metadata").write_text("[]")
    with pytest.raises(ExecutionFailed, match="its id is not in the checkpoint"):
        query_of(str(tmp_path))
    with pytest.raises(ExecutionFailed, match="its id is not in the checkpoint"):
        query_of(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"id": null}', '{"id": ["x"]}', '{"id": ""}', "\udcff", "{" + " " * (65 << 20)]
)
def test_an_id_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """Under another id a batch that was written would be written again."""
    (tmp_path / "metadata").write_text(text, errors="surrogateescape")
    with pytest.raises(ExecutionFailed, match="its id is not in the checkpoint") as refused:
        query_of(str(tmp_path))
    assert len(str(refused.value)) < 2000


def test_a_pipe_is_no_checkpoint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metadata")
    with pytest.raises(ExecutionFailed, match="its id is not in the checkpoint"):
        query_of(str(tmp_path))
