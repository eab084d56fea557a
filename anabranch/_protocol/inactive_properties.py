"""Table properties without effect: kept, refused, or written by engines only, each with the reason. Pure data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from anabranch._protocol.property_values import boolean, interval_ms, natural

PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"


class Treatment(Enum):
    """How a property without effect is treated."""

    KEPT = "kept: it requires nothing of a writer"
    REFUSED = "refused, unless it requests the present behaviour"
    OWNED = "written by engines only, refused to users"


@dataclass(frozen=True)
class InactiveProperty:
    """A property without effect: its values, its default, its treatment and the reason."""

    key: str
    parse: Callable[[str], Any]
    default: str
    treatment: Treatment
    why: str


_NO_CATALOG = "this engine writes commits into the log itself, without a coordinator"
_NO_ICEBERG = "metadata of other formats is never written"
_OF_ENGINES = "it is an engine's state of the feature"

INACTIVE: tuple[InactiveProperty, ...] = (
    InactiveProperty("delta.autoOptimize", boolean, "false", Treatment.KEPT, "a hint about file sizes"),
    InactiveProperty("delta.tuneFileSizesForRewrites", boolean, "false", Treatment.KEPT, "a hint about file sizes"),
    InactiveProperty(
        "delta.dataSkippingStringPrefixLength",
        natural,
        "32",
        Treatment.KEPT,
        "a hint about statistics; ours have 32 characters",
    ),
    InactiveProperty(
        "delta.sampleRetentionDuration", interval_ms, "interval 7 days", Treatment.KEPT, "no samples are stored"
    ),
    InactiveProperty(
        "delta.checkpointRetentionDuration",
        interval_ms,
        "interval 2 days",
        Treatment.KEPT,
        "checkpoints are removed with the log files of their versions",
    ),
    InactiveProperty(
        "delta.enableFullRetentionRollback",
        boolean,
        "true",
        Treatment.KEPT,
        "the log is kept for its whole retention anyway",
    ),
    InactiveProperty(
        "delta.castIcebergTimeType", boolean, "false", Treatment.KEPT, "it concerns tables converted from Iceberg"
    ),
    InactiveProperty(
        "delta.ignoreIcebergBucketPartition",
        boolean,
        "false",
        Treatment.KEPT,
        "it concerns tables converted from Iceberg",
    ),
    InactiveProperty(
        "delta.enableChangeDataCapture",
        boolean,
        "false",
        Treatment.REFUSED,
        "its present name is delta.enableChangeDataFeed",
    ),
    InactiveProperty(
        "delta.enableVariantShredding", boolean, "false", Treatment.REFUSED, "variants are never shredded"
    ),
    InactiveProperty("delta.universalFormat.enabledFormats", str, "", Treatment.REFUSED, _NO_ICEBERG),
    InactiveProperty(
        "delta.universalFormat.iceberg.atomicConversion.supported", boolean, "false", Treatment.REFUSED, _NO_ICEBERG
    ),
    InactiveProperty(
        "delta.compatibility.symlinkFormatManifest.enabled",
        boolean,
        "false",
        Treatment.REFUSED,
        "commits do not update manifests",
    ),
    InactiveProperty("delta.coordinatedCommits.commitCoordinator-preview", str, "", Treatment.REFUSED, _NO_CATALOG),
    InactiveProperty("delta.coordinatedCommits.commitCoordinatorConf-preview", str, "", Treatment.REFUSED, _NO_CATALOG),
    InactiveProperty("delta.coordinatedCommits.tableConf-preview", str, "", Treatment.REFUSED, _NO_CATALOG),
    InactiveProperty(
        "delta.redirectReaderWriter-preview", str, "", Treatment.REFUSED, "table redirection is not supported"
    ),
    InactiveProperty(
        "delta.redirectWriterOnly-preview", str, "", Treatment.REFUSED, "table redirection is not supported"
    ),
    InactiveProperty("delta.columnMapping.maxColumnId", natural, "0", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty("delta.inCommitTimestampEnablementVersion", natural, "", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty("delta.inCommitTimestampEnablementTimestamp", natural, "", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty("delta.rowTracking.materializedRowIdColumnName", str, "", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty("delta.rowTracking.materializedRowCommitVersionColumnName", str, "", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty(PROTECTED_BEFORE, natural, "0", Treatment.OWNED, _OF_ENGINES),
    InactiveProperty(
        "anabranch.identityValuesGiven", str, "", Treatment.OWNED, "it records the values of dropped columns"
    ),
    InactiveProperty("delta.lastUpdateVersion", str, "", Treatment.OWNED, "it is a catalog's state of the table"),
    InactiveProperty("delta.lastCommitTimestamp", str, "", Treatment.OWNED, "it is a catalog's state of the table"),
)
