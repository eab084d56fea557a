"""Texts of all signs in every place of a statement that takes one, and what is read back from there.

Run as a script it goes through the same doors on Spark Connect, in a process of its own; the last line says what is
lost.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of

SIGNS = (
    *"{}$\\'\"`%:?;#@_ \n\t\r\0",
    *("--", "/*", "*/", "{{", "}}", "{0}", "{a}", "{df}", "${spark.app.name}", "$${x}{y}", "${env:HOME}", "${"),
    *("\\n", "\\u0041", "\\101", "''", '""', "\\\\", ":p0", "?", "%s", "%", "r'x'", "{anabranch_0}", "DEFAULT"),
    *("é", "😀", "e\u0301", "\u200b", "a", "0", "'; DROP TABLE t; --", '{"x": 1}', "^[a-z]{2,3}$"),
)
"""What random texts are put together from."""
Texts = list[str]
Lost = dict[str, Any]


def random_texts(seed: int, count: int) -> Texts:
    """Different texts, each of a few signs; the empty one among them."""
    chosen = random.Random(seed)
    found = {"": None, "{a}": None, '{"x":1}': None, "${spark.app.name}": None}
    while len(found) < count:
        found["".join(chosen.choices(SIGNS, k=chosen.randint(1, 6)))] = None
    return list(found)


# -- spelling ----------------------------------------------------------------------------------------------------------


def spelled(text: str, style: int) -> str:
    """A text as a literal of Spark's, in one of its styles, that no setting fills in."""
    plain = "${" not in text
    if style % 4 == 1:
        return '"' + _escaped(text).replace('"', '\\"') + '"'
    if style % 4 == 2 and plain and "'" not in text:
        return f"r'{text}'"
    if style % 4 == 3 and plain and '"' not in text:
        return f'R"{text}"'
    return "'" + _escaped(text).replace("'", "\\'") + "'"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("${", "\\u0024{").replace("\0", "\\0")


Spell = Callable[[int], str]


def styles(texts: Texts) -> Iterator[tuple[str, Spell, Any]]:
    """Ways to say the texts: how each is spelled, and the parameters that go with it."""
    yield "inline", lambda i: spelled(texts[i], i), None
    yield "named", lambda i: f":p{i}", {f"p{i}": text for i, text in enumerate(texts)}
    yield "positional", lambda i: "?", list(texts)


def _values(texts: Texts, spell: Spell) -> str:
    return ", ".join(f"({i}, {spell(i)})" for i in range(len(texts)))


def _case(texts: Texts, spell: Spell) -> str:
    """As ``CASE i WHEN …``, whose parameters stand in the order of the texts."""
    return f"CASE {' '.join(f'WHEN i = {i} THEN {spell(i)}' for i in range(len(texts)))} END"


def _listed(texts: Texts, spell: Spell) -> str:
    return ", ".join(map(spell, range(len(texts))))


# -- doors -------------------------------------------------------------------------------------------------------------


class Doors:
    """Tables in a folder, and what was lost on the way to them and back."""

    def __init__(self, spark: SparkSession, folder: Path, texts: Texts) -> None:
        self.spark, self.folder, self.texts, self.lost = spark, folder, texts, {}
        self.tables = 0

    def table(self, columns: str = "i INT, t STRING", rest: str = "") -> str:
        """A new table, as statements name it."""
        self.tables += 1
        name = f"delta.`{self.folder}/t{self.tables}`"
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {rest}")
        return name

    def path(self, name: str) -> str:
        """Where a table lies."""
        return name[len("delta.`") : -1]

    def compare(self, door: str, found: Sequence[Any], wanted: Sequence[Any] | None = None) -> None:
        """Note what was not read back as it was written."""
        expected = self.texts if wanted is None else wanted
        if list(found) != list(expected):
            differ = [(a, b) for a, b in zip(expected, found, strict=False) if a != b]
            self.lost[door] = differ or f"{len(found)} of {len(expected)}"

    def rows(self, door: str, name: str) -> None:
        """Compare the texts of a table with those that were written."""
        self.compare(door, [row["t"] for row in sorted(deltalake_rows(self.path(name)), key=lambda row: row["i"])])


def lost(spark: SparkSession, folder: Path, texts: Texts, turn: int | None = None) -> Lost:
    """Go through the doors with these texts, each in one of the ways to say them, by turns, or in all of them; a
    short run goes through some of them.
    """
    doors, ways = Doors(spark, folder, texts), list(styles(texts))
    for i, through in enumerate(few_of((_inserted, _made, _changed, _merged, _asked), 2)):
        for style, spell, args in ways if turn is None else [ways[(i + turn) % len(ways)]]:
            through(doors, style, spell, args)
    for seen in few_of((_viewed, _of_frames, _by_methods, _declared), 1):
        seen(doors)
    return doors.lost


def _inserted(doors: Doors, style: str, spell: Spell, args: Any) -> None:
    sql, name, values = doors.spark.sql, doors.table(), _values(doors.texts, spell)
    sql(f"INSERT INTO {name} VALUES {values}", args)
    doors.rows(f"INSERT VALUES, {style}", name)
    sql(f"INSERT OVERWRITE {name} SELECT * FROM VALUES {values}", args)
    doors.rows(f"INSERT OVERWRITE SELECT, {style}", name)
    sql(f"INSERT INTO {name} REPLACE WHERE i >= 0 SELECT * FROM VALUES {values}", args)
    doors.rows(f"REPLACE WHERE, {style}", name)


def _made(doors: Doors, style: str, spell: Spell, args: Any) -> None:
    """Tables made of a query, and rows that are put together from names, defaults and texts."""
    texts, values, sql = doors.texts, _values(doors.texts, spell), doors.spark.sql
    name = doors.table()
    sql(f"INSERT INTO {name} SELECT * FROM VALUES {values}", args)
    doors.rows(f"INSERT SELECT, {style}", name)
    sql(f"INSERT OVERWRITE {name} VALUES {values}", args)
    doors.rows(f"INSERT OVERWRITE, {style}", name)
    name = doors.table()
    sql(f"INSERT INTO {name} BY NAME SELECT t, i FROM VALUES {values} AS v(i, t)", args)
    doors.rows(f"BY NAME, {style}", name)
    made = f"delta.`{doors.folder}/{style}`"
    sql(f"CREATE TABLE {made} USING delta AS SELECT * FROM VALUES {values} AS v(i, t)", args)
    doors.rows(f"CTAS, {style}", made)
    sql(f"CREATE OR REPLACE TABLE {made} USING delta AS SELECT * FROM VALUES {values} AS v(i, t)", args)
    doors.rows(f"RTAS, {style}", made)
    name = doors.table(
        "i INT, t STRING, d STRING DEFAULT 'x{y}'", "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    cells = ", ".join(f"({i}, {spell(i)}, {'DEFAULT' if i % 2 else 'NULL'})" for i in range(len(texts)))
    sql(f"INSERT INTO {name} VALUES {cells}", args)
    doors.rows(f"VALUES with DEFAULT, {style}", name)


def _numbered(doors: Doors) -> str:
    """A table of the texts' numbers, with nothing beside them."""
    name = doors.table()
    doors.spark.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), '' FROM range({len(doors.texts)})")
    return name


def _filled(doors: Doors) -> str:
    """A table of the texts, written without any statement."""
    name = doors.table()
    anabranch.append(doors.path(name), [{"i": i, "t": text} for i, text in enumerate(doors.texts)])
    doors.rows("append", name)
    return name


def _changed(doors: Doors, style: str, spell: Spell, args: Any) -> None:
    texts, sql, name = doors.texts, doors.spark.sql, _numbered(doors)
    sql(f"UPDATE {name} SET t = {_case(texts, spell)} WHERE i < 9999", args)
    doors.rows(f"UPDATE SET, {style}", name)
    sql(f"UPDATE {name} SET i = i + 1000 WHERE t IN ({_listed(texts, spell)})", args)
    doors.compare(f"UPDATE WHERE, {style}", [sql(f"SELECT count_if(i >= 1000) FROM {name}").first()[0]], [len(texts)])
    sql(f"DELETE FROM {name} WHERE t IN ({_listed(texts, spell)})", args)
    doors.compare(f"DELETE WHERE, {style}", [sql(f"SELECT count(*) FROM {name}").first()[0]], [0])


def _merged(doors: Doors, style: str, spell: Spell, args: Any) -> None:
    texts, sql, name = doors.texts, doors.spark.sql, doors.table()
    source = f"(SELECT * FROM VALUES {_values(texts, spell)} AS v(i, t))"
    sql(f"MERGE INTO {name} AS t USING {source} AS s ON t.t = s.t WHEN NOT MATCHED THEN INSERT *", args)
    doors.rows(f"MERGE source, {style}", name)
    name, either = _filled(doors), f"t.i = s.i AND t.t = {_case(texts, spell).replace(' i = ', ' t.i = ')}"
    ids = f"(SELECT CAST(id AS INT) AS i FROM range({len(texts)}))"
    merged = sql(f"MERGE INTO {name} AS t USING {ids} AS s ON {either} WHEN MATCHED THEN DELETE", args).first()
    doors.compare(f"MERGE ON, {style}", [merged.num_deleted_rows], [len(texts)])
    name, said = _numbered(doors), _case(texts, spell)
    of_both, of_source = said.replace(" i = ", " t.i = "), said.replace(" i = ", " s.i = ")
    half = len(texts) // 2
    sql(f"DELETE FROM {name} WHERE i >= {half}")
    sql(f"MERGE INTO {name} AS t USING {ids} AS s ON t.i = s.i WHEN MATCHED THEN UPDATE SET t.t = {of_both}", args)
    sql(
        f"MERGE INTO {name} AS t USING {ids} AS s ON t.i = s.i"
        f" WHEN NOT MATCHED THEN INSERT (i, t) VALUES (s.i, {of_source})",
        args,
    )
    doors.rows(f"MERGE SET and VALUES, {style}", name)


def _asked(doors: Doors, style: str, spell: Spell, args: Any) -> None:
    texts, sql, name = doors.texts, doors.spark.sql, _filled(doors)
    found = sql(f"SELECT i, t FROM {name} WHERE t = {_case(texts, spell)}", args).collect()
    doors.compare(f"SELECT WHERE, {style}", [row.t for row in sorted(found)])
    shown = sql(f"SELECT {_listed(texts, spell)} FROM {name} LIMIT 1", args).first()
    doors.compare(f"SELECT, {style}", list(shown))
    found = sql(f"SELECT t FROM {name} WHERE t = {spelled(texts[1], 0)}").collect()
    doors.compare("SELECT WHERE, alone", [row.t for row in found], texts[1:2])


def _viewed(doors: Doors) -> None:
    texts, sql, name = doors.texts, doors.spark.sql, doors.table()
    anabranch.append(doors.path(name), [{"i": 1, "t": ""}])
    columns = ", ".join(f"{spelled(text, i)} AS c{i}" for i, text in enumerate(texts))
    sql(f"CREATE OR REPLACE TEMPORARY VIEW literals AS SELECT {columns} FROM {name}")
    doors.compare("temporary view", list(sql("SELECT * FROM literals").first()))
    sql(f"CREATE OR REPLACE VIEW literals_last AS SELECT {columns} FROM {name}")
    doors.compare("lasting view", list(sql("SELECT * FROM literals_last").first()))
    sql("DROP VIEW literals_last")


def _of_frames(doors: Doors) -> None:
    """DataFrames and values in the text of a statement, which PySpark formats itself."""
    sql, name, texts = doors.spark.sql, doors.table(), doors.texts
    frame = doors.spark.createDataFrame([Row(i=i, t=text) for i, text in enumerate(texts)], "i INT, t STRING")
    sql(f"INSERT INTO {name} SELECT * FROM {{df}}", df=frame)
    doors.rows("INSERT SELECT, frames", name)
    found = sql(
        f"SELECT d.t FROM {{df}} AS d JOIN {name} AS n ON d.t = n.t AND '{{{{a}}}}' <> n.t ORDER BY d.i", df=frame
    )
    doors.compare("SELECT, frames", [row.t for row in found.collect()], [text for text in texts if text != "{a}"])
    sql(f"DELETE FROM {name} WHERE t IN (SELECT t FROM {{df}} WHERE i < {{n}})", df=frame, n=2)
    doors.compare("DELETE, frames", [sql(f"SELECT count(*) FROM {name}").first()[0]], [len(texts) - 2])
    name = doors.table()
    sql(f"MERGE INTO {name} AS t USING {{df}} AS s ON t.t = s.t WHEN NOT MATCHED THEN INSERT *", df=frame)
    doors.rows("MERGE source, frames", name)
    frame.write.format("delta").mode("overwrite").save(doors.path(name))
    doors.rows("df.write", name)


def _declared(doors: Doors) -> None:
    """What the table itself keeps: comments, properties, defaults, checks, generated columns."""
    sql, texts = doors.spark.sql, doors.texts
    said = [text for text in texts if text]
    comments = ", ".join(f"c{i} INT COMMENT {spelled(text, i)}" for i, text in enumerate(said))
    properties = ", ".join(f"'p{i}' = {spelled(text, i)}" for i, text in enumerate(said))
    name = doors.table(comments, f"COMMENT {spelled(''.join(said), 0)} TBLPROPERTIES ({properties})")
    detail = DeltaTable.forPath(doors.spark, doors.path(name)).detail().first()
    doors.compare("table comment", [detail.description], ["".join(said)])
    doors.compare("TBLPROPERTIES", [detail.properties[f"p{i}"] for i in range(len(said))], said)
    described = sql(f"DESCRIBE {name}").collect()
    doors.compare("column comments", [row.comment for row in described[: len(said)]], said)
    sql("DROP TABLE IF EXISTS literals_named")
    sql(f"CREATE TABLE literals_named ({comments}) USING delta COMMENT {spelled(''.join(said), 0)}")
    doors.compare(
        "comments in the catalog",
        [each.description for each in doors.spark.catalog.listColumns("literals_named")],
        said,
    )
    doors.compare(
        "comment in the catalog", [doors.spark.catalog.getTable("literals_named").description], ["".join(said)]
    )
    sql("DROP TABLE literals_named")
    # Rules take texts in single quotes: not every other spelling is read in one way.
    defaults = ", ".join(f"c{i} STRING DEFAULT {spelled(text, 0)}" for i, text in enumerate(texts))
    name = doors.table(f"i INT, {defaults}", "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    sql(f"INSERT INTO {name} (i) VALUES (1)")
    doors.compare("DEFAULT", list(sql(f"SELECT * EXCEPT (i) FROM {name}").first()))
    generated = ", ".join(
        f"g{i} STRING GENERATED ALWAYS AS (concat(t, {spelled(text, 0)}))" for i, text in enumerate(texts[:12])
    )
    name = doors.table(f"t STRING, {generated}")
    sql(f"INSERT INTO {name} (t) VALUES ('>')")
    found = [each[1:] for each in sql(f"SELECT * EXCEPT (t) FROM {name}").first()]
    doors.compare("GENERATED", found, list(texts[:12]))
    name = doors.table()
    sql(f"ALTER TABLE {name} ADD CONSTRAINT known CHECK (t IN ({_listed(texts, lambda i: spelled(texts[i], 0))}))")
    sql(f"INSERT INTO {name} VALUES {_values(texts, lambda i: spelled(texts[i], i))}")
    doors.rows("CHECK", name)


def _by_methods(doors: Doors) -> None:
    """Texts in conditions and values of methods, and in options."""
    texts, name = doors.texts, _numbered(doors)
    table = DeltaTable.forPath(doors.spark, doors.path(name))
    said = _case(texts, lambda i: spelled(texts[i], i))
    table.update("i >= 0", {"t": said})
    doors.rows("update()", name)
    found = anabranch.read(doors.path(name), where=f"t = {said}", spark=doors.spark)
    doors.compare("read(where)", [row.t for row in found.orderBy("i").collect()])
    frame = doors.spark.createDataFrame([Row(i=i, t=text) for i, text in enumerate(texts)], "i INT, t STRING")
    writer = frame.write.format("delta").mode("overwrite").option("userMetadata", "".join(texts))
    writer.option("replaceWhere", f"t = {said}").save(doors.path(name))
    doors.rows("replaceWhere", name)
    doors.compare("userMetadata", [table.history(1).first().userMetadata], ["".join(texts)])
    merge = table.alias("t").merge(frame.alias("s"), f"t.t = s.t AND s.t = {said.replace(' i = ', ' s.i = ')}")
    merge.whenMatchedUpdate(
        f"s.t = {said.replace(' i = ', ' t.i = ')}", {"t": said.replace(" i = ", " s.i = ")}
    ).execute()
    doors.rows("merge()", name)
    table.delete(F.col("t").isin(texts[::2]))
    doors.compare("delete(Column)", [table.toDF().count()], [len(texts) // 2])
    table.delete(f"t = {said}")
    doors.compare("delete()", [table.toDF().count()], [0])


def main(folder: Path, seed: int, count: int, turn: int) -> None:
    """The same on Spark Connect."""
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = anabranch.install(builder.getOrCreate())
    found = lost(spark, folder, random_texts(seed, count), turn)
    print(json.dumps({"session": type(spark).__module__, "lost": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
