-- a feed of inserts, updates and deletes
CREATE TABLE @a (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @a VALUES (1, 'a'), (2, 'b'), (3, 'c');
--> nothing
UPDATE @a SET v = 'x' WHERE id = 1;
--> rows [[1]]
DELETE FROM @a WHERE id = 2;
--> rows [[1]]
SELECT id, v, _change_type, _commit_version FROM table_changes('@a', 0);
--> rows [[1, "a", "insert", 1], [1, "a", "update_preimage", 2], [1, "x", "update_postimage", 2], [2, "b", "delete", 3], [2, "b", "insert", 1], [3, "c", "insert", 1]]
SELECT id, v, _change_type, _commit_version FROM table_changes('@a', 2, 2);
--> rows [[1, "a", "update_preimage", 2], [1, "x", "update_postimage", 2]]
SELECT id FROM TABLE_CHANGES('@a', 3) WHERE _change_type = 'delete';
--> rows [[2]]
SELECT _change_type, count(*) FROM table_changes('@a', 0) GROUP BY _change_type;
--> rows [["delete", 1], ["insert", 3], ["update_postimage", 1], ["update_preimage", 1]]
SELECT count(*) FROM table_changes('@a', 3, 2);
--> error DELTA_INVALID_CDC_RANGE
SELECT count(*) FROM table_changes('@a', 9);
--> error DELTA_CDC_START_VERSION_AFTER_LATEST
SELECT count(*) FROM table_changes('@a', -1);
--> error INVALID_OPTION
--| error DELTA_LOG_FILE_NOT_FOUND # the same refusal under a name of its own
SELECT count(*) FROM table_changes('@a');
--> error PARSE_SYNTAX_ERROR
--| error INTERNAL_ERROR # the same refusal under a name of its own
SELECT count(*) FROM table_changes('@a', NULL);
--> error INVALID_OPTION
--| error DELTA_CDC_READ_NULL_RANGE_BOUNDARY # the same refusal under a name of its own
SELECT count(*) FROM table_changes('@a', 0, NULL);
--> error INVALID_OPTION
--| error DELTA_CDC_READ_NULL_RANGE_BOUNDARY # the same refusal under a name of its own
SELECT count(*) FROM table_changes('@a', 0, 1, 2);
--> error PARSE_SYNTAX_ERROR
--| error INTERNAL_ERROR # the same refusal under a name of its own
SELECT count(*) FROM table_changes('@a', 1 + 1, 1 + 2);
--> rows [[3]]
SELECT count(*) FROM table_changes('@none', 0);
--> error DELTA_TABLE_NOT_FOUND
--| error PATH_NOT_FOUND # the same refusal under a name of its own
SELECT id FROM @a WHERE id IN (SELECT id FROM table_changes('@a', 2) WHERE _change_type LIKE 'update%');
--> rows [[1]]
--| error UNRESOLVED_COLUMN.WITH_SUGGESTION # there a query over a table and over its feed takes both for the table
SELECT c.id, t.v FROM table_changes('@a', 3) c JOIN @a t ON t.id > c.id;
--> rows [[2, "c"]]
--| rows [[1, "c"]] # there a query over a table and over its feed takes both for the table
-- a feed of a MERGE
CREATE TABLE @b (id INT, v STRING, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @b VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 1), (4, 'd', 1);
--> nothing
MERGE INTO @b t USING (VALUES (1, 'A'), (2, 'B'), (9, 'I')) s ON t.id = s.col1 WHEN MATCHED AND s.col1 = 1 THEN UPDATE SET v = s.col2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.col1, s.col2, 2) WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET p = 5 WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> rows [[5, 2, 2, 1]]
SELECT id, v, p, _change_type FROM table_changes('@b', 2);
--> rows [[1, "A", 0, "update_postimage"], [1, "a", 0, "update_preimage"], [2, "b", 0, "delete"], [3, "c", 1, "update_preimage"], [3, "c", 5, "update_postimage"], [4, "d", 1, "delete"], [9, "I", 2, "insert"]]
SELECT id, v, p FROM @b;
--> rows [[1, "A", 0], [3, "c", 5], [9, "I", 2]]
-- a feed of a MERGE that changes nothing, or only inserts
CREATE TABLE @c (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @c VALUES (1, 'a');
--> nothing
MERGE INTO @c t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND false THEN DELETE;
--> rows [[0, 0, 0, 0]]
MERGE INTO @c t USING (SELECT col1 AS id, 'n' AS v FROM VALUES (1), (2)) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE INTO @c t USING (SELECT 1 AS id, 'a' AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT id, v, _change_type FROM table_changes('@c', 2);
--> rows [[1, "a", "update_postimage"], [1, "a", "update_preimage"], [2, "n", "insert"]]
-- a feed of a MERGE that adds a column
CREATE TABLE @d (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @d VALUES (1);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @d t USING (SELECT col1 AS id, 'n' AS extra FROM VALUES (1), (2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT id, extra, _change_type FROM table_changes('@d', 2);
--> rows [[1, "n", "update_postimage"], [1, null, "update_preimage"], [2, "n", "insert"]]
SELECT id, extra, _change_type FROM table_changes('@d', 0);
--> rows [[1, "n", "update_postimage"], [1, null, "insert"], [1, null, "update_preimage"], [2, "n", "insert"]]
-- a feed of an overwrite
CREATE TABLE @e (id INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @e VALUES (1, 0), (2, 1);
--> nothing
INSERT OVERWRITE @e VALUES (3, 0);
--> nothing
INSERT INTO @e REPLACE WHERE p = 0 VALUES (4, 0), (5, 0);
--> nothing
INSERT INTO @e REPLACE WHERE id = 4 VALUES (4, 0);
--> nothing
INSERT OVERWRITE @e PARTITION (p = 0) SELECT 7;
--> nothing
SELECT id, p, _change_type FROM table_changes('@e', 2, 2);
--> rows [[1, 0, "delete"], [2, 1, "delete"], [3, 0, "insert"]]
SELECT id, p, _change_type FROM table_changes('@e', 3, 3);
--> rows [[3, 0, "delete"], [4, 0, "insert"], [5, 0, "insert"]]
SELECT id, p, _change_type FROM table_changes('@e', 4, 4);
--> rows [[4, 0, "delete"], [4, 0, "insert"]]
SELECT id, p, _change_type FROM table_changes('@e', 5);
--> rows [[4, 0, "delete"], [5, 0, "delete"], [7, 0, "insert"]]
-- a feed of deletes of whole partitions, of the table, and of rows by deletion vectors
CREATE TABLE @f (id INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true');
--> nothing
INSERT INTO @f SELECT id, id % 2 FROM range(6);
--> nothing
DELETE FROM @f WHERE p = 0 AND id > 2;
--> rows [[1]]
DELETE FROM @f WHERE p = 0;
--> rows [[2]]
UPDATE @f SET id = id + 10 WHERE id = 3;
--> rows [[1]]
DELETE FROM @f;
--> rows [[3]]
SELECT id, p, _change_type FROM table_changes('@f', 2, 2);
--> rows [[4, 0, "delete"]]
SELECT id, p, _change_type FROM table_changes('@f', 3, 3);
--> rows [[0, 0, "delete"], [2, 0, "delete"]]
SELECT id, p, _change_type FROM table_changes('@f', 4, 4);
--> rows [[13, 1, "update_postimage"], [3, 1, "update_preimage"]]
SELECT id, p, _change_type FROM table_changes('@f', 5, 5);
--> rows [[1, 1, "delete"], [13, 1, "delete"], [5, 1, "delete"]]
-- a feed without deletion vectors
CREATE TABLE @g (id INT, p INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false');
--> nothing
INSERT INTO @g SELECT id, id % 2 FROM range(6);
--> nothing
DELETE FROM @g WHERE id = 4;
--> rows [[1]]
UPDATE @g SET p = 7 WHERE id < 2;
--> rows [[2]]
DELETE FROM @g WHERE true;
--> rows [[5]]
SELECT id, p, _change_type FROM table_changes('@g', 2, 2);
--> rows [[4, 0, "delete"]]
SELECT id, p, _change_type FROM table_changes('@g', 3, 3);
--> rows [[0, 0, "update_preimage"], [0, 7, "update_postimage"], [1, 1, "update_preimage"], [1, 7, "update_postimage"]]
SELECT count(*) FROM table_changes('@g', 4);
--> rows [[5]]
-- a feed that was switched on late, and off again
CREATE TABLE @h (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false');
--> nothing
INSERT INTO @h VALUES (1);
--> nothing
ALTER TABLE @h SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @h VALUES (2);
--> nothing
UPDATE @h SET id = 3 WHERE id = 1;
--> rows [[1]]
SELECT id, _change_type FROM table_changes('@h', 2);
--> rows [[1, "update_preimage"], [2, "insert"], [3, "update_postimage"]]
SELECT id, _change_type FROM table_changes('@h', 1);
--> error DELTA_MISSING_CHANGE_DATA
ALTER TABLE @h UNSET TBLPROPERTIES ('delta.enableChangeDataFeed');
--> nothing
INSERT INTO @h VALUES (4);
--> nothing
SELECT id, _change_type FROM table_changes('@h', 2, 4);
--> rows [[1, "update_preimage"], [2, "insert"], [3, "update_postimage"]]
SELECT id, _change_type FROM table_changes('@h', 2);
--> error DELTA_MISSING_CHANGE_DATA
-- a feed of RESTORE and of a clone
CREATE TABLE @i (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @i VALUES (1), (2);
--> nothing
INSERT INTO @i VALUES (3);
--> nothing
RESTORE TABLE @i TO VERSION AS OF 1;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT id, _change_type FROM table_changes('@i', 3);
--> rows [[3, "delete"]]
CREATE TABLE @j SHALLOW CLONE @i;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
DELETE FROM @j WHERE id = 1;
--> rows [[1]]
SELECT id, _change_type FROM table_changes('@j', 1);
--> rows [[1, "delete"]]
-- columns with the names of a feed
CREATE TABLE @k (id INT, _change_type STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> error RESERVED_CDC_COLUMNS_ON_WRITE
--| error DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS # the same refusal under a name of its own
CREATE TABLE @k (id INT, _change_type STRING) USING delta;
--> nothing
INSERT INTO @k VALUES (1, 'mine');
--> nothing
SELECT * FROM @k;
--> rows [[1, "mine"]]
CREATE TABLE @l (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name');
--> nothing
ALTER TABLE @l ADD COLUMN x STRUCT<_commit_version: BIGINT>;
--> nothing
INSERT INTO @l VALUES (1, named_struct('_commit_version', 5));
--> nothing
SELECT id, x._commit_version, _commit_version FROM table_changes('@l', 1);
--> rows [[1, 5, 2]]
-- a feed across a column that was added, renamed or dropped
CREATE TABLE @m (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @m VALUES (1, 'a');
--> nothing
ALTER TABLE @m ADD COLUMN w INT;
--> nothing
INSERT INTO @m VALUES (2, 'b', 5);
--> nothing
SELECT id, v, w, _change_type FROM table_changes('@m', 0);
--> rows [[1, "a", null, "insert"], [2, "b", 5, "insert"]]
ALTER TABLE @m RENAME COLUMN v TO v2;
--> nothing
SELECT id, v2 FROM table_changes('@m', 4);
--> rows []
SELECT count(*) FROM table_changes('@m', 0);
--> error DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE
UPDATE @m SET v2 = 'c' WHERE id = 1;
--> rows [[1]]
SELECT id, v2, w, _change_type FROM table_changes('@m', 5);
--> rows [[1, "a", null, "update_preimage"], [1, "c", null, "update_postimage"]]
-- a feed of generated and of NULL values
CREATE TABLE @n (a INT, b INT GENERATED ALWAYS AS (a + 1)) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
INSERT INTO @n (a) VALUES (1), (NULL);
--> nothing
UPDATE @n SET a = 5 WHERE a IS NULL;
--> rows [[1]]
MERGE INTO @n t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = 7;
--> rows [[1, 1, 0, 0]]
SELECT a, b, _change_type, _commit_version FROM table_changes('@n', 2);
--> rows [[1, 2, "update_preimage", 3], [5, 6, "update_postimage", 2], [7, 8, "update_postimage", 3], [null, null, "update_preimage", 2]]
-- RESTORE brings the columns and the rules of its version
CREATE TABLE @o (a INT) USING delta TBLPROPERTIES ('mine' = 'old');
--> nothing
INSERT INTO @o VALUES (1);
--> nothing
ALTER TABLE @o ADD COLUMN b STRING;
--> nothing
ALTER TABLE @o SET TBLPROPERTIES ('mine' = 'new');
--> nothing
INSERT INTO @o VALUES (2, 'b');
--> nothing
RESTORE TABLE @o TO VERSION AS OF 1;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT * FROM @o;
--> rows [[1]]
SHOW TBLPROPERTIES @o ('mine');
--> rows [["mine", "old"]]
RESTORE TABLE @o TO VERSION AS OF 4;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT * FROM @o;
--> rows [[1, null], [2, "b"]]
SHOW TBLPROPERTIES @o ('mine');
--> rows [["mine", "new"]]
RESTORE TABLE @o TO VERSION AS OF 6;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
--| nothing # there it returns nothing where nothing is to be restored
RESTORE TABLE @o TO VERSION AS OF 7;
--> error DELTA_VERSION_NOT_FOUND
--| error DELTA_CANNOT_RESTORE_TABLE_VERSION # the same refusal under a name of its own
RESTORE TABLE @o TO VERSION AS OF -1;
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
RESTORE TABLE @o TO TIMESTAMP AS OF '1999-01-01';
--> error DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
--| error DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER # the same refusal under a name of its own
RESTORE TABLE @o TO TIMESTAMP AS OF 'not a time';
--> error DELTA_TIMESTAMP_INVALID
SELECT count(*) FROM @o;
--> rows [[2]]
-- RESTORE of rows that were deleted by deletion vectors
CREATE TABLE @p (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
INSERT INTO @p SELECT id FROM range(10);
--> nothing
DELETE FROM @p WHERE id = 1;
--> rows [[1]]
DELETE FROM @p WHERE id = 2;
--> rows [[1]]
UPDATE @p SET id = 33 WHERE id = 3;
--> rows [[1]]
RESTORE TABLE @p TO VERSION AS OF 2;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT sum(id), count(*) FROM @p;
--> rows [[44, 9]]
RESTORE TABLE @p TO VERSION AS OF 1;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT sum(id), count(*) FROM @p;
--> rows [[45, 10]]
RESTORE TABLE @p TO VERSION AS OF 0;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT sum(id), count(*) FROM @p;
--> rows [[null, 0]]
RESTORE TABLE @p TO VERSION AS OF 4;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
SELECT sum(id), count(*) FROM @p;
--> rows [[72, 8]]
-- RESTORE keeps a feature that the table got later
CREATE TABLE @q (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
INSERT INTO @q VALUES (1);
--> nothing
ALTER TABLE @q SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
ALTER TABLE @q ADD CONSTRAINT pos CHECK (id > 0);
--> nothing
RESTORE TABLE @q TO VERSION AS OF 1;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
INSERT INTO @q VALUES (-1);
--> nothing
SELECT * FROM @q;
--> rows [[-1], [1]]
SHOW TBLPROPERTIES @q ('delta.enableDeletionVectors');
--> rows [["delta.enableDeletionVectors", "false"]]
-- a clone is a table of its own
CREATE TABLE @r (id INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('mine' = 'yes');
--> nothing
INSERT INTO @r VALUES (1, 'a'), (2, 'b');
--> nothing
CREATE TABLE @s SHALLOW CLONE @r;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
INSERT INTO @s VALUES (3, 'c');
--> nothing
DELETE FROM @s WHERE id = 1;
--> rows [[1]]
UPDATE @s SET p = 'z' WHERE id = 2;
--> rows [[1]]
SELECT * FROM @s;
--> rows [[2, "z"], [3, "c"]]
SELECT * FROM @r;
--> rows [[1, "a"], [2, "b"]]
DELETE FROM @r WHERE id = 2;
--> rows [[1]]
SELECT * FROM @s WHERE id = 2;
--> rows [[2, "z"]]
DESCRIBE @s;
--> rows [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"], ["id", "int", null], ["p", "string", null], ["p", "string", null]]
SHOW TBLPROPERTIES @s ('mine');
--> rows [["mine", "yes"]]
CREATE TABLE IF NOT EXISTS @s SHALLOW CLONE @r;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
--| error DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION # here IF NOT EXISTS counts at a path, too
-- a clone of a clone, and of an older version
CREATE TABLE @t (id INT) USING delta;
--> nothing
INSERT INTO @t VALUES (1);
--> nothing
INSERT INTO @t VALUES (2);
--> nothing
CREATE TABLE @u SHALLOW CLONE @t VERSION AS OF 1;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
INSERT INTO @u VALUES (5);
--> nothing
CREATE TABLE @v SHALLOW CLONE @u;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
INSERT INTO @v VALUES (6);
--> nothing
SELECT * FROM @u;
--> rows [[1], [5]]
SELECT * FROM @v;
--> rows [[1], [5], [6]]
CREATE TABLE @w SHALLOW CLONE @v VERSION AS OF 77;
--> error DELTA_VERSION_NOT_FOUND
CREATE TABLE @t SHALLOW CLONE @t;
--> error CLONE_REFUSED
--| error DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION # the same refusal under a name of its own
CREATE OR REPLACE TABLE @w SHALLOW CLONE @t TBLPROPERTIES ('other' = 'prop', 'delta.appendOnly' = 'true');
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
SHOW TBLPROPERTIES @w ('other');
--> rows [["other", "prop"]]
DELETE FROM @w;
--> error DELTA_CANNOT_MODIFY_APPEND_ONLY
REPLACE TABLE IF NOT EXISTS @w SHALLOW CLONE @t;
--> error PARSE_SYNTAX_ERROR
CREATE OR REPLACE TABLE IF NOT EXISTS @w SHALLOW CLONE @t;
--> error PARSE_SYNTAX_ERROR
-- a clone of rows with deletion vectors
CREATE TABLE @y (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
INSERT INTO @y SELECT id FROM range(10);
--> nothing
DELETE FROM @y WHERE id < 3;
--> rows [[3]]
CREATE TABLE @z SHALLOW CLONE @y;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
DELETE FROM @z WHERE id > 7;
--> rows [[2]]
SELECT sum(id), count(*) FROM @z;
--> rows [[25, 5]]
SELECT sum(id), count(*) FROM @y;
--> rows [[42, 7]]
MERGE INTO @z t USING (SELECT 5 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 50 WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE;
--> rows [[2, 1, 1, 0]]
SELECT sum(id), count(*) FROM @z;
--> rows [[64, 4]]
