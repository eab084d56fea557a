"""CREATE TABLE: a table without rows."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.commands.insert import Insert, NewTable, run_insert
from anabranch.commands.opening import Location, open_log
from anabranch.protocol.actions import empty_files
from anabranch.transaction.commit import Committed


@dataclass(frozen=True)
class Create:
    """Create an empty table of these columns, partitioning and properties.

    Of several writers that create one table at once, one wins; the others get `ProtocolChangedException`.

    Example:
        >>> Create("/data/flights", NewTable(schema)).run()
    """

    table: Location
    new: NewTable
    if_not_exists: bool = False

    def run(self) -> Committed | None:
        """Run it; None where there is a table already and ``if_not_exists`` is set.

        Raises:
            TableAlreadyExists: there is a table.
            ProtocolChangedException: another writer created it meanwhile.
        """
        return run_insert(
            Insert(
                log=open_log(self.table),
                mode="ignore" if self.if_not_exists else "error",
                new=self.new,
                stage=lambda metadata: empty_files(),
                discard=lambda: None,
                finish=lambda: None,
                operation="CREATE TABLE",
            )
        )
