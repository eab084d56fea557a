"""Journals: what a writer process wrote down, and where it was when it died.

Knows the lines that `laboratory.writers` writes. A line may be the last of a killed process, but never a part of one:
each is one write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from laboratory.blocks import Block
from laboratory.statements import Append, Statement
from laboratory.statements import Told as Changed
from laboratory.writers import transaction_for

STAGES = ("read", "write", "judge", "put", "checkpoint", "finish")
"""Where a transaction can be: before its snapshot is pinned; finding rows and writing files; judging winners and
writing vectors; putting the commit; writing a checkpoint; after the commit."""

IDLE = "idle"


@dataclass(frozen=True)
class Told:
    """What a transaction was told: ``ack``, ``nothing``, ``refused`` or ``broken``, and the rest of that line."""

    word: str
    version: int | None = None
    changed: Changed = None
    text: str = ""


@dataclass(frozen=True)
class WriterStory:
    """One life.

    Attributes:
        begun: how many transactions.
        told: by their numbers; one that is missing here was under way at the end.
        moment: the last one.
        stage: of `STAGES`, or `IDLE`.
    """

    life: int
    begun: int
    told: Mapping[int, Told]
    moment: str
    stage: str
    warnings: Sequence[str] = field(default=())

    @property
    def open(self) -> int | None:
        """The transaction that was under way."""
        return self.begun if self.begun and self.begun not in self.told else None


def read_journal(life: int, journal: Path, interval: int) -> WriterStory:
    """Read a journal; a life that was killed before it wrote anything has an empty one."""
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    heads = [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]
    told = {int(rest.split()[0]): _told(word, rest) for word, rest in heads if word in _WORDS}
    begins = [i for i, (word, _) in enumerate(heads) if word == "begin"]
    begun = int(heads[begins[-1]][1]) if begins else 0
    moments = [rest for word, rest in heads[begins[-1] if begins else 0 :] if word == "at"]
    return WriterStory(
        life=life,
        begun=begun,
        told=told,
        moment=moments[-1] if moments else "",
        stage=_stage(moments, interval) if begun and begun not in told else IDLE,
        warnings=tuple(rest for word, rest in heads if word == "warned"),
    )


def verb(seed: int, writer: WriterStory, *, in_blocks: bool = False) -> str:
    """In which verb a life ended; a block is named by how many statements it has."""
    if writer.open is None:
        return "between transactions"
    statement: Statement = transaction_for(seed, writer.life, writer.open, in_blocks=in_blocks)
    if isinstance(statement, Block):
        return f"{len(statement.statements)} statements"
    return "bulk append" if isinstance(statement, Append) and statement.bulk else type(statement).__name__.lower()


_WORDS = ("ack", "nothing", "refused", "broken")
_PHASES = {"phase read": "write", "phase staged": "judge", "phase checked": "judge", "phase put": "put"}


def _told(word: str, rest: str) -> Told:
    fields = rest.split()
    if word != "ack":
        return Told(word, text=" ".join(fields[1:]))
    changed = json.loads(fields[2])
    return Told(word, int(fields[1]), tuple(changed) if isinstance(changed, list) else changed)


def _stage(moments: Sequence[str], interval: int) -> str:
    """Where these moments of one transaction lead."""
    stage, version = "read", 0
    for moment in moments:
        if moment.startswith("put_if_absent _delta_log/") and moment.endswith(".json"):
            version = int(moment[-25:-5])
        if moment == "phase committed":
            stage = "checkpoint" if version % interval == 0 else "finish"
        elif moment == "done put _delta_log/_last_checkpoint" or (moment.startswith("put job-") and "/_comm" in moment):
            stage = "finish"
        else:
            stage = _PHASES.get(moment, stage)
    return stage
