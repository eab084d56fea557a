"""REPLACE ON and REPLACE USING as a user specifies them, in SQL or by options of a writer, and the matching for them.

Guarantee: creating the matching reads nothing of the rows but their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from anabranch._expressions import MergeColumns
from anabranch._expressions.replacing import replace_on, replace_using
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._spark.engine import SparkEngine
from anabranch._sql.conditions import context_of
from anabranch.commands.dml.matched_rows import Matching
from anabranch.errors import InvalidOption


@dataclass(frozen=True, eq=False)
class ReplaceRequest:
    """The specification of an overwrite that replaces what its own rows match.

    Attributes:
        rows: the rows, under the names that the condition and USING mean.
        on: the text of the condition of ON; None for USING.
        using: the columns of USING.
        alias: the table's alias in the condition.
        rows_alias: the alias of the rows, if the caller specified one; else the DataFrame's.
        by_position: whether the rows are stored by position.
        said: the columns of USING as the history shows them.
        to_write: makes the rows to write of the rows.
    """

    rows: DataFrame
    on: str | None = None
    using: tuple[str, ...] = ()
    alias: str | None = None
    rows_alias: str | None = None
    by_position: bool = False
    said: str = ""
    to_write: Callable[[Any], Any] | None = None

    def matching(self, snapshot: Snapshot, engine: SparkEngine) -> Matching:
        """Return the matching for a version of the table.

        Raises:
            InvalidCondition, UnknownUsingColumn, MisalignedUsingColumns: the request does not fit table and rows.
        """
        context = context_of(snapshot, engine)
        described = all_nullable(engine.describe(self.rows))
        described = described.exactly() if context.schema.exact else described
        rows_alias = self.rows_alias or engine.alias(self.rows)
        sides = MergeColumns(context.schema, tuple(self.rows.columns), self.alias, rows_alias, described=described)
        if self.on is None:
            where, plan = replace_using(self.using, sides, context, by_position=self.by_position)
            option, parameters = "replaceUsing", {"replaceUsingCols": f"({self.said})"}
        else:
            where, plan = replace_on(self.on, sides, context)
            option, parameters = "replaceOn", {"replaceOnCond": self.on}
        projection = {} if self.to_write is None else {"to_write": self.to_write}
        return Matching(
            option, self.rows, plan, where, parameters, None if self.on is None else self.alias, **projection
        )


def parse_using(text: str) -> tuple[str, ...]:
    """The columns that the option ``replaceUsing`` names, separated by commas. Raises InvalidOption: one is empty."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidOption(option="replaceUsing", value=text, reason="it must not contain empty column names.")
    return names
