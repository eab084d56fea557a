"""A table from a stranger: nothing in its rules runs, whatever is done with the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._log.log import forget
from anabranch._protocol.schema.types import Field, Struct
from tests.support.raw_logs import metadata, put_commit, put_rows
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark

HIT = "anabranch.tests.hit"
FEATURES = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "changeDataFeed"]


@pytest.fixture
def sql(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(autouse=True)
def code_that_runs_is_seen(spark: SparkSession) -> Iterator[None]:
    spark.sql(f"SELECT java_method('java.lang.System', 'setProperty', '{HIT}', 'no')").collect()
    yield
    (row,) = spark.sql(f"SELECT java_method('java.lang.System', 'getProperty', '{HIT}')").collect()
    assert row[0] == "no", "code of the table's metadata ran"


def stranger(path: Path, kind: str, text: str, **configuration: str) -> str:
    """A table of another's making, with one file and a rule of one kind."""
    invariant = json.dumps({"expression": {"expression": text}})
    said: dict[str, Any] = {
        "generated": {"delta.generationExpression": text},
        "default": {"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": text},
        "invariant": {"delta.invariants": invariant},
    }.get(kind, {})
    schema = Struct((Field("id", "long"), Field("s", "string", metadata=said)))
    configuration |= {"delta_constraints.c": text} if kind == "check" else {}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": FEATURES}
    rows = put_rows(path, "a.parquet", [{"id": 1, "s": "x"}, {"id": 2, "s": "y"}])
    more = put_rows(path, "b.parquet", [{"id": 3}])  # lacks the column, as files before an ADD COLUMN do
    put_commit(path, 0, {"protocol": protocol}, metadata(schema, **configuration), rows, more)
    forget()
    return str(path)


Way = Callable[[SparkSession, str], Any]


def _merge(sql: SparkSession, path: str) -> Any:
    return DeltaTable.forPath(sql, path).alias("t").merge(sql.range(2, 9).alias("s"), "t.id = s.id")


BRINGING: dict[str, Way] = {
    "append": lambda sql, path: sql.range(3).write.format("delta").mode("append").save(path),
    "overwrite": lambda sql, path: sql.range(3).write.format("delta").mode("overwrite").save(path),
    "writeTo": lambda sql, path: sql.range(3).writeTo(f"delta.`{path}`").append(),
    "evolving": lambda sql, path: (
        sql.range(3)
        .selectExpr("id", "1 AS z")
        .write.format("delta")
        .mode("append")
        .option("mergeSchema", True)
        .save(path)
    ),
    "insert": lambda sql, path: sql.sql(f"INSERT INTO delta.`{path}` (id) VALUES (5)"),
    "insert default": lambda sql, path: sql.sql(f"INSERT INTO delta.`{path}` VALUES (5, DEFAULT), (6, 'x')"),
    "update": lambda sql, path: sql.sql(f"UPDATE delta.`{path}` SET id = id + 1"),
    "update default": lambda sql, path: sql.sql(f"UPDATE delta.`{path}` SET s = DEFAULT"),
    "merge update": lambda sql, path: _merge(sql, path).whenMatchedUpdate(set={"id": "t.id + 10"}).execute(),
    "merge insert": lambda sql, path: _merge(sql, path).whenNotMatchedInsert(values={"id": "s.id"}).execute(),
    "without Spark": lambda sql, path: anabranch.append(path, [{"id": 7}]),
}
OTHERS: dict[str, Way] = {
    "read": lambda sql, path: sql.read.format("delta").load(path).collect(),
    "delete": lambda sql, path: sql.sql(f"DELETE FROM delta.`{path}` WHERE id = 2"),
    "merge delete": lambda sql, path: _merge(sql, path).whenMatchedDelete().execute(),
    "optimize": lambda sql, path: sql.sql(f"OPTIMIZE delta.`{path}`"),
    "reorg": lambda sql, path: sql.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)"),
    "add column": lambda sql, path: sql.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN extra INT"),
    "set default": lambda sql, path: sql.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id SET DEFAULT 1"),
    "add constraint": lambda sql, path: sql.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT ok CHECK (id > 0)"),
    "clone": lambda sql, path: sql.sql(f"CREATE TABLE delta.`{path}_copy` DEEP CLONE delta.`{path}`"),
    "restore": lambda sql, path: sql.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0"),
    "check": lambda sql, path: anabranch.check(path, deep=True),
}
RUNS = f"reflect('java.lang.System', 'setProperty', '{HIT}', 'yes')"
TEXTS = {"check": f"{RUNS} IS NULL", "invariant": f"{RUNS} IS NULL", "generated": RUNS, "default": RUNS}


def files_of(path: str) -> list[str]:
    return sorted(str(each) for each in Path(path).rglob("*") if each.is_file())


@pytest.mark.parametrize("kind", TEXTS)
def test_whatever_brings_rows_refuses_a_rule_that_runs_code(sql: SparkSession, tmp_path: Path, kind: str) -> None:
    path = stranger(tmp_path / "table", kind, TEXTS[kind])
    before = files_of(path)
    for name, way in BRINGING.items():
        with pytest.raises(errors.RuleRefused if name != "insert default" else errors.InputError) as caught:
            way(sql, path)
        assert kind == "generated" or caught.value.facts["found"] == "the function reflect", name
        assert files_of(path) == before, name


@pytest.mark.parametrize("kind", TEXTS)
def test_whatever_else_is_done_evaluates_no_rule(sql: SparkSession, tmp_path: Path, kind: str) -> None:
    path = stranger(tmp_path / "table", kind, TEXTS[kind])
    for way in OTHERS.values():
        way(sql, path)
    rows = DeltaTable.forPath(sql, path).toDF().select("s").collect()
    assert {row["s"] for row in rows} <= {"x", "y", None}


def test_the_change_feed_of_such_a_table_evaluates_no_rule(sql: SparkSession, tmp_path: Path) -> None:
    for kind in few_of([*TEXTS], 2):
        path = stranger(tmp_path / kind, kind, TEXTS[kind], delta_enableChangeDataFeed="true")
        feed = sql.read.format("delta").option("readChangeFeed", True).option("startingVersion", 0).load(path)
        assert feed.count() == 3


def test_no_file_variable_or_function_of_the_session_gets_into_rows(sql: SparkSession, tmp_path: Path) -> None:
    secret, marker = tmp_path / "secret", tmp_path / "marker"
    secret.write_text("ours")
    sql.udf.register("lookup", lambda: str(marker.write_text("ran")))
    sql.sql("DECLARE OR REPLACE VARIABLE token STRING DEFAULT 'mine'")
    texts = [f"(SELECT first(value) FROM text.`{secret}`)", "lookup()", "token", "session.token", "current_user()"]
    texts += ['from_json(\'{}\', \'{"type":"struct","fields":[]}\').a', "`lookup`()", "IDENTIFIER('lookup')()"]
    for i, text in enumerate(texts):
        for kind in ("default", "generated"):
            path = stranger(tmp_path / f"{kind}{i}", kind, text)
            with pytest.raises(errors.RuleRefused):
                BRINGING["append"](sql, path)
    assert not marker.exists()


def test_settings_are_not_filled_into_texts(sql: SparkSession, tmp_path: Path) -> None:
    path = stranger(tmp_path / "table", "default", "'${spark.app.name} ${env:HOME}'")
    BRINGING["append"](sql, path)
    BRINGING["update default"](sql, path)
    assert {row["s"] for row in deltalake_rows(path)} == {"${spark.app.name} ${env:HOME}"}


def test_a_function_that_a_user_registered_under_a_built_in_name_is_never_called(
    sql: SparkSession, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    path = stranger(tmp_path / "table", "default", "upper('a')")
    other = stranger(tmp_path / "other", "check", "id BETWEEN 0 AND 100")
    fresh = sql.newSession()
    fresh.udf.register("upper", lambda text: str(ran.write_text("upper")))
    fresh.udf.register("between", lambda a, b, c: bool(ran.write_text("between")))
    try:
        fresh.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    except Exception:
        pytest.skip("this Spark has no such setting")
    anabranch.install(fresh)
    try:
        for each in (path, other):
            with pytest.raises(errors.RuleRefused, match="not Spark's own"):
                BRINGING["append"](fresh, each)
        with pytest.raises(errors.RuleRefused, match="not Spark's own"):
            BRINGING["update default"](fresh, path)
        assert not ran.exists()
        fresh.conf.unset("spark.sql.functionResolution.sessionOrder")
        if sql.version >= "4.2":  # before, what a session registered always comes first
            BRINGING["append"](fresh, path)
    finally:
        anabranch.uninstall(fresh)
    assert not ran.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {t} ADD CONSTRAINT d CHECK ({hit} IS NULL)",
        "ALTER TABLE {t} ALTER COLUMN s SET DEFAULT {hit}",
        "CREATE TABLE {n} (a INT, s STRING DEFAULT {hit}) USING delta",
        "CREATE TABLE {n} (a INT, s STRING GENERATED ALWAYS AS ({hit})) USING delta",
        "CREATE TABLE {n} (a INT, CONSTRAINT c CHECK ({hit} IS NULL)) USING delta",
        "CREATE TABLE {n} (a INT) USING delta TBLPROPERTIES ('delta.constraints.c' = \"{hit} IS NULL\")",
    ],
)
def test_nobody_can_declare_such_a_rule(sql: SparkSession, tmp_path: Path, statement: str) -> None:
    path = stranger(tmp_path / "table", "check", "id > 0")
    with pytest.raises(errors.RuleRefused, match="reflect"):
        sql.sql(statement.format(t=f"delta.`{path}`", n=f"delta.`{tmp_path}/new`", hit=RUNS))
    assert not (tmp_path / "new").exists()
    assert len(anabranch.history(path)) == 1


def test_every_function_of_the_list_is_one_of_sparks_own(sql: SparkSession) -> None:
    from anabranch._protocol.rules.functions import CLOCKS, FUNCTIONS, SHAPES
    from anabranch._spark.sessions.functions import are_builtin

    of_the_grammar = {"try_cast", "timestampadd", "timestampdiff"}
    later = SHAPES | {"try_to_date"} if sql.version < "4.1" else frozenset()  # refused there, as unknown ones are
    names = sorted((FUNCTIONS | CLOCKS) - of_the_grammar - later)
    assert are_builtin(sql, names), [each for each in names if not are_builtin(sql, [each])]


def test_what_is_spelled_anew_means_what_the_text_meant(sql: SparkSession) -> None:
    from pyspark.sql import functions as F

    from anabranch._protocol.rules.rule_expressions import read

    rows = sql.sql("SELECT 3L AS a, 'it''s' AS s, array(1, 2) AS r, TIMESTAMP'2020-02-03 04:05:06' AS ts")
    columns = Struct((Field("a", "long"), Field("s", "string"), Field("r", "array"), Field("ts", "timestamp")))
    texts = [
        "a BETWEEN 1 AND 3 AND NOT (a = 2)",
        's = "it\'s"',
        "s LIKE ANY ('i%', 'x')",
        "position('t' IN s)",
        "a::string",
        "\n    date_trunc('MONTH', ts)::date",
        "timestampdiff(DAY, TIMESTAMP'2020-01-01 00:00:00', ts)",
        "exists(r, x -> x > 1)",
        "\n    aggregate(r, 0, (x, y) -> x + y)",
        "CASE a WHEN 3 THEN 'b' ELSE 'c' END",
        "-a + 2 * ~a % 5",
        "r[0]",
        "extract(YEAR FROM ts)",
        "\n    cast(a AS DECIMAL(5, 2))",
        "cast(r AS ARRAY<STRING>)",
        "ts + INTERVAL '1' DAY",
        "substring(s FROM 2 FOR 1)",
        "trim(BOTH 'i' FROM s)",
        "\n    overlay(s PLACING 'x' FROM 2)",
        "s RLIKE r'^\\w'",
        "'a' 'b'",
        "a IS NOT DISTINCT FROM 3",
        "(a, 1) IN ((3L, 1))",
        "date_add(DAY, 1, ts)",
        "\n    a << 2 | 1",
        "from_json('{\"q\": 1}', 'q INT').q",
        "1.5e1 + 2BD",
        "X'0A'",
        "NOT a IS NULL",
        "array_size(array_compact(r)) > 0",
    ]
    same = rows.select(*[F.expr(t).eqNullSafe(F.expr(read(t, columns, clock=False).text)) for t in texts]).first()
    assert [text for text, is_same in zip(texts, same, strict=True) if not is_same] == []
