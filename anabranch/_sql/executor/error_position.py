"""Locates errors of a statement in its text, and translates Spark's errors into ours.

Guarantee: a message contains no Java stack frame, and no name that the user did not write.
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

_MAX_NAMES, _MAX_LENGTH = 50, 100
"""Maximum number of names of an error that are searched for; maximum number of characters that are compared."""
_UNRESOLVED = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_PRIVATE = re.compile(r"`?(?:_pyspark_|__anabranch_)[0-9a-f]{16,}`?\.?")
_NEAR = re.compile(r"at or near ('[^']*'|end of input)")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_UNBOUND = re.compile(r"unbound parameter: (\w+)")
_EXPLAIN = "EXPLAIN "
_VERSION_ERRORS = (VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit)
_QUOTED = re.compile(r"`[^`]+`(?:\.`[^`]+`)*|'[^']+'")
_DOUBLE_QUOTED = re.compile(r'"([^"]+)"')


@contextmanager
def of_spark(query: Query, spark: SparkSession) -> Iterator[None]:
    """Translate Spark's errors about a query that we assembled into errors of ours, in Spark's words.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse the query.
    """
    try:
        yield
    except AnabranchError:
        raise
    except ParseException as error:
        raise _syntax_error(query, _parse_error_of(query, spark) or error) from None
    except AnalysisException as error:
        facts = {"delta_condition": error.getCondition(), "state": error.getSqlState(), "reason": _reason_text(error)}
        raise SqlAnalysisError(**facts, near=_fragment(error)) from None


@contextmanager
def of_view(name: Sequence[str]) -> Iterator[None]:
    """Name the view in errors about its query, since the error is not in the statement."""
    try:
        yield
    except (SqlSyntaxError, SqlAnalysisError) as error:
        reason = f"in the view {'.'.join(name)}: {error.facts['reason']}"
        raise type(error)(**{**error.facts, "reason": reason, "offset": None}) from None


def _parse_error_of(query: Query, spark: SparkSession) -> ParseException | None:
    """Return Spark's parse error of the query as written, before tables were put into place; EXPLAIN runs nothing."""
    try:
        exact_sql(spark, _EXPLAIN + query.text)
    except ParseException as error:
        return error
    except PySparkException:  # it parses, but names tables that Spark does not know
        return None
    return None


def _syntax_error(query: Query, error: ParseException) -> SqlSyntaxError:
    near = _NEAR.search(str(error))
    if near is None:
        return SqlSyntaxError(near="the statement", reason=_reason_text(error))
    place = _POSITION.search(str(error))
    offset = None if place is None else query.span[0] + _offset(query.text, int(place[1]), int(place[2]))
    return SqlSyntaxError(near=near[1], reason="Spark cannot parse the statement from here on.", offset=offset)


def _offset(text: str, line: int, position: int) -> int:
    """Convert a position that Spark reports for the text after EXPLAIN to an offset in the text."""
    start = sum(len(preceding) for preceding in text.splitlines(keepends=True)[: line - 1])
    return start + position - (len(_EXPLAIN) if line == 1 else 0)


def _fragment(error: PySparkException) -> str | None:
    """Return the part of the statement that Spark's error is about, if Spark reports it."""
    for context in error.getQueryContext() or ():
        if context.contextType() == QueryContextType.SQL and context.fragment():
            return str(context.fragment())
    return None


def _reason_text(error: PySparkException) -> str:
    return _PRIVATE.sub("", _CONDITION.sub("", reason_of(error)))


@contextmanager
def locate_errors_in(text: str) -> Iterator[None]:
    """Add to errors an excerpt of the statement that points at the word in question, or at the first word."""
    try:
        yield
    except (InputError, TableError, ExecutionFailed) as error:
        if error.facts.get("excerpt"):
            raise
        span = _find_span(text, error)
        if span is None:
            raise
        raise _with_sql_condition(error).pointing(excerpt(text, *span)) from None


def _with_sql_condition(error: AnabranchError) -> AnabranchError:
    """Return the error with the condition that Spark has for it in SQL, and with the most similar columns first."""
    if isinstance(error, UnknownColumn):
        missing, columns = str(error.facts["column"]).lower(), str(error.facts["columns"]).split(", ")
        nearest = sorted(columns, key=lambda candidate: -_similarity(missing, candidate.lower()))
        return UnknownColumn(**{**error.facts, "columns": ", ".join(nearest), "delta_condition": _UNRESOLVED})
    condition = _CONDITION.match(str(error.facts.get("reason", "")))
    if isinstance(error, InvalidCondition) and condition is not None and "delta_condition" not in error.facts:
        return type(error)(**{**error.facts, "delta_condition": condition[0].strip("[] ")})
    return error


def _similarity(first: str, second: str) -> float:
    """Return the similarity of two names, of their beginnings only: the time is quadratic in their lengths."""
    return SequenceMatcher(None, first[:_MAX_LENGTH], second[:_MAX_LENGTH]).ratio()


def _find_span(text: str, error: AnabranchError) -> tuple[int, int] | None:
    """Find the span of the first name of the error that is in the text; else that of its table, or the first word."""
    tokens = tokenize(text)
    span = _token_span(tokens, error.facts.get("offset"))
    if span is not None and text[slice(*span)] == str(error.facts.get("near")).strip("'"):
        return span
    for name in islice(_candidate_names(error), _MAX_NAMES):
        for token in tokens:
            if token.text.lower() == name.lower() or text[token.start : token.end + 1] == name:
                return token.start, token.end + 1
        if re.search(r"\W", name) and (span := _find_words(text, name)) is not None:
            return span
    if error.facts.get("near") == "end of input" and tokens:
        return tokens[-1].end + 1, tokens[-1].end + 2
    if isinstance(error, _VERSION_ERRORS) and (span := _find_as_of_value(tokens)) is not None:
        return span
    table = str(error.facts.get("table") or "\0")
    span = _find_words(text, table) or _find_words(text, table.removeprefix("file://"))
    return span or ((tokens[0].start, tokens[0].end + 1) if tokens else None)


def _token_span(tokens: Sequence[Token], offset: Any) -> tuple[int, int] | None:
    """Return the span of the token at an offset; Spark's offset is right if Spark got the query as it was written."""
    token = next((candidate for candidate in tokens if candidate.start == offset), None)
    return None if token is None else (token.start, token.end + 1)


def _find_words(text: str, words: str) -> tuple[int, int] | None:
    match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) if words.strip() else None
    return None if match is None else match.span()


def _find_as_of_value(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the span of the first version or timestamp after AS OF."""
    for i, token in enumerate(tokens[:-2]):
        if (word(token), word(tokens[i + 1])) == ("AS", "OF"):
            return tokens[i + 2].start, tokens[i + 2].end + 1
    return None


def _candidate_names(error: AnabranchError) -> Iterator[str]:
    """Yield the names that the error may be about, the likeliest first."""
    facts = error.facts
    for key in ("near", "column", "name", "property", "feature", "constraint"):
        if isinstance(facts.get(key), str):
            yield from _name_variants(facts[key])
    for key in ("value", "version", "hours"):
        yield from _spellings(facts.get(key))
    reason = _CONDITION.sub("", str(facts.get("reason") or ""))
    if (unbound := _UNBOUND.search(reason)) is not None:
        yield f":{unbound[1]}"
    for match in _QUOTED.finditer(reason):
        yield from _name_variants(match[0].strip("'").replace("`", ""))
    for key in ("expression", "what"):
        yield from _spellings(facts.get(key))
    for match in _DOUBLE_QUOTED.finditer(reason):
        yield from _name_variants(match[1])


def _spellings(value: Any) -> Iterator[str]:
    """Yield the spellings of a value that the statement may contain."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _spellings(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value:g}"
    elif isinstance(value, str):
        yield value


def _name_variants(name: str) -> Iterator[str]:
    yield name
    bare = name.strip("'`")
    yield bare
    yield bare.rpartition(".")[2]
