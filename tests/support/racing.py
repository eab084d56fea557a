"""A race on one table whose outcome proves itself: what writers do, what they were told, and what must stand then.

Knows SQL and the format of a table; nothing of how an engine works. Some ids are shared: everybody adds one to their
``x``, so that an update that is lost or done twice shows in a sum. All others belong to one writer, who alone inserts
and deletes them. Each commit carries a tag (``userMetadata``), so that the log says which of them stand, and how often.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from anabranch.testing.plain_reader import plain_rows

SHARED = 24
"""The ids below this one are everybody's."""
TAG = "spark.databricks.delta.commitInfo.userMetadata"
VERBS = ("append", "append", "update", "update", "merge", "merge", "delete", "optimize", "vacuum")
WITH_A_COMMIT = ("append", "update", "merge", "delete")
"""Each of these, if it is acknowledged, is one commit; the others may find nothing to do."""


@dataclass
class Done:
    """One statement: its tag, what it does to ``x`` of which ids, which ids come and go, and what its writer was told.

    ``told`` is ``committed``, ``refused`` (a conflict), ``unknown`` (nobody could say), or ``failed``. ``stood`` is the
    version at which the commit was seen right after its acknowledgement, where somebody looked.
    """

    tag: str
    verb: str
    plus: Sequence[int] = ()
    new: Sequence[int] = ()
    gone: Sequence[int] = ()
    told: str = "committed"
    error: str = ""
    seconds: float = 0.0
    stood: int | None = None


@dataclass
class Racer:
    """One writer. ``run`` does a statement in its engine, with its tag; ``told`` says of an error what it means. After
    each it rests for ``pause`` seconds, so that quick writers leave room for slow ones.
    """

    name: str
    number: int
    run: Callable[[Done], None]
    told: Callable[[Exception], str]
    verbs: Sequence[str] = VERBS
    pause: float = 0.0
    own: list[int] = field(default_factory=list)
    look: Callable[[str], int | None] = lambda tag: None

    def race(self, seconds: float, journal: Path) -> None:
        """Write until the time is over; each statement stands in the journal before the next one begins."""
        dice, ends, count = random.Random(self.number), time.monotonic() + seconds, 0
        with journal.open("a", encoding="utf-8") as lines:
            while time.monotonic() < ends:
                count += 1
                done = self._next(dice, count)
                if done is not None:
                    lines.write(json.dumps(asdict(self._tried(done))) + "\n")
                    lines.flush()
                    time.sleep(self.pause)

    def _tried(self, done: Done) -> Done:
        began = time.monotonic()
        try:
            self.run(done)
        except Exception as error:  # what it means is for the engine to say, and for the test to judge
            done.told, done.error = self.told(error), f"{type(error).__name__}: {error}"[:2000]
        done.seconds = time.monotonic() - began
        if done.told == "committed":
            done.stood = self.look(done.tag) if done.verb in WITH_A_COMMIT else None
            self.own = [each for each in [*self.own, *done.new] if each not in done.gone]
        return done

    def _next(self, dice: random.Random, count: int) -> Done | None:
        verb, tag = dice.choice(self.verbs), f"{self.name}-{count}"
        fresh = SHARED + self.number * 1_000_000 + count * 10
        if verb == "append":
            return Done(tag, verb, new=[fresh, fresh + 1, fresh + 2])
        if verb == "update":
            return Done(tag, verb, plus=[dice.randrange(SHARED)])
        if verb == "merge":
            return Done(tag, verb, plus=sorted(dice.sample(range(SHARED), 2)), new=[fresh])
        if verb == "delete":
            return Done(tag, verb, gone=[dice.choice(self.own)]) if self.own else None
        return Done(tag, verb)


def statement(done: Done, table: str) -> str:
    """It in SQL."""
    if done.verb == "append":
        return f"INSERT INTO {table} VALUES " + ", ".join(f"({each}, 0)" for each in done.new)
    if done.verb == "update":
        return f"UPDATE {table} SET x = x + 1 WHERE id = {done.plus[0]}"
    if done.verb == "delete":
        return f"DELETE FROM {table} WHERE id = {done.gone[0]}"
    if done.verb == "merge":
        source = ", ".join(f"({each})" for each in (*done.plus, *done.new))
        return (
            f"MERGE INTO {table} AS t USING (SELECT * FROM VALUES {source} AS v(id)) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET x = t.x + 1 WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 0)"
        )
    return f"OPTIMIZE {table}" if done.verb == "optimize" else f"VACUUM {table}"


def in_sql(sql: Callable[[str], Any], path: str) -> Callable[[Done], None]:
    """How a session of Spark runs a statement; the tag is a setting of the session."""

    def run(done: Done) -> None:
        sql(f"SET {TAG}={done.tag}")
        sql(statement(done, f"delta.`{path}`"))

    return run


def seen_in(table: str) -> Callable[[str], int | None]:
    """Looks for a commit by its tag, among the newest in a log on this machine's disk."""
    log = Path(table, "_delta_log")

    def look(tag: str) -> int | None:
        for commit in sorted(log.glob(f"{'[0-9]' * 20}.json"))[:-100:-1]:
            if f'"userMetadata":"{tag}"' in commit.read_text(encoding="utf-8"):
                return int(commit.stem)
        return None

    return look


# -- what must stand ---------------------------------------------------------------------------------------------------


def journals(folder: Path) -> list[Done]:
    """What all writers were told."""
    texts = [each.read_text(encoding="utf-8") for each in sorted(folder.glob("*.jsonl"))]
    return [Done(**json.loads(line)) for text in texts for line in text.splitlines()]


def faults(told: Iterable[Done], table: Path, overwritten: Collection[str] = ()) -> list[str]:
    """What is wrong with a table, a copy of whose files is in a folder: nothing, if all is well.

    Args:
        overwritten: tags of commits that stood in the log until another file took their place.
    """
    done = list(told)
    stands = Counter(tags(table))
    wrong = [f"{each.tag} failed: {each.error}" for each in done if each.told == "failed"]
    for each in done:
        times = stands[each.tag] + (each.tag in overwritten)
        if each.told == "committed" and each.verb in WITH_A_COMMIT and times != 1:
            wrong.append(f"{each.tag} ({each.verb}) was acknowledged, and stands {times} times in the log")
        if each.told == "refused" and times:
            wrong.append(f"{each.tag} ({each.verb}) was refused, and stands {times} times in the log")
        if times > 1 and each.verb in WITH_A_COMMIT:
            wrong.append(f"{each.tag} stands twice")
    if not overwritten:
        wrong += _differences(expected([each for each in done if stands[each.tag]]), plain_rows(table))
    return wrong


def tags(table: Path) -> list[str]:
    """The tag of each commit in the log, read as plain JSON."""
    return [str(info.get("userMetadata")) for info in commit_infos(table)]


def commit_infos(table: Path) -> list[Mapping[str, Any]]:
    """What each commit says of itself."""
    found = []
    for commit in sorted((table / "_delta_log").glob(f"{'[0-9]' * 20}.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line.strip()]
        found.append(next((each["commitInfo"] for each in actions if "commitInfo" in each), {}))
    return found


def expected(done: Sequence[Done]) -> dict[int, int]:
    """``x`` by id, after all of these in any order: additions commute, and each own id has one writer."""
    gone = {row for each in done for row in each.gone}
    plus = Counter(row for each in done for row in each.plus)
    rows = [*range(SHARED), *(row for each in done for row in each.new)]
    return {row: plus[row] for row in rows if row not in gone}


def _differences(wanted: Mapping[int, int], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = {row["id"]: row["x"] for row in rows}
    wrong = [] if len(found) == len(rows) else [f"{len(rows) - len(found)} rows are there twice"]
    for row in sorted({*wanted, *found}):
        if wanted.get(row) != found.get(row):
            wrong.append(f"row {row} has x = {found.get(row)}, and should have {wanted.get(row)}")
    return wrong


def summary(told: Iterable[Done]) -> str:
    """How many statements of each verb ended how, by writer."""
    counts = Counter((each.tag.rpartition("-")[0], each.verb, each.told) for each in told)
    return "\n".join(f"{' '.join(key)}: {times}" for key, times in sorted(counts.items()))
