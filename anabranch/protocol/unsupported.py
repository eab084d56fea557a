"""What is raised where rows cannot be read, computed or written without Spark just as Spark would.

It imports nothing, since it travels to executors by value.
"""


class Unsupported(Exception):
    """Only Spark does this, for the reason that is said."""
