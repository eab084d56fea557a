"""Names in the ``_delta_log`` folder (PROTOCOL.md, section "File Types"). Pure."""

from __future__ import annotations

import re

FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"

_COMMIT = re.compile(rf"^{FOLDER}/(\d{{20}})\.json$")
_CLASSIC = re.compile(rf"^{FOLDER}/(\d{{20}})\.checkpoint\.parquet$")
_OTHER_CHECKPOINT = re.compile(
    rf"^{FOLDER}/(\d{{20}})\.checkpoint\.(?:(\d{{10}})\.(\d{{10}})|[0-9a-f-]{{36}})\.(?:parquet|json)$"
)


def commit_name(version: int) -> str:
    """The commit file of a version."""
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The classic checkpoint file of a version."""
    return f"{FOLDER}/{version:020d}.checkpoint.parquet"


def first_name(version: int) -> str:
    """A name at or before every file of a version, to list from."""
    return f"{FOLDER}/{version:020d}"


def commit_version(name: str) -> int | None:
    """The version of a commit file's name, else None."""
    match = _COMMIT.match(name)
    return int(match[1]) if match else None


def checkpoint_version(name: str) -> int | None:
    """The version of a classic checkpoint's name, else None."""
    match = _CLASSIC.match(name)
    return int(match[1]) if match else None


def other_checkpoint(name: str) -> tuple[int, str] | None:
    """Version and kind of a checkpoint that is not classic: multi-part, or V2 under a UUID."""
    match = _OTHER_CHECKPOINT.match(name)
    if not match:
        return None
    return int(match[1]), "multi-part checkpoint" if match[2] else "v2Checkpoint"
