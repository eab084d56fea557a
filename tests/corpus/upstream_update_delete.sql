-- an UPDATE of several columns reads the row as it was
CREATE TABLE @a (a INT, b INT, c STRING) USING delta;
--> nothing
INSERT INTO @a VALUES (1, 10, 'x'), (2, 20, 'y');
--> nothing
UPDATE @a SET a = b, b = a WHERE c = 'x';
--> rows [[1]]
UPDATE @a SET c = concat(c, a), a = a + b;
--> rows [[2]]
SELECT * FROM @a;
--> rows [[11, 1, "x10"], [22, 20, "y2"]]
-- an UPDATE of fields deep inside
CREATE TABLE @b (id INT, s STRUCT<a: INT, t: STRUCT<b: STRING, c: ARRAY<INT>>>) USING delta;
--> nothing
INSERT INTO @b VALUES (1, named_struct('a', 1, 't', named_struct('b', 'x', 'c', array(1)))), (2, NULL);
--> nothing
UPDATE @b SET s.t.b = 'y', s.a = s.a + 1 WHERE id = 1;
--> rows [[1]]
UPDATE @b SET s.t.c = array(2, 3) WHERE s.t.b = 'y';
--> rows [[1]]
UPDATE @b SET s.t = named_struct('c', array(4), 'b', 'z') WHERE id = 1;
--> rows [[1]]
UPDATE @b SET s.a = 5, s = NULL WHERE id = 1;
--> error INVALID_OPTION
--| error DELTA_CONFLICT_SET_COLUMN # the same refusal under a name of its own
UPDATE @b SET s.t.nope = 5;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error FIELD_NOT_FOUND # the same refusal under a name of its own
SELECT id, s FROM @b WHERE id = 1;
--> rows [[1, {"a": 2, "t": {"b": "z", "c": [4]}}]]
-- an UPDATE of a field of a struct that is NULL
CREATE TABLE @c (id INT, s STRUCT<a: INT, b: INT>) USING delta;
--> nothing
INSERT INTO @c VALUES (1, NULL);
--> nothing
UPDATE @c SET s.a = 7 WHERE id = 1;
--> rows [[1]]
SELECT id, s.a, s.b FROM @c;
--> rows [[1, 7, null]]
-- an UPDATE with the types of other columns
CREATE TABLE @d (i INT, l BIGINT, d DECIMAL(5, 2), s STRING, t DATE) USING delta;
--> nothing
INSERT INTO @d VALUES (1, 2, 3.5, '4', DATE'2020-01-05');
--> nothing
UPDATE @d SET i = l, l = i, d = i, s = t, t = '2021-01-01';
--> rows [[1]]
UPDATE @d SET i = 3000000000;
--> error EXECUTION_FAILED
--| error DELTA_CAST_OVERFLOW_IN_TABLE_WRITE # the same refusal under a name of its own
UPDATE @d SET d = 123456;
--> error EXECUTION_FAILED
--| error DELTA_CAST_OVERFLOW_IN_TABLE_WRITE # the same refusal under a name of its own
UPDATE @d SET i = 'x';
--> error EXECUTION_FAILED
--| error CAST_INVALID_INPUT # the same refusal under a name of its own
SELECT * FROM @d;
--> rows [[2, 1, "1.00", "2020-01-05", "2021-01-01"]]
-- conditions of DELETE on partitions and on rows
CREATE TABLE @e (k INT, v INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @e VALUES (1, 1, 0), (2, 2, 0), (3, 3, 1), (4, 4, 1), (5, NULL, NULL);
--> nothing
DELETE FROM @e WHERE p = 0 AND k = 2;
--> rows [[1]]
DELETE FROM @e WHERE p = 1 OR v = 1;
--> rows [[3]]
DELETE FROM @e WHERE p IS NULL AND v IS NOT NULL;
--> rows [[0]]
DELETE FROM @e WHERE NOT (p = 7);
--> rows [[0]]
SELECT * FROM @e;
--> rows [[5, null, null]]
-- what a condition of DELETE and UPDATE cannot be
CREATE TABLE @f (k INT, v INT) USING delta;
--> nothing
INSERT INTO @f VALUES (1, 1);
--> nothing
DELETE FROM @f WHERE max(k) = 1;
--> error INVALID_WHERE_CONDITION
--| error UNSUPPORTED_EXPR_FOR_OPERATOR # the same refusal under a name of its own
DELETE FROM @f WHERE row_number() OVER (ORDER BY k) = 1;
--> error WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE
--| error UNSUPPORTED_EXPR_FOR_OPERATOR # the same refusal under a name of its own
DELETE FROM @f WHERE explode(array(k)) = 1;
--> error UNSUPPORTED_GENERATOR.OUTSIDE_SELECT
UPDATE @f SET v = max(k);
--> error INVALID_WHERE_CONDITION
--| error UNSUPPORTED_EXPR_FOR_OPERATOR # the same refusal under a name of its own
UPDATE @f SET v = 1 WHERE rand() > 2;
--> error INVALID_NON_DETERMINISTIC_EXPRESSIONS
DELETE FROM @f WHERE rand() > 2;
--> error INVALID_NON_DETERMINISTIC_EXPRESSIONS
SELECT * FROM @f;
--> rows [[1, 1]]
-- names of columns that are words of SQL
CREATE TABLE @g (`update` INT, `set` INT, `delete` INT, `from` INT) USING delta;
--> nothing
INSERT INTO @g VALUES (1, 2, 3, 4);
--> nothing
UPDATE @g SET `set` = `from`, `delete` = `update` WHERE `from` = 4;
--> rows [[1]]
DELETE FROM @g WHERE `delete` = 3;
--> rows [[0]]
SELECT * FROM @g;
--> rows [[1, 4, 1, 4]]
