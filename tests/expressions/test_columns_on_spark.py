"""What is computed of a Column by its print is what Spark computes of the Column itself."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from anabranch._expressions import Context, column_condition, column_value
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.unsupported import Unsupported
from tests.support.tiers import examples

pytestmark = [pytest.mark.spark, pytest.mark.classic("texts are printed in quotes")]

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("x", "integer"),
        Field("name", "string"),
        Field("price", "double"),
        Field("cents", "decimal(10,2)"),
        Field("day", "date"),
        Field("at", "timestamp"),
        Field("flag", "boolean"),
        Field("a b", "string"),
    )
)
ROWS = pa.table(
    {
        "id": pa.array([1, -7, None, 2**40, 5], pa.int64()),
        "x": pa.array([3, None, 0, -1, 2**31 - 1], pa.int32()),
        "name": ["it's", "x', 'y", None, "Z\\", "nåme, (1)"],
        "price": pa.array([0.5, float("nan"), -0.0, None, 1e10], pa.float64()),
        "cents": pa.array(
            [Decimal("0.50"), Decimal("-3.25"), None, Decimal("99999999.99"), Decimal(0)], pa.decimal128(10, 2)
        ),
        "day": pa.array([dt.date(2020, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)]),
        "at": pa.array(
            [dt.datetime(2020, 1, 1, 2, 3, 4, 500, dt.UTC), None, *[dt.datetime(1970, 1, 1, tzinfo=dt.UTC)] * 3],
            pa.timestamp("us", "UTC"),
        ),
        "flag": [True, False, None, True, False],
        "a b": ["p", "q", None, "", " r "],
    }
)

TEXTS = ["x", "it's", "x', 'y", "')", "", "a%", "1", "true", "id", "CASE WHEN ", "nåme, (1)", " r "]


def context(spark: SparkSession) -> Context:
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return Context("t", SCHEMA, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), zone, lambda names: True)


def drawn(dice: random.Random, kind: str, depth: int) -> Column:
    """A Column of a kind: a number, a text, a truth value or a day."""
    leaf: dict[str, list[Callable[[], Column]]] = {
        "number": [
            lambda: F.col(dice.choice(["id", "x"])),
            lambda: F.col(dice.choice(["price", "cents"])),
            lambda: F.lit(dice.choice([0, 1, -3, 5_000_000_000, 2**31 - 1, 0.5, 2.0, -1e10])),
            lambda: F.lit(Decimal(dice.choice(["0.50", "2", "-1.5"]))),
        ],
        "text": [lambda: F.col(dice.choice(["name", "a b"])), lambda: F.lit(dice.choice(TEXTS))],
        "truth": [lambda: F.col("flag"), lambda: F.lit(dice.random() < 0.5)],
        "day": [lambda: F.col("day"), lambda: F.lit(dt.date(2020, 2, 29))],
    }
    if depth == 0 or dice.random() < 0.2:
        return dice.choice(leaf[kind])()

    def of(kind: str) -> Column:
        return drawn(dice, kind, depth - 1)

    other = dice.choice(["number", "text", "day"])
    whole: dict[str, list[Callable[[], Column]]] = {
        "number": [
            lambda: of("number") + of("number"),
            lambda: of("number") - 1,
            lambda: 2 * of("number"),
            lambda: of("number") % 7,
            lambda: of("number") / dice.choice([4, 0.5, F.lit(Decimal(4)), F.col("x")]),
            lambda: -of("number"),
            lambda: F.abs(of("number")),
            lambda: F.length(of("text")),
            lambda: F.year(of("day")),
            lambda: F.coalesce(of("number"), F.lit(dice.choice([0, 0.5]))),
            lambda: F.when(of("truth"), of("number")).otherwise(F.lit(1)),
            lambda: of("number").cast(dice.choice(["bigint", "int", "double", "decimal(12,3)"])),
            lambda: F.expr(dice.choice(["id", "x + 1", "2.5", "abs(x)", "CAST(id AS INT)", "length('a')"])),
        ],
        "text": [
            lambda: F.lower(of("text")),
            lambda: F.concat(of("text"), of("text")),
            lambda: of("text").substr(1, dice.choice([0, 2])),
            lambda: F.coalesce(of("text"), of("text")),
            lambda: F.when(of("truth"), of("text")),
            lambda: F.concat_ws(",", of("text"), of("text")),
            lambda: of("number").cast("string"),
            lambda: F.expr(dice.choice(["name", "'a'", "upper(name)", "'it\\'s'", "concat(name, 'b, c')"])),
        ],
        "truth": [
            lambda: of(other) == of(other),
            lambda: of(other) < of(other),
            lambda: of(other).eqNullSafe(of(other)),
            lambda: of("truth") & of("truth"),
            lambda: of("truth") | ~of("truth"),
            lambda: of("number").isin(1, 2.5, 3),
            lambda: of("text").isin(*dice.sample(TEXTS, 3)),
            lambda: of(other).isNull(),
            lambda: of("number").between(-1, of("number")),
            lambda: of("text").like(dice.choice(["%a%", "x%", "_"])),
            lambda: of("text").startswith(dice.choice(TEXTS)),
            lambda: F.expr(dice.choice(["flag", "id = 1", "isnull(name)", "name LIKE 'x%'", "not(flag)"])),
        ],
        "day": [
            lambda: F.date_add(of("day"), 3),
            lambda: F.coalesce(of("day"), of("day")),
            lambda: F.last_day(of("day")),
            lambda: F.when(of("truth"), of("day")).otherwise(F.col("day")),
        ],
    }
    return dice.choice(whole[kind])()


def on_spark(spark: SparkSession, columns: list[Column]) -> list[list[Any]]:
    """The values of each Column; of one that fails an empty list."""
    frame = spark.createDataFrame(ROWS)
    try:
        found = frame.select(*[each.alias(f"c{i}") for i, each in enumerate(columns)]).toArrow()
    except Exception:
        if len(columns) == 1:
            return [[]]
        half = len(columns) // 2
        return [*on_spark(spark, columns[:half]), *on_spark(spark, columns[half:])]
    return [found[f"c{i}"].to_pylist() for i in range(len(columns))]


def computed(column: Column, where: Context) -> list[Any] | None:
    found = column_value(column, where)
    try:
        return None if found.reason is not None else found.values(ROWS.combine_chunks().to_batches()[0]).to_pylist()
    except Unsupported:
        return None


def shown(value: Any) -> str:
    """A value with its type, but for whole numbers: of which type the literal 2 is no print says."""
    is_whole = isinstance(value, Decimal) and value.as_tuple().exponent == 0
    return repr(int(value) if is_whole else value)


@pytest.mark.slow
def test_drawn_columns_have_sparks_values(spark: SparkSession) -> None:
    where, count = context(spark), examples(40, 4) * 50
    dice = random.Random(11)
    columns = [drawn(dice, dice.choice(["number", "text", "truth", "day"]), 3) for _ in range(count)]
    ours = [computed(each, where) for each in columns]
    known = [i for i, each in enumerate(ours) if each is not None]
    for i, theirs in zip(known, on_spark(spark, [columns[i] for i in known]), strict=True):
        assert [*map(shown, theirs)] == [*map(shown, ours[i] or [])], str(columns[i])
    assert len(known) > count / 5


def test_what_looks_like_another_column_is_not_taken_for_it(spark: SparkSession) -> None:
    where = context(spark)

    @F.udf("string")
    def lower(*_: Any) -> str:
        return "?"

    for column in (
        lower(F.col("name")) == "it's",
        lower() == "it's",
        F.expr("name || 'x'") == "it'sx",
        F.expr("'a' || 'b'") == "ab",
        F.col("id").alias("x") == 3,
        F.col("no such") == 3,
        F.col("`id, 1`") == 3,
    ):
        assert computed(column, where) is None, str(column)
        assert column_condition(column, where).predicate == Unknown()
