"""Where we give something else than delta-spark, and why; ``docs/concepts/differences.md`` says the same in its table.

A scenario says what delta-spark's documentation lets one expect; here stands what is found instead, with us or with
delta-spark itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_STRUCT = "struct<a:int,b:array<string>>"
_REFUSED = "Py4JJavaError"


@dataclass(frozen=True)
class Difference:
    """One difference, in the words of the documentation, and what is found where scenarios meet it.

    Attributes:
        method: the documented names. theirs, ours: what the two do. why: the reason.
        seen: ``module.scenario: what`` -> what is found with us, where that is not what is expected. found: the same of
        delta-spark.
    """

    method: str
    theirs: str
    ours: str
    why: str
    seen: Mapping[str, Any] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "a write of rows that were read from its own table",
        "the newest rows are written, whatever was committed since they were read",
        "the rows of the version that was read are written; if others than the program itself have changed the table "
        "since, the write is refused",
        "[what a sequential program may expect](the-cut.md#a-program-that-holds-rows)",
    ),
    Difference(
        "`DeltaTable.toDF`",
        "each query of a DataFrame reads the version that is then the newest, so two of them may disagree",
        "it reads the version that was newest when `toDF` was called",
        "what a DataFrame says must not change under its user",
        found={"opening.rows_are_those_of_the_call: the same DataFrame": 3},
    ),
    Difference(
        "`DeltaTable.toDF`",
        "a column that is NOT NULL is not nullable in the schema of a DataFrame",
        "it is nullable there; every write holds the rule",
        "by Spark's public API files are read with nullable columns only",
        seen={
            "creating.a_table_is_made_at_a_location: its columns": [
                ["id", "bigint", True, "the number"],
                ["x", "int", True, None],
                ["s", _STRUCT, True, None],
            ],
            "creating.columns_come_from_a_schema: a StructType": [
                ["key", "string", True, "k"],
                ["value", "bigint", True, None],
            ],
            "creating.columns_come_from_a_schema: a list, and one more": [
                ["key", "string", True, "k"],
                ["value", "bigint", True, None],
                ["more", "date", True, None],
            ],
        },
    ),
    Difference(
        "`DeltaTable.forPath`",
        "`hadoopConf` takes any setting of a file system",
        "settings that say who asks a bucket, and where, reach both sides; those that only Spark could follow, such as "
        "encryption, are refused by name (`NOT_BUILT_YET`)",
        "a table's log and its rows are written by two clients, which must do the same",
    ),
    Difference(
        "`DeltaTable.createOrReplace`",
        "at a location, without a name, it refuses other columns than the table's",
        "the table is replaced",
        "that is what it is documented to do, and what it does to a table with a name",
        found={"creating.what_is_there_counts: replaced at a location by other columns": "AnalysisException"},
    ),
    Difference(
        "`DeltaTable.convertToDelta`",
        "where there is no folder it is a `Py4JJavaError`",
        "it is an `AnalysisException`",
        "no error is a stack of Java's",
        found={"upkeep.a_folder_of_parquet_becomes_a_table: no folder": _REFUSED},
    ),
    Difference(
        "`DeltaMergeBuilder.execute`",
        "an expression that cannot be resolved is a `Py4JJavaError`, since PySpark 4.2 has no text for Delta's error",
        "it is an `AnalysisException` that names the columns",
        "no error is a stack of Java's",
        found={
            f"merging.wrong_merges_are_told: {what}": _REFUSED
            for what in (
                "an unknown column in the condition",
                "an unknown column in a value",
                "the source where it has no row",
                "the table where it has no row",
            )
        },
    ),
    Difference(
        "`DeltaOptimizeBuilder.executeZOrderBy`",
        "files are written again each time",
        "files that lie in this order already stay",
        "there is nothing to gain",
        seen={
            "upkeep.rows_are_laid_in_z_order: a list, all of it again": [[1]],
            "upkeep.rows_are_laid_in_z_order: a tuple, once more": [[0]],
        },
    ),
    Difference(
        "`DeltaOptimizeBuilder.executeCompaction`, `DeltaOptimizeBuilder.executeZOrderBy`",
        "all metrics have values",
        "those that are not known here are NULL, such as `totalScheduledTasks`",
        "they are numbers of delta-spark's own way to do it",
    ),
    Difference(
        "`DeltaTable.clone`, `DeltaTable.cloneAtVersion`, `DeltaTable.cloneAtTimestamp`",
        "a deep clone is refused, though it is the default",
        "it is made",
        "it is what the method is documented to do",
        found={
            "versions.a_clone_is_deep_and_without_properties_by_default: deep": "IllegalArgumentException",
        },
    ),
    Difference(
        "`DeltaTable.clone`, `DeltaTable.cloneAtVersion`, `DeltaTable.cloneAtTimestamp`",
        "it gives an object of Java's; a table that has rows is not replaced",
        "it gives a `DeltaTable`, and `replace` replaces any table",
        "it is what the method is documented to do",
        found={
            "versions.a_shallow_clone_is_made: what it gives": False,
            "versions.a_shallow_clone_is_made: in the place of one with rows": "Exception",
        },
    ),
    Difference(
        "`DeltaTable.detail`",
        "a new table has the protocol 1, 2 and no property",
        "it has `delta.enableDeletionVectors`, and the protocol 3, 7 that this needs",
        "without deletion vectors there is no row-level concurrency",
        seen={
            "versions.the_detail_tells_what_the_table_is: properties": {"delta.enableDeletionVectors": "true"},
            "versions.the_detail_tells_what_the_table_is: the protocol": [3, 7],
            "versions.the_detail_tells_what_the_table_is: features": ["appendOnly", "deletionVectors", "invariants"],
        },
    ),
    Difference(
        "`DeltaTable.detail`",
        "a local `location` is `file:/path`",
        "it is `file:///path`",
        "it is the URL by which every store is opened here",
        seen={"versions.the_detail_tells_what_the_table_is: the scheme of the location": "file://"},
    ),
    Difference(
        "`DeltaTable.history`",
        "a write that makes its table is a blind append",
        "it is none",
        "of two that make one table only one may win, so it is judged as a change of what the table is",
        seen={"versions.the_history_tells_of_every_commit: blind appends": [False, False, False, True, False]},
    ),
    Difference(
        "`DeltaTable.addFeatureSupport`",
        "a feature that the table has is added by a commit that changes nothing",
        "nothing is committed",
        "every change of the protocol makes other writers fail",
        found={"protocols.a_feature_is_added: what is there": 1},
    ),
    Difference(
        "every method",
        "an error has a condition of Delta's, such as `DELTA_METADATA_MISMATCH`",
        "the condition may be another one; the classes by which it is caught are the same",
        "the conditions here are those of the page of errors, the same for SQL, Python and the command line",
    ),
)
