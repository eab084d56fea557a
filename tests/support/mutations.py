"""Damage: one change to the files of a log, drawn by a seed, and whether anybody could tell that it was made."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anabranch.log.file_names import commit_version

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Mutation:
    """What was done to which file (and to another, where two were swapped), and the files after it."""

    kind: str
    name: str
    files: Files
    other: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" and {self.other}" if self.other else "")


def mutate(files: Files, dice: random.Random) -> Mutation:
    """One mutation."""
    kind = dice.choice([*_OF_BYTES, *_OF_BYTES, *_OF_LINES, "delete", "swap"])
    name = dice.choice(sorted(files))
    changed = dict(files)
    if kind == "delete":
        del changed[name]
        return Mutation(kind, name, changed)
    if kind == "swap":
        other = dice.choice(sorted(files))
        changed[name], changed[other] = files[other], files[name]
        return Mutation(kind, name, changed, other)
    change = _OF_BYTES.get(kind) or _OF_LINES[kind]
    changed[name] = change(files[name], dice)
    return Mutation(kind, name, changed)


def undecidable(before: Files, mutation: Mutation) -> str | None:
    """Why nobody could tell this mutation from an honest log that says something else; None where one could."""
    changed = [name for name in before if before[name] != mutation.files.get(name)]
    newest = max(filter(None, map(commit_version, before)), default=0)
    if mutation.kind == "delete":
        return "without its newest commit a log is that of the version before" if _is_commit(changed, newest) else None
    for name in changed:
        data = mutation.files[name]
        if name.endswith(".json") and _is_json_lines(data):
            return "every line is still JSON, so this is another honest log"
        if name.endswith(".parquet") and _differs_in_footer(before[name], data):
            return "Parquet has no checksum over its footer"
    return None


def _is_commit(names: list[str], version: int) -> bool:
    return any(commit_version(name) == version for name in names)


def _is_json_lines(data: bytes) -> bool:
    try:
        found = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except ValueError:
        return False
    return bool(found) and all(isinstance(each, dict) for each in found)


def _differs_in_footer(before: bytes, after: bytes) -> bool:
    """Whether a byte of the footer changed."""
    if len(before) != len(after):
        return False
    footer = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    return before[footer:] != after[footer:]


def _flip(data: bytes, dice: random.Random) -> bytes:
    if not data:
        return b"\x00"
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]


def _overwrite(data: bytes, dice: random.Random) -> bytes:
    at, length = dice.randrange(len(data) + 1), dice.randrange(1, 40)
    return data[:at] + dice.randbytes(min(length, len(data) - at)) + data[at + length :]


def _insert(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.randbytes(dice.randrange(1, 9)) + data[at:]


def _cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _cut_out(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + data[at + dice.randrange(1, 60) :]


def _zeros(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + bytes(len(data) - at)


def _twice(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at = dice.randrange(len(lines))
    return b"".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def _shuffled(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    dice.shuffle(lines)
    return b"".join(lines)


_Change = Callable[[bytes, random.Random], bytes]
_OF_BYTES: Mapping[str, _Change] = {
    "flip": _flip,
    "overwrite": _overwrite,
    "insert": _insert,
    "cut": _cut,
    "cut out": _cut_out,
    "zeros": _zeros,
}
_OF_LINES: Mapping[str, _Change] = {
    "empty": lambda data, dice: b"",
    "line twice": _twice,
    "lines shuffled": _shuffled,
    "doubled": lambda data, dice: data + data,
}
