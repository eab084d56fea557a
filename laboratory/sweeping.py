"""Sweeps: every call that a plan makes fails once, in every way.

The list of faults is derived from the calls that were seen, never typed in: what is called later is swept later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from laboratory.plans import Failure, Plan
from laboratory.runs import WAYS, History


def sweep(history: History) -> Iterator[Plan]:
    """The history's plan with each call of each writer failing in each way, one plan each.

    A call that changes nothing has no "after": there the way before its effect says it all.
    """
    for who, calls in sorted(history.calls.items()):
        for call in calls:
            changes = call.is_put or call.method == "delete"
            for how, way in WAYS.items():
                if changes or not way.after:
                    yield replace(history.plan, failures=(Failure(who, call.number, how),))
