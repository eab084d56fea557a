CREATE TABLE @a (id BIGINT, s STRING, `odd name` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5');
--> nothing
INSERT INTO @a VALUES (1, 'one', 10), (2, 'two', 20);
--> nothing
INSERT INTO @a VALUES (3, 'it''s', 30), (4, 'say "hi"', 40), (5, 'a`b', NULL);
--> nothing
CREATE TABLE @b USING delta AS SELECT id, id * 100 AS w FROM range(2, 5);
--> nothing
CREATE TABLE @c USING delta AS SELECT id AS k, cast(id AS STRING) AS t FROM range(3, 7);
--> nothing
SELECT a.id, b.w, c.t FROM @a a JOIN @b b ON a.id = b.id JOIN @c c ON c.k = b.id;
--> rows [[3, 300, "3"], [4, 400, "4"]]
SELECT a.id, b.w, c.t FROM @a a LEFT JOIN @b b USING (id) LEFT JOIN @c c ON c.k = a.id WHERE a.id > 1;
--> rows [[2, 200, null], [3, 300, "3"], [4, 400, "4"], [5, null, "5"]]
SELECT count(*) FROM @a, @b, @c;
--> rows [[60]]
SELECT x.id FROM @a x NATURAL JOIN @b;
--> rows [[2], [3], [4]]
SELECT @a.id, @b.w FROM @a JOIN @b ON @a.id = @b.id WHERE @a.id > 2;
--> rows [[3, 300], [4, 400]]
SELECT @b.* FROM @a, @b WHERE @a.id = @b.id AND @a.id = 2;
--> rows [[2, 200]]
SELECT id FROM @a WHERE EXISTS (SELECT 1 FROM @b WHERE @b.id = @a.id AND @b.w > 300);
--> rows [[4]]
SELECT @a.id FROM @a AS x;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT count(*) FROM spark_catalog.@a;
--> rows [[5]]
SELECT spark_catalog.@a.id FROM spark_catalog.@a WHERE id = 1;
--> rows [[1]]
SELECT new.n - old.n FROM (SELECT count(*) AS n FROM @a) new, (SELECT count(*) AS n FROM @a VERSION AS OF 1) old;
--> rows [[3]]
SELECT a.id FROM @a VERSION AS OF 2 AS a LEFT ANTI JOIN @a VERSION AS OF 1 AS b ON a.id = b.id;
--> rows [[3], [4], [5]]
SELECT (SELECT count(*) FROM @a VERSION AS OF 0), (SELECT count(*) FROM @a VERSION AS OF 1), (SELECT count(*) FROM @a);
--> rows [[0, 2, 5]]
WITH old AS (SELECT id FROM @a VERSION AS OF 1), new AS (SELECT id FROM @a) SELECT id FROM new EXCEPT SELECT id FROM old;
--> rows [[3], [4], [5]]
SELECT count(*) FROM @a TIMESTAMP AS OF '1999-01-01';
--> error DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
SELECT count(*) FROM @a VERSION AS OF 99;
--> error DELTA_VERSION_NOT_FOUND
WITH a AS (SELECT id FROM @a), b AS (SELECT id FROM a WHERE id > 2), c AS (SELECT max(id) AS id FROM b) SELECT * FROM c;
--> rows [[5]]
WITH a AS (SELECT 1 AS id) SELECT a.id, x.id FROM a JOIN @a x ON x.id = a.id;
--> rows [[1, 1]]
WITH a AS (WITH b AS (SELECT id FROM @b) SELECT id + 1 AS id FROM b) SELECT a.id FROM a, @b b WHERE a.id = b.id;
--> rows [[3], [4]]
SELECT id FROM @a WHERE id = ANY (SELECT id FROM @b);
--> error PARSE_SYNTAX_ERROR
SELECT id, (SELECT max(w) FROM @b b WHERE b.id <= a.id) FROM @a a WHERE id < 4;
--> rows [[1, null], [2, 200], [3, 300]]
SELECT id FROM @a WHERE (id, s) IN (SELECT k, t FROM @c) OR id = 1;
--> rows [[1]]
SELECT id FROM (SELECT id FROM (SELECT id FROM @a WHERE id > 1) WHERE id < 5) WHERE id <> 3;
--> rows [[2], [4]]
SELECT * FROM @b UNION SELECT k, k FROM @c ORDER BY 1, 2 LIMIT 3;
--> rows [[2, 200], [3, 300], [3, 3]]
SELECT `odd name`, `a`.`s` FROM @a AS `a` WHERE `odd name` = 20;
--> rows [[20, "two"]]
SELECT id AS `it``s` FROM @a WHERE id = 1;
--> rows [[1]]
SELECT id FROM @a WHERE s = 'it''s' OR s = "say \"hi\"" OR s = 'a`b';
--> rows [[3], [4], [5]]
SELECT 'FROM t WHERE', "-- no comment", '/* nor this */' FROM @a WHERE id = 1;
--> rows [["FROM t WHERE", "-- no comment", "/* nor this */"]]
/* before */ SELECT /* in between */ id -- at the end
FROM @a /* FROM delta.`/nowhere` */ WHERE id = 2 -- AND nope = 3
;
--> rows [[2]]
SELECT /* /* nested */ still */ id FROM @a WHERE id = 3;
--> rows [[3]]
DELETE /* which */ FROM @a -- those
WHERE s = '-- none';
--> rows [[0]]
UPDATE @a SET @a.s = 'x' WHERE @a.id = 5;
--> rows [[1]]
UPDATE @a AS t SET t.`odd name` = t.`odd name` + 1 WHERE t.`odd name` = 10;
--> rows [[1]]
DELETE FROM @a WHERE @a.id = 2;
--> rows [[1]]
MERGE INTO @a USING @b ON @a.id = @b.id WHEN MATCHED THEN UPDATE SET @a.s = concat(@a.s, @b.w) WHEN NOT MATCHED THEN INSERT (id, s) VALUES (@b.id, 'new');
--> rows [[3, 2, 0, 1]]
SELECT id, s, `odd name` FROM @a;
--> rows [[1, "one", 11], [2, "new", null], [3, "it's300", 30], [4, "say \"hi\"400", 40], [5, "x", null]]
INSERT INTO @b SELECT a.id + 10, c.k FROM @a a JOIN @c c ON a.id = c.k;
--> nothing
WITH s AS (SELECT k FROM @c WHERE k = 6) INSERT INTO @b SELECT k, k FROM s;
--> nothing
SELECT * FROM @b WHERE id > 4;
--> rows [[13, 3], [14, 4], [15, 5], [6, 6]]
CREATE OR REPLACE TEMPORARY VIEW forms_view AS SELECT id FROM @b WHERE id < 10;
--> nothing
SELECT count(*) FROM forms_view;
--> rows [[4]]
INSERT INTO @b VALUES (7, 7);
--> nothing
SELECT count(*) FROM forms_view;
--> rows [[5]]
SELECT count(*) FROM forms_view v JOIN @b b ON v.id = b.id;
--> rows [[5]]
CREATE OR REPLACE TEMPORARY VIEW forms_over AS SELECT id + 1 AS id FROM forms_view;
--> nothing
DELETE FROM @b WHERE id = 7;
--> rows [[1]]
SELECT max(id) FROM forms_over;
--> rows [[7]]
ALTER TABLE @b ADD COLUMN more INT;
--> nothing
SELECT * FROM forms_view WHERE id = 2;
--> rows [[2]]
DROP VIEW forms_over;
--> nothing
DROP VIEW forms_view;
--> nothing
SELECT * FROM forms_view;
--> error TABLE_OR_VIEW_NOT_FOUND
SELECT id FROM @a WHERE id = :id AND s = :text;
--? {"id": 3, "text": "it's300"}
--> rows [[3]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
SELECT id FROM @a WHERE id = ? OR s = ?;
--? [1, "x"]
--> rows [[1], [5]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
SELECT count(*) FROM @a VERSION AS OF 1 WHERE s <> :text;
--? {"text": "two' OR '1' = '1"}
--> rows [[2]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
DELETE FROM @a WHERE s = :text;
--? {"text": "x' OR '1' = '1"}
--> rows [[0]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
UPDATE @a SET s = :text WHERE id = :id;
--? {"id": 1, "text": "'; DROP TABLE a; --"}
--> rows [[1]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
INSERT INTO @a (id, s) VALUES (?, ?);
--? [6, "\\'"]
--> nothing
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
MERGE INTO @a t USING (SELECT :id AS id) src ON t.id = src.id WHEN MATCHED AND t.s = :text THEN DELETE;
--? {"id": 6, "text": "\\'"}
--> rows [[1, 0, 1, 0]]
--| error UNBOUND_SQL_PARAMETER # delta-spark 4.4.0 on Spark 4.2 binds no parameters
SELECT id, s FROM @a WHERE id IN (1, 6);
--> rows [[1, "'; DROP TABLE a; --"]]
--| rows [[1, "one"]] # since no parameters were bound before
SELECT id FROM @a WHERE id = :missing;
--> error UNBOUND_SQL_PARAMETER
SELECT SPECIAL id FROM @a WHERE;
--> error PARSE_SYNTAX_ERROR
--| error UNRESOLVED_COLUMN.WITH_SUGGESTION # there a WHERE at the very end is the table's alias
SELECT id, w FROM @a, @b;
--> error AMBIGUOUS_REFERENCE
SELECT id FROM @a LIMIT 1 WHERE id = 1;
--> error PARSE_SYNTAX_ERROR
DROP TABLE @a;
--> error INVALID_OPTION
--| nothing # there nothing happens: the table is as before
DROP TABLE IF EXISTS @a PURGE;
--> error INVALID_OPTION
--| nothing # there nothing happens: the table is as before
DROP TABLE IF EXISTS @none;
--> nothing
DROP TABLE @none;
--> error TABLE_OR_VIEW_NOT_FOUND
