"""Packing: which small files go together into one."""

from __future__ import annotations

import pyarrow as pa

from anabranch.protocol.actions import files_table
from anabranch.protocol.cubes import by_partition, deleted_part, live_bytes


def target_bytes(properties, files):
    return 256 << 20


def compaction(files: pa.Table, target: int) -> list[pa.Table]:
    """Temporary."""
    found = []
    for rows in by_partition(files.to_pylist()):
        small = [row for row in rows if row["size"] < target // 2 or deleted_part(row) > 0.05]
        bins: list[list] = [[]]
        for row in small:
            if bins[-1] and sum(map(live_bytes, bins[-1])) + live_bytes(row) > target:
                bins.append([])
            bins[-1].append(row)
        found += [files_table(each) for each in bins if len(each) > 1 or (each and deleted_part(each[0]) > 0.05)]
    return found
