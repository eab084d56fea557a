"""Carries the error of a row that breaks a table's rule through Spark's exceptions.

Spark writes whatever a query raises into the logs of its driver and executors, and no session can prevent that. So the
error is a readable sentence, and each detail in it is JSON, which marks its own end. Guarantee: `violation_in` returns
what `raise_in_query` put into a query, with the same details, whatever the values are and however Spark wraps the
message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.errors import AnabranchError, CheckConstraintViolated, LengthExceeded, NotNullViolated
from anabranch.errors.rows import may_show_rows

_MARK = "A row to write breaks a rule of its Delta table: "
_BESIDE, _END = " The row has ", " Nothing is committed."
_SENTENCES: Mapping[type[AnabranchError], tuple[tuple[str, str], ...]] = {
    CheckConstraintViolated: (("CHECK constraint ", "constraint"), (" is not TRUE: ", "expression")),
    LengthExceeded: (("a text is longer than the type ", "limit"), (" of the column ", "column")),
    NotNullViolated: (("NULL stands in the NOT NULL column ", "column"),),
}
"""The sentence of each error: the text before each detail, and the name of the detail."""
_SHOWN_CHARACTERS = 200
"""Maximum number of characters that are shown of a value."""
_json = json.JSONDecoder()


def raise_in_query(error: type[AnabranchError], facts: Column, values: Mapping[str, Column], table: str) -> Column:
    """An expression that makes the query fail with this error.

    Args:
        facts: the error's details (`error_sentence`).
        values: column -> text of the row's value; left out if the table's rows must not be shown.
    """
    values = values if may_show_rows(table) else {}
    shortened = [F.substring(value, 1, _SHOWN_CHARACTERS).alias(name) for name, value in values.items()]
    row = (
        [F.lit(_BESIDE), F.to_json(F.struct(*shortened), {"ignoreNullFields": "false"}), F.lit(".")]
        if shortened
        else []
    )
    return F.raise_error(F.concat(F.lit(_MARK), facts, F.lit("."), *row, F.lit(_END)))


def error_sentence(error: type[AnabranchError], **facts: str) -> Column:
    """The sentence of an error with its details, for `raise_in_query`; a CASE may choose among several."""
    return F.lit("".join(before + json.dumps(facts[name], ensure_ascii=False) for before, name in _SENTENCES[error]))


def violation_in(text: str, table: str) -> AnabranchError | None:
    """The error that `raise_in_query` put into Spark's message; None if there is none."""
    start = text.find(_MARK)
    while start >= 0:
        start += len(_MARK)
        for error in _SENTENCES:
            if (facts := _details(text, start, error)) is not None:
                return error(table=table, **facts)
        start = text.find(_MARK, start)
    return None


def _details(text: str, at: int, error: type[AnabranchError]) -> dict[str, Any] | None:
    """The details of this error, if its sentence begins here; None for other messages that look like ours."""
    facts: dict[str, Any] = {"values": {}}
    try:
        for before, name in _SENTENCES[error]:
            facts[name], at = _value_behind(before, text, at)
        if text.startswith(f".{_BESIDE}", at):
            facts["values"], at = _value_behind(f".{_BESIDE}", text, at)
    except (ValueError, RecursionError):
        return None
    are_texts = all(isinstance(value, str) for name, value in facts.items() if name != "values")
    return facts if are_texts and isinstance(facts["values"], dict) else None


def _value_behind(before: str, text: str, at: int) -> tuple[Any, int]:
    """The JSON value after this text, and its end. Raises ValueError if the text differs, or no value follows."""
    if not text.startswith(before, at):
        raise ValueError(before)
    return _json.raw_decode(text, at + len(before))
