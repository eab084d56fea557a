CREATE TABLE @a (id BIGINT, s STRING, n STRUCT<x: INT, y: STRING>) USING delta;
--> nothing
INSERT INTO @a VALUES (1, 'a', named_struct('x', 1, 'y', 'p'));
--> nothing
ALTER TABLE @a SET TBLPROPERTIES ('mine' = 'yes', 'also.mine' = 1);
--> nothing
SHOW TBLPROPERTIES @a ('mine');
--> rows [["mine", "yes"]]
SHOW TBLPROPERTIES @a ('also.mine');
--> rows [["also.mine", "1"]]
ALTER TABLE @a UNSET TBLPROPERTIES ('mine');
--> nothing
ALTER TABLE @a UNSET TBLPROPERTIES ('mine');
--> nothing
ALTER TABLE @a UNSET TBLPROPERTIES IF EXISTS ('mine');
--> nothing
ALTER TABLE @a SET TBLPROPERTIES ('delta.appendOnly' = 'perhaps');
--> error DELTA_INVALID_PROPERTY
--| error UNSUPPORTED_TABLE_CHANGE # the same refusal under a name of its own
ALTER TABLE @a SET TBLPROPERTIES ('delta.nosuch' = 'x');
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNKNOWN_CONFIGURATION # the same refusal under a name of its own
ALTER TABLE @a ADD COLUMNS (d DATE COMMENT 'when', f INT FIRST);
--> nothing
ALTER TABLE @a ADD COLUMN g STRING AFTER id;
--> nothing
ALTER TABLE @a ADD COLUMNS (n.z DOUBLE AFTER x);
--> nothing
DESCRIBE @a;
--> rows [["d", "date", "when"], ["f", "int", null], ["g", "string", null], ["id", "bigint", null], ["n", "struct<x:int,z:double,y:string>", null], ["s", "string", null]]
SELECT * FROM @a;
--> rows [[null, 1, null, "a", {"x": 1, "z": null, "y": "p"}, null]]
ALTER TABLE @a ADD COLUMNS (s INT);
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @a ADD COLUMNS (q INT AFTER nope);
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
--| error FIELD_NOT_FOUND # the same refusal under a name of its own
ALTER TABLE @a ADD COLUMNS (q INT NOT NULL);
--> error INVALID_OPTION
--| error DELTA_OPERATION_NOT_ALLOWED # the same refusal under a name of its own
ALTER TABLE @a ALTER COLUMN s COMMENT 'a text';
--> nothing
ALTER TABLE @a ALTER COLUMN n.x COMMENT 'inside';
--> nothing
ALTER TABLE @a ALTER COLUMN s FIRST;
--> nothing
ALTER TABLE @a ALTER COLUMN f AFTER id;
--> nothing
ALTER TABLE @a CHANGE COLUMN id id BIGINT COMMENT 'key';
--> nothing
DESCRIBE @a;
--> rows [["d", "date", "when"], ["f", "int", null], ["g", "string", null], ["id", "bigint", "key"], ["n", "struct<x:int,z:double,y:string>", null], ["s", "string", "a text"]]
ALTER TABLE @a ALTER COLUMN nope COMMENT 'x';
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @a ALTER COLUMN s TYPE INT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @a ALTER COLUMN id SET NOT NULL;
--> nothing
--| error _LEGACY_ERROR_TEMP_2330 # delta-spark never adds NOT NULL; here the rows are looked at
ALTER TABLE @a ALTER COLUMN id DROP NOT NULL;
--> nothing
ALTER TABLE @a RENAME COLUMN s TO t;
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_RENAME_COLUMN # the same refusal under a name of its own
ALTER TABLE @a DROP COLUMN g;
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_DROP_COLUMN # the same refusal under a name of its own
ALTER TABLE @a SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5');
--> nothing
ALTER TABLE @a RENAME COLUMN s TO t;
--> nothing
ALTER TABLE @a RENAME COLUMN n.y TO w;
--> nothing
ALTER TABLE @a DROP COLUMN g;
--> nothing
ALTER TABLE @a DROP COLUMNS (f, n.z);
--> nothing
ALTER TABLE @a DROP COLUMNS IF EXISTS (nope);
--> nothing
ALTER TABLE @a DROP COLUMN nope;
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
SELECT id, t, n.w, d FROM @a;
--> rows [[1, "a", "p", null]]
ALTER TABLE @a RENAME COLUMN t TO id;
--> error INVALID_OPTION
--| error FIELD_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @a ADD CONSTRAINT positive CHECK (id > 0);
--> nothing
ALTER TABLE @a ADD CONSTRAINT positive CHECK (id > 1);
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_ALREADY_EXISTS # the same refusal under a name of its own
ALTER TABLE @a ADD CONSTRAINT huge CHECK (id > 1000);
--> error DELTA_NEW_CHECK_CONSTRAINT_VIOLATION
INSERT INTO @a (id) VALUES (-5);
--> error DELTA_VIOLATE_CONSTRAINT_WITH_VALUES
INSERT INTO @a (id) VALUES (5);
--> nothing
ALTER TABLE @a DROP CONSTRAINT positive;
--> nothing
ALTER TABLE @a DROP CONSTRAINT positive;
--> error INVALID_OPTION
--| error DELTA_CONSTRAINT_DOES_NOT_EXIST # the same refusal under a name of its own
ALTER TABLE @a DROP CONSTRAINT IF EXISTS positive;
--> nothing
INSERT INTO @a (id) VALUES (-5);
--> nothing
SELECT id FROM @a;
--> rows [[-5], [1], [5]]
CREATE TABLE @w (a INT, b FLOAT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
--> nothing
INSERT INTO @w VALUES (1, 1.5);
--> nothing
ALTER TABLE @w ALTER COLUMN a TYPE BIGINT;
--> nothing
ALTER TABLE @w CHANGE COLUMN b TYPE DOUBLE;
--> nothing
ALTER TABLE @w ALTER COLUMN a TYPE INT;
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
INSERT INTO @w VALUES (5000000000, 2.5);
--> nothing
SELECT * FROM @w;
--> rows [[1, 1.5], [5000000000, 2.5]]
CREATE TABLE @d (id BIGINT, v INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
--> nothing
ALTER TABLE @d ALTER COLUMN v SET DEFAULT 7;
--> nothing
INSERT INTO @d (id) VALUES (1);
--> nothing
ALTER TABLE @d ALTER COLUMN v DROP DEFAULT;
--> nothing
INSERT INTO @d (id) VALUES (2);
--> nothing
SELECT * FROM @d;
--> rows [[1, 7], [2, null]]
CREATE TABLE @c (a INT, b STRING) USING delta CLUSTER BY (a);
--> nothing
ALTER TABLE @c CLUSTER BY (b);
--> nothing
ALTER TABLE @c CLUSTER BY NONE;
--> nothing
ALTER TABLE @c CLUSTER BY (nope);
--> error INVALID_OPTION
--| error DELTA_COLUMN_NOT_FOUND_IN_SCHEMA # the same refusal under a name of its own
ALTER TABLE @c FROB;
--> error PARSE_SYNTAX_ERROR
ALTER TABLE @none SET TBLPROPERTIES ('a' = 'b');
--> error DELTA_TABLE_NOT_FOUND
--| error DELTA_MISSING_DELTA_TABLE # the same refusal under a name of its own
ALTER TABLE @c SET LOCATION '/elsewhere';
--> error INVALID_OPTION
--| error DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER # the same refusal under a name of its own
CREATE TABLE @r (a INT, b STRING COMMENT 'old', n STRUCT<x: INT, y: INT>) USING delta;
--> nothing
INSERT INTO @r VALUES (1, 'x', named_struct('x', 1, 'y', 2));
--> nothing
ALTER TABLE @r REPLACE COLUMNS (n STRUCT<y: INT, x: INT, z: STRING>, b STRING, A INT COMMENT 'key', d DATE);
--> nothing
DESCRIBE @r;
--> rows [["a", "int", "key"], ["b", "string", "old"], ["d", "date", null], ["n", "struct<y:int,x:int,z:string>", null]]
SELECT * FROM @r;
--> rows [[{"y": 2, "x": 1, "z": null}, "x", 1, null]]
ALTER TABLE @r REPLACE COLUMNS (a INT, b STRING);
--> error DELTA_INVALID_PROPERTY
--| error DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r REPLACE COLUMNS (n STRUCT<y: INT, x: INT, z: STRING>, b INT, a INT, d DATE);
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r REPLACE COLUMNS (n STRUCT<y: INT, x: INT, z: STRING>, c STRING, a INT, d DATE);
--> error INVALID_OPTION
--| error DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP # the same refusal under a name of its own
ALTER TABLE @r REPLACE COLUMNS (n STRUCT<y: INT, x: INT, z: STRING>, b STRING, a INT NOT NULL, d DATE);
--> error INVALID_OPTION
--| error _LEGACY_ERROR_TEMP_0034 # the same refusal under a name of its own
ALTER TABLE @r SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5');
--> nothing
ALTER TABLE @r REPLACE COLUMNS (a INT, b STRING);
--> nothing
SELECT * FROM @r;
--> rows [[1, "x"]]
ALTER TABLE @r ALTER COLUMN a COMMENT 'first', b COMMENT 'second';
--> nothing
ALTER TABLE @r ALTER COLUMN a FIRST, b FIRST;
--> nothing
DESCRIBE @r;
--> rows [["a", "int", "first"], ["b", "string", "second"]]
ALTER TABLE @r ALTER COLUMN a COMMENT 'x', a COMMENT 'y';
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_SAME_COLUMN # the same refusal under a name of its own
ALTER TABLE @r ALTER COLUMN a COMMENT 'x', nope COMMENT 'y';
--> error UNRESOLVED_COLUMN.WITH_SUGGESTION
ALTER TABLE @r UNSET TBLPROPERTIES ('never.set');
--> nothing
CREATE TABLE @i (n BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 5), v INT) USING delta;
--> nothing
INSERT INTO @i VALUES (12, 1);
--> nothing
ALTER TABLE @i ALTER COLUMN n SYNC IDENTITY;
--> nothing
INSERT INTO @i (v) VALUES (2);
--> nothing
SELECT * FROM @i;
--> rows [[12, 1], [21, 2]]
ALTER TABLE @i ALTER COLUMN v SYNC IDENTITY;
--> error DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN
ALTER TABLE @i REPLACE COLUMNS (v INT, n BIGINT);
--> error DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED
ALTER TABLE @c CLUSTER BY AUTO;
--> error INVALID_OPTION
--| error PARSE_SYNTAX_ERROR # there it is no statement
CREATE TABLE @v (s VARCHAR(3), t STRING, c CHAR(2)) USING delta;
--> nothing
ALTER TABLE @v ALTER COLUMN s TYPE VARCHAR(5);
--> nothing
INSERT INTO @v VALUES ('12345', 'x', 'a');
--> nothing
INSERT INTO @v VALUES ('123456', 'x', 'a');
--> error DELTA_EXCEED_CHAR_VARCHAR_LIMIT
ALTER TABLE @v ALTER COLUMN s TYPE VARCHAR(2);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @v ALTER COLUMN t TYPE VARCHAR(2);
--> error INVALID_OPTION
--| error NOT_SUPPORTED_CHANGE_COLUMN # the same refusal under a name of its own
ALTER TABLE @v ALTER COLUMN s TYPE STRING;
--> nothing
INSERT INTO @v VALUES ('123456', 'x', 'a');
--> nothing
SELECT length(s), t FROM @v;
--> rows [[5, "x"], [6, "x"]]
