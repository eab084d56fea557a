"""Finds the whole checkpoints in a listing.

Knows names (PROTOCOL.md, "Checkpoint Naming Scheme"), not what the files hold. Pure. Guarantee: a multi-part checkpoint
with a missing part does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from anabranch._log.file_names import checkpoint_file, part_name
from anabranch._log.last_checkpoint import Hint
from anabranch._storage.contract import Entry


@dataclass(frozen=True)
class CheckpointFiles:
    """The files of one whole checkpoint of ``version``: one file, or all parts in order.

    ``hint`` is the content of ``_last_checkpoint`` if that names this checkpoint.
    """

    version: int
    files: tuple[Entry, ...]
    hint: Hint | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The name of its (first) file, which identifies it among the checkpoints of its version."""
        return self.files[0].name


def checkpoints_in(listing: Iterable[Entry], but: Collection[str] = ()) -> list[CheckpointFiles]:
    """The whole checkpoints of a listing, oldest first, without those named in ``but``, which proved broken. The best
    one of a version is last: one classic file, then a file under a UUID, then parts, which two writers may have mixed.
    """
    groups: dict[tuple[int, int, int, str], list[Entry]] = {}
    for entry in listing:
        parsed = checkpoint_file(entry.name)
        if parsed is not None:
            rank = 0 if parsed.parts > 1 else 1 if parsed.id else 2
            groups.setdefault((parsed.version, rank, parsed.parts, parsed.id or ""), []).append(entry)
    whole = [
        CheckpointFiles(version, tuple(sorted(entries)))
        for (version, _, parts, _), entries in sorted(groups.items())
        if len(entries) == parts
    ]
    return [checkpoint for checkpoint in whole if checkpoint.name not in but]


def missing_part(listing: Iterable[Entry], first: int, last: int) -> str | None:
    """A missing part of a multi-part checkpoint of one of these versions, if there is one."""
    parts_by_checkpoint: dict[tuple[int, int], set[int]] = {}
    for entry in listing:
        parsed = checkpoint_file(entry.name)
        if parsed is not None and parsed.parts > 1 and first <= parsed.version <= last:
            parts_by_checkpoint.setdefault((parsed.version, parsed.parts), set()).add(parsed.part)
    for (version, parts), present in sorted(parts_by_checkpoint.items()):
        for part in range(1, min(parts, len(present) + 1) + 1):
            if part not in present:
                return part_name(version, part, parts)
    return None
