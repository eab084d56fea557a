"""Doors of a session through which a row with a planted value fails, and what the errors say of it.

For classic sessions and for those of Spark Connect.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch.tables import DeltaTable

PLANTED, NUMBER = "planted value", 987654321
COLUMNS = "id INT NOT NULL, s STRING, short VARCHAR(3), n INT, m MAP<STRING, INT>"


def said(error: BaseException) -> str:
    """All that an error tells, but for the user's own words."""
    facts = getattr(error, "facts", {})
    hidden = {name: fact for name, fact in facts.items() if name not in ("what", "expression")}
    text = str(error)
    for name in ("what", "expression"):
        text = text.replace(str(facts.get(name, "\0")), "")
    return f"{text} {hidden} {error.__cause__} {pickle.dumps(error) and ''}"


def doors(spark: SparkSession, path: str, quiet: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Each lets a row with a planted value fail, in the log's own terms or in Spark's."""
    rows = spark.sql(f"SELECT 1 id, '{PLANTED}' s, 'b' short, 2 n, map('a', 1) m")
    table, name = DeltaTable.forPath(spark, path), f"delta.`{path}`"

    def frame(**columns: Any) -> Any:
        return rows.withColumns(columns)

    def insert(values: str) -> Callable[[], Any]:
        return lambda: anabranch.sql(spark, f"INSERT INTO {name} {values}")

    def write(**columns: Any) -> Callable[[], Any]:
        return lambda: frame(**columns).write.format("anabranch").mode("append").save(path)

    number = F.col("id") + NUMBER
    # In a view, for the words of a statement are the user's own, and shown.
    spark.sql(f"SELECT 7 AS id, '{PLANTED}' AS s, {NUMBER}000L AS n").createOrReplaceTempView("planted")
    source = "planted"
    return {
        "constraint": write(),
        "not null": write(id=F.lit(None).cast("int"), s=F.lit(PLANTED)),
        "length": write(s=F.lit("x"), short=F.col("s")),
        "sql: cast of a text": insert("SELECT 1, 'x', 'b', s, NULL FROM planted"),
        "sql: spark's cast": insert("SELECT 1, 'x', 'b', CAST(s AS INT), NULL FROM planted"),
        "sql: overflow": insert("SELECT 1, 'x', 'b', CAST(n AS INT), NULL FROM planted"),
        "sql: a number too large": insert("SELECT 1, 'x', 'b', n, NULL FROM planted"),
        "keys twice": write(s=F.lit("x"), m=F.expr(f"map_from_arrays(array('{PLANTED}', s), array(1, 2))")),
        "raise_error": write(s=F.raise_error(F.concat(F.lit("about "), F.col("s"))).cast("string")),
        "division": write(s=F.lit("x"), n=(number / (number - number)).cast("int")),
        "update": lambda: table.update("id = 0", {"n": F.expr("CAST(s AS INT)")}),
        "update: constraint": lambda: table.update("id = 0", {"s": F.concat(F.lit("planted"), F.lit(" value"))}),
        "delete": lambda: table.delete("CAST(s AS INT) = 5"),
        "merge: source": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING (SELECT CAST(s AS INT) id FROM {source}) u ON t.id = u.id "
            "WHEN MATCHED THEN DELETE",
        ),
        "merge: clause": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING {source} u ON t.id + 7 = u.id "
            "WHEN MATCHED THEN UPDATE SET n = CAST(u.s AS INT)",
        ),
        "merge: insert": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING {source} u ON t.id = u.id "
            "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, u.s)",
        ),
        "create": lambda: (
            frame(n=F.expr("CAST(s AS INT)")).write.format("anabranch").options(**quiet).save(f"{path}-new")
        ),
    }


def prepare(spark: SparkSession, path: str, quiet: dict[str, str]) -> None:
    """Make the table that the doors lead to, with these properties."""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in quiet.items())
    tail = f" TBLPROPERTIES ({properties})" if properties else ""
    anabranch.sql(spark, f"CREATE TABLE delta.`{path}` ({COLUMNS}){tail}")
    anabranch.sql(spark, f"INSERT INTO delta.`{path}` VALUES (0, 'planted', 'b', 1, NULL)")
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT plain CHECK (s NOT LIKE 'pl%ue')")


def shows(text: str) -> bool:
    """Whether a text quotes a planted row."""
    return PLANTED in text or str(NUMBER) in text or "'planted'" in text
