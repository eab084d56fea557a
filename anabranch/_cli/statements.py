"""The command ``sql``: statements from the command line, a file or standard input, run in a session or without."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from anabranch._cli.arguments import Json, Wide
from anabranch._cli.output import print_cells, print_csv, print_json, print_text
from anabranch._cli.sessions import get_or_start_session
from anabranch._cli.values import cell_text
from anabranch._expressions.dialect import TokenizedText
from anabranch._sql.grammar.scripts import split
from anabranch.errors import InvalidOption, MissingJava, MissingPySpark, NeedsSpark, StatementNeedsSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGINNINGS = (
    *("ALTER TABLE", "CONVERT TO DELTA", "CREATE TABLE", "DELETE FROM", "DESCRIBE DETAIL", "DESCRIBE HISTORY"),
    *("DROP TABLE", "EXPLAIN", "FSCK REPAIR TABLE", "GENERATE", "INSERT INTO", "MERGE INTO", "OPTIMIZE", "REORG TABLE"),
    *("RESTORE TABLE", "SELECT", "SHOW COLUMNS", "SHOW CREATE TABLE", "SHOW TBLPROPERTIES", "TRUNCATE TABLE", "UPDATE"),
    *("VACUUM", "WITH"),
)
"""How statements begin, for the completion of shells."""


_FORMATS = ("delta", "anabranch")
_LEAVE_OUT = "Leave out --without-spark; Spark takes pip install 'anabranch[spark]', and Java 17 or newer."


class Rows(Protocol):
    """What a statement gives: a DataFrame, or rows in Arrow."""

    @property
    def columns(self) -> Sequence[str]: ...

    def collect(self) -> list[Any]: ...

    def take(self, num: int) -> list[Any]: ...


def complete_statement(incomplete: str) -> list[str]:
    """The beginnings of statements that go on with what is typed, in the same case, since a shell compares letters.

    Example:
        >>> begun("desc")
        ['describe detail', 'describe history']
    """
    spelled = str.lower if incomplete.islower() else str.upper
    return [spelled(each) for each in BEGINNINGS if each.startswith(incomplete.upper())]


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            help="SQL statements; several are run one after the other.",
            autocompletion=lambda incomplete: complete_statement(incomplete),
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statements from this file.")] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many rows of a result.", min=1)] = 1000,
    wide: Wide = False,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, with a header.")] = False,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark",
            help="Start no Spark, and refuse what takes it: queries of one table, changes of rows and maintenance, of "
            "paths, are done by this process. Times without a zone are in UTC then, and with Spark in the session's "
            "zone. The same without PySpark or Java.",
        ),
    ] = False,
) -> None:
    """Run SQL on Delta tables, given as delta.`path` or by name; a relative path begins in the current folder.

    Without a statement or file, reads standard input.
    """
    if as_json and as_csv:
        raise InvalidOption(option="--csv", value="true", reason="choose either --csv or --json.")
    texts = [with_whole_paths(each) for each in split(_text_of(statement, file))]
    spark, instead = (None, _LEAVE_OUT) if without_spark else _session()
    with _saying(instead):
        for found in _run_without_spark(texts) if spark is None else _run_in_session(spark, texts):
            if found.columns:
                _print_rows(found, limit, wide=wide, as_json=as_json, as_csv=as_csv)


def _session() -> tuple[SparkSession | None, str]:
    """The session; None where none can be started, and what it takes."""
    try:
        return get_or_start_session("anabranch-sql"), ""
    except (MissingPySpark, MissingJava) as error:
        return None, error.message.partition("] ")[2]


@contextmanager
def _saying(instead: str) -> Iterator[None]:
    """Within the block statements are run without Spark. Raises StatementNeedsSpark: one takes it; ``instead`` says how
    to have it.
    """
    try:
        yield
    except NeedsSpark as error:
        facts = {name: error.facts.get(name) for name in ("what", "reason", "table", "excerpt")}
        raise StatementNeedsSpark(**facts, instead=instead) from None


def _run_in_session(spark: SparkSession, texts: list[str]) -> Iterator[Rows]:
    """What each statement gives, in a session."""
    from anabranch._sql.sql import sql as run  # needs Spark, which most commands do not

    return (run(spark, each) for each in texts)


def _run_without_spark(texts: list[str]) -> Iterator[Rows]:
    """What each statement gives, without Spark. Raises NeedsSpark: one takes it; all are understood before one runs."""
    from anabranch._cli.without_spark import check, parse_statement, run  # which no other command needs

    statements = [parse_statement(each) for each in texts]
    check(statements)
    return map(run, statements)


def with_whole_paths(statement: str) -> str:
    """The statement with the relative paths of its Delta tables as absolute ones, as the other commands read them.

    A single word is a path only if the current folder has it; else it is a name in Spark's catalog.

    Example:
        >>> with_whole_paths("SELECT * FROM delta.`./t`") == f"SELECT * FROM delta.`{os.getcwd()}/t`"
        True
    """
    tokens, found, last = TokenizedText(statement).tokens, "", 0
    for format_, dot, path in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if format_.text.lower() in _FORMATS and dot.text == "." and _is_relative(statement[path.start], path.text):
            found += statement[last : path.start] + f"`{os.path.abspath(path.text).replace('`', '``')}`"
            last = path.end + 1
    return found + statement[last:]


def _is_relative(first: str, path: str) -> bool:
    is_whole = path.startswith("/") or ":/" in path
    return first == "`" and path != "" and not is_whole and ("/" in path or Path(path).exists())


def _text_of(statement: str | None, file: Path | None) -> str:
    if statement is not None and file is not None:
        raise InvalidOption(option="--file", value=str(file), reason="give either a statement or a file.")
    if statement is not None and statement != "-":
        return statement
    if file is None:
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(option="--file", value=str(file), reason=f"it cannot be read ({error}).") from None


def _print_rows(found: Rows, limit: int, *, wide: bool, as_json: bool, as_csv: bool) -> None:
    """Every row as a machine reads it, or the first ones for people."""
    names = found.columns
    if as_json:
        _check_distinct(names)
        print_json([dict(zip(names, row, strict=True)) for row in found.collect()])
        return
    if as_csv:
        print_csv([names, *(["" if each is None else cell_text(each) for each in row] for row in found.collect())])
        return
    rows = found.take(limit + 1)
    texts = [["NULL" if each is None else cell_text(each) for each in row] for row in rows[:limit]]
    print_cells(names, texts, wide=wide, ruled=True)
    if len(rows) > limit:
        print_text(f"and more; --limit shows more than {limit} rows")


def _check_distinct(names: Sequence[str]) -> None:
    """Raises InvalidOption: an object of JSON would lose columns, since several have one name."""
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        reason = f"the result has several columns {', '.join(twice)}: rename them with AS."
        raise InvalidOption(option="--json", value="true", reason=reason)
