"""An engine on Arrow rows: runs the same commands and transactions as the Spark engine, without a JVM.

Reads rows with pyarrow and evaluates them with the reference evaluator of predicates; assignments are plain values or
functions of the old row. Runs everything on the caller's thread, so that a test can stop it anywhere. Made for
concurrency tests on small tables, since rows are Python objects.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch._arrow.fitting import fit_to_rules
from anabranch._log.file_locations import locate_in_store
from anabranch._log.positions import SourceVersions
from anabranch._protocol.actions import Metadata
from anabranch._protocol.change_feed import (
    CHANGE_TYPE,
    POSTIMAGE,
    PREIMAGE,
    Images,
    change_data_columns,
    change_data_files,
)
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.features.widening import TYPE_CHANGES
from anabranch._protocol.layout.curves import ORIGINS, Curve
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.materialised_partitions import folder_keys
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._protocol.parquet_files import parquet_bytes
from anabranch._protocol.partitions import hive_segment, read_value
from anabranch._protocol.predicates import holds, is_whole
from anabranch._protocol.row_rules import enforce_rules
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.column_mapping import (
    BY_NAME,
    FIELD_ID,
    MODE,
    UNMAPPED,
    file_schema,
    is_renamed,
    renaming,
)
from anabranch._protocol.schema.types import DataType, Field, Struct, from_arrow, schema_json, to_arrow
from anabranch._protocol.steps import StepListener
from anabranch._storage import Store, open_store
from anabranch._storage.native import native_file
from anabranch.commands.dml.append import split_by_partition, to_file_rows
from anabranch.errors import AmbiguousMerge
from anabranch.testing.arrow_merge import Join, MergeSource, Row, evaluate_assignments, reserved_values, row_to_insert

__all__ = ["ArrowEngine", "Row", "logical_rows", "read_from"]

_READ = b"anabranch.version"
_CHANGE = (Field(CHANGE_TYPE, "string"),)


class ArrowEngine:
    """`anabranch.commands.engine.Engine` over pyarrow.

    Args:
        new_id: names the files that are written; a simulator passes its own.

    Example:
        >>> Delete("memory://shop/orders", where).run(ArrowEngine()).rows
    """

    def __init__(self, new_id: Callable[[], UUID] = uuid4) -> None:
        self.evaluated: list[str] = []
        """The paths of all files whose rows were evaluated, in order."""
        self._new_id = new_id

    def telling(self, tell: StepListener) -> ArrowEngine:
        """Reports no progress."""
        return self

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Accepts everything: predicates, values and functions name no column in a text."""

    def check_merge(self, files: FileSet, matching: MergePlan, source: pa.Table) -> None:
        """As `check`."""

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """The live rows for which the condition holds."""
        marks_by_path = {}
        for path, rows in self._rows(files):
            self.evaluated.append(path)
            marks = BitMap64(i for i, row in rows if _selects(condition, row, files.schema))
            if marks:
                marks_by_path[path] = marks
        return marks_by_path

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """Writes new images of the marked rows."""
        changed: list[Row] = [
            _as_new_image(files, _assign(row, assignments))
            for path, rows in self._rows(files, ids=True)
            for i, row in rows
            if i in marks.get(path, ())
        ]
        self._check(files, changed)
        self._put(files, changed, folder)

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> None:
        """Writes all live rows, with the marked ones changed or left out."""
        live: list[Row] = []
        changed: list[Row] = []
        for path, rows in self._rows(files, ids=True):
            for i, row in rows:
                if i not in marks.get(path, ()):
                    live.append(row)
                elif assignments is not None:
                    changed.append(_as_new_image(files, _assign(row, assignments)))
                    live.append(changed[-1])
        self._check(files, changed)
        self._put(files, live, folder)

    def record(self, changes: Sequence[Images], folder: str) -> None:
        """Writes the changed rows as they are in their files."""
        files = changes[0].files
        rows = _table(
            change_data_columns(files.schema), [row for images in changes for row in self._change_rows(images)]
        )
        store, materialised = open_store(files.root), files.rules.materialised
        self._write(rows, files.schema, files.partition_columns, store, folder, _CHANGE, materialised=materialised)

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """Writes the marked rows before and after the assignments."""
        old = [row for path, rows in self._rows(files, ids=True) for i, row in rows if i in marks.get(path, ())]
        new = [_as_new_image(files, _assign(row, assignments)) for row in old]
        self._check(files, new)
        images = [{**row, CHANGE_TYPE: change} for change, rows in ((PREIMAGE, old), (POSTIMAGE, new)) for row in rows]
        self._put(files, images, folder, change_data_columns(files.schema).fields[-1:])

    def write_postimages(self, files: FileSet, count: int, folder: str) -> None:
        """Writes the postimages."""
        rows = [row for _, file_rows in self._rows(change_data_files(files), ids=True) for _, row in file_rows]
        self._put(files, [row for row in rows if row.pop(CHANGE_TYPE) == POSTIMAGE], folder)

    def _change_rows(self, images: Images) -> list[Row]:
        if images.joined is not None and images.change == POSTIMAGE:
            return [{**row, CHANGE_TYPE: POSTIMAGE} for row in images.joined.images]
        every, marked = images.rows is None, images.rows or {}
        located = [(path, i, row) for path, rows in self._rows(images.selected_files) for i, row in rows]
        rows = [row for path, i, row in located if every or i in marked.get(path, ())]
        return [{**row, CHANGE_TYPE: images.change} for row in rows]

    def pack(self, files: FileSet, folder: str) -> None:
        """Concatenates the files."""
        live = [row for _, rows in self._rows(files, ids=True) for _, row in rows]
        self._put_one(files, live, f"{folder}/part-00000")

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """Packs none: this engine packs bin by bin."""
        return frozenset()

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Sorts rows by the columns, in order of the columns."""
        located = [(n, i, row) for n, (_, rows) in enumerate(self._rows(files, ids=True)) for i, row in rows]
        located.sort(
            key=lambda entry: ([(row is not None, row) for row in map(entry[2].get, curve.columns)], entry[:2])
        )
        size, store = -(-len(located) // outputs) or 1, open_store(files.root)
        for number, start in enumerate(range(0, len(located), size)):
            part, name = located[start : start + size], f"part-{number:05d}"
            self._put_one(files, [row for _, _, row in part], f"{folder}/{name}")
            if moves is not None:
                came = pa.Table.from_pylist([{"source": n, "row": i} for n, i, _ in part], schema=ORIGINS)
                store.put(f"{moves}/{name}-{self._new_id()}.parquet", parquet_bytes(came))

    def write(
        self,
        source: pa.Table,
        schema: Struct,
        partition_columns: tuple[str, ...],
        root: str,
        folder: str,
        rules: Rules = NONE,
    ) -> None:
        """Writes a table's rows."""
        rows = fit_to_rules(root, source, schema, rules)
        self._write(rows, schema, partition_columns, open_store(root), folder, materialised=rules.materialised)

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """Runs the work before the block: a simulated writer has one thread."""
        work()
        yield

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """Returns the work unchanged: no context moves to the other thread."""
        return work

    def hold(self, source: pa.Table, schema: Struct, root: str, folder: str) -> MergeSource:
        """Keeps the rows in memory."""
        return MergeSource(tuple(source.to_pylist()), source)

    def rows_of(self, held: MergeSource) -> pa.Table:
        """The rows as they were held."""
        return held.table

    def with_numbers(self, held: MergeSource, values: Mapping[str, range]) -> pa.Table:
        """Adds the values in the order of the rows."""
        return pa.Table.from_pylist([{**row, **reserved_values(values, i)} for i, row in enumerate(held.records)])

    def join(self, files: FileSet, matching: MergePlan, held: MergeSource, folder: str) -> Joined:
        """Joins each live row with each source row; conditions and values are functions of both rows."""
        join = Join(matching, held.records)
        for path, rows in self._rows(files, ids=True):
            self.evaluated.append(path)
            for i, row in rows:
                join.add(path, i, _as_new_image(files, row))
        if join.ambiguous:
            raise AmbiguousMerge(table=files.root, count=join.ambiguous)
        return join.result()

    def split(self, files: FileSet, matching: MergePlan, joined: Joined, rows: Marks) -> tuple[Joined, Joined]:
        """Joins both parts anew."""
        parts = Join(matching, joined.handle.records), Join(matching, joined.handle.records)
        for path, i, row in joined.handle.added:
            parts[i in rows.get(path, ())].add(path, i, row)
        return parts[0].result(), parts[1].result()

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> None:
        """Writes the images that `join` computed."""
        self._check(files, joined.handle.images)
        self._put(files, joined.handle.images, folder)

    def write_inserts(
        self, files: FileSet, matching: MergePlan, held: MergeSource, joined: Sequence[Joined], folder: str
    ) -> None:
        """Writes the source rows that no join matched."""
        matched = {number for result in joined for number in result.handle.sources}
        rows = [(number, row) for number, row in enumerate(held.records) if number not in matched]
        new = [
            image for number, row in rows if (image := row_to_insert(matching, row, files.schema, number)) is not None
        ]
        if new:
            self._check(files, new)
            self._put(files, new, folder)

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Does nothing: no SQL runs here, and `write` enforces the rules."""

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """The minimum and the maximum of a column."""
        values = [row[column] for row in self.rows(files) if row[column] is not None]
        return min(values, default=None), max(values, default=None)

    def few_values(self, held: MergeSource, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a column."""
        values = list(dict.fromkeys(row[column] for row in held.records))
        return values if len(values) <= limit else None

    def alias(self, source: pa.Table) -> None:
        """None: functions need no names."""
        return None

    def describe(self, source: pa.Table) -> Struct:
        """The schema of an Arrow table."""
        return from_arrow(source.schema)

    def source_versions(self, source: pa.Table, root: str, table_id: str) -> SourceVersions | None:
        """The versions that `read_from` recorded; other rows in memory read no table."""
        return source_versions_of(source)

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """None: conditions and values contain no query."""
        return None

    def merge_versions(
        self, source: pa.Table, matching: MergePlan, schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """None: the functions of a MERGE contain no query."""
        return None

    def settings(self) -> Mapping[str, str]:
        """Empty: there is no session."""
        return {}

    def rows(self, files: FileSet) -> list[Row]:
        """The live rows, as a reader sees them."""
        return [row for _, rows in self._rows(files) for _, row in rows]

    def _rows(self, files: FileSet, *, ids: bool = False) -> list[tuple[str, list[tuple[int, Row]]]]:
        """The live rows of each file; with their ids, if tracked, under the names of the hidden columns."""
        store, live = open_store(files.root), []
        for file in files.files.to_pylist():
            path, tracked = file["path"], files.tracked if ids else None
            values = _values_of(files, dict(file["partitionValues"]))
            dead = files.vectors.get(path, ())
            layout = files.layouts.get(path, files.schema)
            layout = layout if tracked is None else tracked.beside(layout)
            rows = _whole(logical_rows(*locate_in_store(store, path), layout), files.schema)
            whole = [(i, {n: {**row, **values}.get(n) for n in files.schema.names}) for i, row in enumerate(rows)]
            if tracked is not None:
                whole = [(i, {**row, **_ids(tracked, file, i, rows[i])}) for i, row in whole]
            live.append((path, [(i, row) for i, row in whole if i not in dead]))
        return live

    def _check(self, files: FileSet, rows: list[Row]) -> None:
        """Enforces the table's rules on new rows."""
        if files.rules.bind_rows:
            enforce_rules(files.root, _table(files.schema, rows), files.schema, files.rules, frozenset())

    def _put(self, files: FileSet, rows: list[Row], folder: str, beside: tuple[Field, ...] = ()) -> None:
        hidden = (*beside, *(() if files.tracked is None else files.tracked.fields))
        table, store = _table(Struct((*files.schema.fields, *hidden)), rows), open_store(files.root)
        materialised = files.rules.materialised
        self._write(table, files.schema, files.partition_columns, store, folder, hidden, materialised=materialised)

    def _put_one(self, files: FileSet, rows: list[Row], name: str) -> None:
        """Writes rows of one partition as one file whose name starts with ``name``."""
        hidden = () if files.tracked is None else files.tracked.fields
        table = _table(Struct((*files.schema.fields, *hidden)), rows)
        metadata = _metadata_of(files.schema, files.partition_columns)
        ((_, part),) = split_by_partition(table, metadata, materialised=files.rules.materialised)
        file = _to_file_rows(part, metadata, hidden)
        open_store(files.root).put(f"{name}-{self._new_id()}.parquet", parquet_bytes(file))

    def _write(
        self,
        rows: pa.Table,
        schema: Struct,
        columns: tuple[str, ...],
        store: Store,
        folder: str,
        hidden: tuple[Field, ...] = (),
        *,
        materialised: bool,
    ) -> None:
        metadata = _metadata_of(schema, columns)
        for values, part in split_by_partition(rows, metadata, materialised=materialised):
            keys = zip(folder_keys(metadata, materialised=materialised), metadata.partition_keys, strict=True)
            folders = [hive_segment(folder, values[key]) for folder, key in keys]
            file = _to_file_rows(part, metadata, hidden)
            store.put("/".join([folder, *folders, f"part-{self._new_id()}.parquet"]), parquet_bytes(file))


def _metadata_of(schema: Struct, columns: tuple[str, ...]) -> Metadata:
    mode = {MODE: BY_NAME if any(FIELD_ID in field.metadata for field in schema) else UNMAPPED}
    return Metadata("", schema_json(schema), columns, mode)


def _to_file_rows(part: pa.Table, metadata: Metadata, hidden: tuple[Field, ...]) -> pa.Table:
    """Rows as stored in a file, with the row tracking columns."""
    file = to_file_rows(part.drop_columns([column.name for column in hidden]), metadata)
    for column in file_schema(Struct(hidden)):
        file = file.append_column(column, part.column(column.name))
    return file


def read_from(rows: pa.Table, version: int, commit: str = "") -> pa.Table:
    """Marks rows as read from a version of the table that they are written to, with that commit's mark if known."""
    return rows.replace_schema_metadata({_READ: f"{version} {commit}"})


def source_versions_of(source: pa.Table) -> SourceVersions | None:
    """The versions of the table that `read_from` recorded in the rows."""
    label = (source.schema.metadata or {}).get(_READ)
    if label is None:
        return None
    version, _, mark = label.decode().partition(" ")
    return SourceVersions(int(version), frozenset({(int(version), mark)} if mark else ()))


def _ids(tracked: HiddenColumns, file: Row, position: int, row: Row) -> Row:
    """A row's id and commit version: stored in the file, or derived from the log's entry of the file."""
    stored, version = row.get(tracked.row_id), row.get(tracked.commit_version)
    base = file["baseRowId"]
    assigned = None if base is None else base + position
    return {
        tracked.row_id: assigned if stored is None else stored,
        tracked.commit_version: file["defaultRowCommitVersion"] if version is None else version,
    }


def _selects(condition: Condition, row: Row, schema: Struct) -> bool:
    """Whether a condition is TRUE for a row; of a condition that is known in part, whether it may be."""
    if condition.computation is None or is_whole(condition.predicate):
        return holds(condition.predicate, row) is True
    rows = _table(schema, [row]).combine_chunks().to_batches()[0]
    return bool(condition.computation.truths(rows)[0].as_py())


def _as_new_image(files: FileSet, row: Row) -> Row:
    """A row as its new image: it keeps its id, and its commit version is not known yet."""
    return row if files.tracked is None else {**row, files.tracked.commit_version: None}


def _table(schema: Struct, rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table that allows NULL in NOT NULL columns; rules are checked elsewhere."""
    nullable = pa.schema([field.with_nullable(True) for field in to_arrow(schema)])
    return pa.Table.from_pylist(rows, schema=nullable)


def _whole(rows: list[Row], schema: Struct) -> list[Row]:
    """Completes rows of older files: missing members of structs become NULL, values get the schema's wider types."""
    nested = Struct(
        tuple(field for field in schema if not isinstance(field.type, str) or TYPE_CHANGES in field.metadata)
    )
    if not nested.fields:
        return rows
    target = pa.schema([field.with_nullable(True) for field in to_arrow(nested)])
    images = [{field.name: _widen(row.get(field.name), field.type) for field in nested} for row in rows]
    images = pa.Table.from_pylist(images, schema=target).to_pylist()
    return [{**row, **image} for row, image in zip(rows, images, strict=True)]


def logical_rows(store: Store, name: str, schema: Struct) -> list[Row]:
    """All rows of one small Parquet file, including deleted ones, under the columns' logical names."""
    rows, stored = _decode(store.get(name))
    if not is_renamed(schema):
        return rows
    columns = renaming(stored, schema)
    return [columns.row(row) for row in rows]


def _values_of(files: FileSet, partition: Mapping[str, str | None]) -> Row:
    """A file's partition values by the logical names of their columns."""
    columns = map(files.schema.field, files.partition_columns)
    return {column.name: read_value(partition.get(column.physical_name), str(column.type)) for column in columns}


def _widen(value: Any, data_type: DataType) -> Any:
    """A date as a timestamp at its start where the column holds timestamps; Arrow widens all other types itself."""
    if data_type == "timestamp_ntz" and type(value) is dt.date:
        return dt.datetime.combine(value, dt.time())
    return value


@lru_cache(maxsize=512)
def _decode(data: bytes) -> tuple[list[Row], pa.Schema]:
    """Cached, since a test reads the same few files again and again; nobody changes a row in place."""
    read = pq.ParquetFile(native_file(data)).read(use_threads=False)
    return read.to_pylist(), read.schema


def _assign(row: Row, assignments: Mapping[str, Any]) -> Row:
    return {**row, **evaluate_assignments(row, assignments, lambda value: value(row) if callable(value) else value)}
