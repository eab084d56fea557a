CREATE TABLE @t (id BIGINT, s STRING, v INT) USING delta;
--> nothing
INSERT INTO @t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4);
--> nothing
CREATE TABLE @s (id BIGINT, s STRING, v INT) USING delta;
--> nothing
INSERT INTO @s VALUES (2, 'B', 20), (3, 'C', 30), (5, 'E', 50);
--> nothing
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
--> rows [[2, 2, 0, 0]]
SELECT * FROM @t;
--> rows [[1, "a", 1], [2, "b", 20], [3, "c", 30], [4, "d", 4]]
MERGE INTO @t AS t USING @s AS s ON t.id = s.id WHEN MATCHED AND s.v > 20 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT * FROM @t;
--> rows [[1, "a", 1], [2, "b", 20], [3, "C", 30], [4, "d", 4], [5, "E", 50]]
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED AND t.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET t.s = concat(t.s, s.s);
--> rows [[3, 2, 1, 0]]
SELECT * FROM @t;
--> rows [[1, "a", 1], [2, "bB", 20], [3, "CC", 30], [4, "d", 4]]
MERGE INTO @t t USING (SELECT 6 AS k, 'f' AS x) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.k, s.x);
--> rows [[1, 0, 0, 1]]
MERGE INTO @t t USING (VALUES (7, 'g'), (8, 'h')) AS s(k, x) ON t.id = s.k WHEN NOT MATCHED AND s.k > 7 THEN INSERT (s, id, v) VALUES (x, k, k * 10);
--> rows [[1, 0, 0, 1]]
--| error COLUMN_ALIASES_NOT_ALLOWED # its MERGE takes no names of columns behind an alias
SELECT * FROM @t WHERE id > 5;
--> rows [[6, "f", null], [8, "h", 80]]
--| rows [[6, "f", null]] # so no row is inserted there
MERGE INTO @t t USING @s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -1;
--> rows [[4, 2, 2, 0]]
--| rows [[3, 2, 1, 0]] # so one row less is there
SELECT * FROM @t;
--> rows [[1, "a", -1], [2, "bB", 20], [3, "CC", 30], [4, "d", -1]]
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.s = 'alone';
--> rows [[5, 2, 2, 1]]
SELECT * FROM @t;
--> rows [[1, "alone", -1], [4, "alone", -1], [5, null, null]]
MERGE INTO @t t USING @s s ON false WHEN NOT MATCHED THEN INSERT *;
--> rows [[3, 0, 0, 3]]
SELECT count(*) FROM @t;
--> rows [[6]]
MERGE INTO @t t USING @s VERSION AS OF 0 s ON t.id = s.id WHEN MATCHED THEN DELETE;
--> rows [[0, 0, 0, 0]]
--| error PARSE_SYNTAX_ERROR # its MERGE takes no AS OF in USING
MERGE INTO @t t USING (SELECT * FROM @s WHERE id > 2) s ON t.id = s.id AND t.v IS NOT NULL WHEN MATCHED THEN UPDATE SET v = CASE WHEN s.v = 30 THEN 31 ELSE s.v END;
--> rows [[2, 2, 0, 0]]
SELECT * FROM @t WHERE v IS NOT NULL;
--> rows [[1, "alone", -1], [2, "B", 20], [3, "C", 31], [4, "alone", -1], [5, "E", 50]]
MERGE INTO @t t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 9;
--> error DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE
MERGE INTO @t t USING @s s ON t.id = s.nope WHEN MATCHED THEN DELETE;
--> error AMBIGUOUS_REFERENCE
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @t t USING @s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (1, 2);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @t t USING @s s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (1);
--> error PARSE_SYNTAX_ERROR
--| error MERGE_INSERT_VALUE_COUNT_MISMATCH # the same refusal under a name of its own
MERGE INTO @t t USING @s s ON t.id = s.id WHEN NOT MATCHED THEN DELETE;
--> error PARSE_SYNTAX_ERROR
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED THEN INSERT *;
--> error PARSE_SYNTAX_ERROR
MERGE INTO @t t USING @s s ON t.id = s.id;
--> error PARSE_SYNTAX_ERROR
--| error MERGE_WITHOUT_WHEN # the same refusal under a name of its own
MERGE INTO @t t USING @s s WHEN MATCHED THEN DELETE;
--> error PARSE_SYNTAX_ERROR
MERGE INTO @t t USING @s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1 WHEN MATCHED THEN DELETE;
--> error INVALID_OPTION
--| error NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION # the same refusal under a name of its own
MERGE INTO @none t USING @s s ON t.id = s.id WHEN MATCHED THEN DELETE;
--> error DELTA_TABLE_NOT_FOUND
--| error PATH_NOT_FOUND # the same refusal under a name of its own
MERGE INTO @t t USING @none s ON t.id = s.id WHEN MATCHED THEN DELETE;
--> error DELTA_TABLE_NOT_FOUND
--| error INVALID_EXTRACT_BASE_FIELD_TYPE # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 100L AS id, 'new' AS extra) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT id, s, v, extra FROM @t WHERE id = 100;
--> rows [[100, null, null, "new"]]
WITH x AS (SELECT 1) SELECT count(*) FROM @t, x;
--> rows [[7]]
MERGE INTO @t USING @t AS s ON s.id = 100 AND false WHEN MATCHED THEN DELETE;
--> rows [[0, 0, 0, 0]]
