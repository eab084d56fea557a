"""Predicts the size of rows from Spark's plan, without a job.

Parses printed plans, since PySpark offers no other access. Guarantee: a size is reported only if no step of the plan
produces more rows than it receives, runs Python, or is unknown here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import DataFrame

from anabranch._spark.frames.dataframe_source import printed_plan

_CONSTANT = re.compile(r"== Optimized Logical Plan ==\nLocalRelation .*\n\n== Physical Plan ==\nLocalTableScan .*\n*\Z")
_NODE = re.compile(r"[ :+|-]*([A-Z]\w+) .*, Statistics\(sizeInBytes=([\d.]+) ([KMGTPE]?i?B)(?:, rowCount=[^)]*)?\)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NEVER_MORE = frozenset(
    {"Relation", "LocalRelation", "Project", "Filter", "Range", "GlobalLimit", "LocalLimit", "Sort"}
)
"""Steps that produce no additional rows; steps that run Python have other names."""


@dataclass(frozen=True)
class PlanEstimate:
    """What Spark's plan shows about rows.

    Attributes:
        is_constant: whether Spark has computed the rows, so that collecting them runs nothing.
        bytes: approximate bytes that are read for them; None if the plan does not show it.
    """

    is_constant: bool
    bytes: float | None


def outlook(rows: DataFrame) -> PlanEstimate:
    """The outlook of rows. Raises Spark's error if a constant cannot be computed."""
    plan = printed_plan(rows, "cost")
    steps = [_NODE.fullmatch(line) for line in plan.partition("\n\n== Physical Plan ==")[0].splitlines()[1:]]
    supported = [step for step in steps if step is not None and step[1] in _NEVER_MORE and step[3] in _UNITS]
    size = (
        max(float(step[2]) * _UNITS[step[3]] for step in supported)
        if supported and len(supported) == len(steps)
        else None
    )
    return PlanEstimate(_CONSTANT.search(plan) is not None, size)
