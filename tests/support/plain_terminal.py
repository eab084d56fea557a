"""What the command line prints is as wide as it chooses: pytest's workers inherit a width of a terminal's."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before the first test."""
    os.environ.pop("COLUMNS", None)
