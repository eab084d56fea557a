"""Streams beside delta-spark: each streams from the other's tables and writes to them, and they share a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import tables
from anabranch._log.log import forget
from tests.documented.given import Given, observed
from tests.interop.streams import turns
from tests.support.delta_spark import DeltaSpark

pytestmark = [pytest.mark.interop, pytest.mark.spark]

MADE = (
    "CREATE TABLE {t} (id BIGINT, g INT) USING delta PARTITIONED BY (g) "
    "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
)


class Turns:
    """One folder with a table ``t`` and what two engines do there by turns."""

    def __init__(self, spark: SparkSession, delta_spark: DeltaSpark, folder: Path) -> None:
        self.spark, self.delta_spark, self.folder = anabranch.install(spark), delta_spark, folder

    def sql(self, by: str, *statements: str, name: str = "t") -> None:
        """Let an engine run statements."""
        for text in statements:
            said = text.replace("{t}", f"delta.`{self.folder / name}`")
            forget()
            if by == "ours":
                self.spark.sql(said)
            else:
                self.delta_spark.sql(said)

    def arrive(self, start: int, end: int) -> None:
        """One more file for the streams that write."""
        self.spark.range(start, end).coalesce(1).write.mode("append").parquet(str(self.folder / "in"))

    def query(
        self,
        by: str,
        checkpoint: str = "kept",
        reads: bool = True,
        sink: bool = False,
        failing_at: int = -1,
        **options: Any,
    ) -> Any:
        """What a query of an engine gives."""
        turn = {"reads": reads, "sink": sink, "checkpoint": checkpoint, "options": options, "failing_at": failing_at}
        (self.folder / "turn.json").write_text(json.dumps(turn))
        forget()
        if by == "ours":
            place = Given(self.spark, tables, self.folder, "turns")
            seen: Any = observed(turns.run, place)
        else:
            seen = self.delta_spark.seen("turns.run", (turns.MODULE,), self.folder)
        return seen[0][1]


@pytest.fixture
def taken(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> Turns:
    return Turns(spark, delta_spark, tmp_path)


WRITERS = [("ours", "theirs"), ("theirs", "ours")]


@pytest.mark.parametrize(("writer", "reader"), WRITERS)
def test_a_table_of_the_other_is_the_source_of_a_stream(taken: Turns, writer: str, reader: str) -> None:
    taken.sql(writer, MADE, "INSERT INTO {t} SELECT id, id % 2 FROM range(6)")
    assert taken.query(reader) == [[number, number % 2] for number in range(6)]
    taken.sql(writer, "INSERT INTO {t} VALUES (6, 0), (7, 1)", "OPTIMIZE {t}", "INSERT INTO {t} VALUES (8, 0)")
    assert taken.query(reader) == [[6, 0], [7, 1], [8, 0]]
    taken.sql(writer, "DELETE FROM {t} WHERE id = 2")
    assert taken.query(reader)[1] == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    taken.sql(writer, "INSERT INTO {t} VALUES (9, 1)")
    assert taken.query(reader, skipChangeCommits=True) == [[9, 1]]
    taken.sql(writer, "DELETE FROM {t} WHERE g = 0")
    assert taken.query(reader, skipChangeCommits=True) == []
    taken.sql(writer, "INSERT INTO {t} VALUES (11, 1)")
    assert taken.query(reader, ignoreDeletes=True) == [[11, 1]]
    assert taken.query(reader, "new") == [[id, 1] for id in (1, 11, 3, 5, 7, 9)]


@pytest.mark.parametrize(("writer", "reader"), WRITERS)
def test_the_feed_of_the_other_is_the_source_of_a_stream(taken: Turns, writer: str, reader: str) -> None:
    taken.sql(writer, MADE, "INSERT INTO {t} SELECT id, id % 2 FROM range(4)")
    feed = {"readChangeFeed": True}
    assert taken.query(reader, **feed) == [[number, number % 2, "insert", 1] for number in range(4)]
    taken.sql(
        writer,
        "UPDATE {t} SET g = 5 WHERE id = 1",
        "DELETE FROM {t} WHERE id IN (0, 1)",
        "OPTIMIZE {t}",
        "MERGE INTO {t} t USING (SELECT 3 AS id UNION ALL SELECT 9) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET g = 7 WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, 9)",
    )
    found = taken.query(reader, **feed)
    other = taken.query(writer, "other", startingVersion=2, **feed)
    assert found == other
    assert {row[2] for row in found} == {"insert", "delete", "update_preimage", "update_postimage"}


@pytest.mark.parametrize(("first", "then"), WRITERS)
def test_both_write_streams_to_one_table(taken: Turns, first: str, then: str) -> None:
    expected: list[int] = []
    for number, by in enumerate((first, then, first, then)):
        taken.arrive(number, number + 1)
        found = taken.query(by, by, reads=False, sink=True)
        expected += range(number + 1) if number < 2 else (number - 1, number)
        assert found == sorted(expected)
    taken.sql(then, "OPTIMIZE {t}", name="out")
    assert taken.query(first, first, reads=False, sink=True) == sorted([*expected, 3])


def test_a_query_of_ours_goes_on_after_delta_spark_wrote(taken: Turns) -> None:
    taken.sql("ours", MADE, "INSERT INTO {t} SELECT id, id % 2 FROM range(4)")
    assert taken.query("ours", "sink", sink=True) == [[number, number % 2] for number in range(4)]
    taken.sql("theirs", "INSERT INTO {t} VALUES (4, 0)", "DELETE FROM {t} WHERE id = 3", "OPTIMIZE {t}")
    found = taken.query("ours", "sink", sink=True, skipChangeCommits=True)
    assert found == [[number, number % 2] for number in range(5)]
    taken.sql("theirs", "INSERT INTO {t} VALUES (6, 0)", "INSERT INTO {t} VALUES (7, 1)", name="t")
    assert taken.query("ours", "sink", sink=True, skipChangeCommits=True)[-2:] == [[6, 0], [7, 1]]


@pytest.mark.parametrize(("first", "then"), WRITERS)
@pytest.mark.parametrize("stopped", [False, True])
def test_a_checkpoint_of_the_other_is_continued(taken: Turns, first: str, then: str, stopped: bool) -> None:
    taken.sql(first, MADE, *(f"INSERT INTO {{t}} VALUES ({number}, 0)" for number in range(4)))
    begun = taken.query(first, failing_at=2 if stopped else -1, maxFilesPerTrigger=1)
    rows = [[number, 0] for number in range(4)]
    shown = begun[0] if stopped else begun
    assert len(shown) == (2 if stopped else 4)
    taken.sql(then, "INSERT INTO {t} VALUES (4, 0)", "INSERT INTO {t} VALUES (5, 0)")
    rest = taken.query(then, maxFilesPerTrigger=1)
    assert sorted(shown + rest) == [*rows, [4, 0], [5, 0]]
    taken.sql(first, "INSERT INTO {t} VALUES (6, 0)")
    assert taken.query(first, maxFilesPerTrigger=1) == [[6, 0]]
