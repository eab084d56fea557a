"""A race on S3: two Spark drivers and two processes without Spark change one table, and nothing is lost or twice.

It takes some minutes, or as many seconds as the environment variable ANABRANCH_RACE_SECONDS says: half an hour by
``make clouds RACE_SECONDS=1800``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import anabranch
from anabranch._log.log import forget
from tests.clouds.running import required, s3_copy, s3_settings
from tests.storage import moto_s3
from tests.support import racing
from tests.support.patience import PATIENCE, WHOLE_TEST
from tests.support.readers import duckdb_rows
from tools import connectors

SECONDS = float(os.environ.get("ANABRANCH_RACE_SECONDS", "150"))
pytestmark = [pytest.mark.clouds, pytest.mark.spark, pytest.mark.timeout(WHOLE_TEST + int(SECONDS))]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """The environment of a server."""
    required("" if connectors.jars() else "Spark's connectors are not here; `make clouds` brings them")
    with moto_s3.serving() as environment:
        yield environment


def test_two_drivers_and_two_processes_race_and_nothing_is_lost_or_twice(
    s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    rows = [{"id": each, "x": 0} for each in range(racing.SHARED)]
    anabranch.append("s3a://bucket/race", rows)
    told = raced(s3, "s3a://bucket/race", tmp_path)
    print(racing.summary(told))
    table = s3_copy(s3, "race", tmp_path / "copy")
    assert racing.faults(told, table) == []
    wanted = racing.expected([each for each in told if each.tag in set(racing.tags(table))])
    forget()
    assert {row["id"]: row["x"] for row in duckdb_rows(str(table))} == wanted
    assert anabranch.check("s3a://bucket/race").is_clean
    changed = {each.verb for each in told if each.told == "committed"}
    assert changed >= {"append", "update", "merge", "delete"}


def raced(s3: Mapping[str, str], url: str, folder: Path) -> list[racing.Done]:
    """Let all of them race, and give what they were told."""
    settings, kinds = json.dumps(s3_settings(s3)), ("spark", "spark", "plain", "plain")
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    (folder / "told").mkdir()
    running = []
    for number, kind in enumerate(kinds, start=1):
        words = [kind, url, str(number), str(SECONDS), str(folder / "told"), settings]
        command = [sys.executable, "-m", "tests.clouds.racers", *words]
        log = folder / f"{kind}{number}.log"
        with log.open("w") as said:
            running.append((subprocess.Popen(command, env={**own, **s3}, stdout=said, stderr=said), log))
    for process, log in running:
        process.wait(timeout=PATIENCE + SECONDS)
        assert log.read_text().splitlines()[-1:] == ["all done"], log.read_text()[-4000:]
    return racing.journals(folder / "told")
