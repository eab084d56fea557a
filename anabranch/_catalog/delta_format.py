"""The format ``delta``, as a session of ours knows it: by its name, and nothing more.

Spark keeps, renames and drops an entry USING delta in a session that knows a format of this name, and in no other. So
each session that makes names has one of ours beside it, which shares its catalog and is never the user's: a session
that knew the format would drop a table before it finds that it cannot write one (``saveAsTable`` in mode overwrite),
and ``spark.read.format("delta")`` would mean this. Guarantees: the user's session, and what its threads take for the
active one, stay as they are; no row is ever read or written through the format.
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
"""By session: the one beside it; None where there can be none."""


def is_known(spark: SparkSession) -> bool:
    """Whether entries USING delta can be made and changed for a session, in Spark's own catalog."""
    is_sparks = spark.conf.get(_SESSIONS_CATALOG, None) in (None, "builtin")
    if is_connect(spark) or has_own_delta(spark) or not is_sparks:
        return False
    return _session_beside(spark) is not None


def run_beside(spark: SparkSession, statement: str) -> list[Row]:
    """What a statement gives in the session beside this one. Raises AnalysisException: as Spark does."""
    other, case = _session_beside(spark), spark.conf.get(_CASE, "false")
    with _beside.lock:
        other.conf.set(_CASE, case)  # else Spark would spell a name in another way than the user's session
        return _in_thread(lambda: exact_sql(other, statement).collect())


def _session_beside(spark: SparkSession) -> Any:
    with _beside.lock:
        known = session_of(spark)
        if known not in _beside:
            _beside[known] = _in_thread(lambda: _try_new_session(spark))
        return _beside[known]


def _try_new_session(spark: SparkSession) -> SparkSession | None:
    """A new session that knows the format; None where another format of this name is on the class path."""
    from pyspark import RDD  # what Spark Connect alone does not have

    to_df = RDD.toDF
    found: SparkSession = unwrap(type(spark).newSession)(spark)
    RDD.toDF = to_df  # type: ignore[method-assign] # PySpark gives it to the newest session, whose frames it makes
    try:
        found.dataSource.register(_delta())
    except AnalysisException:
        return None
    return found


def _delta() -> Any:
    """The format; made here, so that it reaches Spark's own Python by value, which need not know this package."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    class Delta(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def schema(self) -> StructType:
            """None: what the columns are is in the table's log, as for delta-spark."""
            return StructType([])

    return Delta


def _in_thread(work: Callable[[], _T]) -> _T:
    """What some work gives in a thread of its own: Spark asks the session that a thread has used last."""
    found: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
