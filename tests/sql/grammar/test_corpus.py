"""Every statement of the corpus is understood without a JVM, and what Spark reads of it stays as it was written."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch._catalog.table_names import path_in
from anabranch._sql import reading as parsing
from anabranch._sql.grammar import row_values
from anabranch._sql.grammar import statement_values as v
from tests.support import corpus

ENTRIES = [entry for file in corpus.FILES for entry in corpus.read(file)]
each_file = pytest.mark.parametrize("file", corpus.FILES, ids=lambda file: file.stem)
KINDS = {
    "DELETE": row_values.DeleteRows,
    "UPDATE": row_values.UpdateRows,
    "MERGE": row_values.MergeRows,
    "INSERT": row_values.InsertRows,
    "SELECT": v.Query,
}
_QUALIFIED = re.compile(r"(?:spark_catalog\.)?delta\.(`[^`]*`\.)")
"""What goes from a column's name: all that stands before the last part of its table's."""


def test_the_corpus_is_large() -> None:
    assert len(ENTRIES) >= 300


def parsed(entry: corpus.Entry) -> Any:
    """The statement's value, or the error that refuses it."""
    try:
        return parsing.statement(corpus.placed(entry.statement, Path("/t")), entry.args, path_in)
    except errors.AnabranchError as error:
        return error


@pytest.mark.slow
@each_file
@pytest.mark.whole
def test_each_statement_is_understood(file: Path) -> None:
    for entry in corpus.read(file):
        assert is_understood(entry), entry


def is_understood(entry: corpus.Entry) -> bool:
    found = parsed(entry)
    if isinstance(found, errors.AnabranchError):
        return entry.ours == f"error {found.getCondition()}" and "^" in found.facts.get("excerpt", "^")
    if "@" not in entry.statement:
        return found is None
    kind = KINDS.get(entry.statement.split()[0].upper(), object)
    return isinstance(found, kind) if found is not None else entry.ours == "error PARSE_SYNTAX_ERROR" and kind is object


@pytest.mark.slow
@each_file
@pytest.mark.whole
def test_what_spark_reads_is_what_was_written(file: Path) -> None:
    for entry in corpus.read(file):
        assert entry.args is not None or is_as_written(entry), entry  # of some, values stand in it


def is_as_written(entry: corpus.Entry) -> bool:
    text = _QUALIFIED.sub(r"\1", corpus.placed(entry.statement, Path("/t")))
    for part in (_QUALIFIED.sub(r"\1", each) for each in texts(parsed(entry))):
        pieces = part.removeprefix("SELECT * FROM ") if part not in text else part
        if pieces not in text and not pieces.startswith("WITH "):
            return False
    return True


def texts(value: Any) -> Iterator[str]:
    """The texts of all expressions and queries in a statement."""
    if isinstance(value, v.Expression | v.Query):
        yield value.text
    elif isinstance(value, tuple):
        for each in value:
            yield from texts(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_torn_out_of_a_statement_it_is_understood_or_refused(seed: int) -> None:
    runtime = random.Random(seed)
    for entry in runtime.sample(ENTRIES, 60):
        words = corpus.placed(entry.statement, Path("/t")).split(" ")
        for _ in range(runtime.randint(1, 3)):
            words.insert(runtime.randrange(len(words)), words.pop(runtime.randrange(len(words))))
            del words[runtime.randrange(len(words)) : runtime.randrange(len(words) + 1)]
            words = words or ["x"]
        text = " ".join(words)
        with suppress(errors.AnabranchError):
            found = parsing.statement(text, None, path_in)
            assert found is None or isinstance(found, v.Statement)
