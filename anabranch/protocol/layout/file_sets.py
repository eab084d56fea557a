"""A file set: some files of one snapshot, with all that is needed to read their rows.

Pure data, passed between the rooms that choose files and the rooms that read rows, so that neither knows the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch.protocol.features.row_tracking import Tracked
from anabranch.protocol.rules.table_rules import NONE, Rules
from anabranch.protocol.schema.types import Struct

Marks = Mapping[str, BitMap64]
"""Rows by address: path as in the log -> physical positions in that file, counted from 0."""


def union_of(several: Iterable[Marks]) -> dict[str, BitMap64]:
    """All rows of several sets of rows; none of them is changed."""
    union: dict[str, BitMap64] = {}
    for marks in several:
        for path, rows in marks.items():
            union[path] = union.get(path, BitMap64()) | rows
    return union


def count_of(marks: Marks) -> int:
    """How many rows they are."""
    return sum(map(len, marks.values()))


@dataclass(frozen=True)
class FileSet:
    """Files to read: where, of what columns, and which of their rows are already deleted.

    ``files`` is an Arrow table with the columns of `anabranch.protocol.actions.FILES`; ``vectors`` holds, for each of
    them that has a deletion vector, the deleted positions; ``rules`` are the table's, for who writes such rows anew;
    ``version`` is the one whose rows they are, of the table ``table_id``, if that is known; ``layouts`` holds, for each
    file that names columns otherwise than by their physical names, the schema with its names for physical ones;
    ``tracked`` names the columns in which rows that are written anew keep their ids, where they have any; ``allowed``
    names other stores on which files may lie.
    """

    root: str
    schema: Struct
    partition_columns: tuple[str, ...]
    files: pa.Table
    vectors: Marks
    rules: Rules = NONE
    version: int | None = None
    table_id: str | None = None
    layouts: Mapping[str, Struct] = field(default_factory=dict)
    tracked: Tracked | None = None
    allowed: tuple[str, ...] = ()

    def restricted(self, paths: Mapping[str, object] | set[str]) -> FileSet:
        """The files of these paths only."""
        keep = pc.is_in(self.files["path"], value_set=pa.array(list(paths), pa.string()))
        return replace(
            self, files=self.files.filter(keep), vectors={p: v for p, v in self.vectors.items() if p in paths}
        )
