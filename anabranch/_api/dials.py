"""Dials as arguments of a door: ``isolation_level`` and ``conflict_resolution``.

Knows how a door keeps them. Guarantee: whatever a method of the door commits is judged by them, a run again too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from anabranch._protocol.dials import LEVEL, RESOLUTION, Dials
from anabranch._protocol.session_settings import use_dials
from anabranch.errors import InvalidArgument

_ARGUMENTS = {LEVEL: "isolation_level", RESOLUTION: "conflict_resolution"}
_Door = TypeVar("_Door")


def dials_of(isolation_level: str | None, conflict_resolution: str | None) -> Dials:
    """The dials that a caller asks for. Raises InvalidArgument: one has an invalid value."""

    def refusal(name: str, value: Any, reason: str) -> InvalidArgument:
        return InvalidArgument(option=_ARGUMENTS[name], value=value, reason=reason)

    return Dials.parse(isolation_level, conflict_resolution, refusal)


def uses_dials(door: type[_Door]) -> type[_Door]:
    """Decorate a class so that its methods run under the dials of each object, ``_dials``."""
    for name, method in list(vars(door).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(door, name, _under_dials(method))
    return door


def _under_dials(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with use_dials(self._dials):
            return method(self, *args, **kwargs)

    return run
