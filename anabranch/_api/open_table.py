"""Opens a table for Arrow, without Spark or with a session. Loads PySpark only with a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch._api.dials import dials_of
from anabranch._api.table import Table
from anabranch._protocol.dials import strengthen
from anabranch.commands.opening import Location
from anabranch.errors.inputs import check_session

__all__ = ["table"]


def table(
    path_or_name: Location,
    *,
    spark: Any = None,
    storage_options: Mapping[str, str] | None = None,
    isolation_level: str | None = None,
    conflict_resolution: str | None = None,
) -> Table:
    """Opens an existing Delta table, to read and change it with Arrow, without Spark or with a session.

    Args:
        path_or_name: path or URL of the table, or, with a session, its name in Spark's catalog.
        spark: a session, which does what Arrow cannot: no call raises `NeedsSpark` then, and its settings apply.
        storage_options: as in obstore, for our own client.
        isolation_level: of the changes by this object: ``Serializable``, or the table's own level; None: as the session
            or the table says.
        conflict_resolution: of these: ``file``, ``row`` or ``redo``, whatever the table says; None likewise.

    Raises:
        NotATable: it does not exist. UnknownStore: the path names no store.
        InvalidOption: the isolation level is weaker than the table's. InvalidArgument: there is no such value.

    Example:
        >>> flights = anabranch.table("/data/flights")
        >>> flights.delete("carrier = 'UA' AND dep_delay IS NULL").rows
        12
    """
    dials = dials_of(isolation_level, conflict_resolution)
    if spark is None:
        handle = Table(path_or_name, storage_options)
    else:
        check_session("spark", spark)
        from anabranch._api.session_table import SessionTable  # needs PySpark

        handle = SessionTable(spark, path_or_name, storage_options)
    snapshot = handle.snapshot()
    strengthen(snapshot.properties, dials, snapshot.table)
    handle._dials = dials
    return handle
