"""Explains data skipping: how each part of a condition was used, and why the rest could not be used.

Knows predicates and the facts of files; decides nothing itself. Pure. Guarantee: a part without a reason was fully used
for every file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.predicates import (
    And,
    Compare,
    In,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    names_of,
    truth_form,
)
from anabranch._protocol.schema.leaves import leaf_at
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.stats.literals import domain, limit, members
from anabranch._protocol.stats.skipping import ColumnFacts, FileFacts

NOT_UNDERSTOOD = "not understood"
IN_PART = "understood in part"


@dataclass(frozen=True)
class Conjunct:
    """One part of a condition whose parts are joined by AND.

    Attributes:
        text: the part, in SQL.
        dropped: the number of files that it rules out by itself.
        reason: why it rules out no more, in the words of `docs/concepts/skipping.md`; None if it was used for every
            file.
    """

    text: str
    dropped: int
    reason: str | None

    def __str__(self) -> str:
        effect = f"{self.dropped} ruled out"
        return f"{self.text}: {effect}" if self.reason is None else f"{self.text}: {effect} ({self.reason})"


def verdict(text: str, predicate: Predicate, facts: FileFacts) -> Conjunct:
    """The effect of one part of a condition on files."""
    could = facts.could_match(predicate)
    dropped, remaining = could.false_count, could.true_count
    is_usable = [_is_usable(leaf, facts.schema) for leaf in _leaves(truth_form(predicate))]
    if is_usable and not any(is_usable):
        return Conjunct(text, dropped, NOT_UNDERSTOOD)
    missing = {
        name: _count_without_statistics(facts.column(name), could) for name in sorted(names_of(predicate), key=str)
    }
    names = {name: name if isinstance(name, str) else ".".join(name) for name in missing}
    gaps = [f"no statistics of {names[name]} in {count} of {remaining}" for name, count in missing.items() if count]
    reasons = gaps + ([] if all(is_usable) else [IN_PART])
    return Conjunct(text, dropped, "; ".join(reasons) or None)


def _leaves(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And | Or):
        for part in predicate.ps:
            yield from _leaves(part)
    else:
        yield predicate.p if isinstance(predicate, Not) else predicate


def _is_usable(leaf: Predicate, schema: Struct) -> bool:
    """Whether bounds can ever decide the leaf; false if a comparison depends on more than the values."""
    if isinstance(leaf, Unknown):
        return False
    if not isinstance(leaf, Compare | In | StartsWith):
        return True
    leaf_column = leaf_at(schema, leaf.column)
    return leaf_column is not None and domain(leaf_column.field) is not None and _is_exact(leaf, leaf_column.field)


def _is_exact(leaf: Compare | In | StartsWith, field: Field) -> bool:
    if isinstance(leaf, StartsWith):
        return field.type == "string"
    if isinstance(leaf, In):
        return members(field, leaf.values) is not None
    return members(field, [leaf.value]) is not None or limit(field, leaf.op, leaf.value) is not None


def _count_without_statistics(column: ColumnFacts | None, among: pa.BooleanArray) -> int:
    """The number of files, among those of a mask, without any fact about a column."""
    if column is None:
        return among.true_count
    is_known_by_fact = [column.low.is_valid(), column.number_high.is_valid(), column.no_nulls, column.all_null]
    is_known = np.logical_or.reduce([is_present.to_numpy(zero_copy_only=False) for is_present in is_known_by_fact])
    return int(pc.sum(pc.and_(among, pa.array(~is_known))).as_py() or 0)
