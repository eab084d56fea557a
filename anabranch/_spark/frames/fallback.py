"""Arrow first, then Spark: the one place where what Arrow could not do goes to Spark.

Knows errors, not rows. Guarantee: Spark begins anew, and only once; a cancelled job stays cancelled; why Arrow did not
do it is told without a value of a row.
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
    """What Arrow gives; where it fails what Spark gives, which begins anew, and says why, or can do it.

    Args:
        refused: is told why Arrow does not do it, without the words of another's error, which may hold values of rows.

    Raises:
        PySparkException, Py4JJavaError: it was cancelled.
        StagedFilesRemain: what Arrow has written stays, and would count twice.
    """
    try:
        return by_arrow()
    except StagedFilesRemain:
        raise
    except Exception as error:  # whatever it is, Spark says it better, or can do it
        is_sparks = isinstance(error, PySparkException | Py4JJavaError) and not isinstance(error, AnabranchError)
        if is_sparks and is_cancelled(error):
            raise  # others may hold such a word in a rule or a path
        level = logging.DEBUG if isinstance(error, Unsupported | AnabranchError) or is_sparks else logging.WARNING
        _logger.log(level, "rows are left to Spark, since %s was raised", type(error).__name__)
        refused(_why(error))
    return by_spark()


def try_first(short_way: Callable[[], _T]) -> _T | None:
    """What a short way gives, Arrow's or one small job; None where it fails, so that the long way says why.

    Raises:
        PySparkException, Py4JJavaError: it was cancelled.
    """
    return arrow_else_spark(short_way, lambda: None)


def _why(error: Exception) -> str:
    if isinstance(error, Unsupported):
        return str(error)
    return str(error.facts["reason"]) if isinstance(error, NeedsSpark) else f"Arrow raised {type(error).__name__}"
