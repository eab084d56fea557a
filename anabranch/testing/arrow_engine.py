"""An engine of Arrow rows: the same commands and transactions as on Spark, without a JVM.

Reads rows with pyarrow and judges them by the reference evaluator of predicates; assignments are plain values or
functions of the old row. Runs everything on the caller's thread, so that a test can stop it anywhere. Made for tests of
concurrency on small tables, since rows are Python objects.
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
from anabranch._protocol.features.row_tracking import Tracked
from anabranch._protocol.features.widening import TYPE_CHANGES
from anabranch._protocol.iceberg import folder_keys
from anabranch._protocol.layout.curves import ORIGINS, Curve
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.merges import Joined, Matching
from anabranch._protocol.parquet_files import parquet_bytes
from anabranch._protocol.partitions import hive_segment, read_value
from anabranch._protocol.predicates import holds
from anabranch._protocol.row_rules import obedient
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.column_mapping import (
    BY_NAME,
    FIELD_ID,
    ICEBERG_V2,
    MODE,
    UNMAPPED,
    is_renamed,
    renaming,
)
from anabranch._protocol.schema.types import DataType, Field, Struct, from_arrow, schema_json, to_arrow
from anabranch._protocol.steps import Tell
from anabranch._storage import Store, open_store
from anabranch._storage.native import native_file
from anabranch.commands.dml.append import split_by_partition, to_file_rows
from anabranch.errors import AmbiguousMerge
from anabranch.testing.arrow_merge import Held, Join, Row, evaluate_assignments, reserved_values, row_to_insert

__all__ = ["ArrowEngine", "Row", "logical_rows", "read_from"]

_READ = b"anabranch.version"


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

    def telling(self, tell: Tell) -> ArrowEngine:
        """It tells nothing."""
        return self

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Nothing to hold: predicates, values and functions name no column by a text."""

    def check_merge(self, files: FileSet, matching: Matching, source: pa.Table) -> None:
        """As `check`."""

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
        changed: list[Row] = [
            _as_new_image(files, _assign(row, assignments))
            for path, rows in self._rows(files, ids=True)
            for i, row in rows
            if i in marks.get(path, ())
        ]
        self._check(files, changed)
        self._put(files, changed, folder)

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> None:
        """All live rows, the marked ones changed or left out."""
        kept: list[Row] = []
        changed: list[Row] = []
        for path, rows in self._rows(files, ids=True):
            for i, row in rows:
                if i not in marks.get(path, ()):
                    kept.append(row)
                elif assignments is not None:
                    changed.append(_as_new_image(files, _assign(row, assignments)))
                    kept.append(changed[-1])
        self._check(files, changed)
        self._put(files, kept, folder)

    def record(self, changes: Sequence[Images], folder: str) -> None:
        """The rows as they lie in their files."""
        files = changes[0].files
        rows = _table(change_data_columns(files.schema), [row for each in changes for row in self._change_rows(each)])
        store, both = open_store(files.root), files.rules.materialised
        self._write(rows, files.schema, files.partition_columns, store, folder, (CHANGE_TYPE,), materialised=both)

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """The marked rows, and what the assignments make of them."""
        old = [row for path, rows in self._rows(files, ids=True) for i, row in rows if i in marks.get(path, ())]
        new = [_as_new_image(files, _assign(row, assignments)) for row in old]
        self._check(files, new)
        found = [{**row, CHANGE_TYPE: change} for change, rows in ((PREIMAGE, old), (POSTIMAGE, new)) for row in rows]
        self._put(files, found, folder, change_data_columns(files.schema).fields[-1:])

    def write_postimages(self, files: FileSet, count: int, folder: str) -> None:
        """The rows of that kind."""
        rows = [row for _, found in self._rows(change_data_files(files), ids=True) for _, row in found]
        self._put(files, [row for row in rows if row.pop(CHANGE_TYPE) == POSTIMAGE], folder)

    def _change_rows(self, images: Images) -> list[Row]:
        if images.joined is not None and images.change == POSTIMAGE:
            return [{**row, CHANGE_TYPE: POSTIMAGE} for row in images.joined.images]
        every, marked = images.rows is None, images.rows or {}
        found = [(path, i, row) for path, rows in self._rows(images.selected_files) for i, row in rows]
        rows = [row for path, i, row in found if every or i in marked.get(path, ())]
        return [{**row, CHANGE_TYPE: images.change} for row in rows]

    def pack(self, files: FileSet, folder: str) -> None:
        """One file behind the other."""
        kept = [row for _, rows in self._rows(files, ids=True) for _, row in rows]
        self._put_one(files, kept, f"{folder}/part-00000")

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """None: this engine packs one by one."""
        return frozenset()

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Sorted by the columns, one after the other."""
        found = [(n, i, row) for n, (_, rows) in enumerate(self._rows(files, ids=True)) for i, row in rows]
        found.sort(key=lambda each: ([(row is not None, row) for row in map(each[2].get, curve.columns)], each[:2]))
        size, store = -(-len(found) // outputs) or 1, open_store(files.root)
        for number, start in enumerate(range(0, len(found), size)):
            part, name = found[start : start + size], f"part-{number:05d}"
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
        """A table's rows."""
        rows = fit_to_rules(root, source, schema, rules)
        self._write(rows, schema, partition_columns, open_store(root), folder, materialised=rules.materialised)

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """Before the block: a simulated writer has one thread."""
        work()
        yield

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """As it is: there is nothing to be carried."""
        return work

    def hold(self, source: pa.Table, schema: Struct, root: str, folder: str) -> Held:
        """Rows in memory are kept as they are."""
        return Held(tuple(source.to_pylist()))

    def with_numbers(self, held: Held, values: Mapping[str, range]) -> pa.Table:
        """The values in the order of the rows."""
        return pa.Table.from_pylist([{**row, **reserved_values(values, i)} for i, row in enumerate(held.records)])

    def join(self, files: FileSet, matching: Matching, held: Held, folder: str) -> Joined:
        """Each live row with each source row; conditions and values are functions of both rows."""
        found = Join(matching, held.records)
        for path, rows in self._rows(files, ids=True):
            self.evaluated.append(path)
            for i, row in rows:
                found.add(path, i, _as_new_image(files, row))
        if found.ambiguous:
            raise AmbiguousMerge(table=files.root, count=found.ambiguous)
        return found.result()

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> None:
        """What `join` computed."""
        self._check(files, joined.handle.images)
        self._put(files, joined.handle.images, folder)

    def write_inserts(
        self, files: FileSet, matching: Matching, held: Held, joined: Sequence[Joined], folder: str
    ) -> None:
        """The source rows that no join matched."""
        matched = {number for each in joined for number in each.handle.sources}
        rows = [(number, row) for number, row in enumerate(held.records) if number not in matched]
        new = [
            image for number, row in rows if (image := row_to_insert(matching, row, files.schema, number)) is not None
        ]
        if new:
            self._check(files, new)
            self._put(files, new, folder)

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Nothing: no SQL is run here, and `write` refuses what it cannot hold."""

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column."""
        values = [row[column] for row in self.rows(files) if row[column] is not None]
        return min(values, default=None), max(values, default=None)

    def few_values(self, held: Held, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a column."""
        found = list(dict.fromkeys(row[column] for row in held.records))
        return found if len(found) <= limit else None

    def alias(self, source: pa.Table) -> None:
        """Functions need no names."""
        return None

    def describe(self, source: pa.Table) -> Struct:
        """A table's columns."""
        return from_arrow(source.schema)

    def source_versions(self, source: pa.Table, root: str, table_id: str) -> SourceVersions | None:
        """Rows in memory read no table, unless they say so (`read_from`)."""
        return source_versions_of(source)

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """Conditions and values here hold no query."""
        return None

    def merge_versions(
        self, source: pa.Table, matching: Matching, schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """Nor do the functions of a MERGE."""
        return None

    def settings(self) -> Mapping[str, str]:
        """There is no session."""
        return {}

    def rows(self, files: FileSet) -> list[Row]:
        """The live rows, as a reader sees them."""
        return [row for _, rows in self._rows(files) for _, row in rows]

    def _rows(self, files: FileSet, *, ids: bool = False) -> list[tuple[str, list[tuple[int, Row]]]]:
        """The live rows; with their ids, where they keep any, under the names of the hidden columns."""
        store, found = open_store(files.root), []
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
            found.append((path, [(i, row) for i, row in whole if i not in dead]))
        return found

    def _check(self, files: FileSet, rows: list[Row]) -> None:
        """Hold the table's rules for new rows."""
        if files.rules.bind_rows:
            obedient(files.root, _table(files.schema, rows), files.schema, files.rules, frozenset())

    def _put(self, files: FileSet, rows: list[Row], folder: str, beside: tuple[Field, ...] = ()) -> None:
        hidden = (*beside, *(() if files.tracked is None else files.tracked.fields))
        table, store = _table(Struct((*files.schema.fields, *hidden)), rows), open_store(files.root)
        names, both = tuple(each.name for each in hidden), files.rules.materialised
        self._write(table, files.schema, files.partition_columns, store, folder, names, materialised=both)

    def _put_one(self, files: FileSet, rows: list[Row], name: str) -> None:
        """Rows of one partition as one file, whose name begins so."""
        hidden = () if files.tracked is None else files.tracked.fields
        table = _table(Struct((*files.schema.fields, *hidden)), rows)
        metadata = _metadata_of(files.schema, files.partition_columns, files.rules.materialised)
        ((_, part),) = split_by_partition(table, metadata)
        file = _to_file_rows(part, metadata, tuple(each.name for each in hidden))
        open_store(files.root).put(f"{name}-{self._new_id()}.parquet", parquet_bytes(file))

    def _write(
        self,
        rows: pa.Table,
        schema: Struct,
        columns: tuple[str, ...],
        store: Store,
        folder: str,
        hidden: tuple[str, ...] = (),
        *,
        materialised: bool,
    ) -> None:
        metadata = _metadata_of(schema, columns, materialised)
        for values, part in split_by_partition(rows, metadata):
            keys = zip(folder_keys(metadata), metadata.partition_keys, strict=True)
            folders = [hive_segment(folder, values[key]) for folder, key in keys]
            file = _to_file_rows(part, metadata, hidden)
            store.put("/".join([folder, *folders, f"part-{self._new_id()}.parquet"]), parquet_bytes(file))


def _metadata_of(schema: Struct, columns: tuple[str, ...], materialised: bool) -> Metadata:
    mode = {MODE: BY_NAME if any(FIELD_ID in each.metadata for each in schema) else UNMAPPED}
    return Metadata("", schema_json(schema), columns, {**mode, ICEBERG_V2: str(materialised)})


def _to_file_rows(part: pa.Table, metadata: Metadata, hidden: tuple[str, ...]) -> pa.Table:
    """Rows as a file holds them, with the columns by which rows are tracked."""
    file = to_file_rows(part.drop_columns(list(hidden)), metadata)
    for name in hidden:
        file = file.append_column(name, part.column(name))
    return file


def read_from(rows: pa.Table, version: int, commit: str = "") -> pa.Table:
    """The rows as a source that was read from a version of the very table that it is written to, with the mark of its
    commit where that is known.
    """
    return rows.replace_schema_metadata({_READ: f"{version} {commit}"})


def source_versions_of(source: pa.Table) -> SourceVersions | None:
    """From which versions of the table such rows say that they were read."""
    said = (source.schema.metadata or {}).get(_READ)
    if said is None:
        return None
    version, _, mark = said.decode().partition(" ")
    return SourceVersions(int(version), frozenset({(int(version), mark)} if mark else ()))


def _ids(tracked: Tracked, file: Row, position: int, row: Row) -> Row:
    """What a row's id and commit version are: what lies in the file, else what the log says of the file."""
    kept, version = row.get(tracked.row_id), row.get(tracked.commit_version)
    base = file["baseRowId"]
    own = None if base is None else base + position
    return {
        tracked.row_id: own if kept is None else kept,
        tracked.commit_version: file["defaultRowCommitVersion"] if version is None else version,
    }


def _as_new_image(files: FileSet, row: Row) -> Row:
    """A row as its new image: it keeps its id, and its version is that of the commit to come."""
    return row if files.tracked is None else {**row, files.tracked.commit_version: None}


def _table(schema: Struct, rows: list[Row]) -> pa.Table:
    """Rows as they are, NULL in NOT NULL columns too, whose rules are held elsewhere."""
    nullable = pa.schema([field.with_nullable(True) for field in to_arrow(schema)])
    return pa.Table.from_pylist(rows, schema=nullable)


def _whole(rows: list[Row], schema: Struct) -> list[Row]:
    """Rows of a file with every member of the schema's structs, NULL where the file is older than the member, and with
    values as wide as the schema's where the file is older than that.
    """
    nested = Struct(tuple(each for each in schema if not isinstance(each.type, str) or TYPE_CHANGES in each.metadata))
    if not nested.fields:
        return rows
    wanted = pa.schema([field.with_nullable(True) for field in to_arrow(nested)])
    images = [{each.name: _widen(row.get(each.name), each.type) for each in nested} for row in rows]
    images = pa.Table.from_pylist(images, schema=wanted).to_pylist()
    return [{**row, **image} for row, image in zip(rows, images, strict=True)]


def logical_rows(store: Store, name: str, schema: Struct) -> list[Row]:
    """The rows of one small Parquet file, those that a vector deletes too, under the logical names of columns."""
    rows, there = _decode(store.get(name))
    if not is_renamed(schema):
        return rows
    found = renaming(there, schema)
    return [found.row(row) for row in rows]


def _values_of(files: FileSet, partition: Mapping[str, str | None]) -> Row:
    """The partition values of a file by the logical names of their columns."""
    columns = map(files.schema.field, files.partition_columns)
    return {each.name: read_value(partition.get(each.physical_name), str(each.type)) for each in columns}


def _widen(value: Any, data_type: DataType) -> Any:
    """A day as the moment at which it begins, where the column holds moments; Arrow widens all else by itself."""
    if data_type == "timestamp_ntz" and type(value) is dt.date:
        return dt.datetime.combine(value, dt.time())
    return value


@lru_cache(maxsize=512)
def _decode(data: bytes) -> tuple[list[Row], pa.Schema]:
    """Kept, since a test reads the same few files again and again; nobody changes a row in place."""
    read = pq.ParquetFile(native_file(data)).read(use_threads=False)
    return read.to_pylist(), read.schema


def _assign(row: Row, assignments: Mapping[str, Any]) -> Row:
    return {**row, **evaluate_assignments(row, assignments, lambda value: value(row) if callable(value) else value)}
