"""VACUUM as a dry run over a hundred thousand files, half of which nothing needs, beside delta-rs; and delta-spark
where its environment is there (`make interop`). All must find the same files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from deltalake import DeltaTable

import anabranch
from anabranch._log.log import forget
from benchmarks.harness import Cost, Line, Result, Tell, by_turns, compared, cost, spread
from tests.support.delta_spark import DeltaSpark
from tools import interop

FILES = 100_000
FOLDERS = 100
ROUNDS = 5


def run(folder: Path, rows: int, tell: Tell, *, files: int = FILES, beside_spark: bool = True) -> Result:
    """Measure; ``rows`` does not matter here."""
    table = folder / "t"
    tell(f"making {files} files")
    stray = _make(table, files)
    with ExitStack() as stack:
        contenders: dict[str, Callable[[], Cost]] = {
            "anabranch": lambda: cost(lambda: _same(_ours(table), stray)),
            "deltalake": lambda: cost(lambda: _same(_theirs(table), stray)),
        }
        if beside_spark and interop.is_ready():
            delta_spark = stack.enter_context(DeltaSpark())
            delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
            contenders["delta-spark"] = lambda: cost(lambda: _same(_on_spark(delta_spark, table), stray))
        found = by_turns(contenders, ROUNDS, tell, warm_ups=1)
    ours = found["anabranch"]
    others = [name for name in contenders if name != "anabranch"]
    return Result(
        name="vacuum",
        title="VACUUM, dry run",
        setting=f"{files} files in {FOLDERS} folders of a local disk, {stray} not in the log, {ROUNDS} rounds by turns",
        lines=[Line(name, spread(costs)) for name, costs in found.items()],
        ratios=[ratio for name in others for ratio in compared(f"anabranch over {name}", ours, found[name])],
        notes=[f"Load of the machine at the end: {os.getloadavg()[0]:.1f} over one minute, on {os.cpu_count()} cores."],
    )


def _make(table: Path, files: int) -> int:
    """A table of which every other file is in no commit; how many those are. The files hold one byte each."""
    anabranch.append(table, [{"id": 1}], properties={"delta.enableDeletionVectors": "false"})
    adds = []
    for number in range(files - 1):
        name = f"f{number % FOLDERS}/part-{number}.parquet"
        (table / name).parent.mkdir(exist_ok=True)
        (table / name).write_bytes(b"x")
        os.utime(table / name, (0, 0))
        if number % 2:
            add = {"path": name, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
            adds.append(json.dumps({"add": add}))
    info = json.dumps({"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}})
    (table / "_delta_log" / f"{1:020}.json").write_text("\n".join([info, *adds, ""]), encoding="utf-8")
    return files - 1 - len(adds)


def _same(found: int, stray: int) -> None:
    assert found == stray, f"{found} files were found, not {stray}"


def _ours(table: Path) -> int:
    forget()
    return len(anabranch.vacuum(table, 1, dry_run=True, check_retention=False).files)


def _theirs(table: Path) -> int:
    return len(DeltaTable(str(table)).vacuum(1, dry_run=True, enforce_retention_duration=False, full=True))


def _on_spark(delta_spark: DeltaSpark, table: Path) -> int:
    found = delta_spark.query(f"VACUUM delta.`{table}` RETAIN 1 HOURS DRY RUN")
    return int(found.num_rows)
