"""Table properties: what each one means and which values it takes.

Knows the ``delta.*`` properties of Delta Lake that this version honours and the ``anabranch.*`` ones. Pure.
Guarantee: a property that would change what a writer must do, and that is not honoured here, is refused when it is
set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import InvalidProperty
from anabranch.protocol.in_commit import ENABLED, KEPT_BY_WRITERS
from anabranch.protocol.leaves import STATS_COLUMNS, column_list
from anabranch.protocol.mapping import BY_ID, BY_NAME, MODE, UNMAPPED
from anabranch.protocol.rules import CONSTRAINT_PREFIX, is_constraint

WRITE_SERIALIZABLE = "WriteSerializable"
SERIALIZABLE = "Serializable"
RESOLUTION_BYTES = "anabranch.resolutionBytes"
RESOLUTION_SECONDS = "anabranch.resolutionSeconds"
_DAY_MS = 86_400_000
_UNITS_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY_MS,
    "week": 7 * _DAY_MS,
}


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("it takes true or false")
    return text.strip().lower() == "true"


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("it takes a whole number from 1")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("it takes a whole number from 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < -1:
        raise ValueError("it takes a whole number from 0, or -1 for all columns")
    return value


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for value in values:
            if value.lower() == text.strip().lower():
                return value
        raise ValueError("it takes " + " or ".join(values))

    return parse


def interval_ms(text: str) -> int:
    """Milliseconds of an interval such as ``interval 30 days`` or ``interval 1 week 2 hours``.

    Raises:
        ValueError: not such an interval.
    """
    words = text.lower().split()
    words = words[1:] if words[:1] == ["interval"] else words
    numbers, units = words[::2], [word.removesuffix("s") for word in words[1::2]]
    numeric = all(re.fullmatch("[0-9]+", number) for number in numbers)
    if not words or len(numbers) != len(units) or not numeric or not set(units) <= _UNITS_MS.keys():
        raise ValueError("it takes an interval such as 'interval 30 days'")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in zip(numbers, units, strict=True))


def _conflict_resolution(text: str) -> str:
    value = _choice("file", "row", "redo")(text)
    if value == "redo":
        raise ValueError("redo is not built yet; it takes file or row")
    return value


_KNOWN: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "delta.isolationLevel": (_choice(WRITE_SERIALIZABLE, SERIALIZABLE), WRITE_SERIALIZABLE),
    "delta.enableDeletionVectors": (_boolean, "false"),
    "delta.appendOnly": (_boolean, "false"),
    "delta.enableTypeWidening": (_boolean, "false"),
    "delta.checkpointInterval": (_positive, "10"),
    "delta.checkpointPolicy": (_choice("classic", "v2"), "classic"),
    "delta.enableExpiredLogCleanup": (_boolean, "true"),
    "delta.logRetentionDuration": (interval_ms, "interval 30 days"),
    "delta.deletedFileRetentionDuration": (interval_ms, "interval 1 week"),
    "delta.dataSkippingNumIndexedCols": (_count, "32"),
    STATS_COLUMNS: (column_list, ""),
    ENABLED: (_boolean, "false"),
    "delta.checkpoint.writeStatsAsJson": (_boolean, "true"),
    MODE: (_choice(UNMAPPED, BY_NAME, BY_ID), UNMAPPED),
    "delta.checkpoint.writeStatsAsStruct": (_boolean, "false"),
    "anabranch.conflictResolution": (_conflict_resolution, "row"),
    RESOLUTION_BYTES: (_natural, str(64 << 30)),
    RESOLUTION_SECONDS: (_natural, "600"),
    "anabranch.rowsInErrors": (_boolean, "true"),
}


@dataclass(frozen=True)
class Properties:
    """A table's configuration, read with its defaults.

    Example:
        >>> Properties({"delta.checkpointInterval": "5"}).checkpoint_interval
        5

    Raises:
        InvalidProperty: when a value is asked for that another engine set to something unknown here.
    """

    configuration: Mapping[str, str]

    def __getitem__(self, key: str) -> Any:
        parse, default = _KNOWN[key]
        value = self.configuration.get(key, default)
        try:
            return parse(value)
        except ValueError as error:
            raise InvalidProperty(property=key, value=value, reason=f"{error}.") from None

    @property
    def isolation_level(self) -> str:
        """``WriteSerializable`` (default) or ``Serializable``."""
        return str(self["delta.isolationLevel"])

    @property
    def vectors(self) -> bool:
        """Whether DML marks rows instead of rewriting files."""
        return bool(self["delta.enableDeletionVectors"])

    @property
    def conflict_resolution(self) -> str:
        """``file`` or ``row``; without vectors, conflicts are per file whatever is set."""
        return str(self["anabranch.conflictResolution"]) if self.vectors else "file"

    @property
    def resolution_bytes(self) -> int:
        """How many bytes of winners' files one command may read to find its place behind them."""
        return int(self[RESOLUTION_BYTES])

    @property
    def resolution_seconds(self) -> int:
        """How long one command may look for its place behind its winners."""
        return int(self[RESOLUTION_SECONDS])

    @property
    def rows_in_errors(self) -> bool:
        """Whether messages may show what rows hold."""
        return bool(self["anabranch.rowsInErrors"])

    @property
    def checkpoint_interval(self) -> int:
        """A checkpoint is written every so many commits."""
        return int(self["delta.checkpointInterval"])

    @property
    def checkpoint_policy(self) -> str:
        """``classic`` or ``v2``."""
        return str(self["delta.checkpointPolicy"])

    @property
    def cleans_up_log(self) -> bool:
        """Whether log files older than the retention are removed."""
        return bool(self["delta.enableExpiredLogCleanup"])

    @property
    def log_retention_ms(self) -> int:
        """How long the log files of older versions are kept, in milliseconds."""
        return int(self["delta.logRetentionDuration"])

    @property
    def append_only(self) -> bool:
        """Whether rows may never be changed or removed."""
        return bool(self["delta.appendOnly"])

    @property
    def tombstone_retention_ms(self) -> int:
        """How long a checkpoint keeps tombstones, in milliseconds."""
        return int(self["delta.deletedFileRetentionDuration"])

    def indexed_columns(self) -> tuple[tuple[str, ...], ...] | int:
        """The columns that get statistics: paths, or how many of the first leaf columns (-1: all)."""
        if STATS_COLUMNS in self.configuration:  # as in delta-spark, the empty list means none
            return tuple(self[STATS_COLUMNS])
        return int(self["delta.dataSkippingNumIndexedCols"])


def validate(configuration: Mapping[str, str]) -> None:
    """Refuse properties that a user may not set here.

    Raises:
        InvalidProperty: an unknown ``delta.`` or ``anabranch.`` key, or a value that the key does not take.
    """
    for key, value in configuration.items():
        if not isinstance(value, str):
            raise InvalidProperty(property=key, value=value, reason="properties are text, such as 'true'.")
        if key in _KNOWN:
            Properties(configuration)[key]
        elif key in KEPT_BY_WRITERS:
            reason = f"no user sets it: each writer keeps it, where {ENABLED} is true."
            raise InvalidProperty(property=key, value=value, reason=reason)
        elif is_constraint(key):
            _check_constraint(key, value)
        elif key.lower().startswith(("delta.", "anabranch.")):
            meant = next((known for known in _KNOWN if known.lower() == key.lower()), None)
            said = f"it is spelled {meant}." if meant else "this version of Anabranch does not honour it."
            raise InvalidProperty(property=key, value=value, reason=said)


def _check_constraint(key: str, value: str) -> None:
    if not key.startswith(CONSTRAINT_PREFIX) or len(key) == len(CONSTRAINT_PREFIX) or key != key.lower():
        raise InvalidProperty(
            property=key, value=value, reason=f"it is spelled {CONSTRAINT_PREFIX}name, in lower case."
        )
    if not value.strip():
        raise InvalidProperty(property=key, value=value, reason="it takes a condition in SQL.")
