"""Where a stream of ours gives another answer than delta-spark's, and why.

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
            "feed.changes_from_a_version: both": "not begun: DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            "writing.what_is_refused_at_the_start: no path": "INVALID_OPTION",
            "writing.what_is_refused_at_the_start: no checkpoint": "INVALID_OPTION",
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
        "a table's files are those in its log",
        seen={
            "reading.files_that_are_left_out_by_name: one": "not begun: INVALID_OPTION",
            "reading.files_that_are_left_out_by_name: no pattern": "not begun: INVALID_OPTION",
            "feed.files_of_a_feed_that_are_left_out_by_name: rows": "not begun: INVALID_OPTION",
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
        "a column of VARIANT, GEOMETRY or GEOGRAPHY",
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
            "changes.a_row_is_deleted_that_has_just_come: ignoreDeletes": [0, 1, 15, 16, 2],
            "changes.a_row_is_deleted_that_has_just_come: ignoreChanges": [0, 1, 15, 16, 2],
            "changes.a_running_query_meets_deleted_rows: ignoreFileDeletion, then": [],
            "changes.a_running_query_meets_deleted_rows: ignoreChanges, then": [],
            "statements.each_statement: UPDATE, vectors true, ignoreChanges": [[1, 9]],
            "statements.each_statement: DELETE of a row, vectors true, ignoreChanges": [],
        },
    ),
    Difference(
        "a commit that changes metadata",
        "a change of columns stops the query, and a change that leaves them alone does not",
        "each stops the query (`DELTA_SCHEMA_CHANGED_WITH_VERSION`); it goes on when the table is read anew",
        "one rule for all changes, and the error names what changed",
        seen={
            "schemas.a_column_is_added: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_may_be_null: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_may_be_null: a new DataFrame": [None],
            "schemas.a_type_is_widened: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_type_is_widened: a new DataFrame": [3000000000],
            "schemas.a_type_is_widened_under_tracking: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_type_is_widened_under_tracking: a new DataFrame": [3000000000],
            "schemas.changes_that_leave_the_columns_alone: ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')": [
                [],
                "DELTA_SCHEMA_CHANGED_WITH_VERSION",
            ],
            "schemas.changes_that_leave_the_columns_alone: ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b'), again": [1],
            "schemas.changes_that_leave_the_columns_alone: ALTER TABLE {t} ALTER COLUMN id COMMENT 'a number'": [
                [],
                "DELTA_SCHEMA_CHANGED_WITH_VERSION",
            ],
            "schemas.changes_that_leave_the_columns_alone: ALTER TABLE {t} ALTER COLUMN id COMMENT 'a number', again": [
                1
            ],
            "schemas.changes_that_leave_the_columns_alone: ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)": [
                [],
                "DELTA_SCHEMA_CHANGED_WITH_VERSION",
            ],
            "schemas.changes_that_leave_the_columns_alone: "
            "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0), again": [1],
            "feed.columns_change_while_a_feed_is_read: running": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
        },
    ),
    Difference(
        "a column that is dropped, renamed, or replaced by one of another type",
        "the stream never goes on without `schemaTrackingLocation`",
        "it goes on with the new columns; only rows that cannot be read as these stop it for good",
        "no row is lost, and its user has read the table anew",
        seen={
            "schemas.a_column_is_dropped: running": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_is_dropped: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_is_dropped: a new DataFrame": [1],
            "schemas.a_column_is_renamed: running": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_is_renamed: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_column_is_renamed: a new DataFrame": [[1, 1]],
            "schemas.changes_under_the_unsafe_setting: running": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.changes_under_the_unsafe_setting: the same DataFrame": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.changes_under_the_unsafe_setting: a new DataFrame": [1],
            "schemas.a_table_is_given_names_for_its_columns: renamed": [],
            "schemas.changes_between_two_runs: ALTER TABLE {t} RENAME COLUMN v TO w": [[3, 3, 3]],
            "schemas.changes_between_two_runs: ALTER TABLE {t} RENAME COLUMN v TO w, again": [],
            "schemas.changes_between_two_runs: ALTER TABLE {t} RENAME COLUMN v TO w, from the beginning": [
                [0, 0, None],
                [1, 1, 1],
                [2, 2, 2],
                [3, 3, 3],
            ],
            "schemas.changes_between_two_runs: ALTER TABLE {t} DROP COLUMN w": [[4, 4]],
            "schemas.changes_between_two_runs: ALTER TABLE {t} DROP COLUMN w, again": [],
            "schemas.changes_between_two_runs: ALTER TABLE {t} DROP COLUMN w, from the beginning": [
                [0, None],
                [1, 1],
                [2, 2],
                [3, 3],
                [4, 4],
            ],
            "schemas.a_table_is_overwritten_with_other_columns: then": [["5", 1], ["6", 1]],
            "schemas.a_table_is_overwritten_with_other_columns: again": [],
        },
    ),
    Difference(
        "`schemaTrackingLocation`",
        "lies below the checkpoint; behind a column that was dropped or renamed a setting must let the stream go on",
        "any folder; the stream goes on when it is started again",
        "to start it again is to say that it may go on",
        seen={
            "schemas.a_log_of_schemas: elsewhere": [[0, 0]],
            "schemas.a_log_of_schemas: renamed, run 0": [[], "DELTA_SCHEMA_CHANGED_WITH_VERSION"],
            "schemas.a_log_of_schemas: renamed, run 1": [[1, 1]],
            "schemas.a_log_of_schemas: renamed, run 2": [],
        },
    ),
    Difference(
        "a batch of a feed",
        "takes files of an append one by one, and an offset may lie behind a commit's last file",
        "takes whole versions, and an offset lies before a version",
        "the changes of a commit belong together",
        seen={
            "feed.rows_that_are_there_are_inserts: offset then": [6, -1, False],
            "feed.how_many_changes_a_batch_takes: batches, {'maxFilesPerTrigger': 1}": [4, 1, 1, 4, 4, 1],
            "feed.how_many_changes_a_batch_takes: batches, {'maxFilesPerTrigger': 5}": [10, 5],
            "feed.how_many_changes_a_batch_takes: batches, {'maxBytesPerTrigger': '1b'}": [4, 1, 1, 4, 4, 1],
        },
    ),
    Difference(
        "`failOnDataLoss` = `false` where the version at which the stream began is gone, too",
        "fails (`DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE`)",
        "leaves out what is gone, and goes on",
        "that is what the option asks for",
        seen={
            "losses.commits_that_are_gone: all that was read, false": [3, 4],
        },
    ),
    Difference(
        "a commit of a stream that makes its table",
        "is a blind append",
        "is none",
        "of two that make one table only one may win, so it is judged as a change of what the table is",
        seen={
            "writing.append: history": [
                [
                    "STREAMING UPDATE",
                    {"epochId": "0", "outputMode": "Append"},
                    {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "1"},
                    False,
                    None,
                ],
                [
                    "STREAMING UPDATE",
                    {"epochId": "1", "outputMode": "Append"},
                    {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "1"},
                    True,
                    None,
                ],
                [
                    "STREAMING UPDATE",
                    {"epochId": "2", "outputMode": "Append"},
                    {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "1"},
                    True,
                    None,
                ],
            ],
            "writing.a_stream_that_reads_its_own_table: is blind": [False, False],
        },
    ),
    Difference(
        "an option that a sink does not know, such as `replaceWhere`",
        "passed over",
        "refused (`INVALID_OPTION`)",
        "what is asked for is done, or said not to be",
        seen={
            "writing.options_of_a_sink: replaceWhere": "INVALID_OPTION",
            "writing.options_of_a_sink: rows": [[1, "a"], [1, None], [2, "b"], [2, None], [None, "a"], [None, "b"]],
        },
    ),
    Difference(
        "rows with a column of VOID",
        "refused by a sink (`DELTA_NULL_SCHEMA_IN_STREAMING_WRITE`)",
        "written",
        "a write of a DataFrame takes them too",
        seen={
            "writing.columns_of_no_type: rows with one": "",
            "writing.columns_of_no_type: a new table": "",
        },
    ),
    Difference(
        "a value that does not fit, under `spark.sql.storeAssignmentPolicy` = `LEGACY`",
        "is stored as another one, or NULL",
        "types must match, else the batch fails (`DELTA_SCHEMA_MISMATCH`)",
        "no value is lost silently",
        seen={
            "casts.numbers_that_do_not_fit: LEGACY": [[["v", "int"]], ["17"], ["DELTA_SCHEMA_MISMATCH"]],
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
            "losses.commits_that_are_gone: all that was read, true": [[], "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
            "losses.a_file_that_is_gone: then": [[], "DELTA_DATA_FILE_MISSING"],
            "losses.a_file_that_is_gone: forgiven": [[], "DELTA_DATA_FILE_MISSING"],
            "losses.a_checkpoint_of_the_log_is_gone: a commit too": [[], "DELTA_LOG_CORRUPT"],
            "losses.a_snapshot_is_gone_that_was_read_in_part: then": [[], "DELTA_MISSING_FILES_UNEXPECTED_VERSION"],
            "losses.offsets_that_are_damaged: another source version": [
                True,
                [[], "DELTA_INVALID_SOURCE_OFFSET_FORMAT"],
            ],
            "losses.offsets_that_are_damaged: none": [True, [[], "DELTA_INVALID_SOURCE_OFFSET_FORMAT"]],
            "losses.offsets_that_are_damaged: ahead of the table": [True, [[], "DELTA_INVALID_SOURCE_OFFSET_FORMAT"]],
            "losses.offsets_that_are_damaged: no JSON": [
                True,
                [
                    [],
                    "StreamingQueryException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] "
                    "Failed when Python streaming data s",
                ],
            ],
            "writing.partitions: other partitions": "INVALID_OPTION",
            "writing.partitions: more of them": "INVALID_OPTION",
            "writing.partitions: another type": "DELTA_SCHEMA_MISMATCH",
            "writing.every_column_is_a_partition_column: refused": "INVALID_OPTION",
            "writing.columns_change_below_a_sink: RENAME-false": ["DELTA_SCHEMA_MISMATCH", [[1, None]]],
            "writing.columns_change_below_a_sink: DROP-false": ["DELTA_SCHEMA_MISMATCH", [None]],
            "writing.tables_by_name: of other columns": "DELTA_SCHEMA_MISMATCH",
            "writing.tables_by_name: of other partitions": "INVALID_OPTION",
            "writing.tables_by_name: a view": "TABLE_OR_VIEW_ALREADY_EXISTS",
            "writing.tables_by_name: of another format": "TABLE_OR_VIEW_ALREADY_EXISTS",
            "writing.options_of_a_sink: not merged": "DELTA_SCHEMA_MISMATCH",
            "casts.other_types: DATE '2024-07-25' AS v, 'no date' AS v": [
                [["v", "date"]],
                ["2024-07-25"],
                ["EXECUTION_FAILED"],
            ],
            "casts.other_types: true AS v, value AS v": [[["v", "boolean"]], ["True"], ["DELTA_SCHEMA_MISMATCH"]],
            "casts.numbers_that_do_not_fit: STRICT": [[["v", "int"]], ["17"], ["DELTA_SCHEMA_MISMATCH"]],
            "casts.numbers_that_do_not_fit: ANSI": [[["v", "int"]], ["17"], ["EXECUTION_FAILED"]],
            "casts.other_types_within_others: array for struct": [
                [["v", "struct<a:int>"]],
                ["Row(a=17)"],
                ["DELTA_SCHEMA_MISMATCH"],
            ],
            "casts.other_types_within_others: more fields": [
                [["v", "struct<a:int>"]],
                ["Row(a=17)"],
                ["DELTA_SCHEMA_MISMATCH"],
            ],
            "casts.columns_that_are_more_or_fewer: more, not merged": [["", "DELTA_SCHEMA_MISMATCH"], ["1.000"]],
        },
    ),
)
