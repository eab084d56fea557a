"""DELETE, UPDATE and MERGE as values, which know how they are said: in SQL to both Sparks, and by calls to deltalake.

In the query of a MERGE ``{table}`` and ``{source}`` stand for the table and the source, which is a Delta table;
``t`` and ``s`` are their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

SOURCE = "{source}"


class Statement(Protocol):
    """One change of a table."""

    def text(self, source: Path) -> str:
        """Its SQL, in which ``{0}`` stands for the table."""

    def by_deltalake(self, path: str, source: Path) -> Any:
        """Do it to the table at a path by deltalake."""


@dataclass(frozen=True)
class Delete:
    """DELETE FROM a table."""

    where: str

    def text(self, source: Path) -> str:
        """Its SQL, in which ``{0}`` stands for the table."""
        return f"DELETE FROM {{0}} AS t WHERE {self.where}"

    def by_deltalake(self, path: str, source: Path) -> Any:
        """Do it to the table at a path by deltalake."""
        return DeltaTable(path).delete(self.where)


@dataclass(frozen=True)
class Update:
    """UPDATE of some columns."""

    where: str
    values: Mapping[str, str]

    def text(self, source: Path) -> str:
        """Its SQL, in which ``{0}`` stands for the table."""
        return f"UPDATE {{0}} AS t SET {_assigned(self.values)} WHERE {self.where}"

    def by_deltalake(self, path: str, source: Path) -> Any:
        """Do it to the table at a path by deltalake."""
        return DeltaTable(path).update(predicate=self.where, updates=dict(self.values))


@dataclass(frozen=True)
class When:
    """One clause of a MERGE; without values an UPDATE or an INSERT takes all columns of the source."""

    kind: str
    verb: str
    condition: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its SQL."""
        met = f"WHEN {self.kind}{f' AND {self.condition}' if self.condition else ''} THEN {self.verb}"
        if self.verb == "DELETE":
            return met
        if not self.values:
            return f"{met} {'SET *' if self.verb == 'UPDATE' else '*'}"
        if self.verb == "UPDATE":
            return f"{met} SET {_assigned(self.values)}"
        return f"{met} ({', '.join(self.values)}) VALUES ({', '.join(self.values.values())})"

    def added_to(self, merger: Any, extra: list[str]) -> Any:
        """The merger of deltalake with this clause; columns that only the source has are said in ``extra``."""
        name, met = f"when_{self.kind.lower().replace(' ', '_')}_{self.verb.lower()}", self.condition or None
        if self.verb == "DELETE":
            return getattr(merger, name)(met)
        if not self.values:
            return getattr(merger, f"{name}_all")(met, except_cols=extra)
        return getattr(merger, name)(dict(self.values), met)


def update(condition: str = "", **values: str) -> When:
    """WHEN MATCHED THEN UPDATE these columns, or all."""
    return When("MATCHED", "UPDATE", condition, values)


def delete(condition: str = "") -> When:
    """WHEN MATCHED THEN DELETE."""
    return When("MATCHED", "DELETE", condition)


def insert(condition: str = "", **values: str) -> When:
    """WHEN NOT MATCHED THEN INSERT these columns, or all."""
    return When("NOT MATCHED", "INSERT", condition, values)


def update_others(condition: str, **values: str) -> When:
    """WHEN NOT MATCHED BY SOURCE THEN UPDATE these columns."""
    return When("NOT MATCHED BY SOURCE", "UPDATE", condition, values)


def delete_others(condition: str) -> When:
    """WHEN NOT MATCHED BY SOURCE THEN DELETE."""
    return When("NOT MATCHED BY SOURCE", "DELETE", condition)


@dataclass(frozen=True)
class Merge:
    """MERGE of the source, or of a query over it (and over the table, if it likes)."""

    on: str
    clauses: tuple[When, ...]
    using: str = SOURCE

    def text(self, source: Path) -> str:
        """Its SQL, in which ``{0}`` stands for the table."""
        using = self.using if self.using == SOURCE else f"({self.using})"
        said = " ".join(each.text for each in self.clauses)
        return _in_spark(f"MERGE INTO {{table}} AS t USING {using} AS s ON {self.on} {said}", source)

    def by_deltalake(self, path: str, source: Path) -> Any:
        """Do it to the table at a path by deltalake, which is given the rows of the query."""
        table = DeltaTable(path)
        rows, columns = self._rows(table, DeltaTable(str(source))), {each.name for each in table.schema().fields}
        merger: Any = table.merge(rows, predicate=self.on, source_alias="s", target_alias="t")
        for clause in self.clauses:
            merger = clause.added_to(merger, [name for name in rows.column_names if name not in columns])
        return merger.execute()

    def _rows(self, table: DeltaTable, source: DeltaTable) -> pa.Table:
        tables = QueryBuilder().register("source", source).register("target", table)
        query = f"SELECT * FROM {SOURCE}" if self.using == SOURCE else self.using
        return pa.table(tables.execute(_in_rust(query)).read_all())


class Of(Enum):
    """Which table a shape is run on."""

    WHOLE = "8 files"
    MARKED = "8 files of which rows are deleted already"
    SPLIT = "50 partitions"
    SMALL = "500 small files"


@dataclass(frozen=True)
class Shape:
    """A statement, how deltalake says it where it says it otherwise, and whose it is."""

    what: str
    origin: str
    statement: Statement
    of: Of = Of.WHOLE
    rust: Statement | None = None
    why_not: str = ""
    """Why deltalake cannot do it, if so."""


def _assigned(values: Mapping[str, str]) -> str:
    return ", ".join(f"{column} = {value}" for column, value in values.items())


def _in_spark(text: str, source: Path) -> str:
    return text.replace(SOURCE, f"delta.`{source}`").replace("{table}", "{0}")


def _in_rust(text: str) -> str:
    return text.replace(SOURCE, "source").replace("{table}", "target")
