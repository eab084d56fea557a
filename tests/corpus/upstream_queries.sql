-- counts and extremes of whole tables
CREATE TABLE @a (i INT, l BIGINT, d DATE, f FLOAT, b BOOLEAN, s STRING, t TIMESTAMP, e DECIMAL(10, 2)) USING delta;
--> nothing
INSERT INTO @a VALUES (1, 10, DATE'2020-01-01', 1.5, true, 'a', TIMESTAMP'2020-01-01 01:02:03.456789', 1.25), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
--> nothing
INSERT INTO @a VALUES (-5, 5000000000, DATE'1500-01-01', -0.0, false, 'zz', TIMESTAMP'1500-01-01 00:00:00', -99999999.99);
--> nothing
SELECT count(*), count(1), count(i), min(i), max(i), min(l), max(l) FROM @a;
--> rows [[3, 3, 2, -5, 1, 10, 5000000000]]
SELECT min(d), max(d), min(f), max(f), min(b), max(b), min(s), max(s) FROM @a;
--> rows [["1500-01-01", "2020-01-01", 0.0, 1.5, false, true, "a", "zz"]]
SELECT min(t), max(t), min(e), max(e) FROM @a;
--> rows [["1500-01-01 00:00:00+00:00", "2020-01-01 01:02:03.456789+00:00", "-99999999.99", "1.25"]]
SELECT count(DISTINCT i), max(i) + 1, min(i) AS low FROM @a;
--> rows [[2, 2, -5]]
SELECT max(i) FROM @a WHERE i IS NULL;
--> rows [[null]]
DELETE FROM @a WHERE i = -5;
--> rows [[1]]
SELECT count(*), min(i), max(i), min(d), max(l) FROM @a;
--> rows [[2, 1, 1, "2020-01-01", 10]]
INSERT OVERWRITE @a SELECT * FROM @a WHERE false;
--> nothing
SELECT count(*), min(i), max(s) FROM @a;
--> rows [[0, null, null]]
-- counts and extremes of partitions
CREATE TABLE @b (v INT, p INT, q STRING) USING delta PARTITIONED BY (p, q);
--> nothing
INSERT INTO @b VALUES (1, 1, 'x'), (2, 2, 'y'), (3, NULL, NULL), (4, 10, 'x');
--> nothing
SELECT min(p), max(p), min(q), max(q), count(p), count(*) FROM @b;
--> rows [[1, 10, "x", "y", 3, 4]]
SELECT count(*) FROM @b WHERE p = 1;
--> rows [[1]]
SELECT p, max(v) FROM @b GROUP BY p;
--> rows [[1, 1], [10, 4], [2, 2], [null, 3]]
SELECT DISTINCT q FROM @b;
--> rows [["x"], ["y"], [null]]
SELECT count(*) FROM @b WHERE p > 1 OR q IS NULL;
--> rows [[3]]
DELETE FROM @b WHERE p = 10;
--> rows [[1]]
SELECT max(p), max(v) FROM @b;
--> rows [[2, 3]]
-- a LIMIT with and without conditions
CREATE TABLE @c (id INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @c SELECT id, id % 3 FROM range(30);
--> nothing
SELECT count(*) FROM (SELECT * FROM @c LIMIT 7);
--> rows [[7]]
SELECT count(*) FROM (SELECT * FROM @c LIMIT 0);
--> rows [[0]]
SELECT count(*) FROM (SELECT * FROM @c LIMIT 100);
--> rows [[30]]
SELECT count(*) FROM (SELECT id FROM @c WHERE p = 1 LIMIT 4);
--> rows [[4]]
SELECT count(*) FROM (SELECT id FROM @c WHERE id > 25 LIMIT 20);
--> rows [[4]]
SELECT count(*) FROM ((SELECT id FROM @c LIMIT 5) UNION ALL (SELECT id FROM @c LIMIT 6));
--> rows [[11]]
DELETE FROM @c WHERE id < 28;
--> rows [[28]]
SELECT count(*) FROM (SELECT * FROM @c LIMIT 7);
--> rows [[2]]
SELECT count(*) FROM (SELECT * FROM @c LIMIT 1);
--> rows [[1]]
-- conditions that files are chosen by
CREATE TABLE @d (a INT, b STRING, s STRUCT<x: INT, y: STRUCT<z: STRING>>, t BOOLEAN) USING delta;
--> nothing
INSERT INTO @d VALUES (1, 'apple', named_struct('x', 1, 'y', named_struct('z', 'm')), true);
--> nothing
INSERT INTO @d VALUES (10, 'banana', named_struct('x', 10, 'y', named_struct('z', NULL)), false);
--> nothing
INSERT INTO @d VALUES (NULL, NULL, NULL, NULL);
--> nothing
SELECT a FROM @d WHERE a = 1;
--> rows [[1]]
SELECT a FROM @d WHERE NOT a = 1;
--> rows [[10]]
SELECT a FROM @d WHERE NOT (a <> 1);
--> rows [[1]]
SELECT a FROM @d WHERE a <=> NULL;
--> rows [[null]]
SELECT a FROM @d WHERE a <=> 10;
--> rows [[10]]
SELECT a FROM @d WHERE a <> 10;
--> rows [[1]]
SELECT a FROM @d WHERE NOT (a < 5 AND b > 'z');
--> rows [[10], [1]]
SELECT a FROM @d WHERE NOT (a < 5 OR b < 'a');
--> rows [[10]]
SELECT a FROM @d WHERE b LIKE 'ap%';
--> rows [[1]]
SELECT a FROM @d WHERE b LIKE '%an%';
--> rows [[10]]
SELECT a FROM @d WHERE b NOT LIKE 'ap%';
--> rows [[10]]
SELECT a FROM @d WHERE b IN ('apple', 'cherry', NULL);
--> rows [[1]]
SELECT a FROM @d WHERE b NOT IN ('apple', NULL);
--> rows []
SELECT a FROM @d WHERE s.x = 10 AND s.y.z IS NULL;
--> rows [[10]]
SELECT a FROM @d WHERE s.y.z = 'm';
--> rows [[1]]
SELECT a FROM @d WHERE s IS NULL;
--> rows [[null]]
SELECT a FROM @d WHERE t;
--> rows [[1]]
SELECT a FROM @d WHERE NOT t;
--> rows [[10]]
SELECT a FROM @d WHERE t IS NOT TRUE;
--> rows [[10], [null]]
SELECT a FROM @d WHERE a + 1 > 10;
--> rows [[10]]
SELECT a FROM @d WHERE a > (SELECT min(a) FROM @d);
--> rows [[10]]
SELECT a FROM @d WHERE a = 1.0 OR a = '10';
--> rows [[10], [1]]
SELECT a FROM @d WHERE CAST(a AS STRING) = '1';
--> rows [[1]]
SELECT a FROM @d WHERE coalesce(a, 0) = 0;
--> rows [[null]]
SELECT a FROM @d WHERE startswith(b, 'ban');
--> rows [[10]]
SELECT count(*) FROM @d WHERE 1 = 1;
--> rows [[3]]
SELECT count(*) FROM @d WHERE NULL;
--> error DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN
SELECT count(*) FROM @d WHERE rand() < 2;
--> rows [[3]]
-- long texts and odd characters in statistics
CREATE TABLE @e (s STRING) USING delta;
--> nothing
INSERT INTO @e SELECT repeat('a', 100);
--> nothing
INSERT INTO @e SELECT concat(repeat('b', 40), '😀', repeat('c', 40));
--> nothing
INSERT INTO @e SELECT repeat('😀', 40);
--> nothing
INSERT INTO @e VALUES ('Ünï'), ('');
--> nothing
SELECT count(*) FROM @e WHERE s = repeat('a', 100);
--> rows [[1]]
SELECT count(*) FROM @e WHERE s > repeat('a', 99);
--> rows [[4]]
SELECT count(*) FROM @e WHERE s >= concat(repeat('b', 40), '😀');
--> rows [[3]]
SELECT count(*) FROM @e WHERE s LIKE '😀%';
--> rows [[1]]
SELECT count(*) FROM @e WHERE s = '';
--> rows [[1]]
SELECT count(*) FROM @e WHERE s < 'a';
--> rows [[1]]
-- timestamps to the microsecond
CREATE TABLE @f (t TIMESTAMP, n TIMESTAMP_NTZ) USING delta;
--> nothing
INSERT INTO @f VALUES (TIMESTAMP'2019-09-09 01:02:03.456789', TIMESTAMP_NTZ'2019-09-09 01:02:03.456789');
--> nothing
INSERT INTO @f VALUES (TIMESTAMP'294247-01-10 04:00:54.775807Z', TIMESTAMP_NTZ'294247-01-10 04:00:54.775807');
--> nothing
SELECT count(*) FROM @f WHERE t >= '2019-09-09 01:02:03.456789' AND t < '2019-09-09 01:02:03.456790';
--> rows [[1]]
SELECT count(*) FROM @f WHERE n > TIMESTAMP_NTZ'2019-09-09 01:02:03.456788';
--> rows [[2]]
SELECT count(*) FROM @f WHERE n = '2019-09-09 01:02:03.456789';
--> rows [[1]]
SELECT count(*) FROM @f WHERE t > TIMESTAMP'2100-01-01 00:00:00Z';
--> rows [[1]]
SELECT count(*) FROM @f WHERE t <= TIMESTAMP'294247-01-10 04:00:54.775807Z';
--> rows [[2]]
-- a timestamp without a zone
CREATE TABLE @g (c TIMESTAMP_NTZ, v INT) USING delta PARTITIONED BY (c);
--> nothing
INSERT INTO @g VALUES (TIMESTAMP_NTZ'2022-01-02 03:04:05.123456', 1), (NULL, 2);
--> nothing
SELECT * FROM @g WHERE c = TIMESTAMP_NTZ'2022-01-02 03:04:05.123456';
--> rows [["2022-01-02 03:04:05.123456", 1]]
SELECT * FROM @g WHERE c IS NULL;
--> rows [[null, 2]]
UPDATE @g SET c = TIMESTAMP_NTZ'2023-01-01 00:00:00' WHERE v = 2;
--> rows [[1]]
SELECT c FROM @g WHERE c > '2022-06-01';
--> rows [["2023-01-01 00:00:00"]]
-- a column of TIMESTAMP_NTZ comes to a table without the feature
CREATE TABLE @ha (a INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
ALTER TABLE @ha ADD COLUMN t TIMESTAMP_NTZ;
--> nothing
--| error DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT # here the feature comes with the column
CREATE TABLE @h (a INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
ALTER TABLE @h SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported');
--> nothing
ALTER TABLE @h ADD COLUMN t TIMESTAMP_NTZ;
--> nothing
INSERT INTO @h VALUES (1, TIMESTAMP_NTZ'2020-01-01 00:00:00');
--> nothing
SELECT * FROM @h;
--> rows [[1, "2020-01-01 00:00:00"]]
-- variants are written, changed and read
CREATE TABLE @i (id INT, v VARIANT) USING delta;
--> nothing
INSERT INTO @i SELECT id, parse_json(concat('{"a": ', id, ', "b": [', id, ', "x"]}')) FROM range(4);
--> nothing
INSERT INTO @i VALUES (9, NULL);
--> nothing
SELECT id, v:a::INT, to_json(v:b) FROM @i WHERE v:a::INT >= 2;
--> rows [[2, 2, "[2,\"x\"]"], [3, 3, "[3,\"x\"]"]]
SELECT id FROM @i WHERE v IS NULL;
--> rows [[9]]
UPDATE @i SET v = parse_json('[1, null]') WHERE id = 0;
--> rows [[1]]
DELETE FROM @i WHERE variant_get(v, '$.a', 'int') = 1;
--> rows [[1]]
MERGE INTO @i t USING (SELECT 2 AS id, parse_json('"text"') AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 1, 0, 0]]
SELECT id, to_json(v) FROM @i;
--> rows [[0, "[1,null]"], [2, "\"text\""], [3, "{\"a\":3,\"b\":[3,\"x\"]}"], [9, null]]
SELECT id, to_json(v) FROM @i VERSION AS OF 1 WHERE id = 0;
--> rows [[0, "{\"a\":0,\"b\":[0,\"x\"]}"]]
SELECT id FROM @i ORDER BY v;
--> error DATATYPE_MISMATCH.INVALID_ORDERING_TYPE
SELECT count(*) FROM @i GROUP BY v;
--> error GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE
SELECT schema_of_variant_agg(v) FROM @i;
--> rows [["VARIANT"]]
-- what a variant cannot be
CREATE TABLE @j (v VARIANT, w INT) USING delta PARTITIONED BY (v);
--> error INVALID_OPTION
--| error INVALID_PARTITION_COLUMN_DATA_TYPE # the same refusal under a name of its own
CREATE TABLE @j (v VARIANT, w INT) USING delta CLUSTER BY (v);
--> error INVALID_OPTION
--| error DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED # the same refusal under a name of its own
CREATE TABLE @j (v VARIANT, w INT) USING delta;
--> nothing
INSERT INTO @j VALUES (parse_json('null'), 1);
--> nothing
ALTER TABLE @j ADD CONSTRAINT c CHECK (variant_get(v, '$.a', 'int') > 0);
--> error DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
ALTER TABLE @j ADD CONSTRAINT c CHECK (variant_get(v, '$.a', 'int') > 0 OR is_variant_null(v));
--> nothing
INSERT INTO @j VALUES (parse_json('{"a": -1}'), 1);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @j VALUES (parse_json('{"a": 1}'), 1);
--> nothing
SELECT to_json(v) FROM @j;
--> rows [["null"], ["{\"a\":1}"]]
-- variants inside and added later
CREATE TABLE @k (id INT) USING delta;
--> nothing
INSERT INTO @k VALUES (1);
--> nothing
ALTER TABLE @k ADD COLUMNS (v VARIANT, s STRUCT<w: VARIANT>);
--> nothing
INSERT INTO @k VALUES (2, parse_json('1'), named_struct('w', parse_json('{"k": true}')));
--> nothing
SELECT id, to_json(v), s.w:k::BOOLEAN FROM @k;
--> rows [[1, null, null], [2, "1", true]]
MERGE WITH SCHEMA EVOLUTION INTO @k t USING (SELECT 3 AS id, parse_json('[]') AS more) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT id, to_json(more) FROM @k WHERE id = 3;
--> rows [[3, "[]"]]
-- rows marked by deletion vectors are gone everywhere
CREATE TABLE @l (id INT, path STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
--> nothing
INSERT INTO @l SELECT id, concat('f', id % 4) FROM range(20);
--> nothing
DELETE FROM @l WHERE path = 'f0';
--> rows [[5]]
SELECT count(*), sum(id) FROM @l;
--> rows [[15, 150]]
SELECT count(*) FROM @l a JOIN @l b ON a.id = b.id;
--> rows [[15]]
SELECT count(*) FROM @l WHERE id IN (SELECT id FROM @l WHERE id % 2 = 0);
--> rows [[5]]
UPDATE @l SET path = 'x' WHERE id = 0;
--> rows [[0]]
UPDATE @l SET path = 'x' WHERE id = 1;
--> rows [[1]]
MERGE INTO @l t USING (SELECT id FROM range(3)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET path = 'y' WHEN NOT MATCHED THEN INSERT (id, path) VALUES (s.id, 'new');
--> rows [[3, 2, 0, 1]]
SELECT id, path FROM @l WHERE id < 4;
--> rows [[0, "new"], [1, "y"], [2, "y"], [3, "f3"]]
INSERT INTO @l VALUES (100, 'f0');
--> nothing
DELETE FROM @l WHERE id % 2 = 1;
--> rows [[10]]
SELECT count(*), sum(id), min(id) FROM @l;
--> rows [[7, 150, 0]]
SELECT count(*) FROM @l VERSION AS OF 2;
--> rows [[15]]
-- deletion vectors with a mapping, partitions and odd names
CREATE TABLE @m (`a b` INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @m SELECT id, CAST(id % 2 AS STRING) FROM range(10);
--> nothing
DELETE FROM @m WHERE `a b` IN (1, 2);
--> rows [[2]]
ALTER TABLE @m RENAME COLUMN `a b` TO c;
--> nothing
DELETE FROM @m WHERE c = 3;
--> rows [[1]]
UPDATE @m SET p = 'new' WHERE c = 4;
--> rows [[1]]
SELECT p, count(*), sum(c) FROM @m GROUP BY p;
--> rows [["0", 3, 14], ["1", 3, 21], ["new", 1, 4]]
DELETE FROM @m WHERE p = '1';
--> rows [[3]]
SELECT c FROM @m;
--> rows [[0], [4], [6], [8]]
ALTER TABLE @m SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
DELETE FROM @m WHERE c = 0;
--> rows [[1]]
SELECT c FROM @m;
--> rows [[4], [6], [8]]
-- ids of rows stay with their rows
CREATE TABLE @n (k INT, v STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true');
--> nothing
INSERT INTO @n SELECT id, 'a' FROM range(5);
--> nothing
SELECT k, _metadata.row_id, _metadata.row_commit_version FROM @n;
--> rows [[0, 0, 1], [1, 1, 1], [2, 2, 1], [3, 3, 1], [4, 4, 1]]
UPDATE @n SET v = 'b' WHERE k = 1;
--> rows [[1]]
DELETE FROM @n WHERE k = 0;
--> rows [[1]]
MERGE INTO @n t USING (SELECT 2 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'c';
--> rows [[1, 1, 0, 0]]
SELECT k, _metadata.row_id, _metadata.row_commit_version FROM @n WHERE k < 4;
--> rows [[1, 1, 2], [2, 2, 4], [3, 3, 1]]
SELECT k FROM @n WHERE _metadata.row_id = 3;
--> rows [[3]]
SELECT count(*) FROM @n WHERE _metadata.row_id IN (SELECT _metadata.row_id FROM @n WHERE v = 'a');
--> rows [[2]]
--| rows [[4]] # there the ids of both mentions of the table are taken for the same column
SELECT max(_metadata.row_id) < 5 FROM @n;
--> rows [[true]]
-- ids of rows need their property
CREATE TABLE @o (k INT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'false');
--> nothing
INSERT INTO @o VALUES (1), (2);
--> nothing
SELECT _metadata.row_id FROM @o;
--> error FIELD_NOT_FOUND
ALTER TABLE @o SET TBLPROPERTIES ('delta.rowTracking.materializedRowIdColumnName' = 'x');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNKNOWN_CONFIGURATION # the same refusal under a name of its own
ALTER TABLE @o SET TBLPROPERTIES ('delta.enableRowTracking' = 'true');
--> nothing
SELECT count(DISTINCT _metadata.row_id) FROM @o;
--> rows [[2]]
INSERT INTO @o VALUES (3);
--> nothing
SELECT count(DISTINCT _metadata.row_id) FROM @o;
--> rows [[3]]
ALTER TABLE @o UNSET TBLPROPERTIES ('delta.enableRowTracking');
--> nothing
SELECT _metadata.row_id FROM @o;
--> error FIELD_NOT_FOUND
SELECT * FROM @o;
--> rows [[1], [2], [3]]
-- empty texts, NULLs and odd texts in partitions
CREATE TABLE @p (v INT, p STRING) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @p VALUES (1, 'a/b'), (2, 'c=d'), (3, 'e%20f'), (4, 'g h'), (5, ' '), (6, 'ü:"\\'), (7, 'null'), (8, '#?');
--> nothing
SELECT * FROM @p;
--> rows [[1, "a/b"], [2, "c=d"], [3, "e%20f"], [4, "g h"], [5, " "], [6, "ü:\"\\"], [7, "null"], [8, "#?"]]
SELECT v FROM @p WHERE p = 'e%20f';
--> rows [[3]]
SELECT v FROM @p WHERE p = ' ' OR p = 'null';
--> rows [[5], [7]]
UPDATE @p SET v = v + 100 WHERE p LIKE '%:%' OR p = 'a/b';
--> rows [[2]]
DELETE FROM @p WHERE p >= 'g';
--> rows [[3]]
SELECT * FROM @p;
--> rows [[101, "a/b"], [2, "c=d"], [3, "e%20f"], [5, " "], [8, "#?"]]
-- partitions of every type
CREATE TABLE @q (v INT, a TINYINT, b BIGINT, c DATE, d TIMESTAMP, e DECIMAL(5, 2), f BOOLEAN, g DOUBLE, h BINARY) USING delta PARTITIONED BY (a, b, c, d, e, f, g, h);
--> nothing
INSERT INTO @q VALUES (1, -1, 5000000000, DATE'2020-02-29', TIMESTAMP'2020-02-29 12:00:00.5', 1.50, true, -0.0, X'4142'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
--> nothing
SELECT v, a, b, c, d, e, f, g, hex(h) FROM @q WHERE v = 1;
--> rows [[1, -1, 5000000000, "2020-02-29", "2020-02-29 12:00:00.500000+00:00", "1.50", true, 0.0, "4142"]]
SELECT v FROM @q WHERE e = 1.5 AND f AND d > '2020-02-29' AND c = '2020-02-29';
--> rows [[1]]
SELECT v FROM @q WHERE g = 0.0;
--> rows [[1]]
SELECT v FROM @q WHERE h = X'4142';
--> rows [[1]]
SELECT v FROM @q WHERE a IS NULL AND h IS NULL;
--> rows [[2]]
DELETE FROM @q WHERE b = 5000000000;
--> rows [[1]]
SELECT count(*) FROM @q;
--> rows [[1]]
-- time travel reads the columns of its version
CREATE TABLE @r (a INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @r VALUES (1);
--> nothing
ALTER TABLE @r ADD COLUMN b INT;
--> nothing
INSERT INTO @r VALUES (2, 3);
--> nothing
ALTER TABLE @r RENAME COLUMN a TO c;
--> nothing
ALTER TABLE @r DROP COLUMN b;
--> nothing
SELECT * FROM @r;
--> rows [[1], [2]]
SELECT a, b FROM @r VERSION AS OF 3;
--> rows [[1, null], [2, 3]]
SELECT a FROM @r VERSION AS OF 1;
--> rows [[1]]
SELECT c FROM @r VERSION AS OF 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT n.c, o.a FROM @r n JOIN @r VERSION AS OF 1 o ON n.c = o.a;
--> rows [[1, 1]]
SELECT count(*) FROM @r VERSION AS OF -1;
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
SELECT count(*) FROM @r VERSION AS OF 'x';
--> error INVALID_OPTION
--| error DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE # the same refusal under a name of its own
SELECT count(*) FROM @r VERSION AS OF 1 + 1;
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
SELECT count(*) FROM @r FOR SYSTEM_VERSION AS OF 1;
--> rows [[1]]
SELECT count(*) FROM @r TIMESTAMP AS OF current_timestamp() - INTERVAL 100 YEARS;
--> error DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
--| error UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY # there the time of a path is no expression but a literal
SELECT count(*) FROM @r TIMESTAMP AS OF NULL;
--> error DELTA_TIMESTAMP_INVALID
--| error INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT # the same refusal under a name of its own
SELECT count(*) FROM @r TIMESTAMP AS OF 'garbage';
--> error DELTA_TIMESTAMP_INVALID
--| error INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT # the same refusal under a name of its own
SELECT count(*) FROM @r TIMESTAMP AS OF '2999-01-01';
--> error DELTA_TIMESTAMP_GREATER_THAN_COMMIT
