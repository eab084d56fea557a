-- columns are named in any order, and some are left out
CREATE TABLE @a (a INT, b STRING, c DOUBLE) USING delta;
--> nothing
INSERT INTO @a (c, a, b) VALUES (1.5, 1, 'x');
--> nothing
INSERT INTO @a (b) VALUES ('y');
--> nothing
INSERT INTO @a (C, A) SELECT 2.5, 2;
--> nothing
INSERT INTO @a BY NAME SELECT 'z' AS b, 3 AS a;
--> nothing
INSERT INTO @a BY NAME SELECT 'z' AS b, 3 AS nope;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error DELTA_METADATA_MISMATCH # the same refusal under a name of its own
INSERT INTO @a BY NAME SELECT 1 AS a, 2 AS A, 'x' AS b;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA # the same refusal under a name of its own
INSERT INTO @a (a, b) SELECT 1;
--> error DELTA_SCHEMA_MISMATCH
--| error INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS # the same refusal under a name of its own
INSERT INTO @a (a) SELECT 1, 2;
--> error DELTA_SCHEMA_MISMATCH
--| error INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS # the same refusal under a name of its own
INSERT INTO @a SELECT 1, 'x';
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_INSERT_COLUMN_ARITY_MISMATCH # the same refusal under a name of its own
INSERT INTO @a (a.b) VALUES (1);
--> error PARSE_SYNTAX_ERROR
SELECT * FROM @a;
--> rows [[1, "x", 1.5], [2, null, 2.5], [3, "z", null], [null, "y", null]]
-- columns are named in any order in an overwrite
CREATE TABLE @b (a INT, b STRING, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT OVERWRITE @b (p, a, b) VALUES (1, 1, 'x'), (2, 2, 'y');
--> nothing
INSERT OVERWRITE @b (b, p) VALUES ('z', 3);
--> nothing
SELECT * FROM @b;
--> rows [[null, "z", 3]]
INSERT OVERWRITE @b BY NAME SELECT 4 AS p, 5 AS a;
--> nothing
SELECT * FROM @b;
--> rows [[5, null, 4]]
-- static partitions with names of columns
CREATE TABLE @c (a INT, b STRING, p INT, q STRING) USING delta PARTITIONED BY (p, q);
--> nothing
INSERT INTO @c PARTITION (p = 1, q = 'x') VALUES (1, 'a');
--> nothing
INSERT INTO @c PARTITION (q = 'y', p = 2) (b, a) VALUES ('b', 2);
--> nothing
INSERT INTO @c PARTITION (p = 3) VALUES (3, 'c', 'z');
--> nothing
INSERT INTO @c PARTITION (p = 3) (a, b, q) VALUES (4, 'd', 'w');
--> nothing
INSERT INTO @c PARTITION (q, p = 5) VALUES (5, 'e', 'dyn');
--> nothing
INSERT INTO @c PARTITION (a = 1) VALUES ('x', 1, 'y');
--> error INVALID_OPTION
--| error NON_PARTITION_COLUMN # the same refusal under a name of its own
INSERT INTO @c PARTITION (p = 1, p = 2) VALUES (1, 'a', 'x');
--> error DELTA_SCHEMA_MISMATCH
--| error DUPLICATE_KEY # the same refusal under a name of its own
INSERT INTO @c PARTITION (p = 1) (p, a, b, q) VALUES (1, 1, 'a', 'x');
--> error INVALID_OPTION
--| error STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST # the same refusal under a name of its own
INSERT INTO @c PARTITION (p = 'text', q = 'x') VALUES (1, 'a');
--> error EXECUTION_FAILED
--| error CAST_INVALID_INPUT # the same refusal under a name of its own
INSERT INTO @c PARTITION (nope = 1) VALUES (1, 'a', 1, 'q');
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error NON_PARTITION_COLUMN # the same refusal under a name of its own
INSERT INTO @c PARTITION (p = NULL, q = 'n') VALUES (6, 'f');
--> nothing
SELECT * FROM @c;
--> rows [[1, "a", 1, "x"], [2, "b", 2, "y"], [3, "c", 3, "z"], [4, "d", 3, "w"], [5, "e", 5, "dyn"], [6, "f", null, "n"]]
-- an overwrite of static partitions
CREATE TABLE @d (a INT, p INT, q STRING) USING delta PARTITIONED BY (p, q);
--> nothing
INSERT INTO @d VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x'), (4, NULL, 'x');
--> nothing
INSERT OVERWRITE @d PARTITION (p = 1, q = 'x') VALUES (10);
--> nothing
SELECT * FROM @d;
--> rows [[10, 1, "x"], [2, 1, "y"], [3, 2, "x"], [4, null, "x"]]
INSERT OVERWRITE @d PARTITION (p = 1) VALUES (20, 'z');
--> nothing
SELECT * FROM @d;
--> rows [[20, 1, "z"], [3, 2, "x"], [4, null, "x"]]
INSERT OVERWRITE @d PARTITION (p = NULL) VALUES (40, 'n');
--> nothing
SELECT * FROM @d;
--> rows [[20, 1, "z"], [3, 2, "x"], [40, null, "n"]]
INSERT OVERWRITE @d PARTITION (p = 9) SELECT a, q FROM @d WHERE false;
--> nothing
SELECT count(*) FROM @d;
--> rows [[3]]
INSERT OVERWRITE @d PARTITION (p, q) VALUES (50, 5, 'v');
--> nothing
SELECT * FROM @d;
--> rows [[50, 5, "v"]]
-- an overwrite with dots in names
CREATE TABLE @e (`a.b` STRING, `c.d` STRING) USING delta PARTITIONED BY (`a.b`) TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT OVERWRITE @e PARTITION (`a.b` = 'x') VALUES ('v');
--> nothing
INSERT INTO @e PARTITION (`a.b`) VALUES ('w', 'y');
--> nothing
INSERT OVERWRITE @e PARTITION (`a.b` = 'x') (`c.d`) VALUES ('z');
--> nothing
SELECT * FROM @e;
--> rows [["w", "y"], ["x", "z"]]
-- a replaced part of a table
CREATE TABLE @f (a INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @f VALUES (1, 1), (2, 2), (3, 3);
--> nothing
INSERT INTO @f REPLACE WHERE p = 1 OR a = 3 VALUES (10, 1), (3, 30);
--> nothing
INSERT INTO @f REPLACE WHERE p > 1 AND a > 100 VALUES (101, 2);
--> nothing
INSERT INTO @f REPLACE WHERE p = 2 VALUES (5, 3);
--> error DELTA_REPLACE_WHERE_MISMATCH
INSERT INTO @f REPLACE WHERE p = 2 SELECT * FROM @f WHERE p = 2 AND a = 2;
--> nothing
INSERT INTO @f REPLACE WHERE nope = 2 VALUES (5, 3);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
INSERT INTO @f REPLACE WHERE p + 1 VALUES (5, 3);
--> error DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN
--| error _LEGACY_ERROR_TEMP_1109 # the same refusal under a name of its own
INSERT INTO @f REPLACE WHERE true VALUES (7, 7);
--> nothing
INSERT INTO @f REPLACE WHERE P IS NULL VALUES (8, NULL);
--> nothing
SELECT * FROM @f;
--> rows [[7, 7], [8, null]]
-- a replaced part with a constraint, a default and a generated column
CREATE TABLE @g (a INT, b INT GENERATED ALWAYS AS (a * 2), c STRING DEFAULT 'd') USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> nothing
INSERT INTO @g (a) VALUES (1), (2);
--> nothing
ALTER TABLE @g ADD CONSTRAINT small CHECK (a < 100);
--> nothing
INSERT INTO @g REPLACE WHERE a = 1 VALUES (1, 2, 'new');
--> nothing
INSERT INTO @g REPLACE WHERE a = 1 VALUES (1, 3, 'wrong');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
--| error DELTA_REPLACE_WHERE_MISMATCH # the same refusal under a name of its own
INSERT INTO @g REPLACE WHERE b = 4 VALUES (2, 4, 'four');
--> nothing
INSERT INTO @g REPLACE WHERE a > 1 VALUES (100, 200, 'big');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
--| error DELTA_REPLACE_WHERE_MISMATCH # the same refusal under a name of its own
SELECT * FROM @g;
--> rows [[1, 2, "new"], [2, 4, "four"]]
-- values are cast to their columns
CREATE TABLE @h (a TINYINT, b DECIMAL(5, 2), c DATE, d TIMESTAMP, e BOOLEAN, f STRING, g FLOAT) USING delta;
--> nothing
INSERT INTO @h VALUES (1L, 1.555, '2020-01-01', '2020-01-01', 'true', 5, 1.5D);
--> nothing
INSERT INTO @h (a) VALUES (300);
--> error EXECUTION_FAILED
--| error CAST_OVERFLOW_IN_TABLE_INSERT # the same refusal under a name of its own
INSERT INTO @h (b) VALUES (12345);
--> error EXECUTION_FAILED
--| error CAST_OVERFLOW_IN_TABLE_INSERT # the same refusal under a name of its own
INSERT INTO @h (c) VALUES ('yesterday');
--> error EXECUTION_FAILED
--| error CAST_INVALID_INPUT # the same refusal under a name of its own
INSERT INTO @h (e) VALUES ('maybe');
--> error EXECUTION_FAILED
--| error CAST_INVALID_INPUT # the same refusal under a name of its own
INSERT INTO @h (e) VALUES (1);
--> error DELTA_SCHEMA_MISMATCH
--| nothing # refused as Spark's ANSI store assignment does; there every cast is taken
INSERT INTO @h (a) VALUES (array(1));
--> error DELTA_SCHEMA_MISMATCH
--| error DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION # the same refusal under a name of its own
INSERT INTO @h (f) VALUES (named_struct('x', 1));
--> error DELTA_SCHEMA_MISMATCH
--| nothing # refused as Spark's ANSI store assignment does; there every cast is taken
INSERT INTO @h (c) VALUES (TIMESTAMP'2020-02-02 10:00:00');
--> nothing
INSERT INTO @h (d) VALUES (DATE'2020-02-02');
--> nothing
INSERT INTO @h (a) VALUES (1.9);
--> nothing
SELECT a, b, c, d FROM @h WHERE e IS NULL AND f IS NULL;
--> rows [[1, null, null, null], [null, null, "2020-02-02", null], [null, null, null, "2020-02-02 00:00:00+00:00"]]
-- structs are cast field by field
CREATE TABLE @i (id INT, s STRUCT<a: BIGINT, b: STRING>, l ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, BIGINT>) USING delta;
--> nothing
INSERT INTO @i VALUES (1, named_struct('a', 1, 'b', 'x'), array(named_struct('x', 1L, 'y', 'z')), map('k', 1));
--> nothing
INSERT INTO @i SELECT 2, named_struct('c', 2, 'd', 'y'), array(named_struct('q', 2, 'r', 'w')), map(5, '7');
--> nothing
INSERT INTO @i BY NAME SELECT 3 AS id, named_struct('b', 'z', 'a', 3) AS s;
--> nothing
--| error CAST_INVALID_INPUT # there the fields of a struct go by position even so
INSERT INTO @i VALUES (4, named_struct('a', 1), NULL, NULL);
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_INSERT_COLUMN_ARITY_MISMATCH # the same refusal under a name of its own
INSERT INTO @i VALUES (5, named_struct('a', 1, 'b', 'x', 'c', 2), NULL, NULL);
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_METADATA_MISMATCH # the same refusal under a name of its own
INSERT INTO @i BY NAME SELECT 6 AS id, named_struct('a', 6) AS s;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_INSERT_COLUMN_ARITY_MISMATCH # the same refusal under a name of its own
SELECT id, s.a, s.b, l[0].x, m['k'] FROM @i WHERE id < 3;
--> rows [[1, 1, "x", 1, 1], [2, 2, "y", 2, null]]
-- rows with new columns change the table
CREATE TABLE @j (a INT, s STRUCT<x: INT>) USING delta;
--> nothing
INSERT INTO @j VALUES (1, named_struct('x', 1));
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @j SELECT 2, named_struct('x', 2), 'new' AS b;
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @j BY NAME SELECT 3 AS a, 5.5 AS c;
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @j BY NAME SELECT 4 AS a, named_struct('x', 4, 'y', 'deep') AS s;
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @j SELECT 5, named_struct('x', 5, 'y', 'd', 'z', true), 'b', 1.0;
--> nothing
SELECT * FROM @j;
--> rows [[1, {"x": 1, "y": null, "z": null}, null, null], [2, {"x": 2, "y": null, "z": null}, "new", null], [3, null, null, "5.5"], [4, {"x": 4, "y": "deep", "z": null}, null, null], [5, {"x": 5, "y": "d", "z": true}, "b", "1.0"]]
DESCRIBE @j;
--> rows [["a", "int", null], ["b", "string", null], ["c", "decimal(2,1)", null], ["s", "struct<x:int,y:string,z:boolean>", null]]
-- elements and values of maps get fields
CREATE TABLE @k (l ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<v: INT>>) USING delta;
--> nothing
INSERT INTO @k VALUES (array(named_struct('a', 1)), map('k', named_struct('v', 1)));
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @k SELECT array(named_struct('a', 2, 'b', 'n')) AS l, map('k', named_struct('v', 2, 'w', true)) AS m;
--> nothing
INSERT WITH SCHEMA EVOLUTION INTO @k BY NAME SELECT array(named_struct('b', 'only')) AS l;
--> nothing
--| error DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION # here a field that an element lacks is NULL, as a column that a row lacks
SELECT l, map_values(m) FROM @k WHERE m IS NOT NULL;
--> rows [[[{"a": 1, "b": null}], [{"v": 1, "w": null}]], [[{"a": 2, "b": "n"}], [{"v": 2, "w": true}]]]
-- an overwrite that changes the table
CREATE TABLE @l (a INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @l VALUES (1, 1), (2, 2);
--> nothing
INSERT WITH SCHEMA EVOLUTION OVERWRITE @l SELECT 3 AS a, 1 AS p, 'new' AS b;
--> nothing
SELECT * FROM @l;
--> rows [[3, 1, "new"]]
INSERT WITH SCHEMA EVOLUTION INTO @l REPLACE WHERE p = 1 SELECT 4 AS a, 1 AS p, 'x' AS b, true AS c;
--> nothing
SELECT * FROM @l;
--> rows [[4, 1, "x", true]]
-- defaults in every kind of statement
CREATE TABLE @m (id INT, s STRING DEFAULT upper('x'), n INT DEFAULT 7, d DATE DEFAULT DATE'2020-01-01', l ARRAY<INT> DEFAULT array(1, 2)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> nothing
INSERT INTO @m (id) VALUES (1);
--> nothing
INSERT INTO @m VALUES (2, DEFAULT, 8, DEFAULT, NULL);
--> nothing
INSERT INTO @m (id, n) SELECT 3, NULL;
--> nothing
INSERT INTO @m BY NAME SELECT 4 AS id;
--> nothing
UPDATE @m SET n = DEFAULT, s = DEFAULT WHERE id = 3;
--> rows [[1]]
INSERT OVERWRITE @m (id) SELECT 10 FROM @m WHERE false UNION ALL SELECT 5;
--> nothing
SELECT * FROM @m;
--> rows [[5, "X", 7, "2020-01-01", [1, 2]]]
INSERT INTO @m VALUES (6, DEFAULT || 'x', 1, NULL, NULL);
--> error UNRESOLVED_COLUMN.WITHOUT_SUGGESTION
--| error DEFAULT_PLACEMENT_INVALID # the same refusal under a name of its own
INSERT INTO @m (id) VALUES (DEFAULT);
--> nothing
SELECT id, s, n FROM @m;
--> rows [[5, "X", 7], [null, "X", 7]]
-- what cannot be a default
CREATE TABLE @n (a INT, b INT DEFAULT 'text') USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error INVALID_DEFAULT_VALUE
--| error INVALID_DEFAULT_VALUE.DATA_TYPE # the same refusal under a name of its own
CREATE TABLE @n (a INT, b INT DEFAULT a + 1) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_DEFAULT_VALUE.NOT_CONSTANT # the same refusal under a name of its own
CREATE TABLE @n (a INT, b INT DEFAULT (SELECT 1)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error RULE_REFUSED
--| error INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION # the same refusal under a name of its own
CREATE TABLE @n (a INT, b INT DEFAULT nofunction()) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error RULE_REFUSED
--| error UNRESOLVED_ROUTINE # the same refusal under a name of its own
CREATE TABLE @n (a INT, b INT DEFAULT 5 DEFAULT 6) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> error PARSE_SYNTAX_ERROR
--| error CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE # the same refusal under a name of its own
CREATE TABLE @n (a INT, b INT DEFAULT 5) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> nothing
ALTER TABLE @n ALTER COLUMN b SET DEFAULT 'text';
--> error INVALID_DEFAULT_VALUE
--| error INVALID_DEFAULT_VALUE.DATA_TYPE # the same refusal under a name of its own
ALTER TABLE @n ALTER COLUMN nope SET DEFAULT 5;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @n ADD COLUMN c INT DEFAULT 9;
--> error WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED
ALTER TABLE @n ADD COLUMN c INT;
--> nothing
ALTER TABLE @n ALTER COLUMN c SET DEFAULT 9;
--> nothing
INSERT INTO @n (a) VALUES (1);
--> nothing
ALTER TABLE @n ALTER COLUMN c DROP DEFAULT;
--> nothing
INSERT INTO @n (a) VALUES (2);
--> nothing
SELECT * FROM @n;
--> rows [[1, 5, 9], [2, 5, null]]
-- an INSERT of a query over the table itself
CREATE TABLE @o (id INT, v STRING) USING delta;
--> nothing
INSERT INTO @o VALUES (1, 'a');
--> nothing
INSERT INTO @o SELECT id + 1, v FROM @o;
--> nothing
INSERT INTO @o SELECT id + (SELECT max(id) FROM @o), v FROM @o;
--> nothing
INSERT INTO @o TABLE @o;
--> nothing
INSERT OVERWRITE @o SELECT DISTINCT id, v FROM @o WHERE id > 1;
--> nothing
SELECT * FROM @o;
--> rows [[2, "a"], [3, "a"], [4, "a"]]
-- a text that means NULL to Hive, and texts of blanks
CREATE TABLE @p (v INT, p STRING) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @p PARTITION (p = '') VALUES (1);
--> nothing
INSERT INTO @p PARTITION (p = ' x ') VALUES (2);
--> nothing
SELECT v, p FROM @p;
--> rows [[1, null], [2, " x "]]
INSERT OVERWRITE @p PARTITION (p = '') VALUES (3);
--> error DELTA_REPLACE_WHERE_MISMATCH
SELECT v, p FROM @p;
--> rows [[1, null], [2, " x "]]
-- a column of VOID in rows and in a table
CREATE TABLE @q (a INT, v VOID, s STRUCT<x: INT, y: VOID>) USING delta;
--> nothing
INSERT INTO @q VALUES (1, NULL, named_struct('x', 1, 'y', NULL));
--> nothing
INSERT INTO @q (a) VALUES (2);
--> nothing
INSERT INTO @q VALUES (3, 5, NULL);
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_METADATA_MISMATCH # the same refusal under a name of its own
SELECT a, v, s.x FROM @q;
--> rows [[1, null, 1], [2, null, null]]
INSERT WITH SCHEMA EVOLUTION INTO @q SELECT 4 AS a, 'text' AS v, NULL AS s;
--> nothing
SELECT a, v FROM @q;
--> rows [[1, null], [2, null], [4, "text"]]
CREATE TABLE @r (v VOID) USING delta;
--> nothing
INSERT INTO @r VALUES (NULL);
--> error DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS
CREATE TABLE @s (a INT, l ARRAY<VOID>) USING delta;
--> nothing
INSERT INTO @s VALUES (1, NULL);
--> error DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE
-- a table without columns
CREATE TABLE @t USING delta;
--> nothing
SELECT * FROM @t;
--> error DELTA_READ_TABLE_WITHOUT_COLUMNS
INSERT INTO @t SELECT 1 AS a;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_METADATA_MISMATCH # the same refusal under a name of its own
ALTER TABLE @t ADD COLUMN a INT;
--> nothing
INSERT INTO @t VALUES (1);
--> nothing
SELECT * FROM @t;
--> rows [[1]]
-- TRUNCATE empties a table and nothing else
CREATE TABLE @u (a INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @u VALUES (1, 1), (2, 2);
--> nothing
TRUNCATE TABLE @u PARTITION (p = 1);
--> error NOT_BUILT_YET
--| error DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED # the same refusal under a name of its own
TRUNCATE TABLE @u;
--> nothing
SELECT count(*) FROM @u;
--> rows [[0]]
SELECT count(*) FROM @u VERSION AS OF 1;
--> rows [[2]]
TRUNCATE TABLE @u;
--> nothing
INSERT INTO @u VALUES (3, 3);
--> nothing
SELECT * FROM @u;
--> rows [[3, 3]]
TRUNCATE TABLE @none;
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
