"""Overrides a setting of a session within a block, and restores it afterwards.

Guarantee: outside such blocks a session has the user's value, also if several threads override one setting, and if a
block fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from anabranch._spark.sessions.known_sessions import PerSession
from anabranch.errors.process_state import hold


@dataclass
class _Override:
    before: str
    blocks: int = 0


_held: PerSession[dict[str, _Override]] = hold("held settings", "they go when a block ends")(PerSession())


@contextmanager
def override_setting(spark: SparkSession, setting: str, value: str) -> Iterator[None]:
    """Give the setting this value within the block; of concurrent blocks the latest value applies."""
    with _held.lock:
        overrides = _held.setdefault(spark, {})
        override = overrides.get(setting) or _Override(str(spark.conf.get(setting)))
        spark.conf.set(setting, value)
        override.blocks += 1
        overrides[setting] = override
    try:
        yield
    finally:
        _release(spark, setting)


def _release(spark: SparkSession, setting: str) -> None:
    """Restore the setting if this is the last of its concurrent blocks."""
    with _held.lock:
        override = _held[spark][setting]
        override.blocks -= 1
        if override.blocks == 0:
            del _held[spark][setting]
            spark.conf.set(setting, override.before)
