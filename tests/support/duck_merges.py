"""An oracle for MERGE: what it means, written as plain joins in SQL, and run by DuckDB.

Knows `tests.support.random_merges` and DuckDB; nothing of Delta or Spark. DuckDB's own ``MERGE INTO`` is not asked: of
several matches it lets any win, and its 1.5.5 ran out of memory or crashed on one random command in some hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tests.support.random_merges import NO_NUMBER, RandomClause, RandomMerge, RandomTable, Row, Text, arrow

DONE = {"update": "updated", "insert": "inserted"}
PAIRED = "pairs JOIN t ON t.rowid = pairs.t JOIN s ON s.rowid = pairs.s"


@dataclass(frozen=True)
class Answer:
    """What a MERGE did: how many rows by kind of action; or why it is refused."""

    counts: Counter[str]
    refused: str | None = None


class Duck:
    """One table in a DuckDB of its own.

    Example:
        >>> duck = Duck(table)
        >>> duck.merge(command).counts["updated"]
    """

    def __init__(self, table: RandomTable) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._columns = table.columns
        self._make("t", arrow([row for rows in table.files for row in rows], table.columns))

    def rows(self) -> Sequence[Row]:
        """All rows."""
        return self._run("FROM t").to_arrow_table().to_pylist()

    def merge(self, merge: RandomMerge) -> Answer:
        """Run it; a refused one changes nothing."""
        self._make("s", merge.source)
        matched, inserting, alone = (_of(merge, when) for when in ("matched", "not matched", "not matched by source"))
        pairs = f"SELECT t.rowid AS t, s.rowid AS s FROM t JOIN s ON {merge.on.duck}"
        self._run(f"CREATE OR REPLACE TABLE pairs AS {pairs}")
        self._run("CREATE OR REPLACE TABLE after AS FROM t LIMIT 0")
        if not _may_match_twice(matched) and self._some(f"FROM {PAIRED} WHERE {_first(matched)} >= 0 GROUP BY t.rowid"):
            return Answer(Counter(), "ambiguous")
        counts: Counter[str] = Counter()
        counts += self._act(matched, PAIRED, "true")
        counts += self._act(alone, "t", "t.rowid NOT IN (SELECT t FROM pairs)")
        counts += self._act(inserting, "s", "s.rowid NOT IN (SELECT s FROM pairs)", others="NULL")
        gone = f"SELECT t.rowid FROM {PAIRED} WHERE {_first(matched)} >= 0"
        gone_alone = f"SELECT rowid FROM t WHERE rowid NOT IN (SELECT t FROM pairs) AND {_first(alone)} >= 0"
        self._run(f"INSERT INTO after FROM t WHERE rowid NOT IN ({gone}) AND rowid NOT IN ({gone_alone})")
        if self._run(f"FROM after WHERE k = {NO_NUMBER}").fetchall():
            return Answer(Counter(), "no such value")
        self._run("CREATE OR REPLACE TABLE t AS FROM after")
        return Answer(counts)

    def close(self) -> None:
        """Forget the table."""
        self._connection.close()

    def _act(self, clauses: Sequence[RandomClause], rows: str, where: str, others: str | None = None) -> Counter[str]:
        """Put what these clauses make of these rows into the new table; how many rows, by kind of action."""
        counts: Counter[str] = Counter()
        for number, clause in enumerate(clauses):
            chosen = f"FROM {rows} WHERE {where} AND {_first(clauses)} = {number}"
            if clause.action == "delete":  # of a row that matches twice, once
                counts["deleted"] += self._count(f"SELECT DISTINCT t.rowid {chosen}")
            else:
                counts[DONE[clause.action]] += self._count(f"SELECT 1 {chosen}")
                images = ", ".join(_value(clause.assigned, name, others) for name in self._columns)
                self._run(f"INSERT INTO after SELECT {images} {chosen}")
        return counts

    def _some(self, groups: str) -> bool:
        """Whether a group has more than one row."""
        return self._count(f"SELECT 1 {groups} HAVING count(*) > 1") > 0

    def _count(self, query: str) -> int:
        (found,) = self._run(f"SELECT count(*) FROM ({query})").fetchone() or (0,)
        return int(found)

    def _make(self, name: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._run(f"CREATE OR REPLACE TABLE {name} AS FROM given")
        self._connection.unregister("given")

    def _run(self, text: str) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(text)


def _of(merge: RandomMerge, when: str) -> list[RandomClause]:
    return [each for each in merge.clauses if each.when == when]


def _first(clauses: Sequence[RandomClause]) -> str:
    """The number of the first clause whose condition is TRUE, else NULL."""
    cases = [f"WHEN {each.condition.duck if each.condition else 'true'} THEN {i}" for i, each in enumerate(clauses)]
    return f"(CASE {' '.join(['WHEN false THEN -1', *cases])} END)"


def _value(assigned: Mapping[str, Text], name: str, others: str | None) -> str:
    return assigned[name].duck if name in assigned else others or f"t.{name}"


def _may_match_twice(matched: Sequence[RandomClause]) -> bool:
    """The documented exception: one unconditional delete is all that can happen to a row that matches."""
    return [(each.action, each.condition) for each in matched] == [("delete", None)]
