"""An INSERT of literals, which needs no Spark, stores what Spark would make of the same text, or is left to Spark."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch._expressions.computations import computation_of
from anabranch._protocol.expressions.common_types import common_type
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported
from anabranch._protocol.schema.types import INTEGERS, Field, Struct
from anabranch._protocol.store_assignment import cast_to_column
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.engine import SparkEngine
from anabranch._sql import plain_rows
from anabranch._sql.conditions import context_for
from anabranch._sql.executor import row_statements
from anabranch.errors import AnabranchError
from tests.support.readers import deltalake_rows
from tests.support.tiers import examples

pytestmark = pytest.mark.spark

KINDS = {
    **{"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long", "float": "float"},
    **{"double": "double", "string": "string", "boolean": "boolean", "date": "date", "timestamp": "timestamp"},
    **{kind: kind for kind in ("decimal(9,2)", "decimal(38,0)", "decimal(38,18)", "decimal(38,30)", "binary")},
}
LITERALS = (
    *("NULL", "0", "1", "-1", "127", "-128", "32767", "2147483647", "2147483648", "9223372036854775807", "16777216"),
    *("1.5", "-0.0", "0.1", ".5", "5.", "1.50", "0.00", "99999.99", "0.000000000000000000000000000001", "1.5D"),
    *("12345678901234567890123456789012345678", "0.00000000000000000001", "- 5", "(5)", "12345678.12345678", "5L"),
    *("0.0000000000000000000001", "true", "'a'", "''", "'it\\'s'", "'\\n'", "'\uffff'", "r'\\n'", '"a"', "'{}'"),
    *("DATE '2020-01-01'", "DATE'0001-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP'1969-12-31 23:59:59.5'"),
    *("TIMESTAMP_NTZ '2020-01-01 00:00:00'", "now()", "current_date", "user", "1 + 1", "x", "X'41'", "1e3"),
)


@pytest.fixture(params=["true", "false"], ids=["ANSI", "no ANSI"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.fixture
def by_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """While it is used, no row is plain."""
    with monkeypatch.context() as patch:
        yield patch


def stored(spark: SparkSession, path: Path, declared: str, *statements: str) -> Any:
    """The rows and history of a new table after these statements, or the error of the first that fails."""
    try:
        anabranch.sql(spark, f"CREATE TABLE delta.`{path}` ({declared}")
        for each in statements:
            anabranch.sql(spark, each.format(f"delta.`{path}`"))
    except AnabranchError as error:
        return type(error), str(error).partition("\n")[0].replace(path.name, "t")
    rows = sorted(map(repr, deltalake_rows(str(path))))
    told = anabranch.history(path)[0]
    return rows, told["operation"], told["operationParameters"], told["operationMetrics"]["numOutputRows"]


def both_ways(
    spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch, declared: str, *statements: str
) -> tuple[Any, Any]:
    ours = stored(spark, folder / "ours", declared, *statements)
    patch.setattr(row_statements, "plain_rows", lambda *_: None)
    return ours, stored(spark, folder / "spark", declared, *statements)


def plain_pairs(spark: SparkSession) -> list[tuple[str, str, str]]:
    """A column's type, and literals for two rows of it that are plain."""
    context = context_for("t", Struct((Field("x", "long"),)), SparkEngine(spark))
    read = {text: computation_of(text, context) for text in LITERALS}
    known = {text: value for text, value in read.items() if value.reason is None and not value.columns}
    kinds = {sql: Field("c", kind) for sql, kind in KINDS.items()}
    return [
        (sql, one, other)
        for (sql, field), (one, a), (other, b) in product(kinds.items(), known.items(), known.items())
        if are_alike(a, b) and is_made(field, a) and is_made(field, b)
    ]


def are_alike(*values: Computation) -> bool:
    """Whether Spark's one type for all changes none: they are whole numbers, decimals with room, or of one type."""
    kinds = {str(each.tree.type) for each in values} - {"void"}
    families = {"integers" if kind in INTEGERS else kind.partition("(")[0] for kind in kinds}
    with contextlib.suppress(ArgumentsNotSupported):
        return len(families) < 2 and common_type([Argument(kind) for kind in kinds]) is not None
    return False


def is_made(field: Field, value: Computation) -> bool:
    """Whether a column stores a value that is made here; where it does not fit, the whole statement fails."""
    stored = cast_to_column(value, field)
    with contextlib.suppress(Unsupported, pa.ArrowException):
        return stored.reason is None and len(plain_rows_made([[stored]], [field], Struct((field,)))) == 1
    return False


@pytest.mark.usefixtures("ansi")
def test_all_pairs_of_plain_literals_are_what_spark_stores(
    spark: SparkSession, tmp_path: Path, by_spark: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = plain_pairs(spark)
    assert len(pairs) > 800
    assert {kind for kind, _, _ in pairs} == set(KINDS)
    random.Random(7).shuffle(pairs)
    fitting = pairs[: examples(450, 60)]
    declared = ", ".join(f"c{i} {kind}" for i, (kind, _, _) in enumerate(fitting)) + ")"
    lines = (", ".join(pair[row] for pair in fitting) for row in (1, 2))
    insert = "INSERT INTO {} VALUES " + ", ".join(f"({line})" for line in lines).replace("{", "{{").replace("}", "}}")
    made: list[Any] = []
    monkeypatch.setattr(plain_rows, "build_rows", lambda *given: made.append(plain_rows_made(*given)) or made[-1])
    ours, theirs = both_ways(spark, tmp_path, by_spark, declared, insert)
    assert ours == theirs
    assert len(made) == 1


plain_rows_made = plain_rows.build_rows


TABLES = {
    "two columns": ("id INT, x STRING)", "(300, 'a'), (-1, NULL)"),
    "values of several types": ("id DOUBLE, x STRING)", "(1, 'a'), (2.5, 'b'), (1e0, 'c')"),
    "a value of another type": ("id INT, x STRING)", "('7', 5)"),
    "a value that cannot be stored": ("id INT, x DATE)", "(1, 'no date')"),
    "a value beyond its type": ("id TINYINT)", "(1), (300)"),
    "too few values": ("id INT, x STRING)", "(1)"),
    "rows of several lengths": ("id INT, x STRING)", "(1, 'a'), (2)"),
    "an unknown name": ("id INT)", "(y)"),
    "a name of a column": ("id INT)", "(id)"),
    "a function": ("id INT)", "(abs(-1))"),
    "a struct": ("id INT, x INT)", "struct(1, 2)"),
    "a nested column": ("id INT, x STRUCT<a: INT>)", "(1, NULL)"),
    "a length": ("id INT, x VARCHAR(2))", "(1, 'abc')"),
    "a padded text": ("id INT, x CHAR(4))", "(1, 'abc')"),
    "a value that may not be NULL": ("id INT NOT NULL)", "(NULL)"),
    "a constraint": ("id INT) TBLPROPERTIES ('delta.constraints.positive' = 'id > 0')", "(-1)"),
    "a generated column": ("id INT, x INT GENERATED ALWAYS AS (id + 1))", "(1, 3)"),
    "an identity column": ("id INT, x BIGINT GENERATED BY DEFAULT AS IDENTITY)", "(1, 3)"),
    "a partition": ("id INT, x STRING) PARTITIONED BY (x)", "(1, 'a'), (2, NULL), (3, ''), (4, 'a/b= %')"),
    "partitions by dates": ("id INT, x DATE, y INT) PARTITIONED BY (x, y)", "(1, DATE '2024-02-29', -1), (2, NULL, 7)"),
    "a partition whose text settings choose": ("id INT, x DOUBLE) PARTITIONED BY (x)", "(1, 1.5D), (2, -0.0D)"),
    "a constraint that is kept": ("id INT) TBLPROPERTIES ('delta.constraints.c' = 'shiftright(id % 2, 0) = 1')", "(1)"),
    "several rules": ("id INT NOT NULL, x INT) TBLPROPERTIES ('delta.constraints.c' = 'x > id')", "(1, 2), (3, NULL)"),
    "mapped columns": ("id INT, `a b` STRING) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "(1, 'a')"),
    "tracked rows": ("id INT) TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "(1), (2)"),
    "another codec": ("id INT) TBLPROPERTIES ('delta.parquet.compression.codec' = 'zstd')", "(1), (2)"),
    "no parentheses": ("id INT)", "1, 2"),
    "an alias": ("id INT)", "(1), (2) AS v(a)"),
    "more behind the rows": ("id INT)", "(1), (2) UNION ALL SELECT 3"),
    "a comment": ("id INT)", "(1 /* one */), -- two\n (2)"),
}


@pytest.mark.parametrize("case", TABLES)
def test_an_insert_does_the_same_whoever_makes_the_rows(
    spark: SparkSession, tmp_path: Path, by_spark: pytest.MonkeyPatch, case: str
) -> None:
    declared, values = TABLES[case]
    ours, theirs = both_ways(spark, tmp_path, by_spark, declared, f"INSERT INTO {{}} VALUES {values}")
    assert ours == theirs


@pytest.mark.parametrize("case", ["two columns", "a partition", "a value beyond its type"])
@pytest.mark.parametrize("verb", ["INSERT OVERWRITE {}", "INSERT INTO {} REPLACE WHERE id < 400"])
def test_what_is_replaced_is_the_same_whoever_makes_the_rows(
    spark: SparkSession, tmp_path: Path, by_spark: pytest.MonkeyPatch, case: str, verb: str
) -> None:
    declared, values = TABLES[case]
    statements = [f"{each} VALUES {values}" for each in ("INSERT INTO {}", verb)]
    ours, theirs = both_ways(spark, tmp_path, by_spark, declared, *statements)
    assert ours == theirs


@pytest.mark.parametrize("columns", ["(x)", "(X, ID)", "(id, id)", "(id, y)", "BY NAME"])
@pytest.mark.parametrize("default", ["", " DEFAULT 'd'"])
def test_columns_that_are_named_are_given_the_values(
    spark: SparkSession, tmp_path: Path, by_spark: pytest.MonkeyPatch, columns: str, default: str
) -> None:
    values = "('a')" if columns == "(x)" else "(1, 1)" if columns == "(id, id)" else "('a', 1)"
    declared = f"id INT, x STRING, z STRING{default}) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    ours, theirs = both_ways(spark, tmp_path, by_spark, declared, f"INSERT INTO {{}} {columns} VALUES {values}")
    assert ours == theirs


def test_very_many_literals_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = ", ".join(f"({i})" for i in range(plain_rows.MOST_CELLS + 1))
    found = stored(spark, tmp_path / "t", "id INT)", f"INSERT INTO {{}} VALUES {rows}")
    assert len(found[0]) == plain_rows.MOST_CELLS + 1
