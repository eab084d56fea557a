"""The golden tables, which other engines wrote, where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden"
GOLDEN = Path(os.environ.get("ANABRANCH_GOLDEN", _BESIDE))
DAT, KERNEL = GOLDEN / "dat", GOLDEN / "kernel"
MISSING = "the folder of golden tables is not here; name it in ANABRANCH_GOLDEN"


def kernel_table(name: str) -> Path:
    """The folder of one of the kernel's golden tables; the test is skipped where they are not here."""
    if not GOLDEN.is_dir():
        pytest.skip(MISSING)
    return KERNEL / name / "delta"
