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
    """The whole checkpoints of a listing, oldest first, but those named in ``but``, which were found to be broken. Of
    one version the best is last: one classic file, then a file under a UUID, then parts, which two writers may have
    mixed.
    """
    groups: dict[tuple[int, int, int, str], list[Entry]] = {}
    for entry in listing:
        said = checkpoint_file(entry.name)
        if said is not None:
            rank = 0 if said.parts > 1 else 1 if said.id else 2
            groups.setdefault((said.version, rank, said.parts, said.id or ""), []).append(entry)
    whole = [
        CheckpointFiles(version, tuple(sorted(entries)))
        for (version, _, parts, _), entries in sorted(groups.items())
        if len(entries) == parts
    ]
    return [found for found in whole if found.name not in but]


def missing_part(listing: Iterable[Entry], first: int, last: int) -> str | None:
    """A missing part of a multi-part checkpoint of one of these versions, if there is one."""
    seen: dict[tuple[int, int], set[int]] = {}
    for entry in listing:
        said = checkpoint_file(entry.name)
        if said is not None and said.parts > 1 and first <= said.version <= last:
            seen.setdefault((said.version, said.parts), set()).add(said.part)
    for (version, parts), found in sorted(seen.items()):
        for part in range(1, min(parts, len(found) + 1) + 1):
            if part not in found:
                return part_name(version, part, parts)
    return None
