"""A MERGE whose rows match by keys, as far as Arrow does it: the table's rows are looked for by the source's keys.

Knows Arrow tables and which comparisons of keys are Spark's own. Guarantee: of a join whose conditions and values are
computed here the outcome is the one that `anabranch.spark.merge` would find; of any other the rows that are brought
are all those that can match. What is in doubt is left to Spark, and so is a MERGE that is ambiguous, since it says how
often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Matching
from anabranch.protocol.schema.types import INTEGERS, Field, arrow_type
from anabranch.protocol.stats.literals import domain
from anabranch.spark import arrow_finding, few_rows
from anabranch.spark.merge_here import IMAGE
from anabranch.spark.merge_pairs import NONE, Half, Pairs, acting_on, stored
from anabranch.spark.merge_source import Held
from anabranch.spark.merge_values import Acting, columns_of, computed_clauses, is_seen, place_of, type_of
from anabranch.spark.raw_rows import Address, address_of

_AT, _NUMBER = "at", "number"


def computed_join(files: FileSet, matching: Matching, source: T.StructType) -> list[Acting] | None:
    """The matched clauses of a MERGE on a source of these columns whose join needs no Spark: rows match by keys, and
    what else is asked of them is computed here. Then nothing in it can fail to fit. None of any other.
    """
    beyond = matching.evolves or matching.added or matching.recorded or matching.acts_without_match
    if beyond or files.tracked is not None or files.rules.bind_rows or _keys(files, matching, source) is None:
        return None
    if not (matching.rest.is_condition and is_seen(matching.rest, source)):
        return None
    return computed_clauses(matching, "matched", files, source)


def outcome(spark: SparkSession, files: FileSet, matching: Matching, held: Held) -> pa.Table | None:
    """What the join of such a MERGE leaves behind: address, source row, acting clause, and new images if some clause
    updates; None where Spark has to join.

    Raises:
        LeftToSpark: only Spark says what some value is.
    """
    clauses = computed_join(files, matching, held.schema)
    if held.arrow is None or clauses is None:
        return None
    join = _Join(spark, files, held, address_of(files.schema))
    found = _pairs(spark, files, matching, held, join.address)
    asked = columns_of([matching.rest, *(each.condition for each in clauses)])
    pairs = None if found is None else join.pairs(found, asked)
    if found is None or pairs is None:
        return None
    every = np.arange(len(found))
    matched = every[pairs.truths(matching.rest, every)]
    acts = acting_on(clauses, pairs, matched)[matched]
    found = found.take(pa.array(matched))
    if not matching.may_match_twice and _repeats(found.filter(pa.array(acts != NONE))):
        return None
    images = join.images(clauses, found, acts) if any(each.updates for each in clauses) else {}
    if images is None:
        return None
    own = held.arrow.column(len(held.schema)).take(found[_NUMBER])
    kept = {"path": found[join.address.path], "row": found[join.address.row], "number": own}
    return pa.table({**kept, "clause": pa.array(acts, mask=acts == NONE), **images})


@dataclass(frozen=True)
class _Join:
    """A join as it goes on: where the rows of both sides are."""

    spark: SparkSession
    files: FileSet
    held: Held
    address: Address

    def pairs(self, found: pa.Table, columns: Sequence[str]) -> Pairs | None:
        """Pairs, as `_pairs` gives them, with these columns of the table's rows; None where Spark has to read them."""
        assert self.held.arrow is not None
        source = self.held.arrow.rename_columns([*self.held.schema.names, _NUMBER])
        halves = {"source": Half(source, found[_NUMBER].to_numpy())}
        if columns:
            rows, places = np.unique(found[_AT].to_numpy(), return_inverse=True)
            own = self._own(found, columns)  # in the order of the pairs
            if own is None or len(own) != len(rows):
                return None
            halves["target"] = Half(own, places)
        return Pairs(len(found), halves)

    def _own(self, found: pa.Table, columns: Sequence[str]) -> pa.Table | None:
        if not len(found):
            fields = [self.files.schema.field(name) for name in columns]
            return pa.schema([(each.name, arrow_type(each.type)) for each in fields]).empty_table()
        marks = few_rows.marks(found[self.address.path], found[self.address.row])
        return arrow_finding.brought(self.spark, self.files, marks, columns)

    def images(self, clauses: Sequence[Acting], found: pa.Table, acts: Any) -> Mapping[str, Any] | None:
        """The new values of all columns: those that no clause names keep the table's, and there are none where a row is
        not updated.
        """
        schema = self.files.schema
        parts, order = [], [np.flatnonzero(~np.isin(acts, [each.number for each in clauses if each.updates]))]
        nothing = [pa.nulls(len(order[0]), arrow_type(each.type)) for each in schema]
        parts.append(pa.table(nothing, list(schema.names)))
        for clause in clauses:
            those = np.flatnonzero(acts == clause.number)
            if clause.updates and len(those):
                part = self._updated(clause, found.take(pa.array(those)))
                if part is None:
                    return None
                parts.append(part)
                order.append(those)
        images = pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(order))))
        return {f"{IMAGE}{i}": column for i, column in enumerate(images.columns)}

    def _updated(self, clause: Acting, found: pa.Table) -> pa.Table | None:
        """The new images of pairs on which one clause acts."""
        schema = self.files.schema
        rest = [name for name in schema.names if name not in clause.values]
        pairs = self.pairs(found, sorted({*rest, *columns_of([*clause.values.values()])}))
        if pairs is None:
            return None
        every = np.arange(len(found))
        values = stored(clause, pairs, every, schema)
        own = pairs.halves["target"].rows if rest else None
        columns = [values.get(name) if own is None or name in values else own[name] for name in schema.names]
        return pa.table(columns, list(schema.names))


def narrowed(
    spark: SparkSession, files: FileSet, matching: Matching, held: Held, columns: Sequence[str], address: Address
) -> pa.Table | None:
    """These columns, and addresses, of all rows that can match the source; None where Spark has to look for them."""
    if held.arrow is None or matching.acts_without_match or not matching.keys:
        return None
    values = _values(files, matching, held)
    found = None if values is None else arrow_finding.with_values(spark, files, values, address)
    if found is None or not len(found):
        return None
    marks = few_rows.marks(found[address.path], found[address.row])
    return arrow_finding.brought(spark, files, marks, columns, address)


# -- keys --------------------------------------------------------------------------------------------------------------


def _keys(files: FileSet, matching: Matching, source: T.StructType) -> dict[str, tuple[int, pa.DataType]] | None:
    """For each key of the table the place of the source's column, and the type in which both are compared; None where
    that is not what Spark does, or a column is compared with two.
    """
    found: dict[str, tuple[int, pa.DataType]] = {}
    for ours, theirs in matching.keys:
        field, at = files.schema.field(ours), place_of(source, theirs)
        if at is None or ours in found or not _are_alike(field, source[at]):
            return None
        kind = domain(field)
        if kind is None or pa.types.is_floating(kind):
            return None
        found[ours] = at, kind
    return found or None


def _are_alike(field: Field, theirs: T.StructField) -> bool:
    """Whether Spark compares values of both as they are."""
    other = type_of(theirs)
    return other == field.type or (field.type in INTEGERS and other in INTEGERS)


def _values(files: FileSet, matching: Matching, held: Held) -> dict[str, pa.Array] | None:
    """The values of the source's keys, without NULL, which matches nothing."""
    keys = _keys(files, matching, held.schema)
    if keys is None or held.arrow is None:
        return None
    return {name: pc.unique(held.arrow.column(at).drop_null().cast(kind)) for name, (at, kind) in keys.items()}


def _pairs(spark: SparkSession, files: FileSet, matching: Matching, held: Held, address: Address) -> pa.Table | None:
    """The addresses of rows with the places of the source's rows that have their keys, in the order of the rows."""
    keys, values = _keys(files, matching, held.schema), _values(files, matching, held)
    if keys is None or values is None or held.arrow is None:
        return None
    found = arrow_finding.with_values(spark, files, values, address)
    if found is None:
        return None
    names = [f"k{i}" for i in range(len(keys))]
    ours = pa.table([*found.columns, pa.array(np.arange(len(found)))], [*names, *address, _AT])
    columns = [held.arrow.column(at).cast(kind) for at, kind in keys.values()]
    theirs = pa.table([*columns, pa.array(np.arange(held.rows))], [*names, _NUMBER])
    return ours.join(theirs, names, join_type="inner").sort_by([(_AT, "ascending"), (_NUMBER, "ascending")])


def _repeats(pairs: pa.Table) -> bool:
    """Whether a row of the table matches several of the source."""
    return pc.count_distinct(pairs[_AT]).as_py() < len(pairs)
