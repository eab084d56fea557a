"""Reads a session's settings for Delta Lake once for each command, and checks them.

Knows how to read settings cheaply, on classic sessions and on Connect. `anabranch._protocol.settings` decides which are
honoured, harmless or refused. Guarantees: no setting of a session is ever changed, except ``txnVersion`` if the session
requests that by ``autoReset``; each process warns of an undocumented setting once.

On a classic session reading one setting takes some 0.1 ms and listing them all some 15 ms; on Connect either is one
round trip. So Connect sessions are listed; on classic sessions the settings with an effect are read by name, and all
are listed once a second at most, for the warnings, or once for a command that needs the list. The list comes as rows of
a query, in which Spark hides secrets: what PySpark asks of the JVM is written to its log at DEBUG, with the answers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from anabranch._protocol import settings
from anabranch._protocol.session_settings import SessionSettings, apply_settings, has_settings
from anabranch._spark.sessions.session import HIDDEN, is_connect
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.errors import UnknownSetting
from anabranch.errors.process_state import cache, per_object

LISTED_S = 1.0
"""Minimum interval between two listings of a session's settings, in seconds."""
_listed = per_object("when a session's settings were listed")
_warned = cache("settings warned of", 1000)
_command: ContextVar[tuple[SparkSession, dict[str, str]] | None] = ContextVar("anabranch_settings", default=None)
"""The session of the running command, and its settings once they are listed."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def honour_settings(spark: SparkSession, verb: str) -> Iterator[None]:
    """Run the block as a command that honours its session's settings; within another command this does nothing.

    Args:
        spark: the session.
        verb: the command's name in messages; some settings are refused for some verbs only.

    Raises:
        UnsupportedSetting: a setting requests what is not built. Nothing has been done.

    Example:
        >>> with honour_settings(spark, "DELETE"):
        ...     Delete("/data/flights", where).run(engine)
    """
    if has_settings():
        yield
        return
    token = _command.set((spark, {}))
    try:
        values = _read(spark)
        settings.check(values, verb)
        with apply_settings(_build_said(spark, values)) as context:
            yield
    finally:
        _command.reset(token)
    if context.used_txn and settings.flag(values, settings.TXN_RESET, False):
        spark.conf.unset(settings.TXN_VERSION)


def honours(verb: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a method of a door as one command of its session: its ``_spark``, its ``spark`` or its engine's.

    Example:
        >>> @honours("DELETE")
        ... def delete(self, condition): ...
    """

    def with_settings(method: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(method)
        def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            owner: Any = args[0]
            session_owner = getattr(owner, "engine", owner)
            with honour_settings(
                session_owner._spark if hasattr(session_owner, "_spark") else session_owner.spark, verb
            ):
                return method(*args, **kwargs)

        return run

    return with_settings


def list_settings(spark: SparkSession) -> Mapping[str, str]:
    """All settings of a session, without the values that Spark takes for secrets. While a command of the session runs,
    the values are those of the first call.
    """
    running = _command.get()
    if running is None or running[0] is not spark:
        return _list(spark)
    if not running[1]:
        running[1].update(_list(spark))
    return running[1]


def find_settings(spark: SparkSession, prefixes: tuple[str, ...]) -> dict[str, str]:
    """The settings of a session with these prefixes, including secrets; no other secret is read."""
    values: dict[str, str | None] = {
        name: value for name, value in list_settings(spark).items() if name.startswith(prefixes)
    }
    values |= {name: spark.conf.get(name, None) for name, value in values.items() if value == HIDDEN}
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def listing(spark: SparkSession) -> Iterator[None]:
    """List the settings of a running command while the block waits for Spark. If that fails, the error is raised where
    the list is needed.
    """
    running = _command.get()
    if running is None or running[0] is not spark or running[1] or is_connect(spark):
        yield
        return
    inheriting: Any = inheritable_thread_target(spark)  # it closes the thread's connection to the JVM at its end
    with ThreadPoolExecutor(1, thread_name_prefix="anabranch-settings") as pool:
        pool.submit(inheriting(partial(copy_context().run, list_settings, spark)))
        yield


def setting(spark: SparkSession, name: str, default: bool) -> bool:
    """The value of a boolean setting.

    Raises:
        UnsupportedSetting: it is neither true nor false.
    """
    value = spark.conf.get(name, None)
    return settings.flag({} if value is None else {name: value}, name, default)


def _build_said(spark: SparkSession, values: Mapping[str, str]) -> SessionSettings:
    compacts, widens = values.get(settings.COMPACTS), values.get(settings.WIDENS, "always")
    return SessionSettings(
        user_metadata=values.get(settings.USER_METADATA),
        app_id=values.get(settings.TXN_APP_ID),
        txn_version=values.get(settings.TXN_VERSION),
        defaults=lambda: settings.default_properties(_all(spark)),
        replaces_by_data=settings.flag(values, settings.REPLACES_BY_DATA, True),
        checks_replaced=settings.flag(values, settings.CHECKS_REPLACED, True),
        compacts=None if compacts is None else settings.compaction(compacts),
        compacts_from=settings.number(values, settings.COMPACTS_FROM),
        compacts_to=settings.number(values, settings.COMPACTS_TO),
        drops_missing=settings.flag(values, settings.DROPS_MISSING, False),
        widens=settings.widening(widens),
        codec=settings.codec(values),
        dials=settings.dials(values),
    )


def _read(spark: SparkSession) -> dict[str, str]:
    """The settings with an effect, as far as they are set."""
    if is_connect(spark):
        return _all(spark)
    if time.monotonic() - _listed.get(spark, -LISTED_S) >= LISTED_S:
        return _all(spark)
    values = {name: spark.conf.get(name, None) for name in settings.NAMED}
    return {name: value for name, value in values.items() if value is not None}


def _list(spark: SparkSession) -> dict[str, str]:
    rows = spark.conf.getAll.items() if is_connect(spark) else exact_sql(spark, "SET").collect()
    return {name: value for name, value in rows if value is not None}


def _all(spark: SparkSession) -> dict[str, str]:
    """All settings with an effect, or of Delta Lake; warns of undocumented ones."""
    values = find_settings(spark, (settings.PREFIX, settings.OUR_PREFIX, settings.ASSIGNS, settings.COMPRESSES))
    _listed[spark] = time.monotonic()
    for name, hint in settings.unknown(values).items():
        if _warned.add(name, True):
            by_nobody = "is not documented by Delta Lake or Anabranch, and has no effect here."
            warnings.warn(f"The session's setting {name} {by_nobody}{hint}", UnknownSetting, stacklevel=4)
    return values
