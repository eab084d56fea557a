"""Failing: errors of a statement, with the place in its text at which they arose.

Guarantee: no frame of Java's, and no name that the user did not write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher

from pyspark.errors import AnalysisException, ParseException, PySparkException

from anabranch.errors import (
    AnabranchError,
    InputError,
    InvalidCondition,
    RowViolation,
    SqlAnalysisError,
    SqlSyntaxError,
    TableError,
    UnknownColumn,
)
from anabranch.parsing.statements import excerpt
from anabranch.parsing.statements.dialect import tokenized
from anabranch.parsing.statements.values import Query
from anabranch.spark.failures import reason_of

_UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_PRIVATE = re.compile(r"`?(?:_pyspark_|__anabranch_)[0-9a-f]{16,}`?\.?")
_NEAR = re.compile(r"at or near ('[^']*'|end of input)")
_NAMED = re.compile(r"`([^`]+)`|'([^']+)'")


@contextmanager
def of_spark(query: Query) -> Iterator[None]:
    """Turn what Spark says of a query that was put together here into an error of ours, in Spark's words.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot make sense of it.
    """
    try:
        yield
    except AnabranchError:
        raise
    except ParseException as error:
        near = _NEAR.search(str(error))
        if near is not None:
            raise SqlSyntaxError(near=near[1], reason="Spark cannot read on from here.") from None
        raise SqlSyntaxError(near="the statement", reason=_sentence(error)) from None
    except AnalysisException as error:
        facts = {"delta_condition": error.getCondition(), "state": error.getSqlState(), "reason": _sentence(error)}
        raise SqlAnalysisError(**facts) from None


def _sentence(error: PySparkException) -> str:
    return _PRIVATE.sub("", _CONDITION.sub("", reason_of(error)))


@contextmanager
def placed_in(text: str) -> Iterator[None]:
    """Show, with an error that arises here, the word of the statement that it is about."""
    try:
        yield
    except (InputError, TableError) as error:
        found = _place(text, error)
        if found is None or error.facts.get("excerpt") or isinstance(error, RowViolation):
            raise
        raise _as_sql_says(error).pointing(excerpt(text, *found)) from None


def _as_sql_says(error: InputError | TableError) -> InputError | TableError:
    """The same error under the condition by which Spark names it in SQL, and with the nearest columns first."""
    if isinstance(error, UnknownColumn):
        wanted, columns = str(error.facts["column"]).lower(), str(error.facts["columns"]).split(", ")
        nearest = sorted(columns, key=lambda each: -SequenceMatcher(None, wanted, each.lower()).ratio())
        return UnknownColumn(**{**error.facts, "columns": ", ".join(nearest), "delta_condition": _UNRESOLVED})
    named = _CONDITION.match(str(error.facts.get("reason", "")))
    if isinstance(error, InvalidCondition) and named is not None:
        return type(error)(**{**error.facts, "delta_condition": named[0].strip("[] ")})
    return error


def _place(text: str, error: AnabranchError) -> tuple[int, int] | None:
    """Where the first word stands that the error names, as far as one can be found."""
    tokens = tokenized(text)
    for name in _names(error):
        for token in tokens:
            if token.text.lower() == name.lower() or text[token.start : token.end + 1] == name:
                return token.start, token.end + 1
    expression = str(error.facts.get("expression") or "\0")
    return None if expression not in text else (text.index(expression), text.index(expression) + len(expression))


def _names(error: AnabranchError) -> Iterator[str]:
    """What the error is about, the likeliest first."""
    facts = error.facts
    for key in ("near", "column", "name", "property", "feature", "constraint"):
        if isinstance(facts.get(key), str):
            yield from _parts(facts[key])
    if isinstance(facts.get("value"), str):
        yield facts["value"]
    reason = facts.get("reason")
    if isinstance(reason, str):
        for found in _NAMED.finditer(_CONDITION.sub("", reason)):
            yield from _parts(found[1] or found[2])
    table = facts.get("table")
    if isinstance(table, str) and isinstance(error, TableError):
        yield from (table, table.removeprefix("file://"))


def _parts(name: str) -> Iterator[str]:
    bare = name.strip("'`")
    yield bare
    yield bare.rpartition(".")[2]
