"""Table properties: the meaning of each property and the values it takes.

Knows every ``delta.*`` property of Delta Lake, both those in a table's metadata and protocol requests, and the
``anabranch.*`` ones. Pure. Guarantees: each property is honoured, or kept because it requires nothing of a writer, or
refused with the reason when it is set to anything but its default; so a property that would change what a writer must
do, and that is not honoured, never gets into a table this way. To add a property, add it to `HONOURED` if it is
honoured, else to `anabranch._protocol.inactive_properties.INACTIVE`. A property that enables a feature is also listed
with that feature (`anabranch._protocol.features.known`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from anabranch._protocol.compression import CODEC_PROPERTY, DEFAULT_CODEC, parse_codec
from anabranch._protocol.iceberg import ICEBERG_V1
from anabranch._protocol.in_commit_timestamps import ENABLED
from anabranch._protocol.inactive_properties import INACTIVE, InactiveProperty, Treatment
from anabranch._protocol.materialised_partitions import ENABLED as MATERIALISES
from anabranch._protocol.materialised_partitions import WRITTEN
from anabranch._protocol.property_values import (
    boolean,
    choice,
    count_or_all,
    interval_ms,
    interval_or_none,
    natural,
    positive,
    size_or_none,
)
from anabranch._protocol.rules.table_rules import (
    CONSTRAINT_PREFIX,
    OPTIMIZED_PROPERTY,
    PAGES_PROPERTY,
    is_constraint,
    parse_pages,
)
from anabranch._protocol.schema.column_mapping import BY_ID, BY_NAME, ICEBERG_V2, ICEBERG_V3, MODE, UNMAPPED
from anabranch._protocol.schema.keys import check_key, is_key
from anabranch._protocol.schema.leaves import STATS_COLUMNS, column_list
from anabranch.errors import InvalidProperty

WRITE_SERIALIZABLE = "WriteSerializable"
SERIALIZABLE = "Serializable"
ISOLATION_LEVEL = "delta.isolationLevel"
CONFLICT_RESOLUTION = "anabranch.conflictResolution"
RESOLUTION_BYTES = "anabranch.resolutionBytes"
RESOLUTION_SECONDS = "anabranch.resolutionSeconds"
REDO = "redo"
"""The value of `CONFLICT_RESOLUTION` by which refused commands run again."""
REDO_RUNS = "anabranch.redoRuns"
RECORDED_MOVES = "anabranch.recordedMoves"
FEATURE_PREFIX = "delta.feature."
VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
IGNORE_DEFAULTS = "delta.ignoreProtocolDefaults"
TOMBSTONES = "delta.deletedFileRetentionDuration"
LOG = "delta.logRetentionDuration"
COMMENT = "comment"
"""The property with a table's description."""
RESERVED: Mapping[str, str] = {
    "provider": "use USING",
    "location": "use LOCATION",
    "owner": "it is the user who creates the table",
    "external": "a table with a LOCATION is external",
    "is_managed_location": "it follows from LOCATION",
    "collation": "use DEFAULT COLLATION",
}
"""Properties that Spark reserves, and the clause to use instead."""


def _isolation(text: str) -> str:
    if text.strip().lower() == "snapshotisolation":
        raise ValueError("snapshot isolation allows write skew between two writers; it is not supported")
    return choice(WRITE_SERIALIZABLE, SERIALIZABLE)(text)


HONOURED: Mapping[str, tuple[Callable[[str], Any], str]] = {
    ISOLATION_LEVEL: (_isolation, WRITE_SERIALIZABLE),
    "delta.enableDeletionVectors": (boolean, "false"),
    "delta.appendOnly": (boolean, "false"),
    "delta.enableTypeWidening": (boolean, "false"),
    "delta.enableChangeDataFeed": (boolean, "false"),
    "delta.checkpointInterval": (positive, "10"),
    "delta.checkpointPolicy": (choice("classic", "v2"), "classic"),
    "delta.enableExpiredLogCleanup": (boolean, "true"),
    LOG: (interval_ms, "interval 30 days"),
    TOMBSTONES: (interval_ms, "interval 1 week"),
    "delta.dataSkippingNumIndexedCols": (count_or_all, "32"),
    STATS_COLUMNS: (column_list, ""),
    ENABLED: (boolean, "false"),
    "delta.enableRowTracking": (boolean, "false"),
    "delta.rowTrackingSuspended": (boolean, "false"),
    "delta.checkpoint.writeStatsAsJson": (boolean, "true"),
    MODE: (choice(UNMAPPED, BY_NAME, BY_ID), UNMAPPED),
    "delta.checkpoint.writeStatsAsStruct": (boolean, "false"),
    CODEC_PROPERTY: (parse_codec, DEFAULT_CODEC),
    PAGES_PROPERTY: (parse_pages, "1.0.0"),
    "delta.randomizeFilePrefixes": (boolean, "false"),
    "delta.randomPrefixLength": (positive, "2"),
    "delta.setTransactionRetentionDuration": (interval_or_none, ""),
    "delta.dropFeatureTruncateHistory.retentionDuration": (interval_ms, "interval 24 hours"),
    MATERIALISES: (boolean, "false"),
    WRITTEN: (boolean, "false"),
    ICEBERG_V1: (boolean, "false"),
    ICEBERG_V2: (boolean, "false"),
    ICEBERG_V3: (boolean, "false"),
    "delta.targetFileSize": (size_or_none, ""),
    OPTIMIZED_PROPERTY: (boolean, "false"),
    "delta.autoOptimize.autoCompact": (choice("true", "false", "auto", "legacy"), "false"),
    CONFLICT_RESOLUTION: (choice("file", "row", REDO), "row"),
    RESOLUTION_BYTES: (natural, str(64 << 30)),
    RESOLUTION_SECONDS: (natural, "600"),
    REDO_RUNS: (natural, "1000"),
    RECORDED_MOVES: (natural, str(100_000_000)),
    "anabranch.rowsInErrors": (boolean, "true"),
}


@dataclass(frozen=True)
class Properties:
    """A table's configuration with defaults.

    Example:
        >>> Properties({"delta.checkpointInterval": "5"}).checkpoint_interval
        5

    Raises:
        InvalidProperty: on access to an invalid value that another engine set.
    """

    configuration: Mapping[str, str]

    def __getitem__(self, key: str) -> Any:
        parse, default = HONOURED[key]
        value = self.configuration.get(key, default)
        try:
            return parse(value)
        except ValueError as error:
            raise InvalidProperty(property=key, value=value, reason=f"{error}.") from None

    @property
    def isolation_level(self) -> str:
        """``WriteSerializable`` (default) or ``Serializable``."""
        return str(self[ISOLATION_LEVEL])

    @property
    def vectors(self) -> bool:
        """Whether DML writes deletion vectors instead of rewriting files."""
        return bool(self["delta.enableDeletionVectors"])

    @property
    def conflict_resolution(self) -> str:
        """``file``, ``row`` or ``redo``; without vectors, ``row`` is ``file``."""
        value = str(self[CONFLICT_RESOLUTION])
        return value if self.vectors or value == REDO else "file"

    @property
    def redo_runs(self) -> int:
        """How often a refused command runs again at most, where conflicts are resolved by ``redo``."""
        return int(self[REDO_RUNS])

    @property
    def resolution_bytes(self) -> int:
        """The maximum number of bytes of winners' files that one command may read to resolve conflicts."""
        return int(self[RESOLUTION_BYTES])

    @property
    def resolution_seconds(self) -> int:
        """The maximum time in seconds in which one command resolves conflicts."""
        return int(self[RESOLUTION_SECONDS])

    @property
    def recorded_moves(self) -> int:
        """The maximum number of rows per partition whose moves are recorded row by row when their order changes."""
        return int(self[RECORDED_MOVES])

    @property
    def rows_in_errors(self) -> bool:
        """Whether messages may show values of rows."""
        return bool(self["anabranch.rowsInErrors"])

    @property
    def checkpoint_interval(self) -> int:
        """The number of commits between checkpoints."""
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
        return int(self[LOG])

    @property
    def append_only(self) -> bool:
        """Whether rows may never be changed or removed."""
        return bool(self["delta.appendOnly"])

    @property
    def tombstone_retention_ms(self) -> int:
        """How long a checkpoint keeps tombstones, in milliseconds."""
        return int(self[TOMBSTONES])

    @property
    def prefix_length(self) -> int:
        """The length of the random folder name for a small append's files; 0: folders by partition instead."""
        return int(self["delta.randomPrefixLength"]) if self["delta.randomizeFilePrefixes"] else 0

    @property
    def target_file_size(self) -> int | None:
        """The target size of files in bytes; None: by the size of the table."""
        size = self["delta.targetFileSize"]
        return None if size is None else int(size)

    @property
    def auto_compaction(self) -> str:
        """``false``, ``true``, ``legacy`` (the same) or ``auto``: whether writers compact small files."""
        return str(self["delta.autoOptimize.autoCompact"])

    @property
    def transaction_retention_ms(self) -> int | None:
        """How long application transactions are kept, in milliseconds; None: forever."""
        duration = self["delta.setTransactionRetentionDuration"]
        return None if duration is None else int(duration)

    def indexed_columns(self) -> tuple[tuple[str, ...], ...] | int:
        """The columns that get statistics: paths, or the number of leading leaf columns (-1: all)."""
        if STATS_COLUMNS in self.configuration:  # as in delta-spark, the empty list means none
            return tuple(self[STATS_COLUMNS])
        return int(self["delta.dataSkippingNumIndexedCols"])


def check_properties(configuration: Mapping[str, str]) -> None:
    """Raises InvalidProperty unless a user may set these properties: an unknown ``delta.`` or ``anabranch.`` key, an
    invalid value, or one that requires an unsupported feature. Protocol requests are excluded.
    """
    for key, value in configuration.items():
        if not isinstance(value, str):
            raise InvalidProperty(property=key, value=value, reason="properties are text, such as 'true'.")
        if key in HONOURED:
            Properties(configuration)[key]
        elif is_constraint(key):
            _check_constraint(key, value)
        elif is_key(key):
            check_key(key, value)
        elif key in _BY_KEY:
            _check_other(_BY_KEY[key], value)
        elif key.lower().startswith(("delta.", "anabranch.")):
            raise InvalidProperty(property=key, value=value, reason=_unknown(key))


_BY_KEY = {prop.key: prop for prop in INACTIVE}
_LOWERED = {key.lower(): key for key in (*HONOURED, *_BY_KEY, *VERSIONS, IGNORE_DEFAULTS)}


def canonical_key(key: str) -> str:
    """Delta Lake's spelling of a property's name; an unknown name is unchanged."""
    lowered = key.lower()
    if lowered.startswith(FEATURE_PREFIX):
        return FEATURE_PREFIX + key[len(FEATURE_PREFIX) :]
    return _LOWERED.get(lowered, key)


def canonical_properties(properties: Mapping[str, str], description: str | None) -> tuple[dict[str, str], str | None]:
    """Properties under Delta Lake's names, and the table's description: the one among them, else ``description``.

    Example:
        >>> canonical_properties({"delta.AppendOnly": "true", "comment": "of the harbour"}, None)
        ({'delta.appendOnly': 'true'}, 'of the harbour')
    """
    renamed = {canonical_key(key): value for key, value in properties.items()}
    return renamed, renamed.pop(COMMENT, description)


def check_unreserved(keys: Iterable[str]) -> None:
    """Raises `InvalidProperty` if a property is one that Spark reserves for a clause of a statement."""
    for key in keys:
        if key in RESERVED:
            raise InvalidProperty(property=key, value="set", reason=f"Spark reserves it: {RESERVED[key]}.")


def check_retention(configuration: Mapping[str, str], changed: Iterable[str] = (TOMBSTONES, LOG)) -> None:
    """Raises `InvalidProperty` if removed files are remembered longer than the log is kept, and one of these two
    properties is ``changed``.
    """
    properties = Properties(configuration)
    if not {TOMBSTONES, LOG} & set(changed) or properties.tombstone_retention_ms <= properties.log_retention_ms:
        return
    key = TOMBSTONES if TOMBSTONES in configuration else LOG
    other = LOG if key is TOMBSTONES else TOMBSTONES
    value, bound = (configuration.get(name, HONOURED[name][1]) for name in (key, other))
    more = "more" if key is TOMBSTONES else "less"
    raise InvalidProperty(property=key, value=value, reason=f"it may not be {more} than {other}, which is {bound}.")


def is_known(key: str) -> bool:
    """Whether Delta Lake defines a table property of exactly this name."""
    return key in HONOURED or key in _BY_KEY or key in VERSIONS or key == IGNORE_DEFAULTS


def is_owned(key: str) -> bool:
    """Whether only engines write a property, so that no other table inherits it."""
    return key in _BY_KEY and _BY_KEY[key].treatment is Treatment.OWNED


def _check_other(other: InactiveProperty, value: str) -> None:
    if other.treatment is Treatment.OWNED:
        raise InvalidProperty(property=other.key, value=value, reason=f"no user sets it: {other.why}.")
    try:
        is_default = other.parse(value) == (other.parse(other.default) if other.default else "")
    except ValueError as error:
        raise InvalidProperty(property=other.key, value=value, reason=f"{error}.") from None
    if other.treatment is Treatment.REFUSED and not is_default:
        raise InvalidProperty(property=other.key, value=value, reason=f"it is not honoured here: {other.why}.")


def _unknown(key: str) -> str:
    """The reason that a key is unknown, with a similar known key."""
    keys = [*HONOURED, *_BY_KEY, *VERSIONS, IGNORE_DEFAULTS]
    lowered = {known_key.lower(): known_key for known_key in keys}
    if key.lower() in lowered:
        return f"it is spelled {lowered[key.lower()]}."
    near = get_close_matches(key.lower(), lowered, n=1, cutoff=0.8)
    hint = f" Did you mean {lowered[near[0]]}?" if near else ""
    return f"Unknown configuration was specified: {key}. This version of Anabranch does not honour it.{hint}"


def _check_constraint(key: str, value: str) -> None:
    if not key.startswith(CONSTRAINT_PREFIX) or len(key) == len(CONSTRAINT_PREFIX) or key != key.lower():
        raise InvalidProperty(
            property=key, value=value, reason=f"it is spelled {CONSTRAINT_PREFIX}name, in lower case."
        )
    if not value.strip():
        raise InvalidProperty(property=key, value=value, reason="it takes a condition in SQL.")
