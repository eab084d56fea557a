"""What tests of stores share."""

from __future__ import annotations

import pytest


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before he asks again."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
