"""How Hypothesis draws in this suite: the same examples in every run, judged by what they show and never by time.

A plugin of pytest's, so that it holds before the first test is imported. A test's examples follow from its own source
and from how many it takes: they are the same alone, beside others, in each process and on a busy machine. So a test may
say what its examples must have come to.

Where ``ANABRANCH_EXAMPLES`` says how many are wanted, as in `make lab`, they are new ones each time, and Hypothesis
keeps those that fail.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

CAMPAIGN = os.environ.get("ANABRANCH_EXAMPLES", "") not in ("", "0")
"""Whether somebody asked for new examples."""

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
"""What Hypothesis is not to complain of. A test that lets more pass names these, too."""

settings.register_profile(
    "the same each time",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=SLOW,
)
settings.register_profile("campaign", deadline=None, print_blob=True, suppress_health_check=SLOW)


def pytest_configure(config: pytest.Config) -> None:
    """Let a test that does not say how many examples it takes take few of them in a short tier."""
    if not CAMPAIGN and config.getoption("--tier") != "all":
        settings.register_profile("few, the same each time", settings(), max_examples=20)
        settings.load_profile("few, the same each time")


def wanted(usual: int) -> int:
    """How many examples a test takes that may be asked for more: as many as the campaign says, or else so many."""
    return int(os.environ["ANABRANCH_EXAMPLES"]) if CAMPAIGN else usual


if CAMPAIGN:
    settings.load_profile("campaign")
else:
    settings.load_profile("the same each time")
    # Hypothesis also draws the numbers and texts that stand in the code of whatever local modules are loaded, so the
    # same seed would give other examples beside other tests.
    providers.is_local_module_file = lambda path: False  # type: ignore[attr-defined]
