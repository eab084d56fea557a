"""Options of readers and writers: how each one that Delta Lake or Spark documents is treated.

Pure. Guarantee: no option is silently ignored; `anabranch.commands.options` warns of one that is not listed here.

Source: Delta Lake documentation, the options that delta-spark 4.4 knows, and Spark's options of file sources.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._protocol.settings import Fate

READ, CHANGES, STREAM, WRITE = "reading", "reading the changes", "reading a stream", "writing"


@dataclass(frozen=True)
class Option:
    """A known option: where it is taken, how it is treated there, and why.

    ``harmless`` is a value, in lower case, with which a refused option requests nothing.
    """

    name: str
    doors: tuple[str, ...]
    fate: Fate
    why: str
    harmless: str | None = None


def _honoured(door: tuple[str, ...], why: str, *names: str) -> tuple[Option, ...]:
    return tuple(Option(name, door, Fate.HONOURED, why) for name in names)


def _harmless(door: tuple[str, ...], why: str, *names: str) -> tuple[Option, ...]:
    return tuple(Option(name, door, Fate.HARMLESS, why) for name in names)


def _refused(door: tuple[str, ...], why: str, *names: str, harmless: str | None = None) -> tuple[Option, ...]:
    return tuple(Option(name, door, Fate.REFUSED, why, harmless) for name in names)


_READS, _WRITES, _CHANGES, _STREAMS = (READ, CHANGES), (WRITE,), (CHANGES,), (STREAM,)
_ALL = (READ, CHANGES, STREAM, WRITE)

OPTIONS: tuple[Option, ...] = (
    *_honoured(_ALL, "where the table lies", "path"),
    *_honoured((READ,), "the version that is read", "versionAsOf", "timestampAsOf"),
    *_honoured((READ,), "shows the ids of rows", "rowIds"),
    *_honoured(_READS, "reads the changes", "readChangeFeed", "readChangeData"),
    *_honoured(_CHANGES, "the range of changes", "startingVersion", "endingVersion", "startingTimestamp",
               "endingTimestamp"),
    *_honoured(_WRITES, "which rows an overwrite replaces", "replaceWhere", "partitionOverwriteMode"),
    *_honoured(_WRITES, "what rows may do to the columns", "mergeSchema", "overwriteSchema"),
    *_honoured(_WRITES, "stands in the commit", "userMetadata"),
    *_honoured(_WRITES, "a write that was committed before is not done again", "txnAppId", "txnVersion"),
    *_honoured(_WRITES, "how the files are written", "optimizeWrite", "maxRecordsPerFile", "compression"),
    *_honoured(_WRITES, "of which version of the table itself the rows are", "readsTarget"),
    *_honoured(_STREAMS, "shows changes instead of added rows", "readChangeFeed", "readChangeData"),
    *_honoured(_STREAMS, "where the stream begins", "startingVersion", "startingTimestamp"),
    *_honoured(_STREAMS, "how much a batch takes", "maxFilesPerTrigger", "maxBytesPerTrigger"),
    *_honoured(_STREAMS, "which commits are left out", "ignoreDeletes", "ignoreChanges", "skipChangeCommits",
               "ignoreFileDeletion", "failOnDataLoss"),
    *_honoured(_STREAMS, "the rows that are there come in one batch, so that none is late", "withEventTimeOrder"),
    *_refused(_STREAMS, "a stream has no end", "endingVersion", "endingTimestamp"),
    *_refused(_STREAMS, "a stream begins at startingVersion or startingTimestamp", "versionAsOf", "timestampAsOf"),
    *_refused((READ,), "it goes with readChangeFeed = true", "startingVersion", "endingVersion", "startingTimestamp",
              "endingTimestamp"),
    *_refused(_CHANGES, "a range of changes is said by startingVersion and endingVersion", "versionAsOf",
              "timestampAsOf"),
    *_refused(_READS, "a table's files are those that its log names", "pathGlobFilter", "recursiveFileLookup",
              "modifiedBefore", "modifiedAfter", "basePath"),
    *_refused(_READS, "a file that is missing or damaged is an error", "ignoreMissingFiles", "ignoreCorruptFiles",
              harmless="false"),
    *_refused(_WRITES, "every write says that it changes data", "dataChange", harmless="true"),
    *_refused(_WRITES, "it is not built yet; say replaceWhere, or MERGE", "replaceOn", "replaceUsing", "targetAlias"),
    *_refused(_WRITES, "NULL is a partition as any other", "useNullIntolerantEqualityWithDPO", harmless="false"),
    *_refused(_WRITES, "partition values stand in the log only", "writePartitionColumns", harmless="false"),
    *_refused(_WRITES, "files are written in the first version of Parquet's pages", "parquet.writer.version",
              harmless="v1"),
    *_refused(_WRITES, "timestamps are written as microseconds, so that files have their statistics",
              "spark.sql.parquet.outputTimestampType", harmless="timestamp_micros"),
    *_harmless(_READS, "a table has one schema, whatever its files have", "mergeSchema"),
    *_refused(_STREAMS, "a table's files are those that its log names", "excludeRegex"),
    *_honoured(_STREAMS, "rows from before a change of columns are read with the columns from before it",
               "schemaTrackingLocation", "schemaLocation"),
    *_refused(_STREAMS, "each source takes a schemaTrackingLocation of its own", "streamingSourceTrackingId"),
    *_harmless(_STREAMS, "a stream that is started again goes on with the new columns anyway",
               "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"),
    *_harmless(_STREAMS, "a query's own, and none of its source", "queryName", "checkpointLocation"),
    *_harmless((READ, CHANGES, WRITE), "it is an option of streams", "maxFilesPerTrigger",
               "maxBytesPerTrigger", "ignoreFileDeletion", "ignoreChanges", "ignoreDeletes", "skipChangeCommits",
               "failOnDataLoss", "excludeRegex", "schemaTrackingLocation", "schemaLocation",
               "streamingSourceTrackingId", "allowSourceColumnRename", "allowSourceColumnDrop",
               "allowSourceColumnTypeChange", "withEventTimeOrder", "queryName", "checkpointLocation"),
)  # fmt: skip

_BY_DOOR = {(door, each.name.lower()): each for each in OPTIONS for door in each.doors}


def option(door: str, name: str) -> Option | None:
    """A known option of a reader or writer, in any case; None for one that is not documented.

    Example:
        >>> option(WRITE, "MERGESCHEMA").fate
        <Fate.HONOURED: 'honoured'>
    """
    return _BY_DOOR.get((door, name.lower()))


def names(door: str) -> tuple[str, ...]:
    """All known options of a reader or writer."""
    return tuple(each.name for each in OPTIONS if door in each.doors)
