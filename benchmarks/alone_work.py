"""One change of a large table in a process of its own, without Spark: what it costs, and how much memory at most.

`python -m benchmarks.alone_work <engine> <task> <small table> <table> <source>` is that process. The task is done to a
small table before the clock starts, so that a change is measured and not the first use of a library. No process
imports the library of the other engine, whose memory would count, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pyarrow.parquet as pq

from benchmarks.cold import costs

PERCENT = "percent = 17"
FEW = "few = 7"
ON = "t.id = s.id"
"""As in `benchmarks.large` and `benchmarks.merge`, which would bring our library into the other engine's process."""
ALIASES = {"source_alias": "s", "target_alias": "t"}
VALUES = {"amount": "amount * 1.1"}


def by_anabranch(task: str, path: str, source: str) -> Any:
    """Do a task to the table at a path."""
    import anabranch

    table = anabranch.table(path)
    works: dict[str, Callable[[], Any]] = {
        "delete": lambda: table.delete(PERCENT),
        "update": lambda: table.update(FEW, VALUES),
        "update all": lambda: table.update(None, VALUES),
        "merge": lambda: _upsert(table.merge(pq.read_table(source), ON, **ALIASES)),
    }
    return works[task]()


def by_deltalake(task: str, path: str, source: str) -> Any:
    """The same."""
    from deltalake import DeltaTable

    table = DeltaTable(path)
    works: dict[str, Callable[[], Any]] = {
        "delete": lambda: table.delete(PERCENT),
        "update": lambda: table.update(predicate=FEW, updates=VALUES),
        "update all": lambda: table.update(updates=VALUES),
        "merge": lambda: _upsert(table.merge(pq.read_table(source), ON, **ALIASES)),
    }
    return works[task]()


def _upsert(merge: Any) -> Any:
    """Both have builders of these names."""
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


ENGINES = {"anabranch": by_anabranch, "deltalake": by_deltalake}


def _main(engine: str, task: str, small: str, path: str, source: str) -> None:
    work = ENGINES[engine]
    work(task, small, source)

    def measured() -> int:
        work(task, path, source)
        return 0

    print(json.dumps(asdict(costs(measured))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
