"""A MERGE whose rows match by keys, as far as Arrow does it: the table's rows are looked for by the source's keys.

Knows Arrow tables and which comparisons of keys are Spark's own. Guarantee: of a join by keys alone, whose clauses take
columns of the source as they are, the outcome is the one that `anabranch.spark.merge` would find; of any other the rows
that are brought are all those that can match. What is in doubt is left to Spark, and so is a MERGE that is ambiguous,
since it says how often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Clause, Matching, SourceColumn
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import INTEGERS, DataType, Field, arrow_type
from anabranch.protocol.stats.literals import domain
from anabranch.spark import arrow_finding, few_rows
from anabranch.spark.merge_here import IMAGE
from anabranch.spark.merge_source import Held
from anabranch.spark.raw_rows import Address, address_of
from anabranch.spark.types import delta_type

_AT, _NUMBER = "at", "number"


def joins_plainly(files: FileSet, matching: Matching, source: T.StructType) -> bool:
    """Whether the join of a MERGE on a source of these columns needs no expression: rows match by keys alone, and what
    becomes of them are columns of the source as they are. Then nothing in it can fail to fit.
    """
    beyond = matching.evolves or matching.added or matching.recorded or matching.acts_without_match
    if not matching.by_keys_alone or beyond or files.tracked is not None or files.rules.bind_rows:
        return False
    matched = matching.of("matched")
    if len(matched) > 1 or _keys(files, matching, source) is None:
        return False
    return all(each.condition is None and _takes_columns(files, each, source) for each in matched)


def inserts_plainly(files: FileSet, matching: Matching, source: T.StructType) -> bool:
    """Whether what a MERGE inserts are rows of the source as they are, whichever of its clauses inserts them."""
    inserting, names = matching.of("not matched"), {name.lower() for name in files.schema.names}
    if matching.evolves or matching.added or matching.recorded or files.rules.bind_rows:
        return False
    return all(names == {*map(str.lower, e.values)} and _takes_columns(files, e, source) for e in inserting)


def outcome(spark: SparkSession, files: FileSet, matching: Matching, held: Held) -> pa.Table | None:
    """What the join of a plain MERGE leaves behind: address, source row, acting clause, and new images if some clause
    updates; None where Spark has to join.
    """
    if held.arrow is None or not joins_plainly(files, matching, held.schema):
        return None
    address = address_of(files.schema)
    pairs = _pairs(spark, files, matching, held, address)
    if pairs is None:
        return None
    acting = [(i, each) for i, each in enumerate(matching.clauses) if each.when == "matched"]
    if acting and not matching.may_match_twice and _repeats(pairs):
        return None
    number, clause = (acting[0][0] if acting else None), (acting[0][1] if acting else None)
    images = _images(spark, files, clause, held, pairs, address) if clause and clause.action == "update" else {}
    if images is None:
        return None
    own = held.arrow.column(len(held.schema)).take(pairs[_NUMBER])
    kept = {"path": pairs[address.path], "row": pairs[address.row], "number": own}
    return pa.table({**kept, "clause": pa.repeat(pa.scalar(number, pa.int32()), len(pairs)), **images})


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
        field, at = files.schema.field(ours), _place_of(source, theirs)
        if at is None or ours in found or not _are_alike(field, source[at]):
            return None
        kind = domain(field)
        if kind is None or pa.types.is_floating(kind):
            return None
        found[ours] = at, kind
    return found or None


def _are_alike(field: Field, theirs: T.StructField) -> bool:
    """Whether Spark compares values of both as they are."""
    other = _type_of(theirs)
    return other == field.type or (field.type in INTEGERS and other in INTEGERS)


def _type_of(field: T.StructField) -> DataType | None:
    """Delta's type of a source's column; None where it is none that Arrow sees as Spark does, or padded."""
    if LENGTH in (field.metadata or {}) or not few_rows.are_plain(T.StructType([field])):
        return None
    return delta_type(field.dataType, field.name)


def _place_of(source: T.StructType, name: str) -> int | None:
    """The place of the source's one column of this name, whatever the case."""
    named = [i for i, each in enumerate(source.names) if each.lower() == name.lower()]
    return named[0] if len(named) == 1 else None


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


# -- what clauses write ------------------------------------------------------------------------------------------------


def _takes_columns(files: FileSet, clause: Clause, source: T.StructType) -> bool:
    return all(_taken_from(files.schema.find(name), value, source) is not None for name, value in clause.values.items())


def _taken_from(field: Field | None, value: object, source: T.StructType) -> int | None:
    """The place of the source's column whose values a column gets as they are."""
    if field is None or not isinstance(value, SourceColumn) or value.members or LENGTH in field.metadata:
        return None
    at = _place_of(source, value.name)
    return at if at is not None and _type_of(source[at]) == field.type else None


def _images(
    spark: SparkSession, files: FileSet, clause: Clause, held: Held, pairs: pa.Table, address: Address
) -> Mapping[str, pa.ChunkedArray] | None:
    """The new values of all columns; those that the clause does not name keep the table's."""
    assert held.arrow is not None
    given = {name: _taken_from(files.schema.find(name), value, held.schema) for name, value in clause.values.items()}
    rest, own = [name for name in files.schema.names if name not in given], None
    if rest and len(pairs):
        marks = few_rows.marks(pairs[address.path], pairs[address.row])
        own = arrow_finding.brought(spark, files, marks, rest)  # in the order of the pairs, since no row is there twice
        if own is None or len(own) != len(pairs):
            return None
    images = {}
    for i, field in enumerate(files.schema):
        at = given.get(field.name)
        if at is not None:
            images[f"{IMAGE}{i}"] = held.arrow.column(at).take(pairs[_NUMBER])
        elif own is not None:
            images[f"{IMAGE}{i}"] = own[field.name]
        else:
            images[f"{IMAGE}{i}"] = pa.chunked_array([], arrow_type(field.type))
    return images
