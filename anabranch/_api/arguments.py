"""Arguments as the builders take them, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import StructType

from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.types import parse_columns, schema_of
from anabranch._spark.sessions.file_settings import settings_as_texts
from anabranch.errors import InvalidArgument, InvalidOption


def flat(columns: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of columns, given one by one or as one list.

    Raises:
        InvalidArgument: one is no name.
    """
    found = tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    return tuple(text("cols", each) for each in found)


def text(argument: str, value: Any) -> str:
    """An argument that has to be text.

    Raises:
        InvalidArgument: it is something else.
    """
    return str(of_type(argument, value, str, "a string"))


def whole_number(argument: str, value: Any) -> int:
    """An argument that has to be a whole number.

    Raises:
        InvalidArgument: it is something else, True or False among others.
    """
    return int(of_type(argument, None if isinstance(value, bool) else value, int, "an int", value))


def of_type(argument: str, value: Any, kind: type, called: str, given: Any = None) -> Any:
    """An argument of a type.

    Args:
        called: what the type is called, with its article.
        given: what the user gave, where that is another value.

    Raises:
        InvalidArgument: it is of another one.
    """
    if isinstance(value, kind):
        return value
    given = value if given is None else given
    raise InvalidArgument(
        option=argument, value=given, reason=f"{argument} needs to be {called} but got '{type(given)}'."
    )


def condition(argument: str, value: Any) -> str | Column:
    """A condition, as text or as a Column.

    Raises:
        InvalidArgument: it is neither.
    """
    if isinstance(value, str | Column):
        return value
    raise InvalidArgument(option=argument, value=value, reason="it must be a Spark SQL Column or a string of SQL.")


def assignments(argument: str, values: Any) -> Mapping[str, str | Column]:
    """What columns are set to.

    Raises:
        InvalidArgument: it is no dict of their names to text or Columns.
    """
    if not isinstance(values, Mapping):
        reason = "it must be a dict of columns to SQL text or Columns."
        raise InvalidArgument(option=argument, value=values, reason=reason)
    for key, value in values.items():
        if not isinstance(key, str):
            reason = f"Keys of dict in '{argument}' must contain only names, as text."
            raise InvalidArgument(option=argument, value=key, reason=reason)
        if not isinstance(value, str | Column):
            reason = f"Values of dict in '{argument}' must contain only SQL text or Columns."
            raise InvalidArgument(option=argument, value=value, reason=reason)
    return values


def partition_columns(given: Any) -> Struct:
    """The columns that the folders of a Parquet table name, given as SQL text or a ``StructType``.

    Raises:
        InvalidArgument: it is something else.
    """
    if given is None:
        return Struct()
    if isinstance(given, str):
        given = parse_columns(given)
    if not isinstance(given, StructType):
        raise InvalidArgument(option="partitionSchema", value=given, reason="it takes SQL text or a StructType.")
    return Struct(tuple(replace(field, nullable=True) for field in schema_of(given)))


def file_settings(given: Any) -> dict[str, str]:
    """Settings of file systems for one handle, as text.

    Raises:
        InvalidArgument: it is no dict.
        InvalidOption: a setting is of something else.
    """
    if not isinstance(given or {}, Mapping):
        told = type(given).__name__  # not the value, which may hold a secret
        raise InvalidArgument(option="hadoopConf", value=told, reason="it takes a dict of text to text.")
    for key in given or {}:
        if not str(key).startswith(("fs.", "dfs.")):
            raise InvalidOption(option="hadoopConf", value=key, reason="it takes settings of fs. and dfs. only.")
    return settings_as_texts(given or {})
