"""Stories: a history as a table that a person can read, and as a test that repeats it.

Knows what was seen; judges nothing. Text only.
"""

from __future__ import annotations

from collections.abc import Sequence

from laboratory.plans import Plan
from laboratory.runs import Act, Event, History
from laboratory.statements import Rows
from laboratory.verdicts import violations


def story(history: History) -> str:
    """Who did what when, what the versions hold, and what is wrong with it."""
    seed = "" if history.plan.seed is None else f" (seed {history.plan.seed})"
    parts = [
        f"A table ({history.plan.setup}) that holds {_rows(history.plan.setup.rows)}{seed}.",
        *(f"  W{act.who}: {act.statement}" for act in history.acts),
        *(f"  W{f.who}'s call {f.call} fails: {f.how}" for f in history.plan.failures),
        "",
        _timeline(history),
        "",
        *(f"  W{act.who} was told: {_told(act)}" for act in history.acts),
        "",
        *_versions(history),
        "",
        *(f"  {violation}" for violation in violations(history)),
    ]
    return "\n".join(parts)


def as_test(plan: Plan) -> str:
    """The plan as Python source, ready to be pasted into a test."""
    return "\n".join(
        [
            "Plan(",
            f"    {plan.setup!r},",
            f"    {plan.statements!r},",
            f"    {plan.schedule!r},",
            f"    {plan.failures!r},",
            ")",
        ]
    )


def _timeline(history: History) -> str:
    """One line per run of moments of one writer, one column per writer."""
    width = max(24, *(len(line) + 2 for _, lines in _runs(history.events) for line in lines)) if history.events else 24
    lines = ["".join(f"W{act.who}".ljust(width) for act in history.acts).rstrip()]
    for who, moments in _runs(history.events):
        lines += [" " * (width * who) + moment for moment in moments]
    return "\n".join("  " + line for line in lines)


def _runs(events: Sequence[Event]) -> list[tuple[int, list[str]]]:
    found: list[tuple[int, list[str]]] = []
    for event in sorted(events, key=lambda each: each.step):
        moment = _short(event.moment)
        if found and found[-1][0] == event.who:
            found[-1][1].append(moment)
        else:
            found.append((event.who, [moment]))
    return [(who, _joined(moments)) for who, moments in found]


def _joined(moments: list[str]) -> list[str]:
    """Calls that only read say little: they are counted."""
    lines: list[str] = []
    reads = 0
    for moment in moments:
        if moment.startswith(("get ", "head ", "list_", "read_range ", "sync ")):
            reads += 1
            continue
        if reads:
            lines.append(f"reads ({reads} calls)")
        reads = 0
        lines.append(moment)
    return [*lines, f"reads ({reads} calls)"] if reads else lines


def _short(moment: str) -> str:
    method, _, name = moment.partition(" ")
    if not name:
        return f"<{moment}>"
    last = name.rsplit("/", 1)[-1].rstrip("']")
    return f"{method} {last.lstrip('0') or '0.json'}" if last.endswith(".json") else f"{method} {last[:14]}"


def _told(act: Act) -> str:
    if act.told == "committed":
        changed = "" if act.changed is None else f", {act.changed} rows changed"
        return f"committed at version {act.version}{changed}"
    return act.told if act.error is None else f"{act.told}: {type(act.error).__name__}: {str(act.error)[:100]}"


def _versions(history: History) -> list[str]:
    lines = []
    for version in history.versions[history.base :]:
        info = version.info
        lines.append(f"  version {version.number} ({info.get('operation')}): {_rows(version.rows)}")
    return lines


def _rows(rows: Rows) -> str:
    ordered = sorted(rows, key=lambda row: [(v is None, v or 0) for v in row])
    return " ".join("(" + ",".join("-" if v is None else str(v) for v in row) + ")" for row in ordered) or "no rows"


__all__ = ["as_test", "story"]
