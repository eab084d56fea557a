"""No test waits for the disk: no power fails during a test, and waiting was a good part of the suite's time.

`os.fsync` becomes `os.fstat`, so a bad descriptor is an error still. What is made durable, and when, is asked in
tests/storage/test_local_faults.py, which puts functions of its own in that place.
"""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before the first test."""
    os.fsync = os.fstat  # type: ignore[assignment]
