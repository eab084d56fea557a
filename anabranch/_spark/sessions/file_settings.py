"""Passes a session's settings of file systems to our own client.

Knows where a session keeps the settings of Hadoop. Guarantee: they apply within a call of a method of that session, and
nowhere else; opening a bucket reads only the settings of its kind, and they are never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial, wraps
from inspect import isfunction
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from anabranch._spark.sessions.settings import find_settings
from anabranch._spark.sessions.working_folder import working_folder
from anabranch._storage.store_settings import use_settings

_HADOOP = "spark.hadoop."
_Door = TypeVar("_Door")


def use_session_settings(spark: SparkSession, given: Mapping[str, str] | None = None) -> AbstractContextManager[None]:
    """Within the block, buckets are opened with this session's settings, unless the environment has its own, and paths
    without a scheme are resolved as by the session.

    Args:
        spark: the session.
        given: settings of Hadoop for this call alone; Spark's readers and writers get them as options.

    Example:
        >>> with use_session_settings(spark):
        ...     open_log("s3a://lake/events")
    """
    return use_settings(spark, partial(settings_of, spark), given, partial(working_folder, spark))


def settings_of(spark: SparkSession, prefixes: tuple[str, ...]) -> dict[str, str]:
    """A session's settings of file systems, under Hadoop's names. Those without the prefix ``spark.hadoop.`` take
    precedence, since Spark puts a session's own over those of its context.

    Args:
        spark: the session.
        prefixes: prefixes of the names; secrets of other kinds of file systems are not read.
    """
    settings = find_settings(spark, (*prefixes, *(_HADOOP + prefix for prefix in prefixes)))
    session_settings = {name: value for name, value in settings.items() if not name.startswith(_HADOOP)}
    return {name.removeprefix(_HADOOP): value for name, value in settings.items()} | session_settings


def settings_as_texts(given: Mapping[Any, Any]) -> dict[str, str]:
    """Settings as texts, in Hadoop's format."""
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


def uses_session_settings(door: type[_Door]) -> type[_Door]:
    """Decorate a class so that its methods use the settings of its session: its ``_spark``, its ``spark`` or its
    engine's; and its own additional settings, ``_file_settings``.

    Example:
        >>> @uses_session_settings
        ... class DeltaTable: ...
    """
    for name, method in list(vars(door).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(door, name, with_session_settings(method))
    return door


def with_session_settings(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method so that it uses its session's settings; `uses_session_settings` does so for all methods."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with use_session_settings(_session_of(self), vars(self).get("_file_settings")):
            return method(self, *args, **kwargs)

    return run


def _session_of(door: Any) -> SparkSession:
    holder = getattr(door, "engine", door)
    session: SparkSession = holder._spark if hasattr(holder, "_spark") else holder.spark
    return session
