"""Why a stream that reads a table stops."""

from __future__ import annotations

from anabranch.errors.tables import TableError, VersionNotFound


class StreamStopped(TableError):
    """A stream cannot continue: each subclass states the version, the reason and the remedy."""

    condition = "DELTA_STREAM_STOPPED"
    sql_state = "KD002"
    template = "The stream that reads the table at {table} stops at version {version}."


class StreamMetadataChanged(StreamStopped):
    """The metadata of the table changed while a stream read it; a restarted stream continues with the new metadata."""

    condition = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    template = (
        "Detected schema change in version {version}: the metadata of the table at {table} changed while a stream read "
        "it ({changed}). Read the table anew by readStream, and start the query again: it goes on with the new "
        "metadata, and no row is lost or shown twice."
    )


class StreamSchemaIncompatible(StreamStopped):
    """Rows that a stream has yet to read were written with columns that do not fit the table's present columns."""

    condition = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    template = (
        "Detected schema change in version {version}: the stream that reads the table at {table} has yet to read rows "
        "from before it, and the columns changed so that these rows cannot be read as the columns are now ({reason}). "
        "Begin anew with another checkpoint, and startingVersion = {version} or later."
    )


class StreamDeletes(StreamStopped):
    """A commit deleted rows, which a stream of appended rows cannot show."""

    condition = "DELTA_SOURCE_IGNORE_DELETE"
    template = (
        "Detected deleted data (for example {file}) from streaming source at version {version} ({operation}) of the "
        "table at {table}. This is currently not supported: a stream shows appended rows only. Start the query again "
        "on its checkpoint with the option ignoreDeletes or skipChangeCommits set to 'true', which leaves deletes out. "
        "Where the table records its changes, readChangeFeed with another checkpoint shows them."
    )


class StreamChanges(StreamStopped):
    """A commit changed rows, which a stream of appended rows cannot show."""

    condition = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    template = (
        "Detected a data update (for example {file}) in the source table at version {version} ({operation}) of the "
        "table at {table}. This is currently not supported: a stream shows appended rows only. Start the query again "
        "on its checkpoint with the option skipChangeCommits set to 'true', which leaves such commits out, or "
        "ignoreChanges, which shows the rows that they wrote. Where the table records its changes, readChangeFeed with "
        "another checkpoint shows them."
    )


class StreamTableReplaced(StreamStopped):
    """A stream's checkpoint belongs to another table than the one that is now at the path."""

    condition = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    sql_state = "55019"
    template = (
        "The streaming query was reading from an unexpected Delta table: at version {version} it read another one than "
        "the one that is now at {table}, whose id was {expected} and is {found}. The table was dropped and made again, "
        "or the checkpoint is of another table. Begin anew with another checkpoint."
    )


class InvalidStreamOffset(StreamStopped):
    """The offset in a stream's checkpoint is damaged, or does not belong to this table's history."""

    condition = "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
    sql_state = "42K0T"
    template = (
        "The stream that reads the table at {table} cannot begin where its checkpoint says, {offset}: {reason} "
        "Begin anew with another checkpoint."
    )


class StreamVersionsLost(VersionNotFound):
    """Versions that a stream has yet to read are gone."""

    condition = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    template = (
        "Delta stream cannot resume from version {version} of the table at {table}, whose commit was cleaned up; "
        "versions {earliest} to {latest} are there. Rows are lost to this stream. Begin anew with another checkpoint, "
        "or set the option failOnDataLoss to 'false' to go on at version {earliest}."
    )
