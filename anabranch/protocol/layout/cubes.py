"""Cubes: files that were laid out together along one curve.

Pure. A file says in its tags to which cube it belongs and by which columns that was laid out, in the words that
delta-spark uses, so that either engine leaves alone what the other has done. Guarantee: what `layout` would have laid
out it leaves alone once that is done.

Source: PROTOCOL.md "Clustered Table"; the tags are delta-spark's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa

from anabranch.protocol.actions import FileRow, files_table
from anabranch.protocol.layout.curves import Kind
from anabranch.protocol.layout.packing import MOST_DELETED, deleted_share, live_size

PROVIDER = "liquid"
"""What the log says of who has laid out a clustered table's files (``clusteringProvider``)."""
STABLE_BYTES = 100 << 30
"""A cube of so many bytes is not laid out again because of new files."""
_ID, _COLUMNS, _KIND = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"


@dataclass(frozen=True)
class Cube:
    """By which columns files are laid out, and along which curve."""

    columns: tuple[str, ...]
    kind: Kind

    def tags(self, cube_id: UUID) -> Mapping[str, str]:
        """What the files of one cube say."""
        return {_ID: str(cube_id), _COLUMNS: json.dumps(self.columns, separators=(",", ":")), _KIND: self.kind}

    def id_of(self, file: FileRow) -> str | None:
        """The cube to which a file belongs, if it was laid out so."""
        tags = dict(file["tags"] or ())
        same = tags.get(_COLUMNS) == self.tags(UUID(int=0))[_COLUMNS] and tags.get(_KIND) == self.kind
        return tags.get(_ID) if same else None


@dataclass(frozen=True)
class Layout:
    """Files of one partition that are laid out together, as so many."""

    files: pa.Table
    outputs: int


def layout(files: pa.Table, cube: Cube, target: int, *, full: bool = False) -> list[Layout]:
    """What is to be laid out: partition by partition all files, unless they were already.

    Args:
        files: live files, as a `FILES` table.
        cube: the layout to be.
        target: bytes of a file to be written.
        full: also what lies in cubes that are big enough to be left alone.
    """
    found = []
    for rows in by_partition(files.to_pylist()):
        chosen = rows if full else _loose(rows, cube)
        if chosen and not _is_done(chosen, cube):
            size = sum(map(live_size, chosen))
            found.append(Layout(files_table(chosen), max(1, -(-size // target))))
    return found


def by_partition(rows: Iterable[FileRow]) -> list[list[FileRow]]:
    """Files in groups of equal partition values, in the order of their paths."""
    groups: dict[tuple[Any, ...], list[FileRow]] = {}
    for row in sorted(rows, key=lambda row: row["path"]):
        groups.setdefault(tuple(sorted(dict(row["partitionValues"]).items())), []).append(row)
    return list(groups.values())


def _loose(rows: Sequence[FileRow], cube: Cube) -> list[FileRow]:
    """The files that are in no cube of this kind that is big enough."""
    sizes: dict[str | None, int] = {}
    for row in rows:
        cube_id = cube.id_of(row)
        sizes[cube_id] = sizes.get(cube_id, 0) + int(row["size"])
    return [row for row in rows if (own := cube.id_of(row)) is None or sizes[own] < STABLE_BYTES]


def _is_done(rows: Sequence[FileRow], cube: Cube) -> bool:
    ids = {cube.id_of(row) for row in rows}
    return len(ids) == 1 and None not in ids and all(deleted_share(row) <= MOST_DELETED for row in rows)
