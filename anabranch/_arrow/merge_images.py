"""Builds the rows that a MERGE writes, in Arrow: new images from the result of its join, and inserts.

Pure. Guarantee: the rows are those that Spark would write, before the table's rules are applied.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow.merge_clauses import resolve_clauses
from anabranch._arrow.merge_source import SourceRows
from anabranch._arrow.pairs import Pairs, Side, compute_clause_values, find_acting_clauses
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan, ReservedIdentity, SourceColumn

ROW_ID, IMAGE, OLD = "row_id", "image", "old"
"""Columns of a join's result: a row's id, and the prefixes of the numbered columns with new and old values."""


def images_of(rows: pa.Table, updates: Collection[int], files: FileSet) -> pa.Table:
    """The new images of the rows that a join updates, with all columns of a file set."""
    updated = rows.filter(pc.is_in(rows["clause"], value_set=pa.array(list(updates), pa.int32())))
    images = [name for name in rows.column_names if name.startswith(IMAGE)]
    hidden = [ROW_ID] if len(files.schema.names) > len(images) else []
    return updated.select([*images, *hidden]).rename_columns(list(files.schema.names))


def inserts_of(files: FileSet, matching: MergePlan, source: SourceRows) -> list[tuple[pa.Table, frozenset[str]]]:
    """The rows that NOT MATCHED clauses insert: for each clause its rows, and the columns that it sets.

    Raises:
        Unsupported: only Spark computes a value.
    """
    matching, source = _add_reserved_columns(matching, source)
    clauses = resolve_clauses(matching, "not matched", files, source.columns)
    every = np.arange(source.rows)
    pairs = Pairs(len(every), {"source": Side(source.named_rows, every)})
    acts = find_acting_clauses(clauses, pairs, every)
    columns_set, inserts = matching.columns_set(files.schema, "insert"), []
    for clause in clauses:
        rows, assigned = (
            pa.table(compute_clause_values(clause, pairs, every[acts == clause.number], files.schema)),
            columns_set[clause.number],
        )
        inserts.append((rows, assigned))
    return inserts


def _add_reserved_columns(matching: MergePlan, source: SourceRows) -> tuple[MergePlan, SourceRows]:
    """Replace values reserved for the source's rows by added columns of the source."""
    columns, clauses = dict[str, pa.Array](), []
    for clause in matching.clauses:
        values = dict(clause.values)
        for name, value in clause.values.items():
            if isinstance(value, ReservedIdentity):
                column = free_name(f"__anabranch_reserved_{len(columns)}", source.columns.names)
                columns[column] = pa.array(value.values, pa.int64()).take(source.numbers)
                values[name] = SourceColumn(column)
        clauses.append(replace(clause, values=values))
    return (replace(matching, clauses=tuple(clauses)), source.beside(columns)) if columns else (matching, source)
