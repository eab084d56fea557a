"""Timelines for tests of the page: made of values, so that no table is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anabranch._api.timeline.view import Timeline
from anabranch.commands.queries.timeline.entries import (
    Advice,
    CommitDescription,
    CommitEffect,
    Entry,
    FileChange,
    Kind,
    Refusal,
    TableTimeline,
    Totals,
)

BEGAN_MS = 1_760_000_000_000
MINUTE_MS = 60_000
KINDS: tuple[Kind, ...] = ("append", "change", "move", "restore", "metadata", "vacuum", "empty")
WIDE = (1 << 53) + 1
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--&quot;'\"\u2028{{data}}"


def entry(version: int, kind: Kind = "append", **said: Any) -> Entry:
    """A version, a minute after the one before."""
    stated = {"operation": kind.upper(), "user": f"user {version % 3}", "engine": "Anabranch/0.1.0", **said}
    base = {} if version == 0 else {"base": version - 1}
    return Entry(
        version=version,
        timestamp=BEGAN_MS + version * MINUTE_MS,
        kind=kind,
        bytes=1000,
        said=CommitDescription(**{**base, **stated}),
        did=CommitEffect(
            files_added=1, bytes_added=500, rows_added=10 + version, files=(FileChange("added", "a", 500, 10),)
        ),
        totals=Totals(version + 1, 500 * (version + 1), 10 * (version + 1), version, version + 1),
    )


def timeline_of(*entries: Entry, **fields: Any) -> Timeline:
    """A timeline of these versions."""
    newest = entries[-1].version if entries else 7
    advice = (Advice("small files", "OPTIMIZE would pack 7 files into about 1.", "OPTIMIZE", "act"),)
    return Timeline(TableTimeline("file:///data/flights", newest, entries, 0, 1 << 27, advice, **fields))


def story() -> Timeline:
    """Every kind of commit, a race, a stream, a checkpoint and a refused transaction."""
    entries = [entry(version, KINDS[version % len(KINDS)]) for version in range(14)]
    raced = {"base": 5, "rebased_over": (6, 7), "cut": 7, "predicate": "id = 3", "row_local": True}
    entries[8] = entry(8, "change", operation="UPDATE", **raced)
    entries[9] = replace(entries[9], streams=(("query-1", 4),), is_checkpoint=True)
    refusal = Refusal(11, 9, "DELETE", "DELTA_CONCURRENT_DELETE_READ", BEGAN_MS)
    return timeline_of(*entries, refusals=(refusal,))


def hostile() -> Timeline:
    """A table whose log was written by somebody who wishes harm."""
    said = dict.fromkeys(("operation", "user", "engine", "txn_id", "isolation", "predicate"), HOSTILE)
    texts = {HOSTILE: HOSTILE, "__proto__": HOSTILE, "constructor": "x"}
    mean = replace(
        entry(0, **said, parameters=texts, metrics=texts, more=texts),
        did=CommitEffect(files_added=1, files=(FileChange("added", HOSTILE, 1, 1),)),
        streams=((HOSTILE, 1),),
    )
    found = timeline_of(mean, entry(1, operation="__proto__", user="constructor"))
    advice = (Advice(HOSTILE, HOSTILE, HOSTILE, "act"),)
    return Timeline(replace(found.data, table=f"file:///{HOSTILE}", advice=advice))


def wide() -> Timeline:
    """Two versions whose figures JavaScript's numbers would round to even ones."""
    texts = {"numOutputRows": str(WIDE + 2), "predicate": f"id = {WIDE}"}
    said = {"base": WIDE, "cut": WIDE, "predicate": f"id = {WIDE}", "metrics": texts, "parameters": texts}
    file = FileChange("added", f"id={WIDE}/a", WIDE + 4, WIDE + 6)
    did = CommitEffect(files_added=1, bytes_added=WIDE + 4, rows_added=WIDE + 6, rows_marked=WIDE + 8, files=(file,))
    newest = replace(
        entry(WIDE + 2, "change", **{**said, "rebased_over": (WIDE + 1,)}),
        timestamp=BEGAN_MS,
        did=did,
        streams=(("query-1", WIDE + 10),),
        totals=Totals(1, WIDE + 12, WIDE + 14, WIDE + 16, 1),
    )
    older = replace(entry(WIDE, base=WIDE - 1), timestamp=BEGAN_MS, did=did)
    refusal = Refusal(WIDE, WIDE - 2, "DELETE", "DELTA_CONCURRENT_DELETE_READ", BEGAN_MS)
    return timeline_of(older, newest, refusals=(refusal,))


def many(count: int) -> Timeline:
    """So many versions, one in nine of which raced."""
    entries = [
        entry(version, KINDS[version % 3], base=max(version - (4 if version % 9 == 0 else 1), 0))
        for version in range(1, count + 1)
    ]
    return timeline_of(*entries)
