"""Texts that jobs look for in errors, as ``"is not a Delta table" in str(error)``.

`texts.json` beside this file says what a job does, as SQL or Python, and which phrases it finds in the error. They are
fixed words of delta-spark's error conditions, and of Spark's where a job of delta-spark's meets these. Each command is
refused by ours and by real delta-spark, and the phrases stand in both errors. Knows PySpark and the standard library
only, as the scenarios beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.documented.given import Given, Scenario, Seen, documents

FAMILIES: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
    Path(__file__).with_name("texts.json").read_text(encoding="utf-8")
)
"""Family -> what a job does -> how (``sql`` or ``python``), and what it ``finds``."""

OLDER: Mapping[str, Mapping[str, str]] = {
    "missing": {
        "load of Parquet": "is not a Delta table",
        "load of nothing": "is not a Delta table",
        "OPTIMIZE of a name of nothing": "is not a Delta table",
    },
    "schema": {"append of another type": "A schema mismatch detected when writing to the Delta table"},
    "versions": {"too late": "is after the latest version available"},
}
"""Phrases of older releases of delta-spark, which ours have as well."""

TABLES = (
    "CREATE TABLE {ruled} (id LONG, c STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE {ruled} ADD CONSTRAINT positive CHECK (id > 0)",
    "INSERT INTO {ruled} VALUES (1, 'a')",
    "CREATE TABLE {strict} (id LONG NOT NULL, c STRING) USING delta",
    "INSERT INTO {strict} VALUES (1, 'a')",
    "CREATE TABLE {short} (c VARCHAR(2)) USING delta",
    "CREATE TABLE {log} (id LONG) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "INSERT INTO {log} VALUES (1)",
    "CREATE TABLE {mapped} (id LONG, c STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "CREATE TABLE {clusters} (id LONG, c STRING) USING delta CLUSTER BY (id)",
    "CREATE TABLE {fed} (id LONG) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO {fed} VALUES (1)",
    "CREATE VIEW {my_view} AS SELECT 1 AS id",
)
"""More of the tables that the commands name."""

_UNTOLD = "Cannot find main error class"
"""PySpark 4.2 has no text for some of delta-spark's errors."""


# -- what the commands of `texts.json` are made of ---------------------------------------------------------------------


class Places(dict[str, str]):
    """``{t}`` is a table by its path, ``{at_t}`` its path, ``{my_t}`` a name in the catalog."""

    def __init__(self, given: Given) -> None:
        self.given = given

    def __missing__(self, key: str) -> str:
        kind, _, name = key.rpartition("_")
        found = self.given.name + name if kind == "my" else self.given.path(name)
        return found if kind else f"delta.`{found}`"


def sql(given: Given, text: str) -> None:
    given.spark.sql(text.format_map(Places(given))).collect()


def load(given: Given, name: str, **options: str) -> None:
    given.spark.read.format("delta").options(**options).load(given.path(name)).collect()


def opened(given: Given, name: str) -> None:
    given.opened(name)


def named(given: Given, name: str) -> None:
    given.DeltaTable.forName(given.spark, given.name + name)


def write(
    given: Given,
    columns: str,
    *rows: tuple[Any, ...],
    mode: str = "append",
    by: str = "",
    to: str = "t",
    **options: str,
) -> None:
    writer = given.frame(columns, *rows).write.format("delta").mode(mode).options(**options)
    (writer.partitionBy(by) if by else writer).save(given.path(to))


def saved(given: Given, columns: str, *rows: tuple[Any, ...], mode: str = "append") -> None:
    given.frame(columns, *rows).write.format("delta").mode(mode).saveAsTable(given.name + "t")


def merged(given: Given, on: str = "t.id = s.id", when: str | None = None, **clauses: Any) -> None:
    source = given.frame("id long, c string", (1, "n")).alias("s")
    merge = given.opened("t").alias("t").merge(source, on)
    if "update" in clauses:
        merge = merge.whenMatchedUpdate(when, set=clauses["update"])
    if "insert" in clauses:
        merge = merge.whenNotMatchedInsert(when, values=clauses["insert"])
    if "delete" in clauses:
        merge = merge.whenMatchedDelete(clauses["delete"])
    merge.execute()


_COMMANDS: Mapping[str, Callable[..., None]] = {
    each.__name__: each for each in (load, opened, named, write, saved, merged)
}


def prepare(given: Given) -> None:
    """The tables that the commands name."""
    columns = "id long, c string"
    given.made(columns, (1, "a"), (2, "b"), name="t")
    given.write(given.frame(columns, (3, "c")), "t")
    given.made(columns, (1, "a"), name="parts", by="c", **{"delta.columnMapping.mode": "name"})
    given.made(columns, (1, "a"), name="u")
    given.frame("id long", (1,)).write.parquet(given.path("parquet"))
    given.folder.joinpath("empty").mkdir()
    given.frame(columns, (1, "a")).write.format("delta").saveAsTable(given.name + "t")
    given.frame("id long", (1,)).write.format("parquet").saveAsTable(given.name + "parquet")
    for statement in TABLES:
        sql(given, statement)
    make = given.DeltaTable.create(given.spark).location(given.path("generated")).addColumn("id", "LONG")
    make.addColumn("twice", "LONG", generatedAlwaysAs="id * 2").execute()
    make = given.DeltaTable.create(given.spark).location(given.path("identity")).addColumn("c", "LONG")
    make.addColumn("id", "LONG", generatedAlwaysAs=given.tables.IdentityGenerator()).execute()


# -- what they meet ----------------------------------------------------------------------------------------------------


def met(given: Given, family: str) -> dict[str, str]:
    """The text of the error that each command of a family meets, in one line; nothing where it is not refused.

    The tables are those of `prepare`, and stay as they are where all commands are refused.
    """
    return {what: _met(given, command) for what, command in FAMILIES[family].items()}


def _met(given: Given, command: Mapping[str, Any]) -> str:
    try:
        sql(given, command["sql"]) if "sql" in command else eval(command["python"], {"given": given, **_COMMANDS})
    except Exception as error:  # whatever it is, the test decides
        return " ".join(f"{error} {getattr(error, 'java_exception', '')}".split())
    return ""


def lacking(found: Mapping[str, str], family: str) -> dict[str, list[str]]:
    """Of each command of a family, the phrases that are not in the error that it met; none where all are."""
    lacks = {
        what: [each for each in command["finds"] if each not in found[what] and _UNTOLD not in found[what]]
        for what, command in FAMILIES[family].items()
    }
    return {what: each for what, each in lacks.items() if each}


def _scenario(family: str) -> Scenario:
    def phrases_stand_in_errors(given: Given) -> Iterator[Seen]:
        prepare(given)
        yield "phrases that are not there", lacking(met(given, family), family), {}

    return documents()(phrases_stand_in_errors)


missing, exists, schema, rules, changes, versions, upkeep = map(_scenario, FAMILIES)
