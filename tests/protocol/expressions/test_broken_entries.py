"""Entries that are broken on purpose are caught by the rows of edge values that entries are tested with."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from anabranch._protocol.expressions import resolving
from anabranch._protocol.expressions.intervals import DAY
from anabranch._protocol.expressions.table import TABLE, Site
from tests.protocol.expressions.test_entries_on_spark import ZONES, case, differences
from tests.protocol.expressions.typed_texts import rows

pytestmark = [pytest.mark.spark, pytest.mark.whole]

HASH = TABLE["hash"].kernel


def _of_one(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda arguments, gives, options, site: compute(arguments[0])


def _of_all(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda arguments, gives, options, site: compute(*arguments)


def _later_place(arguments: Any, gives: Any, options: Any, site: Any) -> Any:
    return pc.utf8_slice_codeunits(arguments[0], options[0], options[0] + options[1])


def _half_even(arguments: Any, gives: Any, options: Any, site: Any) -> Any:
    return pc.round(arguments[0].cast(pa.decimal128(38, 2)), options[0], "half_to_even").cast(pa.decimal128(10, 1))


def _cut_off(arguments: Any, gives: Any, options: Any, site: Any) -> Any:
    dividend, divisor = arguments
    wide = pc.divide(dividend.cast(pa.decimal256(30, 12)), divisor.cast(pa.decimal256(1, 0)))
    return pc.round(wide, 6, "towards_zero").cast(pa.decimal128(14, 6))


def _floored_remainder(dividend: Any, divisor: Any) -> Any:
    return pa.array(np.mod(dividend.to_numpy(zero_copy_only=False), divisor.as_py()), from_pandas=True).cast(pa.int64())


def _day_28(days: Any) -> Any:
    first = pc.floor_temporal(days.cast(pa.timestamp("us")), unit="month").cast(pa.date32())
    return pc.add(first.cast(pa.int32()), pa.scalar(27, pa.int32())).cast(pa.date32())


def _cut_product(one: Any, other: Any) -> Any:
    wide = pc.multiply(one.cast(pa.decimal256(38, 10)), other.cast(pa.decimal256(2, 2)))
    return pc.round(wide, 9, "towards_zero").cast(pa.decimal128(38, 9))


def _unsigned_hashes(texts: Any) -> list[int | None]:
    """Murmur3 of texts, whose last bytes are taken without their sign."""
    known = HASH([texts], "integer", (), Site(None, len(texts))).to_pylist()
    pairs = zip(texts.to_pylist(), known, strict=True)
    return [found if text is None or text.isascii() else found ^ 1 for text, found in pairs]


def _whole_seconds(moments: Any) -> Any:
    return pc.divide(moments.cast(pa.int64()), 1_000_000)


BROKEN: dict[str, tuple[str, Callable[..., Any], str]] = {
    "a substring begins one place later": ("substring", _later_place, "substring(s, 1, 2)"),
    "HALF_EVEN for HALF_UP": ("round", _half_even, "round(n, 1)"),
    "small letters beyond those that both fold alike": ("lower", _of_one(pc.utf8_lower), "lower(s)"),
    "great letters one by one": ("upper", _of_one(pc.utf8_upper), "upper(s)"),
    "a word begins behind any sign": ("initcap", _of_one(pc.utf8_title), "initcap(s)"),
    "NaN is not NaN": ("=", _of_all(pc.equal), "d = d"),
    "NaN is less than a number": (">", _of_all(pc.greater), "d > 1.5D"),
    "a remainder has the sign of the divisor": ("%", _of_all(_floored_remainder), "l % 3L"),
    "a remainder has the sign of a divisor that is less than zero": (
        "pmod",
        _of_all(_floored_remainder),
        "pmod(l, -3L)",
    ),
    "what is divided by zero is infinite": ("/", _of_all(pc.divide), "d / e"),
    "a quotient of decimals is cut off": ("/", _cut_off, "n / 7"),
    "a sum wraps": ("+", _of_all(pc.add), "l + m"),
    "a zero has no sign": ("sign", _of_one(pc.sign), "sign(d)"),
    "each month ends on its 28th day": ("last_day", _of_one(_day_28), "last_day(da)"),
    "a week begins on Monday": (
        "dayofweek",
        _of_one(lambda days: pc.day_of_week(days, count_from_zero=False).cast(pa.int32())),
        "dayofweek(da)",
    ),
    "a NULL among several is none of them": (
        "in",
        lambda arguments, *_: pc.is_in(arguments[0], value_set=pa.array([1, None], arguments[0].type)),
        "l IN (1, NULL)",
    ),
    "the greatest of NULL is NULL": ("greatest", _of_all(pc.max_element_wise), "greatest(d, e)"),
    "a line ends a text": (
        "like",
        lambda arguments, gives, options, site: pc.match_substring_regex(arguments[0], "^a.b$"),
        "s LIKE 'a_b'",
    ),
    "a pattern's letters become small, and a text's stay": (
        "ilike",
        lambda arguments, gives, options, site: pc.match_like(arguments[0], options[0].lower()),
        "s ILIKE 'Ab%'",
    ),
    "nothing is found where it is looked for": (
        "locate",
        lambda arguments, gives, options, site: pa.array(
            [each and each.find(options[0], options[1] - 1) + 1 for each in arguments[1].to_pylist()], pa.int32()
        ),
        "locate('', s, 3)",
    ),
    "the last of several equal letters counts": (
        "translate",
        lambda arguments, gives, options, site: pa.array(
            [each and each.translate(str.maketrans(*options)) for each in arguments[0].to_pylist()], pa.string()
        ),
        "translate(s, 'aa', 'xy')",
    ),
    "a letter is its first byte": (
        "ascii",
        lambda arguments, gives, options, site: pa.array(
            [each if each is None else (each.encode() or b"\0")[0] for each in arguments[0].to_pylist()], pa.int32()
        ),
        "ascii(s)",
    ),
    "a month has no zero in front": (
        "date_format",
        lambda arguments, gives, options, site: pc.strftime(arguments[0].cast(pa.timestamp("s")), "%Y-%e"),
        "date_format(da, 'yyyy-dd')",
    ),
    "a point is the end of a line, too": (
        "rlike",
        lambda arguments, gives, options, site: pc.match_substring_regex(arguments[0], "(?s)a.b"),
        "s RLIKE 'a.b'",
    ),
    "only the first part is replaced": (
        "regexp_replace",
        lambda arguments, gives, options, site: pc.replace_substring_regex(
            arguments[0], options[0].regular, options[1], max_replacements=1
        ),
        "regexp_replace(s, '[a-c]', 'x')",
    ),
    "a hash has another seed": (
        "hash",
        lambda arguments, gives, options, site: pc.add(HASH(arguments, gives, options, site), 1),
        "hash(l)",
    ),
    "bytes have no sign": ("hash", _of_one(lambda values: pa.array(_unsigned_hashes(values), pa.int32())), "hash(s)"),
    "an element's place is counted from 1": (
        "element_at",
        lambda arguments, gives, options, site: pc.list_element(arguments[0], 1),
        "element_at(split(concat(s, 'xa'), 'x'), 1)",
    ),
    "the last empty part is left out": (
        "split",
        lambda arguments, gives, options, site: pa.array(
            [None if each is None else each.removesuffix("a").split("a") for each in arguments[0].to_pylist()],
            pa.list_(pa.string()),
        ),
        "element_at(split(s, 'a'), -1)",
    ),
    "a NULL in an array is no element": (
        "array_contains",
        lambda arguments, gives, options, site: pa.array(
            [None if each is None else 1 in each for each in arguments[0].to_pylist()], pa.bool_()
        ),
        "array_contains(ai, 1)",
    ),
    "the month is read as the day": (
        "to_date",
        lambda arguments, gives, options, site: pc.strptime(arguments[0], "%d/%m/%Y", "s").cast(pa.date32()),
        "to_date(date_format(trunc(da, 'MM'), 'dd/MM/yyyy'), 'MM/dd/yyyy')",
    ),
    "a second before the epoch begins at its end": ("unix_seconds", _of_one(_whole_seconds), "unix_seconds(ts)"),
    "a unix timestamp is rounded down": (
        "unix_timestamp",
        lambda arguments, *others: TABLE["unix_seconds"].kernel(arguments, *others),
        "unix_timestamp(ts)",
    ),
    "milliseconds are taken for microseconds": (
        "timestamp_millis",
        lambda arguments, *others: TABLE["timestamp_micros"].kernel(arguments, *others),
        "timestamp_millis(i)",
    ),
    "days are counted from another one": (
        "unix_date",
        _of_one(lambda days: pc.add(days.cast(pa.int32()), 719162)),
        "unix_date(da)",
    ),
    "a product of many digits is cut off": ("*", _of_all(_cut_product), "o * 0.15"),
}


@pytest.mark.classic("sessions of several settings")
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_entry_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    name, kernel, text = BROKEN[fault]
    broken = replace(TABLE[name], kernel=kernel)
    assert differences_of(spark, tmp_path, text, lambda: monkeypatch.setitem(TABLE, name, broken)) == (0, 1)


def _rounded_twice(amounts: Any) -> Any:
    """Doubles of the digits, times a hundredth that is no exact double."""
    return pa.array([each if each is None else int(each * 100) * 0.01 for each in amounts.to_pylist()], pa.float64())


UNNAMED: dict[str, tuple[str, Callable[..., Any], str]] = {
    "a decimal's double is rounded twice": ("CAST", _of_one(_rounded_twice), "CAST(q AS DOUBLE)"),
    "a cast to seconds is rounded towards zero": ("CAST", _of_one(_whole_seconds), "CAST(ts AS BIGINT)"),
    "a month has thirty days": (
        "MOVE",
        _of_one(lambda moments: pc.add(moments.cast(pa.int64()), 30 * DAY).cast(moments.type)),
        "dateadd(MONTH, 1, CASE WHEN year(ts) < 9999 THEN ts END)",
    ),
    "the ends of quarters are counted": (
        "DIFFERENCE",
        _of_all(pc.quarters_between),
        "timestampdiff(QUARTER, ts, TIMESTAMP_LTZ '2020-03-29 01:00:00 UTC')",
    ),
}


@pytest.mark.classic("sessions of several settings")
@pytest.mark.parametrize("fault", UNNAMED)
def test_a_broken_entry_without_a_name_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    name, kernel, text = UNNAMED[fault]
    broken = replace(getattr(resolving, name), kernel=kernel)
    assert differences_of(spark, tmp_path, text, lambda: monkeypatch.setattr(resolving, name, broken)) == (0, 1)


def differences_of(spark: SparkSession, folder: Path, text: str, break_entry: Callable[[], None]) -> tuple[int, int]:
    """How many there are of a text before and after its entry is broken."""
    table, found = rows(random.Random(1), 150), []
    (batch,) = table.combine_chunks().to_batches()
    for name in ("right", "wrong"):
        each = case(text, batch, ZONES["UTC"])
        assert each is not None
        (folder / name).mkdir()
        found.append(len(list(differences(spark, [each], table, folder / name))))
        if name == "right":
            break_entry()
    return found[0], found[1]
