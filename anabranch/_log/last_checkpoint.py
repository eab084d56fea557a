"""The hint ``_last_checkpoint``, which saves readers a long listing.

Knows PROTOCOL.md, sections "Last Checkpoint File" and "JSON checksum". Guarantee: a hint that is missing, broken, or
inconsistent with its own checksum gives None; its users check that the checkpoint exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from anabranch._log import size_limits
from anabranch._log.file_names import LAST_CHECKPOINT
from anabranch._storage.contract import Store
from anabranch.errors import NotFound


class _Number(str):
    """A number with its original spelling, which is its canonical form."""

    __slots__ = ()


@dataclass(frozen=True)
class Hint:
    """The content of the hint for the checkpoint of ``version``: its numbers of ``actions`` and ``adds``, None where
    absent; ``sealed`` if it has a correct checksum.
    """

    version: int
    actions: int | None = None
    adds: int | None = None
    sealed: bool = False


def read_hint(store: Store) -> Hint | None:
    """The hint, or None where it cannot be trusted."""
    try:
        text = size_limits.hint(store, LAST_CHECKPOINT)
        hint = json.loads(
            text, object_pairs_hook=_unique_members, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
        if "checksum" in hint and hint["checksum"] != _digest(hint):
            return None
        actions, adds = _count(hint.get("size")), _count(hint.get("numOfAddFiles"))
        return Hint(int(hint["version"]), actions, adds, "checksum" in hint)
    except (NotFound, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError):
        return None


def hint_bytes(fields: Mapping[str, Any]) -> bytes:
    """A hint of these fields, with its checksum."""
    return json.dumps({**fields, "checksum": checksum(fields)}, separators=(",", ":")).encode()


def checksum(hint: Mapping[str, Any]) -> str:
    """The MD5 digest of a hint's canonical form, without its own ``checksum``.

    Example:
        >>> checksum({"version": 7, "size": 3}) == checksum({"size": 3, "version": 7, "checksum": "?"})
        True
    """
    plain = json.dumps({name: value for name, value in hint.items() if name != "checksum"})
    return _digest(json.loads(plain, parse_int=_Number, parse_float=_Number, parse_constant=_Number))


def canonical(hint: Mapping[str, Any]) -> str:
    """The canonical form: ``path=value`` pairs in the order of their paths, separated by commas."""
    rest = {name: value for name, value in hint.items() if name != "checksum"}
    return ",".join(f"{path}={value}" for path, value in sorted(_leaves(rest, ()), key=lambda leaf: leaf[0].encode()))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, _Number) and value.isdigit() else None


def _digest(hint: Mapping[str, Any]) -> str:
    return hashlib.md5(canonical(hint).encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, (*path, _text(name)))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _leaves(item, (*path, str(i)))
    else:
        is_plain = isinstance(value, str) and not isinstance(value, _Number)
        yield (
            "+".join(path),
            _text(value) if is_plain else str(value) if isinstance(value, _Number) else json.dumps(value),
        )


def _text(value: str) -> str:
    return f'"{quote(value, safe="-._~")}"'


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands there twice")
    return members
