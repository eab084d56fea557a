"""SQL that means one thing only is computed without a session; all other is left to Spark."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.expressions.resolving import altered_settings
from anabranch._protocol.expressions.tree import Column, names_of, with_columns
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import VOID, Field, Struct, arrow_type, to_arrow
from anabranch._protocol.unsupported import Unsupported
from tests.protocol.expressions.typed_texts import COLUMNS, Texts, rows
from tests.support.tiers import examples

EXACT = Context(prec=200)
TYPES = {
    **{"id": "long", "s": "string", "d": "date", "t": "timestamp", "b": "boolean", "x": "double", "f": "float"},
    **{"m": "decimal(5,2)", "w": "decimal(38,0)", "fine": "decimal(38,10)", "n": "timestamp_ntz"},
}
SCHEMA = Struct(tuple(Field(name, kind) for name, kind in TYPES.items()))
LOCAL = dt.datetime(2024, 5, 1, 12)
MOMENT = LOCAL.replace(tzinfo=dt.UTC)
LONG = "-1234567890123456789012345678.9123456789"


def truth(text: str, row: dict[str, Any]) -> bool | None:
    found = computation_over(text, SCHEMA, dt.UTC)
    assert found.reason is None
    (value,) = found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist()
    return value  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("id > 0", {"id": 1}, True),
        ("id > 0", {"id": None}, None),
        ("ID IS NOT NULL AND (s = 'x' OR s LIKE 'a%')", {"id": 1, "s": "ab"}, True),
        ("id BETWEEN 1 AND 3", {"id": 4}, False),
        ("id IN (1, 2)", {"id": 2}, True),
        ("id IN (1, NULL)", {"id": 2}, None),
        ("NOT b = true", {"b": False}, True),
        ("b", {"b": None}, None),
        ("d >= DATE '2024-01-01'", {"d": dt.date(2024, 1, 1)}, True),
        ("d >= '2024-01-01'", {"d": dt.date(2023, 1, 1)}, False),
        ("x < 0.5", {"x": 0.25}, True),
        ("m > 1.25", {"m": Decimal("1.26")}, True),
        ("id > 0.5", {"id": 1}, True),
        ("t > TIMESTAMP '2024-01-01 00:00:00 UTC'", {"t": dt.datetime(2025, 1, 1, tzinfo=dt.UTC)}, True),
        (f"fine = {LONG}", {"fine": Decimal(LONG)}, True),
        ("fine < -1234567890123456789012345678.5", {"fine": Decimal("-1234567890123456789012345678.7")}, True),
        ("true", {}, True),
        ("'2024-05-01 12:00:00' IN (t) AND '5' IN (id)", {"t": MOMENT, "id": 5}, True),
        ("id = '5' OR id IN ('7', '-8')", {"id": -8}, True),
        ("t >= DATE '2024-01-01' AND n > d", {"t": MOMENT, "n": LOCAL, "d": dt.date(2024, 5, 1)}, True),
        ("t BETWEEN '2024-05-01' AND '2024-05-01 12:00:00'", {"t": MOMENT}, True),
        ("n = '2024-05-01T12:00:00.000'", {"n": LOCAL}, True),
        ("t < TIMESTAMP '2024-05-08 12:00:00Z' - INTERVAL 7 DAYS", {"t": MOMENT}, False),
        ("n + INTERVAL '-2' MONTH = '2024-03-01 12:00:00'", {"n": LOCAL}, True),
        ("d - 30 = '2024-01-31' AND d + INTERVAL 1 YEAR = DATE '2025-03-01'", {"d": dt.date(2024, 3, 1)}, True),
        ("length(s) > 2 AND id + 1 > 2 AND year(d) = 2024", {"s": "abc", "id": 2, "d": dt.date(2024, 5, 5)}, True),
        ("x = x", {"x": float("nan")}, True),
        ("x <> 0 AND 1 / x > 0", {"x": 0.0}, False),
        ("CASE WHEN id = 0 THEN 0 ELSE 10 div id END = 0", {"id": 0}, True),
    ],
)
def test_a_condition_is_computed_row_by_row(text: str, row: dict[str, Any], expected: bool | None) -> None:
    assert truth(text, row) is expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "NULL - NULL",
            "s > 5",
            "id = '05'",
            f"id = '{2**63}'",
            "id IN ('5', 6)",
            "t IN ('2024-01-01')",
            "id > 0 AND rand() < 1",
            's = "x"',
            "s = 'a\\n'",
        ),
        *(
            "d > '2024-1-1'",
            "d > '2024-02-30'",
            "t > '2024-01'",
            "t > '2024-01-01 00:00:00 +1'",
            "n > '2024-01-01 00:00:00Z'",
            "t > TIMESTAMP '2024-01-01 00:00:00'",
            "nope > 1",
        ),
        *("d > current_date()", "id IN (1, 'x')", "w > 0.5", "f > 16777217", f"m IN ({10**30}.5, 0.0000000001)"),
        *("x < 1e400", "x BETWEEN 0 AND 1e400", f"x < {10**39}", f"x < {10**39}.5", f"x > 0.{'0' * 38}1", "f + 1 > 2"),
        *(
            "'2024-01-01' IN (t)",
            "'2024-01-01T00:00:00' IN (n, n)",
            "d IN ('2024-01-01', t)",
            "round(x, 2L) > 1",
            "d + INTERVAL 0 HOURS > d",
            "d + INTERVAL '1 day -24 hours' > d",
            "d + INTERVAL 1 HOUR > d",
            "t + INTERVAL '1.5' SECOND > t",
            "d - d > INTERVAL 1 DAY",
            "coalesce(d, '2024-01-01') > d",
        ),
        *(
            "t > t - INTERVAL 1 YEAR 2 DAYS",
            "t > t - INTERVAL (id) DAYS",
            "d > d + INTERVAL 999999999 WEEKS",
            "+s = '1.5'",
            "id = 5 {# foo #}",
            "s = +'1.5'",
            "NOT +b",
        ),
        *("t > CAST('2024-01-01 00:00:00 UTC' AS TIMESTAMP)", "t > '2024-01-01 00:00:00Z'::timestamp", "id >", ""),
        *(
            "id BETWEEN 1 AND +s",
            "id > 0; id < 1",
            "s RLIKE '(?i)a'",
            "s LIKE 'a' ESCAPE '!'",
            "s LIKE s",
            "fine / m > 1",
            "m / fine > 1",
            "m = 1.5L",
            "x < 1e400D",
            "t > TIMESTAMP'2020-01-01Z'",
        ),
    ],
)
def test_whatever_spark_might_read_in_another_way_is_not_computed(text: str) -> None:
    assert computation_over(text, SCHEMA).reason


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("id + 1 > 0", {"id": 2**63 - 1}),
        ("1 / x > 0", {"x": 0.0}),
        ("id % 0 = 1", {"id": 1}),
        ("cast(id AS tinyint) = 1", {"id": 300}),
        ("cast(s AS int) = 1", {"s": "one"}),
        ("cast(x AS int) = 1", {"x": float("nan")}),
        ("upper(s) = 'I'", {"s": "\u0130"}),
        ("initcap(s) = 'I'", {"s": "\u0130"}),
        ("initcap(s) = 'Ss'", {"s": "ß"}),
        ("initcap(s) = s", {"s": "\u03f4"}),
        ("date_add(d, 1) > d", {"d": dt.date(9999, 12, 31)}),
    ],
)
def test_what_is_an_error_or_null_by_a_setting_is_left_to_spark(text: str, row: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        truth(text, row)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("o'neil mARY-ann", "O'neil Mary-ann"), ("a\tb\u00a0c\nd", "A\tb\u00a0c\nd"), ("1ab 2", "1ab 2")),
        *(("  two  words ", "  Two  Words "), ("ǆ aß éÉ", "ǅ Aß Éé"), ("", ""), (None, None)),
    ],
)
def test_a_word_begins_behind_a_blank_alone(text: str | None, expected: str | None) -> None:
    batch = pa.RecordBatch.from_pylist([{"s": text}], to_arrow(SCHEMA))
    assert computation_over("initcap(s)", SCHEMA).values(batch).to_pylist() == [expected]


def test_a_null_struct_has_members_that_are_null() -> None:
    schema = Struct((Field("p", Struct((Field("x", "long"),))),))
    rows = pa.RecordBatch.from_pylist([{"p": {"x": 1}}, {"p": None}, {"p": {"x": None}}], to_arrow(schema))
    assert computation_over("p.x IS NULL", schema).values(rows).to_pylist() == [False, True, True]


def test_any_rows_have_a_value_each_and_none_depends_on_the_others() -> None:
    draw, compared = random.Random(3), 0
    texts = Texts(draw)
    for _ in range(examples(3000, 300)):
        (batch,) = rows(draw, 6).combine_chunks().to_batches()
        found = computation_over(texts.any(draw.randint(1, 4)), COLUMNS, dt.UTC)
        if found.reason is not None or found.tree.type == VOID:
            continue
        with contextlib.suppress(Unsupported):
            assert len(found.values(batch.slice(0, 0))) == 0
            together = found.values(batch)
            alone = [found.values(batch.slice(i, 1)) for i in range(len(batch))]
            assert repr(together.to_pylist()) == repr([value for each in alone for value in each.to_pylist()])
            assert together.type == arrow_type(found.tree.type or VOID)
            compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    "text",
    [
        *("length(repeat(s, 2147483647)) > 0", "length(lpad(s, 2147483647, 'x')) > 0", "rpad(s, 100000000) = s"),
        f"replace(repeat(s, 1000000), 'e', '{'x' * 50}') = s",
    ],
)
def test_texts_that_become_too_long_are_left_to_spark(text: str) -> None:
    with pytest.raises(Unsupported):
        truth(text, {"s": "some text"})


def test_chains_in_brackets_end_without_a_stack_overflow() -> None:
    inner = "id"
    for _ in range(95):
        inner = f"({inner} + {' + '.join(['id'] * 140)})"
    found = computation_over(f"{inner} > 0", SCHEMA)
    if found.reason is None:
        with contextlib.suppress(Unsupported):
            found.values(pa.RecordBatch.from_pylist([{"id": 1}], to_arrow(SCHEMA)))


def test_a_decimal_becomes_another_by_rounding_half_up_or_is_left_to_spark() -> None:
    """Whatever the digits of both types: Arrow's own cast gives another number beyond 128 bits, and says nothing."""
    draw, made = random.Random(4), 0
    for _ in range(examples(4000, 500)):
        p, q = (draw.choice([38, draw.randint(1, 38)]) for _ in range(2))
        s, t = draw.randint(0, p), draw.randint(0, q)
        kind, schema = pa.decimal128(p, s), Struct((Field("m", f"decimal({p},{s})"),))
        value = Decimal(draw.choice([0, 1, 10**p - 1, draw.randrange(10**p)]) * draw.choice([1, -1])).scaleb(-s, EXACT)
        found = computation_over(f"CAST(m AS DECIMAL({q}, {t}))", schema)
        with contextlib.suppress(Unsupported):
            (given,) = found.values(pa.RecordBatch.from_arrays([pa.array([value], kind)], ["m"])).to_pylist()
            assert given == value.quantize(Decimal(1).scaleb(-t), ROUND_HALF_UP, EXACT)
            assert given.copy_abs() < Decimal(10) ** (q - t)
            made += 1
    assert made > 100


@pytest.mark.parametrize("sign", ["/", "%"])
def test_decimals_are_divided_as_spark_divides_them(sign: str) -> None:
    """Rounded to 38 digits behind the point, and then to those of the result; what is left has the dividend's sign."""
    draw, made = random.Random(5), 0
    for _ in range(examples(4000, 500)):
        (p, s), (q, t) = [(digits, draw.randint(0, digits)) for digits in (draw.randint(1, 20), draw.randint(1, 14))]
        schema = Struct((Field("m", f"decimal({p},{s})"), Field("w", f"decimal({q},{t})")))
        one, other = (
            Decimal(draw.choice([1, 10**n - 1, draw.randrange(1, 10**n)]) * draw.choice([1, -1])).scaleb(-k, EXACT)
            for n, k in ((p, s), (q, t))
        )
        found = computation_over(f"m {sign} w", schema)
        with contextlib.suppress(Unsupported):
            row = [pa.array([one], pa.decimal128(p, s)), pa.array([other], pa.decimal128(q, t))]
            (given,) = found.values(pa.RecordBatch.from_arrays(row, ["m", "w"])).to_pylist()
            assert given == (_quotient(one, other, max(6, s + q + 1)) if sign == "/" else EXACT.remainder(one, other))
            made += 1
    assert made > 100


def _quotient(one: Decimal, other: Decimal, scale: int) -> Decimal:
    found = EXACT.divide(one, other).quantize(Decimal(1).scaleb(-38), ROUND_HALF_UP, EXACT)
    return found.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)


def test_a_decimal_becomes_the_nearest_double_whatever_its_digits() -> None:
    """Below 2 to the power of 53, beyond it, half-way between two doubles, beside NULLs, and in a part of rows."""
    draw, made = random.Random(6), 0
    for _ in range(examples(2000, 200)):
        p = draw.choice([15, 16, 18, 38, draw.randint(1, 38)])
        s, half = draw.randint(0, p), draw.randrange(2**53, 2**54) << draw.randint(0, 70)
        edges = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63, 2**64 + 5, half, half + 1, 10**p - 1, draw.randrange(10**p)]
        values = [None, *(Decimal((-1) ** k * each).scaleb(-s, EXACT) for k, each in enumerate(edges) if each < 10**p)]
        draw.shuffle(values)
        found = computation_over("CAST(m AS DOUBLE)", Struct((Field("m", f"decimal({p},{s})"),)))
        batch = pa.RecordBatch.from_arrays([pa.array(values, pa.decimal128(p, s))], ["m"])
        nearest = [None if each is None else int(each.scaleb(s, EXACT)) / 10**s for each in values]
        for part in (slice(0, None), slice(2, None), slice(0, 1)):
            assert found.values(batch.slice(part.start, part.stop)).to_pylist() == nearest[part]
            made += 1
    assert made >= 600


def test_a_decimal_of_many_digits_meets_a_double() -> None:
    schema = Struct((Field("amount", "decimal(18,2)"), Field("discount", "double")))
    row = {"amount": Decimal("19.99"), "discount": 0.25}
    found = computation_over("amount * discount", schema)
    assert found.values(pa.RecordBatch.from_pylist([row], to_arrow(schema))).to_pylist() == [19.99 * 0.25]


def test_a_zero_with_a_minus_is_a_decimal_without_one_and_a_double_with_it() -> None:
    values = [computation_over(text, Struct()).value()[0].as_py() for text in ("-0.0", "CAST(-0.0 AS DOUBLE)", "-0.0D")]
    assert list(map(str, values)) == ["0.0", "0.0", "-0.0"]


def test_the_columns_of_a_tree_can_be_others() -> None:
    tree = computation_over("id + 1 > 5 AND soundex(s) = 'x'", SCHEMA).tree
    found = with_columns(tree, lambda column: Column(("t", str(column.name)), column.type))
    assert names_of(found) == {("t", "id"), ("t", "s")}
    assert with_columns(found, lambda column: Column(column.name[1], column.type)) == tree


@pytest.mark.parametrize("places", range(6))
def test_a_double_is_rounded_by_its_shortest_decimal(places: int) -> None:
    """As by Java, which rounds what it would print."""
    draw = random.Random(places)
    ties = [(2 * draw.randrange(10**6) + 1) / (2 * 10**places) for _ in range(300)]
    others = [draw.uniform(-1, 1) * 10 ** draw.uniform(-4, 13 - places) for _ in range(300)]
    beside = [near for tie in ties for near in (math.nextafter(tie, 0), math.nextafter(tie, math.inf))]
    values = [*ties, *others, *beside, *(-tie for tie in ties), -0.0, 0.0, math.inf, -1e300, 2.0**52 + 1]
    batch = pa.RecordBatch.from_pylist([{"x": value} for value in values], to_arrow(SCHEMA))
    for name, mode in (("round", ROUND_HALF_UP), ("bround", ROUND_HALF_EVEN)):
        found = computation_over(f"{name}(x, {places})", SCHEMA).values(batch).to_pylist()
        unit = Decimal(1).scaleb(-places)
        expected = [
            value if abs(value) > 1e15 else float(Decimal(repr(value)).quantize(unit, mode, EXACT)) + 0.0
            for value in values
        ]
        assert [*map(repr, found)] == [*map(repr, expected)]
    small = batch.filter(pc.less(pc.abs(batch["x"]), 1e12))
    found = computation_over(f"CAST(x AS DECIMAL(38, {places}))", SCHEMA).values(small).to_pylist()
    assert found == [Decimal(repr(x)).quantize(unit, ROUND_HALF_UP, EXACT) for x in small["x"].to_pylist()]


@pytest.mark.parametrize("text", ["round(x, 2)", "CAST(x AS DECIMAL(20, 2))"])
def test_a_double_of_too_many_digits_is_not_rounded(text: str) -> None:
    with pytest.raises(Unsupported):
        computation_over(text, SCHEMA).values(pa.RecordBatch.from_pylist([{"x": 1e13 + 0.5}], to_arrow(SCHEMA)))


def test_a_number_that_is_none_is_no_decimal() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(Unsupported):
            computation_over("CAST(x AS DECIMAL(20, 2))", SCHEMA).values(
                pa.RecordBatch.from_pylist([{"x": value}], to_arrow(SCHEMA))
            )


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("CAST(s AS DOUBLE)", {"s": "-1.5e3"}, -1500.0),
        ("CAST(s AS DECIMAL(5, 2))", {"s": "-12.5"}, Decimal("-12.50")),
        ("CAST(t AS STRING)", {"t": MOMENT.replace(microsecond=500)}, "2024-05-01 12:00:00.0005"),
        ("CAST(n AS STRING)", {"n": LOCAL}, "2024-05-01 12:00:00"),
        ("CAST(s AS TIMESTAMP_LTZ)", {"s": "2024-05-01T12:00:00"}, MOMENT),
    ],
)
def test_texts_are_cast(text: str, row: dict[str, Any], expected: Any) -> None:
    assert computation_over(text, SCHEMA, dt.UTC).values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA)))[
        0
    ].as_py() == (expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("CAST(s AS DOUBLE)", each) for each in ("1.", ".5", " 1", "NaN", "1e999", "0x1p3", "1d")),
        *(("CAST(s AS DECIMAL(5, 2))", each) for each in ("1234", "1.234", "1e2", "+1")),
        *(("CAST(s AS TIMESTAMP_LTZ)", each) for each in ("2024-02-30", "2024-01-01 24:00:00", "2024", "0000-01-01")),
    ],
)
def test_other_texts_are_not(text: str, value: str) -> None:
    with pytest.raises(Unsupported):
        computation_over(text, SCHEMA, dt.UTC).values(pa.RecordBatch.from_pylist([{"s": value}], to_arrow(SCHEMA)))


def test_a_member_is_found_by_its_whole_name() -> None:
    """Arrow would take one that begins with a dot for a path."""
    kind = pa.struct({".x": pa.int64(), "x": pa.int64()})
    schema = Struct((Field("s", Struct((Field(".x", "long"), Field("x", "long")))),))
    rows = pa.record_batch({"s": pa.array([{".x": 1, "x": 2}], kind)})
    assert computation_over("s.`.x` * 10 + s.x", schema).values(rows).to_pylist() == [12]


@pytest.mark.parametrize("text", ["m / CAST(3 AS INT)", "m / int(3)", "m / '3'::int", "m / -(3)"])
def test_a_whole_number_that_is_cast_or_negated_is_no_literal_to_decimals(text: str) -> None:
    assert computation_over(text, SCHEMA).tree.type == "decimal(16,13)"
    assert computation_over("m / 3", SCHEMA).tree.type == "decimal(9,6)"


@pytest.mark.parametrize(("length", "is_known"), [("char(3)", False), ("varchar(3)", True)])
def test_of_a_char_inside_a_struct_spark_says_what_it_is(length: str, is_known: bool) -> None:
    """Where another writer has not padded it, it is padded as it is read."""
    members = Struct((Field("c", "string"), Field("n", "long")))
    column = Field("o", members, metadata={LENGTH: f"struct<c:{length},n:bigint>"})
    for text in ("o.c = 'x'", "length(o.c) > 1", "concat(o.c, '|')"):
        assert (computation_over(text, Struct((column,))).reason is None) is is_known
    assert computation_over("o.n > 1", Struct((column,))).reason is None


@pytest.mark.parametrize(
    ("setting", "text", "plain"),
    [
        ("spark.sql.legacy.typeCoercion.datetimeToString.enabled", "d = '2024-01-01'", "d = DATE '2024-01-01'"),
        ("spark.sql.legacy.literal.pickMinimumPrecision", "m / 3 > 1.5", "m / 3.0 > id + 1"),
        ("spark.sql.legacy.literal.pickMinimumPrecision", "pmod(m, 3) > 1.5", "pmod(m, 3.0) > 1.5"),
        ("spark.sql.legacy.literal.pickMinimumPrecision", "7 % m = 0", "CASE WHEN m IN (1, 2) THEN m ELSE 1 END = 1"),
    ],
)
def test_what_a_setting_alters_is_left_to_spark(setting: str, text: str, plain: str) -> None:
    altered = altered_settings({setting: "true" if setting.endswith("enabled") else "false"})
    assert altered == {setting}
    assert computation_over(text, SCHEMA, altered=frozenset()).reason is None
    assert computation_over(text, SCHEMA, altered=altered).reason is not None
    assert computation_over(plain, SCHEMA, altered=altered).reason is None
    assert altered_settings({}) == frozenset()


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("nvl2(s, id, 7) = 1", {"s": "a", "id": 1}, True),
        ("nvl2(s, id, 7) = 7", {"s": None, "id": 1}, True),
    ],
)
def test_a_choice_by_null_is_computed(text: str, row: dict[str, Any], expected: bool) -> None:
    assert truth(text, row) is expected


@pytest.mark.parametrize(
    "text",
    [
        "regexp_replace(s, 'a*', 'x') = 'x'",
        "regexp_replace(s, '^', 'x') = 'x'",
        "regexp_replace(s, 'a', '$0') = 'x'",
        r"regexp_replace(s, 'a', r'\1') = 'x'",
        "regexp_replace(s, 'a', s) = 'x'",
        "regexp_replace(s, 'a', NULL) = 'x'",
        "regexp_replace(s, 'a', 'b', 2) = 'x'",
        "s RLIKE s",
        "s RLIKE NULL",
        "id RLIKE '1'",
        r"s RLIKE '\\d'",
        r"s RLIKE r'\s'",
    ],
)
def test_a_pattern_that_is_not_certain_is_left_to_spark(text: str) -> None:
    assert computation_over(text, SCHEMA).reason is not None


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029"])
def test_an_end_before_the_end_of_a_line_is_left_to_spark(end: str) -> None:
    with pytest.raises(Unsupported):
        truth("s RLIKE 'a$'", {"s": f"a{end}"})
    assert truth("s RLIKE 'a$'", {"s": f"b{end}a"}) is True
    assert truth("s RLIKE '^.a'", {"s": f"{end[0]}a"}) is False


def test_a_text_that_is_no_utf8_is_searched_by_spark() -> None:
    bad = pa.array([b"a\xff"]).view(pa.string())
    for text in ("s RLIKE 'a.'", "regexp_replace(s, '.', 'x') = 'xx'"):
        with pytest.raises(Unsupported):
            computation_over(text, SCHEMA).values(pa.RecordBatch.from_arrays([bad], ["s"]))


def test_what_is_replaced_becomes_no_text_of_any_size() -> None:
    with pytest.raises(Unsupported):
        truth(f"regexp_replace(s, '.', '{'x' * 1000}') = 'x'", {"s": "a" * (1 << 20)})


@pytest.mark.parametrize(
    "text", ["s ILIKE '%B!%' ESCAPE '!'", r"s ILIKE r'A\_'", "s ILIKE s", "s ILIKE ANY ('A', 'b')"]
)
def test_ilike_with_escapes_is_left_to_spark(text: str) -> None:
    assert computation_over(text, SCHEMA).reason is not None


def test_letters_of_both_sides_of_ilike_are_folded() -> None:
    assert truth("s ILIKE 'aB%é'", {"s": "Abc\nÉ"}) is True
    assert truth("s ILIKE 'a_'", {"s": "AAA"}) is False
    for text in ("s ILIKE 'İ'", "s ILIKE '%\u1e9e%'"):
        with pytest.raises(Unsupported):
            truth(text, {"s": "a"})
    with pytest.raises(Unsupported):
        truth("s ILIKE 'i'", {"s": "İ"})


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("locate('b', s) = 2", "ab🙂b", True),
        ("locate('b', s, 3) = 4", "ab🙂b", True),
        ("locate('', s, 3) = 1", "", True),
        ("locate('a', s, 0) = 0", "a", True),
        ("locate('', s, -1) = 0", "a", True),
        ("locate('a', s, 0) = 0", None, None),
        ("position('🙂' IN s) = 3", "ab🙂b", True),
        ("position('x', s) = 0", "ab", True),
        ("translate(s, 'aba🙂', 'xy') = 'xyc'", "abc🙂", True),
        ("translate(s, 'a', 'xyz') = 'x'", "a", True),
        ("translate(s, '', 'x') = 'a'", "a", True),
        ("ascii(s) = 128578", "🙂a", True),
        ("ascii(s) = 0", "", True),
        ("ascii(s) = 0", None, None),
    ],
)
def test_letters_and_their_places(text: str, value: str | None, expected: bool | None) -> None:
    assert truth(text, {"s": value}) is expected


def test_letters_that_become_a_nul_are_left_to_spark() -> None:
    with pytest.raises(Unsupported):
        truth("translate(s, 'ab', 'x\0') = 'x'", {"s": "b"})
    assert truth("translate(s, 'ab', 'xy') = 'x\0y'", {"s": "a\0b"}) is True


@pytest.mark.parametrize("text", ["locate(s, 'a') = 1", "locate('a', s, id) = 1", "translate(s, 'a', NULL) = 'a'"])
def test_letters_that_vary_are_left_to_spark(text: str) -> None:
    assert computation_over(text, SCHEMA).reason is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("date_format(d, 'yyyyMMdd') = '00010203'", True),
        ("date_format(n, 'dd/MM/yyyy HH:mm:ss') = '31/12/1969 23:59:59'", True),
        ("date_format(t, 'yyyy-MM-dd HH, ') = '1970-01-01 05, '", True),
        ("date_format(NULL, 'yyyy') = '2024'", None),
    ],
)
def test_a_moment_is_spelled_by_a_plain_pattern(text: str, expected: bool | None) -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    row = {"d": dt.date(1, 2, 3), "n": moment, "t": moment.replace(tzinfo=dt.UTC)}
    found = computation_over(text, SCHEMA, dt.timezone(dt.timedelta(hours=5, minutes=30)))
    if expected is None:
        assert found.reason is not None
    else:
        assert found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist() == [expected]


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "y",
        "yy",
        "yyyyy",
        "MMM",
        "MMMM",
        "d",
        "hh",
        "SSS",
        "yyyy''MM",
        "yyyy[MM]",
        "yyyy#",
        "YYYY",
        "DD",
        "yyyy_",
        "é",
    ],
)
def test_another_pattern_of_a_moment_is_left_to_spark(pattern: str) -> None:
    assert computation_over(f"date_format(d, '{pattern}') = 'x'", SCHEMA, dt.UTC).reason is not None


def test_how_moments_are_spelled_is_for_settings_and_zones_to_say() -> None:
    text, row = "date_format(d, 'yyyy') = '2024'", pa.RecordBatch.from_pylist([{"d": dt.date(2024, 1, 1)}])
    for policy in ("LEGACY", "EXCEPTION"):
        altered = altered_settings({"spark.sql.legacy.timeParserPolicy": policy})
        assert computation_over(text, SCHEMA, dt.UTC, altered=altered).reason is not None
    assert computation_over(text, SCHEMA, dt.UTC, altered=altered_settings({})).reason is None
    with pytest.raises(Unsupported):
        computation_over(text, SCHEMA).values(row)


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("pmod(id, 3) = 2", {"id": -7}, True),
        ("pmod(id, -3) = -1", {"id": -7}, True),
        ("pmod(id, -3) = 1", {"id": 7}, True),
        ("pmod(id, -1) = 0", {"id": -(2**63)}, True),
        ("pmod(id, 9223372036854775807) = 9223372036854775806", {"id": -1}, True),
        ("pmod(m, 3) = 2.5", {"m": Decimal("-0.50")}, True),
        ("pmod(m, -3) = -0.5", {"m": Decimal("-0.50")}, True),
        ("pmod(x, -5.0D) = 0", {"x": -1e-20}, True),
        ("pmod(x, 5.0D) = 4.5D", {"x": -0.5}, True),
        ("pmod(id, 3) = 2", {"id": None}, None),
    ],
)
def test_a_remainder_is_made_positive(text: str, row: dict[str, Any], expected: bool | None) -> None:
    assert truth(text, row) is expected


@pytest.mark.parametrize(("text", "value"), [("pmod(id, 0) = 0", 1), (f"pmod(id, {-(2**63)}) = 0", -1)])
def test_a_remainder_that_settings_decide_is_left_to_spark(text: str, value: int) -> None:
    with pytest.raises(Unsupported):
        truth(text, {"id": value})


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("w + w = 2", {"w": Decimal(1)}, True),
        ("fine * fine = 0.000001", {"fine": Decimal("0.0010000000")}, True),
        ("fine * fine = 0", {"fine": Decimal("0.0005000000")}, True),
        ("fine * fine = 0.000001", {"fine": Decimal("0.0007071068")}, True),
        ("fine + fine = 0", {"fine": Decimal("-0.0000000001")}, True),
    ],
)
def test_decimals_of_many_digits_lose_some_behind_the_point(text: str, row: dict[str, Any], expected: bool) -> None:
    """Spark drops digits down to six and rounds: 0.0007071068 squared is a little more than half a millionth."""
    assert truth(text, row) is expected


def test_a_decimal_without_room_for_its_digits_is_left_to_spark() -> None:
    for text in ("w + w = 2", "w * 10 = 2"):
        with pytest.raises(Unsupported):
            truth(text, {"w": Decimal("9" * 38)})


def test_whether_decimals_lose_digits_is_for_a_setting_to_say() -> None:
    altered = altered_settings({"spark.sql.decimalOperations.allowPrecisionLoss": "false"})
    assert computation_over("w + w = 2", SCHEMA, altered=altered).reason is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to_date(s, 'yyyyMMdd') = DATE'2024-02-29'", True),
        ("to_timestamp_ntz(s, 'yyyyMMdd') = n", True),
        ("to_timestamp_ltz(s, 'yyyyMMdd') = t", True),
        ("to_timestamp(s, 'yyyyMMdd') = t", True),
        ("split(s, '02')[2] = '29'", True),
        ("element_at(split(s, '0'), -1) = '229'", True),
        ("size(split(s, '2')) = 5", True),
        ("array_contains(split(s, '02'), '29')", True),
        ("array_contains(split(s, '02'), '')", False),
    ],
)
def test_a_text_is_read_by_a_pattern_or_split(text: str, expected: bool) -> None:
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    midnight = dt.datetime(2024, 2, 29)
    row = {"s": "20240229", "n": midnight, "t": midnight.replace(tzinfo=zone)}
    found = computation_over(text, SCHEMA, zone, timestamp="timestamp")
    assert found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist() == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "to_date(s, 'yyyyMMdd') IS NULL",
        "to_date(s, 'yyyy-M-d') IS NULL",
        "to_date(s, 'yyyy yyyy') IS NULL",
        "to_timestamp(s, 'yyyy-MM-dd') = n",
        "split(s, '')[0] = 'a'",
        "split(s, s)[0] = 'a'",
        "split(s, ',')[7] = 'a'",
        "element_at(split(s, ','), 0) = 'a'",
        "hash(split(s, ',')) = 1",
        "xxhash64(w) = 1",
        "hash() = 1",
        "hash(repeat(s, 5000)) = 1",
    ],
)
def test_what_settings_or_java_decide_of_texts_is_left_to_spark(text: str) -> None:
    found = computation_over(text, SCHEMA, dt.UTC)
    if found.reason is None:
        with pytest.raises(Unsupported):
            found.values(pa.RecordBatch.from_pylist([{"s": "2024-02-30"}], to_arrow(SCHEMA)))


@pytest.mark.parametrize("text", ["split_part(s, '-', 0) = 'a'", "element_at(split(s, '-'), 0) = 'a'"])
def test_a_position_that_spark_refuses_for_every_row_is_left_to_it(text: str) -> None:
    assert computation_over(f"CASE WHEN id IS NULL THEN {text} END", SCHEMA).reason is not None


@pytest.mark.parametrize(
    "text", ["cast(d AS string) = ''", "cast(n AS string) = ''", "concat(cast(d AS string), s) = ''"]
)
def test_days_of_an_older_calendar_are_spelled_by_spark(text: str) -> None:
    """With ``spark.sql.legacy.timeParserPolicy`` = LEGACY the days from 1582-10-05 to 1582-10-14 are another one."""
    row = {"d": dt.date(1582, 10, 10), "n": dt.datetime(1582, 10, 10), "s": "x"}
    with pytest.raises(Unsupported):
        computation_over(text, SCHEMA, dt.UTC).values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA)))
