"""What is raised where rows cannot be read, computed or written without Spark just as Spark would.

It imports nothing of ours, since it travels to executors by value.
"""

from collections.abc import Callable


class Unsupported(Exception):
    """Only Spark does this, for the reason that is said."""


def why_unsupported(check: Callable[[], object]) -> str | None:
    """Why only Spark does what a check looks at; None where the check finds nothing."""
    try:
        check()
    except Unsupported as error:
        return str(error)
    return None
