"""Passes SQL texts to Spark so that Spark reads exactly that text.

Two things can change a text. Spark substitutes ``${…}`` from the session's settings, the environment and the JVM, in
statements, expressions and names alike. And PySpark formats a statement, which gives braces a meaning, if it receives
DataFrames, and only then. Guarantees: a user's text is substituted once, as Spark does it (`substitute_variables`);
after that nothing is, so that no name, default, comment or rule of a table is (`verbatim`); braces are doubled exactly
where PySpark formats (`exact_sql`). No setting of the session is changed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._spark.sessions.session import plain_sql
from anabranch.errors import InvalidOption
from anabranch.errors.inputs import check_text

Part: TypeAlias = str | DataFrame
Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any] | None
_SUBSTITUTES = "spark.sql.variable.substitute"
_OPENS = "${"
_NOTHING = "$${anabranch.nothing}{"
"""To Spark: a dollar sign, a setting that does not exist, which is empty, and a brace."""
_REFERENCE = re.compile(r"\$\{(?:\w+?:)?\S+?\}", re.ASCII)
_UP_TO_BRACE = re.compile(r"\S*\}", re.ASCII)
"""Texts that may contain a reference: beyond them no brace could end one."""


def verbatim(text: str, spark: SparkSession) -> str:
    """A text that Spark reads as this one, without substituting anything. Raises LoneSurrogate if SQL text cannot hold
    it.
    """
    check_text("SQL", text)
    return text.replace(_OPENS, _NOTHING) if _OPENS in text and _substitutes(spark) else text


def substitute_variables(text: str, spark: SparkSession) -> str:
    """A user's text with each ``${…}`` substituted as by Spark.

    Raises:
        LoneSurrogate: SQL text cannot hold it.
        InvalidOption: the value of a reference contains quotes, so that Spark cannot report it.

    Example:
        >>> substitute_variables("DELETE FROM t WHERE day = '${day}'", spark)
        "DELETE FROM t WHERE day = '2013-01-01'"
    """
    check_text("SQL", text)
    if _OPENS not in text or not _substitutes(spark):
        return text
    values: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        if match[0] not in values:
            values[match[0]] = _value_of(match[0], spark)
        return values[match[0]]

    return _UP_TO_BRACE.sub(lambda run: _REFERENCE.sub(value, run[0]), text)


def expression(text: str, spark: SparkSession) -> Column:
    """SQL text as a Column."""
    return F.expr(verbatim(text, spark))


def select_sql(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Select columns that are SQL texts, in one call."""
    return rows.selectExpr(*(verbatim(text, rows.sparkSession) for text in columns))


def exact_sql(spark: SparkSession, parts: str | Sequence[Part], args: Arguments = None) -> DataFrame:
    """Run a statement that consists of our own texts and DataFrames."""
    pieces: Sequence[Part] = [parts] if isinstance(parts, str) else parts
    return sql_from_parts(spark, [verbatim(part, spark) if isinstance(part, str) else part for part in pieces], args)


def sql_from_parts(spark: SparkSession, parts: Sequence[Part], args: Arguments = None) -> DataFrame:
    """As `exact_sql`, for a user's texts: Spark substitutes ``${…}``."""
    frames = {f"anabranch_{i}": part for i, part in enumerate(parts) if not isinstance(part, str)}
    if not frames:
        return plain_sql(spark, "".join(map(str, parts)), args)
    # PySpark's formatting of a statement with DataFrames turns doubled braces into single ones.
    texts = (
        part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else f"{{anabranch_{i}}}"
        for i, part in enumerate(parts)
    )
    return plain_sql(spark, "".join(texts), args, **frames)


# -- DataFrames in a user's text ---------------------------------------------------------------------------------------


class PlacedFrame:
    """A DataFrame that a user puts into a text, ``{df}``: formatted it is a name, and ``{df.x}`` is its column."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame, self.name = frame, f"__anabranch_{uuid.uuid4().hex}"

    def __str__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frame, name)

    def __getitem__(self, name: str) -> Column:
        return self.frame[name]


@contextmanager
def in_views(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Provide temporary views of DataFrames under these names within the block."""
    created: list[tuple[str, DataFrame]] = []
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
            created.append((name, frame))
        yield
    finally:
        for name, frame in created:
            frame.sparkSession.catalog.dropTempView(name)


def split_at_frames(text: str, frames: Mapping[str, DataFrame]) -> list[Part]:
    """Split a text at the names of DataFrames, and replace these by the DataFrames."""
    if not frames:
        return [text]
    pieces = re.split(f"({'|'.join(map(re.escape, frames))})", text)
    return [frames.get(piece, piece) for piece in pieces]


# -- substitution ------------------------------------------------------------------------------------------------------


def _substitutes(spark: SparkSession) -> bool:
    return (spark.conf.get(_SUBSTITUTES, None) or "true").lower() == "true"


def _value_of(reference: str, spark: SparkSession) -> str:
    """Spark's value of a reference, requested within two kinds of quotes, of which it may contain one.

    Raises:
        InvalidOption: it contains both.
    """
    text, name = _try_select(f"SELECT r'<{reference}>'", spark), _try_select(f"SELECT 0 AS `<{reference}>`", spark)
    quoted = text if text is not None and (text == name or "`" in text) else name
    if quoted is None or (quoted != text and "'" not in quoted):
        reason = "it contains quotes and backticks, so Spark cannot report it."
        raise InvalidOption(option=_SUBSTITUTES, value=reference, reason=reason)
    return quoted[1:-1]


def _try_select(statement: str, spark: SparkSession) -> str | None:
    """The text, or else the name of the column, that a statement returns; None if Spark cannot parse it."""
    try:
        (row,) = plain_sql(spark, statement).collect()
    except PySparkException:
        return None
    result = row[0] if isinstance(row[0], str) else row.__fields__[0]
    return result if result.startswith("<") and result.endswith(">") else None
