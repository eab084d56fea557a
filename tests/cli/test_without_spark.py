"""Statements of the command line without Spark: they do and print what a session does and prints, or are refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app, statements
from anabranch._cli.arrow_rows import ArrowRows
from anabranch._cli.without_spark import FORMS, parse_statement
from anabranch._sql.registry import entry_of
from anabranch.errors import MissingJava, NeedsSpark, StatementNeedsSpark
from tests.support.patience import PATIENCE
from tests.support.tiers import is_short
from tests.test_storeys import IMPORT_WITHOUT_SPARK

ROWS = [{"id": i, "name": None if i == 3 else f"n{i}", "amount": Decimal(i) / 4} for i in range(4)]
ROOT = str(Path(anabranch.__file__).parent.parent)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the tables ``t`` and ``u`` in it."""
    monkeypatch.chdir(tmp_path)
    anabranch.append("t", pa.Table.from_pylist(ROWS, pa.schema(SCHEMA)))
    anabranch.append("u", pa.Table.from_pylist([{"id": 3, "name": "new"}, {"id": 9}], pa.schema(SCHEMA)))
    return tmp_path


SCHEMA = [("id", pa.int64()), ("name", pa.string()), ("amount", pa.decimal128(9, 2))]


def printed(text: str, *options: str) -> str:
    done = CliRunner().invoke(app, ["sql", "--without-spark", text, *(options or ("--csv",))])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def lines(text: str) -> list[str]:
    """The rows that are printed, one behind the other, with the columns' names first."""
    return printed(text).splitlines()


# -- what is read ------------------------------------------------------------------------------------------------------

READ = {
    "SELECT count(*) FROM delta.`t`": ["count(1)", "4"],
    "select Count(1) as n from Delta.`./t` where name is not null": ["n", "3"],
    "SELECT count(*) FROM delta.`t` LIMIT 0": ["count(1)"],
    "SELECT * FROM delta.`t` WHERE id >= 2": ["id,name,amount", "2,n2,0.50", "3,,0.75"],
    "SELECT * FROM delta.`t` WHERE id > 7": ["id,name,amount"],
    "SELECT x.NAME, x.id AS `a b`, id FROM `delta`.`t` AS x WHERE x.id = 1": ["NAME,a b,id", "n1,1,1"],
    "SELECT *, amount * 2 AS twice FROM delta.`t` LIMIT 1": ["id,name,amount,twice", "0,n0,0.00,0.00"],
    "SELECT 'a;b' AS s, NULL AS n, upper(name) u FROM delta.`t` WHERE id IN (1, 3)": ["s,n,u", "a;b,,N1", "a;b,,"],
    'SELECT id FROM delta.`t` /* ; */ WHERE name = "n1" -- AND id = 2': ["id", "1"],
    "SELECT id FROM delta.`t` VERSION AS OF 0 x WHERE x.id < 1;": ["id", "0"],
    "SELECT count(*) FROM delta.`t` FOR VERSION AS OF '0' WHERE id = 0": ["count(1)", "1"],
    "SELECT id FROM delta.`./t@v0` LIMIT 1": ["id", "0"],
    "SELECT min(id), Max(ID) AS m, count(*) FROM delta.`t`": ["min(id),m,count(1)", "0,3,4"],
    "SELECT min(x.name) a, max(name), count(name), count(1) n FROM delta.`t` x WHERE id > 1": [
        "a,max(name),count(name),n",
        "n2,n2,1,2",
    ],
    "SELECT max(upper(name)) AS u, min(amount * 2) AS d FROM delta.`t`": ["u,d", "N2,0.00"],
    "SELECT max(id), count(name) FROM delta.`t` WHERE id > 7": ["max(id),count(name)", ",0"],
    "SELECT min(id) FROM delta.`t` LIMIT 0": ["min(id)"],
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", READ)
def test_a_query_of_one_table_is_read(text: str) -> None:
    assert lines(text) == READ[text]


def test_extremes_are_ordered_as_spark_orders_them(folder: Path) -> None:
    floats = pa.array([None, -0.0, 0.0, float("nan"), None], pa.float32())
    texts, flags = ["", None, "Z", "a", "\u00e9"], [True, None, None, True, False]
    when = [dt.datetime(1850, 1, 1, tzinfo=dt.UTC), None, None, AT, None]
    rows = {"f": floats, "s": texts, "ok": flags, "at": pa.array(when, pa.timestamp("us", "UTC")), "1": [None] * 5}
    anabranch.append("x", pa.table(rows).set_column(4, "1", pa.nulls(5, pa.int32())))
    query = "SELECT min(f), max(f), min(s), max(s), min(ok), max(ok), min(at), max(`1`), count(`1`) FROM delta.`x`"
    assert lines(query)[1] == "-0.0,NaN,,\u00e9,False,True,1850-01-01 00:00:00.000,,0"
    assert lines("SELECT min(f), max(f) FROM delta.`x` WHERE at > '1900-01-01'")[1] == "NaN,NaN"
    lines("DELETE FROM delta.`x` WHERE s = 'a'")
    assert lines("SELECT max(f), max(at), count(*) FROM delta.`x`")[1] == "-0.0,1850-01-01 00:00:00.000,4"


def test_extremes_that_the_log_says_are_not_read(folder: Path) -> None:
    for file in folder.glob("t/**/*.parquet"):
        file.unlink()
    assert lines("SELECT count(*), min(id), max(id) FROM delta.`t`")[1] == "4,0,3"


def test_an_empty_table_has_its_columns(folder: Path) -> None:
    anabranch.append("e", pa.schema([("id", pa.int64())]).empty_table())
    assert lines("SELECT * FROM delta.`e`; SELECT count(*) FROM delta.`e`") == ["id", "count(1)", "0"]


def test_columns_have_the_names_that_are_mapped(folder: Path) -> None:
    rows = {"an id": [1, 2], "a`b": ["x", "y"]}
    anabranch.append("m", rows, properties={"delta.columnMapping.mode": "name"})
    assert lines("UPDATE delta.`m` SET `a``b` = 'z' WHERE `an id` = 2; SELECT * FROM delta.`m`")[-2:] == ["1,x", "2,z"]
    assert lines("SELECT m.`a``b` FROM delta.`m` m WHERE m.`an id` = 2") == ["a`b", "z"]


def test_a_path_may_hold_what_sql_quotes(folder: Path) -> None:
    shutil.move("t", "a`'b;-- c")
    assert lines("DELETE FROM delta.`./a``'b;-- c` WHERE id = 0; SELECT count(*) FROM delta.`./a``'b;-- c`")[-1] == "3"


def test_a_file_of_statements_may_begin_with_the_mark_of_its_encoding(folder: Path) -> None:
    (folder / "s.sql").write_text("SELECT count(*) AS n FROM delta.`t`;\n-- done;\n", encoding="utf-8-sig")
    done = CliRunner().invoke(app, ["sql", "--without-spark", "--csv", "--file", "s.sql"])
    assert done.stdout.splitlines() == ["n", "4"], done.exception


def test_a_path_without_a_letter_is_not_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "t")
    with pytest.raises(StatementNeedsSpark, match=r"the name `delta`\.``"):
        printed("DELETE FROM delta.``")
    assert anabranch.history(".")[0]["version"] == 0


@pytest.mark.usefixtures("folder")
def test_rows_are_printed_in_each_form() -> None:
    query = "SELECT id, name FROM delta.`t` WHERE id > 1"
    assert json.loads(printed(query, "--json")) == [{"id": 2, "name": "n2"}, {"id": 3, "name": None}]
    assert [line.split() for line in printed(query, "--wide").splitlines()[2:]] == [["2", "n2"], ["3", "NULL"]]
    assert printed(query, "--limit", "1").splitlines()[-1] == "and more; --limit shows more than 1 rows"


def test_rows_are_read_as_they_are_taken() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"x": [1, 2]})
        raise AssertionError("more was read")

    assert ArrowRows.of(["x"], batches()).take(2) == [(1,), (2,)]


# -- what is changed ---------------------------------------------------------------------------------------------------

MERGE = (
    "MERGE INTO delta.`t` AS a USING delta.`u` AS b ON a.id = b.id WHEN MATCHED AND b.name = 'new' THEN "
    "UPDATE SET a.name = b.name WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (b.id, 'x') "
    "WHEN NOT MATCHED BY SOURCE AND a.id = 0 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET amount = 9"
)
COUNTS = "num_affected_rows,num_updated_rows,num_deleted_rows,num_inserted_rows"
CHANGES = {
    "DELETE FROM delta.`t` WHERE id > 1": (["num_affected_rows", "2"], ["0,n0,0.00", "1,n1,0.25"]),
    "DELETE FROM delta.`t`": (["num_affected_rows", "4"], []),
    "DELETE FROM delta.`t` d WHERE d.name LIKE 'n%'": (["num_affected_rows", "3"], ["3,,0.75"]),
    "UPDATE delta.`t` AS x SET x.name = concat(x.name, ';'), amount = id WHERE x.id = 1": (
        ["num_affected_rows", "1"],
        ["0,n0,0.00", "1,n1;,1.00", "2,n2,0.50", "3,,0.75"],
    ),
    "UPDATE delta.`t` SET name = NULL": (["num_affected_rows", "4"], [f"{i},,{i / 4:.2f}" for i in range(4)]),
    'INSERT INTO delta.`t` VALUES (7, "it\'s", 1.5), (8, NULL, NULL)': (
        [],
        ["0,n0,0.00", "1,n1,0.25", "2,n2,0.50", "3,,0.75", "7,it's,1.50", "8,,"],
    ),
    "INSERT INTO TABLE delta.`t` (name, id) VALUES ('x', 5)": (
        [],
        ["0,n0,0.00", "1,n1,0.25", "2,n2,0.50", "3,,0.75", "5,x,"],
    ),
    MERGE: ([COUNTS, "5,3,1,1"], ["1,n1,9.00", "2,n2,9.00", "3,new,0.75", "9,x,"]),
    "MERGE INTO delta.`t` USING delta.`u` ON delta.`t`.id = delta.`u`.id WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *": ([COUNTS, "2,1,0,1"], ["0,n0,0.00", "1,n1,0.25", "2,n2,0.50", "3,new,", "9,,"]),
    "MERGE INTO delta.`t` t USING (SELECT id, upper(v.name) AS name FROM delta.`u` v WHERE v.id < 9) u ON t.id = u.id "
    "WHEN MATCHED THEN UPDATE SET name = u.name WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)": (
        [COUNTS, "1,1,0,0"],
        ["0,n0,0.00", "1,n1,0.25", "2,n2,0.50", "3,NEW,0.75"],
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", CHANGES)
def test_a_change_of_rows_prints_what_it_did(text: str) -> None:
    said, rows = CHANGES[text]
    assert lines(text) == said
    assert sorted(lines("SELECT * FROM delta.`t`")[1:]) == rows


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_maintenance_is_done() -> None:
    lines("DELETE FROM delta.`t` WHERE id = 0")
    (optimized,) = json.loads(printed("OPTIMIZE delta.`t`", "--json"))
    assert optimized["metrics"]["deletionVectorStats"]["numDeletionVectorRowsRemoved"] == 1
    assert lines("VACUUM delta.`t` RETAIN 168 HOURS")[1].endswith("/t")
    assert lines("RESTORE TABLE delta.`t` TO VERSION AS OF 0; SELECT count(*) FROM delta.`t`")[-1] == "4"
    (newest,) = json.loads(printed("DESC HISTORY delta.`t` LIMIT 1", "--json"))
    assert (newest["version"], newest["operation"]) == (5, "RESTORE")
    assert json.loads(printed("DESCRIBE DETAIL delta.`t`", "--json"))[0]["numFiles"] == 1


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = {
    "SELECT name, count(*) FROM delta.`t` GROUP BY name": "GROUP BY",
    "SELECT * FROM delta.`t` ORDER BY id": "ORDER BY",
    "SELECT * FROM delta.`t`, delta.`u`": "','",
    "SELECT * FROM delta.`t` JOIN delta.`u` USING (id)": "JOIN",
    "SELECT id FROM delta.`t` UNION SELECT id FROM delta.`u`": "a subquery",
    "SELECT DISTINCT id FROM delta.`t`": "SELECT DISTINCT",
    "SELECT ALL id FROM delta.`t`": "SELECT ALL",
    "SELECT NOT id FROM delta.`t`": "NOT id",
    "SELECT /*+ BROADCAST(t) */ id FROM delta.`t`": "BROADCAST",
    "SELECT id FROM delta.`t` TABLESAMPLE (1 ROWS)": "TABLESAMPLE",
    "SELECT id FROM delta.`t` |> LIMIT 1": r"'\|>'",
    "SELECT * EXCEPT (id) FROM delta.`t`": "EXCEPT",
    "SELECT sum(id) AS m FROM delta.`t`": r"the value sum\(id\) needs Spark \(`sum`",
    "SELECT max(id) + 1 AS m FROM delta.`t`": r"the value max\(id\) \+ 1 needs Spark \(`max`",
    "SELECT count(*) AS n, 1 AS one FROM delta.`t`": "an aggregate beside values of single rows",
    "SELECT *, max(id) FROM delta.`t`": "an aggregate beside values of single rows",
    "SELECT count(id, name) FROM delta.`t`": "count of several values",
    "SELECT count(DISTINCT id) AS n FROM delta.`t`": "the value DISTINCT id",
    "SELECT max(id + 1) FROM delta.`t`": "without a name",
    "SELECT max(NULL) AS m FROM delta.`t`": "max of NULL",
    "SELECT id + 1 FROM delta.`t`": "without a name",
    "SELECT NULL FROM delta.`t`": "without a name",
    "SELECT rank() OVER (ORDER BY id) AS r FROM delta.`t`": "a window",
    "SELECT 1": "a query without FROM",
    "SELECT id, _metadata FROM delta.`t`": "the column _metadata",
    "SELECT * FROM delta.`t` WHERE id IN (SELECT id FROM delta.`u`)": "a subquery",
    "SELECT * FROM (SELECT 1)": "a subquery",
    "SELECT * FROM table_changes('./t', 0)": "a function in FROM",
    "SELECT * FROM delta.`t` WHERE soundex(name) = 'x'": r"the condition soundex\(name\) = 'x'",
    "SELECT * FROM delta.`t` LIMIT ALL": "LIMIT",
    "SELECT * FROM delta.`t` TIMESTAMP AS OF current_timestamp()": "TIMESTAMP AS OF",
    "SELECT * FROM delta.`t` WHERE id = ${one}": "session",
    "SELECT * FROM flights": "the name `flights` needs Spark",
    "SELECT * FROM delta.`none`": "the name `delta`.`none`",
    "DELETE FROM sales.flights WHERE id = 1": "the name `sales`.`flights`",
    "VACUUM flights": "the name `flights`",
    "DELETE FROM delta.`t` WHERE id = (SELECT max(id) FROM delta.`u`)": "the subquery",
    "DELETE FROM delta.`t` id WHERE id = 1": "the alias id",
    "UPDATE delta.`t` SET amount = rand()": "rand",
    "UPDATE delta.`t` SET amount = DEFAULT": "DEFAULT",
    "INSERT INTO delta.`t` SELECT * FROM delta.`u`": "this INSERT",
    "INSERT INTO delta.`t` VALUES ('no number', 1, 2)": "this INSERT",
    "INSERT INTO delta.`t` VALUES (1)": "this INSERT",
    "INSERT INTO delta.`t` REPLACE WHERE id = 1 VALUES (1, 'x', 2)": "REPLACE WHERE",
    "INSERT INTO delta.`t` REPLACE USING (id) VALUES (1, 'x', 2)": "REPLACE USING",
    "INSERT OVERWRITE delta.`t` VALUES (1, 'x', 2)": "INSERT OVERWRITE",
    "MERGE INTO delta.`t` t USING (SELECT 1 AS id) u ON t.id = u.id WHEN MATCHED THEN DELETE": "source of this MERGE",
    "MERGE INTO delta.`t` t USING delta.`t` u ON t.id = u.id WHEN MATCHED THEN DELETE": "its own table",
    "MERGE INTO delta.`t` t USING delta.`u` u ON true WHEN MATCHED THEN DELETE": "MERGE ON true",
    "MERGE WITH SCHEMA EVOLUTION INTO delta.`t` t USING delta.`u` u ON t.id = u.id WHEN MATCHED THEN DELETE": "SCHEMA",
    "CREATE TABLE delta.`./new` (id INT)": "CREATE TABLE",
    "WITH x AS (SELECT 1) SELECT * FROM x": "WITH",
    "SHOW TABLES": "SHOW TABLES",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", REFUSED)
def test_what_takes_spark_is_refused_by_name(text: str) -> None:
    with pytest.raises(StatementNeedsSpark, match=f"(?s){REFUSED[text]}.*needs Spark|{REFUSED[text]}") as raised:
        printed(text)
    assert "--without-spark" in raised.value.message
    assert anabranch.history("t")[0]["version"] == 0


def test_a_table_is_its_own_source_under_another_path_too(folder: Path) -> None:
    (folder / "link").symlink_to("t")
    with pytest.raises(StatementNeedsSpark, match="its own table"):
        printed("MERGE INTO delta.`t` t USING delta.`link` u ON t.id = u.id WHEN MATCHED THEN DELETE")
    assert anabranch.history("t")[0]["version"] == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("later", ["SELECT sum(id) AS m FROM delta.`t`", "SHOW TABLES", "DELETE FROM flights"])
def test_no_statement_runs_before_one_that_takes_spark(later: str) -> None:
    with pytest.raises(StatementNeedsSpark):
        printed(f"DELETE FROM delta.`t`; {later}")
    assert anabranch.history("t")[0]["version"] == 0


@pytest.mark.usefixtures("folder")
def test_a_statement_may_need_what_one_before_it_does() -> None:
    anabranch.table("t").overwrite({"other": [1]}, schema_change="overwrite")
    text = "RESTORE TABLE delta.`t` TO VERSION AS OF 0; SELECT count(*) AS n FROM delta.`t` WHERE name = 'n1'"
    assert lines(text)[-2:] == ["n", "1"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT * FROM delta.`./none`", "DELTA_TABLE_NOT_FOUND"),
        ("SELECT none FROM delta.`t`", "INVALID_CONDITION"),
        ("SELECT * FROM delta.`t` WHERE none = 1", "INVALID_CONDITION"),
        ("SELECT * FROM delta.`t` WHERE", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM delta.`t` VERSION AS OF 7", "DELTA_VERSION_NOT_FOUND"),
        ("DELETE FROM delta.`./t@v0`", "INVALID_OPTION"),
        ("UPDATE delta.`t` SET none = 1", "UNKNOWN_COLUMN"),
        ("SELECT max(none) FROM delta.`t`", "INVALID_CONDITION"),
        ("SELECT max() FROM delta.`t`", "PARSE_SYNTAX_ERROR"),
        ("SELECT count(", "PARSE_SYNTAX_ERROR"),
        ("SELECT id) FROM delta.`t`", "PARSE_SYNTAX_ERROR"),
        ("SELECT id FROM delta.`t` WHERE id = 1)", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM delta.`t` LIMIT", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM delta.`t` LIMIT 2147483648", "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM delta.`t` LIMIT 99999999999999999999", "PARSE_SYNTAX_ERROR"),
        ("SELEC * FROM delta.`t`", "PARSE_SYNTAX_ERROR"),
        ("DELETE FROM delta.`t`; DELTE FROM delta.`t`", "PARSE_SYNTAX_ERROR"),
        ("'DELETE'", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_a_mistake_is_told_as_with_spark(text: str, condition: str) -> None:
    with pytest.raises(anabranch.errors.AnabranchError) as raised:
        printed(text)
    assert raised.value.condition == condition
    assert anabranch.history("t")[0]["version"] == 0


def test_each_form_is_a_statement_that_a_session_runs() -> None:
    for form in FORMS[1:]:
        assert entry_of(form.value.__new__(form.value)).grammar is form.grammar
    with pytest.raises(NeedsSpark, match="ALTER TABLE"):
        parse_statement("ALTER TABLE delta.`/t` ADD COLUMNS (a INT)")


# -- where there is no Spark -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_pyspark_statements_run_all_the_same(folder: Path) -> None:
    code = "from anabranch._cli import main\nmain()\n"
    block = IMPORT_WITHOUT_SPARK.replace("for module in sys.argv[1:]:\n    importlib.import_module(module)\n", code)

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", block, "sql", *words]
        environment = {**os.environ, "PYTHONPATH": ROOT}
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    done = said(f"{MERGE}; SELECT count(*) FROM delta.`t`", "--csv")
    assert (done.stdout.splitlines(), done.stderr) == ([COUNTS, "5,3,1,1", "count(1)", "4"], "")
    refused = said("SELECT sum(id) AS m FROM delta.`t`")
    assert refused.returncode == 2
    assert "pip install 'anabranch[spark]'" in refused.stderr


@pytest.mark.usefixtures("folder")
def test_without_java_statements_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_: str) -> Any:
        raise MissingJava(reason="there is none.", instead="Install one.")

    monkeypatch.setattr(statements, "get_or_start_session", started)
    done = CliRunner().invoke(app, ["sql", "SELECT count(*) AS n FROM delta.`t`", "--csv"])
    assert done.stdout.splitlines() == ["n", "4"], done.exception
    refused = CliRunner().invoke(app, ["sql", "SELECT DISTINCT id FROM delta.`t`"]).exception
    assert isinstance(refused, StatementNeedsSpark)
    assert refused.message.splitlines()[0].endswith("Java 17 or newer: there is none. Install one.")


# -- the same as in a session ------------------------------------------------------------------------------------------

AT = dt.datetime(2024, 1, 31, 12, 30, 0, 5, tzinfo=dt.UTC)
MEMBERS = pa.struct([("at", pa.timestamp("us", "UTC")), ("n", pa.int32())])
KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "byte": ([1, None], pa.int8()),
    "short": ([-2, None], pa.int16()),
    "int": ([3, None], pa.int32()),
    "long": ([1 << 60, None], pa.int64()),
    "single": ([0.1, float("nan")], pa.float32()),
    "double": ([float("-inf"), 1e300], pa.float64()),
    "price": ([Decimal("1.50"), None], pa.decimal128(9, 2)),
    "wide": ([Decimal(10**37 + 1), None], pa.decimal128(38, 0)),
    "flag": ([True, None], pa.bool_()),
    "text": (['a,"b"\né', None], pa.string()),
    "bytes": ([b"\x00\xff", b""], pa.binary()),
    "day": ([dt.date(1, 1, 1), None], pa.date32()),
    "moment": ([AT, None], pa.timestamp("us", "UTC")),
    "local": ([dt.datetime(1969, 12, 31, 23, 59, 59, 999000), None], pa.timestamp("us")),
    "list": ([[{"at": AT, "n": None}, None], []], pa.list_(MEMBERS)),
    "map": ([[("k", AT)], []], pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
    "keyed": ([[({"at": AT, "n": 1}, Decimal("1.0"))], None], pa.map_(MEMBERS, pa.decimal128(5, 1))),
    "days": ([[(dt.date(2024, 1, 1), b"x")], None], pa.map_(pa.date32(), pa.binary())),
    "pair": ([{"n": 1.5, "in": {"d": dt.date(2024, 2, 29)}}, None], pa.struct([
        ("n", pa.float64()), ("in", pa.struct([("d", pa.date32())]))
    ])),
}  # fmt: skip
SAME = (
    "SELECT * FROM delta.`kinds`",
    "SELECT count(*) FROM delta.`kinds`",
    "SELECT DAY, pair.n, k.pair.in.d, map AS m, keyed k FROM delta.`kinds` k WHERE byte = 1",
    "SELECT byte + 1 AS a, price * 2 AS p, upper(text) AS u, int / 2 AS h, NULL AS n, 1.50 AS d, long % 7 AS r, "
    "CASE WHEN flag THEN single END AS s FROM delta.`kinds`",
    "SELECT min(byte), max(SHORT), min(k.single), max(single), max(double), min(price), max(wide) FROM delta.`kinds` k",
    "SELECT count(*), count(text) c, min(flag), max(text), max(day), min(moment), max(local) FROM delta.`kinds`",
    "SELECT min(byte), max(single), count(flag), max(upper(text)) AS u FROM delta.`kinds` WHERE byte = 7",
    "DESCRIBE DETAIL delta.`kinds`",
    "VACUUM delta.`kinds` DRY RUN",
    *CHANGES,
    "UPDATE delta.`kinds` SET byte = 7, text = upper(text) WHERE flag; SELECT * FROM delta.`kinds` WHERE byte = 7",
    "RESTORE TABLE delta.`t` TO VERSION AS OF 0",
    "SELECT id AS x, name x FROM delta.`t` LIMIT 0",
)


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_printed_is_what_a_session_prints(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    fresh, here = tmp_path / "fresh", tmp_path / "here"
    fresh.mkdir()
    arrays = {name: pa.array(values, kind) for name, (values, kind) in KINDS.items()}
    anabranch.append(str(fresh / "kinds"), pa.table(arrays))
    anabranch.append(str(fresh / "t"), pa.Table.from_pylist(ROWS, pa.schema(SCHEMA)))
    anabranch.append(str(fresh / "u"), pa.Table.from_pylist([{"id": 3, "name": "new"}, {"id": 9}], pa.schema(SCHEMA)))

    def said(text: str, form: str, *options: str) -> str:
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(fresh, here)
        monkeypatch.chdir(here)
        done = CliRunner().invoke(app, ["sql", text, form, *options])
        return done.stdout if done.exception is None else f"{done.exception}"

    try:
        forms = ("--csv", "--json", "--wide")
        for number, text in enumerate(SAME):
            for form in forms if number == 0 or not is_short() else [forms[number % len(forms)]]:
                assert said(text, form, "--without-spark") == said(text, form), text
        history = "DESCRIBE HISTORY delta.`kinds`"  # the maps of a session have no order
        assert json.loads(said(history, "--json", "--without-spark")) == json.loads(said(history, "--json"))
        optimize = "DELETE FROM delta.`t` WHERE id = 1; OPTIMIZE delta.`t`"
        row, same = (
            json.loads(said(optimize, "--json", *how).splitlines()[1])[0] for how in (("--without-spark",), ())
        )
        assert (row["path"], row["metrics"].keys()) == (same["path"], same["metrics"].keys())
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        monkeypatch.undo()
        time.tzset()
