"""Session settings: how each setting that Delta Lake documents is treated.

Knows the names ``spark.databricks.delta.*`` that Delta Lake documents or defines for users, those that Databricks
documents, our own ``anabranch.*``, and Spark's own settings that affect how values are cast to columns and how files
are compressed; and whether each is honoured, harmless or refused. Pure. Guarantee: no setting is silently ignored;
`unknown` reports a setting that is not listed here.

Source: Delta Lake documentation, and the settings of delta-spark 4.4 that are not marked as internal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from anabranch._protocol.compression import parse_codec
from anabranch._protocol.dials import LEVEL, RESOLUTION, Dials
from anabranch._protocol.properties import FEATURE_PREFIX, is_known
from anabranch.errors import InvalidProperty, UnsupportedSetting

PREFIX = "spark.databricks.delta."
OUR_PREFIX = "anabranch."
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
COMPRESSES = "spark.sql.parquet.compression.codec"
VACUUMS_LITE = PREFIX + "vacuum.lite.enabled"


class Treatment(Enum):
    """How a setting is treated."""

    HONOURED = "honoured"
    HARMLESS = "harmless"
    REFUSED = "refused"


@dataclass(frozen=True)
class Setting:
    """A known setting.

    Attributes:
        name: its full name.
        treatment: how it is treated.
        why: its effect, or the reason why it has none.
        default: of a refused setting, the value that requests the present behaviour, in lower case.
        verbs: the statements that a refused setting would change; empty: every write.
    """

    name: str
    treatment: Treatment
    why: str
    default: str = ""
    verbs: frozenset[str] = frozenset()


def _honoured(name: str, why: str) -> Setting:
    return Setting(name, Treatment.HONOURED, why)


def _harmless(why: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(PREFIX + name, Treatment.HARMLESS, why) for name in names)


def _refused(name: str, default: str, why: str, *verbs: str) -> Setting:
    return Setting(PREFIX + name, Treatment.REFUSED, why, default, frozenset(verbs))


SETTINGS: tuple[Setting, ...] = (
    _honoured(USER_METADATA, "is recorded in each commit as `userMetadata`; the option of a write takes precedence"),
    _honoured(TXN_APP_ID, "with `write.txnVersion`: a write that was already committed is skipped"),
    _honoured(TXN_VERSION, "with `write.txnAppId`: a write that was already committed is skipped"),
    _honoured(TXN_RESET, "unsets `write.txnVersion` after each write that used it"),
    _honoured(MERGES_SCHEMA, "writes and MERGE may add columns"),
    _honoured(OPTIMIZES_WRITES, "writes produce few files"),
    _honoured(CHECKS_RETENTION, "VACUUM refuses a retention below the table's"),
    _honoured(READS_BEYOND, "a range of changes may end, and streams may begin, after the newest version"),
    _honoured(REPLACES_BY_DATA, "if false, `replaceWhere` accepts partition columns only"),
    _honoured(CHECKS_REPLACED, "if false, written rows need not match `replaceWhere`"),
    _honoured(COMPACTS, "automatic compaction, overriding the table's property"),
    _honoured(COMPACTS_FROM, "the number of small files that triggers automatic compaction, by default 50"),
    _honoured(COMPACTS_TO, "the file size of automatic compaction in bytes, by default 128 MiB"),
    _honoured(DROPS_MISSING, "DROP CONSTRAINT of a missing constraint does nothing, as with IF EXISTS"),
    _honoured(WIDENS, "which types rows may widen by themselves: `always`, only `same_family_type`, or `never`"),
    _honoured(LEVEL, "`Serializable`: commands are serializable even on tables that are not"),
    _honoured(RESOLUTION, "how conflicts of commands are judged, overriding the table's property"),
    _honoured(VACUUMS_LITE, "VACUUM only considers files that the log removed, unless the statement has FULL"),
    _honoured(_VERSIONS[0], "the minimum reader protocol of new tables, as the property `delta.minReaderVersion`"),
    _honoured(_VERSIONS[1], "the minimum writer protocol of new tables, as the property `delta.minWriterVersion`"),
    _honoured(COMPRESSES, "the compression of new files and checkpoints of tables that name none, if it is set"),
    _refused("restore.protocolDowngradeAllowed", "false", "protocols are never downgraded", "RESTORE", "CLONE"),
    _refused("replace.protocolDowngradeAllowed", "false", "protocols are never downgraded", "REPLACE"),
    _refused("convert.partitionValues.ignoreCastFailure", "false",
             "a folder whose value does not fit its column is an error", "CONVERT"),
    _refused("delete.deletionVectors.persistent", "true",
             "only the table's `delta.enableDeletionVectors` decides whether rows are marked", "DELETE"),
    _refused("update.deletionVectors.persistent", "true",
             "only the table's `delta.enableDeletionVectors` decides whether rows are marked", "UPDATE"),
    _refused("merge.deletionVectors.persistent", "true",
             "only the table's `delta.enableDeletionVectors` decides whether rows are marked", "MERGE"),
    _refused("identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled", "false",
             "the mark of an identity column never moves back", "SYNC IDENTITY"),
    _refused("write.dataFilesToSubdir", "false", "file locations do not depend on it"),
    Setting(ASSIGNS, Treatment.REFUSED, "a value that does not fit its column is an error, never NULL", "ansi",
            frozenset({"INSERT", "MERGE", "UPDATE"})),
    *_harmless("the row level is on wherever a table has deletion vectors and does not choose the file level",
               "rowLevelConcurrencyPreview"),
    *_harmless("geometries and geographies are columns wherever Spark has the types", "geo.preview.enabled"),
    *_harmless("a DataFrame is one version, whose columns never change", "checkLatestSchemaOnRead"),
    *_harmless("every read looks for the newest version", "stalenessLimit"),
    *_harmless("the history always has the metrics of each operation", "history.metricsEnabled"),
    *_harmless("each VACUUM is always logged", "vacuum.logging.enabled"),
    *_harmless("how fast files are removed", "vacuum.parallelDelete.enabled", "vacuum.parallelDelete.parallelism"),
    *_harmless("the source of a MERGE is evaluated once, and stored in files",
               "merge.materializeSource", "merge.materializeSource.maxAttempts"),
    *_harmless("how the files of a write are shuffled", "merge.repartitionBeforeWrite.enabled",
               "optimize.repartition.enabled", "optimizeWrite.binSize", "optimizeWrite.numShuffleBlocks",
               "optimizeWrite.maxShufflePartitions"),
    *_harmless("the file size of OPTIMIZE is the table's `delta.targetFileSize`, or the default",
               "optimize.maxFileSize", "optimize.minFileSize", "optimize.maxDeletedRowsRatio", "optimize.maxThreads"),
    *_harmless("how the log is read and stored; no version differs by it", "deltaLog.minorCompaction.useForReads",
               "checkpoint.partSize", "writeChecksumFile.enabled", "snapshotPartitions", "delta.log.cacheSize",
               "delta.log.cacheRetentionMinutes"),
    *_harmless("how many files are skipped; the rows of a read are the same", "stats.skipping"),
    *_harmless("delta-spark sets it for users to read; Anabranch never changes a session",
               "lastCommitVersionInSession"),
    *_harmless("it concerns tables of Spark's catalog and of Unity Catalog", "catalog.update.enabled",
               "commitMetrics.enabled", "convert.useCatalogSchema", "convert.metadataCheck.enabled", "v2.enableMode"),
    *_harmless("a folder that a stream has written is not converted", "convert.useMetadataLog"),
    *_harmless("it concerns conversion from Iceberg, which is not supported",
               "convert.iceberg.useNativePartitionValues", "convert.iceberg.partitionEvolution.enabled"),
    *_harmless("it concerns metadata of other formats, which is never written", "iceberg.maxPendingCommits",
               "iceberg.maxPendingActions", "hudi.maxPendingCommits",
               "uniform.iceberg.maxActionsToConvertForCommitLarge"),
    *_harmless("SET LOCATION is always refused", "alterLocation.bypassSchemaCheck"),
    *_harmless("DROP FEATURE keeps the files of vectors for as long as VACUUM does",
               "tableFeatures.fastDropFeature.dvTombstoneCountThreshold"),
    *_harmless("clustered tables are always on", "clusteredTable.enableClusteringTablePreview"),
    *_harmless("a stream requests it by its option", "withEventTimeOrder.enabled"),
    *_harmless("what it would allow is always refused", "allowArbitraryProperties.enabled",
               "vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility", "delete.allowExistsSubquery",
               "alterTable.changeColumn.checkExpressions"),
)  # fmt: skip

_BY_NAME = {setting.name: setting for setting in SETTINGS}
NAMED = tuple(setting.name for setting in SETTINGS if setting.treatment is not Treatment.HARMLESS)
"""The settings to read before a write."""


def check(values: Mapping[str, str], verb: str) -> None:
    """Raises UnsupportedSetting if one of these session settings requests unsupported behaviour of a statement.

    Example:
        >>> check({"spark.databricks.delta.stalenessLimit": "1h"}, "DELETE")
    """
    for name, value in values.items():
        setting = _BY_NAME.get(name)
        if setting is None or setting.treatment is not Treatment.REFUSED or value.strip().lower() == setting.default:
            continue
        if not setting.verbs or verb in setting.verbs:
            raise UnsupportedSetting(setting=name, value=value, verb=verb, reason=setting.why)


def unknown(names: Iterable[str]) -> dict[str, str]:
    """The undocumented settings among these, each with a hint at a similar known name.

    Example:
        >>> unknown(["spark.databricks.delta.stalenesLimit", "spark.sql.shuffle.partitions"])
        {'spark.databricks.delta.stalenesLimit': ' Did you mean spark.databricks.delta.stalenessLimit?'}
    """
    ours = (name for name in names if name.startswith((PREFIX, OUR_PREFIX)) and name not in _BY_NAME)
    return {name: _hint(name) for name in ours if default_property(name) is None}


def _hint(name: str) -> str:
    near = get_close_matches(name, _BY_NAME, n=1, cutoff=0.9)
    return f" Did you mean {near[0]}?" if near else ""


def default_property(name: str) -> str | None:
    """The table property whose default in new tables this setting is; None for any other setting.

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
    """The default table properties that these settings define for new tables."""
    properties = ((default_property(name), value) for name, value in values.items())
    return {key: value for key, value in properties if key is not None}


def flag(values: Mapping[str, str], name: str, default: bool) -> bool:
    """The value of a boolean setting. Raises UnsupportedSetting: it is neither true nor false."""
    value = values.get(name)
    if value is None:
        return default
    if value.strip().lower() not in ("true", "false"):
        raise UnsupportedSetting(setting=name, value=value, verb="a write", reason="it takes true or false")
    return value.strip().lower() == "true"


def number(values: Mapping[str, str], name: str) -> int | None:
    """The positive integer value of a setting; None if it is not set. Raises UnsupportedSetting: the value is
    invalid.
    """
    value = values.get(name)
    if value is None:
        return None
    text = value.strip()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UnsupportedSetting(setting=name, value=value, verb="a write", reason="it takes a whole number from 1")
    return int(text)


def widening(value: str) -> str:
    """The type changes that the session allows for rows. Raises UnsupportedSetting: the value is invalid."""
    wished = value.strip().lower()
    if wished not in ("always", "same_family_type", "never"):
        reason = "it takes always, same_family_type or never"
        raise UnsupportedSetting(setting=WIDENS, value=value, verb="a write", reason=reason)
    return wished


def compaction(value: str) -> str:
    """The auto compaction that the session requests. Raises UnsupportedSetting: the value is invalid."""
    wished = value.strip().lower()
    if wished not in ("true", "false", "auto", "legacy"):
        reason = "it takes true, false, auto or legacy"
        raise UnsupportedSetting(setting=COMPACTS, value=value, verb="a write", reason=reason)
    return wished


def codec(values: Mapping[str, str]) -> str | None:
    """The compression that the session asks for; None if it is not set. Raises UnsupportedSetting: it is unknown."""
    value = values.get(COMPRESSES)
    try:
        return None if value is None else parse_codec(value)
    except InvalidProperty as error:
        reason = str(error.facts["reason"]).removesuffix(".")
        raise UnsupportedSetting(setting=COMPRESSES, value=str(value), verb="a write", reason=reason) from None


def dials(values: Mapping[str, str]) -> Dials:
    """The dials that the session asks for. Raises UnsupportedSetting: one has an invalid value."""

    def refusal(name: str, value: str, reason: str) -> UnsupportedSetting:
        return UnsupportedSetting(setting=name, value=value, verb="a write", reason=reason.removesuffix("."))

    return Dials.parse(values.get(LEVEL), values.get(RESOLUTION), refusal)
