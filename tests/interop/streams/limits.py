"""How much a batch takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Played, Stage, case


def told(played: Played) -> Any:
    """The sizes of batches, or the error."""
    return played.error or played.sizes


@case(
    "DeltaSourceSuite: maxFilesPerTrigger",
    "DeltaSourceSuite: maxFilesPerTrigger: metadata checkpoint",
    "DeltaSourceSuite: maxFilesPerTrigger: Trigger.AvailableNow respects read limits",
    "DeltaSourceSuite: maxBytesPerTrigger: process at least one file",
    "DeltaSourceSuite: maxBytesPerTrigger: metadata checkpoint",
    "DeltaSourceSuite: maxBytesPerTrigger: Trigger.AvailableNow respects read limits",
    "DeltaSourceSuite: maxBytesPerTrigger: max bytes and max files together",
)
def files_and_bytes(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 5)
    options: tuple[dict[str, Any], ...] = (
        {},
        {"maxFilesPerTrigger": 1},
        {"maxFilesPerTrigger": "2"},
        {"maxBytesPerTrigger": "1b"},
        {"maxBytesPerTrigger": 1},
        {"maxBytesPerTrigger": "100g"},
        {"maxFilesPerTrigger": 1, "maxBytesPerTrigger": "100g"},
        {"maxFilesPerTrigger": 2, "maxBytesPerTrigger": "1b"},
        {"maxFilesPerTrigger": 1, "startingVersion": 0},
        {"maxBytesPerTrigger": "1b", "startingVersion": 2},
    )
    seen = {str(each): told(stage.play(stage.stream(**each))) for each in options}
    size = max(each.stat().st_size for each in stage.files())
    return {**seen, "one file and a half": told(stage.play(stage.stream(maxBytesPerTrigger=size * 3 // 2)))}


@case("DeltaSourceSuite: maxFilesPerTrigger: Trigger.AvailableNow respects read limits")
def where_a_limited_query_stands(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 3)
    limited = stage.stream(maxFilesPerTrigger=1)
    seen = {"first": told(stage.play(limited, "kept")), "offset": stage.offset("kept")}
    seen["nothing new"] = told(stage.play(limited, "kept"))
    stage.one_by_one(3, 5)
    return {**seen, "then": told(stage.play(limited, "kept")), "offset then": stage.offset("kept")}


@case(
    "DeltaSourceSuite: maxFilesPerTrigger: change and restart",
    "DeltaSourceSuite: maxBytesPerTrigger: change and restart",
)
def another_limit_at_restart(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for name, first, then in (("maxFilesPerTrigger", "1", "2"), ("maxBytesPerTrigger", "1b", "100g")):
        stage.one_by_one(0, 3, name=name)
        seen[f"{name} {first}"] = told(stage.play(stage.stream(name, **{name: first}), name))
        stage.one_by_one(3, 7, name=name)
        seen[f"{name} {then}"] = told(stage.play(stage.stream(name, **{name: then}), name))
    return seen


@case(
    "DeltaSourceSuite: maxFilesPerTrigger: invalid parameter",
    "DeltaSourceSuite: maxBytesPerTrigger: invalid parameter",
)
def limits_that_are_none(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT")
    options = [(name, value) for name in ("maxFilesPerTrigger", "maxBytesPerTrigger") for value in (0, -1, "string")]
    return {f"{name} {value}": stage.given(**{name: value}) for name, value in options}


@case("DeltaSourceSuite: maxFilesPerTrigger: ignored when using Trigger.Once")
def once_takes_all(stage: Stage) -> Mapping[str, Any]:
    limited = {"maxFilesPerTrigger": 1}
    stage.one_by_one(0, 3)
    first = stage.play(stage.stream(**limited), "kept", once=True)
    stage.one_by_one(3, 5)
    return {"first": told(first), "then": told(stage.play(stage.stream(**limited), "kept", once=True))}


@case("DeltaSourceSuite: maxFilesPerTrigger")
def a_query_that_goes_on_takes_little_by_little(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 3)
    with stage.running(stage.stream(maxFilesPerTrigger=1)) as more:
        first = more()
        stage.add(3, 9, files=3)
        return {"first": told(first), "then": told(more())}
