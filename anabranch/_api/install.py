"""``anabranch.install`` and ``anabranch.uninstall`` add Delta support to an existing session, and remove it.

The one place that wraps anything of PySpark's, and only public attributes of its classes: ``SparkSession.sql``,
``table``, ``read``, ``readStream``, ``catalog`` and ``newSession``, the readers of ``SQLContext``,
``DataFrame.write``, ``writeTo``, ``mergeInto`` and ``writeStream``, the methods of ``spark.catalog`` that change the
meaning of names, the methods of DataFrame that select rows or columns or hide the plan, and its actions, which report
files that a VACUUM has removed. `anabranch._spark.sessions.known_sessions` knows which sessions are installed.

Guarantee: sessions that are not installed, and names, formats and statements that are not Delta's, get Spark's own
behaviour; uninstalling the last session restores PySpark's classes. Where Delta's own JARs are on the session,
``delta`` stays theirs and ours is ``anabranch``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from threading import RLock
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from anabranch._api.catalog import catalog_door
from anabranch._api.frame_skipping import pinned_version, wrap_alias, wrap_count, wrap_filter, wrap_select
from anabranch._api.merge_writer import MergeWriter
from anabranch._api.reader_and_writer import Reader, Writer, table_of
from anabranch._api.streams import StreamReader, StreamWriter
from anabranch._api.writer_v2 import WriterV2
from anabranch._catalog.entries import forget
from anabranch._spark.frames.dataframe_source import source_names, with_aliases
from anabranch._spark.frames.missing_files import missing_for
from anabranch._spark.sessions.file_settings import use_session_settings
from anabranch._spark.sessions.known_sessions import (
    are_installed,
    formats_of,
    leave_mark,
    note_installed,
    note_uninstalled,
)
from anabranch._spark.sessions.session import check_own_delta, plain_catalog
from anabranch._spark.sessions.sql_text import PlacedFrame, in_views
from anabranch._sql.executor import view_changes
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.prefilter import may_touch_delta, text_facts
from anabranch._sql.sql import sql
from anabranch.errors import AnabranchError
from anabranch.errors.inputs import check_session, check_text
from anabranch.errors.process_state import hold

_NAME_CHANGES = ("dropTempView", "setCurrentDatabase", "setCurrentCatalog")
"""Methods, other than statements, that change which table a name means."""
_ACTIONS = ("collect", "show", "toPandas", "toArrow", "tail", "isEmpty")
_PLAN_HIDING = ("checkpoint", "localCheckpoint")
"""Methods that return the same rows without the plan."""
_RESETS = re.compile(r"\s*RESET\b", re.IGNORECASE)
_lock = RLock()
_wrapped: dict[tuple[type, str], tuple[Any, Any]] = hold("wrapped attributes", "they are listed here")({})
"""The original and the wrapper of every wrapped attribute."""


def install(spark: SparkSession) -> SparkSession:
    """Adds Delta support to a session and its clones. Safe to call twice, and from several threads.

    Raises:
        InvalidArgument: ``spark`` is not a session.
        MissingDeltaJars: the session's catalog is delta-spark's, and its JARs are missing.

    Example:
        >>> spark = anabranch.install(SparkSession.builder.getOrCreate())
        >>> spark.read.format("delta").load("/data/flights")
        >>> spark.sql("DELETE FROM flights WHERE carrier = :c", {"c": "UA"})
    """
    check_session("spark", spark)
    with _lock:
        if not formats_of(spark):
            check_own_delta(spark)
        note_installed(spark)
        _wrap_all(type(spark), type(spark.range(0)), type(plain_catalog(spark)))
    return spark


def uninstall(spark: SparkSession) -> SparkSession:
    """Undoes `install` for a session; does nothing if it is not installed.

    Example:
        >>> spark = anabranch.uninstall(spark)
    """
    with _lock:
        note_uninstalled(spark)
        if not are_installed():
            for (owner, name), (plain, ours) in list(_wrapped.items()):
                if vars(owner).get(name) is ours:  # else somebody wrapped ours, which then only delegates
                    setattr(owner, name, plain)
                    del _wrapped[owner, name]
    return spark


def _wrap_all(session: type, frame: type, catalog: type) -> None:
    _wrap(session, "sql", _sql)
    _wrap(session, "table", _table)
    _wrap(session, "read", lambda plain: _property(plain, lambda self: self, Reader))
    _wrap(session, "readStream", lambda plain: _property(plain, lambda self: self, StreamReader))
    _wrap(session, "catalog", lambda plain: _property(plain, lambda self: self, catalog_door))
    if not session.__module__.startswith("pyspark.sql.connect"):
        _wrap_old_context()
    _wrap(frame, "writeStream", lambda plain: _property(plain, lambda self: self.sparkSession, _streaming(plain)))
    _wrap(frame, "write", lambda plain: _property(plain, lambda self: self.sparkSession, Writer))
    _wrap(frame, "writeTo", _write_to)
    for owner, name, door in ((frame, "mergeInto", _merge_into), (session, "newSession", _new_session)):
        if hasattr(owner, name):  # some PySpark versions, and Connect, lack them
            _wrap(owner, name, door)
    for method, keeping in (
        ("filter", wrap_filter),
        ("alias", wrap_alias),
        ("select", wrap_select),
        ("drop", wrap_select),
    ):
        _wrap(frame, method, keeping)
    for naming in _NAME_CHANGES:
        _wrap(catalog, naming, _forgetting)
    for hiding in _PLAN_HIDING:
        _wrap(frame, hiding, _carrying)
    for action in _ACTIONS:
        _wrap(frame, action, _reporting_missing_files)
    _wrap(frame, "count", lambda plain: wrap_count(_reporting_missing_files(plain)))


def _wrap_old_context() -> None:
    """Wraps ``SQLContext``, whose readers PySpark creates separately from those of its session."""
    from pyspark.sql import SQLContext  # missing where only Spark Connect is installed

    for name, reader in (("read", Reader), ("readStream", StreamReader)):
        _wrap(SQLContext, name, _of_context(reader))


def _of_context(reader: Callable[[SparkSession, Any], Any]) -> Callable[[Any], property]:
    def door(plain: Any) -> property:
        return _property(
            plain, lambda self: self.sparkSession, lambda self, plain_reader: reader(self.sparkSession, plain_reader)
        )

    return door


def _wrap(owner: type, name: str, door: Callable[[Any], Any]) -> None:
    if (owner, name) in _wrapped:
        return
    plain = getattr(owner, name)
    ours = door(plain)
    _wrapped[owner, name] = plain, ours
    setattr(owner, name, ours)


def _sql(plain: Any) -> Any:
    @wraps(plain)
    def run(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        formats = formats_of(self)
        if not formats or not isinstance(sqlQuery, str) or _is_theirs(formats, sqlQuery):
            return plain(self, sqlQuery, args, **kwargs)
        if _RESETS.match(sqlQuery) and not kwargs:
            return _reset(plain, self, sqlQuery, args)
        if kwargs:
            return _sql_of_frames(plain, self, sqlQuery, args, kwargs)
        return sql(self, sqlQuery, args, names=Names(self, formats))

    run.anabranch_plain = plain  # type: ignore[attr-defined]
    return run


def _reset(plain: Any, spark: SparkSession, text: str, args: Any) -> DataFrame:
    """Runs a statement that may unset all settings, including the mark of an installed session."""
    try:
        rows: DataFrame = plain(spark, text, args)
    finally:
        leave_mark(spark)
    return rows


def _is_theirs(formats: frozenset[str], text: str) -> bool:
    """Whether the statement calls a function that Delta's own JARs provide too."""
    return "delta" not in formats and "table_changes" in text.lower()


def _sql_of_frames(plain: Any, spark: SparkSession, text: str, args: Any, arguments: dict[str, Any]) -> DataFrame:
    """Runs a statement with DataFrames, columns and values in its text, ``{df}``, which PySpark substitutes as
    usual.
    """
    formats = formats_of(spark)
    names = Names(spark, formats)
    if "${" not in text and not (may_touch_delta(text, names) or text_facts(text).is_computed):
        return plain(spark, text, args, **arguments)
    package = type(spark).__module__.rsplit(".", 1)[0]
    formatter = import_module(f"{package}.sql_formatter").SQLStringFormatter(spark)
    placed = {key: PlacedFrame(value) if isinstance(value, DataFrame) else value for key, value in arguments.items()}
    frames = {str(item): item.frame for item in placed.values() if isinstance(item, PlacedFrame)}
    formatted = formatter.format(text, **placed)
    with in_views(frames):
        return sql(spark, formatted, args, names=Names(spark, formats), frames=frames)


def _table(plain: Any) -> Any:
    @wraps(plain)
    def rows(self: SparkSession, tableName: str) -> DataFrame:
        return self.read.table(tableName) if formats_of(self) else plain(self, tableName)

    return rows


def _forgetting(plain: Any) -> Any:
    """Wraps a method after which names may mean other tables."""

    @wraps(plain)
    def change(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return plain(self, *args, **named)
        finally:
            forget()

    return change


def _write_to(plain: Any) -> Any:
    @wraps(plain)
    def writer(self: DataFrame, table: str) -> Any:
        if formats_of(self.sparkSession):
            check_text("The name of a table", str(table))
        plain_writer = plain(self, table)
        return WriterV2(self, table, plain_writer) if formats_of(self.sparkSession) else plain_writer

    return writer


def _merge_into(plain: Any) -> Any:
    @wraps(plain)
    def writer(self: DataFrame, table: str, condition: Column) -> Any:
        spark = self.sparkSession
        if formats_of(spark):
            with use_session_settings(spark):
                if table_of(spark, table) is not None:
                    return MergeWriter.of(spark, self, table, condition)
                if (shown := view_changes.find_view(spark, table)) is not None:
                    return MergeWriter.through(spark, self, shown, condition)
        return plain(self, table, condition)

    return writer


def _new_session(plain: Any) -> Any:
    @wraps(plain)
    def session(self: SparkSession) -> SparkSession:
        new: SparkSession = plain(self)
        return install(new) if formats_of(self) else new

    return session


def _property(plain: Any, session_of: Callable[[Any], SparkSession], door: Callable[[Any, Any], Any]) -> property:
    def open_door(self: Any) -> Any:
        plain_value = plain.__get__(self, type(self))  # a property, cached or not
        return door(self, plain_value) if formats_of(session_of(self)) else plain_value

    open_door.__doc__ = plain.__doc__
    open_door.anabranch_plain = plain  # type: ignore[attr-defined]
    return property(open_door)


def _streaming(plain: Any) -> Callable[[Any, Any], StreamWriter]:
    return lambda frame, plain_writer: StreamWriter(frame, plain_writer, lambda: plain.fget(frame))


def _carrying(plain: Any) -> Any:
    """Wraps a method so that its rows keep their record of the table versions that they come from."""

    @wraps(plain)
    def rows(self: DataFrame, *args: Any, **named: Any) -> DataFrame:
        frame: DataFrame = plain(self, *args, **named)
        return with_aliases(frame, source_names(self)) if formats_of(self.sparkSession) else frame

    return rows


def _reporting_missing_files(plain: Any) -> Any:
    """Wraps an action of DataFrame so that it reports when a VACUUM has removed a file that it needs."""

    @wraps(plain)
    def act(self: DataFrame, *args: Any, **named: Any) -> Any:
        try:
            return plain(self, *args, **named)
        except AnabranchError:
            raise
        except Exception as error:
            with use_session_settings(self.sparkSession):
                missing_file = missing_for(self, error, pinned_version(self)) if formats_of(self.sparkSession) else None
            if missing_file is None:
                raise
            raise missing_file from None

    return act
