-- a constraint that cannot be read, or is none
CREATE TABLE @a (id BIGINT, s STRING) USING delta;
--> nothing
INSERT INTO @a VALUES (1, 'a'), (2, NULL);
--> nothing
ALTER TABLE @a ADD CONSTRAINT lessThan5 CHECK (id <);
--> error UNREADABLE_EXPRESSION
--| error PARSE_SYNTAX_ERROR # the same refusal under a name of its own
ALTER TABLE @a ADD CONSTRAINT lessThan5 CHECK (id);
--> error DELTA_NON_BOOLEAN_CHECK_CONSTRAINT
ALTER TABLE @a ADD CONSTRAINT lessThan5 CHECK ('text');
--> error DELTA_NON_BOOLEAN_CHECK_CONSTRAINT
ALTER TABLE @a ADD CONSTRAINT lessThan5 CHECK (nope < 5);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @a ADD CONSTRAINT lessThan5 CHECK (id < 5);
--> nothing
ALTER TABLE @a ADD CONSTRAINT LESSTHAN5 CHECK (id < 6);
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @a DROP CONSTRAINT LESSthan5;
--> nothing
INSERT INTO @a VALUES (10, NULL);
--> nothing
SELECT * FROM @a;
--> rows [[1, "a"], [10, null], [2, null]]
-- constraints of built-in functions
CREATE TABLE @b (num BIGINT, text STRING) USING delta;
--> nothing
ALTER TABLE @b ADD CONSTRAINT textSize CHECK (length(text) < 10);
--> nothing
ALTER TABLE @b ADD CONSTRAINT absolute CHECK (abs(num) <= 100);
--> nothing
INSERT INTO @b VALUES (1, 'short'), (-100, NULL), (NULL, 'x');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @b VALUES (1, 'very long string');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @b VALUES (-101, 'x');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @b;
--> rows []
-- a constraint whose sides have different types
CREATE TABLE @c (num INT, text STRING) USING delta;
--> nothing
INSERT INTO @c VALUES (1, 'a');
--> nothing
ALTER TABLE @c ADD CONSTRAINT numText CHECK (num < '10');
--> nothing
INSERT INTO @c VALUES (5, 'b');
--> nothing
INSERT INTO @c VALUES (10, 'c');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
ALTER TABLE @c ADD CONSTRAINT big CHECK (num > 9999999999L);
--> error DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
SELECT * FROM @c;
--> rows [[1, "a"], [5, "b"]]
-- a constraint with parentheses in parentheses
CREATE TABLE @d (num INT, text STRING) USING delta;
--> nothing
ALTER TABLE @d ADD CONSTRAINT maybe CHECK (((num < 10) OR ((text = 'ok') AND (num < (100)))));
--> nothing
INSERT INTO @d VALUES (5, 'no'), (50, 'ok'), (NULL, 'ok');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @d VALUES (50, 'no');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @d;
--> rows []
-- a constraint that is UNKNOWN is violated
CREATE TABLE @e (a INT, b STRING) USING delta;
--> nothing
ALTER TABLE @e ADD CONSTRAINT myConstraint CHECK (a < 10);
--> nothing
INSERT INTO @e VALUES (NULL, 'x');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
ALTER TABLE @e ADD CONSTRAINT both CHECK (a IS NULL AND b IS NOT NULL);
--> nothing
INSERT INTO @e VALUES (NULL, NULL);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @e VALUES (1, 'x');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @e;
--> rows []
-- a constraint that compares several columns
CREATE TABLE @f (low INT, high INT, kind STRING) USING delta;
--> nothing
ALTER TABLE @f ADD CONSTRAINT ordered CHECK (low <= high AND kind IN ('a', 'b') OR kind = 'any');
--> nothing
INSERT INTO @f VALUES (1, 2, 'a'), (2, 1, 'any');
--> nothing
INSERT INTO @f VALUES (2, 1, 'a');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
UPDATE @f SET low = 3 WHERE kind = 'a';
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
UPDATE @f SET low = 2 WHERE kind = 'a';
--> rows [[1]]
MERGE INTO @f t USING (SELECT 5 AS low, 4 AS high, 'b' AS kind) s ON t.low = s.low WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @f;
--> rows [[2, 1, "any"], [2, 2, "a"]]
-- constraints with LIKE ANY and LIKE ALL
CREATE TABLE @g (text STRING) USING delta;
--> nothing
ALTER TABLE @g ADD CONSTRAINT la CHECK (text LIKE ANY ('%a%', '%b%'));
--> nothing
ALTER TABLE @g ADD CONSTRAINT ll CHECK (text LIKE ALL ('%1', '%1%'));
--> nothing
ALTER TABLE @g ADD CONSTRAINT nl CHECK (text NOT LIKE ALL ('%x%', '%y%'));
--> nothing
INSERT INTO @g VALUES ('a1'), ('b11');
--> nothing
INSERT INTO @g VALUES ('c1');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @g VALUES ('ax1');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @g;
--> rows [["a1"], ["b11"]]
-- constraints on arrays and maps
CREATE TABLE @h (l ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT>) USING delta;
--> nothing
ALTER TABLE @h ADD CONSTRAINT sz CHECK (array_size(array_compact(l)) > 1);
--> nothing
ALTER TABLE @h ADD CONSTRAINT el CHECK (m['k'] > 0);
--> nothing
ALTER TABLE @h ADD CONSTRAINT st CHECK (s.x < 5);
--> nothing
INSERT INTO @h VALUES (array(1, NULL, 2), map('k', 1), named_struct('x', 4));
--> nothing
INSERT INTO @h VALUES (array(1, NULL), map('k', 1), named_struct('x', 4));
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @h VALUES (array(1, 2), map('k', 0), named_struct('x', 4));
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @h VALUES (array(1, 2), map('other', 0), named_struct('x', 5));
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @h VALUES (array(1, 2), map('other', 0), NULL);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT l, map_keys(m), s.x FROM @h;
--> rows [[[1, null, 2], ["k"], 4]]
-- constraints that look at the clock, at chance or at other rows
CREATE TABLE @i (a INT, t TIMESTAMP) USING delta;
--> nothing
ALTER TABLE @i ADD CONSTRAINT r CHECK (a < rand());
--> error RULE_REFUSED
--| nothing # taken there, and each write fails then; here a rule is decided by one row
ALTER TABLE @i ADD CONSTRAINT s CHECK (a < sum(a));
--> error RULE_REFUSED
--| error INVALID_WHERE_CONDITION # the same refusal under a name of its own
ALTER TABLE @i ADD CONSTRAINT w CHECK (a < row_number() OVER (ORDER BY a));
--> error RULE_REFUSED
--| error WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE # the same refusal under a name of its own
ALTER TABLE @i ADD CONSTRAINT e CHECK (explode(array(a)) > 1);
--> error RULE_REFUSED
--| error UNSUPPORTED_GENERATOR.OUTSIDE_SELECT # the same refusal under a name of its own
INSERT INTO @i VALUES (1, NULL);
--> nothing
--| error TASK_WRITE_FAILED # it has taken the constraint, and cannot evaluate it
-- NOT NULL in a struct is asked for when the struct is there
CREATE TABLE @j (a INT, s STRUCT<x: INT NOT NULL, y: STRING>) USING delta;
--> nothing
INSERT INTO @j VALUES (1, named_struct('x', 1, 'y', NULL));
--> nothing
INSERT INTO @j VALUES (2, named_struct('x', NULL, 'y', 'b'));
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
SELECT a, s.x FROM @j;
--> rows [[1, 1]]
-- NOT NULL of a struct and of its field
CREATE TABLE @k (s STRUCT<x: INT NOT NULL> NOT NULL) USING delta;
--> nothing
INSERT INTO @k VALUES (named_struct('x', 1));
--> nothing
INSERT INTO @k VALUES (NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
INSERT INTO @k VALUES (named_struct('x', NULL));
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
SELECT s.x FROM @k;
--> rows [[1]]
-- an empty text in a partition column that is NOT NULL
CREATE TABLE @l (id INT, p STRING NOT NULL) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @l VALUES (1, 'a');
--> nothing
INSERT INTO @l VALUES (2, '');
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
INSERT INTO @l VALUES (3, NULL);
--> error DELTA_NOT_NULL_CONSTRAINT_VIOLATED
SELECT * FROM @l;
--> rows [[1, "a"]]
-- an empty text in a partition column becomes NULL
CREATE TABLE @m (id INT, p STRING) USING delta PARTITIONED BY (p);
--> nothing
INSERT INTO @m VALUES (1, 'a'), (2, ''), (3, NULL);
--> nothing
SELECT * FROM @m;
--> rows [[1, "a"], [2, null], [3, null]]
SELECT id FROM @m WHERE p IS NULL;
--> rows [[2], [3]]
SELECT id FROM @m WHERE p = '';
--> rows []
SELECT p, count(*) FROM @m GROUP BY p;
--> rows [["a", 1], [null, 2]]
DELETE FROM @m WHERE p = '';
--> rows [[0]]
UPDATE @m SET p = '' WHERE id = 1;
--> rows [[1]]
SELECT * FROM @m;
--> rows [[1, null], [2, null], [3, null]]
-- an empty text and a constraint on a partition column
CREATE TABLE @n (id INT, p STRING) USING delta PARTITIONED BY (p);
--> nothing
ALTER TABLE @n ADD CONSTRAINT c CHECK (p IS NOT NULL);
--> nothing
INSERT INTO @n VALUES (1, 'a');
--> nothing
INSERT INTO @n VALUES (2, NULL);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
SELECT * FROM @n;
--> rows [[1, "a"]]
-- columns with a limited length
CREATE TABLE @o (v VARCHAR(3), c CHAR(3), l ARRAY<VARCHAR(2)>, s STRUCT<x: CHAR(2)>) USING delta;
--> nothing
INSERT INTO @o VALUES ('abc', 'a', array('ab', NULL), named_struct('x', 'y'));
--> nothing
INSERT INTO @o VALUES ('abc  ', 'b     ', array('a  '), NULL);
--> nothing
--| error DELTA_EXCEED_CHAR_VARCHAR_LIMIT # here blanks at the end are cut, as Spark does for its own tables; there they count
INSERT INTO @o VALUES (NULL, NULL, array('abc'), NULL);
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
INSERT INTO @o VALUES (NULL, NULL, NULL, named_struct('x', 'abc'));
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
INSERT INTO @o VALUES (NULL, 'abcd', NULL, NULL);
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
SELECT v, c, l, s.x, length(c) FROM @o WHERE c <> 'b';
--> rows [["abc", "a  ", ["ab", null], "y ", 3]]
SELECT count(*) FROM @o WHERE c = 'a';
--> rows [[1]]
UPDATE @o SET v = 'abcd' WHERE l[0] = 'ab';
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
UPDATE @o SET v = 'x' WHERE c = 'a';
--> rows [[1]]
--| rows [[0]] # there only a query pads the text that is compared, a change of rows does not
UPDATE @o SET v = 'x' WHERE v = 'abc' AND l[0] = 'ab';
--> rows [[0]]
--| rows [[1]] # here the row has it already
DELETE FROM @o WHERE v = 'x';
--> rows [[1]]
-- a limited length in a MERGE
CREATE TABLE @p (k INT, v VARCHAR(2)) USING delta;
--> nothing
INSERT INTO @p VALUES (1, 'a');
--> nothing
MERGE INTO @p t USING (SELECT 1 AS k, 'abc' AS v) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *;
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
MERGE INTO @p t USING (SELECT 2 AS k, 'abc' AS v) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
MERGE INTO @p t USING (SELECT 2 AS k, 'ab ' AS v) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *;
--> rows [[1, 0, 0, 1]]
--| error DELTA_EXCEED_CHAR_VARCHAR_LIMIT # here blanks at the end are cut, as Spark does for its own tables; there they count
SELECT k, v, length(v) FROM @p WHERE k = 1;
--> rows [[1, "a", 1]]
ALTER TABLE @p ALTER COLUMN v TYPE VARCHAR(4);
--> nothing
INSERT INTO @p VALUES (3, 'abcd');
--> nothing
ALTER TABLE @p ALTER COLUMN v TYPE CHAR(4);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @p ALTER COLUMN v COMMENT 'short';
--> nothing
INSERT INTO @p VALUES (3, 'abcde');
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
DESCRIBE @p;
--> rows [["k", "int", null], ["v", "string", "short"]]
-- a limited length with a constraint and a partition
CREATE TABLE @q (v VARCHAR(3), c CHAR(2)) USING delta PARTITIONED BY (c);
--> nothing
ALTER TABLE @q ADD CONSTRAINT n CHECK (v <> 'bad');
--> nothing
INSERT INTO @q VALUES ('ok', 'x'), ('ok2', NULL);
--> nothing
INSERT INTO @q VALUES ('bad', 'y');
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @q VALUES ('good', 'y');
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
SELECT v, c, length(c) FROM @q;
--> rows [["ok", "x ", 2], ["ok2", null, null]]
DELETE FROM @q WHERE c = 'x';
--> rows [[1]]
--| rows [[0]] # there only a query pads the text that is compared, a change of rows does not
SELECT v FROM @q;
--> rows [["ok2"]]
--| rows [["ok"], ["ok2"]] # so the row is still there
-- a constraint is text, and a rename of its column is refused
CREATE TABLE @r (a INT, b STRUCT<c: INT, d: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
--> nothing
ALTER TABLE @r ADD CONSTRAINT c1 CHECK (a > 0 AND b.c > 0);
--> nothing
ALTER TABLE @r RENAME COLUMN a TO a2;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @r RENAME COLUMN b TO b2;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @r RENAME COLUMN b.c TO c2;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @r DROP COLUMN a;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @r DROP COLUMN b.c;
--> error DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE
ALTER TABLE @r DROP CONSTRAINT c1;
--> nothing
ALTER TABLE @r RENAME COLUMN a TO a2;
--> nothing
INSERT INTO @r VALUES (-1, named_struct('c', -1, 'd', -1));
--> nothing
SELECT a2, b.c FROM @r;
--> rows [[-1, -1]]
-- NOT NULL is added and dropped
CREATE TABLE @s (a INT NOT NULL, b STRING) USING delta;
--> nothing
ALTER TABLE @s ALTER COLUMN a DROP NOT NULL;
--> nothing
INSERT INTO @s VALUES (NULL, 'x');
--> nothing
ALTER TABLE @s ALTER COLUMN a SET NOT NULL;
--> error DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
--| error _LEGACY_ERROR_TEMP_2330 # the same refusal under a name of its own
ALTER TABLE @s ALTER COLUMN nope DROP NOT NULL;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT * FROM @s;
--> rows [[null, "x"]]
-- a constraint by property, and one that no longer holds for new columns
CREATE TABLE @t (a INT) USING delta TBLPROPERTIES ('delta.constraints.c1' = 'a > 0');
--> nothing
ALTER TABLE @t SET TBLPROPERTIES ('delta.constraints.c1' = 'a > 0');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_ADD_CONSTRAINTS # the same refusal under a name of its own
ALTER TABLE @t ADD CONSTRAINT `odd name` CHECK (a > 0);
--> nothing
ALTER TABLE @t ADD CONSTRAINT c2 CHECK (a < 10);
--> nothing
INSERT INTO @t VALUES (0);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @t VALUES (10);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
ALTER TABLE @t DROP CONSTRAINT `ODD name`;
--> nothing
INSERT INTO @t VALUES (0);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
ALTER TABLE @t DROP FEATURE checkConstraints;
--> error DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE
ALTER TABLE @t DROP CONSTRAINT c2;
--> nothing
SELECT * FROM @t;
--> rows []
