"""Values of a log as texts that are safe to show: of bounded length and without credentials.

Pure. A log may come from a stranger: a value may have any type, length and content. Guarantee: a text from here holds
no credential of a URL, no value under a key with the name of a secret, and no invisible character that changes how
others are shown.
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
    """A value as text; values of other types as JSON; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        return _cut(_json(_mask(value)), longest)
    return _cut(without_secrets(_cut(_mask_json(value), 4 * longest)), longest)


def texts_of(value: Any) -> dict[str, str]:
    """The values of an object as texts, by key, without nulls; empty if ``value`` is not an object."""
    if not isinstance(value, Mapping):
        return {}
    pairs = [(str(key), text) for key, text in value.items() if text is not None][:_MOST_PAIRS]
    return {_cut(key, 100): _HIDDEN if is_secret(key) else text_of(text) or "" for key, text in pairs}


def integer_of(value: Any) -> int | None:
    """A whole number of 64 bits, given as a number or as text; else None."""
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return value if is_whole else None


def boolean_of(value: Any) -> bool | None:
    """A boolean, given as one or as text; else None."""
    flags = {"true": True, "false": False}
    return flags.get(value) if isinstance(value, str) else value if isinstance(value, bool) else None


def versions_of(value: Any) -> tuple[int, ...] | None:
    """Versions separated by commas, at most `_MOST_VERSIONS`; None if ``value`` is not such a text."""
    if not isinstance(value, str):
        return None
    versions = [integer_of(part) for part in value.split(",", _MOST_VERSIONS)[:_MOST_VERSIONS] if part]
    return None if None in versions else tuple(version for version in versions if version is not None)


def _mask_json(text: str) -> str:
    """The text; if it is a JSON object or list, with the values under names of secrets hidden."""
    if not text.startswith(("{", "[")) or len(text) > 100_000:
        return text
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    masked = _mask(parsed)
    return text if masked == parsed else _json(masked)


def _mask(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {key: _HIDDEN if is_secret(str(key)) else _mask(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask(item, depth + 1) for item in value]
    return without_secrets(value) if isinstance(value, str) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, longest: int) -> str:
    """The text cut to a length, with control characters and direction marks spelled out; a lone surrogate, which cannot
    be encoded, becomes a question mark.
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return visible(text.encode(errors="replace").decode())
