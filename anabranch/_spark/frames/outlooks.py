"""Outlooks: what Spark knows of rows as soon as it has planned for them, without a job.

Reads printed plans, which PySpark gives in no other way. Guarantee: a size is said only where no step of the plan makes
more rows than it gets, runs Python, or is one that is not known here.
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
"""Steps that make no row of none; those that run Python are others."""


@dataclass(frozen=True)
class Outlook:
    """What is known of rows.

    Attributes:
        is_constant: whether Spark has computed them, so that to ask for them runs nothing.
        bytes: about how much is read for them; None where nothing says so.
    """

    is_constant: bool
    bytes: float | None


def outlook(rows: DataFrame) -> Outlook:
    """See `Outlook`. Raises what Spark does where something constant cannot be computed."""
    plan = printed_plan(rows, "cost")
    steps = [_NODE.fullmatch(line) for line in plan.partition("\n\n== Physical Plan ==")[0].splitlines()[1:]]
    known = [step for step in steps if step is not None and step[1] in _NEVER_MORE and step[3] in _UNITS]
    size = max(float(step[2]) * _UNITS[step[3]] for step in known) if known and len(known) == len(steps) else None
    return Outlook(_CONSTANT.search(plan) is not None, size)
