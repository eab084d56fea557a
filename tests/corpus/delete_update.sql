CREATE TABLE @a (id BIGINT, s STRING, v INT, n STRUCT<x: INT, y: STRING>, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @a SELECT id, concat('s', id), CAST(id % 3 AS INT), named_struct('x', CAST(id AS INT), 'y', 'z'), CAST(id % 2 AS INT) FROM range(12);
--> nothing
CREATE TABLE @b USING delta AS SELECT id, id * 10 AS w FROM range(3);
--> nothing
DELETE FROM @a WHERE id = 11;
--> rows [[1]]
DELETE FROM @a WHERE id = 99;
--> rows [[0]]
DELETE FROM @a t WHERE t.id = 10;
--> rows [[1]]
DELETE FROM @a AS t WHERE t.id = 9 AND t.s = 's9';
--> rows [[1]]
DELETE FROM @a WHERE s IS NULL;
--> rows [[0]]
DELETE FROM @a WHERE p = 1 AND v = 1;
--> rows [[2]]
DELETE FROM @a WHERE id IN (8, 100) OR n.x = 6;
--> rows [[2]]
SELECT id FROM @a;
--> rows [[0], [2], [3], [4], [5]]
DELETE FROM @a WHERE id IN (SELECT w FROM @b) AND id > 100;
--> rows [[0]]
--| error DELTA_UNSUPPORTED_SUBQUERY # delta-spark takes no subqueries in these conditions
DELETE FROM @a t WHERE EXISTS (SELECT 1 FROM @b b WHERE b.id = t.id AND b.w = 20);
--> rows [[1]]
--| error DELTA_UNSUPPORTED_SUBQUERY # delta-spark takes no subqueries in these conditions
SELECT id FROM @a;
--> rows [[0], [3], [4], [5]]
--| rows [[0], [2], [3], [4], [5]] # it did not run what went before
UPDATE @a SET v = 100 WHERE id = 0;
--> rows [[1]]
UPDATE @a SET v = v + 1, s = upper(s) WHERE id = 0;
--> rows [[1]]
UPDATE @a t SET t.v = t.id * 2 WHERE t.id = 1;
--> rows [[0]]
UPDATE @a SET n.x = -1 WHERE id = 3;
--> rows [[1]]
UPDATE @a SET n = named_struct('x', 7, 'y', NULL) WHERE id = 4;
--> rows [[1]]
UPDATE @a SET p = 5 WHERE id = 5;
--> rows [[1]]
UPDATE @a SET s = NULL WHERE id = 5;
--> rows [[1]]
UPDATE @a SET v = CASE WHEN id = 0 THEN 1 ELSE 2 END WHERE id IN (0, 1);
--> rows [[1]]
UPDATE @a SET s = 'a,b = c' WHERE s = 'S0';
--> rows [[1]]
UPDATE @a SET s = DEFAULT WHERE id = 1;
--> rows [[0]]
UPDATE @a SET v = '12' WHERE id = 1;
--> rows [[0]]
UPDATE @a SET v = 1 WHERE id = 77;
--> rows [[0]]
SELECT id, s, v, n.x, n.y, p FROM @a;
--> rows [[0, "a,b = c", 1, 0, "z", 0], [3, "s3", 0, -1, "z", 1], [4, "s4", 1, 7, null, 0], [5, null, 2, 5, "z", 5]]
--| rows [[0, "a,b = c", 1, 0, "z", 0], [2, "s2", 2, 2, "z", 0], [3, "s3", 0, -1, "z", 1], [4, "s4", 1, 7, null, 0], [5, null, 2, 5, "z", 5]] # it did not run what went before
UPDATE @a SET v = 3 WHERE id IN (SELECT id FROM @b WHERE w < 10);
--> rows [[1]]
--| error DELTA_UNSUPPORTED_SUBQUERY # delta-spark takes no subqueries in these conditions
UPDATE @a AS t SET v = 4 WHERE EXISTS (SELECT * FROM @b AS b WHERE b.id = t.id AND t.id = 1);
--> rows [[0]]
--| error DELTA_UNSUPPORTED_SUBQUERY # delta-spark takes no subqueries in these conditions
SELECT id, v FROM @a WHERE id < 3;
--> rows [[0, 3]]
--| rows [[0, 1], [2, 2]] # it did not run what went before
UPDATE @a SET v = 0;
--> rows [[4]]
--| rows [[5]] # it did not run what went before
SELECT DISTINCT v FROM @a;
--> rows [[0]]
UPDATE @a SET nope = 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
UPDATE @a SET v = nope;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
UPDATE @a SET v = 1 WHERE nope = 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
UPDATE @a SET v = 1, v = 2;
--> error INVALID_OPTION
--| error DELTA_CONFLICT_SET_COLUMN # the same refusal under a name of its own
DELETE FROM @a WHERE nope = 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
DELETE FROM @a WHERE id + 1;
--> error DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN
DELETE FROM @a WHERE id > ;
--> error PARSE_SYNTAX_ERROR
DELETE @a WHERE id = 1;
--> error PARSE_SYNTAX_ERROR
UPDATE @a v = 1;
--> error PARSE_SYNTAX_ERROR
UPDATE @a SET v = 1 WHERE;
--> error PARSE_SYNTAX_ERROR
DELETE FROM @none WHERE id = 1;
--> error DELTA_TABLE_NOT_FOUND
--| error PATH_NOT_FOUND # the same refusal under a name of its own
UPDATE @none SET id = 1;
--> error DELTA_TABLE_NOT_FOUND
--| error PATH_NOT_FOUND # the same refusal under a name of its own
SELECT count(*) FROM @a;
--> rows [[4]]
--| rows [[5]] # it did not run what went before
DELETE FROM @a WHERE p = 0;
--> rows [[2]]
--| rows [[3]] # it did not run what went before
SELECT DISTINCT p FROM @a;
--> rows [[1], [5]]
DELETE FROM @a;
--> rows [[2]]
SELECT count(*) FROM @a;
--> rows [[0]]
CREATE TABLE @c (id BIGINT, s STRING) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true');
--> nothing
INSERT INTO @c VALUES (1, 'x');
--> nothing
DELETE FROM @c WHERE id = 1;
--> error DELTA_CANNOT_MODIFY_APPEND_ONLY
UPDATE @c SET s = 'y';
--> error DELTA_CANNOT_MODIFY_APPEND_ONLY
CREATE TABLE @k (id BIGINT NOT NULL, v INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');
--> nothing
INSERT INTO @k VALUES (1, 1), (2, 2), (3, 3);
--> nothing
ALTER TABLE @k ADD CONSTRAINT small CHECK (v < 10);
--> nothing
UPDATE @k SET v = 10 WHERE id = 1;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
UPDATE @k SET id = NULL WHERE id = 1;
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
UPDATE @k SET v = 9 WHERE id >= 2;
--> rows [[2]]
DELETE FROM @k WHERE v = 9 AND id = 3;
--> rows [[1]]
SELECT * FROM @k;
--> rows [[1, 1], [2, 9]]
