-- what OPTIMIZE may be asked
CREATE TABLE @a (id INT, s STRUCT<x: INT, l: ARRAY<INT>>, p INT, m MAP<INT, INT>) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @a VALUES (1, named_struct('x', 1, 'l', array(1)), 1, map(1, 1));
--> nothing
INSERT INTO @a VALUES (2, named_struct('x', 2, 'l', array(2)), 1, map(2, 2));
--> nothing
OPTIMIZE @a;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @a WHERE p = 1;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @a WHERE P = 1 AND p > 0 OR p IS NULL;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @a WHERE p IN (1, 2) AND NOT p = 7;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @a WHERE s.x = 1;
--> error INVALID_CONDITION
--| error DELTA_NON_PARTITION_COLUMN_REFERENCE # the same refusal under a name of its own
OPTIMIZE @a WHERE nope = 1;
--> error INVALID_CONDITION
--| error DELTA_NON_PARTITION_COLUMN_REFERENCE # the same refusal under a name of its own
OPTIMIZE @a WHERE p = 1 AND id = 1;
--> error INVALID_CONDITION
--| error DELTA_NON_PARTITION_COLUMN_REFERENCE # the same refusal under a name of its own
OPTIMIZE @a WHERE;
--> error PARSE_SYNTAX_ERROR
OPTIMIZE @a FULL;
--> error INVALID_OPTION
--| error DELTA_OPTIMIZE_FULL_NOT_SUPPORTED # the same refusal under a name of its own
SELECT id, s.x, p FROM @a;
--> rows [[1, 1, 1], [2, 2, 1]]
-- what ZORDER BY may name
CREATE TABLE @b (id INT, s STRUCT<x: INT, l: ARRAY<INT>>, p INT, m MAP<INT, INT>) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @b SELECT id, named_struct('x', -id, 'l', array(id)), id % 2, map(id, id) FROM range(10);
--> nothing
OPTIMIZE @b ZORDER BY (id);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @b ZORDER BY ID, s.x;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @b WHERE p = 1 ZORDER BY (s.x);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @b ZORDER BY (p);
--> error INVALID_OPTION
--| error DELTA_ZORDERING_ON_PARTITION_COLUMN # the same refusal under a name of its own
OPTIMIZE @b ZORDER BY (nope);
--> error INVALID_OPTION
--| error DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST # the same refusal under a name of its own
OPTIMIZE @b ZORDER BY (s.l);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @b ZORDER BY ();
--> error PARSE_SYNTAX_ERROR
OPTIMIZE @b ZORDER BY;
--> error PARSE_SYNTAX_ERROR
SELECT sum(id), sum(s.x), count(*) FROM @b;
--> rows [[45, -45, 10]]
-- columns without statistics in ZORDER BY
CREATE TABLE @c (a INT, b INT) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1');
--> nothing
INSERT INTO @c VALUES (1, 1), (2, 2);
--> nothing
OPTIMIZE @c ZORDER BY (b);
--> error INVALID_OPTION
--| error DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS # the same refusal under a name of its own
OPTIMIZE @c ZORDER BY (a);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
ALTER TABLE @c SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b');
--> nothing
INSERT INTO @c VALUES (3, 3);
--> nothing
OPTIMIZE @c ZORDER BY (b);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @c ZORDER BY (a);
--> error INVALID_OPTION
--| error DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS # the same refusal under a name of its own
-- OPTIMIZE leaves rows that are deleted behind
CREATE TABLE @d (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
INSERT INTO @d SELECT id FROM range(10);
--> nothing
DELETE FROM @d WHERE id = 3;
--> rows [[1]]
OPTIMIZE @d;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
SELECT count(*), sum(id) FROM @d;
--> rows [[9, 42]]
REORG TABLE @d APPLY (PURGE);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
SELECT count(*), sum(id) FROM @d;
--> rows [[9, 42]]
REORG TABLE @d;
--> error PARSE_SYNTAX_ERROR
REORG TABLE @d APPLY (NOTHING);
--> error PARSE_SYNTAX_ERROR
REORG TABLE @d WHERE id = 1 APPLY (PURGE);
--> error INVALID_CONDITION
--| error DELTA_NON_PARTITION_COLUMN_REFERENCE # the same refusal under a name of its own
REORG TABLE @none APPLY (PURGE);
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_ONLY_OPERATION # the same refusal under a name of its own
DELETE FROM @d WHERE id = 4;
--> rows [[1]]
SELECT count(*) FROM @d VERSION AS OF 2;
--> rows [[9]]
-- REORG of columns that were dropped
CREATE TABLE @e (a INT, b INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @e VALUES (1, 2);
--> nothing
ALTER TABLE @e DROP COLUMN b;
--> nothing
REORG TABLE @e APPLY (PURGE);
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
ALTER TABLE @e ADD COLUMN b INT;
--> nothing
SELECT * FROM @e;
--> rows [[1, null]]
-- a table that is clustered
CREATE TABLE @f (a INT, b STRUCT<x: INT, y: STRING>, c DATE) USING delta CLUSTER BY (b.x, a);
--> nothing
INSERT INTO @f SELECT id, named_struct('x', -id, 'y', 'n'), NULL FROM range(20);
--> nothing
OPTIMIZE @f;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @f FULL;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
OPTIMIZE @f WHERE a = 1;
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_WITH_PARTITION_PREDICATE # the same refusal under a name of its own
OPTIMIZE @f ZORDER BY (a);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_WITH_ZORDER_BY # the same refusal under a name of its own
SELECT count(*), sum(b.x) FROM @f;
--> rows [[20, -190]]
DESCRIBE @f;
--> rows [["# Clustering Information", "", ""], ["# col_name", "data_type", "comment"], ["a", "int", null], ["a", "int", null], ["b", "struct<x:int,y:string>", null], ["b.x", "int", null], ["c", "date", null]]
--| rows [["a", "int", null], ["b", "struct<x:int,y:string>", null], ["c", "date", null]] # here the columns of the clustering are shown, too
ALTER TABLE @f CLUSTER BY (c);
--> nothing
INSERT INTO @f VALUES (100, NULL, DATE'2020-01-01');
--> nothing
OPTIMIZE @f;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
ALTER TABLE @f CLUSTER BY NONE;
--> nothing
OPTIMIZE @f;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
SELECT count(*) FROM @f;
--> rows [[21]]
-- what a table cannot be clustered by
CREATE TABLE @g (a INT, l ARRAY<INT>, m MAP<INT, INT>, s STRUCT<x: INT>, b BOOLEAN, bin BINARY) USING delta CLUSTER BY (l);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, m MAP<INT, INT>) USING delta CLUSTER BY (m);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, s STRUCT<x: INT>) USING delta CLUSTER BY (s);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, b BINARY) USING delta CLUSTER BY (b);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (nope);
--> error INVALID_OPTION
--| error UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (a, a);
--> error INVALID_OPTION
--| error DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (a, A);
--> error INVALID_OPTION
--| error UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT, c INT, d INT, e INT) USING delta CLUSTER BY (a, b, c, d, e);
--> error INVALID_OPTION
--| error DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (a) PARTITIONED BY (b);
--> error INVALID_OPTION
--| error _LEGACY_ERROR_TEMP_0035 # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (b) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1');
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMN_MISSING_STATS # the same refusal under a name of its own
CREATE TABLE @g (a INT, b INT) USING delta CLUSTER BY (b) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b');
--> nothing
ALTER TABLE @g CLUSTER BY (a);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMN_MISSING_STATS # the same refusal under a name of its own
ALTER TABLE @g SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a');
--> error INVALID_OPTION
--| nothing # here columns that a table is clustered by keep their statistics
-- a clustered table and its columns
CREATE TABLE @h (a INT, b INT, c INT) USING delta CLUSTER BY (a) TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @h VALUES (1, 2, 3);
--> nothing
ALTER TABLE @h RENAME COLUMN a TO a1;
--> nothing
ALTER TABLE @h DROP COLUMN a1;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
--| error DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN # the same refusal under a name of its own
ALTER TABLE @h DROP COLUMN b;
--> nothing
OPTIMIZE @h;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
SELECT * FROM @h;
--> rows [[1, 3]]
ALTER TABLE @h CLUSTER BY (a);
--> error INVALID_OPTION
--| error DELTA_COLUMN_NOT_FOUND_IN_SCHEMA # the same refusal under a name of its own
ALTER TABLE @h CLUSTER BY (A1, c);
--> nothing
-- a partitioned table is not clustered later
CREATE TABLE @i (a INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
ALTER TABLE @i CLUSTER BY (a);
--> error INVALID_OPTION
--| error DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED # the same refusal under a name of its own
ALTER TABLE @i CLUSTER BY NONE;
--> nothing
--| error DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED # here it is what the table is already
-- a clustered table is copied with its clustering
CREATE TABLE @j (a INT, b INT) USING delta CLUSTER BY (b);
--> nothing
INSERT INTO @j VALUES (1, 1);
--> nothing
CREATE TABLE @k SHALLOW CLONE @j;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
CREATE TABLE @l LIKE @j;
--> nothing
CREATE TABLE @m USING delta CLUSTER BY (b) AS SELECT * FROM @j;
--> nothing
ALTER TABLE @k CLUSTER BY (a);
--> nothing
INSERT INTO @l VALUES (2, 2);
--> nothing
OPTIMIZE @l;
--> columns ["path", "metrics"]
--| error  # it is done there, too, but what it returns does not go through Arrow
SELECT * FROM @l;
--> rows [[2, 2]]
SELECT * FROM @m;
--> rows [[1, 1]]
-- VACUUM keeps what it is told to
CREATE TABLE @n (id INT) USING delta;
--> nothing
INSERT INTO @n VALUES (1);
--> nothing
INSERT OVERWRITE @n VALUES (2);
--> nothing
VACUUM @n RETAIN 0 HOURS;
--> error DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT
VACUUM @n DRY RUN;
--> columns ["path"]
VACUUM @n RETAIN 168 HOURS;
--> columns ["path"]
VACUUM @n FULL RETAIN 200 HOURS DRY RUN;
--> columns ["path"]
VACUUM @n LITE FULL;
--> error PARSE_SYNTAX_ERROR
--| error DUPLICATE_CLAUSES # the same refusal under a name of its own
VACUUM @n RETAIN 1 DAY;
--> error PARSE_SYNTAX_ERROR
SELECT * FROM @n VERSION AS OF 1;
--> rows [[1]]
ALTER TABLE @n SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 hour');
--> nothing
VACUUM @n RETAIN 2 HOURS DRY RUN;
--> columns ["path"]
SELECT * FROM @n;
--> rows [[2]]
-- features that are added and dropped
CREATE TABLE @o (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
ALTER TABLE @o SET TBLPROPERTIES ('delta.feature.nonsense' = 'supported');
--> error DELTA_UNSUPPORTED_FEATURES_IN_CONFIG
ALTER TABLE @o SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'yes');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_FEATURE_STATUS # the same refusal under a name of its own
ALTER TABLE @o SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported');
--> nothing
ALTER TABLE @o UNSET TBLPROPERTIES ('delta.feature.deletionVectors');
--> nothing
ALTER TABLE @o DROP FEATURE deletionVectors;
--> nothing
ALTER TABLE @o DROP FEATURE deletionVectors;
--> error DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT
ALTER TABLE @o DROP FEATURE nonsense;
--> error DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE
ALTER TABLE @o DROP FEATURE identityColumns;
--> error DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT
ALTER TABLE @o SET TBLPROPERTIES ('delta.feature.v2Checkpoint' = 'supported', 'delta.checkpointPolicy' = 'v2');
--> nothing
ALTER TABLE @o DROP FEATURE v2Checkpoint TRUNCATE HISTORY;
--> error DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
ALTER TABLE @o SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v3');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
INSERT INTO @o VALUES (1);
--> nothing
SELECT * FROM @o;
--> rows [[1]]
-- versions of the protocol that are asked for
CREATE TABLE @p (id INT) USING delta TBLPROPERTIES ('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '4', 'delta.enableDeletionVectors' = 'false');
--> nothing
ALTER TABLE @p SET TBLPROPERTIES ('delta.minWriterVersion' = '5', 'delta.minReaderVersion' = '2');
--> nothing
ALTER TABLE @p SET TBLPROPERTIES ('delta.minWriterVersion' = '99');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @p SET TBLPROPERTIES ('delta.minWriterVersion' = 'five');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @p SET TBLPROPERTIES ('delta.minReaderVersion' = '3');
--> nothing
--| error DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE # here the writer's version that goes with it is set, too
INSERT INTO @p VALUES (1);
--> nothing
SELECT * FROM @p;
--> rows [[1]]
-- commits with their own timestamps
CREATE TABLE @r (id INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true');
--> nothing
INSERT INTO @r VALUES (1);
--> nothing
ALTER TABLE @r SET TBLPROPERTIES ('delta.inCommitTimestampEnablementVersion' = '1');
--> error DELTA_INVALID_PROPERTY
--| nothing # here no user sets what an engine remembers of a feature
ALTER TABLE @r UNSET TBLPROPERTIES ('delta.enableInCommitTimestamps');
--> nothing
INSERT INTO @r VALUES (2);
--> nothing
ALTER TABLE @r SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true');
--> nothing
SELECT count(*) FROM @r VERSION AS OF 1;
--> rows [[1]]
SELECT count(*) FROM @r TIMESTAMP AS OF '2001-01-01';
--> error DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
ALTER TABLE @r DROP FEATURE inCommitTimestamp;
--> nothing
INSERT INTO @r VALUES (3);
--> nothing
SELECT * FROM @r;
--> rows [[1], [2], [3]]
-- manifests for other engines
CREATE TABLE @s (id INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
INSERT INTO @s VALUES (1, 1);
--> nothing
GENERATE symlink_format_manifest FOR TABLE @s;
--> nothing
GENERATE other_format FOR TABLE @s;
--> error INVALID_OPTION
--| error DELTA_MODE_NOT_SUPPORTED # the same refusal under a name of its own
GENERATE symlink_format_manifest FOR TABLE @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
ALTER TABLE @s SET TBLPROPERTIES ('delta.compatibility.symlinkFormatManifest.enabled' = 'true');
--> error DELTA_INVALID_PROPERTY
--| nothing # no commit keeps manifests up to date here, so the property is refused
INSERT INTO @s VALUES (2, 2);
--> nothing
SELECT * FROM @s;
--> rows [[1, 1], [2, 2]]
ALTER TABLE @s SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
--| error DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED # it has taken the property before, which excludes these
CREATE TABLE @t (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.compatibility.symlinkFormatManifest.enabled' = 'true');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED # the same refusal under a name of its own
-- SHOW PARTITIONS, and what partitions a table
CREATE TABLE @u (id INT, y INT, m STRING) USING delta PARTITIONED BY (y, m);
--> nothing
INSERT INTO @u VALUES (1, 2024, 'a'), (2, 2025, 'b'), (3, NULL, 'a');
--> nothing
SHOW PARTITIONS @u;
--> rows [[2024, "a"], [2025, "b"], [null, "a"]]
SHOW PARTITIONS @u PARTITION (y = 2024);
--> rows [[2024, "a"]]
SHOW PARTITIONS @u PARTITION (id = 1);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN # the same refusal under a name of its own
DELETE FROM @u WHERE y = 2024;
--> rows [[1]]
SHOW PARTITIONS @u;
--> rows [[2025, "b"], [null, "a"]]
CREATE TABLE @v (id INT) USING delta;
--> nothing
SHOW PARTITIONS @v;
--> error INVALID_OPTION
--| error DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE # the same refusal under a name of its own
CREATE TABLE @w (id INT, p INT) USING delta PARTITIONED BY (id, p);
--> error INVALID_OPTION
--| error ALL_PARTITION_COLUMNS_NOT_ALLOWED # the same refusal under a name of its own
CREATE TABLE @w (id INT, l ARRAY<INT>) USING delta PARTITIONED BY (l);
--> error INVALID_OPTION
--| error INVALID_PARTITION_COLUMN_DATA_TYPE # the same refusal under a name of its own
CREATE TABLE @w (id INT, p INT) USING delta PARTITIONED BY (p, p);
--> error INVALID_OPTION
--| error _LEGACY_ERROR_TEMP_3058 # the same refusal under a name of its own
CREATE TABLE @w (id INT, p INT) USING delta PARTITIONED BY (bucket(4, p));
--> error INVALID_OPTION
--| error DELTA_OPERATION_NOT_ALLOWED_DETAIL # the same refusal under a name of its own
CREATE TABLE @w (id INT, p INT) USING delta PARTITIONED BY (days(p));
--> error INVALID_OPTION
--| error DELTA_OPERATION_NOT_ALLOWED # the same refusal under a name of its own
CREATE TABLE @w (id INT, p INT) USING delta CLUSTERED BY (id) INTO 4 BUCKETS;
--> error INVALID_OPTION
--| error DELTA_OPERATION_NOT_ALLOWED_DETAIL # the same refusal under a name of its own
CREATE TABLE @w (id INT) USING delta PARTITIONED BY (p INT);
--> nothing
