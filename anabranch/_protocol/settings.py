"""Session settings: how each one that Delta Lake documents is treated.

Knows the names ``spark.databricks.delta.*`` that Delta Lake documents or defines for users, those that Databricks
documents, and Spark's own by which values are fitted to columns; and whether each is honoured, harmless or refused.
Pure. Guarantee: no setting is silently ignored; `unknown` reports one that is not listed here.

Source: Delta Lake documentation, and the settings of delta-spark 4.4 that are not marked as internal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from anabranch._protocol.properties import FEATURE_PREFIX, is_known
from anabranch.errors import UnsupportedSetting

PREFIX = "spark.databricks.delta."
DEFAULTS = PREFIX + "properties.defaults."
USER_METADATA = PREFIX + "commitInfo.userMetadata"
TXN_APP_ID = PREFIX + "write.txnAppId"
TXN_VERSION = PREFIX + "write.txnVersion"
TXN_RESET = PREFIX + "write.txnVersion.autoReset.enabled"
MERGES_SCHEMA = PREFIX + "schema.autoMerge.enabled"
OPTIMIZES_WRITES = PREFIX + "optimizeWrite.enabled"
CHECKS_RETENTION = PREFIX + "retentionDurationCheck.enabled"
READS_BEYOND = PREFIX + "changeDataFeed.timestampOutOfRange.enabled"
REPLACES_BY_DATA = PREFIX + "replaceWhere.dataColumns.enabled"
CHECKS_REPLACED = PREFIX + "replaceWhere.constraintCheck.enabled"
COMPACTS = PREFIX + "autoCompact.enabled"
COMPACTS_FROM = PREFIX + "autoCompact.minNumFiles"
COMPACTS_TO = PREFIX + "autoCompact.maxFileSize"
ASSIGNS = "spark.sql.storeAssignmentPolicy"
DROPS_MISSING = PREFIX + "constraints.assumesDropIfExists.enabled"
WIDENS = PREFIX + "typeWidening.allowAutomaticWidening"
_VERSIONS = (PREFIX + "minReaderVersion", PREFIX + "minWriterVersion")
VACUUMS_LITE = PREFIX + "vacuum.lite.enabled"


class Fate(Enum):
    """How a setting is treated."""

    HONOURED = "honoured"
    HARMLESS = "harmless"
    REFUSED = "refused"


@dataclass(frozen=True)
class Setting:
    """A known setting.

    Attributes:
        name: its full name.
        fate: how it is treated.
        why: what it does here, or why it does nothing.
        default: of a refused one, the value that requests the present behaviour, in lower case.
        verbs: the statements that a refused one would change; empty: every write.
    """

    name: str
    fate: Fate
    why: str
    default: str = ""
    verbs: frozenset[str] = frozenset()


def _honoured(name: str, why: str) -> Setting:
    return Setting(name, Fate.HONOURED, why)


def _harmless(why: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(PREFIX + name, Fate.HARMLESS, why) for name in names)


def _refused(name: str, default: str, why: str, *verbs: str) -> Setting:
    return Setting(PREFIX + name, Fate.REFUSED, why, default, frozenset(verbs))


SETTINGS: tuple[Setting, ...] = (
    _honoured(USER_METADATA, "stands in each commit as `userMetadata`; the option of a write counts more"),
    _honoured(TXN_APP_ID, "with `write.txnVersion`: a write that was committed before is not done again"),
    _honoured(TXN_VERSION, "with `write.txnAppId`: a write that was committed before is not done again"),
    _honoured(TXN_RESET, "unsets `write.txnVersion` behind each write that used it"),
    _honoured(MERGES_SCHEMA, "writes and MERGE may add columns"),
    _honoured(OPTIMIZES_WRITES, "writes leave few files"),
    _honoured(CHECKS_RETENTION, "VACUUM refuses to retain less than the table says"),
    _honoured(READS_BEYOND, "a range of changes may end behind the newest version, and streams begin there"),
    _honoured(REPLACES_BY_DATA, "if false, `replaceWhere` takes partition columns only"),
    _honoured(CHECKS_REPLACED, "if false, rows that `replaceWhere` does not select may be written with it"),
    _honoured(COMPACTS, "automatic compaction, whatever the table says"),
    _honoured(COMPACTS_FROM, "automatic compaction begins with so many small files, 50 if it is not set"),
    _honoured(COMPACTS_TO, "so many bytes automatic compaction puts into a file, 128 MiB if it is not set"),
    _honoured(DROPS_MISSING, "DROP CONSTRAINT of one that is not there does nothing, as with IF EXISTS"),
    _honoured(WIDENS, "which types rows may widen by themselves: `always`, only `same_family_type`, or `never`"),
    _honoured(VACUUMS_LITE, "VACUUM looks only at files that the log says were removed, unless it says FULL"),
    _honoured(_VERSIONS[0], "the least protocol of new tables for readers, as the property `delta.minReaderVersion`"),
    _honoured(_VERSIONS[1], "the least protocol of new tables for writers, as the property `delta.minWriterVersion`"),
    _refused("restore.protocolDowngradeAllowed", "false", "a protocol never loses anything here", "RESTORE", "CLONE"),
    _refused("replace.protocolDowngradeAllowed", "false", "a protocol never loses anything here", "REPLACE"),
    _refused("convert.partitionValues.ignoreCastFailure", "false",
             "a folder whose value is none of its column's is an error", "CONVERT"),
    _refused("delete.deletionVectors.persistent", "true",
             "`delta.enableDeletionVectors` of the table alone says whether rows are marked", "DELETE"),
    _refused("update.deletionVectors.persistent", "true",
             "`delta.enableDeletionVectors` of the table alone says whether rows are marked", "UPDATE"),
    _refused("merge.deletionVectors.persistent", "true",
             "`delta.enableDeletionVectors` of the table alone says whether rows are marked", "MERGE"),
    _refused("identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled", "false",
             "the mark of an identity column never goes back", "SYNC IDENTITY"),
    _refused("write.dataFilesToSubdir", "false", "the places of files are not chosen so"),
    Setting(ASSIGNS, Fate.REFUSED, "a value that does not fit its column is an error, never NULL", "ansi",
            frozenset({"INSERT", "MERGE", "UPDATE"})),
    *_harmless("the row level is on wherever a table has deletion vectors and does not choose the file level",
               "rowLevelConcurrencyPreview"),
    *_harmless("a DataFrame is one version, whose columns never change", "checkLatestSchemaOnRead"),
    *_harmless("the newest version is always looked for", "stalenessLimit"),
    *_harmless("the metrics of each operation always stand in the history", "history.metricsEnabled"),
    *_harmless("each VACUUM always stands in the log", "vacuum.logging.enabled"),
    *_harmless("how fast files are removed", "vacuum.parallelDelete.enabled", "vacuum.parallelDelete.parallelism"),
    *_harmless("the source of a MERGE is evaluated once, and kept in files",
               "merge.materializeSource", "merge.materializeSource.maxAttempts"),
    *_harmless("how the files of a write are shuffled", "merge.repartitionBeforeWrite.enabled",
               "optimize.repartition.enabled", "optimizeWrite.binSize", "optimizeWrite.numShuffleBlocks",
               "optimizeWrite.maxShufflePartitions"),
    *_harmless("the size of files that OPTIMIZE makes is `delta.targetFileSize` of the table, or the default",
               "optimize.maxFileSize", "optimize.minFileSize", "optimize.maxDeletedRowsRatio", "optimize.maxThreads"),
    *_harmless("how the log is read and kept: no version is another for it", "deltaLog.minorCompaction.useForReads",
               "checkpoint.partSize", "writeChecksumFile.enabled", "snapshotPartitions", "delta.log.cacheSize",
               "delta.log.cacheRetentionMinutes"),
    *_harmless("how much is skipped, and no row less is found for it", "stats.skipping"),
    *_harmless("it is written for users to read by delta-spark; sessions are never changed here",
               "lastCommitVersionInSession"),
    *_harmless("it speaks of tables of Spark's catalog and of Unity Catalog", "catalog.update.enabled",
               "commitMetrics.enabled", "convert.useCatalogSchema", "convert.metadataCheck.enabled", "v2.enableMode"),
    *_harmless("a folder that a stream has written is not converted", "convert.useMetadataLog"),
    *_harmless("it speaks of conversion from Iceberg, which is not done here",
               "convert.iceberg.useNativePartitionValues", "convert.iceberg.partitionEvolution.enabled"),
    *_harmless("it speaks of metadata of other formats, which is not written here", "iceberg.maxPendingCommits",
               "iceberg.maxPendingActions", "hudi.maxPendingCommits",
               "uniform.iceberg.maxActionsToConvertForCommitLarge"),
    *_harmless("SET LOCATION is refused by itself", "alterLocation.bypassSchemaCheck"),
    *_harmless("DROP FEATURE keeps the files of vectors for as long as VACUUM does",
               "tableFeatures.fastDropFeature.dvTombstoneCountThreshold"),
    *_harmless("clustered tables are always on", "clusteredTable.enableClusteringTablePreview"),
    *_harmless("a stream asks for it by its option", "withEventTimeOrder.enabled"),
    *_harmless("what it would allow is refused by itself, by name", "allowArbitraryProperties.enabled",
               "vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility", "delete.allowExistsSubquery",
               "alterTable.changeColumn.checkExpressions"),
)  # fmt: skip

_BY_NAME = {each.name: each for each in SETTINGS}
NAMED = tuple(each.name for each in SETTINGS if each.fate is not Fate.HARMLESS)
"""The settings to read before a write."""


def check(values: Mapping[str, str], verb: str) -> None:
    """Raises UnsupportedSetting if one of these session settings requests something unsupported of a statement.

    Example:
        >>> check({"spark.databricks.delta.stalenessLimit": "1h"}, "DELETE")
    """
    for name, value in values.items():
        known = _BY_NAME.get(name)
        if known is None or known.fate is not Fate.REFUSED or value.strip().lower() == known.default:
            continue
        if not known.verbs or verb in known.verbs:
            raise UnsupportedSetting(setting=name, value=value, verb=verb, reason=known.why)


def unknown(names: Iterable[str]) -> dict[str, str]:
    """The undocumented ones of these settings, each with a hint at the one that may be meant.

    Example:
        >>> unknown(["spark.databricks.delta.stalenesLimit", "spark.sql.shuffle.partitions"])
        {'spark.databricks.delta.stalenesLimit': ' Did you mean spark.databricks.delta.stalenessLimit?'}
    """
    ours = (name for name in names if name.startswith(PREFIX) and name not in _BY_NAME)
    return {name: _hint(name) for name in ours if default_property(name) is None}


def _hint(name: str) -> str:
    near = get_close_matches(name, _BY_NAME, n=1, cutoff=0.9)
    return f" Did you mean {near[0]}?" if near else ""


def default_property(name: str) -> str | None:
    """The table property whose default in new tables a setting gives; None for any other setting.

    Example:
        >>> default_property("spark.databricks.delta.properties.defaults.appendOnly")
        'delta.appendOnly'
    """
    if name in _VERSIONS:
        return "delta." + name[len(PREFIX) :]
    if not name.startswith(DEFAULTS):
        return None
    key = "delta." + name[len(DEFAULTS) :]
    return key if is_known(key) or key.startswith(FEATURE_PREFIX) else None


def default_properties(values: Mapping[str, str]) -> dict[str, str]:
    """The table properties that these settings give to new tables."""
    found = ((default_property(name), value) for name, value in values.items())
    return {key: value for key, value in found if key is not None}


def flag(values: Mapping[str, str], name: str, default: bool) -> bool:
    """The value of a boolean setting. Raises UnsupportedSetting: it is neither true nor false."""
    value = values.get(name)
    if value is None:
        return default
    if value.strip().lower() not in ("true", "false"):
        raise UnsupportedSetting(setting=name, value=value, verb="a write", reason="it takes true or false")
    return value.strip().lower() == "true"


def number(values: Mapping[str, str], name: str) -> int | None:
    """The positive integer value of a setting; None where it is not set. Raises UnsupportedSetting: it is not one."""
    value = values.get(name)
    if value is None:
        return None
    text = value.strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UnsupportedSetting(setting=name, value=value, verb="a write", reason="it takes a whole number from 1")
    return int(text)


def widening(value: str) -> str:
    """Which changes of types the session lets rows make. Raises UnsupportedSetting: the value is not valid."""
    wished = value.strip().lower()
    if wished not in ("always", "same_family_type", "never"):
        reason = "it takes always, same_family_type or never"
        raise UnsupportedSetting(setting=WIDENS, value=value, verb="a write", reason=reason)
    return wished


def compaction(value: str) -> str:
    """The auto compaction that the session requests. Raises UnsupportedSetting: the value is not valid."""
    wished = value.strip().lower()
    if wished not in ("true", "false", "auto", "legacy"):
        reason = "it takes true, false, auto or legacy"
        raise UnsupportedSetting(setting=COMPACTS, value=value, verb="a write", reason=reason)
    return wished
