"""Names in a Hive metastore, by turns: delta-spark fills it, then both use each table by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_spark import REQUIRED, DeltaSpark, why_absent
from tests.support.metastore import Ours, settings

pytestmark = [pytest.mark.interop, pytest.mark.spark]

COLUMNS = "id BIGINT, s STRING, d DATE"
ROWS = "(1, 'a', DATE '2024-01-01'), (2, 'b', DATE '2024-01-02'), (3, NULL, NULL)"
KINDS = {
    "managed": f"({COLUMNS}) USING delta",
    "external": f"({COLUMNS}) USING delta LOCATION '{{folder}}/external'",
    "blank": f"({COLUMNS}) USING delta LOCATION '{{folder}}/a blank é%20'",
    "partitioned": f"({COLUMNS}) USING delta PARTITIONED BY (d)",
    "external_partitioned": f"({COLUMNS}) USING delta PARTITIONED BY (s) LOCATION '{{folder}}/ep'",
    "clustered": f"({COLUMNS}) USING delta CLUSTER BY (id)",
    "checked": f"({COLUMNS}) USING delta",
    "not_null": "(id BIGINT NOT NULL, s STRING, d DATE) USING delta",
    "generated": f"({COLUMNS}, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta",
    "identity": f"({COLUMNS}, n BIGINT GENERATED ALWAYS AS IDENTITY) USING delta",
    "defaults": f"({COLUMNS}, x INT DEFAULT 7) USING delta"
    " TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    "by_name": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "by_id": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
    "vectors": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "feed": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "tracked": f"({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "commented": f"({COLUMNS}) USING delta COMMENT 'it''s; Location: /nowhere'",
    "chars": "(id BIGINT, s VARCHAR(20), d DATE) USING delta",
    "other.managed": f"({COLUMNS}) USING delta",
    "other.external": f"({COLUMNS}) USING delta LOCATION '{{folder}}/oe'",
}
TURN = [
    "INSERT INTO {t} (id, s, d) VALUES ({n}, 'n{n}', DATE '2024-02-01')",
    "UPDATE {t} SET s = concat(coalesce(s, ''), 'u') WHERE id % 2 = {n} % 2",
    "DELETE FROM {t} WHERE id = {n} - 3",
    "MERGE INTO {t} t USING (SELECT {n} + 100 AS id, 'm' AS s, DATE '2024-03-01' AS d) x ON t.id = x.id"
    " WHEN MATCHED THEN UPDATE SET s = x.s WHEN NOT MATCHED THEN INSERT (id, s, d) VALUES (x.id, x.s, x.d)",
    "OPTIMIZE {t}",
    "COMMENT ON TABLE {t} IS 'turn {n}'",
    "ALTER TABLE {t} SET TBLPROPERTIES ('turn' = '{n}')",
]


@pytest.fixture
def theirs(tmp_path: Path) -> Callable[[], AbstractContextManager[DeltaSpark]]:
    """A session of delta-spark on the metastore."""
    if reason := why_absent():
        (pytest.fail if REQUIRED else pytest.skip)(reason)

    @contextmanager
    def opened() -> Iterator[DeltaSpark]:
        with DeltaSpark(settings(tmp_path)) as found:
            yield found

    return opened


def by_theirs(engine: DeltaSpark, text: str) -> list[list[Any]]:
    return [list(row.values()) for row in engine.query(text).to_pylist()]


def rows_of(ask: Callable[[str], list[list[Any]]], names: list[str]) -> dict[str, list[str]]:
    """Each table's rows, as texts that both engines write alike."""
    return {name: sorted(json.dumps(row, default=str) for row in ask(f"SELECT * FROM {name}")) for name in names}


def turn(run: Callable[[str], object], names: list[str], n: int) -> None:
    """Two statements on each table, another two each turn."""
    for i, name in enumerate(names):
        for j in (0, 1):
            run(TURN[(2 * n + i + j * 3) % len(TURN)].format(t=name, n=n))


def test_both_engines_use_the_tables_of_a_metastore_by_their_names_by_turns(
    theirs: Callable[[], AbstractContextManager[DeltaSpark]], tmp_path: Path
) -> None:
    """Twenty kinds of tables, forty statements in each of two turns, and each reads what the other has left."""
    names = list(KINDS)
    with theirs() as engine:
        engine.sql("CREATE DATABASE other")
        for name, kind in KINDS.items():
            engine.sql(f"CREATE TABLE {name} {kind.format(folder=tmp_path)}")
            engine.sql(f"INSERT INTO {name} (id, s, d) VALUES {ROWS}")
        engine.sql("ALTER TABLE checked ADD CONSTRAINT positive CHECK (id > 0)")
        left = rows_of(lambda text: by_theirs(engine, text), names)
    for n in (10, 20):
        with Ours(tmp_path) as ours:
            assert rows_of(ours.ask, names) == left
            turn(ours.ask, names, n)
            left = rows_of(ours.ask, names)
        with theirs() as engine:
            ask = lambda text: by_theirs(engine, text)  # noqa: E731 - used within its turn only
            assert rows_of(ask, names) == left
            turn(engine.sql, names, n + 5)
            left = rows_of(ask, names)
    with Ours(tmp_path) as ours:
        assert rows_of(ours.ask, names) == left
        kinds: dict[Any, Any] = dict(ours.ask("py>[[t.name, t.tableType] for t in spark.catalog.listTables()]"))
        assert (kinds["managed"], kinds["external"], len(kinds)) == ("MANAGED", "EXTERNAL", 18)


def test_views_that_delta_spark_made_are_read_by_both(
    theirs: Callable[[], AbstractContextManager[DeltaSpark]], tmp_path: Path
) -> None:
    views = ["v", "other.above", "older", "evolving"]
    with theirs() as engine:
        engine.sql(
            "CREATE DATABASE other",
            "CREATE TABLE t (id BIGINT, s STRING) USING delta",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "CREATE TABLE p USING parquet AS SELECT 1L AS id, 'x' AS w",
            "CREATE VIEW v (number, letter, w) AS SELECT t.id, upper(s) AS u, w FROM t LEFT JOIN p ON t.id = p.id",
            "CREATE VIEW other.above AS SELECT count(*) AS n FROM default.v",
            "CREATE VIEW older AS SELECT * FROM t VERSION AS OF 0",
            "CREATE VIEW evolving WITH SCHEMA EVOLUTION AS SELECT * FROM t",
        )
        left = rows_of(lambda text: by_theirs(engine, text), views)
    with Ours(tmp_path) as ours:
        assert rows_of(ours.ask, views) == left
        ours.ask("INSERT INTO t VALUES (3, 'c')")
        ours.ask("ALTER TABLE t ADD COLUMN late INT")
        ours.ask("CREATE TABLE made USING delta AS SELECT * FROM v")
        left = rows_of(ours.ask, [*views, "made"])
        assert left["other.above"] == ["[3]"]
        assert left["evolving"][0] == '[1, "a", null]'
    with theirs() as engine:
        assert rows_of(lambda text: by_theirs(engine, text), [*views, "made"]) == left


def test_what_one_engine_makes_renames_and_drops_the_other_finds_so(
    theirs: Callable[[], AbstractContextManager[DeltaSpark]], tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    with theirs() as engine:
        for name in ("kept", "moved", "gone", "replaced"):
            engine.sql(f"CREATE TABLE {name} (id BIGINT) USING delta", f"INSERT INTO {name} VALUES (1)")
        engine.sql(f"CREATE TABLE outside (id BIGINT) USING delta LOCATION '{tmp_path}/outside'")
        engine.sql("INSERT INTO outside VALUES (1)")
    with Ours(tmp_path) as ours:
        for text in (
            "ALTER TABLE moved RENAME TO moved_by_us",
            "DROP TABLE gone",
            "DROP TABLE outside",
            "CREATE TABLE made (id BIGINT, s STRING) USING delta PARTITIONED BY (s) COMMENT 'by us'",
            "INSERT INTO made VALUES (5, 'x')",
            f"CREATE TABLE made_outside USING delta LOCATION '{tmp_path}/outside'",
            "CREATE OR REPLACE TABLE replaced USING delta AS SELECT 9 AS id",
            "py>spark.range(3).write.format('delta').saveAsTable('saved')",
            "py>spark.range(7, 9).write.format('delta').mode('overwrite').saveAsTable('kept')",
        ):
            ours.ask(text)
        assert not (warehouse / "gone").exists()
        assert not (warehouse / "moved").exists()
    with theirs() as engine:
        expected = {
            "moved_by_us": [[1]],
            "made": [[5, "x"]],
            "made_outside": [[1]],
            "replaced": [[9]],
            "saved": [[0], [1], [2]],
            "kept": [[7], [8]],
        }
        listed = [row[1] for row in by_theirs(engine, "SHOW TABLES")]
        assert sorted(listed) == sorted(expected)
        for name, rows in expected.items():
            assert sorted(by_theirs(engine, f"SELECT * FROM {name}")) == rows
        assert by_theirs(engine, "DESCRIBE DETAIL made")[0][0] == "delta"
        engine.sql(
            "ALTER TABLE made RENAME TO made_renamed",
            "INSERT INTO made_renamed VALUES (6, 'y')",
            "DROP TABLE saved",
            "DROP TABLE moved_by_us",
            "DROP TABLE made_outside",
            "CREATE OR REPLACE TABLE kept USING delta AS SELECT 'text' AS s",
            "INSERT OVERWRITE replaced VALUES (10)",
        )
    assert (warehouse / "saved").exists()  # it was external to them
    assert not (warehouse / "moved_by_us").exists()
    assert (tmp_path / "outside" / "_delta_log").exists()
    with Ours(tmp_path) as ours:
        assert sorted(row[1] for row in ours.ask("SHOW TABLES")) == ["kept", "made_renamed", "replaced"]
        assert sorted(ours.ask("SELECT * FROM made_renamed")) == [[5, "x"], [6, "y"]]
        assert ours.ask("SELECT * FROM kept") == [["text"]]
        assert ours.ask("SELECT * FROM replaced") == [[10]]
        ours.ask("DROP TABLE made_renamed")
    assert not (warehouse / "made").exists()
