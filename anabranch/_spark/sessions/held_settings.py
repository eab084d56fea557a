"""Held settings: a setting of a session has another value while a block runs, and then its own again.

Guarantee: what a session says outside such blocks is what its user said, also if several threads hold one setting, and
if a block fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from anabranch._spark.sessions.known_sessions import PerSession
from anabranch.errors.process_state import hold


@dataclass
class _Held:
    before: str
    blocks: int = 0


_held: PerSession[dict[str, _Held]] = hold("held settings", "they go when a block ends")(PerSession())


@contextmanager
def hold_setting(spark: SparkSession, setting: str, value: str) -> Iterator[None]:
    """The setting has this value for as long as the block lasts; of several values at a time the latest counts."""
    with _held.lock:
        known = _held.setdefault(spark, {})
        found = known.get(setting) or _Held(str(spark.conf.get(setting)))
        spark.conf.set(setting, value)
        found.blocks += 1
        known[setting] = found
    try:
        yield
    finally:
        _release(spark, setting)


def _release(spark: SparkSession, setting: str) -> None:
    """Only the last of several blocks puts the setting back."""
    with _held.lock:
        found = _held[spark][setting]
        found.blocks -= 1
        if found.blocks == 0:
            del _held[spark][setting]
            spark.conf.set(setting, found.before)
