"""Identity columns: numbers that the table assigns, each one once.

Knows PROTOCOL.md, section "Identity Columns". Pure. Guarantee: high-water marks only move in the direction of the step,
so that reserved values are never assigned again; and metadata written through `keep_assigned_values` remembers the
values of dropped columns, so that a new column of that name continues after them.

A metadata action that differs from an earlier one only in these marks, and advances them, is a *watermark*: it changes
nothing that another writer could have relied on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch._protocol.actions import Metadata
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch.errors import InvalidProperty, InvalidSchema

START, STEP = "delta.identity.start", "delta.identity.step"
MARK, EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
GIVEN = "anabranch.identityValuesGiven"
"""The table property that remembers assigned values of identity columns that the schema no longer has."""
_LONG = 1 << 63


@dataclass(frozen=True)
class Identity:
    """One identity column.

    Attributes:
        column: its name.
        start, step: its first value and the difference to the next.
        mark: the last reserved value, None before the first.
        explicit: whether users may provide values.
    """

    column: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    @property
    def next(self) -> int:
        """The first value that is not reserved."""
        return self.start if self.mark is None else self.mark + self.step

    def after(self, count: int) -> int:
        """The mark after ``count`` more values are reserved. Raises InvalidSchema: fewer 64-bit values are left."""
        last = self.next + (count - 1) * self.step
        if not -_LONG <= last < _LONG:
            raise InvalidSchema(reason=f"the identity column {self.column} has no {count} values left.")
        return last

    def reaching(self, value: int) -> int:
        """The first mark at or past a value, in the direction of the step. Raises InvalidSchema: no 64-bit value is."""
        steps = -((self.start - value) // self.step)  # rounded up, whatever the sign
        mark = self.start + steps * self.step
        if not -_LONG <= mark < _LONG:
            raise InvalidSchema(reason=f"the identity column {self.column} has no value left behind {value}.")
        return mark


def identities(schema: Struct) -> tuple[Identity, ...]:
    """The identity columns of a schema."""
    return tuple(_identity(each) for each in schema if STEP in each.metadata)


def _identity(field: Field) -> Identity:
    facts = field.metadata
    mark = facts.get(MARK)
    if field.type != "long":
        raise InvalidSchema(reason=f"the identity column {field.name} is of the type {field.type}, not a long.")
    try:
        start, step = int(facts[START]), int(facts[STEP])
        if step == 0:
            raise ValueError("its step is 0")
        return Identity(field.name, start, step, None if mark is None else int(mark), bool(facts.get(EXPLICIT)))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"the identity of the column {field.name} is damaged ({type(error).__name__}: {error})."
        raise InvalidSchema(reason=reason) from error


def identity_metadata(start: int, step: int, *, explicit: bool) -> dict[str, Any]:
    """The field metadata of a new identity column. Raises InvalidSchema: the step is 0, or a number exceeds 64 bits."""
    if step == 0 or not all(-_LONG <= number < _LONG for number in (start, step)):
        raise InvalidSchema(reason=f"an identity column cannot start at {start} and go on in steps of {step}.")
    return {START: start, STEP: step, EXPLICIT: explicit}


def with_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with these marks where they are further than its own."""
    fields = tuple(_advance_mark(each, marks.get(each.name)) for each in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(fields)))


def marks_of(schema: Struct) -> dict[str, int]:
    """The marks of all identity columns that have one, which every metadata action must keep."""
    return {each.column: each.mark for each in identities(schema) if each.mark is not None}


def _advance_mark(field: Field, mark: int | None) -> Field:
    if mark is None or STEP not in field.metadata:
        return field
    known = _identity(field)
    before = known.start - known.step if known.mark is None else known.mark
    farther = (max if known.step > 0 else min)(before, mark)
    return field if farther == before else replace(field, metadata={**field.metadata, MARK: farther})


# -- values of columns that went --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """The range of values that a table assigned to a column, from ``low`` to ``high``.

    Attributes:
        column: its name, in lower case.
        physical: its name in data files; None where only the logical name is remembered.
    """

    column: str
    low: int
    high: int
    physical: str | None = None

    def is_of(self, field: Field) -> bool:
        """Whether a column has the same name, here or in data files."""
        return self.column == field.name.lower() or self.physical == field.physical_name

    def within(self, other: Given | None) -> bool:
        """Whether this range is inside the other."""
        return other is not None and other.low <= self.low and self.high <= other.high

    def and_(self, other: Given) -> Given:
        """The range that covers both."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


def keep_assigned_values(before: Metadata, after: Metadata) -> Metadata:
    """The metadata ``after`` as it replaces ``before``, such that no value is assigned again.

    A column of the same name, or the same name in data files, continues after the assigned values, whatever its start
    and step are now. Values of columns that ``after`` does not have are remembered in the property `GIVEN`.

    Raises:
        InvalidProperty: the property is damaged.
        InvalidSchema: an identity column is damaged.

    Example:
        >>> gone = values_kept(counted_to_ten, without_the_column)
        >>> values_kept(gone, counted_to_three).schema.field("id").metadata[MARK]
        10
    """
    known = [*_ranges_of_table(before), *_ranges_of_table(after)]
    if not known:
        return after
    fields = tuple(_beyond(each, known) for each in after.schema)
    marked = after if fields == after.schema.fields else replace(after, schema_string=schema_json(Struct(fields)))
    spoken_of = [each for field in fields for each in _ranges_of_field(field)]
    left = _ranges_to_remember(known, spoken_of)
    said = {each.column: each for each in _ranges_in_property(after)}
    return marked if all(each.within(said.get(name)) for name, each in left.items()) else _remembering(marked, left)


def _ranges_of_table(metadata: Metadata) -> Iterator[Given]:
    yield from _ranges_in_property(metadata)
    for field in metadata.schema:
        yield from _ranges_of_field(field)


def _ranges_of_field(field: Field) -> Iterator[Given]:
    if STEP not in field.metadata:
        return
    known = _identity(field)
    if known.mark is not None and (known.mark - known.start) * known.step >= 0:
        low, high = sorted((known.start, known.mark))
        yield Given(field.name.lower(), low, high, field.physical_name)


def _beyond(field: Field, known: Iterable[Given]) -> Field:
    """The column with a mark after all values that were assigned before."""
    if STEP not in field.metadata:
        return field
    identity = _identity(field)
    ends = [each.high if identity.step > 0 else each.low for each in known if each.is_of(field)]
    met = [end for end in ends if (end - identity.next) * identity.step >= 0]
    if not met:
        return field
    end = max(met) if identity.step > 0 else min(met)
    mark = identity.start + (end - identity.start) // identity.step * identity.step
    return replace(field, metadata={**field.metadata, MARK: mark})


def _ranges_to_remember(known: Iterable[Given], spoken_of: Iterable[Given]) -> dict[str, Given]:
    """One range per name, without those covered by a present column of that name and its mark."""
    now = {each.column: each for each in spoken_of}
    found: dict[str, Given] = {}
    for each in known:
        if not each.within(now.get(each.column)):
            whole = replace(each, physical=None)
            found[each.column] = whole.and_(found[each.column]) if each.column in found else whole
    return dict(sorted(found.items()))


def _remembering(metadata: Metadata, given: Mapping[str, Given]) -> Metadata:
    spans = {name: [each.low, each.high] for name, each in given.items()}
    text = json.dumps(spans, ensure_ascii=False, separators=(",", ":"))
    return replace(metadata, configuration={**metadata.configuration, GIVEN: text})


def _ranges_in_property(metadata: Metadata) -> list[Given]:
    text = metadata.configuration.get(GIVEN)
    if text is None:
        return []
    try:
        spans = json.loads(text)
        return [Given(str(name), *_span(each)) for name, each in spans.items()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        reason = "it is damaged, so it is not known which identity values the table has given; another engine wrote it."
        raise InvalidProperty(property=GIVEN, value="of another form", reason=reason) from None


def _span(parsed: Any) -> tuple[int, int]:
    low, high = parsed
    if type(low) is not int or type(high) is not int or not -_LONG <= low <= high < _LONG:
        raise ValueError("two numbers of 64 bits are expected")
    return low, high


# -- watermarks --------------------------------------------------------------------------------------------------------


def is_watermark(before: Metadata, after: Metadata) -> bool:
    """Whether marks of identity columns advanced and nothing else differs. Raises InvalidSchema: one is damaged."""
    return before != after and same_but_marks(before, after) and not goes_back(before, after)


def same_but_marks(one: Metadata, other: Metadata) -> bool:
    """Whether nothing differs but marks of identity columns, whichever are farther on."""
    return one == other or _without_marks(one) == _without_marks(other)


def goes_back(before: Metadata, after: Metadata) -> bool:
    """Whether an identity column in both would assign values again that it had assigned or reserved. Raises
    InvalidSchema: an identity column is damaged.
    """
    later = {each.column: each for each in identities(after.schema)}
    both = [(each, later[each.column]) for each in identities(before.schema) if each.column in later]
    return any((new.next - old.next) * old.step < 0 for old, new in both)


def _without_marks(metadata: Metadata) -> Metadata:
    fields = (replace(f, metadata={k: v for k, v in f.metadata.items() if k != MARK}) for f in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(tuple(fields))))
