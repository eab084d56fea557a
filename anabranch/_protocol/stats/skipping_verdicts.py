"""Explains data skipping: how each part of a condition was used, and why the rest could not be.

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
    """One part of a condition that is joined to the others by AND.

    Attributes:
        text: the part, in SQL.
        dropped: how many files it rules out by itself.
        reason: why it rules out no more, in the words of `docs/concepts/skipping.md`; None where it was used for every
            file.
    """

    text: str
    dropped: int
    reason: str | None

    def __str__(self) -> str:
        said = f"{self.dropped} ruled out"
        return f"{self.text}: {said}" if self.reason is None else f"{self.text}: {said} ({self.reason})"


def verdict(text: str, predicate: Predicate, facts: FileFacts) -> Conjunct:
    """The effect of one part of a condition on some files."""
    could = facts.could_match(predicate)
    dropped, left = could.false_count, could.true_count
    known = [_is_usable(leaf, facts.schema) for leaf in _leaves(truth_form(predicate))]
    if known and not any(known):
        return Conjunct(text, dropped, NOT_UNDERSTOOD)
    missing = {name: _without_statistics(facts.column(name), could) for name in sorted(names_of(predicate), key=str)}
    names = {name: name if isinstance(name, str) else ".".join(name) for name in missing}
    said = [f"no statistics of {names[name]} in {count} of {left}" for name, count in missing.items() if count]
    reasons = said + ([] if all(known) else [IN_PART])
    return Conjunct(text, dropped, "; ".join(reasons) or None)


def _leaves(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And | Or):
        for part in predicate.ps:
            yield from _leaves(part)
    else:
        yield predicate.p if isinstance(predicate, Not) else predicate


def _is_usable(leaf: Predicate, schema: Struct) -> bool:
    """Whether bounds can ever decide it: not where a comparison depends on more than the values."""
    if isinstance(leaf, Unknown):
        return False
    if not isinstance(leaf, Compare | In | StartsWith):
        return True
    found = leaf_at(schema, leaf.column)
    return found is not None and domain(found.field) is not None and _is_exact(leaf, found.field)


def _is_exact(leaf: Compare | In | StartsWith, field: Field) -> bool:
    if isinstance(leaf, StartsWith):
        return field.type == "string"
    if isinstance(leaf, In):
        return members(field, leaf.values) is not None
    return members(field, [leaf.value]) is not None or limit(field, leaf.op, leaf.value) is not None


def _without_statistics(known: ColumnFacts | None, among: pa.BooleanArray) -> int:
    """For how many of these files nothing is known of a column."""
    if known is None:
        return among.true_count
    stated = [known.low.is_valid(), known.number_high.is_valid(), known.no_nulls, known.all_null]
    said = np.logical_or.reduce([each.to_numpy(zero_copy_only=False) for each in stated])
    return int(pc.sum(pc.and_(among, pa.array(~said))).as_py() or 0)
