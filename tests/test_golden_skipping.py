"""The golden tables for data skipping keep the files that Delta's own tests keep, or fewer where more is known."""

from __future__ import annotations

import pytest

import anabranch
from tests.support.golden import kernel_table

ALL_TYPES = "data-skipping-basic-stats-all-types"
ONE_ROW = {
    "as_int": ("0", "-1", "1"),
    "as_long": ("0", "-1", "1"),
    "as_byte": ("0", "-1", "1"),
    "as_short": ("0", "-1", "1"),
    "as_float": ("0", "-1", "1"),
    "as_double": ("0", "-1", "1"),
    "as_string": ("'0'", "'!'", "'1'"),
    "as_date": ("DATE '2000-01-01'", "DATE '1999-01-01'", "DATE '2000-01-02'"),
    "as_timestamp": (
        "TIMESTAMP '2000-01-01 08:00:00'",
        "TIMESTAMP '2000-01-01 07:59:59.999'",
        "TIMESTAMP '2000-01-01 08:00:00.001001'",
    ),
    "as_big_decimal": ("0", "-1", "1"),
}
"""The value of each column, one before and one after it. A timestamp may be 1 ms after its stated maximum."""


def kept(table: str, where: str) -> int:
    path = kernel_table(table)
    found = anabranch.explain(path, where)
    assert found.kept == anabranch.files(path, where).num_rows
    return found.kept


@pytest.mark.slow
@pytest.mark.parametrize("column", ONE_ROW)
@pytest.mark.parametrize(
    "table", [ALL_TYPES, *(f"{ALL_TYPES}-{kind}" for kind in ("checkpoint", "columnmapping-id", "columnmapping-name"))]
)
def test_the_bounds_of_every_type_are_used(table: str, column: str) -> None:
    value, small, big = ONE_ROW[column]
    hits = [f"= {value}", f"> {small}", f">= {value}", f"< {big}", f"<= {value}"]
    misses = [f"= {small}", f"= {big}", f">= {big}", f"< {value}", f"<= {small}"]
    if column not in ("as_float", "as_double"):  # the maximum says nothing of NaN, which is greater
        misses += ["> " + (big if column == "as_timestamp" else value)]
    else:
        misses.remove(f">= {big}")
    assert [kept(table, f"{column} {each}") for each in hits] == [1] * len(hits)
    assert [kept(table, f"{column} {each}") for each in misses] == [0] * len(misses)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("as_short = CAST(0 AS FLOAT)", 1),
        ("as_short = 0.0", 1),
        ("as_short = 1.0", 0),
        ("as_float = 1", 0),
        ("CAST(as_short AS DOUBLE) = 1", 0),
        ("as_int IS NULL", 0),
        ("NOT (as_int IS NOT NULL OR as_long > 0)", 0),
    ],
)
def test_numbers_of_other_types_are_compared(where: str, count: int) -> None:
    assert kept(ALL_TYPES, where) == count


@pytest.mark.parametrize(
    ("where", "count"),
    [("col1 = 1", 1), ("col2 = 1", 2), ("col1 = 1 AND col2 = 1", 1), ("col1 = 0", 3), ("col1 = 1 OR col2 = 1", 2)],
)
def test_files_whose_statistics_hold_fewer_columns_are_kept(where: str, count: int) -> None:
    assert kept("data-skipping-change-stats-collected-across-versions", where) == count


@pytest.mark.parametrize(
    ("where", "count"), [("part > 0", 2), ("id > 0", 2), ("part > 0 AND id > 0", 1), ("part > 0 OR id > 0", 3)]
)
def test_several_columns_are_used_together(where: str, count: int) -> None:
    assert kept("data-skipping-partition-and-data-column", where) == count
