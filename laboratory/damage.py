"""Damage: one change to the files of a table, drawn by a seed, and whether anybody could tell that it was made.

Knows names in the log, JSON lines and where Parquet keeps its footer; nothing of how a log is read.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from anabranch._log.file_names import checksum_name, commit_version

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


def mutate(files: Files, dice: random.Random, among: Collection[str] | None = None) -> Mutation:
    """One mutation, of one of the files that are named ``among`` them; of any by default."""
    kind = dice.choice([*_OF_BYTES, *_OF_BYTES, *_OF_LINES, *_OF_FILES])
    names = sorted(files if among is None else among)
    name, changed = dice.choice(names), dict(files)
    if kind == "delete":
        del changed[name]
        return Mutation(kind, name, changed)
    if kind in _OF_FILES:
        others = (
            sorted(each for each in files if ending(each) == ending(name)) if dice.random() < 0.5 else sorted(files)
        )
        other = dice.choice(others)
        changed[name] = files[other]
        if kind == "replace":
            return Mutation(kind, name, changed, other)
        changed[other] = files[name]
        return Mutation(kind, name, changed, other)
    change = _OF_BYTES.get(kind) or _OF_LINES[kind]
    changed[name] = change(files[name], dice)
    return Mutation(kind, name, changed)


def ending(name: str) -> str:
    """What sort of file it is, as far as its name tells: ``checkpoint.parquet``, ``json``."""
    return name.rpartition("/")[2].split(".", 1)[-1][-20:]


def undecidable(before: Files, mutation: Mutation) -> str | None:
    """Why nobody could tell this mutation from an honest log that says something else; None where one could."""
    changed = [name for name in before if before[name] != mutation.files.get(name)]
    newest = max(filter(None, map(commit_version, before)), default=0)
    if mutation.kind == "delete":
        is_lost = _is_commit(changed, newest) and checksum_name(newest) not in mutation.files
        return "without its newest commit a log is that of the version before" if is_lost else None
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


def _lines_swapped(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _without_line(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def _tail_twice(data: bytes, dice: random.Random) -> bytes:
    return data + data[dice.randrange(len(data) + 1) :]


def _other_number(data: bytes, dice: random.Random) -> bytes:
    """A number in a text is another one; in Parquet some digits are."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return _flip(data, dice)
    match = dice.choice(found)
    number = int(match[0])
    near = [number + 1, number - 1, -number, number * 10]
    others = [*map(str, near), "0", "-1", str(2**31), str(2**63 - 1), str(2**63), str(10**30), "1e400", "0.5", "true"]
    return data[: match.start()] + dice.choice(others).encode() + data[match.end() :]


_NUMBER = re.compile(rb"(?<![\w.-])-?\d{1,19}(?![\w.])")
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
    "lines swapped": _lines_swapped,
    "line gone": _without_line,
    "tail twice": _tail_twice,
    "other number": _other_number,
}
_OF_FILES = ("delete", "swap", "replace")
