CREATE TABLE @a (id BIGINT, s STRING, d DATE) USING delta;
--> nothing
INSERT INTO @a VALUES (1, 'one', DATE'2020-01-01');
--> nothing
SELECT * FROM @a;
--> rows [[1, "one", "2020-01-01"]]
INSERT INTO @a VALUES (2, 'two', '2020-01-02'), (3, NULL, NULL);
--> nothing
SELECT * FROM @a WHERE id > 1;
--> rows [[2, "two", "2020-01-02"], [3, null, null]]
INSERT INTO @a SELECT id, CAST(id AS STRING), NULL FROM range(4, 6);
--> nothing
SELECT * FROM @a WHERE id > 3;
--> rows [[4, "4", null], [5, "5", null]]
INSERT INTO TABLE @a SELECT 6, 'six', DATE'2020-01-06';
--> nothing
INSERT INTO @a (id) VALUES (7);
--> nothing
INSERT INTO @a (d, id) SELECT DATE'2020-01-08', 8;
--> nothing
INSERT INTO @a (s, d, id) VALUES ('nine', '2020-01-09', 9);
--> nothing
SELECT * FROM @a WHERE id > 5;
--> rows [[6, "six", "2020-01-06"], [7, null, null], [8, null, "2020-01-08"], [9, "nine", "2020-01-09"]]
INSERT INTO @a BY NAME SELECT 'ten' AS s, 10 AS id, DATE'2020-01-10' AS d;
--> nothing
SELECT * FROM @a WHERE id = 10;
--> rows [[10, "ten", "2020-01-10"]]
INSERT INTO @a WITH c AS (SELECT 11 AS id) SELECT id, 'eleven', NULL FROM c;
--> nothing
WITH c AS (SELECT 12 AS id) INSERT INTO @a SELECT id, 'twelve', NULL FROM c;
--> nothing
INSERT INTO @a (SELECT 13, 'thirteen', NULL);
--> nothing
SELECT id, s FROM @a WHERE id > 10;
--> rows [[11, "eleven"], [12, "twelve"], [13, "thirteen"]]
INSERT INTO @a SELECT id + 100, s, d FROM @a WHERE id <= 2;
--> nothing
SELECT id, s FROM @a WHERE id > 100;
--> rows [[101, "one"], [102, "two"]]
INSERT OVERWRITE @a SELECT id, s, d FROM @a WHERE id < 3;
--> nothing
SELECT * FROM @a;
--> rows [[1, "one", "2020-01-01"], [2, "two", "2020-01-02"]]
INSERT OVERWRITE TABLE @a VALUES (1, 'x', NULL);
--> nothing
SELECT * FROM @a;
--> rows [[1, "x", null]]
INSERT INTO @a REPLACE WHERE id = 1 SELECT 1, 'y', DATE'2020-02-01';
--> nothing
SELECT * FROM @a;
--> rows [[1, "y", "2020-02-01"]]
INSERT INTO @a VALUES (1 + 1, concat('a', 'b'), current_date() - current_date() + DATE'2020-01-01');
--> nothing
INSERT INTO @a VALUES (1, 2);
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_INSERT_COLUMN_ARITY_MISMATCH # the same refusal under a name of its own
INSERT INTO @a VALUES (1, 2, 3, 4);
--> error DELTA_SCHEMA_MISMATCH
--| error DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION # the same refusal under a name of its own
INSERT INTO @a (id, nope) VALUES (1, 2);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
INSERT INTO @a (id, id) VALUES (1, 2);
--> error INVALID_OPTION
--| error COLUMN_ALREADY_EXISTS # the same refusal under a name of its own
CREATE TABLE @p (v INT, p STRING, q INT) USING delta PARTITIONED BY (p, q);
--> nothing
INSERT INTO @p VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1);
--> nothing
INSERT INTO @p PARTITION (p = 'c', q = 3) SELECT 4;
--> nothing
INSERT INTO @p PARTITION (p = 'c', q) VALUES (5, 4);
--> nothing
INSERT INTO @p PARTITION (p = 'd', q = 1) (v) VALUES (6);
--> nothing
SELECT * FROM @p;
--> rows [[1, "a", 1], [2, "a", 2], [3, "b", 1], [4, "c", 3], [5, "c", 4], [6, "d", 1]]
INSERT OVERWRITE @p PARTITION (p = 'a', q = 1) SELECT 10;
--> nothing
SELECT * FROM @p WHERE p = 'a';
--> rows [[10, "a", 1], [2, "a", 2]]
INSERT OVERWRITE @p PARTITION (p = 'a', q) SELECT 11, 9;
--> nothing
SELECT * FROM @p WHERE p = 'a';
--> rows [[11, "a", 9]]
SELECT count(*) FROM @p;
--> rows [[5]]
INSERT INTO @p REPLACE WHERE p = 'b' VALUES (30, 'b', 1), (31, 'b', 2);
--> nothing
SELECT * FROM @p WHERE p = 'b';
--> rows [[30, "b", 1], [31, "b", 2]]
INSERT INTO @p REPLACE WHERE p = 'b' VALUES (40, 'z', 1);
--> error DELTA_REPLACE_WHERE_MISMATCH
CREATE TABLE @d (id BIGINT, s STRING DEFAULT 'none', n INT DEFAULT 40 + 2) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> nothing
INSERT INTO @d (id) VALUES (1);
--> nothing
INSERT INTO @d VALUES (2, DEFAULT, 5), (3, 'x', DEFAULT);
--> nothing
INSERT INTO @d (id, n) VALUES (4, DEFAULT);
--> nothing
SELECT * FROM @d;
--> rows [[1, "none", 42], [2, "none", 5], [3, "x", 42], [4, "none", 42]]
CREATE TABLE @g (id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta;
--> nothing
INSERT INTO @g (id) VALUES (1), (2);
--> nothing
INSERT INTO @g VALUES (3, 6);
--> nothing
INSERT INTO @g VALUES (4, 5);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @g;
--> rows [[1, 2], [2, 4], [3, 6]]
CREATE TABLE @n (id BIGINT NOT NULL, s STRUCT<a: INT, b: STRING>) USING delta;
--> nothing
INSERT INTO @n VALUES (NULL, NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
INSERT INTO @n VALUES (1, named_struct('a', 1, 'b', 'x'));
--> nothing
INSERT INTO @n SELECT 2, struct(2, 'y');
--> nothing
SELECT id, s.a, s.b FROM @n;
--> rows [[1, 1, "x"], [2, 2, "y"]]
INSERT INTO @n VALUES ('abc', NULL);
--> error EXECUTION_FAILED
--| error CAST_INVALID_INPUT # the same refusal under a name of its own
