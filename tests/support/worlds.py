"""A small world for concurrency tests: one table, an engine without a JVM, and commands as short words."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from anabranch._expressions import Context, condition
from anabranch._log.log import Log
from anabranch._log.segment import earliest_version
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.schema.column_mapping import is_mapped
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import EVERY_ROW, Delete
from anabranch.commands.dml.merge import Merge, MergeResult
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.optimize import Optimize, OptimizeResult
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.maintenance.restore import Restore, RestoreResult
from anabranch.commands.maintenance.vacuum import Vacuum, VacuumResult
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import Read
from anabranch.commands.row_changes import Outcome
from anabranch.testing import ArrowEngine, Row
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.tiers import is_short


def table_path(folder: Path) -> str:
    """A fresh table location below a folder."""
    return str(folder / f"t{uuid4().hex[:8]}")


@dataclass
class World:
    """One table at ``path``."""

    path: str
    engine: ArrowEngine = field(default_factory=ArrowEngine)

    def copy(self, folder: Path) -> World:
        """The same table at a fresh location below a folder."""
        return World(shutil.copytree(self.path, table_path(folder)), self.engine)

    @property
    def log(self) -> Log:
        """Its log."""
        return open_log(self.path)

    def create(
        self,
        rows: list[Row],
        *,
        partition_by: tuple[str, ...] = (),
        cluster_by: tuple[str, ...] = (),
        **properties: str,
    ) -> World:
        """Create it in one file per partition; keywords become properties (``delta_isolationLevel``)."""
        named = {key.replace("_", ".", 1): value for key, value in properties.items()}
        Append(self.path, rows, partition_by or None, named, cluster_by=paths_of(cluster_by)).run()
        return self

    def append(self, *rows: Row) -> int:
        """A blind append."""
        return Append(self.path, list(rows)).run().version

    def overwrite(self, *rows: Row) -> None:
        """Replace every row."""
        Write(self.path, pa.Table.from_pylist(list(rows)), "overwrite").run(self.engine)

    def update(self, where: str | None, **values: Any) -> Outcome:
        """UPDATE … SET."""
        return Update(self.path, values, self.condition(where)).run(self.engine)

    def delete(self, where: str | None = None) -> Outcome:
        """DELETE."""
        return Delete(self.path, self.condition(where)).run(self.engine)

    def optimize(self, *zorder_by: str, where: str | None = None, full: bool = False) -> OptimizeResult:
        """OPTIMIZE … ZORDER BY."""
        return Optimize(self.path, self.condition(where), paths_of(zorder_by), full).run(self.engine)

    def reorg(self, where: str | None = None) -> OptimizeResult:
        """REORG … APPLY (PURGE)."""
        return Purge(self.path, self.condition(where)).run(self.engine)

    def restore(self, version: int) -> RestoreResult:
        """RESTORE … TO VERSION AS OF."""
        return Restore(self.path, version).run()

    def vacuum(self, hours: float | None = None) -> VacuumResult:
        """VACUUM; of any number of hours, without the check."""
        return Vacuum(self.path, hours, check_retention=hours is None).run()

    def merge(self, rows: list[Row], *clauses: Clause, by: str = "id", also: str | None = None) -> MergeResult:
        """MERGE these rows ON equality of one column; without clauses an upsert."""
        table = pa.Table.from_pylist(rows)
        chosen = clauses or (update_all(*table.column_names), insert_all(*table.column_names))
        matching = MergePlan(lambda row, source: equal(row[by], source[by]), chosen, keys=((by, by),))
        return Merge(self.path, table, matching, self.condition(also)).run(self.engine)

    def condition(self, where: str | None) -> Condition:
        """A condition in SQL."""
        if where is None:
            return EVERY_ROW
        snapshot = self.log.snapshot()
        now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        return condition(where, Context(snapshot.table, snapshot.schema, now, "UTC", lambda names: True))

    def rows(self, version: int | None = None) -> list[Row]:
        """The rows, sorted."""
        return sorted(self.engine.rows(Read(self.path, version).run()), key=_order)

    @property
    def version(self) -> int:
        """The newest version."""
        return self.log.snapshot().version

    def info(self, version: int | None = None) -> Mapping[str, Any]:
        """The ``commitInfo`` of a version."""
        commit = self.log.read(self.version if version is None else version)
        assert commit is not None
        return commit.head.info

    def assert_clean(self) -> None:
        """The deep check finds nothing, at no version, and two others read the rows; a short run looks at the newest
        version alone, and asks one of the others.
        """
        newest = self.version
        for version in range(newest if is_short() else earliest_version(self.log.store), newest + 1):
            report = check(self.log.snapshot(version), deep=True)
            assert report.is_clean, str(report)
        if is_short():
            assert same_rows(deltalake_rows(self.path), self.rows()), "delta-rs reads other rows"
        else:
            assert_others_agree(self.path)


def equal(left: Any, right: Any) -> bool | None:
    """SQL's ``=``."""
    return None if left is None or right is None else left == right


def update_all(*columns: str) -> Clause:
    """WHEN MATCHED THEN UPDATE SET *."""
    return Clause("matched", "update", None, {name: SourceColumn(name) for name in columns})


def insert_all(*columns: str) -> Clause:
    """WHEN NOT MATCHED THEN INSERT *."""
    return Clause("not matched", "insert", None, {name: SourceColumn(name) for name in columns})


def assert_others_agree(path: str) -> None:
    """delta-rs and DuckDB, neither of which we wrote, read the table that a test leaves behind with the same rows.

    Of a table with a column mapping DuckDB takes partition columns for NULL unless they stand first (delta-spark's
    tables too), so they are not compared there.
    """
    ours, snapshot = World(path).rows(), open_log(path).snapshot()
    assert same_rows(deltalake_rows(path), ours), "delta-rs reads other rows"
    hidden = snapshot.partition_columns if is_mapped(snapshot.metadata.configuration) else ()
    assert same_rows(_without(duckdb_rows(path), hidden), _without(ours, hidden)), "DuckDB reads other rows"


def _without(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in columns} for row in rows]


def _order(row: Row) -> list[tuple[bool, Any]]:
    return [(value is None, 0 if value is None else value) for value in row.values()]
