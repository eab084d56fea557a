"""One piece of work on a log in a process of its own: what it costs on first use, and how much memory at most.

`measured` starts the process; `python -m benchmarks.cold` is that process. The libraries are imported, and one tiny
table is opened, before the clock starts: a first use of a table is measured, not a first use of Python. No process
imports the library of the other engine, whose memory would count, too.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks import synthetic
from benchmarks.harness import Cost

ROW = pa.table({"id": [-1], "amount": [1.5], "word": ["word"], "day": [dt.date(2024, 2, 29)]})


@dataclass(frozen=True)
class Cold(Cost):
    """What it cost, with the memory of the process at its peak; the memory before the work; and what came of it."""

    before_mb: float = 0.0
    answer: int = 0


def measured(engine: str, task: str, table: Path) -> Cold:
    """What a task (see `TASKS`) costs an engine in a new process."""
    return in_process(__name__, engine, task, str(table))


def in_process(module: str, *arguments: str) -> Cold:
    """What a new process of this module prints of its work."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True)
    return Cold(**json.loads(done.stdout))


def opened_by_anabranch(path: str) -> int:
    """Open it and learn all live files; returns how many."""
    from anabranch.commands.opening import open_log

    return int(open_log(path).snapshot().files.num_rows)


def opened_by_deltalake(path: str) -> int:
    """The same; delta-rs reads the live files when a table is opened."""
    from deltalake import DeltaTable

    return int(DeltaTable(path).get_add_actions().num_rows)


def appended_by_anabranch(path: str) -> int:
    """Append one row; returns of how many files the process then knows."""
    import anabranch
    from anabranch.commands.opening import open_log

    anabranch.append(path, ROW)
    snapshot = open_log(path).snapshot()
    return int(snapshot.files.num_rows) if snapshot.files_are_loaded else 0


def appended_by_deltalake(path: str) -> int:
    """The same; it knows all files."""
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable(path)
    write_deltalake(table, ROW, mode="append")
    return int(table.get_add_actions().num_rows)


TASKS: dict[tuple[str, str], Callable[[str], int]] = {
    ("anabranch", "open"): opened_by_anabranch,
    ("deltalake", "open"): opened_by_deltalake,
    ("anabranch", "append"): appended_by_anabranch,
    ("deltalake", "append"): appended_by_deltalake,
}


def _main(engine: str, task: str, path: str) -> Cold:
    work = TASKS[engine, task]
    with tempfile.TemporaryDirectory() as folder:
        work(str(synthetic.with_checkpoint(Path(folder), 1)))
    return costs(lambda: work(path))


def costs(work: Callable[[], int]) -> Cold:
    """What work costs that this process does alone."""
    before_mb, cpu, began = _memory_mb("VmRSS"), time.process_time(), time.perf_counter()
    answer = work()
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    return Cold(wall_s, cpu_s, _memory_mb("VmHWM"), before_mb, answer)


def _memory_mb(which: str) -> float:
    """Of this process alone: what the kernel counts for its children begins with what their parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    found = re.search(rf"^{which}:\s+(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


if __name__ == "__main__":
    print(json.dumps(asdict(_main(*sys.argv[1:]))))
