"""Checks the arguments of builders."""

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


def column_names(columns: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of columns, passed one by one or as one list.

    Raises:
        InvalidArgument: one is not a name.
    """
    names = tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    return tuple(text("cols", name) for name in names)


def text(argument: str, value: Any) -> str:
    """Checks that an argument is text.

    Raises:
        InvalidArgument: it is something else.
    """
    return str(of_type(argument, value, str, "a string"))


def whole_number(argument: str, value: Any) -> int:
    """Checks that an argument is a whole number.

    Raises:
        InvalidArgument: it is something else, such as True or False.
    """
    return int(of_type(argument, None if isinstance(value, bool) else value, int, "an int", value))


def of_type(argument: str, value: Any, kind: type, called: str, given: Any = None) -> Any:
    """Checks the type of an argument.

    Args:
        called: the type's name in the message, with its article.
        given: the user's original value, if different.

    Raises:
        InvalidArgument: it is of another type.
    """
    if isinstance(value, kind):
        return value
    given = value if given is None else given
    raise InvalidArgument(
        option=argument, value=given, reason=f"{argument} needs to be {called} but got '{type(given)}'."
    )


def condition(argument: str, value: Any) -> str | Column:
    """Checks a condition, which is text or a Column.

    Raises:
        InvalidArgument: it is neither.
    """
    if isinstance(value, str | Column):
        return value
    raise InvalidArgument(option=argument, value=value, reason="it must be a Spark SQL Column or a string of SQL.")


def assignments(argument: str, values: Any) -> Mapping[str, str | Column]:
    """Checks the new values of columns.

    Raises:
        InvalidArgument: it is not a dict of column names to text or Columns.
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


def partition_columns(columns: Any) -> Struct:
    """The partition columns of a Parquet table, given as SQL text or a ``StructType``.

    Raises:
        InvalidArgument: it is something else.
    """
    if columns is None:
        return Struct()
    if isinstance(columns, str):
        columns = parse_columns(columns)
    if not isinstance(columns, StructType):
        raise InvalidArgument(option="partitionSchema", value=columns, reason="it takes SQL text or a StructType.")
    return Struct(tuple(replace(field, nullable=True) for field in schema_of(columns)))


def file_settings(settings: Any) -> dict[str, str]:
    """Settings of file systems for one handle, as text.

    Raises:
        InvalidArgument: it is not a dict.
        InvalidOption: a setting is not one of a file system.
    """
    if not isinstance(settings or {}, Mapping):
        type_name = type(settings).__name__  # not the value, which may hold a secret
        raise InvalidArgument(option="hadoopConf", value=type_name, reason="it takes a dict of text to text.")
    for key in settings or {}:
        if not str(key).startswith(("fs.", "dfs.")):
            raise InvalidOption(option="hadoopConf", value=key, reason="it takes settings of fs. and dfs. only.")
    return settings_as_texts(settings or {})
