"""A file set: some files of one snapshot, with everything that is needed to read their rows.

Pure data, passed between the code that chooses files and the code that reads rows, so that neither knows the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.types import Struct
from anabranch.errors import CorruptVector

Marks = Mapping[str, BitMap64]
"""Rows by address: path as in the log -> physical positions in that file, counted from 0."""


def union_of(several: Iterable[Marks]) -> dict[str, BitMap64]:
    """The union of several sets of rows; none of the arguments changes."""
    union: dict[str, BitMap64] = {}
    for marks in several:
        for path, rows in marks.items():
            union[path] = union.get(path, BitMap64()) | rows
    return union


def difference_of(marks: Marks, others: Marks) -> dict[str, BitMap64]:
    """The rows that are not among ``others``; files without any are omitted."""
    remaining = {path: rows - others.get(path, BitMap64()) for path, rows in marks.items()}
    return {path: rows for path, rows in remaining.items() if rows}


def count_of(marks: Marks) -> int:
    """The number of rows."""
    return sum(map(len, marks.values()))


@dataclass(frozen=True)
class FileSet:
    """Files to read: their location, their columns, and which of their rows are deleted.

    Attributes:
        files: an Arrow table with the columns of `anabranch._protocol.actions.FILES`.
        vectors: the deleted positions of each file that has a deletion vector.
        rules: the table's, for rewriting such rows.
        version: the version of the rows, of the table ``table_id``, if known; ``commit`` is the mark of its commit
            (`anabranch._log.positions.commit_mark`).
        layouts: the schema of each file whose column names differ from the physical names, with the names in the file.
        tracked: the columns in which rewritten rows keep their ids, if any.
        allowed: other stores that may contain files.
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
    tracked: HiddenColumns | None = None
    allowed: tuple[str, ...] = ()
    commit: str | None = None

    @property
    def with_ids(self) -> FileSet:
        """The same file set; if the table tracks its rows, their ids and versions are among the columns."""
        return self if self.tracked is None else replace(self, schema=self.tracked.beside(self.schema))

    def restrict_to(self, paths: Mapping[str, object] | set[str]) -> FileSet:
        """The file set with only these paths."""
        keep = pc.is_in(self.files["path"], value_set=pa.array(list(paths), pa.string()))
        return replace(
            self, files=self.files.filter(keep), vectors={p: v for p, v in self.vectors.items() if p in paths}
        )


def check_vectors(files: FileSet) -> None:
    """Raises CorruptVector: a file has a vector in the log but none in the set; its deleted rows would come back."""
    for path in files.files.filter(pc.is_valid(files.files["deletionVector"]))["path"].to_pylist():
        if path not in files.vectors:
            raise CorruptVector(table=files.root, file=path, reason="it was not loaded.")
