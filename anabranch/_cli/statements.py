"""The command ``sql``: runs statements from the command line, a file or standard input, with or without a session."""

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
from anabranch._cli.rendered_values import cell_text
from anabranch._cli.sessions import get_or_start_session
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
"""The first words of statements, for shell completion."""


_FORMATS = ("delta", "anabranch")
_LEAVE_OUT = "Leave out --without-spark; Spark takes pip install 'anabranch[spark]', and Java 17 or newer."


class Rows(Protocol):
    """The result of a statement: a DataFrame, or rows in Arrow."""

    @property
    def columns(self) -> Sequence[str]: ...

    def collect(self) -> list[Any]: ...

    def take(self, num: int) -> list[Any]: ...


def complete_statement(incomplete: str) -> list[str]:
    """Completes the first words of a statement, in the same case, since a shell compares letters.

    Example:
        >>> complete_statement("desc")
        ['describe detail', 'describe history']
    """
    change_case = str.lower if incomplete.islower() else str.upper
    return [change_case(beginning) for beginning in BEGINNINGS if beginning.startswith(incomplete.upper())]


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
    texts = [with_whole_paths(text) for text in split(_text_of(statement, file))]
    spark, instead = (None, _LEAVE_OUT) if without_spark else _session()
    with _explaining_refusals(instead):
        for rows in _run_without_spark(texts) if spark is None else _run_in_session(spark, texts):
            if rows.columns:
                _print_rows(rows, limit, wide=wide, as_json=as_json, as_csv=as_csv)


def _session() -> tuple[SparkSession | None, str]:
    """The session; None and the reason if none can be started."""
    try:
        return get_or_start_session("anabranch-sql"), ""
    except (MissingPySpark, MissingJava) as error:
        return None, error.message.partition("] ")[2]


@contextmanager
def _explaining_refusals(instead: str) -> Iterator[None]:
    """Turns NeedsSpark within the block into StatementNeedsSpark; ``instead`` tells the user how to get Spark."""
    try:
        yield
    except NeedsSpark as error:
        facts = {name: error.facts.get(name) for name in ("what", "reason", "table", "excerpt")}
        raise StatementNeedsSpark(**facts, instead=instead) from None


def _run_in_session(spark: SparkSession, texts: list[str]) -> Iterator[Rows]:
    """The results of the statements, run in a session; months are texts, as PySpark collects none."""
    from anabranch._spark.columns.months import months_as_texts  # imports Spark, which most commands do not need
    from anabranch._sql.sql import sql as run

    return (months_as_texts(run(spark, text)) for text in texts)


def _run_without_spark(texts: list[str]) -> Iterator[Rows]:
    """The results of the statements, run without Spark. Raises NeedsSpark: one needs it; all are parsed before one
    runs.
    """
    from anabranch._cli.without_spark import check, parse_statement, run  # no other command needs it

    statements = [parse_statement(text) for text in texts]
    check(statements)
    return map(run, statements)


def with_whole_paths(statement: str) -> str:
    """Makes the relative paths of a statement's Delta tables absolute, as the other commands read them.

    A single word is a path only if the current folder has it; else it is a name in Spark's catalog.

    Example:
        >>> with_whole_paths("SELECT * FROM delta.`./t`") == f"SELECT * FROM delta.`{os.getcwd()}/t`"
        True
    """
    tokens, rewritten, last = TokenizedText(statement).tokens, "", 0
    for format_, dot, path in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if format_.text.lower() in _FORMATS and dot.text == "." and _is_relative(statement[path.start], path.text):
            rewritten += statement[last : path.start] + f"`{os.path.abspath(path.text).replace('`', '``')}`"
            last = path.end + 1
    return rewritten + statement[last:]


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


def _print_rows(result: Rows, limit: int, *, wide: bool, as_json: bool, as_csv: bool) -> None:
    """Prints every row for machines, or the first ones for people."""
    names = result.columns
    if as_json:
        _check_distinct(names)
        print_json([dict(zip(names, row, strict=True)) for row in result.collect()])
        return
    if as_csv:
        print_csv([names, *(["" if value is None else cell_text(value) for value in row] for row in result.collect())])
        return
    rows = result.take(limit + 1)
    texts = [["NULL" if value is None else cell_text(value) for value in row] for row in rows[:limit]]
    print_cells(names, texts, wide=wide, ruled=True)
    if len(rows) > limit:
        print_text(f"and more; --limit shows more than {limit} rows")


def _check_distinct(names: Sequence[str]) -> None:
    """Raises InvalidOption if several columns have one name, since a JSON object would lose columns."""
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        reason = f"the result has several columns {', '.join(duplicates)}: rename them with AS."
        raise InvalidOption(option="--json", value="true", reason=reason)
