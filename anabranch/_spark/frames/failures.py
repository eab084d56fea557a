"""Translates Spark's exceptions to errors of Anabranch.

Knows how PySpark wraps the JVM's errors, classic and Connect. Guarantee: the reason is Spark's own sentence, without
Java frames and plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException

from anabranch._spark.frames.missing_files import file_in, is_within, missing, path_in
from anabranch._spark.frames.violations import violation_in
from anabranch._spark.sessions.connectors import check_reachable
from anabranch.errors import AnabranchError, ExecutionFailed, InvalidCondition, Nondeterministic, UnreadableExpression
from anabranch.errors.rows import NOT_SHOWN, may_show_rows

_CLASS = re.compile(r"^(?:: |Caused by: )?(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): ")
# For a misspelled name Spark also suggests our own columns, and prints the aliases that we gave to sides.
_OUR_FRAME = re.compile(r"(?<![\w.`])__anabranch_\w+\.")
_OUR_SIDE = re.compile(r"`__anabranch_\w+`\.")
_OURS = re.compile(r", (?:`[^`]+`\.)?`__anabranch_\w+`|(?:`[^`]+`\.)?`__anabranch_\w+`, ")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}\.?")
_BYTES = re.compile(r",? but found \[[-\d, ]*\]")  # the bytes of a file that is not Parquet: they may be anyone's data
_NAMED = re.compile(r"(?:^|(?:Exception|Error): )\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", re.MULTILINE)
_UNFIT = re.compile(
    r"a value does not fit the column (?:(?!a value does not fit)[^:\n])+? of type [a-z_]+(?:\([\d, ]+\))?"
)
# Some versions print the argument of a Python function in this way, with the JVM's position in the code.
_PRINTED = re.compile(
    r"columnnodeexpression\(UnresolvedAttribute\(List\(([^()]*)\),(?:(?!columnnodeexpression\()[^'])*?,None,None\)\)\)"
)
_COLUMN = re.compile(r"Column<'(.*)'>", re.DOTALL)
_FOREIGN_COLUMN = ("MISSING_ATTRIBUTES", "CANNOT_RESOLVE_DATAFRAME_COLUMN")
_BOUND = "a column is bound to a DataFrame, as in df['id']. Name it by F.col('id'), or in text."
_MESSAGES = "google.protobuf.message"
_DEEP = "it is nested deeper than Spark Connect takes; each & and | is a level too. Give it as SQL text, or use isin."
_RANDOM = (Nondeterministic.condition, "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION")
_EXPECTED = f"[{Nondeterministic.condition}] Spark expects a deterministic expression."
_PLACE = re.compile(r"(; line \d+,? pos \d+)?;?$")


@contextmanager
def translate_errors(expression: str, table: str, version: int | None = None) -> Iterator[None]:
    """Translate Spark's exceptions in the block to errors of Anabranch; ``version`` is that of the files read, if
    known.

    Raises:
        MissingDataFile: a file is missing.
        UnreadableExpression: the expression does not parse.
        InvalidCondition: it does not fit the columns, or is nested too deep.
        Nondeterministic: it may differ between evaluations, and Spark requires that it does not.
        ExecutionFailed: it cannot be evaluated on some row.
        RowViolation: a row breaks a rule of the table.
        MissingConnector, NoCredentials, NoSuchBucket: Spark cannot reach the store.
    """
    try:
        yield
    except AnabranchError:
        raise
    except ParseException as error:
        raise UnreadableExpression(expression=expression, table=table, reason=reason_of(error)) from None
    except AnalysisException as error:
        if (path := path_in(error)) is not None:
            raise missing(table, path, version) from None
        if error.getCondition() in _RANDOM:
            raise Nondeterministic(expression=expression, table=table, reason=_EXPECTED) from None
        reason = _BOUND if is_of_a_frame(error) else reason_of(error)
        raise InvalidCondition(expression=expression, table=table, reason=reason) from None
    except (PySparkException, Py4JJavaError) as error:
        check_reachable(error, table)
        if (violation := violation_in(str(error), table)) is not None:
            raise violation from None
        if (file := file_in(error)) is not None and is_within(table, file):
            raise missing(table, file, version) from None
        reason = reason_of(error) if may_show_rows(table) else without_values(error)
        raise ExecutionFailed(what=_PRINTED.sub(r"\1", expression), table=table, reason=reason) from None
    except Exception as error:
        if not is_too_deep(error):
            raise
        raise InvalidCondition(expression=f"{expression[:200]}…", table=table, reason=_DEEP) from None


@contextmanager
def translate_execution_errors(what: str, table: str) -> Iterator[None]:
    """As `translate_errors`, but only for errors of execution: errors of parsing and analysis are passed on
    unchanged.
    """
    try:
        yield
    except (AnabranchError, ParseException, AnalysisException):
        raise
    except (PySparkException, Py4JJavaError) as error:
        with translate_errors(what, table):
            raise error from None


def format_expression(expression: object) -> str:
    """An expression for error messages: SQL text as it is, a Column as PySpark prints its contents.

    Example:
        >>> format_expression(F.col("id") + 1)
        '+(id, 1)'
    """
    match = None if isinstance(expression, str) else _COLUMN.fullmatch(str(expression))
    return _OUR_FRAME.sub("", match[1]) if match is not None else str(expression)


def is_of_a_frame(error: AnalysisException) -> bool:
    """Whether a column was taken from a DataFrame, as ``df["id"]``, other than the one in which it is used."""
    return (error.getCondition() or "").startswith(_FOREIGN_COLUMN)


def is_too_deep(error: Exception) -> bool:
    """Whether a Column is too deep for a Spark Connect client to serialise: each of its levels is a level of the
    message.
    """
    return isinstance(error, RecursionError) or type(error).__module__ == _MESSAGES


def is_cancelled(error: Exception) -> bool:
    """Whether the work was cancelled, so that it must not be tried in another way."""
    text = str(error).lower()
    return "cancel" in text or "interrupt" in text


def misfit_sentence(column: str, data_type: str) -> str:
    """The sentence that our queries raise for a value that cannot be cast to a column's type."""
    return f"a value does not fit the column {column} of type {data_type}"


def without_values(error: Exception) -> str:
    """What went wrong, by Spark's name for the condition, without Spark's own sentence, which may contain values of
    rows.

    Example:
        >>> without_values(PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"))
        '[DIVIDE_BY_ZERO] it cannot be evaluated on some row; values of rows are not shown (anabranch.rowsInErrors).'
    """
    text = str(error)
    misfit, condition = _UNFIT.search(text), _NAMED.search(text)
    kind = f"[{condition[1]}] " if condition is not None else ""
    what = f"{misfit[0]}; " if misfit is not None else "it cannot be evaluated on some row; "
    return f"{kind}{what}{NOT_SHOWN}."


def reason_of(error: Exception) -> str:
    """Spark's own sentence about what went wrong.

    Example:
        >>> reason_of(PySparkException("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\\n== SQL (line 1) =="))
        '[DIVIDE_BY_ZERO] Division by zero.'
    """
    lines = [line.strip() for line in _STATE.sub("", str(error)).splitlines() if line.strip()]
    if isinstance(error, PythonException):
        return _sentence(lines[-1])  # the last line of the worker's traceback; on Connect only a SQLSTATE is below it
    if isinstance(error, Py4JJavaError):
        lines = [line for line in lines if _CLASS.match(line)][-1:] or lines
    return _sentence(lines[0] if lines else type(error).__name__)


def _sentence(line: str) -> str:
    text = _PLACE.sub(
        "", _OURS.sub("", _OUR_SIDE.sub("", _STATE.sub("", _BYTES.sub("", _CLASS.sub("", line)))))
    ).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
