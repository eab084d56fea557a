CREATE TABLE @a (id BIGINT, day DATE, s STRING, v DOUBLE, n STRUCT<x: INT, y: STRING>, l ARRAY<INT>, m MAP<STRING, INT>) USING delta PARTITIONED BY (day);
--> nothing
INSERT INTO @a VALUES (1, DATE'2020-01-01', 'one', 1.5, named_struct('x', 1, 'y', 'a'), array(1, 2), map('k', 1)), (2, DATE'2020-01-02', 'two', 2.5, NULL, array(), map());
--> nothing
INSERT INTO @a VALUES (3, DATE'2020-01-03', NULL, NULL, named_struct('x', NULL, 'y', 'c'), NULL, NULL), (4, NULL, 'four', 4.5, named_struct('x', 4, 'y', NULL), array(4), map('k', 4));
--> nothing
CREATE TABLE @b USING delta AS SELECT id, id * 10 AS w FROM range(2, 6);
--> nothing
SELECT count(*) FROM @a;
--> rows [[4]]
SELECT id, day, s, v FROM @a;
--> rows [[1, "2020-01-01", "one", 1.5], [2, "2020-01-02", "two", 2.5], [3, "2020-01-03", null, null], [4, null, "four", 4.5]]
SELECT id FROM @a WHERE day = '2020-01-02';
--> rows [[2]]
SELECT id FROM @a WHERE day >= DATE'2020-01-02' AND id < 3;
--> rows [[2]]
SELECT id FROM @a WHERE day IS NULL;
--> rows [[4]]
SELECT id FROM @a WHERE s LIKE 't%' OR v > 4;
--> rows [[2], [4]]
SELECT id FROM @a WHERE NOT (id = 1) AND s IS NOT NULL;
--> rows [[2], [4]]
SELECT id FROM @a WHERE n.x = 1;
--> rows [[1]]
SELECT n.y FROM @a WHERE n.x IS NULL AND n IS NOT NULL;
--> rows [["c"]]
SELECT id FROM @a WHERE l[0] = 4 AND m['k'] = 4;
--> error INVALID_ARRAY_INDEX
SELECT id FROM @a WHERE s <=> NULL;
--> rows [[3]]
SELECT id FROM @a WHERE id IN (1, 3, 9);
--> rows [[1], [3]]
SELECT id FROM @a WHERE id BETWEEN 2 AND 3;
--> rows [[2], [3]]
SELECT id FROM @a WHERE year(day) = 2020 AND day < '2020-01-02';
--> rows [[1]]
SELECT t.id FROM @a AS t WHERE t.id > 3;
--> rows [[4]]
SELECT t.id FROM @a t WHERE t.id > 3 ORDER BY t.id DESC LIMIT 1;
--> rows [[4]]
SELECT `t`.`id` FROM @a `t` WHERE `t`.`day` = '2020-01-01';
--> rows [[1]]
SELECT a.id, b.w FROM @a a JOIN @b b ON a.id = b.id;
--> rows [[2, 20], [3, 30], [4, 40]]
SELECT a.id, b.w FROM @a a JOIN @b b USING (id) WHERE b.w > 30;
--> rows [[4, 40]]
SELECT a.id, b.w FROM @a a LEFT JOIN @b b ON a.id = b.id WHERE b.w IS NULL;
--> rows [[1, null]]
SELECT a.id, b.id FROM @a a RIGHT JOIN @b b ON a.id = b.id WHERE a.id IS NULL;
--> rows [[null, 5]]
SELECT a.id, b.id FROM @a a FULL OUTER JOIN @b b ON a.id = b.id WHERE coalesce(a.id, 0) <> 2;
--> rows [[1, null], [3, 3], [4, 4], [null, 5]]
SELECT a.id FROM @a a LEFT SEMI JOIN @b b ON a.id = b.id;
--> rows [[2], [3], [4]]
SELECT a.id FROM @a a LEFT ANTI JOIN @b b ON a.id = b.id;
--> rows [[1]]
SELECT x.id, y.id FROM @a x, @a y WHERE x.id = y.id + 1 AND x.id > 2;
--> rows [[3, 2], [4, 3]]
SELECT count(*) FROM @a CROSS JOIN @b;
--> rows [[16]]
WITH c AS (SELECT id FROM @a WHERE id > 1) SELECT sum(id) FROM c;
--> rows [[9]]
WITH c AS (SELECT id FROM @a), d (k) AS (SELECT id FROM c WHERE id < 3) SELECT k FROM d;
--> rows [[1], [2]]
WITH a AS (SELECT 7 AS id) SELECT a.id FROM a;
--> rows [[7]]
SELECT id FROM (SELECT id, s FROM @a WHERE s = 'one') x;
--> rows [[1]]
SELECT (SELECT max(w) FROM @b) AS top, count(*) AS n FROM @a;
--> rows [[50, 4]]
SELECT id FROM @a WHERE id IN (SELECT id FROM @b WHERE w > 20);
--> rows [[3], [4]]
SELECT id FROM @a a WHERE EXISTS (SELECT 1 FROM @b b WHERE b.id = a.id AND b.w = 40);
--> rows [[4]]
SELECT id FROM @a WHERE id NOT IN (SELECT id FROM @b);
--> rows [[1]]
SELECT id FROM @a WHERE id = (SELECT min(id) FROM @b);
--> rows [[2]]
SELECT id FROM @a UNION ALL SELECT id FROM @b;
--> rows [[1], [2], [2], [3], [3], [4], [4], [5]]
SELECT id FROM @a EXCEPT SELECT id FROM @b;
--> rows [[1]]
SELECT id FROM @a INTERSECT SELECT id FROM @b;
--> rows [[2], [3], [4]]
(SELECT id FROM @a WHERE id = 1) UNION (SELECT id FROM @b WHERE id = 5);
--> rows [[1], [5]]
SELECT day, count(*) AS n FROM @a GROUP BY day HAVING count(*) > 0;
--> rows [["2020-01-01", 1], ["2020-01-02", 1], ["2020-01-03", 1], [null, 1]]
SELECT id, row_number() OVER (ORDER BY id DESC) AS r FROM @a WHERE id < 3;
--> rows [[1, 2], [2, 1]]
SELECT count(*) FROM @a VERSION AS OF 1;
--> rows [[2]]
SELECT count(*) FROM @a VERSION AS OF 0;
--> rows [[0]]
SELECT new.id FROM @a new LEFT ANTI JOIN (SELECT * FROM @a VERSION AS OF 1) old ON new.id = old.id;
--> rows [[3], [4]]
SELECT id, x FROM @a LATERAL VIEW explode(l) e AS x;
--> rows [[1, 1], [1, 2], [4, 4]]
SELECT id, e FROM @a, LATERAL explode(l) AS t(e) WHERE id = 1;
--> rows [[1, 1], [1, 2]]
SELECT * FROM (SELECT id, s FROM @a) PIVOT (max(id) FOR s IN ('one', 'two'));
--> rows [[1, 2]]
SELECT CASE WHEN id > 2 THEN 'big' ELSE 'small' END AS size, count(*) FROM @a GROUP BY 1;
--> rows [["big", 2], ["small", 2]]
SELECT id /* the key */ FROM @a -- all of them
WHERE id = 1;
--> rows [[1]]
SELECT 'FROM delta.`/nowhere`' AS text, count(*) FROM @a;
--> rows [["FROM delta.`/nowhere`", 4]]
SELECT DISTINCT substring(s, 1, 1) FROM @a WHERE s IS NOT NULL;
--> rows [["f"], ["o"], ["t"]]
SELECT id FROM @a WHERE s IS DISTINCT FROM 'one';
--> rows [[2], [3], [4]]
SELECT extract(DAY FROM day) AS d FROM @a WHERE id = 2;
--> rows [[2]]
SELECT trim(BOTH 't' FROM s) FROM @a WHERE id = 2;
--> rows [["wo"]]
SELECT CAST(v AS INT), v::STRING FROM @a WHERE id = 1;
--> rows [[1, "1.5"]]
SELECT max(struct(id, s)).s FROM @a;
--> rows [["four"]]
SELECT /*+ BROADCAST(b) */ count(*) FROM @a a JOIN @b b ON a.id = b.id;
--> rows [[3]]
FROM @a SELECT id WHERE id = 4;
--> rows [[4]]
TABLE @b;
--> rows [[2, 20], [3, 30], [4, 40], [5, 50]]
VALUES (1, 'x'), (2, 'y');
--> rows [[1, "x"], [2, "y"]]
SELECT transform(l, x -> x + 1) FROM @a WHERE id = 1;
--> rows [[[2, 3]]]
SELECT id FROM @a WHERE upper(s) = 'TWO';
--> rows [[2]]
SELECT count(*) FILTER (WHERE v > 2) FROM @a;
--> rows [[2]]
SELECT id FROM @a ORDER BY v NULLS LAST LIMIT 2;
--> rows [[1], [2]]
