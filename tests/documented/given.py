"""What a scenario of delta-spark's documentation is given, and how it says what it saw.

Scenarios run unchanged in two environments, ours and delta-spark's own, so they and this file know PySpark and the
standard library only. A scenario is a generator: each ``yield`` is something that was seen: what it is, what was found,
and what delta-spark's documentation lets one expect. `tests/documented/differences.py` says where that is not found.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

Seen = tuple[str, Any, Any]
"""What it is, what was found, what is expected."""
Scenario = Callable[["Given"], Iterator[Seen]]

WELL = "it ran to its end"
"""The last thing that is seen of every scenario."""


def documents(*methods: str) -> Callable[[Scenario], Scenario]:
    """Say of a scenario which public methods it shows, as ``DeltaTable.delete``."""

    def marked(scenario: Scenario) -> Scenario:
        scenario.documents = methods  # type: ignore[attr-defined]
        return scenario

    return marked


def scenarios_of(modules: Iterable[ModuleType]) -> dict[str, Scenario]:
    """The scenarios of modules by ``module.name``."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if hasattr(value, "documents")
    }


def observed(scenario: Scenario, given: Given) -> list[list[Any]]:
    """All that a scenario sees, as plain values; an error of its own ends it, and is seen as well."""
    seen: list[list[Any]] = []
    try:
        seen.extend([what, plain(found), plain(expected)] for what, found, expected in scenario(given))
    except Exception as error:  # whatever it is, the test decides
        return [*seen, [WELL, told(error), True]]
    return [*seen, [WELL, True, True]]


def plain(value: Any) -> Any:
    """A value as JSON has it: rows and tuples as lists, what has no word there as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, dt.date | Decimal | Path) else value


def told(error: Exception) -> str:
    """An error by its class and its first lines."""
    return f"{type(error).__name__}: {' '.join(str(error).splitlines()[:2])}"[:300]


@dataclass(frozen=True)
class Given:
    """A session, the module that has ``DeltaTable``, and an empty folder of its own.

    Attributes:
        name: begins the names of tables, so that no two scenarios share one.
    """

    spark: SparkSession
    tables: ModuleType
    folder: Path
    name: str

    @property
    def DeltaTable(self) -> Any:
        return self.tables.DeltaTable

    def path(self, name: str = "table") -> str:
        return str(self.folder / name)

    def frame(self, columns: str, *rows: tuple[Any, ...]) -> DataFrame:
        """Rows in one part, so that they become one file."""
        return self.spark.createDataFrame(list(rows), columns).coalesce(1)

    def made(self, columns: str, *rows: tuple[Any, ...], name: str = "table", by: str = "", **options: str) -> Any:
        """The `DeltaTable` of a new table with these rows in one file, partitioned ``by`` a column."""
        self.write(self.frame(columns, *rows), name, by, **options)
        return self.DeltaTable.forPath(self.spark, self.path(name))

    def write(self, rows: DataFrame, name: str = "table", by: str = "", **options: str) -> None:
        """Append rows to a table, which is made where there is none."""
        writer = rows.write.format("delta").mode("append").options(**options)
        (writer.partitionBy(by) if by else writer).save(self.path(name))

    def opened(self, name: str = "table") -> Any:
        """The table as a new handle sees it."""
        return self.DeltaTable.forPath(self.spark, self.path(name))

    def flights(self, name: str = "table") -> Any:
        """A small table for whatever wants one: id, carrier, delay."""
        rows = [(1, "UA", 10), (2, "AA", 20), (3, "UA", None), (4, None, 40)]
        return self.made("id long, carrier string, delay int", *rows, name=name)


def rows_of(found: Any) -> list[list[Any]]:
    """The rows of a DataFrame or `DeltaTable`, sorted; the newest, for a DataFrame is planned once (see `opening`)."""
    frame = found if isinstance(found, DataFrame) else found.toDF().select("*")
    return sorted((list(row) for row in frame.collect()), key=repr)


def types_of(frame: DataFrame) -> list[str]:
    """The columns of a DataFrame with their types."""
    return [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]


def refused(command: Callable[[], Any], *kinds: type[Exception]) -> str:
    """By which of these classes a user catches the refusal; else what came instead."""
    try:
        command()
    except Exception as error:
        found = next((kind for kind in (*kinds, Py4JJavaError) if isinstance(error, kind)), None)
        return told(error) if found is None else found.__name__
    return "nothing was refused"


def operations(table: Any) -> list[str]:
    """What was done to a table, the newest first."""
    return [row["operation"] for row in table.history().select("operation").collect()]


def detail_of(table: Any, *columns: str) -> list[Any]:
    """Some columns of a table's detail."""
    [row] = table.detail().select(*columns).collect()
    return list(row)
