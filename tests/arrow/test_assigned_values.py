"""What Arrow makes of plain assignments is what Spark stores for the same texts, or Arrow says nothing."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice, zip_longest
from math import inf, nan
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._arrow import assigned_values as arrow_values
from anabranch._arrow.assigned_values import resolve_assignments
from anabranch._expressions import assignment
from anabranch._log.log import Log
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.predicates import Always
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.engine import SparkEngine
from anabranch._spark.merging.expression_checks import check_change
from anabranch._spark.reading.scan import scan
from anabranch._spark.writing.write import assign_where
from anabranch._sql.conditions import context_for
from anabranch._storage import open_store
from anabranch.commands.opening import file_set
from anabranch.errors import AnabranchError
from tests.support.tiers import examples

pytestmark = pytest.mark.spark

VALUES = {
    "b": (pa.int8(), [None, -128, 0, 5, 127]),
    "s": (pa.int16(), [None, -5, 0, 5, 32767]),
    "i": (pa.int32(), [None, -5, 0, 5, 2**31 - 1]),
    "l": (pa.int64(), [None, -(2**63), 0, 5, 2**63 - 1]),
    "f": (pa.float32(), [None, -1.5, -0.0, nan, inf]),
    "d": (pa.float64(), [None, 0.1, -0.0, nan, 1e308]),
    "n": (pa.decimal128(9, 2), [None, Decimal("-1.00"), Decimal("5.00"), Decimal("9999999.99"), Decimal("0.01")]),
    "w": (pa.string(), [None, "", "a", "\uffff", "a'b"]),
    "t": (pa.bool_(), [None, True, False, True, None]),
    "day": (pa.date32(), [None, date(1969, 12, 31), date(2020, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [None, *(datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 2000, 2020, 9999))]),
}
ALL = Condition("true", Always(True), True, "true")
NUMBERS = (
    *("0", "1", "-1", "5", "127", "128", "-129", "32768", "2147483647", "2147483648", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", "-0.0", "0.1", ".5", "5."),
    *("0.12345678901234567", "99999999.99", "0.005", "1e3", "-0e0", "1e308", "1e400", "1E-330", "5L", "1.5D", "2BD"),
)
OTHERS = (
    *("NULL", "true", "'a'", "''", "'5'", "'it\\'s'", "'\\n'", "'\uffff'", "r'\\n'", '"a"', "'a' 'b'", "X'41'"),
    *("DATE '2020-01-01'", "DATE'0001-01-01'", "DATE '10000-01-01'", "'2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'"),
    *("TIMESTAMP '2020-01-01 00:00:00.000001 UTC'", "TIMESTAMP_NTZ '2020-01-01 00:00:00'", "now()", "current_date"),
    *("- 5", "+5", "(5)", "((-5))", "- -5", "1 + 1", "now() IS NULL", "`w`", "w || w", "upper(w)"),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> FileSet:
    path = str(tmp_path_factory.mktemp("values") / "t")
    anabranch.append(path, pa.table({name: pa.array(some, kind) for name, (kind, some) in VALUES.items()}))
    return file_set(Log(open_store(path)).snapshot())


@pytest.fixture(params=["true", "false"], ids=["ANSI", "no ANSI"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


def is_computed(name: str, value: ComputedExpression, schema: Struct) -> bool:
    """Whether Arrow computes what a column stores of a value."""
    try:
        resolve_assignments({name: value}, schema)
    except Unsupported:
        return False
    return True


def plain_pairs(files: FileSet, engine: SparkEngine) -> list[tuple[str, ComputedExpression]]:
    """Columns with values that are plain for them, of all texts that are tried."""
    context, names = context_for("t", files.schema, engine), [*VALUES, "`L`"]
    sides = [(a, b) for name in names for number in NUMBERS for a, b in ((name, number), (number, name))]
    texts, read = [*names, *NUMBERS, *OTHERS, *(f"{a} {op} {b}" for op in "+-*" for a, b in sides)], []
    for text in texts:
        with contextlib.suppress(AnabranchError):
            read.append(assignment(text, context))
    return [(name, each) for name in VALUES for each in read if is_computed(name, each, files.schema)]


def rounds(pairs: list[tuple[str, ComputedExpression]]) -> Iterator[dict[str, ComputedExpression]]:
    """The same as assignments of many columns at once."""
    by_column = [[(name, value) for name, value in pairs if name == column] for column in VALUES]
    for several in zip_longest(*by_column):
        yield dict(filter(None, several))


@pytest.mark.usefixtures("ansi")
def test_every_plain_value_is_what_spark_stores(spark: SparkSession, files: FileSet) -> None:
    types = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
    rows = scan(spark, files).toArrow().cast(types)
    pairs = [(name, value) for name, value in plain_pairs(files, SparkEngine(spark)) if makes(rows, files, name, value)]
    assert len(pairs) > 200
    random.Random(3).shuffle(pairs)
    for together in islice(rounds(pairs), examples(10, 2)):
        texts = {name: value.expression for name, value in together.items()}
        check_change(spark, files, ALL, texts)  # Spark refuses none
        stored = assign_where(scan(spark, files), files, texts, F.lit(True)).toArrow().cast(types)
        made = arrow_values.assign_values(rows, files.schema, resolve_assignments(together, files.schema))
        assert made.schema == types
        for name in types.names:
            assert repr(made[name].to_pylist()) == repr(stored[name].to_pylist()), texts.get(name)


def makes(rows: pa.Table, files: FileSet, name: str, value: ComputedExpression) -> bool:
    """Whether Arrow makes these values, and does not leave them to Spark."""
    try:
        return len(arrow_values.assign_values(rows, files.schema, resolve_assignments({name: value}, files.schema))) > 0
    except (Unsupported, pa.ArrowException):
        return False


def test_a_computation_that_leaves_its_type_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, pa.table({"id": [1, 2], "i": pa.array([1, 2**31 - 1], pa.int32())}))
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(AnabranchError, match="overflow"):
        table.update("id > 0", {"i": "i + 1"})
    table.update("id = 1", {"i": "i + 1"})
    assert sorted(map(tuple, table.toDF().collect())) == [(1, 2), (2, 2**31 - 1)]


def test_literals_that_take_more_memory_than_rows_may_are_left_to_spark(
    spark: SparkSession, files: FileSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scan(spark, files).toArrow()
    text = assignment("'aaaa'", context_for("t", files.schema, SparkEngine(spark)))
    assert isinstance(text, ComputedExpression)
    assert makes(rows, files, "w", text)
    monkeypatch.setattr(arrow_values, "MOST_BYTES", 4 * len(rows) - 1)
    assert not makes(rows, files, "w", text)


@pytest.mark.parametrize("moment", ["TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP(3)"])
def test_what_spark_cannot_read_is_refused_though_it_is_understood(
    spark: SparkSession, tmp_path: Path, moment: str
) -> None:
    path, text = str(tmp_path / "t"), f"{moment} '2020-01-01 00:00:00'"
    anabranch.append(path, pa.table({"id": [1], "at": pa.array([None], pa.timestamp("us", "UTC"))}))
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(AnabranchError):
        table.update(set={"at": text})


def test_a_text_with_a_plus_before_it_is_a_number(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, pa.table({"id": [1, 2], "w": ["1.50", "2"]}))
    table = DeltaTable.forPath(spark, path)
    table.update("+w = '1.5'", {"w": "+w"})
    assert sorted(map(tuple, table.toDF().collect())) == [(1, "1.5"), (2, "2")]


def test_all_values_are_computed_from_the_old_row(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, pa.table({"a": [1, 2], "b": [10, 20], "c": [0.5, 1.5]}))
    DeltaTable.forPath(spark, path).update("a = 2", {"a": "b", "b": "a + 1", "c": "2 * c"})
    assert sorted(map(tuple, DeltaTable.forPath(spark, path).toDF().collect())) == [(1, 10, 0.5), (20, 3, 3.0)]
