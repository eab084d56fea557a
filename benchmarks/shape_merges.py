"""Shapes of MERGE out of other people's work, for the list of shapes.

As in that list, the shape of the expressions was kept, and the names of columns became those of the benchmark's table.
"""

from __future__ import annotations

from benchmarks.statements import Merge, Of, Shape, delete, delete_others, insert, update, update_others

_ON = "t.id = s.id"
_CHANGED = "t.flag = true AND (s.word <> t.word OR s.note <> t.note)"
_STAGED = (
    "SELECT CAST(NULL AS BIGINT) AS merge_key, u.* FROM {source} u JOIN {table} b ON u.id = b.id"
    " WHERE b.flag = true AND (u.word <> b.word OR u.note <> b.note)"
    " UNION ALL SELECT u.id AS merge_key, u.* FROM {source} u"
)
_ALL = ("id", "percent", "p", "word", "name", "amount", "price", "day", "at", "flag", "note", "closed")
_GIVEN = {column: f"s.{column}" for column in _ALL}
_LIVE = "NOT coalesce(s.deleted, false)"
_NEWER = (
    "s.at > t.at OR (s.at = t.at AND s.percent > t.percent)"
    " OR (s.at = t.at AND s.percent = t.percent AND s.amount > t.amount)"
)

MERGES = (
    Shape(
        "MERGE of inserts, updates and deletes",
        "delta-io/delta-examples notebooks/pyspark/delta-merge.ipynb",
        Merge(
            _ON,
            (
                update("s.op = 'UPDATE'", name="s.name", percent="s.percent"),
                delete("s.op = 'DELETE'"),
                insert("s.op = 'INSERT'", **_GIVEN),
            ),
        ),
    ),
    Shape(
        "MERGE of what is not NULL",
        "delta-io/delta-examples notebooks/pyspark/delta-merge.ipynb",
        Merge(
            _ON,
            (
                update(
                    "s.op = 'UPDATE'",
                    note="CASE WHEN s.note IS NOT NULL THEN s.note ELSE t.note END",
                    closed="CASE WHEN s.closed IS NOT NULL THEN s.closed ELSE t.closed END",
                ),
            ),
        ),
    ),
    Shape(
        "MERGE that marks others by their day",
        "delta-io/delta-examples notebooks/pyspark/delta-230-features.ipynb",
        Merge(
            _ON,
            (
                update(day="s.day", note="'active'"),
                insert(**{**_GIVEN, "note": "'active'"}),
                update_others("t.day <= DATE '2022-03-01' - INTERVAL '30' DAY", note="'inactive'"),
            ),
        ),
    ),
    Shape(
        "MERGE of new logs of a week",
        "delta-io/delta docs/src/content/docs/delta-update.mdx",
        Merge(
            f"{_ON} AND t.day > DATE '2024-09-01' - INTERVAL '7' DAY",
            (insert("s.day > DATE '2024-09-01' - INTERVAL '7' DAY"),),
        ),
    ),
    Shape(
        "MERGE that keeps history by staged rows",
        "MrPowers/mack mack/__init__.py",
        Merge(
            "t.id = s.merge_key",
            (
                update(_CHANGED, flag="false", closed="s.day"),
                insert(**{**_GIVEN, "flag": "true", "closed": "NULL"}),
            ),
            _STAGED,
        ),
        rust=Merge(
            "t.id = s.merge_key",
            (
                update(_CHANGED, flag="false", closed="s.day"),
                insert(**{**_GIVEN, "flag": "true", "closed": "CAST(NULL AS DATE)"}),
            ),
            _STAGED,
        ),
    ),
    Shape(
        "MERGE of a snapshot",
        "databricks/dbt-databricks dbt/include/databricks/macros/materializations/snapshot_helpers.sql",
        Merge(
            _ON,
            (
                update("t.closed IS NULL AND s.op IN ('UPDATE', 'DELETE')", closed="s.day"),
                insert("s.op = 'INSERT'", **_GIVEN),
            ),
        ),
    ),
    Shape(
        "MERGE by hashes",
        "databricks/dbt-databricks tests/functional/adapter/incremental/fixtures.py",
        Merge(
            _ON,
            (update("s.percent > t.percent AND hash(s.word, s.name) <> hash(t.word, t.name)"), insert("s.percent > 0")),
        ),
        why_not="deltalake has no function hash",
    ),
    Shape(
        "MERGE that deletes others",
        "databricks/dbt-databricks tests/functional/adapter/incremental/fixtures.py",
        Merge(_ON, (insert(), delete_others("t.percent > 97"))),
    ),
    Shape(
        "MERGE by keys that may be NULL",
        "adidas/lakehouse-engine lakehouse_engine_usage/data_loader/batch_delta_load_init_delta_backfill_with_merge/"
        "batch_delta_load_init_delta_backfill_with_merge.md",
        Merge(
            f"{_ON} AND s.p = t.p AND s.closed <=> t.closed",
            (delete("s.op IN ('R', 'D', 'DELETE')"), update(), insert("s.op NOT IN ('R', 'D', 'DELETE')")),
        ),
    ),
    Shape(
        "MERGE of the latest by three columns",
        "adidas/lakehouse-engine tests/feature/data_loader_custom_transformer/"
        "test_data_loader_custom_transformer_delta_load.py",
        Merge(_ON, (update(_NEWER), insert())),
    ),
    Shape(
        "MERGE that ignores NULLs",
        "okube-ai/laktory laktory/models/datasinks/mergecdcoptions.py",
        Merge(
            _ON,
            (
                update(
                    f"{_LIVE} AND s.at > t.at",
                    note="coalesce(s.note, t.note)",
                    closed="coalesce(s.closed, t.closed)",
                    amount="coalesce(s.amount, t.amount)",
                ),
                delete("coalesce(s.deleted, false)"),
                insert(_LIVE, **_GIVEN),
            ),
        ),
    ),
    Shape(
        "MERGE of what differs, deletes marked",
        "accordionjourneyman/databricks_kimball_framework src/kimball/processing/scd1.py",
        Merge(
            _ON,
            (
                update("s.op = 'DELETE'", flag="false"),
                update(
                    "s.op != 'DELETE' AND (NOT (t.word <=> s.word) OR NOT (t.name <=> s.name)"
                    " OR NOT (t.note <=> s.note))",
                    word="s.word",
                    name="s.name",
                    note="s.note",
                    flag="true",
                ),
                insert("s.op != 'DELETE'", **_GIVEN),
            ),
        ),
    ),
    Shape(
        "MERGE of milestones",
        "accordionjourneyman/databricks_kimball_framework examples/sql_patterns/accumulating_snapshot_order.sql",
        Merge(_ON, (update(note="COALESCE(t.note, s.note)", closed="COALESCE(t.closed, s.closed)"), insert(**_GIVEN))),
    ),
    Shape(
        "MERGE into what is still open",
        "shannon-barrow/databricks-tpc-di src/incremental_batches/silver/DimTrade Incremental.sql",
        Merge(
            f"{_ON} AND t.closed IS NULL",
            (update(**{column: f"s.{column}" for column in _ALL[3:]}), insert(**_GIVEN)),
        ),
    ),
    Shape(
        "MERGE into one partition",
        "delta-io/delta-rs docs/usage/merging-tables.md",
        Merge(
            f"{_ON} AND t.p = s.p AND t.p = 7",
            (update("s.name != t.name"), insert()),
            "SELECT * FROM {source} WHERE p = 7",
        ),
        Of.SPLIT,
    ),
    Shape(
        "MERGE by the partition's column",
        "delta-io/delta docs/src/content/docs/concurrency-control.mdx",
        Merge(f"{_ON} AND t.p = s.p", (update(), insert())),
        Of.SPLIT,
    ),
    Shape(
        "MERGE of the last change of each",
        "databricks-demos/dbdemos-notebooks product_demos/cdc-pipeline/01-CDC-CDF-simple-pipeline.py",
        Merge(
            _ON,
            (delete("s.op = 'DELETE'"), update("s.op != 'DELETE'"), insert("s.op != 'DELETE'")),
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY at DESC) AS place FROM {source})"
            " AS ranked WHERE place = 1",
        ),
    ),
    Shape(
        "MERGE of cleaned texts",
        "harshitsharma280393/Insurance_Project Ingestion-BranchData-Solution.py",
        Merge(
            _ON,
            (update(name="s.name", word="s.word"), insert(**{name: f"s.{name}" for name in ("id", "word", "name")})),
            "SELECT id, word, upper(trim(name)) AS name FROM {source} WHERE id IS NOT NULL AND deleted = false",
        ),
    ),
)
