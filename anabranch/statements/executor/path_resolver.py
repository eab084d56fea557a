"""Resolving: which names of a statement are Delta tables, and where those lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyspark.sql import DataFrame

from anabranch.catalog.entries import spelled
from anabranch.catalog.named_tables import path_in
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidOption, UnknownTable
from anabranch.statements.executor.running import Running
from anabranch.statements.grammar.ddl_targets import Making
from anabranch.statements.grammar.parts import View
from anabranch.statements.grammar.values import DropTable, RenameTable, Statement


class Resolver(Protocol):
    """What knows names. Whoever has more names than paths brings another one."""

    def may_matter(self, text: str) -> bool:
        """Whether a statement may name a table that this knows, by a look at its text that costs next to nothing."""
        ...

    def location(self, name: tuple[str, ...]) -> Location | View | None:
        """Where the Delta table of this name lies, or the lasting view that reads one; None where the name means
        something else, or nothing.
        """
        ...

    def kept(self, name: tuple[str, ...]) -> Location | View | None:
        """As `location`, of what the catalog keeps under this name, whichever temporary view hides that."""
        ...

    def place(self, name: tuple[str, ...], making: Making) -> Location | None:
        """Where a Delta table lies, or will, that a statement makes; None where it makes another kind of table."""
        ...

    def run(self, statement: Statement, run: Running, plain: Callable[[], DataFrame]) -> DataFrame:
        """Run a statement, ``plain`` or with what it does to names."""
        ...


class Paths:
    """Tables that are named by their path: ``delta.`/data/flights` `` and ``anabranch.`s3://bucket/flights` ``.

    A path is absolute, or a URL: a schema of Spark's may be called delta, too.
    """

    def may_matter(self, text: str) -> bool:
        """Nothing beyond what a path itself says."""
        return False

    def location(self, name: tuple[str, ...]) -> Location | None:
        """The path, where the name is one."""
        return path_in(name)

    def kept(self, name: tuple[str, ...]) -> Location | None:
        """The path, where the name is one."""
        return self.location(name)

    def place(self, name: tuple[str, ...], making: Making) -> Location | None:
        """The path, where the name is one."""
        return self.location(name)

    def run(self, statement: Statement, run: Running, plain: Callable[[], DataFrame]) -> DataFrame:
        """As it is: a path is the table, and has no other name.

        Raises:
            InvalidOption: the statement would take the name away, or change it. UnknownTable: there is none to drop.
        """
        if isinstance(statement, DropTable):
            _refuse_drop(statement)
            return run.nothing()
        if isinstance(statement, RenameTable):
            reason = "a table that is named by its path has no other name."
            raise InvalidOption(option="RENAME TO", value=".".join(statement.name), reason=reason)
        return plain()


def _refuse_drop(statement: DropTable) -> None:
    """Let nobody believe that a table is gone which is there as before: delta-spark says nothing, and does nothing.

    Raises:
        InvalidOption: the table is there. UnknownTable: it is not, and the statement does not say IF EXISTS.
    """
    table = statement.table
    if open_log(table.location).exists():
        reason = "a path is no name that could be dropped, and the files would stay: remove the folder, or DELETE rows."
        raise InvalidOption(option="DROP TABLE", value=spelled(table.name), reason=reason)
    if not statement.if_exists:
        raise UnknownTable(name=spelled(table.name))
