"""Failing: errors of a statement, with the place in its text at which they arose.

Guarantee: no frame of Java's, and no name that the user did not write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException, QueryContextType
from pyspark.sql import SparkSession

from anabranch._expressions.dialect import Token, tokenize, word
from anabranch._expressions.error_pointer import excerpt
from anabranch._spark.frames.failures import reason_of
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.grammar.parts import Query
from anabranch.errors import (
    AnabranchError,
    ExecutionFailed,
    InputError,
    InvalidCondition,
    SqlAnalysisError,
    SqlSyntaxError,
    TableError,
    TimestampAfterLatestCommit,
    TimestampBeforeEarliestCommit,
    UnknownColumn,
    VersionNotFound,
)

_MOST_NAMES, _MOST_SIGNS = 50, 100
"""How many of the names that an error says are looked for, and how many signs of two are compared."""
_UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_PRIVATE = re.compile(r"`?(?:_pyspark_|__anabranch_)[0-9a-f]{16,}`?\.?")
_NEAR = re.compile(r"at or near ('[^']*'|end of input)")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_UNBOUND = re.compile(r"unbound parameter: (\w+)")
_EXPLAIN = "EXPLAIN "
_OF_VERSIONS = (VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit)
_NAMED = re.compile(r"`[^`]+`(?:\.`[^`]+`)*|'[^']+'")
_SHOWN = re.compile(r'"([^"]+)"')


@contextmanager
def of_spark(query: Query, spark: SparkSession) -> Iterator[None]:
    """Turn what Spark says of a query that was put together here into an error of ours, in Spark's words.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot make sense of it.
    """
    try:
        yield
    except AnabranchError:
        raise
    except ParseException as error:
        raise _of_words(query, _own_parse_error(query, spark) or error) from None
    except AnalysisException as error:
        facts = {"delta_condition": error.getCondition(), "state": error.getSqlState(), "reason": _sentence(error)}
        raise SqlAnalysisError(**facts, near=_fragment(error)) from None


@contextmanager
def of_view(name: Sequence[str]) -> Iterator[None]:
    """Say of what is wrong with a view's query that it is there, and not in the statement."""
    try:
        yield
    except (SqlSyntaxError, SqlAnalysisError) as error:
        reason = f"in the view {'.'.join(name)}: {error.facts['reason']}"
        raise type(error)(**{**error.facts, "reason": reason, "offset": None}) from None


def _own_parse_error(query: Query, spark: SparkSession) -> ParseException | None:
    """What Spark says of the query's own words, before tables were put into place; EXPLAIN runs nothing."""
    try:
        exact_sql(spark, _EXPLAIN + query.text)
    except ParseException as error:
        return error
    except PySparkException:  # it can be read, and names what Spark does not know
        return None
    return None


def _of_words(query: Query, error: ParseException) -> SqlSyntaxError:
    near = _NEAR.search(str(error))
    if near is None:
        return SqlSyntaxError(near="the statement", reason=_sentence(error))
    place = _POSITION.search(str(error))
    offset = None if place is None else query.span[0] + _offset(query.text, int(place[1]), int(place[2]))
    return SqlSyntaxError(near=near[1], reason="Spark cannot read on from here.", offset=offset)


def _offset(text: str, line: int, position: int) -> int:
    """Where a place that Spark names, behind EXPLAIN, is in a text."""
    start = sum(len(each) for each in text.splitlines(keepends=True)[: line - 1])
    return start + position - (len(_EXPLAIN) if line == 1 else 0)


def _fragment(error: PySparkException) -> str | None:
    """The words of the statement that Spark is speaking of, where it says them."""
    for context in error.getQueryContext() or ():
        if context.contextType() == QueryContextType.SQL and context.fragment():
            return str(context.fragment())
    return None


def _sentence(error: PySparkException) -> str:
    return _PRIVATE.sub("", _CONDITION.sub("", reason_of(error)))


@contextmanager
def locate_errors_in(text: str) -> Iterator[None]:
    """Show, with an error that arises here, the word of the statement that it is about; the first one, at least."""
    try:
        yield
    except (InputError, TableError, ExecutionFailed) as error:
        if error.facts.get("excerpt"):
            raise
        found = _place(text, error)
        if found is None:
            raise
        raise _as_sql_says(error).pointing(excerpt(text, *found)) from None


def _as_sql_says(error: AnabranchError) -> AnabranchError:
    """The same error under the condition by which Spark names it in SQL, and with the nearest columns first."""
    if isinstance(error, UnknownColumn):
        wanted, columns = str(error.facts["column"]).lower(), str(error.facts["columns"]).split(", ")
        nearest = sorted(columns, key=lambda each: -_likeness(wanted, each.lower()))
        return UnknownColumn(**{**error.facts, "columns": ", ".join(nearest), "delta_condition": _UNRESOLVED})
    named = _CONDITION.match(str(error.facts.get("reason", "")))
    if isinstance(error, InvalidCondition) and named is not None and "delta_condition" not in error.facts:
        return type(error)(**{**error.facts, "delta_condition": named[0].strip("[] ")})
    return error


def _likeness(first: str, second: str) -> float:
    """How alike two names are, as far as they begin; the time of this grows as the square of their lengths."""
    return SequenceMatcher(None, first[:_MOST_SIGNS], second[:_MOST_SIGNS]).ratio()


def _place(text: str, error: AnabranchError) -> tuple[int, int] | None:
    """Where the first words stand that the error names, as far as any can be found; else where its table does."""
    tokens = tokenize(text)
    found = _at(tokens, error.facts.get("offset"))
    if found is not None and text[slice(*found)] == str(error.facts.get("near")).strip("'"):
        return found
    for said in islice(_names(error), _MOST_NAMES):
        for token in tokens:
            if token.text.lower() == said.lower() or text[token.start : token.end + 1] == said:
                return token.start, token.end + 1
        if re.search(r"\W", said) and (found := _words(text, said)) is not None:
            return found
    if error.facts.get("near") == "end of input" and tokens:
        return tokens[-1].end + 1, tokens[-1].end + 2
    if isinstance(error, _OF_VERSIONS) and (found := _behind_as_of(tokens)) is not None:
        return found
    table = str(error.facts.get("table") or "\0")
    found = _words(text, table) or _words(text, table.removeprefix("file://"))
    return found or ((tokens[0].start, tokens[0].end + 1) if tokens else None)


def _at(tokens: Sequence[Token], offset: Any) -> tuple[int, int] | None:
    """The word at a place, which is where Spark says if the query stands in the statement as it was given to Spark."""
    token = next((each for each in tokens if each.start == offset), None)
    return None if token is None else (token.start, token.end + 1)


def _words(text: str, words: str) -> tuple[int, int] | None:
    found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) if words.strip() else None
    return None if found is None else found.span()


def _behind_as_of(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """The version or moment that is named first."""
    for i, token in enumerate(tokens[:-2]):
        if (word(token), word(tokens[i + 1])) == ("AS", "OF"):
            return tokens[i + 2].start, tokens[i + 2].end + 1
    return None


def _names(error: AnabranchError) -> Iterator[str]:
    """What the error is about, the likeliest first."""
    facts = error.facts
    for key in ("near", "column", "name", "property", "feature", "constraint"):
        if isinstance(facts.get(key), str):
            yield from _parts(facts[key])
    for key in ("value", "version", "hours"):
        yield from _spellings(facts.get(key))
    reason = _CONDITION.sub("", str(facts.get("reason") or ""))
    if (unbound := _UNBOUND.search(reason)) is not None:
        yield f":{unbound[1]}"
    for found in _NAMED.finditer(reason):
        yield from _parts(found[0].strip("'").replace("`", ""))
    for key in ("expression", "what"):
        yield from _spellings(facts.get(key))
    for found in _SHOWN.finditer(reason):
        yield from _parts(found[1])


def _spellings(value: Any) -> Iterator[str]:
    """A value as the statement may have said it."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _spellings(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value:g}"
    elif isinstance(value, str):
        yield value


def _parts(name: str) -> Iterator[str]:
    yield name
    bare = name.strip("'`")
    yield bare
    yield bare.rpartition(".")[2]
