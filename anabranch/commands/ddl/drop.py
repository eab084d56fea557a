"""DROP of a managed table removes everything in its folder, the log first.

It removes the log from its oldest file to its newest, so that no reader of the path takes an older version for the
newest: the rest of the log has a gap, which readers refuse.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._storage.trees import remove_empty, tree
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log

_LOG = "_delta_log/"


@dataclass(frozen=True)
class Drop(SecretFree):
    """Remove a table with all its files; without a log it removes nothing.

    Example:
        >>> Drop("/warehouse/flights").run()
    """

    table: Location

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> int:
        """Run it; return the number of removed files.

        Raises:
            StoreError: a file could not be removed; run it again.
        """
        store = open_log(self.table).store
        log = store.list_from(_LOG)
        for entry in log:
            store.delete(entry.name)
        if not log:
            return 0
        rest = tree(store, lambda folder: False)
        for entry in rest.files:
            store.delete(entry.name)
        remove_empty(store, [*rest.folders, ""])
        return len(log) + len(rest.files)
