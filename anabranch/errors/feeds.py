"""Why a change data feed cannot be read."""

from __future__ import annotations

from anabranch.errors.inputs import InputError
from anabranch.errors.tables import MissingDataFile, VersionNotFound


class NoChangeStart(InputError):
    """A change data feed is requested without a start."""

    condition = "DELTA_NO_START_FOR_CDC_READ"
    sql_state = "42601"
    template = "No startingVersion or startingTimestamp provided for CDC read: say where the changes of {table} begin."


class ChangeStartAfterLatest(VersionNotFound):
    """A change data feed is to begin after the newest version."""

    condition = "DELTA_CDC_START_VERSION_AFTER_LATEST"
    template = (
        "Start version {version} for change data feed exceeds the latest table version {latest}. The table is at "
        "{table}."
    )


class InvalidChangeRange(InputError):
    """The end of a change data feed lies before its start."""

    condition = "DELTA_INVALID_CDC_RANGE"
    sql_state = "22003"
    template = (
        "CDC range from start {start} to end {end} was invalid. End cannot be before start. The table is at {table}."
    )


class ChangeDataNotRecorded(InputError):
    """The change data feed was not enabled at some version of the range."""

    condition = "DELTA_MISSING_CHANGE_DATA"
    sql_state = "KD002"
    template = (
        "Error getting change data for range [{start} , {end}] as change data was not recorded for version [{version}] "
        "of the table at {table}. Choose versions after delta.enableChangeDataFeed = true was set; DESCRIBE HISTORY "
        "shows when."
    )


class ChangeSchemaChanged(InputError):
    """The columns changed within the range of a change data feed, and older rows do not fit them."""

    condition = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
    sql_state = "0AKDC"
    template = (
        "The changes of the table at {table} cannot be read from version {start} to version {end} with the columns of "
        "version {read_version}: version {version} has other columns ({reason}). Read the versions before and from "
        "{version} on apart."
    )


class ChangeSchemaDiffers(ChangeSchemaChanged):
    """A change data feed is read with columns that are neither those of its first version nor an extension of them."""

    condition = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    template = (
        "The changes of the table at {table} cannot be read from version {start} to version {end} with the columns of "
        "version {read_version}: version {version} has other columns ({reason}). Begin at the version that changed "
        "them, or compare two versions of the table."
    )


class ChangeFilesMissing(MissingDataFile):
    """A file with changes of a version is missing: the version is older than what a VACUUM retained."""

    condition = "DELTA_CHANGE_DATA_FILE_NOT_FOUND"
    template = (
        "The changes of version {version} of the table at {table} cannot be read: their file {file} is missing, "
        "since that version is older than what a VACUUM retained. Begin at a later version."
    )
