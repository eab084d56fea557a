"""One query, as the file ``turn.json`` of a folder describes it: so two engines take turns with one table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case

MODULE = __name__


@case("(by turns) one query")
def run(stage: Stage) -> Mapping[str, Any]:
    """Read the table ``t`` by a checkpoint, or write what arrived to the table ``out``."""
    turn = json.loads((stage.folder / "turn.json").read_text())
    frame = stage.stream(**turn["options"]) if turn["reads"] else _arrived(stage)
    if turn["sink"]:
        return {"outcome": stage.write(frame, checkpoint=turn["checkpoint"]).error or stage.read("out")}
    frame = frame.drop("_commit_timestamp")
    return {"outcome": stage.play(frame, turn["checkpoint"], turn["failing_at"]).outcome}


def _arrived(stage: Stage) -> Any:
    return stage.spark.readStream.schema("id BIGINT").parquet(stage.path("in"))
