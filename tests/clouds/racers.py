"""One writer of a race, as a process of its own: kind, URL, number, seconds, folder of journals, settings of Spark.

``spark`` is a driver with one core and, in it, two threads with a session each; ``plain`` appends without Spark.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anabranch
from anabranch import errors
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from tests.support.racing import VERBS, Done, Racer, in_sql, seen_in


def told(error: Exception) -> str:
    """What an error of ours means."""
    if isinstance(error, errors.CommitOutcomeUnknown):
        return "unknown"
    return "refused" if isinstance(error, errors.DeltaConcurrentModificationException) else "failed"


def plain(url: str, number: int) -> Racer:
    """Appends by rows at hand."""

    def run(done: Done) -> None:
        rows = [{"id": each, "x": 0} for each in done.new]
        Append(url, rows, user_metadata=done.tag).run(context=RunContext())

    return Racer(f"plain{number}", number, run, told, ("append",), look=seen_in(url), pause=4.0)


def on_spark(url: str, number: int, seconds: float, journal: Path, settings: dict[str, str]) -> None:
    """Every verb but those that a setting of ours names, by two threads of one driver."""
    without = settings.pop("without", "").split()
    verbs = [verb for verb in VERBS if verb not in without]
    more = {"spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": tempfile.mkdtemp(), **settings}
    spark = anabranch.session(f"racer {number}", "local[1]", **more)
    sessions = [spark, spark.newSession()]
    for session in sessions:
        anabranch.install(session)
    numbers = (number * 10, number * 10 + 1)
    racers = [
        Racer(f"spark{each}", each, in_sql(session.sql, url), told, verbs, look=seen_in(url))
        for each, session in zip(numbers, sessions, strict=True)
    ]
    with ThreadPoolExecutor(len(racers)) as pool:
        runs = [pool.submit(racer.race, seconds, journal.with_name(f"{racer.name}.jsonl")) for racer in racers]
        for run in runs:
            run.result()


def main(kind: str, url: str, number: str, seconds: str, journal: str, settings: str) -> None:
    """Race, and say so at the end."""
    if kind == "plain":
        racer = plain(url, int(number))
        racer.race(float(seconds), Path(journal, f"{racer.name}.jsonl"))
    else:
        on_spark(url, int(number), float(seconds), Path(journal, "any"), json.loads(settings))
    print("all done")


if __name__ == "__main__":
    main(*sys.argv[1:])
