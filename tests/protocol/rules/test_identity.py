"""Identity columns give each number once: marks only move on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.actions import Metadata
from anabranch._protocol.rules.identity import (
    MARK,
    START,
    STEP,
    Identity,
    identities,
    identity_metadata,
    is_watermark,
    marks_of,
    same_but_marks,
    with_marks,
)
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch.errors import InvalidSchema

steps = st.integers(-1000, 1000).filter(bool)


def metadata(*fields: Field, **more: object) -> Metadata:
    return replace(Metadata(id="m", schema_string=schema_json(Struct(fields))), **more)  # type: ignore[arg-type]


def column(start: int = 1, step: int = 1, mark: int | None = None, name: str = "n") -> Field:
    marked = {} if mark is None else {MARK: mark}
    return Field(name, "long", True, {**identity_metadata(start, step, explicit=False), **marked})


@given(st.integers(-(10**6), 10**6), steps, st.lists(st.integers(1, 50), max_size=6))
def test_ranges_reserved_one_after_the_other_share_no_value(start: int, step: int, counts: list[int]) -> None:
    known, given_out = metadata(column(start, step)), []
    for count in counts:
        (each,) = identities(known.schema)
        given_out += [each.next + i * step for i in range(count)]
        assert given_out[-1] == each.after(count)
        known = with_marks(known, {"n": each.after(count)})
    assert len(set(given_out)) == len(given_out) == sum(counts)
    assert not given_out or (given_out[0] == start and given_out == sorted(given_out, reverse=step < 0))


@given(steps, st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_of_several_marks_the_farther_one_stays_in_any_order(step: int, marks: list[int]) -> None:
    known = metadata(column(0, step))
    for mark in marks:
        known = with_marks(known, {"n": mark})
    before_the_start = -step
    farthest = (max if step > 0 else min)(before_the_start, *marks)
    assert marks_of(known.schema) == ({} if farthest == before_the_start else {"n": farthest})


def test_a_mark_changes_nothing_else() -> None:
    before = metadata(column(), Field("x", "string", False, {"comment": "kept"}), configuration={"a": "b"})
    after = with_marks(before, {"n": 7, "x": 9, "nowhere": 1})
    assert is_watermark(before, after)
    assert not is_watermark(after, before)
    assert same_but_marks(before, after)
    assert same_but_marks(after, before)
    assert after.schema.field("x") == before.schema.field("x")
    assert after.schema.field("n").metadata == {**before.schema.field("n").metadata, MARK: 7}


@pytest.mark.parametrize(
    "after",
    [
        metadata(column(2)),
        metadata(column(1, 2)),
        metadata(column(), Field("y", "long")),
        metadata(replace(column(), nullable=False)),
        metadata(Field("n", "long")),
        metadata(column(), configuration={"delta.appendOnly": "true"}),
        metadata(column(), id="another"),
        metadata(column(), partition_columns=("n",)),
    ],
)
def test_anything_else_is_no_watermark(after: Metadata) -> None:
    assert not is_watermark(metadata(column(mark=5)), after)
    assert not same_but_marks(metadata(column(mark=5)), after)


def test_the_first_value_is_the_start_and_then_the_steps_follow() -> None:
    assert Identity("n", 10, -3, None, False).next == 10
    assert Identity("n", 10, -3, None, False).after(3) == 4
    assert Identity("n", 10, -3, 4, False).next == 1


def test_numbers_end_with_64_bits() -> None:
    last = Identity("n", (1 << 63) - 2, 1, None, False)
    assert last.after(2) == (1 << 63) - 1
    with pytest.raises(InvalidSchema, match="no 3 values left"):
        last.after(3)


@pytest.mark.parametrize(("start", "step"), [(1, 0), (1 << 63, 1), (0, -(1 << 63) - 1)])
def test_what_cannot_be_counted_is_refused(start: int, step: int) -> None:
    with pytest.raises(InvalidSchema):
        identity_metadata(start, step, explicit=True)


def test_a_damaged_identity_is_refused_by_its_column() -> None:
    with pytest.raises(InvalidSchema, match="column n is damaged"):
        identities(Struct((Field("n", "long", True, {STEP: "x", START: 1}),)))
