-- a change of type inside a struct, a map and an array
CREATE TABLE @a (s STRUCT<a: TINYINT>, m MAP<TINYINT, SMALLINT>, l ARRAY<SMALLINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @a VALUES (named_struct('a', 1), map(2, 3), array(4));
--> nothing
ALTER TABLE @a CHANGE COLUMN s TYPE STRUCT<a: SMALLINT>;
--> error INVALID_OPTION
--| error CANNOT_UPDATE_FIELD.STRUCT_TYPE # the same refusal under a name of its own
ALTER TABLE @a CHANGE COLUMN m TYPE MAP<INT, INT>;
--> error INVALID_OPTION
--| error CANNOT_UPDATE_FIELD.MAP_TYPE # the same refusal under a name of its own
ALTER TABLE @a CHANGE COLUMN l TYPE ARRAY<INT>;
--> error INVALID_OPTION
--| error CANNOT_UPDATE_FIELD.ARRAY_TYPE # the same refusal under a name of its own
ALTER TABLE @a CHANGE COLUMN s.a TYPE SMALLINT;
--> nothing
ALTER TABLE @a CHANGE COLUMN m.key TYPE INT;
--> nothing
ALTER TABLE @a CHANGE COLUMN m.value TYPE INT;
--> nothing
ALTER TABLE @a CHANGE COLUMN l.element TYPE INT;
--> nothing
INSERT INTO @a VALUES (named_struct('a', 500), map(70000, 70001), array(70002));
--> nothing
SELECT s.a, map_keys(m), map_values(m), l FROM @a;
--> rows [[1, [2], [3], [4]], [500, [70000], [70001], [70002]]]
DESCRIBE @a;
--> rows [["l", "array<int>", null], ["m", "map<int,int>", null], ["s", "struct<a:smallint>", null]]
-- REPLACE COLUMNS with wider types inside
CREATE TABLE @b (s STRUCT<a: TINYINT>, m MAP<TINYINT, SMALLINT>, l ARRAY<SMALLINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @b VALUES (named_struct('a', 1), map(2, 3), array(4));
--> nothing
ALTER TABLE @b REPLACE COLUMNS (s STRUCT<a: SMALLINT>, m MAP<INT, INT>, l ARRAY<INT>);
--> nothing
INSERT INTO @b VALUES (named_struct('a', 500), map(70000, 70001), array(70002));
--> nothing
SELECT s.a, map_keys(m), map_values(m), l FROM @b;
--> rows [[1, [2], [3], [4]], [500, [70000], [70001], [70002]]]
-- a column that is NOT NULL gets another type
CREATE TABLE @c (a TINYINT NOT NULL) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @c VALUES (1);
--> nothing
ALTER TABLE @c CHANGE COLUMN a TYPE SMALLINT;
--> nothing
INSERT INTO @c VALUES (2);
--> nothing
INSERT INTO @c VALUES (NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
SELECT a, typeof(a) FROM @c;
--> rows [[1, "smallint"], [2, "smallint"]]
-- a column that a constraint names keeps its type
CREATE TABLE @d (a TINYINT, b TINYINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @d ADD CONSTRAINT ck CHECK (hash(a) > 0);
--> nothing
INSERT INTO @d VALUES (2, 2);
--> nothing
ALTER TABLE @d CHANGE COLUMN a TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @d CHANGE COLUMN b TYPE SMALLINT;
--> nothing
SELECT a, b, hash(a) FROM @d;
--> rows [[2, 2, 1765031574]]
-- a field that a constraint names keeps its type
CREATE TABLE @e (a STRUCT<x: TINYINT, y: TINYINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @e ADD CONSTRAINT ck CHECK (hash(a.x) > 0);
--> nothing
INSERT INTO @e (a) VALUES (named_struct('x', 2, 'y', 3));
--> nothing
ALTER TABLE @e CHANGE COLUMN a.x TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
SELECT a.x, a.y FROM @e;
--> rows [[2, 3]]
-- elements and values of a map that constraints name
CREATE TABLE @f (m MAP<TINYINT, TINYINT>, a ARRAY<TINYINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @f VALUES (map(1, 2, 7, -3), array(1, -2, 3));
--> nothing
ALTER TABLE @f CHANGE COLUMN a.element TYPE SMALLINT;
--> nothing
ALTER TABLE @f ADD CONSTRAINT ch1 CHECK (hash(a[1]) = -1160545675);
--> nothing
ALTER TABLE @f CHANGE COLUMN a.element TYPE INT;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @f CHANGE COLUMN m.value TYPE SMALLINT;
--> nothing
ALTER TABLE @f ADD CONSTRAINT ch2 CHECK (sign(m[7]) < 0);
--> nothing
ALTER TABLE @f CHANGE COLUMN m.value TYPE INT;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @f CHANGE COLUMN m.key TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
-- evolution does not widen what a constraint names
CREATE TABLE @g (a STRUCT<x: TINYINT, y: TINYINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @g ADD CONSTRAINT ck CHECK (hash(a.x) > 0);
--> nothing
INSERT INTO @g VALUES (named_struct('x', 2, 'y', 3));
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @g SELECT named_struct('x', 200, 'y', CAST(5 AS TINYINT)) AS a;
--> error EXECUTION_FAILED
--| error DELTA_CONSTRAINT_DATA_TYPE_MISMATCH # the same refusal under a name of its own
SELECT a.x, a.y FROM @g;
--> rows [[2, 3]]
-- RESTORE takes a later constraint and a later type away
CREATE TABLE @h (a TINYINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @h VALUES (2);
--> nothing
ALTER TABLE @h CHANGE COLUMN a TYPE INT;
--> nothing
INSERT INTO @h VALUES (5);
--> nothing
SELECT a, hash(a) FROM @h;
--> rows [[2, 1765031574], [5, 1023896466]]
ALTER TABLE @h ADD CONSTRAINT ck CHECK (hash(a) > 0);
--> nothing
RESTORE TABLE @h VERSION AS OF 1;
--> columns ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files", "removed_files_size", "restored_files_size"]
INSERT INTO @h VALUES (1);
--> nothing
SELECT a, hash(a), typeof(a) FROM @h;
--> rows [[1, -559580957, "tinyint"], [2, 1765031574, "tinyint"]]
INSERT INTO @h VALUES (1000);
--> error EXECUTION_FAILED
--| error CAST_OVERFLOW_IN_TABLE_INSERT # the same refusal under a name of its own
-- a column that a generated column is made of keeps its type
CREATE TABLE @i (a TINYINT, b TINYINT, gen INT GENERATED ALWAYS AS (hash(a))) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @i (a, b) VALUES (2, 2);
--> nothing
ALTER TABLE @i CHANGE COLUMN a TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @i CHANGE COLUMN b TYPE SMALLINT;
--> nothing
ALTER TABLE @i CHANGE COLUMN gen TYPE BIGINT;
--> error INVALID_OPTION
--| error DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH # the same refusal under a name of its own
SELECT * FROM @i;
--> rows [[2, 2, 1765031574]]
-- a field that a generated column is made of
CREATE TABLE @j (a STRUCT<f: TINYINT, g: TINYINT>, gen TINYINT GENERATED ALWAYS AS (a.f)) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @j (a) VALUES (named_struct('f', 7, 'g', 8));
--> nothing
ALTER TABLE @j CHANGE COLUMN a.f TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
SELECT gen FROM @j;
--> rows [[7]]
-- evolution does not widen what a generated column is made of
CREATE TABLE @k (a TINYINT, b TINYINT, gen INT GENERATED ALWAYS AS (hash(a))) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @k (a, b) VALUES (2, 2);
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @k (a, b) VALUES (200, CAST(3 AS TINYINT));
--> error EXECUTION_FAILED
--| error DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH # the same refusal under a name of its own
INSERT WITH SCHEMA EVOLUTION INTO @k (a, b) VALUES (CAST(2 AS TINYINT), 300);
--> nothing
SELECT a, b, typeof(a), typeof(b) FROM @k;
--> rows [[2, 2, "tinyint", "int"], [2, 300, "tinyint", "int"]]
-- the extreme values of each integer
CREATE TABLE @l (a TINYINT, b SMALLINT, c INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @l VALUES (-128, -32768, -2147483648), (127, 32767, 2147483647), (NULL, NULL, NULL);
--> nothing
ALTER TABLE @l ALTER COLUMN a TYPE BIGINT;
--> nothing
ALTER TABLE @l ALTER COLUMN b TYPE BIGINT;
--> nothing
ALTER TABLE @l ALTER COLUMN c TYPE BIGINT;
--> nothing
INSERT INTO @l VALUES (-9223372036854775808, 9223372036854775807, 0);
--> nothing
SELECT * FROM @l;
--> rows [[-128, -32768, -2147483648], [-9223372036854775808, 9223372036854775807, 0], [127, 32767, 2147483647], [null, null, null]]
SELECT a FROM @l WHERE a < -127;
--> rows [[-128], [-9223372036854775808]]
SELECT b FROM @l WHERE b > 32766;
--> rows [[32767], [9223372036854775807]]
SELECT min(c), max(c), count(a) FROM @l;
--> rows [[-2147483648, 2147483647, 3]]
-- floats become doubles
CREATE TABLE @m (a FLOAT, b INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @m VALUES (1234.56789, 1), (-0.0, -1), (CAST('NaN' AS FLOAT), 2147483647), (CAST('-Infinity' AS FLOAT), -2147483648);
--> nothing
ALTER TABLE @m ALTER COLUMN a TYPE DOUBLE;
--> nothing
ALTER TABLE @m ALTER COLUMN b TYPE DOUBLE;
--> nothing
INSERT INTO @m VALUES (987654321.987654321D, 1.5D);
--> nothing
SELECT CAST(a AS STRING), b FROM @m;
--> rows [["-Infinity", -2147483648.0], ["0.0", -1.0], ["1234.56787109375", 1.0], ["9.876543219876543E8", 1.5], ["NaN", 2147483647.0]]
SELECT count(*) FROM @m WHERE a > 1234D AND a < 1235D;
--> rows [[1]]
SELECT count(*) FROM @m WHERE b = 2147483647D;
--> rows [[1]]
-- integers become decimals that hold them
CREATE TABLE @n (a TINYINT, b SMALLINT, c INT, d BIGINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @n VALUES (1, -2, 3, 9223372036854775807);
--> nothing
ALTER TABLE @n ALTER COLUMN a TYPE DECIMAL(9, 0);
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @n ALTER COLUMN a TYPE DECIMAL(10, 0);
--> nothing
ALTER TABLE @n ALTER COLUMN b TYPE DECIMAL(11, 1);
--> nothing
ALTER TABLE @n ALTER COLUMN c TYPE DECIMAL(11, 2);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @n ALTER COLUMN c TYPE DECIMAL(12, 2);
--> nothing
ALTER TABLE @n ALTER COLUMN d TYPE DECIMAL(19, 0);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @n ALTER COLUMN d TYPE DECIMAL(20, 0);
--> nothing
INSERT INTO @n VALUES (9999999999, 1.5, 2.25, 99999999999999999999);
--> nothing
SELECT * FROM @n;
--> rows [["1", "-2.0", "3.00", "9223372036854775807"], ["9999999999", "1.5", "2.25", "99999999999999999999"]]
SELECT d FROM @n WHERE d = 9223372036854775807;
--> rows [["9223372036854775807"]]
-- decimals of more digits
CREATE TABLE @o (a DECIMAL(9, 2), b DECIMAL(8, 2), c DECIMAL(9, 2)) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @o VALUES (1.23, 10.34, 1.23), (NULL, NULL, NULL);
--> nothing
ALTER TABLE @o ALTER COLUMN a TYPE DECIMAL(18, 2);
--> nothing
ALTER TABLE @o ALTER COLUMN b TYPE DECIMAL(9, 3);
--> nothing
ALTER TABLE @o ALTER COLUMN c TYPE DECIMAL(19, 3);
--> nothing
ALTER TABLE @o ALTER COLUMN c TYPE DECIMAL(19, 4);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @o ALTER COLUMN c TYPE DECIMAL(20, 2);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
INSERT INTO @o VALUES (9999999999999999.99, 999999.999, 9999999999999999.999);
--> nothing
SELECT * FROM @o;
--> rows [["1.23", "10.340", "1.230"], ["9999999999999999.99", "999999.999", "9999999999999999.999"], [null, null, null]]
-- dates become timestamps without a zone
CREATE TABLE @p (a DATE) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @p VALUES (DATE'2020-01-01'), (DATE'1312-02-27'), (NULL);
--> nothing
ALTER TABLE @p ALTER COLUMN a TYPE TIMESTAMP;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @p ALTER COLUMN a TYPE TIMESTAMP_NTZ;
--> error INVALID_OPTION
--| error DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT # the same refusal under a name of its own
ALTER TABLE @p SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported');
--> nothing
ALTER TABLE @p ALTER COLUMN a TYPE TIMESTAMP_NTZ;
--> nothing
INSERT INTO @p VALUES (TIMESTAMP_NTZ'2020-03-17 15:23:15.123456');
--> nothing
SELECT a FROM @p;
--> rows [["1312-02-27 00:00:00"], ["2020-01-01 00:00:00"], ["2020-03-17 15:23:15.123456"], [null]]
SELECT a FROM @p WHERE a >= TIMESTAMP_NTZ'2020-01-01 00:00:00';
--> rows [["2020-01-01 00:00:00"], ["2020-03-17 15:23:15.123456"]]
-- changes of type that are never taken
CREATE TABLE @q (i INT, d DOUBLE, s STRING, b BOOLEAN, t TIMESTAMP, n TIMESTAMP_NTZ, x BINARY, e DECIMAL(5, 2)) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @q ALTER COLUMN i TYPE SMALLINT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN i TYPE FLOAT;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN i TYPE BOOLEAN;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN d TYPE FLOAT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN d TYPE DECIMAL(38, 5);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN s TYPE BINARY;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN b TYPE INT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN t TYPE DATE;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN t TYPE TIMESTAMP_NTZ;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN n TYPE TIMESTAMP;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN x TYPE STRING;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN e TYPE DECIMAL(4, 2);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN e TYPE DECIMAL(6, 1);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN e TYPE DOUBLE;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q ALTER COLUMN nope TYPE BIGINT;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
-- without the property there is no change of type
CREATE TABLE @r (a TINYINT) USING delta;
--> nothing
ALTER TABLE @r ALTER COLUMN a TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r ALTER COLUMN a TYPE TINYINT;
--> nothing
ALTER TABLE @r SET TBLPROPERTIES ('delta.enableTypeWidening' = 'bla');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @r SET TBLPROPERTIES ('delta.feature.typeWidening' = 'supported');
--> nothing
ALTER TABLE @r ALTER COLUMN a TYPE SMALLINT;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @r ALTER COLUMN a TYPE SMALLINT;
--> nothing
ALTER TABLE @r SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false');
--> nothing
ALTER TABLE @r ALTER COLUMN a TYPE INT;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
DESCRIBE @r;
--> rows [["a", "smallint", null]]
-- a MERGE widens the columns that it takes as they are
CREATE TABLE @s (k INT, a SMALLINT, b SMALLINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @s VALUES (0, 0, 5);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @s t USING (SELECT 1 AS k, CAST(7 AS TINYINT) AS a, CAST(8 AS TINYINT) AS b) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT a, b, typeof(a), typeof(b) FROM @s;
--> rows [[0, 5, "smallint", "smallint"], [7, 8, "smallint", "smallint"]]
MERGE WITH SCHEMA EVOLUTION INTO @s t USING (SELECT 0 AS k, 70000 AS a) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT a, b, typeof(a), typeof(b) FROM @s;
--> rows [[7, 8, "int", "smallint"], [70000, 5, "int", "smallint"]]
MERGE INTO @s t USING (SELECT 2 AS k, 5000000000 AS a, 8 AS b) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> error EXECUTION_FAILED
--| error DELTA_CAST_OVERFLOW_IN_TABLE_WRITE # the same refusal under a name of its own
MERGE INTO @s t USING (SELECT 2 AS k, 50L AS a, 8 AS b) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT k, a, typeof(a), typeof(b) FROM @s;
--> rows [[0, 70000, "int", "smallint"], [1, 7, "int", "smallint"], [2, 50, "int", "smallint"]]
-- a MERGE widens fields, elements and values of maps
CREATE TABLE @t (k INT, s STRUCT<a: SMALLINT>, l ARRAY<SMALLINT>, m MAP<STRING, SMALLINT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @t VALUES (1, named_struct('a', 1), array(1, 2), map('x', 1));
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 1 AS k, named_struct('a', 70000) AS s) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 2 AS k, array(70001, NULL) AS l, map('y', 70002) AS m) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT s.a, l, map_entries(m) FROM @t;
--> rows [[70000, [1, 2], [{"key": "x", "value": 1}]], [null, [70001, null], [{"key": "y", "value": 70002}]]]
DESCRIBE @t;
--> rows [["k", "int", null], ["l", "array<int>", null], ["m", "map<string,int>", null], ["s", "struct<a:int>", null]]
-- without schema evolution a MERGE keeps every type
CREATE TABLE @u (k INT, a SMALLINT, d FLOAT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @u VALUES (1, 1, 1.5);
--> nothing
MERGE INTO @u t USING (SELECT 1 AS k, 2 AS a, 2.5D AS d) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE INTO @u t USING (SELECT 1 AS k, 70000 AS a, 2.5D AS d) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.a;
--> error EXECUTION_FAILED
--| error TASK_WRITE_FAILED # the same refusal under a name of its own
SELECT k, a, d, typeof(a), typeof(d) FROM @u;
--> rows [[1, 2, 2.5, "smallint", "float"]]
-- INSERT widens by position and by name, and fills what is missing
CREATE TABLE @v (a SMALLINT, b STRUCT<x: SMALLINT>, c SMALLINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @v VALUES (1, named_struct('x', 70000), 2);
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @v BY NAME SELECT 70001 AS a, named_struct('x', 5) AS b;
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @v (c, a) VALUES (70002, 3);
--> nothing
SELECT a, b.x, c FROM @v;
--> rows [[1, 70000, 2], [3, null, 70002], [70001, 5, null]]
DESCRIBE @v;
--> rows [["a", "int", null], ["b", "struct<x:int>", null], ["c", "int", null]]
-- an overwrite keeps a type and may widen it
CREATE TABLE @w (a SMALLINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @w VALUES (1);
--> nothing
INSERT OVERWRITE @w VALUES (70000);
--> error EXECUTION_FAILED
--| error CAST_OVERFLOW_IN_TABLE_INSERT # the same refusal under a name of its own
INSERT WITH SCHEMA EVOLUTION OVERWRITE @w SELECT 70000 AS a;
--> nothing
SELECT a, typeof(a) FROM @w;
--> rows [[70000, "int"]]
-- partitions of a widened column
CREATE TABLE @x (v INT, p TINYINT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @x VALUES (1, 1), (2, NULL);
--> nothing
ALTER TABLE @x ALTER COLUMN p TYPE INT;
--> nothing
INSERT INTO @x VALUES (3, 70000), (4, 1);
--> nothing
SELECT * FROM @x WHERE p = 1;
--> rows [[1, 1], [4, 1]]
DELETE FROM @x WHERE p = 70000;
--> rows [[1]]
UPDATE @x SET v = 9 WHERE p IS NULL;
--> rows [[1]]
SELECT * FROM @x;
--> rows [[1, 1], [4, 1], [9, null]]
-- older rows are changed after their column was widened
CREATE TABLE @y (k TINYINT, a INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @y VALUES (1, 1), (2, 2), (3, 3);
--> nothing
ALTER TABLE @y ALTER COLUMN k TYPE INT;
--> nothing
ALTER TABLE @y ALTER COLUMN a TYPE BIGINT;
--> nothing
UPDATE @y SET a = a + 5000000000 WHERE k = 1;
--> rows [[1]]
DELETE FROM @y WHERE k = 2;
--> rows [[1]]
MERGE INTO @y t USING (SELECT 300 AS k, 9L AS a UNION ALL SELECT 3, 8L) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT * FROM @y;
--> rows [[1, 5000000001], [3, 8], [300, 9]]
SELECT k, a, typeof(k) FROM @y VERSION AS OF 1;
--> rows [[1, 1, "tinyint"], [2, 2, "tinyint"], [3, 3, "tinyint"]]
-- a clone of a widened table
CREATE TABLE @z0 (k INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @z0 VALUES (3);
--> nothing
ALTER TABLE @z0 ALTER COLUMN k TYPE BIGINT;
--> nothing
CREATE TABLE @z SHALLOW CLONE @z0;
--> columns ["source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size", "copied_files_size"]
INSERT INTO @z VALUES (5000000000);
--> nothing
ALTER TABLE @z ALTER COLUMN k TYPE DECIMAL(20, 0);
--> nothing
SELECT k, typeof(k) FROM @z;
--> rows [["3", "decimal(20,0)"], ["5000000000", "decimal(20,0)"]]
SELECT k, typeof(k) FROM @z0;
--> rows [[3, "bigint"]]
-- a feature that was used is dropped, and rows stay
CREATE TABLE @aa (a TINYINT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'false');
--> nothing
INSERT INTO @aa VALUES (1), (2);
--> nothing
ALTER TABLE @aa ALTER COLUMN a TYPE INT;
--> nothing
INSERT INTO @aa VALUES (70000);
--> nothing
ALTER TABLE @aa DROP FEATURE typeWidening;
--> nothing
SELECT a, typeof(a) FROM @aa;
--> rows [[1, "int"], [2, "int"], [70000, "int"]]
ALTER TABLE @aa ALTER COLUMN a TYPE BIGINT;
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP # the same refusal under a name of its own
-- a column of VOID gets a type
CREATE TABLE @ab (a INT, v VOID) USING delta;
--> nothing
INSERT INTO @ab (a) VALUES (1);
--> nothing
ALTER TABLE @ab ALTER COLUMN v TYPE INT;
--> nothing
INSERT INTO @ab VALUES (2, 3);
--> nothing
SELECT * FROM @ab;
--> rows [[1, null], [2, 3]]
-- an identity column keeps its type
CREATE TABLE @ac (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @ac ALTER COLUMN id TYPE DECIMAL(20, 0);
--> error INVALID_OPTION
--| error DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED # the same refusal under a name of its own
ALTER TABLE @ac ALTER COLUMN v TYPE BIGINT;
--> nothing
