"""Names of tables: a path, a URL, or a name of several parts.

Pure, so that callers with a path need no Spark.
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

Name: TypeAlias = tuple[str, ...]
OURS = frozenset({"delta", "anabranch"})
"""Our formats; in front of a path they make it a name."""


def parts_of(identifier: str) -> Name | None:
    """Parses a name, such as ``db.`a.b` ``, into its parts; None if it is not a name.

    Example:
        >>> parts_of("db.`a``b`")
        ('db', 'a`b')
    """
    parts, i = [], 0
    while True:
        part, i = _quoted_part(identifier, i) if identifier[i : i + 1] == "`" else _bare_part(identifier, i)
        if not part:
            return None
        parts.append(part)
        if i == len(identifier):
            return tuple(parts)
        if identifier[i] != ".":
            return None
        i += 1


def _bare_part(text: str, i: int) -> tuple[str, int]:
    end = i
    while end < len(text) and text[end] not in ".`":
        end += 1
    part = text[i:end].strip()
    return (part, end) if part and not any(char.isspace() for char in part) else ("", end)


def _quoted_part(text: str, i: int) -> tuple[str, int]:
    part, i = "", i + 1
    while i < len(text):
        if text[i] == "`" and text[i + 1 : i + 2] == "`":
            part, i = part + "`", i + 2
        elif text[i] == "`":
            return part, i + 1
        else:
            part, i = part + text[i], i + 1
    return "", i


def name_to_sql(name: Name) -> str:
    """A name as SQL text."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name)


def display_name(name: Name) -> str:
    """A name for people."""
    return ".".join(name)


def path_in(name: Name) -> str | None:
    """The path if a name is one: ``delta.`/data/flights` ``, perhaps behind ``spark_catalog``."""
    name = name[1:] if len(name) == 3 and name[0].lower() == "spark_catalog" else name
    is_path = len(name) == 2 and name[0].lower() in OURS and (name[1].startswith("/") or ":/" in name[1])
    return name[1] if is_path else None


def may_be_name(path_or_name: Any) -> bool:
    """Whether a table's path or name may be a name, which has no slash."""
    return isinstance(path_or_name, str) and "/" not in path_or_name


def is_path(target: str) -> bool:
    """Whether the target of a clone is a path or URL, and not a name."""
    return os.path.isabs(target) or target.startswith("file:") or ("/" in target and "`" not in target)
