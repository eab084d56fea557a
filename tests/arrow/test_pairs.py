"""On pairs of rows the first clause whose condition is TRUE acts, and stores what it computes of both rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anabranch._arrow import pairs
from anabranch._arrow.pairs import NONE, ActingClause, Pairs, Side, compute_clause_values, find_acting_clauses
from anabranch._protocol.expressions.computation import Computation, computation_of_syntax
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.resolving import Scope
from anabranch._protocol.expressions.tree import Column
from anabranch._protocol.merges import NOTHING_MORE
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.unsupported import Unsupported

OWN = pa.table({"id": [1, 2, 3], "v": [10, None, 30]})
GIVEN = pa.table({"v": [5, 40], "w": ["a", None]})
PAIRS = Pairs(
    4, {"target": Side(OWN, np.array([0, 1, 2, 2])), "source": Side(pa.concat_tables([GIVEN]), np.array([0, 0, 0, 1]))}
)
TYPES = {"id": "long", "v": "long", "w": "string"}
EVERY = np.arange(4)


def over_pairs(text: str) -> Computation:
    def column(parts: tuple[str, ...]) -> Column:
        return Column(({"t": "target", "s": "source"}[parts[0]], parts[1]), TYPES[parts[1]])

    return computation_of_syntax(parse_expression(text), Scope(column))


def clause(number: int, condition: str | None = None, **values: str) -> ActingClause:
    known = NOTHING_MORE if condition is None else over_pairs(condition)
    return ActingClause(number, known, bool(values), {name: over_pairs(text) for name, text in values.items()})


def test_a_condition_is_computed_of_the_columns_of_both_rows() -> None:
    assert PAIRS.truths(over_pairs("t.v > s.v"), EVERY).tolist() == [True, False, True, False]
    assert PAIRS.truths(over_pairs("t.v > s.v"), np.array([3, 2])).tolist() == [False, True]
    assert PAIRS.truths(NOTHING_MORE, EVERY).tolist() == [True] * 4


def test_values_of_more_pairs_than_are_looked_at_at_once_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "AT_ONCE", 3)
    assert PAIRS.values(over_pairs("t.id + s.v"), pa.int64(), EVERY).to_pylist() == [6, 7, 8, 43]
    assert PAIRS.values(over_pairs("t.id + s.v"), pa.int64(), np.array([], int)).to_pylist() == []


def test_the_first_clause_whose_condition_is_true_acts() -> None:
    clauses = [clause(2, "t.v > s.v AND t.id = 1"), clause(5, "t.v IS NOT NULL"), clause(6, "s.w = 'b'")]
    assert find_acting_clauses(clauses, PAIRS, EVERY).tolist() == [2, NONE, 5, 5]
    assert find_acting_clauses(clauses, PAIRS, np.array([1, 3])).tolist() == [NONE, NONE, NONE, 5]
    assert find_acting_clauses([clause(0)], PAIRS, EVERY).tolist() == [0] * 4
    assert find_acting_clauses([], PAIRS, EVERY).tolist() == [NONE] * 4


def test_a_condition_is_computed_only_where_no_clause_before_it_acts() -> None:
    fails_for_row_3 = clause(1, "9223372036854775778 + t.v > 0")
    assert find_acting_clauses([clause(0, "t.id = 3"), fails_for_row_3], PAIRS, EVERY).tolist() == [1, NONE, 0, 0]
    with pytest.raises(Unsupported):
        find_acting_clauses([fails_for_row_3], PAIRS, EVERY)


def test_a_clause_stores_its_values_in_the_order_of_the_columns() -> None:
    schema = Struct((Field("id", "long"), Field("w", "string"), Field("v", "long")))
    found = compute_clause_values(clause(0, v="t.v - s.v", id="t.id"), PAIRS, np.array([2, 3]), schema)
    assert {name: column.to_pylist() for name, column in found.items()} == {"id": [3, 3], "v": [25, -10]}
    assert list(found) == ["id", "v"]


def test_values_that_take_too_much_memory_are_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MOST_BYTES", 20)
    with pytest.raises(Unsupported):
        compute_clause_values(clause(0, v="t.v - s.v"), PAIRS, EVERY, Struct((Field("v", "long"),)))
