"""What a MERGE writes, in Arrow: new images from what its join has left behind, and inserts.

Pure. Guarantee: the rows are those that Spark would write, before the table's rules are held.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow.merge_clauses import resolve_clauses
from anabranch._arrow.merge_source import SourceRows
from anabranch._arrow.pairs import Half, Pairs, acting_on, compute_clause_values
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import Matching, Reserved, SourceColumn

ROW_ID, IMAGE, OLD = "row_id", "image", "old"
"""Columns of what a join leaves behind: a row's id, and, before their numbers, the table's new and old values."""


def images_of(rows: pa.Table, updates: Collection[int], files: FileSet) -> pa.Table:
    """The rows that a join found to be updated, as they become, with all columns of a file set."""
    updated = rows.filter(pc.is_in(rows["clause"], value_set=pa.array(list(updates), pa.int32())))
    images = [name for name in rows.column_names if name.startswith(IMAGE)]
    hidden = [ROW_ID] if len(files.schema.names) > len(images) else []
    return updated.select([*images, *hidden]).rename_columns(list(files.schema.names))


def inserts_of(files: FileSet, matching: Matching, source: SourceRows) -> list[tuple[pa.Table, frozenset[str]]]:
    """What NOT MATCHED clauses make of a source's rows: for each clause the rows, and the columns that it gives.

    Raises:
        Unsupported: only Spark says what some value is.
    """
    matching, source = _add_reserved_columns(matching, source)
    clauses = resolve_clauses(matching, "not matched", files, source.columns)
    every = np.arange(source.rows)
    pairs = Pairs(len(every), {"source": Half(source.named_rows, every)})
    acts = acting_on(clauses, pairs, every)
    inserts, made = matching.columns_set(files.schema, "insert"), []
    for each in clauses:
        rows, given = (
            pa.table(compute_clause_values(each, pairs, every[acts == each.number], files.schema)),
            inserts[each.number],
        )
        made.append((rows, given))
    return made


def _add_reserved_columns(matching: Matching, source: SourceRows) -> tuple[Matching, SourceRows]:
    """The clauses with a column of the source for each value that is reserved for its rows, and these columns."""
    columns, clauses = dict[str, pa.Array](), []
    for clause in matching.clauses:
        values = dict(clause.values)
        for name, value in clause.values.items():
            if isinstance(value, Reserved):
                column = free_name(f"__anabranch_reserved_{len(columns)}", source.columns.names)
                columns[column] = pa.array(value.values, pa.int64()).take(source.numbers)
                values[name] = SourceColumn(column)
        clauses.append(replace(clause, values=values))
    return (replace(matching, clauses=tuple(clauses)), source.beside(columns)) if columns else (matching, source)
