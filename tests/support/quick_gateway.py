"""PySpark asks the JVM once, and not each time, what a name of Java is.

For its answer the JVM looks through 300 JARs for a class of each package that the name may be in, which was an eighth
of all that the tests' JVMs did; for the name of a static method it copies all methods of the class.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before the first session; without PySpark there is nothing to remember."""
    try:
        from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView
    except ImportError:
        return
    for kind in (JVMView, JavaPackage, JavaClass):
        kind.__getattr__ = _remembering(kind.__getattr__, (JavaClass, JavaMember, JavaPackage))


def _remembering(ask: Any, lasting: tuple[type, ...]) -> Any:
    """The same answers; those that stay true for as long as the JVM runs are given again."""

    def answer(thing: Any, name: str) -> Any:
        known = vars(thing).setdefault("answers to tests", {})
        if name in known:
            return known[name]
        found = ask(thing, name)
        if isinstance(found, lasting):
            known[name] = found
        return found

    return answer
