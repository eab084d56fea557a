"""An engine of Arrow rows: the same commands and transactions as on Spark, without a JVM.

Rows are read with pyarrow and judged by the reference evaluator of predicates; assignments are plain values or
functions of the old row. Everything runs on this thread, so that a test can stop it anywhere. Meant for tests of
concurrency and for small tables: rows are Python objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch.commands.append import fitted, parquet_bytes, partitioned
from anabranch.protocol.actions import Metadata
from anabranch.protocol.filesets import FileSet, Marks
from anabranch.protocol.partitions import hive_segment, read_value
from anabranch.protocol.paths import decode
from anabranch.protocol.predicates import Condition, holds
from anabranch.protocol.schema import Struct, from_arrow, schema_json, to_arrow
from anabranch.storage import Store, open_store

Row = dict[str, Any]


class ArrowEngine:
    """`anabranch.commands.engine.Engine` over pyarrow.

    Args:
        new_id: names the files that are written; a simulator passes its own.

    Example:
        >>> Delete("memory://shop/orders", where).run(ArrowEngine()).rows
    """

    def __init__(self, new_id: Callable[[], UUID] = uuid4) -> None:
        self.evaluated: list[str] = []
        """The paths of all files whose rows were judged, in order: what a condition had to read."""
        self._new_id = new_id

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """The live rows for which the condition holds."""
        found = {}
        for path, rows in self._rows(files):
            self.evaluated.append(path)
            marks = BitMap64(i for i, row in rows if holds(condition.predicate, row) is True)
            if marks:
                found[path] = marks
        return found

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """New images of the marked rows."""
        changed = [
            _assigned(row, assignments)
            for path, rows in self._rows(files)
            for i, row in rows
            if i in marks.get(path, ())
        ]
        self._put(files, changed, folder)

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> None:
        """All live rows, the marked ones changed or left out."""
        kept: list[Row] = []
        for path, rows in self._rows(files):
            for i, row in rows:
                if i not in marks.get(path, ()):
                    kept.append(row)
                elif assignments is not None:
                    kept.append(_assigned(row, assignments))
        self._put(files, kept, folder)

    def write(
        self, source: pa.Table, schema: Struct, partition_columns: tuple[str, ...], root: str, folder: str
    ) -> None:
        """A table's rows."""
        self._write(fitted(root, source, schema), schema, partition_columns, open_store(root), folder)

    def describe(self, source: pa.Table) -> Struct:
        """A table's columns."""
        return from_arrow(source.schema)

    def reads(self, source: pa.Table, root: str) -> bool:
        """Rows in memory read no table."""
        return False

    def settings(self) -> Mapping[str, str]:
        """There is no session."""
        return {}

    def rows(self, files: FileSet) -> list[Row]:
        """The live rows, as a reader sees them."""
        return [row for _, rows in self._rows(files) for _, row in rows]

    def _rows(self, files: FileSet) -> list[tuple[str, list[tuple[int, Row]]]]:
        store, found = open_store(files.root), []
        for path, partition in zip(
            files.files["path"].to_pylist(), files.files["partitionValues"].to_pylist(), strict=True
        ):
            values = {n: read_value(v, str(files.schema.field(n).type)) for n, v in dict(partition).items()}
            dead = files.vectors.get(path, ())
            rows = parquet_rows(store, decode(path))
            whole = [(i, {n: {**row, **values}.get(n) for n in files.schema.names}) for i, row in enumerate(rows)]
            found.append((path, [(i, row) for i, row in whole if i not in dead]))
        return found

    def _put(self, files: FileSet, rows: list[Row], folder: str) -> None:
        # Spark writes what it is given, NULL in NOT NULL columns too: to refuse that is the commands' work
        nullable = pa.schema([field.with_nullable(True) for field in to_arrow(files.schema)])
        table = pa.Table.from_pylist(rows, schema=nullable)
        self._write(table, files.schema, files.partition_columns, open_store(files.root), folder)

    def _write(self, rows: pa.Table, schema: Struct, columns: tuple[str, ...], store: Store, folder: str) -> None:
        metadata = Metadata(id="", schema_string=schema_json(schema), partition_columns=columns)
        for values, part in partitioned(rows, metadata):
            name = "/".join([folder, *(hive_segment(c, values[c]) for c in columns), f"part-{self._new_id()}.parquet"])
            store.put(name, parquet_bytes(part))


def parquet_rows(store: Store, name: str) -> list[Row]:
    """The rows of one small Parquet file, those that a vector deletes too."""
    return _decoded(store.get(name))


@lru_cache(maxsize=512)
def _decoded(data: bytes) -> list[Row]:
    """Kept, since a test reads the same few files again and again; nobody changes a row in place."""
    rows: list[Row] = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist()
    return rows


def _assigned(row: Row, assignments: Mapping[str, Any]) -> Row:
    return {
        **row,
        **{name: value(row) if callable(value) else value for name, value in assignments.items()},
    }
