"""Settings: a session's settings for Delta Lake, read once for each command and checked.

Knows how to read settings cheaply, on classic sessions and on Connect. `anabranch._protocol.settings` decides which are
honoured, harmless or refused. Guarantees: no setting of a session is ever changed, except ``txnVersion`` where the
session asks for that by ``autoReset``; each process warns of an undocumented setting once.

On a classic session asking for one setting takes some 0.1 ms and listing them all some 15; on Connect either is one
round trip. So there the list is asked for; here the settings that are acted upon are asked for by their names, and the
list once a second at most, for the warnings, or where a command needs it, once for that command. The list comes as rows
of a query, in which Spark hides secrets: what PySpark asks of the JVM is written to its log at DEBUG, with the answers.
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
from anabranch._protocol.session_says import Said, honouring, is_said
from anabranch._spark.sessions.session import HIDDEN, is_connect
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.errors import UnknownSetting
from anabranch.errors.process_state import cache, per_object

LISTED_S = 1.0
"""For so many seconds all settings of a session are not listed again."""
_listed = per_object("when a session's settings were listed")
_warned = cache("settings warned of", 1000)
_command: ContextVar[tuple[SparkSession, dict[str, str]] | None] = ContextVar("anabranch_settings", default=None)
"""The session of the command that runs, and its settings, once they were listed."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def honour_settings(spark: SparkSession, verb: str) -> Iterator[None]:
    """Run a command of a session as the session's settings say; inside of another one's, this does nothing.

    Args:
        spark: the session.
        verb: the command's name in messages; some settings are refused for some verbs only.

    Raises:
        UnsupportedSetting: a setting asks for what is not built. Nothing has been done.

    Example:
        >>> with honoured(spark, "DELETE"):
        ...     Delete("/data/flights", where).run(engine)
    """
    if is_said():
        yield
        return
    token = _command.set((spark, {}))
    try:
        values = _read(spark)
        settings.check(values, verb)
        with honouring(_build_said(spark, values)) as held:
            yield
    finally:
        _command.reset(token)
    if held.used_txn and settings.flag(values, settings.TXN_RESET, False):
        spark.conf.unset(settings.TXN_VERSION)


def honours(verb: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a method of a door one command of its session: its ``_spark``, its ``spark`` or its engine's.

    Example:
        >>> @honours("DELETE")
        ... def delete(self, condition): ...
    """

    def with_settings(method: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(method)
        def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            owner: Any = args[0]
            held = getattr(owner, "engine", owner)
            with honour_settings(held._spark if hasattr(held, "_spark") else held.spark, verb):
                return method(*args, **kwargs)

        return run

    return with_settings


def list_settings(spark: SparkSession) -> Mapping[str, str]:
    """Every setting of a session, without the values that Spark takes for secrets; while a command of it runs, as they
    were when they were first asked for.
    """
    running = _command.get()
    if running is None or running[0] is not spark:
        return _list(spark)
    if not running[1]:
        running[1].update(_list(spark))
    return running[1]


def find_settings(spark: SparkSession, prefixes: tuple[str, ...]) -> dict[str, str]:
    """The settings of a session whose names begin so, secrets among them; no other secret is asked for."""
    found: dict[str, str | None] = {
        name: said for name, said in list_settings(spark).items() if name.startswith(prefixes)
    }
    found |= {name: spark.conf.get(name, None) for name, said in found.items() if said == HIDDEN}
    return {name: said for name, said in found.items() if said is not None}


@contextmanager
def listing(spark: SparkSession) -> Iterator[None]:
    """List the settings of a running command while the block waits for Spark, and not after it. A failure is left to
    whoever needs the list.
    """
    running = _command.get()
    if running is None or running[0] is not spark or running[1] or is_connect(spark):
        yield
        return
    inheriting: Any = inheritable_thread_target(spark)  # which closes the thread's connection to the JVM behind it
    with ThreadPoolExecutor(1, thread_name_prefix="anabranch-settings") as pool:
        pool.submit(inheriting(partial(copy_context().run, list_settings, spark)))
        yield


def setting(spark: SparkSession, name: str, default: bool) -> bool:
    """Whether a setting says true.

    Raises:
        UnsupportedSetting: it says neither true nor false.
    """
    value = spark.conf.get(name, None)
    return settings.flag({} if value is None else {name: value}, name, default)


def _build_said(spark: SparkSession, values: Mapping[str, str]) -> Said:
    compacts, widens = values.get(settings.COMPACTS), values.get(settings.WIDENS, "always")
    return Said(
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
    )


def _read(spark: SparkSession) -> dict[str, str]:
    """The settings that may be acted upon, as far as they are set."""
    if is_connect(spark):
        return _all(spark)
    if time.monotonic() - _listed.get(spark, -LISTED_S) >= LISTED_S:
        return _all(spark)
    found = {name: spark.conf.get(name, None) for name in settings.NAMED}
    return {name: value for name, value in found.items() if value is not None}


def _list(spark: SparkSession) -> dict[str, str]:
    rows = spark.conf.getAll.items() if is_connect(spark) else exact_sql(spark, "SET").collect()
    return {name: value for name, value in rows if value is not None}


def _all(spark: SparkSession) -> dict[str, str]:
    """Every setting that may be acted upon, or of Delta Lake; those that nobody documents are warned of."""
    found = find_settings(spark, (settings.PREFIX, settings.ASSIGNS))
    _listed[spark] = time.monotonic()
    for name, hint in settings.unknown(found).items():
        if _warned.add(name, True):
            said = f"The session's setting {name} is none that Delta Lake documents, and does nothing here.{hint}"
            warnings.warn(said, UnknownSetting, stacklevel=4)
    return found
