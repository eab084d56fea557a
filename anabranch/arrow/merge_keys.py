"""A MERGE whose rows match by keys, as far as Arrow does it: the table's rows are looked for by the source's keys.

Knows Arrow tables and which comparisons of keys are Spark's own. Guarantee: of a join whose conditions and values are
computed here the outcome is the one that `anabranch.spark.merge` would find; of any other the rows that are brought
are all those that can match. What is in doubt is left to Spark, and so is a MERGE that is ambiguous, since it says how
often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrow import finding
from anabranch.arrow.marks import marks_of
from anabranch.arrow.merge_clauses import columns_of, computed_clauses, is_seen
from anabranch.arrow.merge_join import AT, NUMBER, Join
from anabranch.arrow.merge_source import SourceColumns, SourceRows
from anabranch.arrow.pairs import NONE, Acting, acting_on
from anabranch.arrow.site import Site
from anabranch.protocol.layout.addresses import Address, address_of
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Matching
from anabranch.protocol.schema.types import INTEGERS, DataType
from anabranch.protocol.stats.literals import domain


@dataclass(frozen=True)
class JoinClauses:
    """The clauses of a join that needs no Spark: for rows that match, and for the table's rows that do not."""

    matched: list[Acting]
    alone: list[Acting]

    @property
    def update(self) -> bool:
        """Whether some rows may be updated."""
        return any(each.updates for each in (*self.matched, *self.alone))


def computed_join(files: FileSet, matching: Matching, source: SourceColumns) -> JoinClauses | None:
    """The clauses of a MERGE on a source of these columns whose join needs no Spark: rows match by keys, and what else
    is asked of them is computed here. Then nothing in it can fail to fit. None of any other.
    """
    if matching.evolves or matching.added or _keys(files, matching, source) is None:
        return None
    if not (matching.rest.is_condition and is_seen(matching.rest, source)):
        return None
    matched = computed_clauses(matching, "matched", files, source)
    alone = computed_clauses(matching, "not matched by source", files, source)
    return None if matched is None or alone is None else JoinClauses(matched, alone)


def outcome(site: Site, files: FileSet, matching: Matching, source: SourceRows) -> pa.Table | None:
    """What the join of such a MERGE leaves behind: address, source row, acting clause, new images if some clause
    updates, and old ones if they are recorded; None where Spark has to join.

    Raises:
        LeftToSpark: only Spark says what some value is, or reads some rows.
    """
    clauses = computed_join(files, matching, source.columns)
    if clauses is None:
        return None
    join = Join(site, files, source, address_of(files.schema))
    found = _pairs(site, files, matching, source, join.address)
    if found is None:
        return None
    found, acts = _matched(join, found, matching, clauses)
    if not matching.may_match_twice and _repeats(found.filter(pa.array(acts != NONE))):
        return None
    parts = [(found, acts)]
    if clauses.alone:
        parts.append(join.alone(clauses.alone, marks_of(found[join.address.path], found[join.address.row])))
    both, does = [*clauses.matched, *clauses.alone], {"images": clauses.update, "recorded": matching.recorded}
    return pa.concat_tables([join.left_behind(both, some, acting, **does) for some, acting in parts])


def _matched(join: Join, found: pa.Table, matching: Matching, clauses: JoinClauses) -> tuple[pa.Table, Any]:
    """Of pairs with equal keys those that match, and the number of the clause that acts on each."""
    pairs = join.pairs(found, columns_of([matching.rest, *(each.condition for each in clauses.matched)]))
    every = np.arange(len(found))
    matched = every[pairs.truths(matching.rest, every)]
    return found.take(pa.array(matched)), acting_on(clauses.matched, pairs, matched)[matched]


def narrowed(
    site: Site, files: FileSet, matching: Matching, source: SourceRows, columns: Sequence[str], address: Address
) -> pa.Table | None:
    """These columns, and addresses, of all rows that can match the source; None where Spark has to look for them."""
    if matching.acts_without_match or not matching.keys:
        return None
    values = _values(files, matching, source)
    found = None if values is None else finding.with_values(site, files, values, address)
    if found is None or not len(found):
        return None
    marks = marks_of(found[address.path], found[address.row])
    return finding.brought(site, files, marks, columns, address)


# -- keys --------------------------------------------------------------------------------------------------------------


def _keys(files: FileSet, matching: Matching, source: SourceColumns) -> dict[str, tuple[int, pa.DataType]] | None:
    """For each key of the table the place of the source's column, and the type in which both are compared; None where
    that is not what Spark does, or a column is compared with two.
    """
    found: dict[str, tuple[int, pa.DataType]] = {}
    for ours, theirs in matching.keys:
        field, at = files.schema.field(ours), source.place_of(theirs)
        if at is None or ours in found or not _are_alike(field.type, source.types[at]):
            return None
        kind = domain(field)
        if kind is None or pa.types.is_floating(kind):
            return None
        found[ours] = at, kind
    return found or None


def _are_alike(ours: DataType, theirs: DataType | None) -> bool:
    """Whether Spark compares values of both as they are."""
    return theirs == ours or (ours in INTEGERS and theirs in INTEGERS)


def _values(files: FileSet, matching: Matching, source: SourceRows) -> dict[str, pa.Array] | None:
    """The values of the source's keys, without NULL, which matches nothing."""
    keys = _keys(files, matching, source.columns)
    if keys is None:
        return None
    return {name: pc.unique(source.rows.column(at).drop_null().cast(kind)) for name, (at, kind) in keys.items()}


def _pairs(site: Site, files: FileSet, matching: Matching, source: SourceRows, address: Address) -> pa.Table | None:
    """The addresses of rows with the places of the source's rows that have their keys, in the order of the rows."""
    keys, values = _keys(files, matching, source.columns), _values(files, matching, source)
    if keys is None or values is None:
        return None
    found = finding.with_values(site, files, values, address)
    if found is None:
        return None
    names = [f"k{i}" for i in range(len(keys))]
    ours = pa.table([*found.columns, pa.array(np.arange(len(found)))], [*names, *address, AT])
    columns = [source.rows.column(at).cast(kind) for at, kind in keys.values()]
    theirs = pa.table([*columns, pa.array(np.arange(len(source.rows)))], [*names, NUMBER])
    return ours.join(theirs, names, join_type="inner").sort_by([(AT, "ascending"), (NUMBER, "ascending")])


def _repeats(pairs: pa.Table) -> bool:
    """Whether a row of the table matches several of the source."""
    return pc.count_distinct(pairs[AT]).as_py() < len(pairs)
