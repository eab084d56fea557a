-- a renamed column is read by its new name only
CREATE TABLE @a (a INT, b STRUCT<c: STRING, d: INT>, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @a VALUES (1, named_struct('c', 'x', 'd', 2), 'q');
--> nothing
ALTER TABLE @a RENAME COLUMN a TO a1;
--> nothing
ALTER TABLE @a RENAME COLUMN b.c TO c1;
--> nothing
ALTER TABLE @a RENAME COLUMN b TO b1;
--> nothing
ALTER TABLE @a RENAME COLUMN p TO p1;
--> nothing
INSERT INTO @a VALUES (3, named_struct('c1', 'y', 'd', 4), 'r');
--> nothing
SELECT a1, b1.c1, b1.d, p1 FROM @a WHERE p1 >= 'q';
--> rows [[1, "x", 2, "q"], [3, "y", 4, "r"]]
SELECT a FROM @a;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT b1.c FROM @a;
--> error FIELD_NOT_FOUND
DELETE FROM @a WHERE p1 = 'q' AND b1.c1 = 'x';
--> rows [[1]]
UPDATE @a SET b1.c1 = 'z';
--> rows [[1]]
SELECT a1, b1.c1, p1 FROM @a;
--> rows [[3, "z", "r"]]
-- two columns change their names in a circle
CREATE TABLE @b (a INT, b INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @b VALUES (1, 2);
--> nothing
ALTER TABLE @b RENAME COLUMN a TO c;
--> nothing
ALTER TABLE @b RENAME COLUMN b TO a;
--> nothing
ALTER TABLE @b RENAME COLUMN c TO b;
--> nothing
INSERT INTO @b VALUES (3, 4);
--> nothing
SELECT a, b FROM @b WHERE a < 4;
--> rows [[2, 1]]
SELECT a, b FROM @b WHERE b = 3;
--> rows [[4, 3]]
ALTER TABLE @b RENAME COLUMN a TO b;
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @b RENAME COLUMN nope TO c;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @b RENAME COLUMN a TO A;
--> nothing
--| error FIELD_ALREADY_EXISTS # here a name may change its case
SELECT A, b FROM @b;
--> rows [[2, 1], [4, 3]]
-- fields in elements and in maps are renamed
CREATE TABLE @c (m MAP<STRUCT<a: INT>, STRUCT<b: STRING>>, l ARRAY<STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @c VALUES (map(named_struct('a', 1), named_struct('b', 'v')), array(named_struct('x', 1, 'y', array(named_struct('z', 2)))));
--> nothing
ALTER TABLE @c RENAME COLUMN m.key.a TO a1;
--> nothing
ALTER TABLE @c RENAME COLUMN m.value.b TO b1;
--> nothing
ALTER TABLE @c RENAME COLUMN l.element.x TO x1;
--> nothing
ALTER TABLE @c RENAME COLUMN l.element.y.element.z TO z1;
--> nothing
SELECT map_keys(m)[0].a1, map_values(m)[0].b1, l[0].x1, l[0].y[0].z1 FROM @c;
--> rows [[1, "v", 1, 2]]
ALTER TABLE @c RENAME COLUMN m.key TO k;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
ALTER TABLE @c RENAME COLUMN l.element TO e;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
-- fields in elements and in maps are dropped
CREATE TABLE @d (m MAP<STRUCT<a: INT, b: INT>, STRUCT<a: INT, b: INT>>, l ARRAY<STRUCT<x: INT, y: INT>>, s STRUCT<u: INT, v: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @d VALUES (map(named_struct('a', 1, 'b', 2), named_struct('a', 3, 'b', 4)), array(named_struct('x', 5, 'y', 6)), named_struct('u', 7, 'v', 8));
--> nothing
ALTER TABLE @d DROP COLUMN m.value.a;
--> nothing
ALTER TABLE @d DROP COLUMN l.element.x;
--> nothing
ALTER TABLE @d DROP COLUMN s.u;
--> nothing
ALTER TABLE @d DROP COLUMN m.key.a;
--> nothing
SELECT map_keys(m), map_values(m), l, s FROM @d;
--> rows [[[{"b": 2}], [{"b": 4}], [{"y": 6}], {"v": 8}]]
ALTER TABLE @d DROP COLUMN s.v;
--> error INVALID_OPTION
--| error DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA # the same refusal under a name of its own
ALTER TABLE @d DROP COLUMN m.key;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE # the same refusal under a name of its own
ALTER TABLE @d DROP COLUMN l.element;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE # the same refusal under a name of its own
DESCRIBE @d;
--> rows [["l", "array<struct<y:int>>", null], ["m", "map<struct<b:int>,struct<b:int>>", null], ["s", "struct<v:int>", null]]
-- a dropped column comes back empty
CREATE TABLE @e (a INT, b STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @e VALUES (1, 'old');
--> nothing
ALTER TABLE @e DROP COLUMN b;
--> nothing
SELECT b FROM @e;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @e ADD COLUMN b STRING;
--> nothing
SELECT * FROM @e;
--> rows [[1, null]]
INSERT INTO @e VALUES (2, 'new');
--> nothing
SELECT a FROM @e WHERE b IS NULL;
--> rows [[1]]
SELECT * FROM @e VERSION AS OF 1;
--> rows [[1, "old"]]
ALTER TABLE @e DROP COLUMNS (a, b);
--> error INVALID_OPTION
--| error DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA # the same refusal under a name of its own
ALTER TABLE @e DROP COLUMN b;
--> nothing
ALTER TABLE @e DROP COLUMN a;
--> error INVALID_OPTION
--| error DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA # the same refusal under a name of its own
-- a partition column is not dropped
CREATE TABLE @f (a INT, p INT, q STRUCT<x: INT>) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'id');
--> nothing
ALTER TABLE @f DROP COLUMN p;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
--| error DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN # the same refusal under a name of its own
ALTER TABLE @f DROP COLUMN q;
--> nothing
DESCRIBE @f;
--> rows [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"], ["a", "int", null], ["p", "int", null], ["p", "int", null]]
ALTER TABLE @f DROP COLUMN a;
--> error INVALID_OPTION
--| nothing # here a table keeps a column that it is not partitioned by, as CREATE TABLE asks on both
-- odd names need a mapping
CREATE TABLE @g (`a b` INT) USING delta;
--> error DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES
CREATE TABLE @g (`a,b` INT, `c;d` INT, `e{}` INT, `f()` INT, `g=h` INT, `i.j` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @g VALUES (1, 2, 3, 4, 5, 6);
--> nothing
SELECT `a,b`, `c;d`, `e{}`, `f()`, `g=h`, `i.j` FROM @g WHERE `i.j` = 6;
--> rows [[1, 2, 3, 4, 5, 6]]
UPDATE @g SET `f()` = `e{}` + 1 WHERE `g=h` > 1;
--> rows [[1]]
DELETE FROM @g WHERE `a,b` = 2;
--> rows [[0]]
ALTER TABLE @g RENAME COLUMN `i.j` TO `i j`;
--> nothing
ALTER TABLE @g ADD COLUMN (`k l` STRUCT<`m n`: INT>);
--> nothing
MERGE INTO @g t USING (SELECT 1 AS `x y`) s ON t.`a,b` = s.`x y` WHEN MATCHED THEN UPDATE SET `k l` = named_struct('m n', 9);
--> rows [[1, 1, 0, 0]]
SELECT `f()`, `i j`, `k l`.`m n` FROM @g;
--> rows [[4, 6, 9]]
-- a mapping is switched on once, and never to another kind
CREATE TABLE @h (a INT, b STRING) USING delta;
--> nothing
INSERT INTO @h VALUES (1, 'x');
--> nothing
ALTER TABLE @h SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE # the same refusal under a name of its own
ALTER TABLE @h SET TBLPROPERTIES ('delta.columnMapping.maxColumnId' = '5');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_CANNOT_MODIFY_TABLE_PROPERTY # the same refusal under a name of its own
ALTER TABLE @h SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
ALTER TABLE @h RENAME COLUMN b TO c;
--> nothing
INSERT INTO @h VALUES (2, 'y');
--> nothing
SELECT a, c FROM @h;
--> rows [[1, "x"], [2, "y"]]
ALTER TABLE @h SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE # the same refusal under a name of its own
SELECT a, c FROM @h WHERE c = 'x';
--> rows [[1, "x"]]
-- a mapping is taken away again
CREATE TABLE @i (a INT, b STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @i VALUES (1, 'x');
--> nothing
ALTER TABLE @i RENAME COLUMN b TO c;
--> nothing
INSERT INTO @i VALUES (2, 'y');
--> nothing
ALTER TABLE @i SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none');
--> nothing
SELECT a, c FROM @i;
--> rows [[1, "x"], [2, "y"]]
INSERT INTO @i VALUES (3, 'z');
--> nothing
SELECT c FROM @i WHERE a >= 2;
--> rows [["y"], ["z"]]
-- a mapping stays where names need it
CREATE TABLE @j (`a b` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @j VALUES (1);
--> nothing
ALTER TABLE @j SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none');
--> error DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING
SELECT * FROM @j;
--> rows [[1]]
-- ADD COLUMNS into elements and maps
CREATE TABLE @k (m MAP<STRING, STRUCT<a: INT>>, l ARRAY<STRUCT<x: INT>>, i INT) USING delta;
--> nothing
INSERT INTO @k VALUES (map('k', named_struct('a', 1)), array(named_struct('x', 2)), 3);
--> nothing
ALTER TABLE @k ADD COLUMNS (m.value.b STRING, l.element.y INT FIRST);
--> nothing
ALTER TABLE @k ADD COLUMNS (m.b STRING);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
ALTER TABLE @k ADD COLUMNS (l.y STRING);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
ALTER TABLE @k ADD COLUMNS (i.y STRING);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
ALTER TABLE @k ADD COLUMNS (m.key.y STRING);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INVALID_FIELD_NAME # the same refusal under a name of its own
ALTER TABLE @k ADD COLUMNS (l.element.x INT);
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
INSERT INTO @k VALUES (map('k', named_struct('a', 5, 'b', 'n')), array(named_struct('y', 6, 'x', 7)), 8);
--> nothing
SELECT m['k'].a, m['k'].b, l[0].x, l[0].y, i FROM @k;
--> rows [[1, null, 2, null, 3], [5, "n", 7, 6, 8]]
-- ADD COLUMNS that are told where to stand
CREATE TABLE @l (v1 INT, s STRUCT<a: INT, b: INT>) USING delta;
--> nothing
INSERT INTO @l VALUES (1, named_struct('a', 2, 'b', 3));
--> nothing
ALTER TABLE @l ADD COLUMNS (n1 INT FIRST, n2 INT AFTER n1, s.n3 INT AFTER a, s.n4 INT FIRST);
--> nothing
ALTER TABLE @l ADD COLUMNS (n5 INT AFTER nope);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error FIELD_NOT_FOUND # the same refusal under a name of its own
ALTER TABLE @l ADD COLUMNS (s.n5 INT AFTER v1);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error FIELD_NOT_FOUND # the same refusal under a name of its own
ALTER TABLE @l ADD COLUMNS (V1 INT);
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @l ADD COLUMNS (s.A INT);
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @l ADD COLUMNS (n6 INT, n6 INT);
--> error INVALID_OPTION
--| error COLUMN_ALREADY_EXISTS # the same refusal under a name of its own
SELECT * FROM @l;
--> rows [[null, null, 1, {"n4": null, "a": 2, "n3": null, "b": 3}]]
-- columns are moved
CREATE TABLE @m (v1 INT, v2 STRING, s STRUCT<a: INT, b: STRING, c: INT>) USING delta;
--> nothing
INSERT INTO @m VALUES (1, 'x', named_struct('a', 2, 'b', 'y', 'c', 3));
--> nothing
ALTER TABLE @m CHANGE COLUMN s FIRST;
--> nothing
ALTER TABLE @m CHANGE COLUMN s.c FIRST;
--> nothing
ALTER TABLE @m CHANGE COLUMN s.a AFTER b;
--> nothing
ALTER TABLE @m CHANGE COLUMN v1 AFTER v2;
--> nothing
ALTER TABLE @m CHANGE COLUMN v2 AFTER v2;
--> nothing
ALTER TABLE @m CHANGE COLUMN v2 AFTER nope;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @m CHANGE COLUMN nope FIRST;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @m CHANGE COLUMN s.nope FIRST;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
INSERT INTO @m VALUES (named_struct('c', 6, 'b', 'z', 'a', 5), 'w', 4);
--> nothing
SELECT * FROM @m;
--> rows [[{"c": 3, "b": "y", "a": 2}, "x", 1], [{"c": 6, "b": "z", "a": 5}, "w", 4]]
-- columns with statistics are moved behind the end
CREATE TABLE @n (p INT, a INT, b INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @n VALUES (1, 2, 3);
--> nothing
ALTER TABLE @n CHANGE COLUMN p AFTER b;
--> nothing
ALTER TABLE @n CHANGE COLUMN a AFTER p;
--> nothing
INSERT INTO @n VALUES (30, 10, 20);
--> nothing
SELECT a, b, p FROM @n WHERE p = 10;
--> rows [[20, 30, 10]]
SELECT a, b, p FROM @n WHERE a >= 2;
--> rows [[2, 3, 1], [20, 30, 10]]
-- comments of columns, and of what is inside
CREATE TABLE @o (i INT, s STRUCT<a: INT>, m MAP<INT, INT>, l ARRAY<STRUCT<x: INT>>) USING delta;
--> nothing
ALTER TABLE @o CHANGE COLUMN i COMMENT 'one';
--> nothing
ALTER TABLE @o CHANGE COLUMN s.a COMMENT 'inside';
--> nothing
ALTER TABLE @o CHANGE COLUMN m COMMENT 'a map';
--> nothing
ALTER TABLE @o CHANGE COLUMN l.element.x COMMENT 'far inside';
--> nothing
ALTER TABLE @o CHANGE COLUMN i i INT COMMENT 'uno';
--> nothing
ALTER TABLE @o CHANGE COLUMN i j INT;
--> error PARSE_SYNTAX_ERROR
--| error _LEGACY_ERROR_TEMP_0034 # the same refusal under a name of its own
DESCRIBE @o;
--> rows [["i", "int", "uno"], ["l", "array<struct<x:int>>", null], ["m", "map<int,int>", "a map"], ["s", "struct<a:int>", null]]
-- members that may be NULL stay so
CREATE TABLE @p (l ARRAY<INT>, m MAP<INT, INT>, s STRUCT<a: INT NOT NULL>) USING delta;
--> nothing
ALTER TABLE @p CHANGE COLUMN s.a DROP NOT NULL;
--> nothing
INSERT INTO @p VALUES (array(NULL), map(1, NULL), named_struct('a', NULL));
--> nothing
SELECT l, map_values(m), s.a FROM @p;
--> rows [[[null], [null], null]]
-- types that differ only in how long a text may be
CREATE TABLE @q (v VARCHAR(2), w VARCHAR(2), c CHAR(2)) USING delta;
--> nothing
INSERT INTO @q VALUES ('a', 'b', 'cc');
--> nothing
ALTER TABLE @q CHANGE COLUMN v TYPE VARCHAR(3);
--> nothing
ALTER TABLE @q CHANGE COLUMN w TYPE STRING;
--> nothing
ALTER TABLE @q CHANGE COLUMN c TYPE VARCHAR(3);
--> nothing
ALTER TABLE @q CHANGE COLUMN w TYPE CHAR(9);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @q CHANGE COLUMN v TYPE INT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
INSERT INTO @q VALUES ('abc', 'long text', 'abc');
--> nothing
INSERT INTO @q VALUES ('abcd', 'long text', 'abc');
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
INSERT INTO @q VALUES ('abc', 'long text', 'abcd');
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
SELECT * FROM @q;
--> rows [["a", "b", "cc"], ["abc", "long text", "abc"]]
DESCRIBE @q;
--> rows [["c", "string", null], ["v", "string", null], ["w", "string", null]]
-- REPLACE COLUMNS keeps what keeps its name
CREATE TABLE @r (a INT COMMENT 'one', s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<k: INT>>) USING delta;
--> nothing
INSERT INTO @r VALUES (1, named_struct('x', 2, 'y', 'z'), array(named_struct('k', 3)));
--> nothing
ALTER TABLE @r REPLACE COLUMNS (s STRUCT<y: STRING, n: INT, x: INT>, b DATE, l ARRAY<STRUCT<j: INT, k: INT>>, a INT);
--> nothing
SELECT * FROM @r;
--> rows [[{"y": "z", "n": null, "x": 2}, null, [{"j": null, "k": 3}], 1]]
ALTER TABLE @r REPLACE COLUMNS (s STRUCT<y: STRING>, b DATE, l ARRAY<STRUCT<j: INT, k: INT>>, a INT);
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r REPLACE COLUMNS (s STRUCT<y: INT, n: INT, x: INT>, b DATE, l ARRAY<STRUCT<j: INT, k: INT>>, a INT);
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r REPLACE COLUMNS (a INT, a INT);
--> error INVALID_OPTION
--| error COLUMN_ALREADY_EXISTS # the same refusal under a name of its own
-- the case of a name does not count, and is kept
CREATE TABLE @s (Key INT, Value STRING, S STRUCT<Inner: INT>) USING delta PARTITIONED BY (Key);
--> nothing
INSERT INTO @s (KEY, value) VALUES (1, 'a');
--> nothing
INSERT INTO @s BY NAME SELECT 2 AS key, 'b' AS VALUE, named_struct('INNER', 5) AS s;
--> nothing
SELECT vAlUe FROM @s WHERE kEy = 2 AND s.inner = 5;
--> rows [["b"]]
UPDATE @s SET VALUE = 'c', S.INNER = 6 WHERE KEY = 2;
--> rows [[1]]
DELETE FROM @s WHERE KEY = 1;
--> rows [[1]]
ALTER TABLE @s CHANGE COLUMN VALUE COMMENT 'text';
--> nothing
MERGE INTO @s t USING (SELECT 3 AS KEY, 'd' AS VALUE, CAST(NULL AS STRUCT<inner: INT>) AS S) u ON t.KEY = u.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT * FROM @s;
--> rows [[2, "c", {"Inner": 6}], [3, "d", null]]
DESCRIBE @s;
--> rows [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"], ["Key", "int", null], ["Key", "int", null], ["S", "struct<Inner:int>", null], ["Value", "string", "text"]]
-- properties are set and unset, and kept apart by their case
CREATE TABLE @t (a INT) USING delta TBLPROPERTIES ('key' = 'v', 'KEY' = 'w');
--> nothing
ALTER TABLE @t SET TBLPROPERTIES ('delta.logRetentionDuration' = '2 weeks', 'some.key' = 1.5);
--> nothing
ALTER TABLE @t SET TBLPROPERTIES ('delta.logRetentionDuration' = 'not an interval');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_INVALID_INTERVAL # the same refusal under a name of its own
ALTER TABLE @t SET TBLPROPERTIES ('delta.logRetentionDuration' = '1 month');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @t SET TBLPROPERTIES ('DELTA.appendOnly' = 'true');
--> nothing
ALTER TABLE @t UNSET TBLPROPERTIES ('key');
--> nothing
SHOW TBLPROPERTIES @t ('KEY');
--> rows [["KEY", "w"]]
SHOW TBLPROPERTIES @t ('some.key');
--> rows [["some.key", "1.5"]]
SHOW TBLPROPERTIES @t ('delta.logRetentionDuration');
--> rows [["delta.logRetentionDuration", "2 weeks"]]
ALTER TABLE @t SET TBLPROPERTIES ('delta.checkpointInterval' = '0');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @t SET TBLPROPERTIES ('delta.randomizeFilePrefixes' = 'true');
--> nothing
ALTER TABLE @t SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '-2');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @t SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1');
--> nothing
INSERT INTO @t VALUES (1);
--> nothing
UPDATE @t SET a = 2;
--> error DELTA_CANNOT_MODIFY_APPEND_ONLY
-- columns that statistics are kept of
CREATE TABLE @u (a INT, b STRING, s STRUCT<x: INT, y: ARRAY<INT>>) USING delta TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a, s.x', 'delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @u VALUES (1, 'x', named_struct('x', 2, 'y', array(3)));
--> nothing
ALTER TABLE @u RENAME COLUMN s.x TO z;
--> nothing
SHOW TBLPROPERTIES @u ('delta.dataSkippingStatsColumns');
--> rows [["delta.dataSkippingStatsColumns", "a,s.z"]]
ALTER TABLE @u RENAME COLUMN a TO a1;
--> nothing
SHOW TBLPROPERTIES @u ('delta.dataSkippingStatsColumns');
--> rows [["delta.dataSkippingStatsColumns", "a1,s.z"]]
ALTER TABLE @u DROP COLUMN s;
--> nothing
SHOW TBLPROPERTIES @u ('delta.dataSkippingStatsColumns');
--> rows [["delta.dataSkippingStatsColumns", "a1"]]
ALTER TABLE @u SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'nope');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_COLUMN_NOT_FOUND_IN_SCHEMA # the same refusal under a name of its own
ALTER TABLE @u SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b, b');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS # the same refusal under a name of its own
ALTER TABLE @u SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b');
--> nothing
INSERT INTO @u VALUES (5, 'y');
--> nothing
SELECT * FROM @u WHERE a1 = 5;
--> rows [[5, "y"]]
SELECT * FROM @u WHERE b = 'x';
--> rows [[1, "x"]]
-- columns of which no statistics can be kept
CREATE TABLE @v (a ARRAY<INT>, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE # the same refusal under a name of its own
CREATE TABLE @v (a INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'p');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN # the same refusal under a name of its own
CREATE TABLE @v (a INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'a,a');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS # the same refusal under a name of its own
CREATE TABLE @v (a INT, p INT, bin BINARY) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'bin');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE # the same refusal under a name of its own
CREATE TABLE @v (a INT, p INT, `x y` INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.dataSkippingStatsColumns' = '`x y`, a');
--> nothing
INSERT INTO @v VALUES (1, 2, 3);
--> nothing
SELECT * FROM @v WHERE `x y` = 3;
--> rows [[1, 2, 3]]
