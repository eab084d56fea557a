"""The common mistakes, one value each, from `known.json` beside this file.

The page `docs/mistakes.md` shows them, and a test makes each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PRELUDE = """
import os
from pyspark.sql import functions as F

people, events, lost = f"{folder}/people", f"{folder}/events", f"{folder}/lost"
anabranch.append(people, [{"id": i, "city": c, "n": i % 2} for i, c in enumerate(["Oslo", "Lima", "Rome"])])
for part in range(4):
    rows = {"id": range(part * 250, part * 250 + 250), "kind": ["x"] * 250}
    anabranch.append(events, rows, properties=None if part else {"delta.constraints.positive": "id >= 0"})
anabranch.append(lost, [{"id": 1}])
os.unlink(f"{lost}/{anabranch.files(lost)['path'][0].as_py()}")
table, large = DeltaTable.forPath(spark, people), DeltaTable.forPath(spark, events)
half = F.udf(lambda value: 1 // 0, "bigint")
"""
"""The tables that the mistakes are about."""


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Attributes:
        title: what is wrong.
        code: makes it, in Python, or on the command line.
        error: the class of the error.
        says: the first line of its message, and all that the console shows; ``…`` is what differs.
        before: what was seen before the console was quiet, where that was something else.
    """

    title: str
    code: str
    error: str
    says: str
    before: str = ""


_FILE = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))

IN_A_SESSION = tuple(Mistake(**each) for each in _FILE["in a session"])
"""Made in one session of `anabranch.session`."""

ON_THE_COMMAND_LINE = tuple(Mistake(**each) for each in _FILE["on the command line"])
"""Made by a process each."""
