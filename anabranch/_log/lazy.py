"""A property that is computed once, without a lock.

Before Python 3.12, `functools.cached_property` holds one lock for all instances of a class while it computes: a slow
read of one table's files would block every other table of the process. Here two threads at once may both compute; the
inputs never change, so both get the same, and the first result stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 (a decorator)
    """Compute on first use and keep in the instance's own ``__dict__``.

    Example:
        >>> class Snapshot:
        ...     @lazy
        ...     def files(self): ...
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: Any) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: Any) -> T: ...

    def __get__(self, instance: object | None, owner: Any) -> lazy[T] | T:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))
