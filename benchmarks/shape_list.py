"""The shapes of statements that are measured by turns: eleven with targets, and others out of other people's work.

Of these the shape of the expressions was kept, and the names of columns became those of the benchmark's table. The day
of today is a fixed one in them, so that each run does the same. DELETE by a subquery, as dbt says it on Databricks, is
no shape here: neither delta-spark nor deltalake takes one.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.shape_merges import MERGES
from benchmarks.statements import Delete, Merge, Of, Shape, Update, insert, update

OURS = "this project: a shape with a target"

HELD = (
    Shape("DELETE by one number", OURS, Delete("percent = 17")),
    Shape("DELETE by a remainder", OURS, Delete("id % 100 = 7")),
    Shape("DELETE by a remainder, of marked files", OURS, Delete("id % 100 = 7"), Of.MARKED),
    Shape("DELETE by lower(…)", OURS, Delete("lower(word) = 'word17'")),
    Shape("DELETE by LIKE '%…'", OURS, Delete("name LIKE '%77'")),
    Shape(
        "DELETE by year and month",
        OURS,
        Delete("year(day) = 2023 AND month(day) = 5"),
        rust=Delete("date_part('year', day) = 2023 AND date_part('month', day) = 5"),
    ),
    Shape("DELETE by two columns and a product", OURS, Delete("amount < percent * 2")),
    Shape(
        "UPDATE by CASE",
        OURS,
        Update("id % 10 = 1", {"amount": "CASE WHEN percent > 50 THEN amount * 0.9 ELSE amount END"}),
    ),
    Shape("UPDATE of a text, of marked files", OURS, Update("id % 200 = 9", {"name": "concat(name, '!')"}), Of.MARKED),
    Shape(
        "UPDATE of words in one partition",
        OURS,
        Update("p = 7 AND word = 'word17'", {"amount": "amount * 2 + 1"}),
        Of.SPLIT,
    ),
    Shape(
        "MERGE of greater amounts",
        OURS,
        Merge(
            "t.id = s.id", (update("s.amount > t.amount", amount="s.amount + t.amount", word="lower(s.word)"), insert())
        ),
    ),
)

DELETES = (
    Shape(
        "DELETE of days before one",
        "delta-io/delta docs/src/content/docs/delta-update.mdx",
        Delete("day < '2022-02-01'"),
    ),
    Shape("DELETE of the even ids", "delta-io/delta examples/python/quickstart_sql.py", Delete("id % 2 = 0")),
    Shape(
        "DELETE of even ids below one",
        "delta-io/delta spark/src/test/scala/org/apache/spark/sql/delta/DeltaVacuumSuite.scala",
        Delete("id % 2 = 0 AND id < 40"),
    ),
    Shape(
        "DELETE of two ids",
        "delta-io/delta spark/src/test/scala/org/apache/spark/sql/delta/CloneTableSQLSuite.scala",
        Delete("id IN (24, 42)"),
    ),
    Shape(
        "DELETE from four columns' bounds on",
        "databrickslabs/overwatch src/main/scala/com/databricks/labs/overwatch/utils/Tools.scala",
        Delete(
            "cast(amount AS BIGINT) >= 900 AND day >= '2024-06-01' AND at >= '2023-06-01 00:00:00' AND word = 'word17'"
        ),
    ),
    Shape(
        "DELETE where NULL",
        "databrickslabs/overwatch src/main/scala/com/databricks/labs/overwatch/utils/RefreshNodeDetails.scala",
        Delete("note IS NULL"),
    ),
    Shape(
        "DELETE by two values, of marked files",
        "delta-io/delta-examples notebooks/pyspark/deletion-vectors2.ipynb",
        Delete("word = 'word17' AND percent = 22"),
        Of.MARKED,
    ),
    Shape(
        "DELETE of one partition",
        "delta-io/delta-examples notebooks/pyspark/hive-style-partitioning.ipynb",
        Delete("p = 7"),
        Of.SPLIT,
    ),
    Shape(
        "DELETE before a time with an offset",
        "databricks-demos/dbdemos-notebooks demo-retail/lakehouse-retail-c360/01-Data-ingestion/"
        "plain-spark-delta-pipeline/01.5-Delta-pipeline-spark-churn.py",
        Delete("at < '2022-01-20T03:38:55.000+0000'"),
    ),
    Shape(
        "DELETE where two columns are equal",
        "delta-io/delta examples/tutorials/saiseu19 (in its history)",
        Delete("percent = p"),
    ),
)

UPDATES = (
    Shape(
        "UPDATE of one word to another",
        "delta-io/delta docs/src/content/docs/delta-update.mdx",
        Update("word = 'word17'", {"word": "'other'"}),
    ),
    Shape(
        "UPDATE of the even ids",
        "delta-io/delta examples/python/quickstart_sql.py",
        Update("id % 2 = 0", {"id": "id + 100"}),
    ),
    Shape(
        "UPDATE of two columns by each other",
        "delta-io/delta spark/src/test/scala/org/apache/spark/sql/delta/UpdateSuiteBase.scala",
        Update("percent >= 98 AND amount < 300", {"amount": "percent + amount", "percent": "percent + 1"}),
    ),
    Shape(
        "UPDATE by casts to decimal(38, 18)",
        "delta-io/delta spark/src/test/scala/org/apache/spark/sql/delta/UpdateSuiteBase.scala",
        Update("cast(percent AS BIGINT) * cast('1.0' AS decimal(38, 18)) > 97", {"percent": "-3"}),
    ),
    Shape(
        "UPDATE by LIKE 'A%'",
        "derar-alhussein/Databricks-Certified-Data-Engineer-Associate"
        " 1- Databricks Lakehouse Platform/1.2 - Understanding Delta Tables.sql",
        Update("name LIKE 'A%'", {"amount": "amount + 100"}),
    ),
    Shape(
        "UPDATE of a decimal by a tenth",
        "git-wmeister/learn-DevTools Python/Python-tmp2del.py",
        Update("percent = 71", {"price": "price * 0.9"}),
        rust=Update("percent = 71", {"price": "price * CAST(0.9 AS DECIMAL(2, 1))"}),
    ),
    Shape(
        "UPDATE of a flag",
        "harshitsharma280393/Insurance_Project Ingestion-BranchData-Solution.py",
        Update("flag = false", {"flag": "true"}),
    ),
    Shape(
        "UPDATE of one id",
        "databricks-demos/dbdemos-notebooks product_demos/Delta-Lake/01-Getting-Started-With-Delta-Lake.sql",
        Update("id = 999", {"percent": "4"}),
    ),
    Shape(
        "UPDATE of audit columns from a time on",
        "sqlplate 0.0.7 (PyPI) tests/templates/databricks.etl.scd1-soft-delete.sql",
        Update(
            "percent = 1 AND note = 'note 1' AND at >= to_timestamp('20230201', 'yyyyMMdd')",
            {"percent": "0", "note": "'SOURCE_FOO'", "at": "to_timestamp('20250201', 'yyyyMMdd')"},
        ),
        rust=Update(
            "percent = 1 AND note = 'note 1' AND at >= '2023-02-01 00:00:00'",
            {"percent": "0", "note": "'SOURCE_FOO'", "at": "to_timestamp('2025-02-01')"},
        ),
    ),
    Shape(
        "UPDATE of what was closed a day before",
        "sqlplate 0.0.7 (PyPI) tests/templates/databricks.etl.scd2-delete-src.sql",
        Update(
            "closed = DATEADD(DAY, -1, to_timestamp('20230201', 'yyyyMMdd'))",
            {"closed": "'9999-12-31'", "flag": "false", "note": "'SOURCE_FOO'"},
        ),
        rust=Update(
            "closed = DATE '2023-02-01' - INTERVAL '1' DAY",
            {"closed": "'9999-12-31'", "flag": "false", "note": "'SOURCE_FOO'"},
        ),
    ),
)

OTHERS = (*DELETES, *UPDATES, *MERGES)
AGED = {
    Of.SMALL: ("DELETE by lower(…)", "UPDATE by CASE", "UPDATE of one id", "MERGE of inserts, updates and deletes"),
    Of.MARKED: ("UPDATE by LIKE 'A%'", "MERGE of inserts, updates and deletes", "MERGE that deletes others"),
    Of.SPLIT: ("DELETE by lower(…)", "UPDATE of a flag", "MERGE of inserts, updates and deletes"),
}
"""Which of them are run on other tables, too."""


def _aged() -> tuple[Shape, ...]:
    by_name = {shape.what: shape for shape in (*HELD, *OTHERS)}
    return tuple(
        replace(by_name[what], what=f"{what}, of {of.value}", of=of) for of, names in AGED.items() for what in names
    )


SHAPES = (*HELD, *OTHERS, *_aged())
