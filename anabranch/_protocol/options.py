"""Options of readers and writers: how each option that Delta Lake or Spark documents is treated.

Pure. Guarantee: no option is silently ignored; `anabranch.commands.options` warns of an option that is not listed here.

Source: Delta Lake documentation, the options that delta-spark 4.4 knows, and Spark's options of file sources.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._protocol.dials import LEVEL, RESOLUTION
from anabranch._protocol.settings import Treatment

READ, CHANGES, STREAM, WRITE = "reading", "reading the changes", "reading a stream", "writing"


@dataclass(frozen=True)
class Option:
    """A known option: where it applies, how it is treated there, and why.

    ``harmless`` is the value, in lower case, with which a refused option requests nothing.
    """

    name: str
    doors: tuple[str, ...]
    treatment: Treatment
    why: str
    harmless: str | None = None


def _honoured(door: tuple[str, ...], why: str, *names: str) -> tuple[Option, ...]:
    return tuple(Option(name, door, Treatment.HONOURED, why) for name in names)


def _harmless(door: tuple[str, ...], why: str, *names: str) -> tuple[Option, ...]:
    return tuple(Option(name, door, Treatment.HARMLESS, why) for name in names)


def _refused(door: tuple[str, ...], why: str, *names: str, harmless: str | None = None) -> tuple[Option, ...]:
    return tuple(Option(name, door, Treatment.REFUSED, why, harmless) for name in names)


_READS, _WRITES, _CHANGES, _STREAMS = (READ, CHANGES), (WRITE,), (CHANGES,), (STREAM,)
_ALL = (READ, CHANGES, STREAM, WRITE)

OPTIONS: tuple[Option, ...] = (
    *_honoured(_ALL, "the location of the table", "path"),
    *_honoured((READ,), "the version that is read", "versionAsOf", "timestampAsOf"),
    *_honoured((READ,), "shows the ids of rows", "rowIds"),
    *_honoured(_READS, "reads the changes", "readChangeFeed", "readChangeData"),
    *_honoured(_CHANGES, "the range of changes", "startingVersion", "endingVersion", "startingTimestamp",
               "endingTimestamp"),
    *_honoured(_WRITES, "which rows an overwrite replaces", "replaceWhere", "partitionOverwriteMode",
               "replaceOn", "replaceUsing", "targetAlias"),
    *_honoured(_WRITES, "what rows may do to the columns", "mergeSchema", "overwriteSchema"),
    *_honoured(_WRITES, "is recorded in the commit", "userMetadata"),
    *_honoured(_WRITES, "how conflicts of this write are judged", LEVEL, RESOLUTION),
    *_honoured(_WRITES, "a write that was already committed is skipped", "txnAppId", "txnVersion"),
    *_honoured(_WRITES, "how the files are written", "optimizeWrite", "maxRecordsPerFile", "compression"),
    *_honoured(_WRITES, "the version of the same table that the rows come from", "readsTarget"),
    *_honoured(_STREAMS, "shows changes instead of added rows", "readChangeFeed", "readChangeData"),
    *_honoured(_STREAMS, "where the stream begins", "startingVersion", "startingTimestamp"),
    *_honoured(_STREAMS, "how much a batch takes", "maxFilesPerTrigger", "maxBytesPerTrigger"),
    *_honoured(_STREAMS, "which commits are left out", "ignoreDeletes", "ignoreChanges", "skipChangeCommits",
               "ignoreFileDeletion", "failOnDataLoss"),
    *_honoured(_STREAMS, "existing rows come in one batch, so that none is late", "withEventTimeOrder"),
    *_refused(_STREAMS, "a stream has no end", "endingVersion", "endingTimestamp"),
    *_refused(_STREAMS, "a stream begins at startingVersion or startingTimestamp", "versionAsOf", "timestampAsOf"),
    *_refused((READ,), "it requires readChangeFeed = true", "startingVersion", "endingVersion", "startingTimestamp",
              "endingTimestamp"),
    *_refused(_CHANGES, "startingVersion and endingVersion define a range of changes", "versionAsOf",
              "timestampAsOf"),
    *_refused(_READS, "a table's files are those in its log", "pathGlobFilter", "recursiveFileLookup",
              "modifiedBefore", "modifiedAfter", "basePath"),
    *_refused(_READS, "a file that is missing or damaged is an error", "ignoreMissingFiles", "ignoreCorruptFiles",
              harmless="false"),
    *_refused(_WRITES, "nobody checks that rows of a DataFrame are those that are there; OPTIMIZE and REORG move rows "
              "and declare no change", "dataChange", harmless="true"),
    *_refused(_WRITES, "NULL is a partition like any other", "useNullIntolerantEqualityWithDPO", harmless="false"),
    *_refused(_WRITES, "properties of the table decide it", "writePartitionColumns", harmless="false"),
    *_refused(_WRITES, "files are written in the first version of Parquet's pages", "parquet.writer.version",
              harmless="v1"),
    *_refused(_WRITES, "timestamps are written as microseconds, so that files have their statistics",
              "spark.sql.parquet.outputTimestampType", harmless="timestamp_micros"),
    *_harmless((READ, CHANGES, STREAM), "a read sees one version, and conflicts with nothing", LEVEL, RESOLUTION),
    *_harmless(_READS, "a table has one schema, whatever its files have", "mergeSchema"),
    *_refused(_STREAMS, "a table's files are those in its log", "excludeRegex"),
    *_honoured(_STREAMS, "rows from before a change of columns are read with the columns from before it",
               "schemaTrackingLocation", "schemaLocation"),
    *_refused(_STREAMS, "each source has its own schemaTrackingLocation", "streamingSourceTrackingId"),
    *_harmless(_STREAMS, "a restarted stream always continues with the new columns",
               "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"),
    *_harmless(_STREAMS, "an option of the query, not of its source", "queryName", "checkpointLocation"),
    *_harmless((READ, CHANGES, WRITE), "it is an option of streams", "maxFilesPerTrigger",
               "maxBytesPerTrigger", "ignoreFileDeletion", "ignoreChanges", "ignoreDeletes", "skipChangeCommits",
               "failOnDataLoss", "excludeRegex", "schemaTrackingLocation", "schemaLocation",
               "streamingSourceTrackingId", "allowSourceColumnRename", "allowSourceColumnDrop",
               "allowSourceColumnTypeChange", "withEventTimeOrder", "queryName", "checkpointLocation"),
)  # fmt: skip

_BY_DOOR = {(door, known_option.name.lower()): known_option for known_option in OPTIONS for door in known_option.doors}


def option(door: str, name: str) -> Option | None:
    """Find a known option of a reader or writer, in any case; None for an undocumented one.

    Example:
        >>> option(WRITE, "MERGESCHEMA").treatment
        <Fate.HONOURED: 'honoured'>
    """
    return _BY_DOOR.get((door, name.lower()))


def names(door: str) -> tuple[str, ...]:
    """All known options of a reader or writer."""
    return tuple(known_option.name for known_option in OPTIONS if door in known_option.doors)
