"""What of identity columns can be told to be wrong: values behind the mark, which would be given again.

Knows marks and statistics, never a row. Changes nothing. Guarantee: a table is only accused of what its log says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.stats.statistics import stats_columns


def values_behind_marks(snapshot: Snapshot, files: Sequence[FileRow]) -> Iterator[tuple[str, str]]:
    """The files with a value that only the table may have given, and that its mark says it has not: path, problem."""
    own = [each for each in identities(snapshot.schema) if not each.explicit]
    own = [each for each in own if each.column not in snapshot.partition_columns]
    if not own or not files:
        return
    texts = pa.array([file.get("stats") for file in files], pa.string())
    known = stats_columns(texts, snapshot.schema, [each.column for each in own])
    for each in own:
        stated = known.columns.get(each.column)
        farthest = (stated.maximum if each.step > 0 else stated.minimum).to_pylist() if stated is not None else []
        for file, value in zip(files, farthest, strict=False):
            if value is not None and (value - each.next) * each.step >= 0:
                last = "no value was given" if each.mark is None else f"{each.mark} was the last"
                yield file["path"], f"the column {each.column} holds {value}, and its mark says that {last}"
