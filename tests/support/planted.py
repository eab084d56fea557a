"""A planted secret: a word that stands in credentials of tests, and nowhere else, so that whoever shows it is found.

The watch looks at every error that is made, every log record, every exception that ends a test and every commit that a
test leaves behind.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anabranch.errors import AnabranchError

SECRET = "pl4nted-s3cret"


class Watch(logging.Handler):
    """Finds the planted secret where it must not stand; ``seconds`` is what that took."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.seconds = 0.0

    def begin(self) -> None:
        """From now on look at log records and errors."""
        logging.getLogger("anabranch").addHandler(self)
        made = AnabranchError.__init__

        def watched(error: AnabranchError, **facts: Any) -> None:
            made(error, **facts)
            if SECRET in error.message or any(SECRET in str(fact) for fact in error.facts.values()):
                self.found.append(f"the error {type(error).__name__}")

        AnabranchError.__init__ = watched  # type: ignore[method-assign]

    def emit(self, record: logging.LogRecord) -> None:
        """Look at a log record."""
        if SECRET in record.getMessage() or (record.exc_info and SECRET in str(record.exc_info[1])):
            self.found.append(f"a log record of {record.name}")

    def look_at_error(self, error: BaseException | None) -> None:
        """Look at an exception and at all that it came from."""
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            if SECRET in str(error) and not isinstance(error, AssertionError):
                self.found.append(f"the exception {type(error).__name__}")
            error = error.__cause__ or error.__context__

    def look_at_files(self, folder: Path) -> None:
        """Look at the commits in all logs below a folder."""
        begun = time.perf_counter()
        for commit in _commits(folder):
            if SECRET.encode() in commit.read_bytes():
                self.found.append(f"the commit {commit.relative_to(folder)}")
        self.seconds += time.perf_counter() - begun

    def told(self) -> str:
        """What was found since the last time, or nothing."""
        said, self.found = ", ".join(self.found), []
        return said and f"a planted secret stands in {said}"


def _commits(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if os.path.basename(place) == "_delta_log":
            yield from (Path(place, name) for name in files if name.endswith(".json"))
            folders.clear()
