"""Columns of any name go through every verb: signs of SQL, of JSON, of paths and of settings mean nothing in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch.errors import CheckConstraintViolated, InvalidCharactersInColumnNames
from tests.support.tiers import few_of, is_short
from tests.support.worlds import World

pytestmark = pytest.mark.spark

ALONE = (
    *("id.num`s", "a.b", 'q"q', "it's", "new\nline", "${spark.app.name}", "😀", "a:b", "50%", "e=q", "back\\slash"),
    *("se;mi", "${", "{x}", "two words", "e\u0301", "é", "select", "table", "values", "q?", "1st", "Mixed", "com,ma"),
    *("pa(r)", "--c", "/*", "@v1", "``", "*", "value.", "[0]", ":p"),
)
TOGETHER = ("id.num`s", "a.b", "${spark.app.name}", "it's:50%\"😀\\", "new\nline e=q", "select", "--c;{x}``*:p")
"""The same signs in fewer columns, since each verb costs in proportion to them."""
NAMES = TOGETHER if is_short() else ALONE
"""Fewer than the first columns that have statistics by default are left out."""
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.dataSkippingNumIndexedCols' = '-1')"
PLAIN = tuple(name for name in NAMES if "${" not in name)
"""Those that a rule of a table may name."""
REFUSED = set(" ,;{}()\n\t=")


def spelled(name: str) -> str:
    """A name in backticks, in which Spark fills nothing in."""
    return "`" + name.replace("`", "``").replace("${", "$${no.such.setting}{") + "`"


def each(form: str, between: str = ", ", names: tuple[str, ...] = NAMES) -> str:
    """A text for each name, ``{c}``, and its number, ``{i}``."""
    return between.join(form.replace("{c}", spelled(name)).replace("{i}", str(i)) for i, name in enumerate(names))


@pytest.fixture
def installed(spark: SparkSession) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


@pytest.fixture(scope="module")
def first(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table with a row that has in each column, and member, the number of its name."""
    path = str(tmp_path_factory.mktemp("names") / "t")
    columns = f"{each('{c} INT')}, nested STRUCT<{each('{c}: INT')}>"
    anabranch.sql(spark, f"CREATE TABLE delta.`{path}` ({columns}) USING delta {MAPPED}")
    anabranch.append(path, as_numbered(0))
    return World(path)


def as_numbered(first: int) -> pa.Table:
    """A row that counts on from a number, through its columns and through its members."""
    numbers = {name: first + i for i, name in enumerate(NAMES)}
    columns = [(name, pa.int32()) for name in NAMES]
    return pa.Table.from_pylist(
        [{**numbers, "nested": numbers}], schema=pa.schema([*columns, ("nested", pa.struct(columns))])
    )


@pytest.fixture
def made(installed: SparkSession, first: World, tmp_path: Path) -> str:
    """The path of such a table, of a test's own."""
    return first.copy(tmp_path).path


def test_columns_of_any_name_are_read_and_skipped_by(installed: SparkSession, made: str) -> None:
    every = each("{c} = {i} AND nested.{c} = {i}", " AND ")
    assert installed.read.format("delta").load(made).columns == [*NAMES, "nested"]
    found = installed.sql(f"SELECT {each('{c}')}, {each('nested.{c}')} FROM delta.`{made}` WHERE {every}").first()
    assert list(found) == [*range(len(NAMES)), *range(len(NAMES))]
    assert anabranch.read(made, where=every, columns=list(NAMES), spark=installed).columns == list(NAMES)
    assert not installed.sql(f"SELECT * FROM delta.`{made}` AS t WHERE {each('t.{c} < {i}', ' OR ')}").take(1)
    plain = each("{c} = {i}", " AND ").replace("$${no.such.setting}{", "${")
    assert len(anabranch.files(made, plain)) == 1
    assert len(anabranch.files(made, "`id.num``s` > 0")) == 0


def test_rows_of_columns_of_any_name_are_changed(installed: SparkSession, made: str) -> None:
    table = DeltaTable.forPath(installed, made)
    few = tuple(few_of(NAMES, 2))
    members = each("nested.{c} = nested.{c} + 100", names=few)
    installed.sql(f"UPDATE delta.`{made}` SET {each('{c} = {c} + 100')}, {members}")
    where = F.col("`${spark.app.name}`") >= 0
    table.update(where, {f"`{name.replace('`', '``')}`": F.col(f"`{name.replace('`', '``')}`") + 1 for name in NAMES})
    on, said = each("t.{c} = s.{c}", " AND ", few), each("t.nested.{c} = s.nested.{c} + 1", names=few)
    installed.sql(
        f"MERGE INTO delta.`{made}` AS t USING (SELECT * FROM delta.`{made}`) AS s ON {on}"
        f" WHEN MATCHED THEN UPDATE SET {each('t.{c} = s.{c} + 1')}, {said} WHEN NOT MATCHED THEN INSERT *"
    )
    (row,) = World(made).rows()
    assert list(row.values())[:-1] == list(range(102, 102 + len(NAMES)))
    assert row["nested"] == {name: i + 101 * (name in few) for i, name in enumerate(NAMES)}
    table.toDF().write.format("delta").mode("append").save(made)
    anabranch.append(made, as_numbered(102), spark=installed)
    assert installed.sql(f"DELETE FROM delta.`{made}` WHERE {each('{c} >= {i}', ' AND ')}").first()[0] == 3


@pytest.mark.exhaustive(
    "tests/sql/test_column_names.py::test_rows_of_columns_of_any_name_are_changed",
    "tests/spark/merging/test_merge.py::test_any_name_will_do",
)
def test_a_builder_merges_columns_of_any_name(installed: SparkSession, made: str) -> None:
    table = DeltaTable.forPath(installed, made)
    builder = table.alias("t").merge(table.toDF().alias("s"), f"t.{spelled('a.b')} = s.{spelled('a.b')}")
    builder.whenMatchedUpdate(set={f"t.{spelled('id.num`s')}": f"s.{spelled('id.num`s')} + 1"}).execute()
    assert next(iter(World(made).rows()[0].values())) == 1


def test_a_table_with_columns_of_any_name_is_laid_out_altered_copied_and_named(
    installed: SparkSession, made: str, tmp_path: Path
) -> None:
    sql, table = installed.sql, f"delta.`{made}`"
    sql(f"OPTIMIZE {table} ZORDER BY ({each('{c}')})")
    sql(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK ({each('{c} < 1000 AND nested.{c} < 1000', ' AND ', PLAIN)})")
    with pytest.raises(CheckConstraintViolated):
        sql(f"UPDATE {table} SET nested.{spelled(PLAIN[-1])} = 1000")
    sql(f"ALTER TABLE {table} DROP CONSTRAINT c")
    sql(f"ALTER TABLE {table} CLUSTER BY (`id.num``s`, nested.`a.b`, {spelled('${spark.app.name}')})")
    sql(f"OPTIMIZE {table}")
    sql(f"ALTER TABLE {table} ADD COLUMNS (`more``of.it` INT COMMENT '${{' AFTER `a.b`, nested.`more``` INT FIRST)")
    sql(f"ALTER TABLE {table} RENAME COLUMN nested.`more``` TO `le``ss`")
    sql(f"ALTER TABLE {table} ALTER COLUMN `more``of.it` COMMENT 'it'")
    sql(f"ALTER TABLE {table} DROP COLUMNS (`more``of.it`, nested.`le``ss`)")
    sql(f"CREATE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE {table}")
    sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    shown = sql(f"SHOW CREATE TABLE {table}").first()[0].replace(made, f"{tmp_path}/again")
    sql(re.sub(r"'delta.columnMapping.maxColumnId' = '\d+',", "", shown).replace("${", "$${no.such.setting}{"))
    sql(f"CREATE TABLE odd_columns USING delta LOCATION '{made}'")
    try:
        sql("CREATE VIEW odd_view AS SELECT * FROM odd_columns")
        sql("CREATE TEMPORARY VIEW `odd name's` AS SELECT * FROM odd_columns")
        for name in ("odd_columns", "odd_view", "`odd name's`", f"delta.`{tmp_path}/clone`", table):
            assert sql(f"SELECT * FROM {name}").columns == [*NAMES, "nested"]
        assert [column.name for column in installed.catalog.listColumns("odd_columns")] == [*NAMES, "nested"]
        assert installed.read.format("delta").load(f"{tmp_path}/again").columns == [*NAMES, "nested"]
    finally:
        for drop in ("VIEW IF EXISTS odd_view", "VIEW IF EXISTS `odd name's`", "TABLE odd_columns"):
            sql(f"DROP {drop}")
    assert anabranch.check(made, deep=True).is_clean


@pytest.mark.exhaustive(
    "tests/sql/test_column_names.py::test_a_table_with_columns_of_any_name_is_laid_out_altered_copied_and_named",
    "tests/sql/test_column_names.py::test_without_column_mapping_names_hold_no_signs_of_grammar",
    "tests/sql/test_column_names.py::test_rows_of_columns_of_any_name_are_changed",
    "tests/spark/writing/test_write.py::test_columns_with_odd_names_are_written_and_partitioned",
)
def test_columns_of_any_name_partition_a_table(installed: SparkSession, made: str, tmp_path: Path) -> None:
    sql, path = installed.sql, f"{tmp_path}/p"
    keys = (*("id.num`s", "a.b", "${spark.app.name}"), *(name for name in NAMES if set(name) & set("\n=%😀'\\")))
    columns = each("{c}", names=keys)
    sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY ({columns}) {MAPPED} AS SELECT * FROM delta.`{made}`")
    fixed = f"`id.num``s` = 7, {spelled('${spark.app.name}')} = 8"
    others = [name for name in installed.read.format("delta").load(path).columns if name not in (keys[0], keys[2])]
    rest = ", ".join(spelled(name) for name in others)
    sql(f"INSERT OVERWRITE delta.`{path}` PARTITION ({fixed}) SELECT {rest} FROM delta.`{path}`")
    where = f"`id.num``s` = 7 AND {spelled('${spark.app.name}')} = 8"
    rows = sql(f"SELECT * FROM delta.`{path}` WHERE {where}")
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(path)
    assert sql(f"OPTIMIZE delta.`{path}` WHERE {where}").count() == 1
    assert sql(f"DELETE FROM delta.`{path}` WHERE {each('{c} >= 0', ' AND ', keys)}").first()[0] == 2
    assert anabranch.check(path).is_clean


def test_without_column_mapping_names_hold_no_signs_of_grammar(installed: SparkSession, tmp_path: Path) -> None:
    allowed = [name for name in NAMES if not REFUSED & set(name)]
    rows = installed.range(1).select(*[F.lit(i).alias(name) for i, name in enumerate(allowed)])
    keys = [name for name in allowed if set(name) & set("`%:") and len(name) > 2]
    rows.write.format("delta").partitionBy(*keys).save(f"{tmp_path}/t")
    found = installed.sql(f"SELECT * FROM delta.`{tmp_path}/t` WHERE `id.num``s` = 0 AND `a.b` = 1").first()
    assert found.asDict() == {name: i for i, name in enumerate(allowed)}
    with pytest.raises(InvalidCharactersInColumnNames, match="a column"):
        installed.sql(f"CREATE TABLE delta.`{tmp_path}/no` (`a column` INT) USING delta")
    for statement in ("ADD COLUMNS (`b;c` INT)", "ADD COLUMNS (s STRUCT<`b c`: INT>)"):
        with pytest.raises(InvalidCharactersInColumnNames):
            installed.sql(f"ALTER TABLE delta.`{tmp_path}/t` {statement}")
    with pytest.raises(InvalidCharactersInColumnNames):
        installed.range(1).withColumnRenamed("id", "a=b").write.format("delta").save(f"{tmp_path}/no")
    assert not (tmp_path / "no").exists()
    partitioned = installed.range(1).selectExpr("id AS v", "id AS `num``s`", "id AS `q?`")
    partitioned.write.partitionBy("num`s", "q?").parquet(f"{tmp_path}/files")
    installed.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/files` PARTITIONED BY (`num``s` INT, `q?` INT)")
    assert installed.sql(f"SELECT * FROM delta.`{tmp_path}/files` WHERE `num``s` = 0 AND `q?` = 0").count() == 1
