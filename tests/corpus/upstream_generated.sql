-- values for a generated column are compared with what it generates
CREATE TABLE @a (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING, p INT GENERATED ALWAYS AS (c1 % 2)) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @a VALUES (1, 11, 'foo', 1);
--> nothing
INSERT INTO @a (c3, c1) VALUES ('bar', 2);
--> nothing
INSERT INTO @a (c2, c3, c1) VALUES (13, 'baz', 3);
--> nothing
INSERT INTO @a (c2, c3, c1) VALUES (14, 'baz', 3);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @a (c3) VALUES ('none');
--> nothing
INSERT INTO @a BY NAME SELECT 'n' AS c3, 4 AS c1;
--> nothing
SELECT * FROM @a;
--> rows [[1, 11, "foo", 1], [2, 12, "bar", 0], [3, 13, "baz", 1], [4, 14, "n", 0], [null, null, "none", null]]
-- an overwrite generates, too
CREATE TABLE @b (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING) USING delta;
--> nothing
INSERT OVERWRITE @b VALUES (1, 11, 'foo');
--> nothing
INSERT OVERWRITE @b (c3, c1) VALUES ('bar', 2);
--> nothing
INSERT OVERWRITE @b (c1, c2) VALUES (3, 5);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT OVERWRITE @b SELECT 5, 15, 'x';
--> nothing
SELECT * FROM @b;
--> rows [[5, 15, "x"]]
-- an UPDATE of a source changes what is generated
CREATE TABLE @c (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING) USING delta;
--> nothing
INSERT INTO @c (c1, c3) VALUES (1, 'a'), (2, 'b');
--> nothing
UPDATE @c SET c1 = 5 WHERE c1 = 1;
--> rows [[1]]
UPDATE @c SET c2 = 12 WHERE c1 = 2;
--> rows [[1]]
UPDATE @c SET c2 = 99 WHERE c1 = 2;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
UPDATE @c SET c1 = 7, c2 = 17 WHERE c1 = 2;
--> rows [[1]]
UPDATE @c SET c1 = 8, c2 = 17 WHERE c1 = 7;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
UPDATE @c SET c1 = c2, c3 = 'swapped' WHERE c1 = 7;
--> rows [[1]]
UPDATE @c SET c1 = NULL WHERE c1 = 5;
--> rows [[1]]
SELECT * FROM @c;
--> rows [[17, 27, "swapped"], [null, null, "a"]]
-- an UPDATE of a struct that is a source
CREATE TABLE @d (s STRUCT<s1: INT, s2: STRING>, c2 INT GENERATED ALWAYS AS (s.s1)) USING delta;
--> nothing
INSERT INTO @d (s) SELECT struct(10, 'foo');
--> nothing
UPDATE @d SET s.s1 = 20 WHERE c2 = 10;
--> rows [[1]]
SELECT s.s1, s.s2, c2 FROM @d;
--> rows [[20, "foo", 20]]
UPDATE @d SET s = named_struct('s1', 30, 's2', 'bar');
--> rows [[1]]
SELECT s.s1, s.s2, c2 FROM @d;
--> rows [[30, "bar", 30]]
UPDATE @d SET s = NULL;
--> rows [[1]]
SELECT s, c2 FROM @d;
--> rows [[null, null]]
-- DELETE by a generated column
CREATE TABLE @e (t TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(t AS DATE)), v INT) USING delta PARTITIONED BY (d);
--> nothing
INSERT INTO @e (t, v) VALUES (TIMESTAMP'2020-10-11 12:30:30', 1), (TIMESTAMP'2020-10-12 00:00:00', 2), (NULL, 3);
--> nothing
DELETE FROM @e WHERE d = '2020-10-11';
--> rows [[1]]
DELETE FROM @e WHERE t IS NULL;
--> rows [[1]]
SELECT d, v FROM @e;
--> rows [["2020-10-12", 2]]
SELECT v FROM @e WHERE t >= '2020-10-12' AND t < '2020-10-13';
--> rows [[2]]
-- a MERGE that updates a source of a generated column
CREATE TABLE @f (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING) USING delta;
--> nothing
INSERT INTO @f (c1, c3) VALUES (1, 'a'), (2, 'b'), (3, 'c');
--> nothing
MERGE INTO @f t USING (SELECT 1 AS k, 21 AS v) s ON t.c1 = s.k WHEN MATCHED THEN UPDATE SET c1 = s.v;
--> rows [[1, 1, 0, 0]]
MERGE INTO @f t USING (SELECT 2 AS k, 22 AS v) s ON t.c1 = s.k WHEN MATCHED THEN UPDATE SET c1 = s.v, c2 = s.v + 10;
--> rows [[1, 1, 0, 0]]
MERGE INTO @f t USING (SELECT 3 AS k, 22 AS v) s ON t.c1 = s.k WHEN MATCHED THEN UPDATE SET c1 = s.v, c2 = s.v;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
MERGE INTO @f t USING (SELECT 3 AS k) s ON t.c1 = s.k WHEN MATCHED THEN UPDATE SET c2 = 5;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
MERGE INTO @f t USING (SELECT 3 AS k) s ON t.c1 = s.k WHEN MATCHED THEN UPDATE SET c1 = NULL;
--> rows [[1, 1, 0, 0]]
SELECT * FROM @f;
--> rows [[21, 31, "a"], [22, 32, "b"], [null, null, "c"]]
-- a MERGE of whole rows into generated columns
CREATE TABLE @g (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING) USING delta;
--> nothing
INSERT INTO @g (c1, c3) VALUES (1, 'a');
--> nothing
MERGE INTO @g t USING (SELECT 1 AS c1, 11 AS c2, 'z' AS c3) s ON t.c1 = s.c1 WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE INTO @g t USING (SELECT 2 AS c1, 12 AS c2, 'y' AS c3) s ON t.c1 = s.c1 WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE INTO @g t USING (SELECT 3 AS c1, 3 AS c2, 'x' AS c3) s ON t.c1 = s.c1 WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @g;
--> rows [[1, 11, "z"], [2, 12, "y"]]
-- a MERGE that inserts some of the columns
CREATE TABLE @h (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10), c3 STRING, c4 INT GENERATED ALWAYS AS (c1 + length(c3))) USING delta;
--> nothing
MERGE INTO @h t USING (SELECT 1 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c1) VALUES (s.k);
--> rows [[1, 0, 0, 1]]
MERGE INTO @h t USING (SELECT 2 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c3) VALUES ('only');
--> rows [[1, 0, 0, 1]]
MERGE INTO @h t USING (SELECT 3 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c1, c3) VALUES (s.k, 'ab');
--> rows [[1, 0, 0, 1]]
MERGE INTO @h t USING (SELECT 4 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c1, c2) VALUES (s.k, 14);
--> rows [[1, 0, 0, 1]]
MERGE INTO @h t USING (SELECT 5 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c1, c2) VALUES (s.k, 5);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
MERGE INTO @h t USING (SELECT 6 AS k) s ON t.c1 = s.k WHEN NOT MATCHED THEN INSERT (c2) VALUES (16);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @h;
--> rows [[1, 11, null, null], [3, 13, "ab", 5], [4, 14, null, null], [null, null, "only", null]]
-- a MERGE adds columns beside generated ones
CREATE TABLE @i (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10)) USING delta;
--> nothing
INSERT INTO @i (c1) VALUES (1);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @i t USING (SELECT 2 AS c1, 12 AS c2, 'new' AS c5) s ON t.c1 = s.c1 WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE WITH SCHEMA EVOLUTION INTO @i t USING (SELECT 3 AS c1, 'newer' AS c6) s ON t.c1 = s.c1 WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE WITH SCHEMA EVOLUTION INTO @i t USING (SELECT 4 AS c1, 4 AS c2, 'wrong' AS c7) s ON t.c1 = s.c1 WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @i;
--> rows [[1, 11, null, null], [2, 12, "new", null], [3, 13, null, "newer"]]
-- what a generated column cannot be made of
CREATE TABLE @j (a INT, b INT GENERATED ALWAYS AS (c + 1)) USING delta;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
CREATE TABLE @j (a INT, b INT GENERATED ALWAYS AS (a + 1), c INT GENERATED ALWAYS AS (b + 1)) USING delta;
--> error INVALID_CONDITION
--| error UNSUPPORTED_EXPRESSION_GENERATED_COLUMN # the same refusal under a name of its own
CREATE TABLE @j (a INT, b DOUBLE GENERATED ALWAYS AS (rand())) USING delta;
--> error RULE_REFUSED
--| error UNSUPPORTED_EXPRESSION_GENERATED_COLUMN # the same refusal under a name of its own
CREATE TABLE @j (a INT, b INT GENERATED ALWAYS AS ((SELECT 1))) USING delta;
--> error RULE_REFUSED
--| error UNSUPPORTED_EXPRESSION_GENERATED_COLUMN # the same refusal under a name of its own
CREATE TABLE @j (a INT, b DATE GENERATED ALWAYS AS (current_date())) USING delta;
--> error RULE_REFUSED
--| error DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN # the same refusal under a name of its own
CREATE TABLE @j (a INT, b STRING GENERATED ALWAYS AS (a + 1)) USING delta;
--> error DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH
CREATE TABLE @j (a INT, b INT GENERATED ALWAYS AS (a + )) USING delta;
--> error UNREADABLE_EXPRESSION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
CREATE TABLE @j (a INT, b INT GENERATED ALWAYS AS (b + 1)) USING delta;
--> error INVALID_CONDITION
--| error UNSUPPORTED_EXPRESSION_GENERATED_COLUMN # the same refusal under a name of its own
-- names that are keywords or have dots
CREATE TABLE @k (`order` INT, `a.b` STRUCT<`c.d`: INT>, g INT GENERATED ALWAYS AS (`order` + `a.b`.`c.d`)) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @k (`order`, `a.b`) VALUES (1, named_struct('c.d', 5));
--> nothing
UPDATE @k SET `order` = 2;
--> rows [[1]]
SELECT g FROM @k;
--> rows [[7]]
-- a generated column that is NOT NULL
CREATE TABLE @l (c1 INT, c2 INT GENERATED ALWAYS AS (c1 + 10) NOT NULL COMMENT 'more') USING delta;
--> nothing
INSERT INTO @l (c1) VALUES (1);
--> nothing
INSERT INTO @l (c1) VALUES (NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
INSERT INTO @l (c2) VALUES (NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
DESCRIBE @l;
--> rows [["c1", "int", null], ["c2", "int", "more"]]
SELECT * FROM @l;
--> rows [[1, 11]]
-- NULL is generated from NULL
CREATE TABLE @m (c1 STRING, c2 STRING GENERATED ALWAYS AS (concat(c1, 'y'))) USING delta;
--> nothing
INSERT INTO @m VALUES (NULL, NULL);
--> nothing
INSERT INTO @m VALUES ('x', NULL);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @m (c1) VALUES (NULL), ('x');
--> nothing
SELECT * FROM @m;
--> rows [["x", "xy"], [null, null], [null, null]]
-- generated parts of a timestamp find rows
CREATE TABLE @n (t TIMESTAMP, y INT GENERATED ALWAYS AS (YEAR(t)), m INT GENERATED ALWAYS AS (MONTH(t)), d INT GENERATED ALWAYS AS (DAY(t)), h INT GENERATED ALWAYS AS (HOUR(t))) USING delta PARTITIONED BY (y, m, d, h);
--> nothing
INSERT INTO @n (t) VALUES (TIMESTAMP'2021-06-28 18:00:00'), (TIMESTAMP'2021-06-28 19:30:00'), (TIMESTAMP'2020-01-01 00:00:00'), (NULL);
--> nothing
SELECT t FROM @n WHERE t < TIMESTAMP'2021-06-28 18:00:00';
--> rows [["2020-01-01 00:00:00+00:00"]]
SELECT t FROM @n WHERE t <= TIMESTAMP'2021-06-28 18:00:00';
--> rows [["2020-01-01 00:00:00+00:00"], ["2021-06-28 18:00:00+00:00"]]
SELECT t FROM @n WHERE t > TIMESTAMP'2021-06-28 18:59:59';
--> rows [["2021-06-28 19:30:00+00:00"]]
SELECT t FROM @n WHERE t = TIMESTAMP'2021-06-28 18:00:00' AND h = 18;
--> rows [["2021-06-28 18:00:00+00:00"]]
SELECT y, m, d, h FROM @n WHERE t IS NULL;
--> rows [[null, null, null, null]]
SELECT y, m, d, h FROM @n WHERE t <=> NULL;
--> rows [[null, null, null, null]]
-- a generated text of a date finds rows beyond the year 9999
CREATE TABLE @o (t TIMESTAMP, ym STRING GENERATED ALWAYS AS (date_format(t, 'yyyy-MM'))) USING delta PARTITIONED BY (ym);
--> nothing
INSERT INTO @o (t) VALUES (TIMESTAMP'2021-06-28 18:00:00'), (TIMESTAMP'+12345-07-15 18:00:00');
--> nothing
SELECT ym FROM @o WHERE t > TIMESTAMP'2021-06-28 18:00:00';
--> rows [["+12345-07"]]
SELECT ym FROM @o WHERE t < TIMESTAMP'+12345-07-15 18:00:00';
--> rows [["2021-06"]]
SELECT ym FROM @o WHERE t = TIMESTAMP'+12345-07-15 18:00:00';
--> rows [["+12345-07"]]
-- a generated piece of a text finds rows
CREATE TABLE @p (v STRING, s STRING GENERATED ALWAYS AS (SUBSTRING(v, 1, 2))) USING delta PARTITIONED BY (s);
--> nothing
INSERT INTO @p (v) VALUES ('abc'), ('ab'), ('b'), (''), (NULL), ('中文字');
--> nothing
SELECT v FROM @p WHERE v = 'abc';
--> rows [["abc"]]
SELECT v FROM @p WHERE v > 'ab';
--> rows [["中文字"], ["abc"], ["b"]]
SELECT v FROM @p WHERE v = '';
--> rows [[""]]
SELECT v FROM @p WHERE v IS NULL;
--> rows [[null]]
SELECT v FROM @p WHERE v LIKE 'ab%';
--> rows [["ab"], ["abc"]]
SELECT v, s FROM @p WHERE v >= '中文';
--> rows [["中文字", "中文"]]
-- a generated column of several others
CREATE TABLE @q (a INT, b STRING, c STRING GENERATED ALWAYS AS (concat_ws('-', b, CAST(a AS STRING)))) USING delta;
--> nothing
INSERT INTO @q (a, b) VALUES (1, 'x'), (NULL, 'y'), (2, NULL);
--> nothing
UPDATE @q SET a = 9 WHERE b = 'y';
--> rows [[1]]
SELECT * FROM @q;
--> rows [[1, "x", "x-1"], [2, null, "2"], [9, "y", "y-9"]]
INSERT INTO @q VALUES (1, 'x', 'x-2');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
-- time units in a generated column
CREATE TABLE @r (t1 TIMESTAMP, t2 TIMESTAMP, h BIGINT GENERATED ALWAYS AS (timestampdiff(HOUR, t1, t2)), later TIMESTAMP GENERATED ALWAYS AS (timestampadd(DAY, 1, t1))) USING delta;
--> nothing
INSERT INTO @r (t1, t2) VALUES (TIMESTAMP'2020-01-01 00:00:00', TIMESTAMP'2020-01-02 01:00:00');
--> nothing
SELECT h, later FROM @r;
--> rows [[25, "2020-01-02 00:00:00+00:00"]]
-- a generated column in ALTER TABLE
CREATE TABLE @s (a INT, b INT GENERATED ALWAYS AS (a + 1)) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @s (a) VALUES (1);
--> nothing
ALTER TABLE @s ADD COLUMN c INT;
--> nothing
ALTER TABLE @s ADD COLUMN d INT GENERATED ALWAYS AS (a + 2);
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
ALTER TABLE @s RENAME COLUMN a TO a2;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
--| error DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @s DROP COLUMN a;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
--| error DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE # the same refusal under a name of its own
ALTER TABLE @s RENAME COLUMN b TO b2;
--> nothing
ALTER TABLE @s ALTER COLUMN b2 FIRST;
--> nothing
ALTER TABLE @s ALTER COLUMN b2 COMMENT 'made';
--> nothing
INSERT INTO @s (a, c) VALUES (5, 6);
--> nothing
SELECT a, b2, c FROM @s;
--> rows [[1, 2, null], [5, 6, 6]]
ALTER TABLE @s DROP COLUMN b2;
--> nothing
ALTER TABLE @s RENAME COLUMN a TO a2;
--> nothing
SELECT * FROM @s;
--> rows [[1, null], [5, 6]]
-- a table that is replaced by one with other generated columns
CREATE TABLE @t (a INT, b INT GENERATED ALWAYS AS (a + 1)) USING delta;
--> nothing
INSERT INTO @t (a) VALUES (1);
--> nothing
REPLACE TABLE @t (a INT, b INT GENERATED ALWAYS AS (a + 2)) USING delta;
--> nothing
INSERT INTO @t (a) VALUES (1);
--> nothing
SELECT * FROM @t;
--> rows [[1, 3]]
CREATE OR REPLACE TABLE @t USING delta AS SELECT * FROM @t;
--> nothing
INSERT INTO @t (a) VALUES (7);
--> nothing
SELECT * FROM @t;
--> rows [[1, 3], [7, null]]
-- a char column beside a generated one
CREATE TABLE @u (c CHAR(5), n INT, twice INT GENERATED ALWAYS AS (n * 2)) USING delta;
--> nothing
INSERT INTO @u (c, n) VALUES ('a', 1), ('b', 2);
--> nothing
UPDATE @u SET n = 5 WHERE c = 'a';
--> rows [[1]]
DELETE FROM @u WHERE c = 'b';
--> rows [[1]]
MERGE INTO @u t USING (SELECT 5 AS k, 7 AS n) s ON t.n = s.k WHEN MATCHED THEN UPDATE SET n = s.n;
--> rows [[1, 1, 0, 0]]
SELECT c, n, twice FROM @u;
--> rows [["a    ", 7, 14]]
-- identity columns begin and step as they say
CREATE TABLE @va (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY -10), v INT) USING delta;
--> nothing
INSERT INTO @va (v) VALUES (1), (2);
--> nothing
INSERT INTO @va (v) SELECT 3;
--> nothing
SELECT id, v FROM @va WHERE v = 3;
--> rows [[80, 3]]
SELECT max(id), count(DISTINCT id) FROM @va;
--> rows [[100, 3]]
CREATE TABLE @vb (id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0), v INT) USING delta;
--> error DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP
--| error IDENTITY_COLUMNS_ILLEGAL_STEP # the same refusal under a name of its own
CREATE TABLE @vb (id INT GENERATED ALWAYS AS IDENTITY, v INT) USING delta;
--> error DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE
CREATE TABLE @vb (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta PARTITIONED BY (id);
--> error DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED
CREATE TABLE @vb (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 9223372036854775805), v INT) USING delta;
--> nothing
INSERT INTO @vb (v) VALUES (1);
--> nothing
SELECT * FROM @vb;
--> rows [[9223372036854775805, 1]]
-- identity columns in MERGE, UPDATE and DELETE
CREATE TABLE @w (id BIGINT GENERATED ALWAYS AS IDENTITY, k INT, v INT) USING delta;
--> nothing
INSERT INTO @w (k, v) VALUES (1, 1);
--> nothing
MERGE INTO @w t USING (SELECT 1 AS k, 10 AS v UNION ALL SELECT 2, 20) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v);
--> rows [[2, 1, 0, 1]]
MERGE INTO @w t USING (SELECT 3 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT (id, k) VALUES (100, s.k);
--> error DELTA_IDENTITY_COLUMNS_EXPLICIT_VALUE_NOT_SUPPORTED
--| error DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED # the same refusal under a name of its own
MERGE INTO @w t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET id = 100;
--> error DELTA_IDENTITY_COLUMNS_EXPLICIT_VALUE_NOT_SUPPORTED
--| error DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED # the same refusal under a name of its own
UPDATE @w SET id = 5;
--> error DELTA_IDENTITY_COLUMNS_EXPLICIT_VALUE_NOT_SUPPORTED
--| error DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED # the same refusal under a name of its own
UPDATE @w SET v = v + 1 WHERE id = 1;
--> rows [[1]]
DELETE FROM @w WHERE id = 1;
--> rows [[1]]
SELECT id > 1, k, v FROM @w;
--> rows [[true, 2, 20]]
-- identity columns in ALTER TABLE
CREATE TABLE @x (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @x (v) VALUES (1);
--> nothing
ALTER TABLE @x RENAME COLUMN id TO key;
--> nothing
ALTER TABLE @x ALTER COLUMN key AFTER v;
--> nothing
ALTER TABLE @x ALTER COLUMN key COMMENT 'number';
--> nothing
ALTER TABLE @x ALTER COLUMN key SET DEFAULT 5;
--> error DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED
ALTER TABLE @x ADD COLUMN id2 BIGINT GENERATED ALWAYS AS IDENTITY;
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
INSERT INTO @x (v) VALUES (2);
--> nothing
SELECT v, key FROM @x;
--> rows [[1, 1], [2, 2]]
-- SYNC IDENTITY looks at the rows
CREATE TABLE @y (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 100 INCREMENT BY 2), v STRING) USING delta;
--> nothing
INSERT INTO @y (id, v) VALUES (1, 'a'), (2, 'b');
--> nothing
ALTER TABLE @y ALTER COLUMN id SYNC IDENTITY;
--> nothing
INSERT INTO @y (v) VALUES ('c');
--> nothing
SELECT id FROM @y WHERE v = 'c';
--> rows [[100]]
INSERT INTO @y (id, v) VALUES (501, 'd');
--> nothing
ALTER TABLE @y ALTER COLUMN id SYNC IDENTITY;
--> nothing
INSERT INTO @y (v) VALUES ('e');
--> nothing
SELECT id FROM @y WHERE v = 'e';
--> rows [[504]]
-- a table made of an identity table numbers nothing
CREATE TABLE @z (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta;
--> nothing
INSERT INTO @z (v) VALUES (1);
--> nothing
CREATE TABLE @za USING delta AS SELECT * FROM @z;
--> nothing
INSERT INTO @za VALUES (77, 2);
--> nothing
INSERT INTO @za (v) VALUES (3);
--> nothing
SELECT * FROM @za;
--> rows [[1, 1], [77, 2], [null, 3]]
REPLACE TABLE @z (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5), v INT) USING delta;
--> nothing
INSERT INTO @z (v) VALUES (1);
--> nothing
SELECT * FROM @z;
--> rows [[5, 1]]
