"""``anabranch.transaction``: several statements on one table as one transaction.

Knows only how it is asked for; `anabranch.commands.transactions` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anabranch._api.dials import dials_of
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.site import site_without_spark
from anabranch._protocol.dials import Dials
from anabranch._protocol.session_settings import use_dials
from anabranch._transaction.commit import CommitResult
from anabranch.commands.opening import Location, open_log
from anabranch.commands.transactions import StatementGroup
from anabranch.errors.inputs import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TransactionBlock:
    """The statements of a ``with`` block as one transaction; made by `anabranch.transaction`.

    Attributes:
        result: the commit, after the block; None where nothing was to be changed.
    """

    def __init__(
        self,
        group: StatementGroup,
        table: Location,
        storage_options: Mapping[str, str] | None,
        dials: Dials,
        settings: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._group, self._table, self._options = group, table, storage_options
        self._dials, self._settings, self._scope = dials, settings, ExitStack()

    def __enter__(self) -> TransactionBlock:
        with ExitStack() as scope, self._settings():
            scope.enter_context(use_dials(self._dials))
            self._group.begin(self._table, self._options)
            self._scope = scope.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
            else:
                self.roll_back()
        finally:
            with suppress(ValueError):  # the block ends in another context than its own, which has no such scope
                self._scope.close()

    @property
    def result(self) -> CommitResult | None:
        """The commit of all statements; None before it, and where they changed nothing."""
        return self._group.committed

    def commit(self) -> CommitResult | None:
        """Commit before the block ends. What follows in the block is outside of the transaction."""
        with self._settings():
            return self._group.commit()

    def roll_back(self) -> None:
        """Give all up before the block ends. What follows in the block is outside of the transaction."""
        with self._settings():
            self._group.roll_back()


def transaction(
    path_or_name: Location,
    *,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
    isolation_level: str | None = None,
    conflict_resolution: str | None = None,
) -> TransactionBlock:
    """Make the statements of a ``with`` block, on this thread and on one table, one transaction: one version of the
    table, or none.

    Inside, every read of the table sees the version at the beginning of the block and what the block has done since;
    nobody else sees anything before the end. An exception gives all up. Other tables are read as of their first use.
    Appends, overwrites, UPDATE, DELETE and MERGE may stand inside, by any function, method or SQL; what may not is in
    docs/concepts/transactions.md.

    Args:
        path_or_name: path or URL of the table, or, with a session, its name.
        spark: the session; needed for names, and for change data that only Spark can write.
        storage_options: as in obstore.
        isolation_level: ``Serializable`` for this transaction, at a table of a weaker level.
        conflict_resolution: ``file``, ``row`` or ``redo`` for this transaction.

    Returns:
        a context manager, whose ``result`` is the commit.

    Raises:
        DeltaConcurrentModificationException: at the end of the block, a winner stands in the way; nothing is visible.
        NotInTransaction: a statement may not stand inside, or a transaction is open already.
        NotATable: there is no table.
        CommitOutcomeUnknown: the store did not answer.

    Example:
        >>> with anabranch.transaction("/data/accounts") as txn:
        ...     accounts = anabranch.table("/data/accounts")
        ...     accounts.update("id = 1", {"balance": "balance - 10"})
        ...     accounts.update("id = 2", {"balance": "balance + 10"})
        >>> txn.result.version
        7
    """
    dials = dials_of(isolation_level, conflict_resolution)
    if spark is None:
        engine = ArrowBackend(site_without_spark(open_log(path_or_name, storage_options).store))
        return TransactionBlock(StatementGroup(engine), path_or_name, storage_options, dials)
    check_session("spark", spark)
    from anabranch._api.session_table import find_location
    from anabranch._spark.engine import SparkEngine
    from anabranch._spark.sessions.file_settings import use_session_settings

    location = find_location(spark, path_or_name, storage_options)
    group = StatementGroup(SparkEngine(spark))
    return TransactionBlock(group, location, storage_options, dials, lambda: use_session_settings(spark))
