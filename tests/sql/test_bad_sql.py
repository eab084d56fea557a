"""Bad SQL, statement by statement: which error it is, at which word, with nothing written and no frame of Java's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors
from tests.support import corpus
from tests.support.raw_logs import listing
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark

SYNTAX, UNRESOLVED = "PARSE_SYNTAX_ERROR", "UNRESOLVED_COLUMN.WITH_SUGGESTION"
E = errors

NOT_IDENTITY = "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
BAD: list[tuple[str, type[errors.AnabranchError], str, str]] = [
    # wrong clause order, and words that are none
    ("SELEC id FROM @a", E.SqlSyntaxError, SYNTAX, "SELEC"),
    ("SELECT id FROM @a LIMIT 1 WHERE id = 1", E.SqlSyntaxError, SYNTAX, "WHERE"),
    ("SELECT id WHERE id = 1 FROM @a", E.SqlSyntaxError, SYNTAX, "FROM"),
    ("SELECT id, FROM @a WHERE", E.SqlSyntaxError, SYNTAX, ""),
    ("SELECT (id FROM @a", E.SqlSyntaxError, SYNTAX, ""),
    ("SELECT 'abc FROM @a", E.SqlSyntaxError, SYNTAX, ""),
    ("DELETE @a", E.SqlSyntaxError, SYNTAX, ""),
    ("DELETE FROM @a WHERE", E.SqlSyntaxError, SYNTAX, ""),
    ("DELETE FROM @a WHERE id = 1 LIMIT 1", E.UnreadableExpression, SYNTAX, "LIMIT"),
    ("DELETE FROM @a; DELETE FROM @b", E.SqlSyntaxError, SYNTAX, ";"),
    ("UPDATE @a WHERE id = 1 SET s = 'x'", E.SqlSyntaxError, SYNTAX, "WHERE"),
    ("UPDATE @a SET s 'x'", E.SqlSyntaxError, SYNTAX, "'x'"),
    ("INSERT @a VALUES (1, 'x', NULL, NULL)", E.SqlSyntaxError, SYNTAX, ""),
    ("INSERT INTO @a VALUES (1, 'x', NULL, NULL) (id)", E.SqlSyntaxError, SYNTAX, "("),
    ("MERGE INTO @a t USING @b s WHEN MATCHED THEN DELETE", E.SqlSyntaxError, SYNTAX, "WHEN"),
    ("MERGE INTO @a t USING @b s ON t.id = s.id", E.SqlSyntaxError, SYNTAX, ""),
    ("MERGE INTO @a t USING @b s ON t.id = s.id WHEN NOT MATCHED THEN DELETE", E.SqlSyntaxError, SYNTAX, "DELETE"),
    ("CREATE TABLE @c AS SELECT 1 AS id PARTITIONED BY (id)", E.SqlSyntaxError, SYNTAX, "PARTITIONED"),
    ("CREATE TABLE @c (id NUMBER)", E.SqlSyntaxError, SYNTAX, "NUMBER"),
    ("CREATE TABLE @c (id INT) COMMENT 'a' COMMENT 'b'", E.SqlSyntaxError, SYNTAX, "COMMENT"),
    ("ALTER TABLE @a ADD COLUMN", E.SqlSyntaxError, SYNTAX, ""),
    ("ALTER TABLE @a FROB", E.SqlSyntaxError, SYNTAX, "FROB"),
    ("ALTER TABLE @a ALTER COLUMN id TYPE", E.SqlSyntaxError, SYNTAX, ""),
    ("OPTIMIZE @a ZORDER (id)", E.SqlSyntaxError, SYNTAX, "ZORDER"),
    ("VACUUM @a RETAIN 1 DAYS", E.SqlSyntaxError, SYNTAX, "DAYS"),
    ("RESTORE TABLE @a", E.SqlSyntaxError, SYNTAX, ""),
    ("DESCRIBE HISTORY @a LIMIT x", E.SqlSyntaxError, SYNTAX, "x"),
    # transactions of several statements
    ("BEGIN", E.TransactionStatement, "UNSUPPORTED_TRANSACTION_STATEMENT", "BEGIN"),
    ("COMMIT", E.NotInTransaction, "NOT_SUPPORTED_IN_TRANSACTION", ""),
    ("ROLLBACK WORK", E.NotInTransaction, "NOT_SUPPORTED_IN_TRANSACTION", ""),
    ("BEGIN ATOMIC IF true THEN DELETE FROM @b; END IF; END", E.NotBuilt, "NOT_BUILT_YET", ""),
    ("BEGIN DELETE FROM @a; DELETE FROM @b; END", E.TransactionStatement, "", "BEGIN"),
    # names
    ("SELECT idd FROM @a", E.SqlAnalysisError, UNRESOLVED, "idd"),
    ("SELECT a.nope FROM @a a", E.SqlAnalysisError, UNRESOLVED, "a.nope"),
    ("SELECT id FROM @a, @b", E.SqlAnalysisError, "AMBIGUOUS_REFERENCE", "id"),
    ("SELECT nope(id) FROM @a", E.SqlAnalysisError, "UNRESOLVED_ROUTINE", "nope(id)"),
    ("SELECT id FROM @a WHERE id IN (SELECT nope FROM @b)", E.SqlAnalysisError, UNRESOLVED, "nope"),
    ("SELECT * FROM @none", E.NotATable, "DELTA_TABLE_NOT_FOUND", ""),
    (
        "SELECT * FROM @a JOIN nowhere_at_all USING (id)",
        E.SqlAnalysisError,
        "TABLE_OR_VIEW_NOT_FOUND",
        "nowhere_at_all",
    ),
    ("OPTIMIZE nowhere_at_all", E.UnknownTable, "TABLE_OR_VIEW_NOT_FOUND", "nowhere_at_all"),
    ("DELETE FROM @a WHERE idd = 1", E.InvalidCondition, UNRESOLVED, "idd"),
    ("DELETE FROM @a WHERE id IN (SELECT nope FROM @b)", E.InvalidCondition, UNRESOLVED, "nope"),
    ("UPDATE @a SET idd = 1", E.UnknownColumn, UNRESOLVED, "idd"),
    ("UPDATE @a SET n.z = 1", E.UnknownColumn, UNRESOLVED, "n.z"),
    ("UPDATE @a SET s = nope", E.InvalidCondition, UNRESOLVED, "nope"),
    ("UPDATE @a SET s = 'x', S = 'y'", E.InvalidOption, "INVALID_OPTION", "s"),
    ("INSERT INTO @a (id, nope) VALUES (1, 2)", E.UnknownColumn, UNRESOLVED, "nope"),
    ("INSERT INTO @a BY NAME SELECT 1 AS id, 2 AS nope", E.UnknownColumn, UNRESOLVED, "nope"),
    ("INSERT INTO @a SELECT nope, s, day, n FROM @a", E.SqlAnalysisError, UNRESOLVED, "nope"),
    ("INSERT INTO @a PARTITION (s = 'x') SELECT 1", E.InvalidOption, "INVALID_OPTION", "s"),
    ("MERGE INTO @a t USING @b o ON t.id = o.idd WHEN MATCHED THEN DELETE", E.InvalidCondition, UNRESOLVED, "o.idd"),
    (
        "MERGE INTO @a t USING @b s ON id = s.id WHEN MATCHED THEN DELETE",
        E.InvalidCondition,
        "AMBIGUOUS_REFERENCE",
        "id",
    ),
    (
        "MERGE INTO @a t USING @b s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1",
        E.UnknownColumn,
        UNRESOLVED,
        "nope",
    ),
    ("CREATE TABLE @c (id INT, ID INT)", E.InvalidOption, "INVALID_OPTION", "id"),
    ("CREATE TABLE @c (id INT) PARTITIONED BY (nope)", E.InvalidOption, "INVALID_OPTION", "nope"),
    ("CREATE TABLE @c (id INT) CLUSTER BY (nope)", E.InvalidOption, "INVALID_OPTION", "nope"),
    ("CREATE TABLE @c (id INT, g INT GENERATED ALWAYS AS (idd + 1))", E.RuleRefused, UNRESOLVED, "idd"),
    ("CREATE TABLE @c AS SELECT nope FROM @a", E.SqlAnalysisError, UNRESOLVED, "nope"),
    ("CREATE TABLE @a (id INT)", E.TableAlreadyExists, "DELTA_TABLE_ALREADY_EXISTS", ""),
    ("ALTER TABLE @a ALTER COLUMN nope COMMENT 'x'", E.UnknownColumn, UNRESOLVED, "nope"),
    ("ALTER TABLE @a RENAME COLUMN nope TO x", E.InvalidProperty, "DELTA_INVALID_PROPERTY", ""),
    ("ALTER TABLE @a ADD CONSTRAINT c CHECK (nope > 0)", E.RuleRefused, UNRESOLVED, "nope"),
    ("ALTER TABLE @a REPLACE COLUMNS (id BIGINT, other INT)", E.InvalidOption, "INVALID_OPTION", "other"),
    ("ALTER TABLE @a ALTER COLUMN s SYNC IDENTITY", E.InvalidOption, NOT_IDENTITY, "s"),
    ("OPTIMIZE @a ZORDER BY (nope)", E.InvalidOption, "INVALID_OPTION", "nope"),
    ("OPTIMIZE @a WHERE id = 1", E.InvalidCondition, "INVALID_CONDITION", "id"),
    ("DESCRIBE @a nope", E.UnknownColumn, UNRESOLVED, "nope"),
    # types and values
    ("SELECT id FROM @a WHERE id", E.SqlAnalysisError, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "id"),
    ("SELECT id + day FROM @a", E.SqlAnalysisError, "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "id + day"),
    ("SELECT id, count(*) FROM @a", E.SqlAnalysisError, "MISSING_GROUP_BY", ""),
    ("DELETE FROM @a WHERE id", E.InvalidCondition, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "id"),
    ("DELETE FROM @a WHERE nope(id)", E.InvalidCondition, "UNRESOLVED_ROUTINE", "nope"),
    ("DELETE FROM @a WHERE 1 / (id - 1) > 0", E.ExecutionFailed, "EXECUTION_FAILED", "1 / (id - 1) > 0"),
    ("UPDATE @a SET day = 1", E.SchemaMismatch, "DELTA_SCHEMA_MISMATCH", "day"),
    ("UPDATE @a SET n = 1", E.SchemaMismatch, "DELTA_SCHEMA_MISMATCH", "n"),
    ("UPDATE @a AS t SET s = (SELECT max(o.s) FROM @a AS o WHERE o.id = t.id)", E.NotBuilt, "NOT_BUILT_YET", ""),
    ("INSERT INTO @a VALUES (1)", E.SchemaMismatch, "DELTA_SCHEMA_MISMATCH", ""),
    ("INSERT INTO @a (id, day) VALUES (1, true)", E.SchemaMismatch, "DELTA_SCHEMA_MISMATCH", "day"),
    ("INSERT INTO @a (id) VALUES ('abc')", E.ExecutionFailed, "EXECUTION_FAILED", ""),
    ("ALTER TABLE @a ADD CONSTRAINT c CHECK (id)", E.ConstraintNotBoolean, "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", "c"),
    ("ALTER TABLE @a ADD CONSTRAINT c CHECK (id > 1)", E.ConstraintNotMet, "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "c"),
    ("ALTER TABLE @a ALTER COLUMN s TYPE INT", E.InvalidOption, "INVALID_OPTION", "s"),
    (
        "ALTER TABLE @a SET TBLPROPERTIES ('delta.appendOnly' = 'perhaps')",
        E.InvalidProperty,
        "DELTA_INVALID_PROPERTY",
        "'delta.appendOnly'",
    ),
    (
        "ALTER TABLE @a SET TBLPROPERTIES ('delta.isolationLevel' = 'Snapshot')",
        E.InvalidProperty,
        "DELTA_INVALID_PROPERTY",
        "'delta.isolationLevel'",
    ),
    (
        "ALTER TABLE @a SET TBLPROPERTIES ('delta.nosuch' = 'x')",
        E.InvalidProperty,
        "DELTA_INVALID_PROPERTY",
        "'delta.nosuch'",
    ),
    ("ALTER TABLE @a SET LOCATION '/elsewhere'", E.InvalidOption, "INVALID_OPTION", "'/elsewhere'"),
    ("ALTER TABLE @a DROP CONSTRAINT nope", E.InvalidOption, "INVALID_OPTION", "nope"),
    ("ALTER TABLE @a DROP FEATURE nope", E.FeatureNotDropped, "", "nope"),
    ("ALTER TABLE @a CLUSTER BY AUTO", E.InvalidOption, "INVALID_OPTION", "AUTO"),
    ("VACUUM @a RETAIN 0 HOURS", E.RetentionTooShort, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "0"),
    ("VACUUM @a RETAIN -1 HOURS", E.InvalidOption, "INVALID_OPTION", ""),
    ("RESTORE TABLE @a TO VERSION AS OF 99", E.VersionNotFound, "DELTA_VERSION_NOT_FOUND", "99"),
    ("SELECT * FROM @a VERSION AS OF 99", E.VersionNotFound, "DELTA_VERSION_NOT_FOUND", "99"),
    ("SELECT * FROM @a TIMESTAMP AS OF 'soon'", E.InvalidTimestamp, "DELTA_TIMESTAMP_INVALID", "'soon'"),
    ("SELECT * FROM @a TIMESTAMP AS OF '1999-01-01'", E.TimestampBeforeEarliestCommit, "", "'1999-01-01'"),
    ("GENERATE other FOR TABLE @a", E.InvalidOption, "INVALID_OPTION", "other"),
    ("SELECT id FROM @a WHERE id = :missing", E.SqlAnalysisError, "UNBOUND_SQL_PARAMETER", ":missing"),
    ("DELETE FROM @a WHERE id = :missing", E.InvalidCondition, "UNBOUND_SQL_PARAMETER", ":missing"),
]


def pointed(error: errors.AnabranchError) -> str | None:
    """The word above the carets; None where there are none."""
    shown = str(error.facts.get("excerpt") or "").splitlines()
    if not shown:
        return None
    line, carets = shown[-2:]
    return line[carets.index("^") : carets.rindex("^") + 1]


def difference(spark: SparkSession, folder: Path, case: tuple[str, type, str, str]) -> str | None:
    """How what a statement gives differs from what its line says."""
    statement, kind, condition, word = case
    text = corpus.placed(statement, folder)
    try:
        anabranch.sql(spark, text).collect()
    except PySparkException as error:
        found = error
    else:
        return f"{statement}: no error"
    if type(found) is not kind or not isinstance(found, errors.AnabranchError):
        return f"{statement}: {type(found).__name__} {str(found)[:300]}"
    said, at = str(found), pointed(found)
    problems = [
        f"condition {found.getCondition()}" if condition and found.getCondition() != condition else "",
        f"points at {at!r}" if at is None or (word and at != corpus.placed(word, folder)) else "",
        "no AnalysisException"
        if kind is not errors.ExecutionFailed and not isinstance(found, AnalysisException)
        else "",
        "an inner name" if re.search(r"__anabranch|_pyspark|`_`|anabranch_\d", said) else "",
        "frames of Java" if re.search(r"\bat (org|java|scala|py4j)\.|JVM|Traceback", said) else "",
    ]
    problems = [each for each in problems if each]
    return f"{statement}: {', '.join(problems)}\n    {said}" if problems else None


def test_a_bad_statement_is_the_error_that_its_line_says_at_its_word_and_writes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    anabranch.sql(spark, corpus.placed("CREATE TABLE @a (id BIGINT, s STRING, day DATE, n STRUCT<x: INT>)", tmp_path))
    anabranch.sql(spark, corpus.placed("INSERT INTO @a VALUES (1, 'x', DATE'2020-01-01', NULL)", tmp_path))
    anabranch.sql(spark, corpus.placed("CREATE TABLE @b AS SELECT 1L AS id, 2 AS w", tmp_path))
    before: Any = listing(tmp_path)
    wrong = [found for case in few_of(BAD, 45) if (found := difference(spark, tmp_path, case)) is not None]
    assert not wrong, "\n".join(["", *wrong])
    assert listing(tmp_path) == before
    with pytest.raises(errors.UnknownColumn) as misspelled:
        anabranch.sql(spark, f"UPDATE delta.`{tmp_path}/a` SET dya = NULL")
    assert misspelled.value.facts["columns"].startswith("day, ")
