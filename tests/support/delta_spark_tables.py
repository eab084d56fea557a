"""Tables that real delta-spark makes, one for each feature of the protocol, as statements of SQL.

``{t}`` stands for the table. A table has at least a column ``id``, and shows what the feature changes in its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.delta_spark import DeltaSpark


@dataclass(frozen=True)
class Made:
    """A table: the statements that make it, and the columns to compare (what no engine can show is spelled as text)."""

    statements: tuple[str, ...]
    select: tuple[str, ...] = ("*",)

    def by(self, theirs: DeltaSpark, path: str) -> None:
        """Have delta-spark make it at ``path``."""
        theirs.sql(*(statement.replace("{t}", f"delta.`{path}`") for statement in self.statements))


def _made(columns: str, properties: str, *then: str, kind: str = "", select: tuple[str, ...] = ("*",)) -> Made:
    listed = ", ".join(f"'delta.{key}' = '{value}'" for key, value in (p.split("=") for p in properties.split()))
    with_properties = f" TBLPROPERTIES ({listed})" if listed else ""
    return Made((f"CREATE TABLE {{t}} ({columns}) USING delta {kind}{with_properties}", *then), select)


_ROWS = "INSERT INTO {t} SELECT id, cast(id % 3 AS STRING), id / 4 FROM range(12)"
_PLAIN = "id BIGINT, day STRING, x DOUBLE"
_CHANGE = ("UPDATE {t} SET x = -1 WHERE id IN (3, 5)", "DELETE FROM {t} WHERE id = 4")

MADE: Mapping[str, Made] = {
    "no feature": _made(_PLAIN, "", _ROWS, *_CHANGE),
    "partitions": _made(_PLAIN, "", _ROWS, "INSERT INTO {t} VALUES (50, NULL, 1), (51, 'a b/%=', 2)", *_CHANGE,
                        kind="PARTITIONED BY (day)"),
    "deletionVectors": _made(_PLAIN, "enableDeletionVectors=true", _ROWS, *_CHANGE, "DELETE FROM {t} WHERE id = 7"),
    "columnMapping": _made(_PLAIN, "columnMapping.mode=name", _ROWS, "ALTER TABLE {t} RENAME COLUMN x TO `y z`",
                           "ALTER TABLE {t} DROP COLUMN day", "INSERT INTO {t} VALUES (99, 9.5)"),
    "columnMapping (id)": _made(_PLAIN, "columnMapping.mode=id", _ROWS, "ALTER TABLE {t} RENAME COLUMN x TO y"),
    "rowTracking": _made(_PLAIN, "enableRowTracking=true enableDeletionVectors=true", _ROWS, *_CHANGE),
    "inCommitTimestamp": _made(_PLAIN, "enableInCommitTimestamps=true", _ROWS, *_CHANGE),
    "v2Checkpoint": _made(_PLAIN, "checkpointPolicy=v2 checkpointInterval=2", _ROWS, *_CHANGE),
    "clustering": _made(_PLAIN, "", _ROWS, "OPTIMIZE {t}", *_CHANGE, kind="CLUSTER BY (id)"),
    "typeWidening": _made("id INT, x SMALLINT", "enableTypeWidening=true", "INSERT INTO {t} VALUES (1, 2)",
                          "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "ALTER TABLE {t} ALTER COLUMN x TYPE INT",
                          "INSERT INTO {t} VALUES (5000000000, 70000)"),
    "variantType": _made("id BIGINT, v VARIANT", "", "INSERT INTO {t} SELECT 1, parse_json('{\"a\": [1, null]}')",
                         "INSERT INTO {t} VALUES (2, NULL)", select=("id", "to_json(v) AS v")),
    "timestampNtz": _made("id BIGINT, at TIMESTAMP_NTZ", "",
                          "INSERT INTO {t} VALUES (1, TIMESTAMP_NTZ'2024-01-02 03:04:05.678901'), (2, NULL)"),
    "checkConstraints": _made(_PLAIN, "", _ROWS, "ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 1000)"),
    "invariants": _made("id BIGINT NOT NULL, x DOUBLE", "", "INSERT INTO {t} VALUES (1, NULL)"),
    "allowColumnDefaults": _made("id BIGINT, x DOUBLE DEFAULT 0.5", "feature.allowColumnDefaults=supported",
                                 "INSERT INTO {t} (id) VALUES (1)"),
    "generatedColumns": _made("id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)", "",
                              "INSERT INTO {t} (id) VALUES (1), (2)"),
    "identityColumns": _made("id BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5)", "",
                             "INSERT INTO {t} (id) VALUES (1), (2)"),
    "appendOnly": _made(_PLAIN, "appendOnly=true", _ROWS),
    "changeDataFeed": _made(_PLAIN, "enableChangeDataFeed=true", _ROWS, *_CHANGE),
    "vacuumProtocolCheck": _made(_PLAIN, "feature.vacuumProtocolCheck=supported", _ROWS, *_CHANGE),
    "domainMetadata": _made(_PLAIN, "feature.domainMetadata=supported", _ROWS),
    "icebergCompatV2": _made(_PLAIN, "columnMapping.mode=name enableIcebergCompatV2=true", _ROWS),
    "materializePartitionColumns": _made(_PLAIN, "enableMaterializePartitionColumnsFeature=true", _ROWS, *_CHANGE,
                                         kind="PARTITIONED BY (day)"),
    "icebergCompatV3": _made(_PLAIN, "columnMapping.mode=name enableIcebergCompatV3=true", _ROWS, *_CHANGE),
    "checkpointProtection": _made(_PLAIN, "feature.vacuumProtocolCheck=supported", _ROWS,
                                  "ALTER TABLE {t} DROP FEATURE vacuumProtocolCheck"),
    "many at once": _made(
        _PLAIN,
        "enableDeletionVectors=true enableRowTracking=true enableInCommitTimestamps=true columnMapping.mode=name "
        "checkpointPolicy=v2 checkpointInterval=3 enableTypeWidening=true",
        _ROWS, *_CHANGE, "ALTER TABLE {t} RENAME COLUMN day TO `the day`", "DELETE FROM {t} WHERE id = 9",
        kind="CLUSTER BY (id)",
    ),
}  # fmt: skip
