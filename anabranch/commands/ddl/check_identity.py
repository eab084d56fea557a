"""Checks identity columns: reports values beyond the mark, which would be assigned again.

Knows marks and statistics, never a row. Changes nothing. Guarantee: every finding rests on the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.stats.statistics import stats_columns


def values_behind_marks(snapshot: Snapshot, files: Sequence[FileRow]) -> Iterator[tuple[str, str]]:
    """The files with a value of a GENERATED ALWAYS column beyond the column's mark: path, problem."""
    always_generated = [identity for identity in identities(snapshot.schema) if not identity.explicit]
    always_generated = [identity for identity in always_generated if identity.column not in snapshot.partition_columns]
    if not always_generated or not files:
        return
    texts = pa.array([file.get("stats") for file in files], pa.string())
    statistics = stats_columns(texts, snapshot.schema, [identity.column for identity in always_generated])
    for identity in always_generated:
        bounds = statistics.columns.get(identity.column)
        farthest = (bounds.maximum if identity.step > 0 else bounds.minimum).to_pylist() if bounds is not None else []
        for file, value in zip(files, farthest, strict=False):
            if value is not None and (value - identity.next) * identity.step >= 0:
                last = "no value was given" if identity.mark is None else f"{identity.mark} was the last"
                yield file["path"], f"the column {identity.column} holds {value}, and its mark says that {last}"
