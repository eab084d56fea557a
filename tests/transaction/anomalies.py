"""Anomalies by name: Hermitage's list, told by what two or three sessions can do here; and the page that tells it.

Knows the scripts and how a page shows what they gave; nothing of how they are played. `docs/concepts/anomalies.md`
holds verdicts and endings that the runs gave; ``python -m tests.transaction.anomalies`` writes those parts anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from laboratory import statements
from laboratory.statements import (
    EVERYWHERE,
    All,
    Append,
    Delete,
    Overwrite,
    Plus,
    Put,
    Rows,
    Test,
    Update,
    Where,
)
from tests.transaction.scripted import (
    DIALS,
    LEVELS,
    Aborts,
    Begins,
    Ends,
    Fate,
    Run,
    Runs,
    Script,
    Sees,
    Statement,
    Steps,
    Table,
    play,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "anomalies.md"

TABLES = tuple(Table(level, dial) for level in LEVELS for dial in DIALS)
"""The columns of the page."""


# -- the scripts -------------------------------------------------------------------------------------------------------

T1, T2, T3 = 1, 2, 3


def _k(key: int) -> Where:
    return Test("k", "=", key)


def _x(value: int) -> Where:
    return Test("x", "=", value)


def _set(where: Where = EVERYWHERE, **values: int) -> Update:
    return Update(tuple(Put(column, value) for column, value in values.items()), where)


def _add(step: int, where: Where = EVERYWHERE) -> Update:
    return Update((Plus("x", step),), where)


def _both_begin(first: Statement, second: Statement) -> Steps:
    return ((T1, Begins(first)), (T2, Begins(second)), (T1, Ends()), (T2, Ends()))


TRANSACTIONS = (
    Script(
        "G0",
        "dirty write",
        ((T1, Begins(_set(x=11))), (T2, Runs(_set(x=12))), (T1, Ends())),
    ),
    Script(
        "G1a",
        "aborted read",
        ((T1, Begins(_set(_k(1), x=101))), (T2, Sees(_k(1))), (T1, Aborts()), (T2, Sees(_k(1))), (T3, Sees(_k(1)))),
    ),
    Script(
        "G1b",
        "intermediate read",
        (
            (T1, Begins(Overwrite(((1, 1, 11), (2, 2, 22))))),
            (T2, Sees()),
            (T1, Ends()),
            (T2, Sees()),
            (T3, Sees()),
        ),
    ),
    Script(
        "G1c",
        "circular information flow",
        _both_begin(_set(statements.Any((_k(1), _x(22))), x=11), _set(statements.Any((_k(2), _x(11))), x=22)),
    ),
    Script(
        "OTV",
        "observed transaction vanishes",
        (
            (T1, Runs(_set(x=11))),
            (T2, Begins(_set(x=12))),
            (T3, Sees(_k(1))),
            (T2, Ends()),
            (T3, Sees(_k(2))),
        ),
    ),
    Script(
        "PMP",
        "predicate-many-preceders",
        ((T1, Sees(_x(30))), (T2, Runs(Append(((3, 3, 30),)))), (T1, Sees(Test("x", ">=", 30)))),
    ),
    Script(
        "PMP, writing",
        "the same in a write's condition",
        _both_begin(_add(10), Delete(_x(20))),
    ),
    Script(
        "P4",
        "lost update",
        ((T1, Begins(_add(1, _k(1)))), (T2, Runs(_add(1, _k(1)))), (T1, Ends())),
    ),
    Script(
        "G-single",
        "read skew",
        ((T1, Sees(_k(1))), (T2, Runs(_set(x=15))), (T1, Sees(_k(2)))),
    ),
    Script(
        "G2-item",
        "write skew",
        _both_begin(_set(Test("p", ">", 10), x=15), _set(Test("x", ">", 10), p=15)),
        rows=((1, 0, 20), (2, 20, 0)),
    ),
    Script(
        "G2",
        "anti-dependency cycle",
        _both_begin(_set(Test("p", "=", 1), p=2), _set(Test("p", "=", 2), p=1)),
    ),
    Script(
        "G2, inserting",
        "the same with a blind INSERT",
        ((T1, Begins(Delete(EVERYWHERE))), (T2, Runs(Append(((3, 3, 30),)))), (T1, Ends())),
    ),
    Script(
        "G2, with a reader",
        "versions out of the serial order",
        ((T1, Begins(Delete(EVERYWHERE))), (T2, Runs(Append(((3, 3, 30),)))), (T3, Sees()), (T1, Ends())),
    ),
)
"""Each session is one statement or one snapshot: what a level speaks of."""

_EACH = statements.Any((_k(1), _k(2)))

APPLICATIONS = (
    Script(
        "G0 in two statements",
        "one UPDATE",
        (
            (T1, Runs(_set(_k(1), x=11))),
            (T2, Runs(_set(_k(1), x=12))),
            (T2, Runs(_set(_k(2), x=22))),
            (T1, Runs(_set(_k(2), x=21))),
        ),
    ),
    Script(
        "G1a in two statements",
        "one statement: what is committed stays",
        ((T1, Runs(_set(_k(1), x=101))), (T2, Sees(_k(1))), (T1, Aborts())),
    ),
    Script(
        "G1b in two statements",
        "one UPDATE",
        ((T1, Runs(_set(_k(1), x=101))), (T2, Sees(_k(1))), (T1, Runs(_set(_k(1), x=11)))),
    ),
    Script(
        "G1c in two statements",
        "one statement each",
        (
            (T1, Runs(_set(_k(1), x=11))),
            (T2, Runs(_set(_k(2), x=22))),
            (T1, Sees(_k(2))),
            (T2, Sees(_k(1))),
        ),
    ),
    Script(
        "OTV in two statements",
        "one statement each, one `version` for T3",
        (
            (T1, Runs(_set(_k(1), x=11))),
            (T1, Runs(_set(_k(2), x=19))),
            (T2, Runs(_set(_k(1), x=12))),
            (T3, Sees(_k(1), afresh=True)),
            (T3, Sees(_k(2), afresh=True)),
            (T2, Runs(_set(_k(2), x=18))),
        ),
    ),
    Script(
        "PMP in two snapshots",
        "one `version` for both reads",
        (
            (T1, Sees(_x(30), afresh=True)),
            (T2, Runs(Append(((3, 3, 30),)))),
            (T1, Sees(Test("x", ">=", 30), afresh=True)),
        ),
    ),
    Script(
        "P4 in two statements",
        "`x = x + 1`, or as in the next line",
        (
            (T1, Sees(_k(1))),
            (T2, Sees(_k(1))),
            (T1, Runs(_set(_k(1), x=11))),
            (T2, Runs(_set(_k(1), x=12))),
        ),
    ),
    Script(
        "P4 with the value in the condition",
        "no row changed: read again",
        (
            (T1, Sees(_k(1))),
            (T2, Sees(_k(1))),
            (T1, Runs(_set(All((_k(1), _x(10))), x=11), or_gives_up=True)),
            (T2, Runs(_set(All((_k(1), _x(10))), x=12), or_gives_up=True)),
        ),
    ),
    Script(
        "G-single in two snapshots",
        "one `version` for both reads",
        (
            (T1, Sees(_k(1), afresh=True)),
            (T2, Runs(_set(x=15))),
            (T1, Sees(_k(2), afresh=True)),
        ),
    ),
    Script(
        "G2-item in two statements",
        "keep both values in one row, then as P4",
        (
            (T1, Sees(_EACH)),
            (T2, Sees(_EACH)),
            (T1, Runs(_set(_k(1), x=11))),
            (T2, Runs(_set(_k(2), x=21))),
        ),
    ),
    Script(
        "G2 in two statements",
        "nothing: INSERTs never conflict",
        (
            (T1, Sees(Test("x", ">=", 30))),
            (T2, Sees(Test("x", ">=", 30))),
            (T1, Runs(Append(((3, 3, 30),)))),
            (T2, Runs(Append(((4, 4, 42),)))),
        ),
    ),
)
"""Each session is what an application means as one transaction, made of several."""

SCRIPTS = {script.name: script for script in (*TRANSACTIONS, *APPLICATIONS)}


# -- the page ----------------------------------------------------------------------------------------------------------


@cache
def played(script: Script, table: Table) -> Run:
    """A script on a kind of table in memory, played once: each play gives the same."""
    return play(script, table)


def told_of(script: Script) -> str:
    """A script and what became of it on each kind of table, in words."""
    found: dict[str, list[Table]] = {}
    for table in TABLES:
        found.setdefault(_in_words(played(script, table)), []).append(table)
    steps = [f"  T{who}  {act}" for who, act in script.steps]
    ends = [f"{_where(tables)}: {words}" for words, tables in found.items()]
    return "\n".join([f"{script.name}: {_listed(script.rows)}", *steps, *ends])


def verdicts(scripts: Sequence[Script], head: str) -> str:
    """The table of verdicts, one script a line."""
    rows = [[head, *(f"{table}" for table in TABLES), "which is" if scripts is TRANSACTIONS else "instead"]]
    rows.append(["---"] * len(rows[0]))
    rows += [[script.name, *(played(script, table).verdict for table in TABLES), script.about] for script in scripts]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def renewed(page: str) -> str:
    """The page with what the runs say now."""
    for head, scripts in (("anomaly", TRANSACTIONS), ("in the application", APPLICATIONS)):
        table = verdicts(scripts, head)
        page = re.sub(rf"^\| {head} \|.*\n(\|.*\n)*", lambda _, table=table: f"{table}\n", page, flags=re.MULTILINE)
    return _BLOCK.sub(lambda found: f"```text\n{told_of(SCRIPTS[found[1]])}\n```", page)


_BLOCK = re.compile(r"^```text\n([^:\n]+):.*?^```$", re.MULTILINE | re.DOTALL)


def _in_words(run: Run) -> str:
    fates = [f"T{who} {_end(fate, run.saw(who))}" for who, fate in run.fates.items()]
    return "\n    ".join([run.verdict, *fates, f"left: {_listed(run.rows)}"])


def _end(fate: Fate, reads: Sequence[Rows]) -> str:
    told = [] if fate.told == "read" else [f"refused, {fate.told}" if fate.refused else fate.told]
    return "; ".join([*told, *(["saw " + ", then ".join(map(_listed, reads))] if reads else [])])


def _where(tables: Sequence[Table]) -> str:
    """A few kinds of table by what they have in common."""
    for dials in (DIALS, *((dial,) for dial in DIALS)):
        for levels in (LEVELS, *((level,) for level in LEVELS)):
            if [(t.level, t.dial) for t in tables] == [(level, dial) for level in levels for dial in dials]:
                level = "both levels" if levels == LEVELS else levels[0]
                return f"{level}, {'row and file' if dials == DIALS else dials[0]}"
    return "; ".join(map(str, tables))


def _listed(rows: Rows) -> str:
    return ", ".join(str(row) for row in rows) or "nothing"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
