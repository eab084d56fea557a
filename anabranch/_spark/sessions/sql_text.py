"""SQL texts: hands SQL to Spark so that Spark reads exactly that text.

Two things can change a text. Spark fills ``${…}`` in from the session's settings, the environment and the
JVM, in statements, expressions and names alike. And PySpark formats a statement, in which braces then mean something,
where it is given DataFrames, and only there. Guarantees: what a user writes is filled in once, as Spark does it
(`substitute_variables`); behind that no text is, so that no name, default, comment or rule of a table is (`verbatim`);
braces are doubled exactly where PySpark formats (`exact_sql`). No setting of the session is changed.
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
"""As Spark reads it: a dollar sign, a setting that nobody has, which is empty, and a brace."""
_REFERENCE = re.compile(r"\$\{(?:\w+?:)?\S+?\}", re.ASCII)
_UP_TO_BRACE = re.compile(r"\S*\}", re.ASCII)
"""Where a reference can stand: what follows has no brace that would end it."""


def verbatim(text: str, spark: SparkSession) -> str:
    """The text that Spark makes this one of, without filling anything in. Raises LoneSurrogate: no text can hold it."""
    check_text("SQL", text)
    return text.replace(_OPENS, _NOTHING) if _OPENS in text and _substitutes(spark) else text


def substitute_variables(text: str, spark: SparkSession) -> str:
    """What a user wrote, with each ``${…}`` filled in as Spark fills it in.

    Raises:
        LoneSurrogate: no text can hold it.
        InvalidOption: the value of a reference holds quotes, so that Spark cannot be asked for it.

    Example:
        >>> substituted("DELETE FROM t WHERE day = '${day}'", spark)
        "DELETE FROM t WHERE day = '2013-01-01'"
    """
    check_text("SQL", text)
    if _OPENS not in text or not _substitutes(spark):
        return text
    values: dict[str, str] = {}

    def value(found: re.Match[str]) -> str:
        if found[0] not in values:
            values[found[0]] = _value_of(found[0], spark)
        return values[found[0]]

    return _UP_TO_BRACE.sub(lambda run: _REFERENCE.sub(value, run[0]), text)


def expression(text: str, spark: SparkSession) -> Column:
    """SQL text as a Column."""
    return F.expr(verbatim(text, spark))


def select_sql(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows with columns that are SQL texts, in one call."""
    return rows.selectExpr(*(verbatim(each, rows.sparkSession) for each in columns))


def exact_sql(spark: SparkSession, parts: str | Sequence[Part], args: Arguments = None) -> DataFrame:
    """What Spark makes of a statement that is put together here, of texts and DataFrames."""
    pieces: Sequence[Part] = [parts] if isinstance(parts, str) else parts
    return sql_from_parts(spark, [verbatim(each, spark) if isinstance(each, str) else each for each in pieces], args)


def sql_from_parts(spark: SparkSession, parts: Sequence[Part], args: Arguments = None) -> DataFrame:
    """As `exact_sql`, of texts that a user wrote: Spark fills ``${…}`` in."""
    frames = {f"anabranch_{i}": each for i, each in enumerate(parts) if not isinstance(each, str)}
    if not frames:
        return plain_sql(spark, "".join(map(str, parts)), args)
    # PySpark's way of putting DataFrames into a statement leaves doubled braces as they are.
    texts = (
        each.replace("{", "{{").replace("}", "}}") if isinstance(each, str) else f"{{anabranch_{i}}}"
        for i, each in enumerate(parts)
    )
    return plain_sql(spark, "".join(texts), args, **frames)


# -- DataFrames in a user's text ---------------------------------------------------------------------------------------


class Placed:
    """A DataFrame that a user puts into a text, ``{df}``: there it is a name, and ``{df.x}`` is its column."""

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
    """Give DataFrames these names as temporary views, for as long as the block lasts."""
    made: list[tuple[str, DataFrame]] = []
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
            made.append((name, frame))
        yield
    finally:
        for name, frame in made:
            frame.sparkSession.catalog.dropTempView(name)


def cut(text: str, frames: Mapping[str, DataFrame]) -> list[Part]:
    """A text with DataFrames in the place of their names."""
    if not frames:
        return [text]
    pieces = re.split(f"({'|'.join(map(re.escape, frames))})", text)
    return [frames.get(each, each) for each in pieces]


# -- filling in --------------------------------------------------------------------------------------------------------


def _substitutes(spark: SparkSession) -> bool:
    return (spark.conf.get(_SUBSTITUTES, None) or "true").lower() == "true"


def _value_of(reference: str, spark: SparkSession) -> str:
    """What Spark puts in place of a reference, asked for in two kinds of quotes, of which it may hold one. Raises
    InvalidOption: it holds both.
    """
    text, name = _try_ask(f"SELECT r'<{reference}>'", spark), _try_ask(f"SELECT 0 AS `<{reference}>`", spark)
    found = text if text is not None and (text == name or "`" in text) else name
    if found is None or (found != text and "'" not in found):
        reason = "it holds quotes and backticks: Spark cannot be asked for it."
        raise InvalidOption(option=_SUBSTITUTES, value=reference, reason=reason)
    return found[1:-1]


def _try_ask(statement: str, spark: SparkSession) -> str | None:
    """The text, or else the name of the column, that a statement gives; None where it cannot be read."""
    try:
        (row,) = plain_sql(spark, statement).collect()
    except PySparkException:
        return None
    said = row[0] if isinstance(row[0], str) else row.__fields__[0]
    return said if said.startswith("<") and said.endswith(">") else None
