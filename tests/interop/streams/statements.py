"""Each statement that changes rows, as a stream sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case


@case("(beyond the suites) the statements that change rows, with and without deletion vectors")
def each_statement(stage: Stage) -> Mapping[str, Any]:
    statements = {
        "MERGE that only adds": "MERGE INTO {t} t USING (SELECT 10 AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, 2)",
        "UPDATE": "UPDATE {t} SET g = 9 WHERE id = 1",
        "MERGE": "MERGE INTO {t} t USING (SELECT 3 AS id UNION ALL SELECT 11) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, 7)",
        "DELETE of a row": "DELETE FROM {t} WHERE id = 5",
        "OPTIMIZE": "OPTIMIZE {t}",
        "DELETE of a partition": "DELETE FROM {t} WHERE g = 0",
        "INSERT OVERWRITE": "INSERT OVERWRITE {t} VALUES (8, 8)",
    }
    seen: dict[str, Any] = {}
    for vectors in ("false", "true"):
        name = f"vectors-{vectors}"
        stage.make("id BIGINT, g INT", "PARTITIONED BY (g)", name=name, enableDeletionVectors=vectors)
        for start in (0, 4):
            rows = stage.spark.range(start, start + 4, 1, 1).selectExpr("id", "CAST(id % 2 AS INT) AS g")
            stage.save(rows, name)
        for what, statement in statements.items():
            stage.sql(statement, name=name)
            newest = len(stage.log(name)) - 1
            for options in ({}, {"ignoreChanges": True}):
                which = ", ".join(options) or "nothing"
                seen[f"{what}, vectors {vectors}, {which}"] = stage.given(name=name, startingVersion=newest, **options)
    return seen
