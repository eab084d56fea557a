"""Names in the ``_delta_log`` folder (PROTOCOL.md, section "File Types"). Pure."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
SIDECARS = f"{FOLDER}/_sidecars"

_COMMIT = re.compile(rf"^{FOLDER}/(\d{{20}})\.json$")
_CHECKPOINT = re.compile(
    rf"^{FOLDER}/(\d{{20}})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet|\.(?P<id>[0-9A-Fa-f-]{36})\.(?:parquet|json)|\.parquet)$"
)
_CHECKSUM = re.compile(rf"^{FOLDER}/(\d{{20}})\.crc$")
_COMPACTED = re.compile(rf"^{FOLDER}/(\d{{20}})\.(\d{{20}})\.compacted\.json$")


class CheckpointName(NamedTuple):
    """The parts of a checkpoint file's name: version, number of the ``part`` among ``parts``, and a UUID or None."""

    version: int
    part: int = 1
    parts: int = 1
    id: str | None = None


def commit_name(version: int) -> str:
    """The commit file of a version."""
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The classic checkpoint file of a version."""
    return f"{FOLDER}/{version:020d}.checkpoint.parquet"


def v2_checkpoint_name(version: int, id_: UUID) -> str:
    """A checkpoint file of a version under a UUID."""
    return f"{FOLDER}/{version:020d}.checkpoint.{id_}.parquet"


def part_name(version: int, part: int, parts: int) -> str:
    """One part of a multi-part checkpoint."""
    return f"{FOLDER}/{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def checksum_name(version: int) -> str:
    """The version checksum file of a version."""
    return f"{FOLDER}/{version:020d}.crc"


def first_name(version: int) -> str:
    """A name at or before every file of a version, to list from."""
    return f"{FOLDER}/{version:020d}"


def commit_version(name: str) -> int | None:
    """The version of a commit file's name, else None."""
    match = _COMMIT.match(name)
    return int(match[1]) if match else None


def checksum_version(name: str) -> int | None:
    """The version of a checksum file's name, else None."""
    match = _CHECKSUM.match(name)
    return int(match[1]) if match else None


def compacted_range(name: str) -> tuple[int, int] | None:
    """The first and last version of a log compaction file's name, else None."""
    match = _COMPACTED.match(name)
    return (int(match[1]), int(match[2])) if match else None


def checkpoint_file(name: str) -> CheckpointName | None:
    """The parts of a checkpoint file's name, of any kind, else None.

    Example:
        >>> checkpoint_file(part_name(7, 2, 3))
        CheckpointName(version=7, part=2, parts=3, id=None)
    """
    match = _CHECKPOINT.match(name)
    if match is None:
        return None
    version, part, parts = int(match[1]), int(match["part"] or 1), int(match["parts"] or 1)
    is_one = 1 <= part <= parts and (match["part"] is None or parts > 1)
    return CheckpointName(version, part, parts, match["id"]) if is_one else None


def checkpoint_version(name: str) -> int | None:
    """The version of a checkpoint file's name, of any kind, else None."""
    parsed = checkpoint_file(name)
    return parsed.version if parsed else None
