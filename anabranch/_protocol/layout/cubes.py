"""Z-cubes: files that were clustered together along one curve.

Pure. A file's tags name its cube and the columns of that cube's clustering, with delta-spark's keys, so that either
engine leaves the other's work alone. Guarantee: once the result of `layout` is carried out, `layout` leaves it alone.

Source: PROTOCOL.md "Clustered Table"; the tags are delta-spark's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa

from anabranch._protocol.actions import FileRow, files_table
from anabranch._protocol.layout.curves import Kind
from anabranch._protocol.layout.packing import MOST_DELETED, deleted_share, live_size

PROVIDER = "liquid"
"""The ``clusteringProvider`` in the log for a clustered table's files."""
STABLE_BYTES = 100 << 30
"""A cube of at least this size is not clustered again because of new files."""
_ID, _COLUMNS, _KIND = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"


@dataclass(frozen=True)
class Cube:
    """The columns and the curve of a clustering."""

    columns: tuple[str, ...]
    kind: Kind

    def tags(self, cube_id: UUID) -> Mapping[str, str]:
        """The tags of the files of one cube."""
        return {_ID: str(cube_id), _COLUMNS: json.dumps(self.columns, separators=(",", ":")), _KIND: self.kind}

    def id_of(self, file: FileRow) -> str | None:
        """The id of the cube of this kind that a file belongs to, if any."""
        tags = dict(file["tags"] or ())
        same = tags.get(_COLUMNS) == self.tags(UUID(int=0))[_COLUMNS] and tags.get(_KIND) == self.kind
        return tags.get(_ID) if same else None


@dataclass(frozen=True)
class Layout:
    """Files of one partition to cluster together, and the number of files they become."""

    files: pa.Table
    outputs: int


def layout(files: pa.Table, cube: Cube, target: int, *, full: bool = False) -> list[Layout]:
    """Choose which of these live files (`FILES`) to cluster, partition by partition, to files of ``target`` bytes: all
    files that are not yet clustered this way; with ``full``, also cubes that are large enough to be left alone.
    """
    layouts = []
    for rows in by_partition(files.to_pylist()):
        chosen = rows if full else _files_outside_large_cubes(rows, cube)
        if chosen and not _is_done(chosen, cube):
            size = sum(map(live_size, chosen))
            layouts.append(Layout(files_table(chosen), max(1, -(-size // target))))
    return layouts


def by_partition(rows: Iterable[FileRow]) -> list[list[FileRow]]:
    """Files in groups of equal partition values, in the order of their paths."""
    groups: dict[tuple[Any, ...], list[FileRow]] = {}
    for row in sorted(rows, key=lambda row: row["path"]):
        groups.setdefault(tuple(sorted(dict(row["partitionValues"]).items())), []).append(row)
    return list(groups.values())


def _files_outside_large_cubes(rows: Sequence[FileRow], cube: Cube) -> list[FileRow]:
    """The files outside cubes of this kind that are large enough."""
    sizes: dict[str | None, int] = {}
    for row in rows:
        cube_id = cube.id_of(row)
        sizes[cube_id] = sizes.get(cube_id, 0) + int(row["size"])
    return [row for row in rows if (own := cube.id_of(row)) is None or sizes[own] < STABLE_BYTES]


def _is_done(rows: Sequence[FileRow], cube: Cube) -> bool:
    ids = {cube.id_of(row) for row in rows}
    return len(ids) == 1 and None not in ids and all(deleted_share(row) <= MOST_DELETED for row in rows)
