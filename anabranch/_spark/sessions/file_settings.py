"""File settings: what a session says of file systems reaches our own client, too.

Knows where a session keeps the settings of Hadoop. Guarantee: they count within a call of a method of that session, and
nowhere else; of them, those of its kind are read when a bucket is opened, and never shown.
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
from anabranch._storage.told import telling

_HADOOP = "spark.hadoop."
_Door = TypeVar("_Door")


def speaking(spark: SparkSession, given: Mapping[str, str] | None = None) -> AbstractContextManager[None]:
    """Within the block, buckets are opened as this session says, where the environment does not, and a path without a
    scheme means what it means to the session.

    Args:
        spark: the session.
        given: settings of Hadoop for this call alone; Spark's readers and writers get them as options.

    Example:
        >>> with speaking(spark):
        ...     open_log("s3a://lake/events")
    """
    return telling(spark, partial(settings_of, spark), given, partial(working_folder, spark))


def settings_of(spark: SparkSession, prefixes: tuple[str, ...]) -> dict[str, str]:
    """A session's settings of file systems as Hadoop has them: those without ``spark.hadoop.`` before them count
    more, since Spark puts a session's own over those of its context.

    Args:
        spark: the session.
        prefixes: how their names begin; a secret of another kind of file system is not asked for.
    """
    found = find_settings(spark, (*prefixes, *(_HADOOP + each for each in prefixes)))
    own = {name: value for name, value in found.items() if not name.startswith(_HADOOP)}
    return {name.removeprefix(_HADOOP): value for name, value in found.items()} | own


def settings_as_texts(given: Mapping[Any, Any]) -> dict[str, str]:
    """Settings as texts, as Hadoop has them."""
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


def speaks(door: type[_Door]) -> type[_Door]:
    """Let the methods of a class speak for its session: its ``_spark``, its ``spark`` or its engine's; and for what is
    given for it alone, its ``_file_settings``.

    Example:
        >>> @speaks
        ... class DeltaTable: ...
    """
    for name, method in list(vars(door).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(door, name, speaking_method(method))
    return door


def speaking_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a door that speaks for its session, as `speaks` makes all of them."""

    @wraps(method)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        with speaking(_session_of(self), vars(self).get("_file_settings")):
            return method(self, *args, **named)

    return run


def _session_of(door: Any) -> SparkSession:
    held = getattr(door, "engine", door)
    found: SparkSession = held._spark if hasattr(held, "_spark") else held.spark
    return found
