"""What a log says, as texts that may be shown: of bounded length, and without credentials.

Pure. A log may come from a stranger: any value may be of any type, of any length, and hold anything. Guarantee: a text
from here holds no credential of a URL, no value under a key with the name of a secret, and no character that cannot be
seen and changes how others are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anabranch.errors.secrets import is_secret, without_secrets
from anabranch.errors.visible import visible

LONGEST = 1_000
_DEEPEST = 20
_MOST_PAIRS = 60
_MOST_VERSIONS = 1_000
_HIDDEN = "***"


def text_of(value: Any, longest: int = LONGEST) -> str | None:
    """A value as text, other values than texts as JSON; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        return _cut(_json(_mask(value)), longest)
    return _cut(without_secrets(_cut(_mask_json(value), 4 * longest)), longest)


def texts_of(value: Any) -> dict[str, str]:
    """An object's values as texts by key; without those that are null, and none where it is no object."""
    if not isinstance(value, Mapping):
        return {}
    pairs = [(str(key), each) for key, each in value.items() if each is not None][:_MOST_PAIRS]
    return {_cut(key, 100): _HIDDEN if is_secret(key) else text_of(each) or "" for key, each in pairs}


def whole_of(value: Any) -> int | None:
    """A whole number of 64 bits, also as text, else None."""
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return value if is_whole else None


def flag_of(value: Any) -> bool | None:
    """A truth value, also as text, else None."""
    known = {"true": True, "false": False}
    return known.get(value) if isinstance(value, str) else value if isinstance(value, bool) else None


def versions_of(value: Any) -> tuple[int, ...] | None:
    """Versions separated by commas, the first of very many; None where it is no such text."""
    if not isinstance(value, str):
        return None
    found = [whole_of(each) for each in value.split(",", _MOST_VERSIONS)[:_MOST_VERSIONS] if each]
    return None if None in found else tuple(each for each in found if each is not None)


def _mask_json(text: str) -> str:
    """The same text; of one that is a JSON object or list, without values under names of secrets."""
    if not text.startswith(("{", "[")) or len(text) > 100_000:
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    masked = _mask(found)
    return text if masked == found else _json(masked)


def _mask(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {key: _HIDDEN if is_secret(str(key)) else _mask(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_mask(each, depth + 1) for each in value]
    return without_secrets(value) if isinstance(value, str) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, longest: int) -> str:
    """The text up to a length, with control characters and marks of direction spelled out; a lone surrogate, which
    nothing can write, becomes a question mark.
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return visible(text.encode(errors="replace").decode())
