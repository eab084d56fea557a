"""What the laboratory's tests share: none of them leaves the log of the library as quiet as a campaign makes it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_again() -> Iterator[None]:
    """A campaign silences the library's log for its process; here other tests come behind."""
    logger = logging.getLogger("anabranch")
    level = logger.level
    yield
    logger.setLevel(level)
