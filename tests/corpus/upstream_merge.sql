-- all three kinds of clauses without conditions
CREATE TABLE @a (key INT, value INT) USING delta;
--> nothing
INSERT INTO @a VALUES (0, 0), (1, 10), (5, 50);
--> nothing
MERGE INTO @a t USING (VALUES (1, 1), (2, 2)) s ON t.key = s.col1 WHEN MATCHED THEN UPDATE SET t.value = t.value + 1 WHEN NOT MATCHED THEN INSERT (key, value) VALUES (s.col1, s.col2) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.value = t.value - 1;
--> rows [[4, 3, 0, 1]]
SELECT * FROM @a;
--> rows [[0, -1], [1, 11], [2, 2], [5, 49]]
-- all three kinds of clauses with conditions
CREATE TABLE @b (key INT, value INT) USING delta;
--> nothing
INSERT INTO @b VALUES (1, 10), (5, 50), (7, 70);
--> nothing
MERGE INTO @b t USING (SELECT col1 AS key, col2 AS value FROM VALUES (1, 1), (2, 2), (6, 6)) s ON t.key = s.key WHEN MATCHED AND t.value = 10 THEN DELETE WHEN NOT MATCHED AND s.value = 2 THEN INSERT (key, value) VALUES (s.key, s.value + 100) WHEN NOT MATCHED BY SOURCE AND t.key > 5 THEN UPDATE SET t.value = 0;
--> rows [[3, 1, 1, 1]]
SELECT * FROM @b;
--> rows [[2, 102], [5, 50], [7, 0]]
-- several clauses for rows that the source does not have
CREATE TABLE @c (key INT, value INT) USING delta;
--> nothing
INSERT INTO @c VALUES (0, 0), (1, 10), (5, 50), (6, 60), (7, 70), (8, 80);
--> nothing
MERGE INTO @c t USING (SELECT 0 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE AND t.key < 2 THEN UPDATE SET t.value = t.value + 1 WHEN NOT MATCHED BY SOURCE AND t.value < 60 THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.key = 7 THEN UPDATE SET t.value = t.key * 100 WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> rows [[5, 2, 3, 0]]
SELECT * FROM @c;
--> rows [[0, 0], [1, 11], [7, 700]]
-- an empty source
CREATE TABLE @d (key INT, value INT) USING delta;
--> nothing
INSERT INTO @d VALUES (1, 10), (5, 50);
--> nothing
MERGE INTO @d t USING (SELECT 1 AS key, 1 AS value WHERE false) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET t.value = 0 WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.key = 1 THEN UPDATE SET t.value = t.value + 1 WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> rows [[2, 1, 1, 0]]
SELECT * FROM @d;
--> rows [[1, 11]]
MERGE INTO @d t USING (SELECT 1 AS key, 1 AS value WHERE false) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> rows [[1, 0, 1, 0]]
SELECT * FROM @d;
--> rows []
-- clauses that fit no row
CREATE TABLE @e (key INT, value INT) USING delta;
--> nothing
INSERT INTO @e VALUES (1, 10), (5, 50);
--> nothing
MERGE INTO @e t USING (SELECT 1 AS key) s ON t.key = s.key WHEN MATCHED AND t.value > 10 THEN UPDATE SET t.value = 0 WHEN NOT MATCHED THEN INSERT (key) VALUES (9) WHEN NOT MATCHED BY SOURCE AND t.value < 50 THEN DELETE;
--> rows [[0, 0, 0, 0]]
SELECT * FROM @e;
--> rows [[1, 10], [5, 50]]
-- what a clause for rows without a source may say
CREATE TABLE @f (key INT, value INT) USING delta;
--> nothing
INSERT INTO @f VALUES (1, 10), (5, 50);
--> nothing
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE AND s.key = 1 THEN DELETE;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE AND max(t.key) = 1 THEN DELETE;
--> error INVALID_WHERE_CONDITION
--| error DELTA_AGGREGATION_NOT_SUPPORTED # the same refusal under a name of its own
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.value = s.key;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.value = 1 WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> error INVALID_OPTION
--| error NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION # the same refusal under a name of its own
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.value = 1 WHEN NOT MATCHED BY SOURCE AND t.key = 5 THEN DELETE;
--> error INVALID_OPTION
--| error NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION # the same refusal under a name of its own
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN INSERT (key) VALUES (1);
--> error PARSE_SYNTAX_ERROR
MERGE INTO @f t USING (SELECT 1 AS key) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *;
--> error PARSE_SYNTAX_ERROR
SELECT * FROM @f;
--> rows [[1, 10], [5, 50]]
-- a new column by INSERT * and by UPDATE *
CREATE TABLE @g (key INT, value INT) USING delta;
--> nothing
INSERT INTO @g VALUES (0, 0), (1, 10), (3, 30);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @g t USING (SELECT col1 AS key, col2 AS value, col3 AS extra FROM VALUES (1, 1, 'one'), (2, 2, 'two')) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT * FROM @g;
--> rows [[0, 0, null], [1, 10, null], [2, 2, "two"], [3, 30, null]]
MERGE WITH SCHEMA EVOLUTION INTO @g t USING (SELECT 1 AS key, 11 AS value, 'uno' AS extra, true AS more) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT * FROM @g;
--> rows [[0, 0, null, null], [1, 11, "uno", true], [2, 2, "two", null], [3, 30, null, null]]
-- a new column by one assignment
CREATE TABLE @h (key INT, value INT) USING delta;
--> nothing
INSERT INTO @h VALUES (0, 0), (1, 10), (3, 30);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @h t USING (SELECT col1 AS key, col2 AS value, col3 AS extra, col3 AS unused FROM VALUES (1, 1, 'one'), (2, 2, 'two')) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET extra = s.extra;
--> rows [[1, 1, 0, 0]]
SELECT * FROM @h;
--> rows [[0, 0, null], [1, 10, "one"], [3, 30, null]]
MERGE WITH SCHEMA EVOLUTION INTO @h t USING (SELECT 2 AS key, 2 AS value, 5.5 AS price) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT (key, price) VALUES (s.key, s.price);
--> rows [[1, 0, 0, 1]]
SELECT * FROM @h;
--> rows [[0, 0, null, null], [1, 10, "one", null], [2, null, null, "5.5"], [3, 30, null, null]]
-- a new column in one clause and not in another
CREATE TABLE @i (key INT, value INT) USING delta;
--> nothing
INSERT INTO @i VALUES (0, 0), (1, 10);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @i t USING (SELECT col1 AS key, col2 AS value, col3 AS extra FROM VALUES (1, 1, 'one'), (2, 2, 'two')) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET value = 31 WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT * FROM @i;
--> rows [[0, 0, null], [1, 31, null], [2, 2, "two"]]
MERGE WITH SCHEMA EVOLUTION INTO @i t USING (SELECT col1 AS key, col2 AS value, col3 AS extra2 FROM VALUES (1, 1, 'one'), (5, 5, 'five')) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (key, value) VALUES (s.key, s.value + 100);
--> rows [[2, 1, 0, 1]]
SELECT * FROM @i;
--> rows [[0, 0, null, null], [1, 1, null, "one"], [2, 2, "two", null], [5, 105, null, null]]
-- a new column made of something else is refused
CREATE TABLE @j (key INT, value INT) USING delta;
--> nothing
INSERT INTO @j VALUES (1, 10);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @j t USING (SELECT 1 AS key, 'x' AS extra) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET nope = s.key;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @j t USING (SELECT 2 AS key, 'x' AS extra) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT (key, nope) VALUES (s.key, 1);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @j t USING (SELECT 1 AS key, 'x' AS extra) s ON t.key = s.key WHEN NOT MATCHED BY SOURCE THEN UPDATE SET extra = 'z';
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @j t USING (SELECT 1 AS key, 'x' AS extra) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET extra = s.extra;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error INTERNAL_ERROR # the same refusal under a name of its own
SELECT * FROM @j;
--> rows [[1, 10]]
MERGE WITH SCHEMA EVOLUTION INTO @j t USING (SELECT 1 AS key, 'x' AS extra) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET s.extra = 'y';
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| rows [[1, 1, 0, 0]] # there the name of the source is passed over; a column of the source is none to assign
-- a new column takes another value than the source's
CREATE TABLE @k (key INT, value INT) USING delta;
--> nothing
INSERT INTO @k VALUES (1, 10);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @k t USING (SELECT 1 AS key, 'x' AS extra, 'y' AS other) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET extra = s.other;
--> rows [[1, 1, 0, 0]]
MERGE WITH SCHEMA EVOLUTION INTO @k t USING (SELECT 2 AS key, CAST(NULL AS INT) AS num) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT (key, num) VALUES (s.key, s.key);
--> rows [[1, 0, 0, 1]]
SELECT * FROM @k;
--> rows [[1, 10, "y", null], [2, null, null, 2]]
-- columns that the source lacks
CREATE TABLE @l (key INT, value INT, extra STRING) USING delta;
--> nothing
INSERT INTO @l VALUES (0, 0, 'no'), (1, 10, 'yes');
--> nothing
MERGE INTO @l t USING (SELECT 1 AS key, 5 AS value) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> error DELTA_SCHEMA_MISMATCH
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE INTO @l t USING (SELECT 2 AS key, 5 AS value) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_SCHEMA_MISMATCH
--| error INTERNAL_ERROR # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @l t USING (SELECT col1 AS key, col2 AS value FROM VALUES (1, 5), (2, 6)) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT * FROM @l;
--> rows [[0, 0, "no"], [1, 5, "yes"], [2, 6, null]]
-- a struct gets a field by INSERT * and UPDATE *
CREATE TABLE @m (key INT, s STRUCT<a: INT, b: STRUCT<c: INT>>) USING delta;
--> nothing
INSERT INTO @m VALUES (1, named_struct('a', 1, 'b', named_struct('c', 2)));
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @m t USING (SELECT 2 AS key, named_struct('a', 3, 'b', named_struct('c', 4, 'd', 'new')) AS s) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT key, s.a, s.b.c, s.b.d FROM @m;
--> rows [[1, 1, 2, null], [2, 3, 4, "new"]]
MERGE WITH SCHEMA EVOLUTION INTO @m t USING (SELECT 1 AS key, named_struct('a', 5, 'z', true, 'b', named_struct('d', 'd')) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT key, s FROM @m;
--> rows [[1, {"a": 5, "b": {"c": 2, "d": "d"}, "z": true}], [2, {"a": 3, "b": {"c": 4, "d": "new"}, "z": null}]]
-- a struct whose fields stand in another order
CREATE TABLE @n (key INT, s STRUCT<a: INT, b: STRING>) USING delta;
--> nothing
INSERT INTO @n VALUES (1, named_struct('a', 1, 'b', 'x'));
--> nothing
MERGE INTO @n t USING (SELECT 1 AS key, named_struct('b', 'y', 'a', 2) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE INTO @n t USING (SELECT 2 AS key, named_struct('b', 'z', 'a', 3) AS s) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE INTO @n t USING (SELECT 1 AS key, named_struct('b', 'w', 'a', 4) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET s = s.s;
--> rows [[1, 1, 0, 0]]
SELECT key, s.a, s.b FROM @n;
--> rows [[1, 4, "w"], [2, 3, "z"]]
-- a struct with a field too many, without evolution
CREATE TABLE @o (key INT, s STRUCT<a: INT>) USING delta;
--> nothing
INSERT INTO @o VALUES (1, named_struct('a', 1));
--> nothing
MERGE INTO @o t USING (SELECT 1 AS key, named_struct('a', 2, 'b', 3) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION # the same refusal under a name of its own
MERGE INTO @o t USING (SELECT 2 AS key, named_struct('a', 2, 'b', 3) AS s) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION # the same refusal under a name of its own
MERGE INTO @o t USING (SELECT 1 AS key, named_struct('a', 2, 'b', 3) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET s.a = s.s.b;
--> rows [[1, 1, 0, 0]]
SELECT key, s.a FROM @o;
--> rows [[1, 3]]
-- elements get a field
CREATE TABLE @p (key INT, l ARRAY<STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>>) USING delta;
--> nothing
INSERT INTO @p VALUES (1, array(named_struct('a', 1, 'b', array(named_struct('c', 2)))));
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @p t USING (SELECT 1 AS key, array(named_struct('b', array(named_struct('c', 3, 'd', 'new')), 'a', 4)) AS l) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT l FROM @p;
--> rows [[[{"a": 4, "b": [{"c": 3, "d": "new"}]}]]]
MERGE WITH SCHEMA EVOLUTION INTO @p t USING (SELECT 2 AS key, array(named_struct('a', 9, 'x', 8)) AS l) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT key, l FROM @p;
--> rows [[1, [{"a": 4, "b": [{"c": 3, "d": "new"}], "x": null}]], [2, [{"a": 9, "b": null, "x": 8}]]]
-- keys and values of maps get a field
CREATE TABLE @q (key INT, m MAP<STRING, STRUCT<a: INT>>) USING delta;
--> nothing
INSERT INTO @q VALUES (1, map('k', named_struct('a', 1)));
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @q t USING (SELECT col1 AS key, map('k2', named_struct('b', 'new', 'a', col1 * 10)) AS m FROM VALUES (1), (2)) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[2, 1, 0, 1]]
SELECT key, map_keys(m), map_values(m) FROM @q;
--> rows [[1, ["k2"], [{"a": 10, "b": "new"}]], [2, ["k2"], [{"a": 20, "b": "new"}]]]
MERGE WITH SCHEMA EVOLUTION INTO @q t USING (SELECT 3 AS key, map('k3', named_struct('b', 'less')) AS m) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT map_values(m) FROM @q WHERE key = 3;
--> rows [[[{"a": null, "b": "less"}]]]
-- a struct that is NULL stays NULL
CREATE TABLE @r (key INT, s STRUCT<a: INT, b: INT>) USING delta;
--> nothing
INSERT INTO @r VALUES (1, named_struct('a', 1, 'b', 2)), (2, NULL);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @r t USING (SELECT 1 AS key, CAST(NULL AS STRUCT<a: INT, c: INT>) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE WITH SCHEMA EVOLUTION INTO @r t USING (SELECT 3 AS key, CAST(NULL AS STRUCT<c: INT, a: INT>) AS s) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT key, s FROM @r WHERE key > 1;
--> rows [[2, null], [3, null]]
-- names with dots and another case
CREATE TABLE @s (key INT, `value.with.dots` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
INSERT INTO @s VALUES (1, 10);
--> nothing
MERGE INTO @s t USING (SELECT 1 AS KEY, 11 AS `Value.With.Dots`) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE WITH SCHEMA EVOLUTION INTO @s t USING (SELECT 2 AS Key, 22 AS `VALUE.with.dots`, 33 AS `more.dots`) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT * FROM @s;
--> rows [[1, 11, null], [2, 22, 33]]
-- text does not become a number by itself where types evolve
CREATE TABLE @t (key INT, value INT) USING delta;
--> nothing
INSERT INTO @t VALUES (1, 10);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 1 AS key, 'notanint' AS value) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> error EXECUTION_FAILED
--| error TASK_WRITE_FAILED # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 1 AS key, '25' AS value) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 2 AS key, array(1) AS value) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_SCHEMA_MISMATCH
--| error DELTA_FAILED_TO_MERGE_FIELDS # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 3 AS key, 3000000000 AS value) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> error EXECUTION_FAILED
--| error DELTA_CAST_OVERFLOW_IN_TABLE_WRITE # the same refusal under a name of its own
MERGE WITH SCHEMA EVOLUTION INTO @t t USING (SELECT 3 AS key, 30L AS value) s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
SELECT key, value, typeof(value) FROM @t;
--> rows [[1, 25, "int"], [3, 30, "int"]]
-- a column of VOID gets the source's type
CREATE TABLE @u (key INT, v VOID) USING delta;
--> nothing
INSERT INTO @u (key) VALUES (1);
--> nothing
MERGE WITH SCHEMA EVOLUTION INTO @u t USING (SELECT 1 AS key, 'text' AS v) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT key, v FROM @u;
--> rows [[1, "text"]]
-- sets of elements in assignments
CREATE TABLE @v (key INT, l ARRAY<INT>) USING delta;
--> nothing
INSERT INTO @v VALUES (1, array(1, 2)), (2, array(3));
--> nothing
MERGE INTO @v t USING (SELECT 1 AS key, array(2, 5) AS l) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET l = array_union(t.l, s.l);
--> rows [[1, 1, 0, 0]]
MERGE INTO @v t USING (SELECT 2 AS key, array(3L, 4L) AS l) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET l = array_except(s.l, t.l);
--> rows [[1, 1, 0, 0]]
SELECT key, l FROM @v;
--> rows [[1, [1, 2, 5]], [2, [4]]]
-- rows of one source row that match several rows
CREATE TABLE @w (key INT, value INT) USING delta;
--> nothing
INSERT INTO @w VALUES (1, 10), (1, 11), (2, 20);
--> nothing
MERGE INTO @w t USING (SELECT 1 AS key) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET value = value + 1;
--> rows [[2, 2, 0, 0]]
MERGE INTO @w t USING (SELECT 1 AS key UNION ALL SELECT 1) s ON t.key = s.key WHEN MATCHED THEN DELETE;
--> rows [[2, 0, 2, 0]]
MERGE INTO @w t USING (SELECT 2 AS key, 1 AS v UNION ALL SELECT 2, 2) s ON t.key = s.key WHEN MATCHED AND s.v = 1 THEN UPDATE SET value = s.v;
--> rows [[1, 1, 0, 0]]
--| error DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE # here only rows of the source count that change the row: it is one
MERGE INTO @w t USING (SELECT 2 AS key, 1 AS v UNION ALL SELECT 2, 2) s ON t.key = s.key AND s.v = 2 WHEN MATCHED THEN UPDATE SET value = s.v;
--> rows [[1, 1, 0, 0]]
SELECT * FROM @w;
--> rows [[2, 2]]
-- NULL matches nothing
CREATE TABLE @x (key INT, value INT) USING delta;
--> nothing
INSERT INTO @x VALUES (NULL, 1), (2, 2);
--> nothing
MERGE INTO @x t USING (SELECT CAST(NULL AS INT) AS key, 5 AS value) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
MERGE INTO @x t USING (SELECT CAST(NULL AS INT) AS key, 6 AS value) s ON t.key <=> s.key WHEN MATCHED AND t.value = 5 THEN DELETE;
--> rows [[1, 0, 1, 0]]
MERGE INTO @x t USING (SELECT 2 AS key) s ON t.key = s.key WHEN MATCHED AND s.key = NULL THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.key = NULL THEN DELETE;
--> rows [[0, 0, 0, 0]]
SELECT * FROM @x;
--> rows [[2, 2], [null, 1]]
-- conditions with NOT, OR and inequalities
CREATE TABLE @y (key INT, value INT, p INT) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @y VALUES (1, 10, 0), (2, 20, 0), (3, 30, 1), (4, 40, 1);
--> nothing
MERGE INTO @y t USING (SELECT 2 AS key) s ON t.key < s.key OR t.key > s.key + 1 WHEN MATCHED THEN UPDATE SET value = -1;
--> rows [[2, 2, 0, 0]]
MERGE INTO @y t USING (SELECT 3 AS key, 1 AS p) s ON t.p = s.p AND NOT t.key = s.key WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.p = 0 THEN UPDATE SET p = 2;
--> rows [[3, 2, 1, 0]]
SELECT * FROM @y;
--> rows [[1, -1, 2], [2, 20, 2], [3, 30, 1]]
-- an array column is assigned by casts of its elements
CREATE TABLE @z (key INT, l ARRAY<BIGINT>, m MAP<STRING, INT>, s STRUCT<a: BIGINT, b: STRING>) USING delta;
--> nothing
INSERT INTO @z VALUES (1, array(1), map('a', 1), named_struct('a', 1, 'b', 'x'));
--> nothing
MERGE INTO @z t USING (SELECT 1 AS key, array(5, 6) AS l, map('b', 7L) AS m, named_struct('a', 8, 'b', 9) AS s) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *;
--> rows [[1, 1, 0, 0]]
SELECT key, l, map_keys(m), map_values(m), s FROM @z;
--> rows [[1, [5, 6], ["b"], [7], {"a": 8, "b": "9"}]]
MERGE INTO @z t USING (SELECT 1 AS key, map('b', 7000000000) AS m) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET m = s.m;
--> error EXECUTION_FAILED
--| error TASK_WRITE_FAILED # the same refusal under a name of its own
MERGE INTO @z t USING (SELECT 1 AS key) s ON t.key = s.key WHEN MATCHED THEN UPDATE SET s.a = '12', s.b = 12;
--> rows [[1, 1, 0, 0]]
SELECT s.a, s.b FROM @z;
--> rows [[12, "12"]]
