"""Where a stream of ours gives another answer than delta-spark's, and why; and which cases are not played.

``docs/concepts/differences.md`` has the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One difference, in the words of the documentation, and what is found where scenarios meet it.

    Attributes:
        what: when it is met. theirs, ours: what the two do. why: the reason.
        seen: ``module.scenario: what`` -> what is found with us.
    """

    what: str
    theirs: str
    ours: str
    why: str
    seen: Mapping[str, Any] = field(default_factory=dict)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "an option or a schema that a stream does not take",
        "an error when the query starts, or a condition of its own",
        "refused when the DataFrame is made, most by `INVALID_OPTION`",
        "what cannot be done is said before anything begins",
        seen={
            "reading.what_is_no_table: no path": "not begun: INVALID_OPTION",
            "reading.a_schema_of_the_users: id BIGINT": "not begun: INVALID_OPTION",
            "reading.a_schema_of_the_users: id INT": "not begun: INVALID_OPTION",
            "reading.a_schema_of_the_users: a INT, b STRING": "not begun: INVALID_OPTION",
            "reading.options_of_a_read_that_ends: versionAsOf": "not begun: INVALID_OPTION",
            "reading.options_of_a_read_that_ends: timestampAsOf": "not begun: INVALID_OPTION",
            "reading.options_of_a_read_that_ends: path@v0": "not begun: DELTA_TABLE_NOT_FOUND",
            "starting.a_version: -1": "not begun: INVALID_OPTION",
            "starting.a_version: x": "not begun: INVALID_OPTION",
            "starting.a_time: not a time": "not begun: DELTA_TIMESTAMP_INVALID",
            "starting.a_version_and_a_time: both": "not begun: DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            "limits.limits_that_are_none: maxFilesPerTrigger 0": "not begun: INVALID_OPTION",
            "limits.limits_that_are_none: maxFilesPerTrigger -1": "not begun: INVALID_OPTION",
            "limits.limits_that_are_none: maxFilesPerTrigger string": "not begun: INVALID_OPTION",
            "limits.limits_that_are_none: maxBytesPerTrigger 0": "not begun: INVALID_OPTION",
            "limits.limits_that_are_none: maxBytesPerTrigger -1": "not begun: INVALID_OPTION",
            "limits.limits_that_are_none: maxBytesPerTrigger string": "not begun: INVALID_OPTION",
        },
    ),
    Difference(
        "a path without a table",
        "`DELTA_SCHEMA_NOT_SET`",
        "`DELTA_TABLE_NOT_FOUND`",
        "the condition is the same for every door",
        seen={
            "reading.what_is_no_table: empty": "not begun: DELTA_TABLE_NOT_FOUND",
            "reading.what_is_no_table: folder": "not begun: DELTA_TABLE_NOT_FOUND",
            "reading.what_is_no_table: files": "not begun: DELTA_TABLE_NOT_FOUND",
            "reading.what_is_no_table: none": "not begun: DELTA_TABLE_NOT_FOUND",
        },
    ),
    Difference(
        "`endingVersion`, `endingTimestamp`",
        "passed over",
        "refused (`INVALID_OPTION`)",
        "a stream has no end",
        seen={
            "reading.options_of_a_read_that_ends: endingVersion": "not begun: INVALID_OPTION",
            "reading.options_of_a_read_that_ends: endingTimestamp": "not begun: INVALID_OPTION",
        },
    ),
    Difference(
        "`excludeRegex`",
        "files whose paths match are left out",
        "refused (`INVALID_OPTION`)",
        "a table's files are those that its log names",
        seen={
            "reading.files_that_are_left_out_by_name: one": "not begun: INVALID_OPTION",
            "reading.files_that_are_left_out_by_name: no pattern": "not begun: INVALID_OPTION",
        },
    ),
    Difference(
        '``readStream.table("delta.`/path`")``',
        "refused",
        "reads the table",
        "it is a name as in SQL",
        seen={
            "reading.tables_by_name: by its path": [0, 1, 2],
        },
    ),
    Difference(
        "a column of VARIANT",
        "read",
        "refused (`UNSUPPORTED_TYPE`)",
        "Spark takes no such rows from a source in Python",
        seen={
            "reading.variants: rows": [[], "UNSUPPORTED_TYPE"],
        },
    ),
    Difference(
        "a commit in the middle of a batch that deletes or changes rows",
        "the query fails without the rows of the commits before it",
        "it shows these rows, and then fails",
        "started again with an option it goes on, and no row is lost",
        seen={
            "changes.a_delete_then_an_overwrite: nothing": [[1, 2, 3], "DELTA_SOURCE_IGNORE_DELETE"],
            "changes.a_delete_then_an_overwrite: ignoreDeletes": [[1, 2, 3, 4, 5], "DELTA_SOURCE_TABLE_IGNORE_CHANGES"],
            "changes.whole_files_are_deleted: nothing": [[0, 1, 2, 3], "DELTA_SOURCE_IGNORE_DELETE"],
            "changes.rows_are_marked_as_deleted: nothing": [[0, 1, 2, 3, 4], "DELTA_SOURCE_TABLE_IGNORE_CHANGES"],
            "changes.rows_of_one_file_are_deleted_twice: nothing": [
                [0, 1, 2, 3, 4, 5],
                "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            ],
            "changes.a_row_is_deleted_that_has_just_come: nothing": [
                [0, 1, 15, 16, 2],
                "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            ],
        },
    ),
    Difference(
        "rows that a deletion vector marks",
        "fail under `ignoreDeletes`; under `ignoreChanges` the other rows of the file are shown once more",
        "under both options nothing of the commit is shown",
        "the commit adds no rows",
        seen={
            "changes.rows_are_marked_as_deleted: ignoreDeletes": [0, 1, 10, 2, 3, 4],
            "changes.rows_are_marked_as_deleted: ignoreChanges": [0, 1, 10, 2, 3, 4],
            "changes.rows_of_one_file_are_deleted_twice: ignoreDeletes": [0, 1, 2, 3, 4, 5],
            "changes.rows_of_one_file_are_deleted_twice: ignoreChanges": [0, 1, 2, 3, 4, 5],
            "changes.rows_of_one_file_are_deleted_twice: skipChangeCommits": [
                [],
                "StreamingQueryException: Python worker failed to connect back. SQLSTATE: XXKST",
            ],
            "changes.a_row_is_deleted_that_has_just_come: ignoreDeletes": [0, 1, 15, 16, 2],
            "changes.a_row_is_deleted_that_has_just_come: ignoreChanges": [0, 1, 15, 16, 2],
            "changes.a_running_query_meets_deleted_rows: ignoreFileDeletion, then": [],
            "changes.a_running_query_meets_deleted_rows: ignoreChanges, then": [],
        },
    ),
    Difference(
        "other errors",
        "have delta-spark's conditions",
        "some have another, such as `DELTA_MISSING_FILES_UNEXPECTED_VERSION`",
        "the conditions are those of the page of errors, the same for every door",
        seen={
            "reading.a_protocol_that_nobody_reads: then": [[], "DELTA_UNSUPPORTED_FEATURE"],
            "starting.a_version: 0, gone": [[], "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
            "starting.a_checkpoint_knows_better: false, a new query": [[], "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
            "starting.a_checkpoint_knows_better: true, a new query": [[], "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
        },
    ),
)

_JVM = "it looks into objects of the JVM, which no user of Python has"
_BETWEEN = "it takes a commit away between two calls that Spark makes of a source, which only a test in the JVM can do"
_OFFSETS = "it tests a class of the JVM; what a checkpoint then has is seen by `losses` and by the offsets of `reading`"
_LOG_OF_SCHEMAS = "it is of the log of schemas, whose files are our own (`tests/streaming/test_schema_log.py`)"

NOT_PLAYED: Mapping[str, str] = {
    "DeltaSourceSuite: fail on missing trailing commit - trailing commit disappears …": _BETWEEN,
    "DeltaSourceSuite: fail on missing trailing commit - empty batch …": _BETWEEN,
    "DeltaSinkSuite: DeltaSink.catalogTable is correctly populated - catalog-based table": _JVM,
    "DeltaSinkSuite: DeltaSink.catalogTable is correctly populated - path-based table": _JVM,
    "DeltaSinkSuite: DeltaSink.deltaLog is not initialized in DeltaSink constructor": _JVM,
    "DeltaSinkSuite: DeltaSink rejects DataFrame with UDT containing NullType": "types of users are classes of the JVM",
    "DeltaSourceOffsetSuite: isInitialSnapshot serializes as isStartingVersion": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset deserialization": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset serialization": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset.validateOffsets": _OFFSETS,
    "DeltaSourceColumnMappingSuite: deltaLog snapshot should not be updated outside of the stream": _JVM,
    "DeltaSourceSchemaEvolutionSuite: every other case": _LOG_OF_SCHEMAS,
}
