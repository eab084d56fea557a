"""Opens a table for Arrow: without Spark, or with a session. It loads PySpark only where a session is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch._api.table import Table
from anabranch.commands.opening import Location
from anabranch.errors.inputs import check_session

__all__ = ["table"]


def table(path_or_name: Location, *, spark: Any = None, storage_options: Mapping[str, str] | None = None) -> Table:
    """A Delta table that is there, to be read and changed as Arrow, without Spark or with a session.

    Args:
        path_or_name: path or URL of the table, or, with a session, its name in Spark's catalog.
        spark: a session, which does what Arrow leaves: no call raises `NeedsSpark` then, and its settings count.
        storage_options: as in obstore, for our own client.

    Raises:
        NotATable: there is none. UnknownStore: the path names no store.

    Example:
        >>> flights = anabranch.table("/data/flights")
        >>> flights.delete("carrier = 'UA' AND dep_delay IS NULL").rows
        12
    """
    if spark is None:
        found = Table(path_or_name, storage_options)
    else:
        check_session("spark", spark)
        from anabranch._api.session_table import SessionTable  # needs Spark, which a table without a session does not

        found = SessionTable(spark, path_or_name, storage_options)
    found.snapshot()
    return found
