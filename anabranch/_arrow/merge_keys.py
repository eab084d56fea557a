"""Joins a MERGE by keys, in Arrow: looks up the source's keys in the table's rows.

Knows Arrow tables and which comparisons of keys match Spark's. Guarantee: if Arrow computes the join's conditions and
values, the outcome is the one that Spark would find; otherwise the fetched rows include all that can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow import finding
from anabranch._arrow.marks import marks_of
from anabranch._arrow.merge_clauses import columns_of, is_seen, resolve_clauses
from anabranch._arrow.merge_join import AT, NUMBER, Join
from anabranch._arrow.merge_source import SourceColumns, SourceRows
from anabranch._arrow.pairs import NONE, ActingClause, find_acting_clauses
from anabranch._arrow.site import Site
from anabranch._protocol.layout.addresses import Address, address_of
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.schema.types import INTEGERS, DataType
from anabranch._protocol.stats.literals import domain
from anabranch._protocol.unsupported import Unsupported
from anabranch.errors import AmbiguousMerge


@dataclass(frozen=True)
class JoinClauses:
    """The clauses of a join that needs no Spark: for matched rows, and for table rows without a match."""

    matched: list[ActingClause]
    alone: list[ActingClause]

    @property
    def update(self) -> bool:
        """Whether some rows may be updated."""
        return any(clause.updates for clause in (*self.matched, *self.alone))


def resolve_join(files: FileSet, matching: MergePlan, source: SourceColumns) -> JoinClauses:
    """The clauses of a MERGE whose join needs no Spark: rows match by keys, and Arrow computes the rest of ON. Then no
    value can fail to fit.

    Raises:
        Unsupported: only Spark computes part of it.
    """
    if matching.evolves or matching.added:
        raise Unsupported("columns that the MERGE may add are joined by Spark")
    _ = _keys(files, matching, source)
    if matching.rest.reason is not None:
        raise Unsupported(matching.rest.reason)
    if not (matching.rest.is_condition and is_seen(matching.rest, source)):
        raise Unsupported("what ON requires besides its keys is computed by Spark")
    matched = resolve_clauses(matching, "matched", files, source)
    return JoinClauses(matched, resolve_clauses(matching, "not matched by source", files, source))


def join_by_keys(site: Site, files: FileSet, matching: MergePlan, source: SourceRows) -> pa.Table:
    """The result of the join of such a MERGE: address, source row, acting clause, new images if some clause updates,
    and old images if changes are recorded.

    Raises:
        Unsupported: only Spark joins these, computes a value, or reads some rows.
        AmbiguousMerge: several source rows would change one row.
    """
    clauses = resolve_join(files, matching, source.columns)
    join = Join(site, files, source, address_of(files.schema))
    matches, acting = _find_matches(join, _pairs(site, files, matching, source, join.address), matching, clauses)
    if not matching.may_match_twice:
        _check_unambiguous(matches.filter(pa.array(acting != NONE)), files.root)
    parts = [(matches, acting)]
    if clauses.alone:
        parts.append(join.alone(clauses.alone, marks_of(matches[join.address.path], matches[join.address.row])))
    all_clauses, options = [*clauses.matched, *clauses.alone], {"images": clauses.update, "recorded": matching.recorded}
    return pa.concat_tables([join.left_behind(all_clauses, pairs, numbers, **options) for pairs, numbers in parts])


def _find_matches(join: Join, candidates: pa.Table, matching: MergePlan, clauses: JoinClauses) -> tuple[pa.Table, Any]:
    """The pairs with equal keys that match, and the number of the clause that acts on each."""
    pairs = join.pairs(candidates, columns_of([matching.rest, *(clause.condition for clause in clauses.matched)]))
    indexes = np.arange(len(candidates))
    matched = indexes[pairs.truths(matching.rest, indexes)]
    return candidates.take(pa.array(matched)), find_acting_clauses(clauses.matched, pairs, matched)[matched]


def fetch_candidates(
    site: Site, files: FileSet, matching: MergePlan, source: SourceRows, columns: Sequence[str], address: Address
) -> pa.Table:
    """These columns, and addresses, of all rows that can match the source.

    Raises:
        Unsupported: only Spark can look them up, or every row of the table matters.
    """
    if matching.acts_without_match:
        raise Unsupported("every row of the table matters")
    candidates = finding.find_by_keys(site, files, _values(files, matching, source), address)
    marks = marks_of(candidates[address.path], candidates[address.row])
    return finding.fetch(site, files, marks, columns, address)


# -- keys --------------------------------------------------------------------------------------------------------------


def _keys(files: FileSet, matching: MergePlan, source: SourceColumns) -> dict[str, tuple[int, pa.DataType]]:
    """For each key column of the table the index of the source's column, and the type in which both are compared.

    Raises:
        Unsupported: there is no key, a column is compared with two others, or Spark compares in another way.
    """
    keys: dict[str, tuple[int, pa.DataType]] = {}
    for ours, theirs in matching.keys:
        field, at = files.schema.field(ours), source.place_of(theirs)
        kind = domain(field)
        if at is None or ours in keys or kind is None or pa.types.is_floating(kind):
            raise Unsupported(f"rows are joined on the column {ours} by Spark")
        if not _are_alike(field.type, source.types[at]):
            raise Unsupported(f"the column {ours} of the table and {theirs} of the source are compared by Spark")
        keys[ours] = at, kind
    if not keys:
        raise Unsupported("ON requires no columns to be equal")
    return keys


def _are_alike(ours: DataType, theirs: DataType | None) -> bool:
    """Whether Spark compares values of both types as they are."""
    return theirs == ours or (ours in INTEGERS and theirs in INTEGERS)


def _values(files: FileSet, matching: MergePlan, source: SourceRows) -> dict[str, pa.Array]:
    """The values of the source's keys, each once. NULL is one of them only where the key is null-safe: elsewhere it
    matches nothing. Raises Unsupported, as `_keys`.
    """
    values = {}
    for name, (at, kind) in _keys(files, matching, source.columns).items():
        column = source.table.column(at)
        values[name] = pc.unique((column if name in matching.null_safe else column.drop_null()).cast(kind))
    return values


def _pairs(site: Site, files: FileSet, matching: MergePlan, source: SourceRows, address: Address) -> pa.Table:
    """The addresses of table rows with the indexes of the source rows that have equal keys, in the order of the table's
    rows.
    """
    keys, values = _keys(files, matching, source.columns), _values(files, matching, source)
    found = finding.find_by_keys(site, files, values, address)
    table_keys = [_joinable(found[name], values[name]) for name in keys]
    source_keys = [_joinable(source.table.column(at).cast(kind), values[name]) for name, (at, kind) in keys.items()]
    names, addresses = [f"k{i}" for i in range(len(keys))], [found[name] for name in address]
    ours = pa.table([*table_keys, *addresses, pa.array(np.arange(len(found)))], [*names, *address, AT])
    theirs = pa.table([*source_keys, pa.array(np.arange(source.rows))], [*names, NUMBER])
    return ours.join(theirs, names, join_type="inner").sort_by([(AT, "ascending"), (NUMBER, "ascending")])


def _joinable(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """A key of some rows as Arrow's join compares it. If NULL is one of the key's values, these are their indexes among
    the values, since that join never takes two NULLs to be equal.
    """
    return pc.index_in(column, value_set=values) if values.null_count else column


def _check_unambiguous(pairs: pa.Table, table: str) -> None:
    """Raises AmbiguousMerge if a clause acts on several pairs of one table row."""
    times = pc.value_counts(pairs[AT].combine_chunks())
    ambiguous = pc.sum(pc.greater(times.field("counts"), 1)).as_py() or 0
    if ambiguous:
        raise AmbiguousMerge(table=table, count=ambiguous)
