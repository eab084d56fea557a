"""Identity columns: numbers that the table assigns, each number once.

Knows PROTOCOL.md, section "Identity Columns". Pure. Guarantee: high-water marks only move in the direction of the step,
so that reserved values are never assigned again; and metadata written through `keep_assigned_values` remembers the
values of dropped columns, so that a new column of that name continues after them.

A metadata action that differs from an earlier one only in these marks, and advances them, is a *watermark*: no other
writer can have relied on what it changes.
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
"""The table property that remembers assigned values of identity columns that are no longer in the schema."""
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
        """The first mark at or past a value, in the direction of the step. Raises InvalidSchema: it exceeds 64 bits."""
        steps = -((self.start - value) // self.step)  # rounded up, whatever the sign
        mark = self.start + steps * self.step
        if not -_LONG <= mark < _LONG:
            raise InvalidSchema(reason=f"the identity column {self.column} has no value left after {value}.")
        return mark


def identities(schema: Struct) -> tuple[Identity, ...]:
    """The identity columns of a schema."""
    return tuple(_identity(field) for field in schema if STEP in field.metadata)


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
    if step == 0:
        condition = "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"
        raise InvalidSchema(reason="IDENTITY column step cannot be 0.", delta_condition=condition)
    if not all(-_LONG <= number < _LONG for number in (start, step)):
        raise InvalidSchema(reason=f"an identity column cannot start at {start} with a step of {step}.")
    return {START: start, STEP: step, EXPLICIT: explicit}


def with_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with those of these marks that are ahead of its own."""
    fields = tuple(_advance_mark(field, marks.get(field.name)) for field in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(fields)))


def marks_of(schema: Struct) -> dict[str, int]:
    """The marks of all identity columns that have one; every metadata action must keep them."""
    return {column.column: column.mark for column in identities(schema) if column.mark is not None}


def _advance_mark(field: Field, mark: int | None) -> Field:
    if mark is None or STEP not in field.metadata:
        return field
    identity = _identity(field)
    before = identity.start - identity.step if identity.mark is None else identity.mark
    farther = (max if identity.step > 0 else min)(before, mark)
    return field if farther == before else replace(field, metadata={**field.metadata, MARK: farther})


# -- values of dropped columns -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssignedRange:
    """The range of values that a table assigned to a column, from ``low`` to ``high``.

    Attributes:
        column: its name, in lower case.
        physical: its name in data files; None if only the logical name is remembered.
    """

    column: str
    low: int
    high: int
    physical: str | None = None

    def is_of(self, field: Field) -> bool:
        """Whether a column has this logical or physical name."""
        return self.column == field.name.lower() or self.physical == field.physical_name

    def within(self, other: AssignedRange | None) -> bool:
        """Whether this range is inside the other."""
        return other is not None and other.low <= self.low and self.high <= other.high

    def and_(self, other: AssignedRange) -> AssignedRange:
        """The range that covers both."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


def keep_assigned_values(before: Metadata, after: Metadata) -> Metadata:
    """Return the metadata ``after``, which replaces ``before``, such that no value is assigned again.

    A column of the same name, or the same name in data files, continues after the assigned values, whatever its start
    and step are now. Values of columns that ``after`` does not have are remembered in the property `GIVEN`.

    Raises:
        InvalidProperty: the property is damaged.
        InvalidSchema: an identity column is damaged.

    Example:
        >>> gone = keep_assigned_values(counted_to_ten, without_the_column)
        >>> keep_assigned_values(gone, counted_to_three).schema.field("id").metadata[MARK]
        10
    """
    ranges = [*_ranges_of_table(before), *_ranges_of_table(after)]
    if not ranges:
        return after
    fields = tuple(_continue_after(field, ranges) for field in after.schema)
    marked = after if fields == after.schema.fields else replace(after, schema_string=schema_json(Struct(fields)))
    present = [span for field in fields for span in _ranges_of_field(field)]
    unremembered = _ranges_to_remember(ranges, present)
    remembered = {span.column: span for span in _ranges_in_property(after)}
    return (
        marked
        if all(span.within(remembered.get(name)) for name, span in unremembered.items())
        else _remember(marked, unremembered)
    )


def _ranges_of_table(metadata: Metadata) -> Iterator[AssignedRange]:
    yield from _ranges_in_property(metadata)
    for field in metadata.schema:
        yield from _ranges_of_field(field)


def _ranges_of_field(field: Field) -> Iterator[AssignedRange]:
    if STEP not in field.metadata:
        return
    identity = _identity(field)
    if identity.mark is not None and (identity.mark - identity.start) * identity.step >= 0:
        low, high = sorted((identity.start, identity.mark))
        yield AssignedRange(field.name.lower(), low, high, field.physical_name)


def _continue_after(field: Field, ranges: Iterable[AssignedRange]) -> Field:
    """The column with a mark after all values that were assigned before."""
    if STEP not in field.metadata:
        return field
    identity = _identity(field)
    ends = [span.high if identity.step > 0 else span.low for span in ranges if span.is_of(field)]
    passed = [end for end in ends if (end - identity.next) * identity.step >= 0]
    if not passed:
        return field
    end = max(passed) if identity.step > 0 else min(passed)
    mark = identity.start + (end - identity.start) // identity.step * identity.step
    return replace(field, metadata={**field.metadata, MARK: mark})


def _ranges_to_remember(ranges: Iterable[AssignedRange], present: Iterable[AssignedRange]) -> dict[str, AssignedRange]:
    """One range per name, except those that a present column of that name covers with its mark."""
    covered = {span.column: span for span in present}
    remaining: dict[str, AssignedRange] = {}
    for span in ranges:
        if not span.within(covered.get(span.column)):
            whole = replace(span, physical=None)
            remaining[span.column] = whole.and_(remaining[span.column]) if span.column in remaining else whole
    return dict(sorted(remaining.items()))


def _remember(metadata: Metadata, ranges: Mapping[str, AssignedRange]) -> Metadata:
    spans = {name: [span.low, span.high] for name, span in ranges.items()}
    text = json.dumps(spans, ensure_ascii=False, separators=(",", ":"))
    return replace(metadata, configuration={**metadata.configuration, GIVEN: text})


def _ranges_in_property(metadata: Metadata) -> list[AssignedRange]:
    text = metadata.configuration.get(GIVEN)
    if text is None:
        return []
    try:
        spans = json.loads(text)
        return [AssignedRange(str(name), *_span(values)) for name, values in spans.items()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        reason = "another engine damaged it, so the identity values that the table has assigned are unknown."
        raise InvalidProperty(property=GIVEN, value="of another form", reason=reason) from None


def _span(parsed: Any) -> tuple[int, int]:
    low, high = parsed
    if type(low) is not int or type(high) is not int or not -_LONG <= low <= high < _LONG:
        raise ValueError("two numbers of 64 bits are expected")
    return low, high


# -- watermarks --------------------------------------------------------------------------------------------------------


def is_watermark(before: Metadata, after: Metadata) -> bool:
    """Whether marks of identity columns advanced and nothing else differs. Raises InvalidSchema: a column is
    damaged.
    """
    return before != after and same_but_marks(before, after) and not reassigns_values(before, after)


def same_but_marks(first: Metadata, second: Metadata) -> bool:
    """Whether the metadata differ in marks of identity columns at most, in either direction."""
    return first == second or _without_marks(first) == _without_marks(second)


def reassigns_values(before: Metadata, after: Metadata) -> bool:
    """Whether an identity column in both would assign values again that it had assigned or reserved. Raises
    InvalidSchema: an identity column is damaged.
    """
    later = {column.column: column for column in identities(after.schema)}
    both = [(column, later[column.column]) for column in identities(before.schema) if column.column in later]
    return any((new.next - old.next) * old.step < 0 for old, new in both)


def _without_marks(metadata: Metadata) -> Metadata:
    fields = (replace(f, metadata={k: v for k, v in f.metadata.items() if k != MARK}) for f in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(tuple(fields))))
