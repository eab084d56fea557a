-- PARTITIONED BY does not count case, and the table keeps the columns' spelling
CREATE TABLE @a (Id INT, Part STRING) USING delta PARTITIONED BY (PART);
--> nothing
INSERT INTO @a VALUES (1, 'x');
--> nothing
SELECT id, part FROM @a WHERE part = 'x';
--> rows [[1, "x"]]
SHOW PARTITIONS @a;
--> rows [["x"]]
-- rows are brought back from an older version
CREATE TABLE @b (id INT, v STRING) USING delta;
--> nothing
INSERT INTO @b VALUES (1, 'a'), (2, 'b'), (3, 'c');
--> nothing
DELETE FROM @b WHERE id < 3;
--> rows [[2]]
INSERT INTO @b SELECT * FROM @b VERSION AS OF 1 WHERE id = 1;
--> nothing
MERGE INTO @b t USING (SELECT * FROM @b VERSION AS OF 1) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT id, v FROM @b;
--> rows [[1, "a"], [2, "b"], [3, "c"]]
-- rows widen columns
CREATE TABLE @c (i INT, s SMALLINT, d INT, x STRUCT<n: INT>) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @c VALUES (1, 1, 1, named_struct('n', 1));
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @c SELECT CAST(1.5 AS DOUBLE), 70000, CAST(2.25 AS DECIMAL(12, 2)), named_struct('n', CAST(3.5 AS DOUBLE));
--> nothing
SELECT i, s, d, x.n FROM @c;
--> rows [[1.0, 1, "1.00", 1.0], [1.5, 70000, "2.25", 3.5]]
CREATE TABLE @d (id INT, x INT, y INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @d VALUES (1, 1, 1);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @d t USING (SELECT 1 AS id, CAST(2.5 AS DOUBLE) AS x, 7 AS y) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.x = s.x;
--> rows [[1, 1, 0, 0]]
SELECT id, x, y FROM @d;
--> rows [[1, 2.5, 1]]
-- names that a feed needs
CREATE TABLE @e (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> nothing
ALTER TABLE @e ADD COLUMN _commit_version BIGINT;
--> error RESERVED_CDC_COLUMNS_ON_WRITE
INSERT INTO @e VALUES (1);
--> nothing
CREATE TABLE @f (id INT, _change_type STRING) USING delta;
--> nothing
ALTER TABLE @f SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
--> error RESERVED_CDC_COLUMNS_ON_WRITE
--| error DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS # the same refusal under a name of its own
-- a rule of one member leaves the others free
CREATE TABLE @g (s STRUCT<a: INT, b: INT, c: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true');
--> nothing
ALTER TABLE @g ADD CONSTRAINT k CHECK (s.a > 0);
--> nothing
ALTER TABLE @g RENAME COLUMN s.b TO b2;
--> nothing
ALTER TABLE @g DROP COLUMN s.c;
--> nothing
ALTER TABLE @g RENAME COLUMN s.a TO a2;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @g ALTER COLUMN s.b2 TYPE BIGINT;
--> nothing
INSERT INTO @g SELECT named_struct('a', 1, 'b2', 5000000000);
--> nothing
SELECT s.a, s.b2 FROM @g;
--> rows [[1, 5000000000]]
-- REPLACE TABLE needs a table
REPLACE TABLE @h SHALLOW CLONE @a;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_CANNOT_REPLACE_MISSING_TABLE # the same refusal under a name of its own
CREATE TABLE @i (x INT GENERATED ALWAYS AS (y + 1) DEFAULT 5, y INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error GENERATED_COLUMN_WITH_DEFAULT_VALUE
CREATE TABLE @j (x BIGINT GENERATED ALWAYS AS IDENTITY DEFAULT 5, y INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error IDENTITY_COLUMN_WITH_DEFAULT_VALUE
CREATE TABLE @k (t STRING, v VARIANT GENERATED ALWAYS AS (parse_json(t))) USING delta;
--> error DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN
-- a partition's value beside columns that the table is to get
CREATE TABLE @l (id INT, p STRING, v INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @l PARTITION (p = 'x') SELECT 1, 2, 3 AS late;
--> nothing
INSERT INTO @l PARTITION (p = 'y') SELECT 4, 5, 6;
--> nothing
SELECT id, p, v, late FROM @l;
--> rows [[1, "x", 2, 3], [4, "y", 5, 6]]
-- REPLACE WHERE belongs to INTO
INSERT OVERWRITE @l REPLACE WHERE id = 1 SELECT 1, 'x', 2, 3;
--> error PARSE_SYNTAX_ERROR
-- bytes are stored as text
CREATE TABLE @m (s STRING) USING delta;
--> nothing
INSERT INTO @m SELECT CAST('abc' AS BINARY);
--> nothing
SELECT s FROM @m;
--> rows [["abc"]]
-- an order needs values that have one
CREATE TABLE @n (id INT, m MAP<STRING, INT>, v VARIANT) USING delta;
--> nothing
INSERT INTO @n SELECT 1, map('a', 1), parse_json('1');
--> nothing
OPTIMIZE @n ZORDER BY (m);
--> error INVALID_OPTION
--| error  # Spark finds no order among maps, and says so without a condition
OPTIMIZE @n ZORDER BY (v);
--> error INVALID_OPTION
--| error  # Spark finds no order among variants, and says so without a condition
OPTIMIZE @n ZORDER BY (nope);
--> error INVALID_OPTION
--| error DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST # the same refusal under a name of its own
-- what is cached is the newest version
CACHE TABLE @b VERSION AS OF 1;
--> error PARSE_SYNTAX_ERROR
