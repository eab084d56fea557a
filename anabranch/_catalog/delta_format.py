"""Registers the format ``delta`` by name only, in hidden sessions, so that Spark accepts entries USING delta.

Spark stores, renames and drops an entry USING delta in a session that knows a format of this name, and in no other. So
each session that creates names gets a hidden session, which shares its catalog. The user's session must not know the
format: it would drop a table before it finds that it cannot write one (``saveAsTable`` in mode overwrite), and
``spark.read.format("delta")`` would mean this. Guarantees: the user's session, and the active session of its threads,
stay as they are; no row is ever read or written through the format.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from threading import Thread
from typing import Any, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from anabranch._spark.sessions.known_sessions import session_of
from anabranch._spark.sessions.session import has_own_delta, is_connect
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.errors.process_state import per_object

_CASE = "spark.sql.caseSensitive"
_SESSIONS_CATALOG = "spark.sql.catalog.spark_catalog"
_T = TypeVar("_T")

_beside = per_object("sessions that know the format of names")
"""The hidden session of each session; None if there can be none."""


def is_known(spark: SparkSession) -> bool:
    """Whether entries USING delta can be created and changed for a session, in Spark's own catalog."""
    is_sparks = spark.conf.get(_SESSIONS_CATALOG, None) in (None, "builtin")
    if is_connect(spark) or has_own_delta(spark) or not is_sparks:
        return False
    return _session_beside(spark) is not None


def run_in_hidden_session(spark: SparkSession, statement: str) -> list[Row]:
    """Runs a statement in the hidden session of this one. Raises AnalysisException: as Spark does."""
    other, case = _session_beside(spark), spark.conf.get(_CASE, "false")
    with _beside.lock:
        other.conf.set(_CASE, case)  # else Spark would spell a name differently from the user's session
        return _in_thread(lambda: exact_sql(other, statement).collect())


def _session_beside(spark: SparkSession) -> Any:
    with _beside.lock:
        session = session_of(spark)
        if session not in _beside:
            _beside[session] = _in_thread(lambda: _try_new_session(spark))
        return _beside[session]


def _try_new_session(spark: SparkSession) -> SparkSession | None:
    """A new session with the format; None if another format of this name is on the class path."""
    from pyspark import RDD  # missing where only Spark Connect is installed

    to_df = RDD.toDF
    session: SparkSession = unwrap(type(spark).newSession)(spark)
    RDD.toDF = to_df  # type: ignore[method-assign] # PySpark binds it to the newest session
    try:
        session.dataSource.register(_delta())
    except AnalysisException:
        return None
    return session


def _delta() -> Any:
    """The format; defined here, so that it travels by value to Spark's own Python, which may lack this package."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    class Delta(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def schema(self) -> StructType:
            """No columns: they are in the table's log, as for delta-spark."""
            return StructType([])

    return Delta


def _in_thread(work: Callable[[], _T]) -> _T:
    """Runs work in a new thread, since Spark uses the session that a thread used last."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
