"""SQL text on tables with names: every statement that a path takes, and what only a name has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors
from anabranch._catalog import entries, named_tables, view_entries
from anabranch._catalog.delta_format import run_in_hidden_session
from anabranch._catalog.entry import Entry
from anabranch.commands.opening import open_log
from anabranch.testing import at_phase
from tests.support.worlds import World

pytestmark = pytest.mark.spark


class Catalog:
    """A schema of its own, in which statements run; ``{s}`` is its name."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.spark, self.schema = spark, schema

    def __call__(self, text: str, args: Any = None) -> Any:
        return anabranch.sql(self.spark, text.replace("{s}", self.schema), args)

    def rows(self, text: str, args: Any = None) -> list[Any]:
        return sorted(tuple(row) for row in self(text, args).collect())

    def append(self, name: str, **row: Any) -> None:
        """Append a row without Spark."""
        anabranch.append(str(self.path(name)), [row])

    def held(self, name: str) -> list[Any]:
        """The rows of a table, sorted, read without Spark: for where what Spark shows is not the point."""
        return [tuple(row.values()) for row in World(str(self.path(name))).rows()]

    def entry(self, name: str) -> Entry | None:
        return entries.find(self.spark, (self.schema, name))

    def path(self, name: str) -> Path:
        found = self.entry(name)
        assert found is not None
        return Path(found.location.removeprefix("file://").removeprefix("file:"))


def whole(name: str) -> str:
    return entries.name_to_sql(("spark_catalog", *name.split(".")))


@pytest.fixture
def run(spark: SparkSession) -> Iterator[Catalog]:
    anabranch.uninstall(spark)
    schema = f"s_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {schema}")
    yield Catalog(spark, schema)
    spark.sql(f"DROP DATABASE {schema} CASCADE")


def test_every_statement_of_a_path_runs_on_a_name(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT, s STRING COMMENT 'c') USING delta PARTITIONED BY (s) COMMENT 'hello'")
    run("INSERT INTO {s}.t VALUES (1, 'a'), (2, 'b'), (3, 'b')")
    assert run("UPDATE {s}.t AS t SET id = t.id + 10 WHERE t.s = :s", {"s": "a"}).first()[0] == 1
    assert run("DELETE FROM {s}.t WHERE {s}.t.id = 2").first()[0] == 1
    run("CREATE TABLE {s}.u (id BIGINT, s STRING) USING delta")
    run.append("u", id=3, s="B")
    run.append("u", id=11, s="A")
    run("MERGE INTO {s}.t USING {s}.u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert run.rows("SELECT t.id, u.s FROM {s}.t JOIN {s}.u USING (id) WHERE t.id > 0") == [(3, "B"), (11, "A")]
    assert run.held("t") == [(3, "B"), (11, "A")]
    for text in ("OPTIMIZE {s}.t", "VACUUM {s}.t", "RESTORE TABLE {s}.t TO VERSION AS OF 1", "DESCRIBE HISTORY {s}.t"):
        run(text)
    assert run.rows("SELECT * FROM spark_catalog.{s}.t WHERE t.id > 0") == [(1, "a"), (2, "b"), (3, "b")]
    assert anabranch.read(f"{run.schema}.t", where="id = 1", spark=run.spark).toArrow().num_rows == 1


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_references.py::test_tables_whose_names_end_alike_are_told_apart_by_their_whole_names",
    "tests/sql/grammar/test_references.py::test_what_could_be_another_tables_column_is_left_for_spark_to_refuse",
    "tests/sql/test_sql.py::test_columns_are_qualified_by_the_whole_name_of_their_table",
)
def test_tables_whose_names_end_alike_are_told_apart_by_their_schemas(run: Catalog) -> None:
    run.spark.sql(f"CREATE DATABASE {run.schema}_2")
    try:
        run("CREATE TABLE {s}.t USING delta AS SELECT id, concat('a', id) AS s FROM range(4)")
        run("CREATE TABLE {s}_2.t USING delta AS SELECT id, concat('b', id) AS s FROM range(2, 6)")
        joined = "SELECT {s}.t.s, {s}_2.t.s, {s}.t.id + 1 FROM (({s}.t)) JOIN {s}_2.t ON {s}.t.id = {s}_2.t.id"
        assert run.rows(joined + " WHERE {s}.t.id > 2") == [("a3", "b3", 4)]
        assert run(joined).columns == ["s", "s", "(id + 1)"]
        for ambiguous in ("t.id", "id"):
            with pytest.raises(errors.SqlAnalysisError, match="AMBIGUOUS_REFERENCE"):
                run(f"SELECT {ambiguous} FROM {{s}}.t JOIN {{s}}_2.t ON true")
        with pytest.raises(errors.SqlAnalysisError):
            run("SELECT t.id FROM {s}.t JOIN {s}_2.t ON {s}.t.id = {s}_2.t.id")
        there = "EXISTS (SELECT 1 FROM {s}_2.t WHERE {s}_2.t.id = {s}.t.id AND {s}_2.t.s = 'b3')"
        assert run.rows("SELECT {s}.t.id FROM {s}.t WHERE " + there) == [(3,)]
        assert run("DELETE FROM {s}.t WHERE " + there).first()[0] == 1
        assert run("UPDATE {s}.t SET {s}.t.s = upper({s}.t.s) WHERE {s}.t.id NOT IN (SELECT {s}_2.t.id FROM {s}_2.t)")
        run("""MERGE INTO {s}.t USING {s}_2.t ON {s}.t.id = {s}_2.t.id
            WHEN MATCHED AND {s}_2.t.s = 'b2' THEN UPDATE SET {s}.t.s = concat({s}.t.s, {s}_2.t.s)
            WHEN NOT MATCHED AND {s}_2.t.id < 5 THEN INSERT (id, s) VALUES ({s}_2.t.id, {s}_2.t.s)""")
        assert run.rows("SELECT * FROM {s}.t") == [(0, "A0"), (1, "A1"), (2, "a2b2"), (3, "b3"), (4, "b4")]
        run("INSERT INTO {s}.t REPLACE WHERE {s}.t.id < 5 SELECT {s}_2.t.* FROM {s}_2.t WHERE {s}_2.t.id < 3")
        assert run.rows("SELECT * FROM {s}.t") == [(2, "b2")]
    finally:
        run.spark.sql(f"DROP DATABASE {run.schema}_2 CASCADE")


def test_altering_a_table_brings_an_entry_that_is_a_view_up_to_date(
    run: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "is_known", lambda spark: False)
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    run("ALTER TABLE {s}.t ADD COLUMN day DATE COMMENT 'new'")
    shown = [tuple(row) for row in run.spark.sql(f"DESCRIBE {run.schema}.t").collect()]
    assert shown == [("id", "bigint", None), ("day", "date", "new")]


def test_dropping_a_managed_table_takes_its_files_and_an_external_one_keeps_them(run: Catalog, tmp_path: Path) -> None:
    run("CREATE TABLE {s}.m (id INT) USING delta")
    run(f"CREATE TABLE {{s}}.e (id INT) USING delta LOCATION '{tmp_path}/e'")
    managed = run.path("m")
    assert (managed / "_delta_log").is_dir()
    run("DROP TABLE {s}.m")
    run("DROP TABLE {s}.e")
    assert run.entry("m") is None
    assert run.entry("e") is None
    assert not managed.exists()
    assert len(anabranch.history(tmp_path / "e")) == 1
    run("DROP TABLE IF EXISTS {s}.m")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("DROP TABLE {s}.m")


def test_a_table_that_is_there_gets_a_name_and_must_be_as_the_statement_says(run: Catalog, tmp_path: Path) -> None:
    anabranch.append(tmp_path / "t", [{"id": 1}])
    run(f"CREATE TABLE {{s}}.a USING delta LOCATION '{tmp_path}/t'")
    run(f"CREATE TABLE {{s}}.b (id BIGINT) USING delta LOCATION 'file://{tmp_path}/t'")
    with pytest.raises(errors.InvalidOption):
        run(f"CREATE TABLE {{s}}.c (id STRING) USING delta LOCATION '{tmp_path}/t'")
    assert run.entry("c") is None
    assert run.rows("SELECT a.id FROM {s}.a JOIN {s}.b USING (id)") == [(1,)]
    assert len(anabranch.history(tmp_path / "t")) == 1


@pytest.mark.exhaustive("tests/sql/test_names.py::test_a_table_gets_a_name_in_another_schema")
def test_renaming_keeps_the_rows_and_frees_the_name(run: Catalog) -> None:
    run("CREATE TABLE {s}.t USING delta AS SELECT 1 AS id")
    run("ALTER TABLE {s}.t RENAME TO {s}.old")
    run("CREATE TABLE {s}.t USING delta AS SELECT 2 AS id")
    assert run.rows("SELECT t.id, old.id FROM {s}.t, {s}.old") == [(2, 1)]
    with pytest.raises(errors.NameTaken):
        run("ALTER TABLE {s}.t RENAME TO old")
    run("DROP TABLE {s}.old")
    assert run.rows("SELECT * FROM {s}.t") == [(2,)]


def test_a_name_is_made_once_unless_the_statement_says_otherwise(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    run.append("t", id=1)
    for text in ("CREATE TABLE {s}.t (x INT) USING delta", "CREATE TABLE {s}.t USING delta AS SELECT 2 AS id"):
        with pytest.raises(errors.NameTaken) as error:
            run(text)
        assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    run("CREATE TABLE IF NOT EXISTS {s}.t (x INT) USING delta")
    run("CREATE OR REPLACE TABLE {s}.t USING delta AS SELECT id + 1 AS id, 'x' AS s FROM {s}.t")
    assert run.held("t") == [(2, "x")]
    assert len(anabranch.history(run.path("t"))) == 3
    with pytest.raises(errors.UnknownTable):
        run("REPLACE TABLE {s}.none (x INT) USING delta")
    with pytest.raises(errors.UnknownSchema):
        run("CREATE TABLE {s}_none.t (x INT) USING delta")


def test_like_and_clone_make_tables_with_names(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    run.append("t", id=1)
    run("CREATE TABLE {s}.l LIKE {s}.t")
    run("CREATE TABLE {s}.c SHALLOW CLONE {s}.t")
    run("CREATE OR REPLACE TABLE {s}.d DEEP CLONE {s}.t")
    assert [run.held(name) for name in "lcd"] == [[], [(1,)], [(1,)]]


def test_a_temporary_view_and_a_table_of_sparks_keep_their_names(run: Catalog) -> None:
    """Where a temporary view has a table's name, a query reads the view, and CREATE makes the table."""
    spark, name = run.spark, f"v_{uuid.uuid4().hex[:8]}"
    spark.range(3).createOrReplaceTempView(name)
    run(f"CREATE TABLE {name} USING delta AS SELECT id + 10 AS id FROM {name}")
    both = f"SELECT 'view', id FROM {name} UNION ALL SELECT 'table', id FROM default.{name}"
    assert run.rows(both) == [*(("table", i) for i in (10, 11, 12)), *(("view", i) for i in (0, 1, 2))]
    run(f"DROP TABLE default.{name}")
    run("CREATE TABLE {s}.p USING parquet AS SELECT 1 AS id")
    assert run.rows("SELECT * FROM {s}.p") == [(1,)]
    with pytest.raises(errors.NameTaken):
        run("CREATE OR REPLACE TABLE {s}.p (id INT) USING delta")
    with pytest.raises(errors.UnknownTable):
        run("OPTIMIZE {s}.p")
    spark.catalog.dropTempView(name)


def test_an_unknown_name_is_sparks_error(run: Catalog) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("SELECT * FROM {s}.none")
    with pytest.raises(errors.UnknownTable):
        run("VACUUM {s}.none")


def test_a_path_has_no_name_to_be_dropped_or_changed(run: Catalog, tmp_path: Path) -> None:
    anabranch.append(tmp_path / "t", [{"id": 1}])
    with pytest.raises(errors.InvalidOption, match="the files would stay"):
        run(f"DROP TABLE delta.`{tmp_path}/t`")
    with pytest.raises(errors.InvalidOption):
        run(f"ALTER TABLE delta.`{tmp_path}/t` RENAME TO x")
    assert len(anabranch.history(tmp_path / "t")) == 1


def test_of_two_that_make_one_managed_table_one_is_told_that_the_name_is_taken(run: Catalog) -> None:
    """No one's files are removed by the other's failure, and none are left without a name."""
    spark = anabranch.install(run.spark)
    name = f"{run.schema}.t"

    def append(n: int) -> None:
        spark.range(n, n + 1).write.format("delta").mode("append").saveAsTable(name)

    with pytest.raises(errors.NameTaken), at_phase("staged", lambda: append(1)):
        append(0)
    assert run.rows("SELECT * FROM {s}.t") == [(1,)]
    assert not (run.path("t").parent / "t").exists()

    other = f"CREATE TABLE {run.schema}.u (id INT) USING parquet LOCATION '{run.path('t')}_elsewhere'"
    with at_phase("committed", lambda: entries.exact_sql(spark, other)), pytest.raises(errors.NameTaken):
        run("CREATE TABLE {s}.u USING delta AS SELECT 1 AS id")
    assert not (run.path("t").parent / "u").exists()
    assert run.entry("u") is None


def test_a_name_that_has_just_become_ours_is_known_at_once(run: Catalog) -> None:
    spark = anabranch.install(run.spark)
    spark.sql(f"CREATE TABLE {run.schema}.t (id INT) USING parquet")
    assert run.rows("SELECT * FROM {s}.t") == []
    spark.sql(f"DROP TABLE {run.schema}.t")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("SELECT * FROM {s}.t")
    spark.range(1).write.format("delta").saveAsTable(f"{run.schema}.t")
    assert run.rows("SELECT * FROM {s}.t") == [(0,)]


def test_a_table_gets_a_name_in_another_schema(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT) USING delta COMMENT 'hello'")
    run.append("t", id=1)
    path, other = run.path("t"), f"{run.schema}_2"
    with pytest.raises(errors.UnknownSchema):
        run(f"ALTER TABLE {{s}}.t RENAME TO {other}.u")
    run(f"CREATE DATABASE {other}")
    run(f"ALTER TABLE {{s}}.t RENAME TO {other}.u")
    assert run.entry("t") is None
    assert run.rows(f"SELECT * FROM {other}.u") == [(1,)]
    run("CREATE TABLE {s}.t (x INT) USING delta")
    with pytest.raises(errors.NameTaken):
        run(f"ALTER TABLE {{s}}.t RENAME TO {other}.u")
    run(f"DROP TABLE {other}.u")
    assert not path.exists()
    run(f"DROP DATABASE {other}")


class Crash(BaseException):
    """The end of a process."""


@pytest.mark.parametrize(
    ("step", "after", "both"),
    [("mark_rename", 1, False), ("record", 1, True), ("take", 0, True), ("take", 1, False), ("mark_rename", 2, False)],
)
def test_a_rename_into_another_schema_may_end_at_any_step(
    run: Catalog, monkeypatch: pytest.MonkeyPatch, step: str, after: int, both: bool
) -> None:
    """Before its first step nothing has changed. Whatever is left, no DROP takes what another name still shows."""
    other = f"{run.schema}_2"
    run(f"CREATE DATABASE {other}")
    old, new = f"{run.schema}.t", f"{other}.u"
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    run.append("t", id=1)
    path, calls = run.path("t"), [0]
    plain = getattr(entries, step)

    def crashing(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if not after:
            raise Crash
        found = plain(*args, **named)
        if calls[0] == after:
            raise Crash
        return found

    monkeypatch.setattr(entries, step, crashing)
    with pytest.raises(Crash):
        run(f"ALTER TABLE {old} RENAME TO {new}")
    monkeypatch.setattr(entries, step, plain)
    left = [name for name in (old, new) if entries.find(run.spark, tuple(name.split("."))) is not None]
    assert left == [old, new] if both else len(left) == 1
    for name in left:
        assert run.rows(f"SELECT * FROM {name}") == [(1,)]
    if both:
        for name in left:
            run(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
            run(f"ALTER TABLE {name} ADD COLUMN c_{name[-1]} INT")  # the entry is written anew, and still knows
            for statement in (f"DROP TABLE {name}", f"ALTER TABLE {name} RENAME TO {run.schema}.third"):
                with pytest.raises(errors.RenameUnfinished) as error:
                    run(statement)
                assert (error.value.name, error.value.other) == (whole(old), whole(new))
        run_in_hidden_session(
            run.spark, f"ALTER TABLE {new} RENAME TO {other}.v"
        )  # by a session that knows of no marks
        with pytest.raises(errors.RenameUnfinished):
            run(f"DROP TABLE {old}")
        run_in_hidden_session(run.spark, f"ALTER TABLE {other}.v RENAME TO {new}")
        run(f"ALTER TABLE {old} RENAME TO {new}")
        left = [new]
        assert run.entry("t") is None
        assert len(run.rows(f"SELECT * FROM {new}")) == 1
    assert path.exists()
    run(f"DROP TABLE {left[0]}")
    assert not path.exists()
    run(f"DROP DATABASE {other}")


def test_of_several_that_take_a_name_away_one_decides_what_becomes_of_the_files(
    run: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, plain = f"{run.schema}_2", entries.record
    run(f"CREATE DATABASE {other}")

    def racing(statement: str) -> Any:
        """What writes the new entry, and then what the other one does, who had begun before."""

        def record(*args: Any, **named: Any) -> None:
            monkeypatch.setattr(entries, "record", plain)
            plain(*args, **named)
            entry = replace(args[1], name=("spark_catalog", run.schema, "t"), came_from=None)
            named_tables.drop(run.spark, entry) if statement == "drop" else named_tables.move(
                run.spark, entry, ("spark_catalog", other, "w")
            )

        return record

    for statement, left in (("drop", []), ("rename", ["w"])):
        run("CREATE TABLE {s}.t (id BIGINT) USING delta")
        run.append("t", id=1)
        path = run.path("t")
        monkeypatch.setattr(entries, "record", racing(statement))
        with pytest.raises(errors.UnknownTable):
            run(f"ALTER TABLE {{s}}.t RENAME TO {other}.u")
        shown = run.spark.sql(f"SHOW TABLES IN {other}").where("NOT isTemporary").collect()
        assert [row["tableName"] for row in shown] == left
        assert path.exists() == bool(left)
    assert run.rows(f"SELECT * FROM {other}.w") == [(1,)]
    run(f"DROP TABLE {other}.w")
    assert not path.exists()
    run(f"DROP DATABASE {other}")


def test_truncate_takes_every_row(run: Catalog, tmp_path: Path) -> None:
    for name in "tp":
        anabranch.append(tmp_path / name, [{"id": i} for i in range(3)])
    run(f"CREATE TABLE {{s}}.t USING delta LOCATION '{tmp_path}/t'")
    for name, path in (("{s}.t", f"{tmp_path}/t"), (f"delta.`{tmp_path}/p`", f"{tmp_path}/p")):
        assert run(f"TRUNCATE TABLE {name}").collect() == []
        assert run(f"DESCRIBE HISTORY {name} LIMIT 1").first()["operation"] == "TRUNCATE"
        assert World(path).rows() == []
    assert run.rows("SELECT count(*) FROM {s}.t VERSION AS OF 0") == [(3,)]


def test_rows_at_hand_are_appended_to_a_table_by_its_name(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    assert anabranch.append(f"{run.schema}.t", [{"id": 7}], spark=run.spark) == 1
    assert run.rows("SELECT * FROM {s}.t") == [(7,)]


def test_keys_of_a_table_with_a_name_are_shown_and_dropped(run: Catalog) -> None:
    columns = "id BIGINT, c INT, CONSTRAINT pk PRIMARY KEY (id), FOREIGN KEY (c) REFERENCES {s}.u"
    run(f"CREATE TABLE {{s}}.t ({columns}) USING delta")
    described = [tuple(row)[:2] for row in run("DESCRIBE EXTENDED {s}.t").collect()]
    assert described[-3:] == [
        ("# Constraints", ""),
        ("pk", "PRIMARY KEY (id)"),
        ("t_c_fk", f"FOREIGN KEY (c) REFERENCES {run.schema}.u"),
    ]
    text = run("SHOW CREATE TABLE {s}.t").first()[0]
    run("DROP TABLE {s}.t")
    run(text)
    assert run("SHOW CREATE TABLE {s}.t").first()[0] == text
    run("ALTER TABLE {s}.t DROP PRIMARY KEY")
    run("ALTER TABLE {s}.t DROP FOREIGN KEY (c)")
    assert "KEY" not in run("SHOW CREATE TABLE {s}.t").first()[0]
    with pytest.raises(errors.InvalidOption):
        run("ALTER TABLE {s}.t DROP PRIMARY KEY")


def test_a_name_that_looks_like_a_secret_is_a_name_like_any_other(run: Catalog, tmp_path: Path) -> None:
    """Spark hides a property whose value holds one of these words: where a table lies, of all things."""
    run("CREATE TABLE {s}.urls (id BIGINT) USING delta")
    run("CREATE TABLE {s}.passwords (id BIGINT) USING delta")
    run(f"CREATE TABLE {{s}}.outside (id BIGINT) USING delta LOCATION '{tmp_path / 'access_token'}'")
    for id_, name in enumerate(("urls", "passwords", "outside"), 1):
        run.append(name, id=id_)
    run("ALTER TABLE {s}.urls RENAME TO {s}.tokens")
    assert run.rows("SELECT * FROM {s}.tokens UNION ALL SELECT * FROM {s}.passwords UNION ALL TABLE {s}.outside") == [
        (1,),
        (2,),
        (3,),
    ]
    run("DROP TABLE {s}.tokens")
    assert run.held("passwords") == [(2,)]


def test_a_session_that_hides_where_tables_lie_is_told_so(run: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    run("CREATE TABLE {s}.urls (id BIGINT) USING delta")
    monkeypatch.setattr(entries, "is_known", lambda spark: False)
    monkeypatch.setattr(view_entries, "encode_if_secret", lambda value: value)  # as if Spark hid whatever it is given
    run("CREATE TABLE {s}.tokens (id BIGINT) USING delta")
    with pytest.raises(errors.InvalidOption, match=r"hides the property anabranch\.location"):
        run("SELECT * FROM {s}.tokens")
    run.spark.sql(f"DROP VIEW {run.schema}.tokens")


def test_no_table_is_made_of_a_query_where_files_of_something_else_lie(run: Catalog, tmp_path: Path) -> None:
    """A VACUUM would take them for its own."""
    (tmp_path / "o").mkdir()
    (tmp_path / "o/precious.csv").write_text("a,b")
    for target in (f"{{s}}.t USING delta LOCATION '{tmp_path}/o'", f"delta.`{tmp_path}/o` USING delta"):
        with pytest.raises(errors.LocationNotEmpty):
            run(f"CREATE TABLE {target} AS SELECT 1 AS id")
    assert run.entry("t") is None
    assert [each.name for each in (tmp_path / "o").iterdir()] == ["precious.csv"]


def test_what_a_table_is_called_and_whose_its_files_are_is_shown(run: Catalog, tmp_path: Path) -> None:
    run("CREATE TABLE {s}.m (id INT) USING delta")
    run(f"CREATE TABLE {{s}}.x (id INT) USING delta LOCATION '{tmp_path}/x'")
    for name, kind in (("m", "MANAGED"), ("x", "EXTERNAL")):
        shown = {row[0]: row[1] for row in run(f"DESCRIBE EXTENDED {{s}}.{name}").collect()}
        assert [shown[each] for each in ("Catalog", "Namespace", "Table")] == ["spark_catalog", run.schema, name]
        assert (shown["Type"], shown.get("Is_managed_location")) == (kind, "true" if name == "m" else None)
        assert run(f"DESCRIBE DETAIL {{s}}.{name}").first()["name"] == f"spark_catalog.{run.schema}.{name}"
    assert run(f"DESCRIBE DETAIL delta.`{tmp_path}/x`").first()["name"] is None


def test_describe_extended_has_the_rows_of_delta_spark(run: Catalog, tmp_path: Path) -> None:
    head = ["# Detailed Table Information", "Catalog", "Namespace", "Database", "Table", "Type", "Comment", "Location"]
    run(f"CREATE TABLE delta.`{tmp_path}/x` (id INT) USING delta COMMENT 'about'")
    run(f"CREATE TABLE {{s}}.x USING delta LOCATION '{tmp_path}/x'")
    for name, table in ((f"delta.`{tmp_path}/x`", f"{tmp_path}/x"), ("{s}.x", "x")):
        rows = [tuple(row) for row in run(f"DESCRIBE EXTENDED {name}").collect()]
        assert rows[:2] == [("id", "int", None), ("", "", "")]
        assert [row[0] for row in rows[2:] if row[0] != "Owner"] == [*head, "Provider", "Table Properties"]
        assert ("Table", table, "") in rows


def test_a_name_that_a_late_refresh_brought_back_takes_no_files_with_it(run: Catalog) -> None:
    run("CREATE TABLE {s}.t (id BIGINT) USING delta")
    run.append("t", id=1)
    before = run.entry("t")
    assert before is not None
    run("ALTER TABLE {s}.t RENAME TO {s}.u")
    late = Entry(before.name, before.location, before.managed, before.kind)
    entries.record(run.spark, late, open_log(before.location).snapshot().schema, None)
    run("DROP TABLE {s}.t")
    assert run.rows("SELECT * FROM {s}.u") == [(1,)]
    run("DROP TABLE {s}.u")
    assert not Path(before.location.removeprefix("file://").removeprefix("file:")).exists()
