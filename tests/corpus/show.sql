CREATE TABLE @a (id BIGINT COMMENT 'key', day DATE, s STRUCT<x: INT>) USING delta PARTITIONED BY (day) COMMENT 'words' TBLPROPERTIES ('mine' = 'yes');
--> nothing
INSERT INTO @a VALUES (1, DATE'2020-01-01', NULL);
--> nothing
DESCRIBE @a;
--> rows [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"], ["day", "date", null], ["day", "date", null], ["id", "bigint", "key"], ["s", "struct<x:int>", null]]
DESC TABLE @a;
--> rows [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"], ["day", "date", null], ["day", "date", null], ["id", "bigint", "key"], ["s", "struct<x:int>", null]]
SHOW COLUMNS IN @a;
--> rows [["day"], ["id"], ["s"]]
SHOW COLUMNS FROM @a;
--> rows [["day"], ["id"], ["s"]]
SHOW TBLPROPERTIES @a ('mine');
--> rows [["mine", "yes"]]
DESCRIBE HISTORY @a;
--> columns ["version", "timestamp", "userId", "userName", "operation", "operationParameters", "job", "notebook", "clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "engineInfo"]
DESCRIBE HISTORY @a LIMIT 1;
--> columns ["version", "timestamp", "userId", "userName", "operation", "operationParameters", "job", "notebook", "clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "engineInfo"]
DESCRIBE DETAIL @a;
--> columns ["format", "id", "name", "description", "location", "createdAt", "lastModified", "partitionColumns", "clusteringColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion", "minWriterVersion", "tableFeatures"]
DESCRIBE EXTENDED @a;
--> columns ["col_name", "data_type", "comment"]
SHOW TBLPROPERTIES @a;
--> columns ["key", "value"]
SHOW CREATE TABLE @a;
--> columns ["createtab_stmt"]
--| error DELTA_OPERATION_NOT_ALLOWED # it shows no such statement for a table at a path
DESCRIBE @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
DESCRIBE HISTORY @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_TABLE_ONLY_OPERATION # the same refusal under a name of its own
DESCRIBE DETAIL @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
SHOW COLUMNS IN @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
DESCRIBE HISTORY @a LIMIT many;
--> error PARSE_SYNTAX_ERROR
CREATE TEMPORARY VIEW corpus_view AS SELECT id FROM @a;
--> nothing
SELECT * FROM corpus_view;
--> rows [[1]]
CREATE OR REPLACE TEMPORARY VIEW corpus_view (k) AS SELECT id + 1 FROM @a;
--> nothing
SELECT k FROM corpus_view;
--> rows [[2]]
DROP VIEW corpus_view;
--> nothing
SELECT id FROM @a WHERE nope = 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT nope FROM @a;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT id FROM @a, @a;
--> error AMBIGUOUS_REFERENCE
SELECT id FROM @a WHERE id = ;
--> error PARSE_SYNTAX_ERROR
SELECT id FROM @a GROUP BY day;
--> error MISSING_AGGREGATION
SELECT * FROM @a WHERE id = 'x' + ;
--> error PARSE_SYNTAX_ERROR
SELECT * FROM @none;
--> error DELTA_TABLE_NOT_FOUND
--| error PATH_NOT_FOUND # the same refusal under a name of its own
SELECT * FROM @a VERSION AS OF 99;
--> error DELTA_VERSION_NOT_FOUND
SELECT * FROM @a TIMESTAMP AS OF '1999-01-01';
--> error DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
SELECT sum(day) FROM @a;
--> error DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE
SELECT no_such_function(id) FROM @a;
--> error UNRESOLVED_ROUTINE
SELECT s.nope FROM @a;
--> error FIELD_NOT_FOUND
SELECT 1;
--> rows [[1]]
SELECT 1 +;
--> error PARSE_SYNTAX_ERROR
COMMIT;
--> error UNSUPPORTED_TRANSACTION_STATEMENT
--| error INVALID_STATEMENT_OR_CLAUSE # the same refusal under a name of its own
START TRANSACTION;
--> error UNSUPPORTED_TRANSACTION_STATEMENT
--| error INVALID_STATEMENT_OR_CLAUSE # the same refusal under a name of its own
CREATE TABLE @u (id BIGINT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @u VALUES (1, 1);
--> nothing
INSERT INTO @u VALUES (2, 1);
--> nothing
INSERT INTO @u VALUES (3, 2);
--> nothing
DELETE FROM @u WHERE id = 1;
--> rows [[1]]
RESTORE TABLE @u TO VERSION AS OF 2;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT * FROM @u;
--> rows [[1, 1], [2, 1]]
RESTORE @u VERSION AS OF 99;
--> error DELTA_VERSION_NOT_FOUND
--| error DELTA_CANNOT_RESTORE_TABLE_VERSION # the same refusal under a name of its own
OPTIMIZE @u WHERE id = 1;
--> error INVALID_CONDITION
--| error DELTA_NON_PARTITION_COLUMN_REFERENCE # the same refusal under a name of its own
CREATE TABLE @x SHALLOW CLONE @u;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
SELECT count(*) FROM @x;
--> rows [[2]]
CREATE TABLE @x SHALLOW CLONE @u;
--> error DELTA_TABLE_ALREADY_EXISTS
--| error DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION # the same refusal under a name of its own
CREATE OR REPLACE TABLE @x SHALLOW CLONE @u VERSION AS OF 1;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
--| error DELTA_UNSUPPORTED_NON_EMPTY_CLONE # it clones into the place of an empty table only
SELECT * FROM @x;
--> rows [[1, 1]]
--| rows [[1, 1], [2, 1]] # so the first clone is still there
GENERATE symlink_format_manifest FOR TABLE @u;
--> nothing
OPTIMIZE @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
VACUUM @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
OPTIMIZE;
--> error PARSE_SYNTAX_ERROR
VACUUM @u RETAIN many HOURS;
--> error PARSE_SYNTAX_ERROR
