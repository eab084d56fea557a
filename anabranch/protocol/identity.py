"""Identity columns: numbers that the table gives, each one once.

Knows PROTOCOL.md, section "Identity Columns". Pure. Guarantee: marks only move on, in the direction of the step, so
that values which were reserved once are never given again.

A metadata action that differs from an earlier one only in these marks is a *watermark*: it changes nothing that another
writer could have relied on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import InvalidSchema
from anabranch.protocol.actions import Metadata
from anabranch.protocol.schema import Field, Struct, schema_json

START, STEP = "delta.identity.start", "delta.identity.step"
MARK, EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
_LONG = 1 << 63


@dataclass(frozen=True)
class Identity:
    """One identity column.

    Attributes:
        column: its name. start, step: its first value and the difference to the next. mark: the last value that was
        reserved, None before the first. explicit: whether a user may give values of his own.
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
    except (KeyError, TypeError, ValueError) as error:
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


def marks_for(schema: Struct, reserved: Struct) -> dict[str, int]:
    """The marks of ``reserved`` by the names that the same columns have in ``schema``, where some may be renamed."""
    names = {each.physical_name: each.name for each in schema}
    marks = marks_of(reserved).items()
    return {names.get(reserved.field(column).physical_name, column): mark for column, mark in marks}


def _marked(field: Field, mark: int | None) -> Field:
    if mark is None or STEP not in field.metadata:
        return field
    known = _identity(field)
    before = known.start - known.step if known.mark is None else known.mark
    farther = (max if known.step > 0 else min)(before, mark)
    return field if farther == before else replace(field, metadata={**field.metadata, MARK: farther})


def is_watermark(before: Metadata, after: Metadata) -> bool:
    """Whether marks of identity columns differ, and nothing else."""
    return before != after and _unmarked(before) == _unmarked(after)


def _unmarked(metadata: Metadata) -> Metadata:
    fields = (replace(f, metadata={k: v for k, v in f.metadata.items() if k != MARK}) for f in metadata.schema)
    return replace(metadata, schema_string=schema_json(Struct(tuple(fields))))
