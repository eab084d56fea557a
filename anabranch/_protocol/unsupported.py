"""The error for rows that only Spark can read, compute or write exactly as Spark does.

It imports nothing of ours, since it travels to executors by value.
"""

from collections.abc import Callable


class Unsupported(Exception):
    """Only Spark does this; the message has the reason."""


def why_unsupported(check: Callable[[], object]) -> str | None:
    """The reason that a check gives why only Spark can do this; None if the check passes."""
    try:
        check()
    except Unsupported as error:
        return str(error)
    return None
