"""delta-rs as a writer of a race, in a process of its own: URL, number, seconds, folder of journals, verbs left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tests.support.racing import VERBS, Done, Racer, seen_in


def run_on(url: str, done: Done) -> None:
    """One statement, with its tag in ``commitInfo``."""
    tagged = CommitProperties(custom_metadata={"userMetadata": done.tag})
    if done.verb == "append":
        rows = pa.table({"id": list(done.new), "x": [0] * len(done.new)})
        write_deltalake(url, rows, mode="append", commit_properties=tagged)
        return
    table = DeltaTable(url)
    if done.verb == "update":
        table.update(predicate=f"id = {done.plus[0]}", updates={"x": "x + 1"}, commit_properties=tagged)
    elif done.verb == "delete":
        table.delete(f"id = {done.gone[0]}", commit_properties=tagged)
    elif done.verb == "merge":
        _merge(table, done, tagged)
    elif done.verb == "optimize":
        table.optimize.compact(commit_properties=tagged)
    elif done.verb == "vacuum":
        table.vacuum(dry_run=False, commit_properties=tagged)
    else:
        table.create_checkpoint()


def _merge(table: DeltaTable, done: Done, tagged: Any) -> None:
    source = pa.table({"id": [*done.plus, *done.new]})
    merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t", commit_properties=tagged)
    merge.when_matched_update({"x": "t.x + 1"}).when_not_matched_insert({"id": "s.id", "x": "0"}).execute()


def told(error: Exception) -> str:
    """Any error of delta-rs says that nothing was committed."""
    return "refused" if isinstance(error, DeltaError) else "failed"


def main(url: str, number: str, seconds: str, folder: str, without: str) -> None:
    """Race, and say so at the end."""
    verbs = [verb for verb in (*VERBS, "checkpoint") if verb not in without.split()]
    racer = Racer(
        f"deltars{number}", int(number), lambda done: run_on(url, done), told, verbs, look=seen_in(url), pause=0.5
    )
    racer.race(float(seconds), Path(folder, f"{racer.name}.jsonl"))
    print("all done")


if __name__ == "__main__":
    main(*sys.argv[1:])
