"""Identity columns: numbers that the table gives, each one once.

Knows PROTOCOL.md, section "Identity Columns". Pure. Guarantee: marks only move on, in the direction of the step, so
that values which were reserved once are never given again; and whoever writes metadata by way of `values_kept`
remembers the values of columns that go, so that a column of that name which comes back goes on behind them.

A metadata action that differs from an earlier one only in these marks, and moves them on, is a *watermark*: it changes
nothing that another writer could have relied on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import InvalidProperty, InvalidSchema
from anabranch.protocol.actions import Metadata
from anabranch.protocol.schema.types import Field, Struct, schema_json

START, STEP = "delta.identity.start", "delta.identity.step"
MARK, EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
GIVEN = "anabranch.identityValuesGiven"
"""The table property that remembers values of identity columns which the schema does not speak of any more."""
_LONG = 1 << 63


@dataclass(frozen=True)
class Identity:
    """One identity column.

    Attributes:
        column: its name.
        start, step: its first value and the difference to the next.
        mark: the last value that was reserved, None before the first.
        explicit: whether a user may give values of his own.
    """

    column: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    @property
    def next(self) -> int:
        """The first value that nobody has reserved."""
        return self.start if self.mark is None else self.mark + self.step

    def after(self, count: int) -> int:
        """The mark once ``count`` more values are reserved.

        Raises:
            InvalidSchema: there are not so many left that fit 64 bits.
        """
        last = self.next + (count - 1) * self.step
        if not -_LONG <= last < _LONG:
            raise InvalidSchema(reason=f"the identity column {self.column} has no {count} values left.")
        return last

    def reaching(self, value: int) -> int:
        """The mark that lies at a value or behind it, in the direction of the step.

        Raises:
            InvalidSchema: none of 64 bits does.
        """
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
    """What the metadata of a new identity column says.

    Raises:
        InvalidSchema: the step is 0, or a number does not fit 64 bits.
    """
    if step == 0 or not all(-_LONG <= number < _LONG for number in (start, step)):
        raise InvalidSchema(reason=f"an identity column cannot start at {start} and go on in steps of {step}.")
    return {START: start, STEP: step, EXPLICIT: explicit}


def with_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with these marks where they lie farther on than its own."""
    fields = tuple(_marked(each, marks.get(each.name)) for each in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(fields)))


def marks_of(schema: Struct) -> dict[str, int]:
    """The marks of all identity columns that have one, to be kept by whoever writes metadata."""
    return {each.column: each.mark for each in identities(schema) if each.mark is not None}


def _marked(field: Field, mark: int | None) -> Field:
    if mark is None or STEP not in field.metadata:
        return field
    known = _identity(field)
    before = known.start - known.step if known.mark is None else known.mark
    farther = (max if known.step > 0 else min)(before, mark)
    return field if farther == before else replace(field, metadata={**field.metadata, MARK: farther})


# -- values of columns that went --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """Values that a table gave to a column: none of them lies below ``low`` or above ``high``.

    Attributes:
        column: its name, in lower case.
        physical: what its data files call it; None where only the name is remembered.
    """

    column: str
    low: int
    high: int
    physical: str | None = None

    def is_of(self, field: Field) -> bool:
        """Whether a column bears the same name, here or in data files."""
        return self.column == field.name.lower() or self.physical == field.physical_name

    def within(self, other: Given | None) -> bool:
        """Whether all of it lies among the other's values."""
        return other is not None and other.low <= self.low and self.high <= other.high

    def and_(self, other: Given) -> Given:
        """Both."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


def values_kept(before: Metadata, after: Metadata) -> Metadata:
    """What is to stand in the place of ``before``, so that it gives no value again.

    A column of the same name, or the same name in data files, goes on behind the values that were given, whatever its
    start and its step are now. What ``after`` has no such column for is remembered in its property `GIVEN`.

    Raises:
        InvalidProperty: what is remembered is damaged.
        InvalidSchema: an identity column is.

    Example:
        >>> gone = values_kept(counted_to_ten, without_the_column)
        >>> values_kept(gone, counted_to_three).schema.field("id").metadata[MARK]
        10
    """
    known = [*_given(before), *_given(after)]
    if not known:
        return after
    fields = tuple(_beyond(each, known) for each in after.schema)
    marked = after if fields == after.schema.fields else replace(after, schema_string=schema_json(Struct(fields)))
    spoken_of = [each for field in fields for each in _given_by(field)]
    left = _remembered(known, spoken_of)
    said = {each.column: each for each in _recalled(after)}
    return marked if all(each.within(said.get(name)) for name, each in left.items()) else _remembering(marked, left)


def _given(metadata: Metadata) -> Iterator[Given]:
    yield from _recalled(metadata)
    for field in metadata.schema:
        yield from _given_by(field)


def _given_by(field: Field) -> Iterator[Given]:
    if STEP not in field.metadata:
        return
    known = _identity(field)
    if known.mark is not None and (known.mark - known.start) * known.step >= 0:
        low, high = sorted((known.start, known.mark))
        yield Given(field.name.lower(), low, high, field.physical_name)


def _beyond(field: Field, known: Iterable[Given]) -> Field:
    """The column, with a mark behind which none of its values was given before."""
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


def _remembered(known: Iterable[Given], spoken_of: Iterable[Given]) -> dict[str, Given]:
    """One for each name, but for what lies within the values that a column of that name has given by its mark."""
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


def _recalled(metadata: Metadata) -> list[Given]:
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
    """Whether marks of identity columns moved on, each in the direction of its step, and nothing else differs.

    Raises:
        InvalidSchema: an identity column is damaged.
    """
    return before != after and _unmarked(before) == _unmarked(after) and not goes_back(before, after)


def goes_back(before: Metadata, after: Metadata) -> bool:
    """Whether an identity column that both have would give values again which it had given or reserved before.

    Raises:
        InvalidSchema: an identity column is damaged.
    """
    later = {each.column: each for each in identities(after.schema)}
    both = [(each, later[each.column]) for each in identities(before.schema) if each.column in later]
    return any((new.next - old.next) * old.step < 0 for old, new in both)


def _unmarked(metadata: Metadata) -> Metadata:
    fields = (replace(f, metadata={k: v for k, v in f.metadata.items() if k != MARK}) for f in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(tuple(fields))))
