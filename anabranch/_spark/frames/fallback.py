"""Tries Arrow first, then Spark: the only place where work that Arrow could not do is passed to Spark.

Knows errors, not rows. Guarantee: Spark starts from the beginning, and only once; a cancelled job stays cancelled; the
reason why Arrow did not do it contains no value of a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.frames.failures import is_cancelled
from anabranch.errors import AnabranchError, NeedsSpark, StagedFilesRemain

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")
_Other = TypeVar("_Other")


def arrow_else_spark(
    by_arrow: Callable[[], _T],
    by_spark: Callable[[], _Other],
    refused: Callable[[str], object] = lambda reason: None,
) -> _T | _Other:
    """The result of Arrow, or, if it fails, that of Spark, which starts from the beginning.

    Args:
        refused: called with the reason why Arrow does not do it, without texts of others' errors, which may contain
            values of rows.

    Raises:
        PySparkException, Py4JJavaError: it was cancelled.
        StagedFilesRemain: files that Arrow has written remain, and would count twice.
    """
    try:
        return by_arrow()
    except StagedFilesRemain:
        raise
    except Exception as error:  # whatever the error, Spark reports it better, or succeeds
        is_sparks = isinstance(error, PySparkException | Py4JJavaError) and not isinstance(error, AnabranchError)
        if is_sparks and is_cancelled(error):
            raise  # only for Spark's errors: others may contain such a word in a rule or a path
        level = logging.DEBUG if isinstance(error, Unsupported | AnabranchError) or is_sparks else logging.WARNING
        _logger.log(level, "rows are left to Spark, since %s was raised", type(error).__name__)
        refused(_reason(error))
    return by_spark()


def try_first(shortcut: Callable[[], _T]) -> _T | None:
    """The result of a shortcut, by Arrow or one small job; None if it fails, so that the long way reports the error.

    Raises:
        PySparkException, Py4JJavaError: it was cancelled.
    """
    return arrow_else_spark(shortcut, lambda: None)


def _reason(error: Exception) -> str:
    if isinstance(error, Unsupported):
        return str(error)
    return str(error.facts["reason"]) if isinstance(error, NeedsSpark) else f"Arrow raised {type(error).__name__}"
