"""Sites in a session: the same commands by Spark alone, by Spark with few rows brought here, and as sessions run them.

Knows the seams by which steps are left to Spark. What a command says is understood as elsewhere; what of it only Spark
computes is handed to Spark as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from anabranch._arrow.site import Site
from anabranch._expressions import MergeColumns, assignment, resolve_assignments
from anabranch._protocol.schema.assignments import map_values
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark import engine
from anabranch._spark.engine import SparkEngine
from anabranch._spark.merging import expression_checks
from anabranch._spark.sessions.session import build
from anabranch._spark.writing import arrow_clustering, arrow_packing, few_rows
from laboratory import drawn_commands as drawn
from laboratory.sites import Asked, Place, sql

_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session() -> SparkSession:
    """A session in which times without a zone are in UTC, as they are without one."""
    return build("laboratory", "local[2]", _CONF)


def places(spark: SparkSession) -> tuple[Place, ...]:
    """The ways of a session."""

    def made(store: Any) -> SparkEngine:
        return SparkEngine(spark)

    return (
        Place("Spark alone", made, words, _all_by_spark),
        Place("Spark with few rows here", made, words, _steps_by_spark),
        Place("a session", made, words),
    )


def words(asked: Asked) -> Any:
    """Values, or clauses; texts where only Spark says what they are."""
    if not isinstance(asked.command, drawn.Update):
        return sql(asked)
    context = replace(asked.texts.context, has_usual_quotes=lambda: False)
    texts = {name: each.text for name, each in asked.command.sets.items()}
    return map_values(
        resolve_assignments(texts, "set", MergeColumns(asked.at.schema, ()), context),
        lambda text: assignment(text, context),
    )


def _left(*given: Any) -> Any:
    raise Unsupported("Spark is asked")


def _by_spark(by_arrow: Callable[[], Any], by_spark: Callable[[], Any], refused: Callable[[str], object]) -> Any:
    return by_spark()


@contextmanager
def _steps_by_spark() -> Iterator[None]:
    """No step is tried by Arrow, within the block."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(engine, "arrow_else_spark", _by_spark))
        stack.enter_context(patch.object(expression_checks, "resolve_assignments", _left))
        stack.enter_context(patch.object(arrow_packing, "pack_bins", lambda spark, bins: frozenset()))
        stack.enter_context(patch.object(arrow_clustering, "try_cluster", lambda *given: False))
        yield


@contextmanager
def _all_by_spark() -> Iterator[None]:
    """Nor are rows brought here, however few they are."""
    with _steps_by_spark(), patch.object(few_rows, "MOST_ROWS", -1), patch.object(Site, "check_read", _left):
        yield
