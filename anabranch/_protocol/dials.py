"""Dials: the isolation level and the conflict resolution by which one transaction is judged.

Pure. Knows the table's properties, and what a session or a command asks for besides. Guarantee: nobody is judged at a
weaker level than the table's; a conflict resolution may be chosen freely, since each of them is serializable.

Source: docs/concepts/isolation.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch._protocol.properties import (
    CONFLICT_RESOLUTION,
    HONOURED,
    ISOLATION_LEVEL,
    SERIALIZABLE,
    Properties,
)
from anabranch.errors import InvalidOption

LEVEL = "anabranch.isolationLevel"
"""The name of the level among settings of a session and options of a write; the table's property has another one."""
RESOLUTION = CONFLICT_RESOLUTION
_PROPERTIES = {LEVEL: ISOLATION_LEVEL, RESOLUTION: RESOLUTION}
Refusal = Callable[[str, Any, str], Exception]
"""Makes an error of a dial's name, its value, and the reason why it is refused."""


@dataclass(frozen=True)
class Dials:
    """What is asked for; None: as the table says."""

    isolation_level: str | None = None
    conflict_resolution: str | None = None

    @classmethod
    def parse(cls, level: Any, resolution: Any, refusal: Refusal) -> Dials:
        """The dials with these values. Raises the refusal of a value that does not exist."""
        return cls(_parse(LEVEL, level, refusal), _parse(RESOLUTION, resolution, refusal))

    def over(self, others: Dials) -> Dials:
        """These dials, and others where these leave it to them."""
        return Dials(
            self.isolation_level or others.isolation_level, self.conflict_resolution or others.conflict_resolution
        )


NO_DIALS = Dials()


def strengthen(properties: Properties, asked: Dials, table: str) -> Properties:
    """The properties by which a transaction on a table is judged: the table's, with the dials that are asked for.

    Raises:
        InvalidOption: the table's level is stronger than the one asked for.

    Example:
        >>> strengthen(Properties({}), Dials("Serializable"), "t").isolation_level
        'Serializable'
    """
    if asked == NO_DIALS:
        return properties
    level = asked.isolation_level
    if level not in (None, SERIALIZABLE) and properties.isolation_level == SERIALIZABLE:
        reason = (
            f"the table at {table} has {ISOLATION_LEVEL} = {SERIALIZABLE}, which sessions and commands may only "
            f"strengthen. Leave {LEVEL} out, or set it to {SERIALIZABLE}."
        )
        raise InvalidOption(option=LEVEL, value=level, reason=reason)
    chosen = {ISOLATION_LEVEL: level, RESOLUTION: asked.conflict_resolution}
    overrides = {name: value for name, value in chosen.items() if value is not None}
    return Properties({**properties.configuration, **overrides})


def _parse(name: str, value: Any, refusal: Refusal) -> str | None:
    if value is None:
        return None
    try:
        return str(HONOURED[_PROPERTIES[name]][0](value if isinstance(value, str) else repr(value)))
    except ValueError as error:
        raise refusal(name, value, f"{error}.") from None
