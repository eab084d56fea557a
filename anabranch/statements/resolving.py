"""Resolving: which names of a statement are Delta tables, and where those lie."""

from __future__ import annotations

from typing import Protocol

from anabranch.commands.opening import Location

_FORMATS = frozenset({"delta", "anabranch"})


class Resolver(Protocol):
    """What knows names. Whoever has more names than paths brings another one."""

    def may_matter(self, text: str) -> bool:
        """Whether a statement may name a table that this knows, by a look at its text that costs next to nothing."""
        ...

    def location(self, name: tuple[str, ...]) -> Location | None:
        """Where the Delta table of this name lies; None where the name means something else, or nothing."""
        ...


class Paths:
    """Tables that are named by their path: ``delta.`/data/flights` `` and ``anabranch.`s3://bucket/flights` ``.

    A path is absolute, or a URL: a schema of Spark's may be called delta, too.
    """

    def may_matter(self, text: str) -> bool:
        """Nothing beyond what a path itself says."""
        return False

    def location(self, name: tuple[str, ...]) -> Location | None:
        """The path, where the name is one."""
        is_path = len(name) == 2 and name[0].lower() in _FORMATS and (name[1].startswith("/") or ":/" in name[1])
        return name[1] if is_path else None
