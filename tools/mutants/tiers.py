"""The two tiers of tests, as the options that the Makefile hands to pytest. Where it changes, this changes."""

from __future__ import annotations

from collections.abc import Mapping

TEST, TEST_ALL = "make test", "make test-all"

TIERS: Mapping[str, tuple[str, ...]] = {TEST: ("--tier=test",), TEST_ALL: ("--tier=all",)}

KINDS: Mapping[str, tuple[str, ...]] = {"plain": ("-m", "not spark"), "spark": ("-m", "spark")}
"""Of each tier the tests without a JVM, and those with one."""

SPREAD = ("--dist", "loadfile", "--no-loadscope-reorder")
"""How pytest-xdist gives a tier's tests to several processes."""
