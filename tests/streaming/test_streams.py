"""Streams: a table as their source and as their sink; and what is Spark's stays Spark's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._streaming.data_source import has_limits
from anabranch._streaming.frames import splits
from anabranch._streaming.sink import Sink
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows
from tests.support.tiers import examples, few_of
from tests.support.worlds import World

pytestmark = [
    pytest.mark.spark,
    pytest.mark.classic("the server needs this package for streams; tests/system/test_connect.py has one that has it"),
]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


@pytest.fixture
def path(session: SparkSession, tmp_path: Path) -> str:
    anabranch.append(str(tmp_path / "t"), [{"id": 1}])
    return str(tmp_path / "t")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of one file with three rows, read as a stream."""
    folder = tmp_path / "in"
    put(folder, 0, 3)
    return folder


def put(folder: Path, start: int, end: int) -> None:
    """One more file."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(range(start, end), pa.int64())}), folder / f"from-{start}.parquet")


def rows_of(session: SparkSession, source: Path) -> DataFrame:
    return session.readStream.schema("id BIGINT").parquet(str(source))


def written(rows: DataFrame, checkpoint: Path) -> Any:
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True)


def ids(path: str) -> list[int]:
    return sorted(row["id"] for row in deltalake_rows(path))


def shown(rows: DataFrame, checkpoint: Path, **trigger: Any) -> list[list[Any]]:
    """The rows of each batch of a query that shows all that there is."""
    batches: list[list[Any]] = []
    query = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(**trigger or {"availableNow": True})
    query.foreachBatch(lambda batch, _: batches.append(sorted(map(tuple, batch.collect()), key=str))).start()
    for each in rows.sparkSession.streams.active:
        each.awaitTermination()
    return batches


READS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "load": lambda session, path: session.readStream.format("delta").load(path),
    "load with options": lambda session, path: (
        session.readStream.format("delta").option("ignoreDeletes", True).name("q").load(path=path)
    ),
    "load by a format": lambda session, path: session.readStream.load(path, format="delta"),
    "the option path": lambda session, path: session.readStream.format("anabranch").option("path", path).load(),
    "table": lambda session, path: session.readStream.table(f"delta.`{path}`"),
}


@pytest.mark.exhaustive(
    "tests/streaming/test_source.py::test_a_stream_shows_the_rows_that_are_there_and_then_those_that_are_added",
    "tests/streaming/test_streams.py::test_a_query_that_stops_names_condition_version_and_what_to_do",
    "tests/streaming/test_streams.py::test_the_table_of_a_name_with_columns_of_every_type_is_read_as_by_a_query",
)
@pytest.mark.parametrize("read", READS)
def test_a_stream_reads_what_is_there_and_then_what_is_added(
    session: SparkSession, path: str, tmp_path: Path, read: str
) -> None:
    rows = READS[read](session, path)
    assert rows.isStreaming
    assert shown(rows, tmp_path / "c") == [[(1,)]]
    assert shown(rows, tmp_path / "c") == []
    anabranch.append(path, [{"id": 2}])
    assert shown(rows, tmp_path / "c") == [[(2,)]]


@pytest.mark.exhaustive(
    "tests/streaming/test_streams.py::test_the_table_of_a_name_with_columns_of_every_type_is_read_as_by_a_query",
    "tests/streaming/test_streams.py::test_rows_that_are_computed_from_the_tables_own_are_no_blind_append",
)
def test_a_stream_is_joined_with_the_table_of_its_name(session: SparkSession, path: str, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE streamed USING delta LOCATION '{path}'")
    try:
        rows = session.readStream.table("streamed").where("streamed.id > 0")
        assert shown(rows.join(session.table("streamed"), "id"), tmp_path / "c") == [[(1,)]]
    finally:
        session.sql("DROP TABLE streamed")


def test_a_stream_of_a_query_over_a_view_goes_on_into_a_table_that_is_there(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    """Spark does not explain such a query as it is, since its text alone does not say that it is a stream."""
    for number in (1, 2):
        session.readStream.format("delta").load(path).createOrReplaceTempView("stream_of_a_view")
        rows = session.sql("SELECT id * 10 AS id FROM stream_of_a_view")
        written(rows, tmp_path / "c").start(f"{tmp_path}/sink").awaitTermination()
        query = rows.writeStream.option("checkpointLocation", str(tmp_path / "b")).trigger(availableNow=True)
        batches = query.foreachBatch(
            lambda batch, _: batch.write.format("delta").mode("append").save(f"{tmp_path}/each")
        )
        batches.start().awaitTermination()
        anabranch.append(path, [{"id": number + 1}])
    assert ids(f"{tmp_path}/sink") == ids(f"{tmp_path}/each") == [10, 20]


_COLUMNS = """id BIGINT, b TINYINT, s SMALLINT, i INT, f FLOAT, d DOUBLE, bo BOOLEAN, bi BINARY, da DATE, ts TIMESTAMP,
    tn TIMESTAMP_NTZ, de DECIMAL(38,5), st STRUCT<a: INT, n: STRUCT<x: STRING>>, ar ARRAY<STRUCT<q: INT>>,
    ma MAP<STRING, ARRAY<INT>>, ch CHAR(5), va VARCHAR(5), vo VOID, pt TIMESTAMP, pd DATE, ps STRING"""
_VALUES = """1, 1, 2, 3, 1.5, 2.5, true, X'01', DATE'1500-01-01', TIMESTAMP'2024-03-01 12:00:00',
    TIMESTAMP_NTZ'2024-03-01 12:00:00', 12345.6, named_struct('a', 1, 'n', named_struct('x', 'y')),
    array(named_struct('q', 1), null), map('k', array(1, null)), 'ab', 'cd', null, TIMESTAMP'2024-03-01 12:00:00',
    DATE'2024-03-01', 'a b/c'"""


def test_the_table_of_a_name_with_columns_of_every_type_is_read_as_by_a_query(
    session: SparkSession, tmp_path: Path
) -> None:
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    place = f"LOCATION '{tmp_path / 't'}'"
    session.sql(f"CREATE TABLE streamed ({_COLUMNS}) USING delta PARTITIONED BY (pt, pd, ps) {mapped} {place}")
    try:
        nulls = ", ".join(["2", *["NULL"] * 20])
        session.sql(f"INSERT INTO streamed VALUES ({_VALUES}), ({nulls})")
        for change in ("RENAME COLUMN st TO renamed", "RENAME COLUMN renamed.n TO nn", "DROP COLUMN f"):
            session.sql(f"ALTER TABLE streamed {change}")
        session.sql("ALTER TABLE streamed ADD COLUMN later INT")
        rows, plain = session.readStream.table("streamed"), session.read.table("streamed")
        assert rows.isStreaming
        assert rows.schema == plain.schema
        found = shown(rows.where("streamed.id > 0"), tmp_path / "c")
        assert found == [sorted(map(tuple, plain.collect()), key=str)]
    finally:
        session.sql("DROP TABLE streamed")


def test_a_feed_is_read_as_a_stream_and_at_once_whatever_its_limits(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows, recorded = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], {"delta.enableChangeDataFeed": "true"}
    anabranch.append(path, rows, properties=recorded)
    World(path).update("id = 1", v="z")
    World(path).delete("id = 2")
    asked = {"readChangeFeed": True, "startingVersion": 0}
    stream = session.readStream.format("delta").options(**asked).option("maxFilesPerTrigger", 1).load(path)
    feed = session.read.format("delta").options(**asked).load(path)
    assert shown(stream, tmp_path / "c", once=True) == [sorted(map(tuple, feed.collect()), key=str)]


def test_a_query_that_stops_names_condition_version_and_what_to_do(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    rows = session.readStream.format("delta").option("startingVersion", 0).load(path)
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN name STRING")
    anabranch.append(path, [{"id": 2, "name": "n"}])
    with pytest.raises(StreamingQueryException) as error:
        shown(rows, tmp_path / "c")
    for said in ("DELTA_SCHEMA_CHANGED_WITH_VERSION", "version 1", "columns added: name", "start the query again"):
        assert said in str(error.value)


@pytest.mark.exhaustive(
    "tests/streaming/test_source.py::test_a_stream_stops_at_a_change_of_metadata_and_goes_on_when_it_is_started_again",
    "tests/streaming/test_streams.py::test_a_query_that_stops_names_condition_version_and_what_to_do",
    "tests/streaming/test_streams.py::test_each_batch_is_one_commit_and_a_query_goes_on_where_it_was",
)
def test_a_query_that_stopped_goes_on_when_it_is_started_again(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    rows = session.readStream.format("delta").option("startingVersion", 0).load(path)
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN name STRING")
    anabranch.append(path, [{"id": 2, "name": "n"}])
    with pytest.raises(StreamingQueryException):
        shown(rows, tmp_path / "c")
    assert shown(session.readStream.format("delta").load(path), tmp_path / "c") == [[(2, "n")]]


@pytest.mark.skipif(not has_limits(), reason="before PySpark 4.2 a run that ends has one batch")
def test_a_first_batch_that_delta_spark_planned_and_did_not_do_is_done(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    anabranch.append(path, [{"id": 2}])
    planned = {"reservoirVersion": 1, "index": -1, "isStartingVersion": False}
    offset = {"sourceVersion": 1, "reservoirId": World(path).log.snapshot().metadata.id, **planned}
    (tmp_path / "c" / "offsets").mkdir(parents=True)
    (tmp_path / "c" / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    about = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}})
    (tmp_path / "c" / "offsets" / "0").write_text(f"v1\n{about}\n{json.dumps(offset)}")
    found = shown(session.readStream.format("delta").load(path), tmp_path / "c")
    assert found == [[(1,)], [(2,)]]


@pytest.mark.skipif(not has_limits(), reason="a log of schemas needs PySpark 4.2")
def test_a_log_of_schemas_is_begun_where_a_query_stands(session: SparkSession, path: str, tmp_path: Path) -> None:
    assert shown(session.readStream.format("delta").load(path), tmp_path / "c") == [[(1,)]]
    anabranch.append(path, [{"id": 2}])
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN name STRING")
    anabranch.append(path, [{"id": 3, "name": "n"}])
    tracked = session.readStream.format("delta").option("schemaTrackingLocation", str(tmp_path / "schemas"))
    with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
        shown(tracked.load(path), tmp_path / "c")
    assert shown(tracked.load(path), tmp_path / "c", once=True) == [[(2,)]]
    with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
        shown(tracked.load(path), tmp_path / "c")
    assert shown(tracked.load(path), tmp_path / "c") == [[(3, "n")]]


@pytest.fixture
def second(session: SparkSession, path: str) -> Iterator[SparkSession]:
    """A session of the same Spark, after the first one has read a stream."""
    session.readStream.format("delta").load(path)
    other = anabranch.install(session.newSession())
    yield other
    anabranch.uninstall(other)


def test_a_table_flows_into_another_exactly_once_in_a_second_session_as_well(
    second: SparkSession, path: str, tmp_path: Path
) -> None:
    sink, last = str(tmp_path / "sink"), examples(5, 2)
    rows = second.readStream.format("delta").option("maxFilesPerTrigger", 1).load(path)
    query = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start(sink)
    for number in range(2, last + 1):
        anabranch.append(path, [{"id": number}])
    query.processAllAvailable()
    World(path).optimize()
    query.processAllAvailable()
    query.stop()
    assert ids(sink) == [*range(1, last + 1)]
    newest = max((tmp_path / "c" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    assert json.loads(newest.read_text().splitlines()[-1])["reservoirVersion"] >= last


@pytest.mark.exhaustive(
    "tests/streaming/test_streams.py::test_a_feed_is_read_as_a_stream_and_at_once_whatever_its_limits",
    "tests/streaming/test_streams.py::test_a_table_flows_into_another_exactly_once_in_a_second_session_as_well",
    "tests/streaming/test_source.py::test_a_batch_takes_files_until_a_limit_is_reached",
)
@pytest.mark.parametrize("trigger", [{"once": True}, {"availableNow": True}, {"processingTime": "1 second"}])
def test_every_trigger_reads_a_table(session: SparkSession, path: str, tmp_path: Path, trigger: dict[str, Any]) -> None:
    anabranch.append(path, [{"id": 2}])
    rows = session.readStream.format("delta").option("maxFilesPerTrigger", 1).load(path)
    found: list[Any] = []
    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(**trigger)
    started = query.foreachBatch(lambda batch, _: found.append(batch.count())).start()
    if "processingTime" in trigger:
        started.processAllAvailable()
        started.stop()
    started.awaitTermination()
    assert found == ([2] if "once" in trigger else [1, 1])


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ({"startingVersion": "-1"}, "startingVersion"),
        ({"startingVersion": 0, "startingTimestamp": "2024-01-01"}, "startingTimestamp"),
        ({"maxFilesPerTrigger": 0}, "maxFilesPerTrigger"),
        ({"maxBytesPerTrigger": "x"}, "maxBytesPerTrigger"),
        ({"ignoreDeletes": "perhaps"}, "ignoreDeletes"),
        ({"versionAsOf": 0}, "versionAsOf"),
        ({"endingVersion": 0}, "endingVersion"),
        ({"streamingSourceTrackingId": "x"}, "streamingSourceTrackingId"),
        ({"excludeRegex": ".*"}, "excludeRegex"),
    ],
)
def test_what_a_source_does_not_do_is_refused_by_name(
    session: SparkSession, path: str, said: dict[str, Any], option: str
) -> None:
    with pytest.raises(errors.AnabranchError) as error:
        session.readStream.format("delta").options(**said).load(path)
    assert option in str(error.value)
    with pytest.raises(errors.InvalidOption, match="schema"):
        session.readStream.format("delta").schema("id INT").load(path)
    with pytest.raises(errors.InvalidOption, match="schema"):
        session.readStream.schema("id INT").format("delta").load(path)


@pytest.mark.exhaustive(
    "tests/commands/dml/test_write_options.py::test_idempotent_writes_on_spark",
    "tests/streaming/test_streams.py::test_a_merge_runs_in_a_function_of_batches",
)
def test_a_function_writes_each_batch_once(session: SparkSession, path: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    session.range(3).coalesce(1).write.parquet(str(source))
    rows = session.readStream.schema("id BIGINT").format("parquet").load(str(source))

    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):  # the second time is done already
            once = batch.write.format("delta").mode("append").option("txnAppId", "q").option("txnVersion", number)
            once.save(path)

    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).foreachBatch(write)
    query.trigger(availableNow=True).start().awaitTermination()
    assert ids(path) == [0, 1, 1, 2]


# -- the sink ----------------------------------------------------------------------------------------------------------


def test_each_batch_is_one_commit_and_a_query_goes_on_where_it_was(
    session: SparkSession, source: Path, tmp_path: Path
) -> None:
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    written(rows_of(session, source), checkpoint).start(path).awaitTermination()
    assert ids(path) == [0, 1, 2]
    put(source, 3, 5)
    written(rows_of(session, source), checkpoint).start(path).awaitTermination()
    assert ids(path) == [0, 1, 2, 3, 4]
    told = [dict(each["operationParameters"]) for each in anabranch.history(path)]
    assert [each["operation"] for each in anabranch.history(path)] == ["STREAMING UPDATE"] * 2
    assert [each["epochId"] for each in told] == ["1", "0"]
    assert {each["outputMode"] for each in told} == {"Append"}
    assert len({each["queryId"] for each in told}) == 1
    assert anabranch.history(path)[0]["isBlindAppend"] is True
    for each in anabranch.history(path):
        assert {"numAddedFiles": "1", "numRemovedFiles": "0"}.items() <= dict(each["operationMetrics"]).items()


def test_values_of_a_stream_are_cast_to_the_columns_of_the_table_where_they_fit(
    session: SparkSession, source: Path, tmp_path: Path
) -> None:
    path, rows = str(tmp_path / "t"), rows_of(session, source)
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, at DATE, l ARRAY<STRUCT<x: INT>>) USING delta")
    other = ("id + 0.0 AS id", "'2024-01-02' AS at", "array(named_struct('x', id)) AS l")
    written(rows.selectExpr(*other), tmp_path / "c1").start(path).awaitTermination()
    assert [(row["id"], str(row["at"]), row["l"][0]["x"]) for row in deltalake_rows(path)] == [
        (number, "2024-01-02", number) for number in range(3)
    ]
    unfit = (
        ("3000000000 AS id", "does not fit the column", "ANSI"),
        ("'soon' AS at", "does not fit the column", "ANSI"),
        ("array(named_struct('x', '?')) AS l", "does not fit the column", "ANSI"),
        ("true AS at", "DELTA_SCHEMA_MISMATCH", "ANSI"),
        ("id", "DELTA_SCHEMA_MISMATCH", "STRICT"),
    )
    for number, (wrong, said, policy) in enumerate(few_of(unfit, 2)):
        with assigning(session, policy), pytest.raises(StreamingQueryException, match=said):
            written(rows.selectExpr(wrong), tmp_path / f"w{number}").start(path).awaitTermination()


@contextmanager
def assigning(session: SparkSession, policy: str) -> Iterator[None]:
    """Which casts the session makes by itself."""
    session.conf.set("spark.sql.storeAssignmentPolicy", policy)
    try:
        yield
    finally:
        session.conf.unset("spark.sql.storeAssignmentPolicy")


def test_rows_that_are_computed_from_the_tables_own_are_no_blind_append(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    rows = rows_of(session, source).join(session.read.format("delta").load(path), "id")
    written(rows, tmp_path / "c").start(path).awaitTermination()
    assert anabranch.history(path)[0]["isBlindAppend"] is False
    assert ids(path) == [1, 1]


def test_a_batch_that_was_computed_from_an_older_version_of_the_table_is_refused(
    session: SparkSession, source: Path, tmp_path: Path
) -> None:
    """An update that ended is never undone by rows that were joined with what was there before it."""
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    anabranch.append(path, [{"id": 1, "x": 0}])
    joined = rows_of(session, source).join(session.read.format("delta").load(path), "id")
    World(path).update(None, x=5)
    with pytest.raises(StreamingQueryException, match="DELTA_CONCURRENT"):
        written(joined, checkpoint).start(path).awaitTermination()
    assert anabranch.history(path)[0]["operation"] == "UPDATE"
    again = rows_of(session, source).join(session.read.format("delta").load(path), "id")
    written(again, checkpoint).start(path).awaitTermination()
    assert [row["x"] for row in deltalake_rows(path)] == [5, 5]


def test_a_batch_that_joins_a_version_that_was_asked_for_is_a_blind_append(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    asked = session.read.format("delta").option("versionAsOf", 0).load(path)
    anabranch.append(path, [{"id": 2}])
    written(rows_of(session, source).join(asked, "id"), tmp_path / "c").start(path).awaitTermination()
    assert anabranch.history(path)[0]["isBlindAppend"] is True
    assert ids(path) == [1, 1, 2]


def test_a_stream_that_reads_the_files_of_its_table_without_the_log_does_not_start(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    raw = session.read.parquet(str(next(iter(Path(path).rglob("*.parquet"))).parent))
    with pytest.raises(errors.UnknownSourceVersion):
        written(rows_of(session, source).join(raw, "id"), tmp_path / "c").start(path)


def appended(batch: DataFrame, path: str) -> None:
    batch.write.format("delta").mode("append").save(path)


def merged(batch: DataFrame, path: str) -> None:
    matched = DeltaTable.forPath(batch.sparkSession, path).alias("t").merge(batch.alias("s"), "t.id = s.id")
    matched.whenMatchedUpdateAll().execute()


def inserted(batch: DataFrame, path: str) -> None:
    batch.createOrReplaceTempView("batch")
    batch.sparkSession.sql(f"INSERT INTO delta.`{path}` SELECT * FROM batch")


def deleted(batch: DataFrame, path: str) -> None:
    batch.createOrReplaceTempView("batch")
    batch.sparkSession.sql(f"DELETE FROM delta.`{path}` WHERE id IN (SELECT id FROM batch)")


def counted(batch: DataFrame, path: str) -> None:
    appended(batch.groupBy("id").count().select("id").localCheckpoint(), path)


@pytest.mark.parametrize("write", [appended, merged, inserted, deleted, counted])
def test_a_function_of_batches_is_given_rows_that_say_which_version_they_were_joined_with(
    session: SparkSession, source: Path, path: str, tmp_path: Path, write: Callable[[DataFrame, str], None]
) -> None:
    joined = rows_of(session, source).join(session.read.format("delta").load(path), "id")
    World(path).update(None, id=1)
    query = joined.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="DELTA_CONCURRENT"):
        query.foreachBatch(lambda batch, _: write(batch, path)).start().awaitTermination()
    assert len(anabranch.history(path)) == 2


def test_rows_joined_with_one_table_are_blind_in_another(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    joined, other = rows_of(session, source).join(session.read.format("delta").load(path), "id"), str(tmp_path / "o")
    anabranch.append(other, [{"id": 7}])
    World(path).update(None, id=1)
    query = joined.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.foreachBatch(lambda batch, _: appended(batch, other)).start().awaitTermination()
    assert anabranch.history(other)[0]["isBlindAppend"] is True
    assert ids(other) == [1, 7]


def test_a_batch_that_was_committed_before_the_process_died_is_not_written_again(
    session: SparkSession, source: Path, tmp_path: Path
) -> None:
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    written(rows_of(session, source), checkpoint).start(path).awaitTermination()
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)  # as if it had died before Spark noted the batch
    written(rows_of(session, source), checkpoint).start(path).awaitTermination()
    assert ids(path) == [0, 1, 2]
    assert len(anabranch.history(path)) == 1


@pytest.mark.exhaustive(
    "tests/transaction/test_replace.py::test_of_two_writes_of_one_application_at_once_the_second_is_refused_and_then_skipped",
    "tests/streaming/test_streams.py::test_a_batch_that_was_committed_before_the_process_died_is_not_written_again",
)
def test_a_batch_that_another_query_of_the_checkpoint_commits_meanwhile_is_refused(
    session: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, checkpoint = str(tmp_path / "t"), tmp_path / "c"
    anabranch.append(path, [{"id": 100}])
    numbered: list[Any] = []

    def other() -> None:
        query = json.loads((checkpoint / "metadata").read_text())["id"]
        numbered.append(query)
        rows = session.range(3).write.format("delta").mode("append")
        rows.option("txnAppId", query).option("txnVersion", 0).save(path)

    plain = Sink.__call__

    def interrupted(sink: Sink, batch: DataFrame, number: int) -> None:
        with at_phase("staged", other):
            plain(sink, batch, number)

    monkeypatch.setattr(Sink, "__call__", interrupted)
    with pytest.raises(StreamingQueryException) as error:
        written(rows_of(session, source), checkpoint).start(path).awaitTermination()
    assert numbered
    assert "DELTA_CONCURRENT_TRANSACTION" in str(error.value)
    assert ids(path) == [0, 1, 2, 100]


def test_complete_replaces_every_row_by_each_batch(session: SparkSession, source: Path, tmp_path: Path) -> None:
    path, checkpoint, rounds = str(tmp_path / "t"), tmp_path / "c", examples(2, 1)
    anabranch.append(path, [{"id": 100}])
    for _ in range(rounds):
        counts = rows_of(session, source).groupBy().count().withColumnRenamed("count", "id")
        written(counts, checkpoint).outputMode("complete").start(path).awaitTermination()
        put(source, 3, 5)
    assert ids(path) == [5 if rounds > 1 else 3]


def test_a_stream_makes_a_table_of_a_name_and_of_partitions(
    session: SparkSession, source: Path, tmp_path: Path
) -> None:
    rows = rows_of(session, source).selectExpr("id", "id % 2 AS g")
    for _ in range(2):
        query = written(rows, tmp_path / "c").queryName("q").partitionBy("g").option("delta.appendOnly", "true")
        query.toTable("streamed_names").awaitTermination()
    try:
        detail = DeltaTable.forName(session, "streamed_names").detail().first()
        assert (detail["partitionColumns"], detail["properties"]["delta.appendOnly"]) == (["g"], "true")
        assert len(deltalake_rows(detail["location"])) == 3
    finally:
        session.sql("DROP TABLE streamed_names")


def test_rows_of_a_stream_may_add_columns_where_it_says_so(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    wider = rows_of(session, source).selectExpr("id", "'n' AS name")
    with pytest.raises(StreamingQueryException, match="name"):
        written(wider, tmp_path / "c1").start(path).awaitTermination()
    written(wider, tmp_path / "c2").option("mergeSchema", "true").start(path).awaitTermination()
    assert session.read.format("delta").load(path).columns == ["id", "name"]


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ({"outputMode": "update"}, "outputMode"),
        ({"replaceWhere": "id = 1"}, "replaceWhere"),
        ({"txnAppId": "a", "txnVersion": 1}, "txnAppId"),
        ({"checkpointLocation": None}, "checkpointLocation"),
    ],
)
def test_what_a_sink_does_not_do_is_refused_before_the_query_starts(
    session: SparkSession, source: Path, path: str, tmp_path: Path, said: dict[str, Any], option: str
) -> None:
    rows = rows_of(session, source).writeStream.format("delta")
    given = {"checkpointLocation": str(tmp_path / "c"), **said}
    with pytest.raises(errors.InvalidOption) as error:
        rows.start(path, **{name: value for name, value in given.items() if value is not None})
    assert error.value.facts["option"] == option
    assert not session.streams.active
    assert len(anabranch.history(path)) == 1


def test_a_stream_of_another_format_never_writes_to_a_delta_table(
    session: SparkSession, source: Path, path: str, tmp_path: Path
) -> None:
    rows = rows_of(session, source).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(errors.InvalidOption, match="format"):
        rows.toTable(f"delta.`{path}`", format="parquet")
    with pytest.raises(PySparkException):
        rows.outputMode(None)


def test_a_merge_runs_in_a_function_of_batches(session: SparkSession, source: Path, path: str, tmp_path: Path) -> None:
    def merge(batch: DataFrame, number: int) -> None:
        table = DeltaTable.forPath(batch.sparkSession, path).alias("t")
        matched = table.merge(batch.alias("s"), "t.id = s.id").whenMatchedDelete()
        matched.whenNotMatchedInsertAll().execute()

    query = rows_of(session, source).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query.foreachBatch(merge).trigger(availableNow=True).start().awaitTermination()
    assert ids(path) == [0, 2]


# -- others ------------------------------------------------------------------------------------------------------------


def test_streams_of_other_formats_are_sparks(session: SparkSession, source: Path, tmp_path: Path) -> None:
    sink = str(tmp_path / "out")
    query = rows_of(session, source).writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(sink).awaitTermination()
    assert pq.read_table(sink).num_rows == 3


@pytest.mark.parametrize(("said", "size"), [("64m", 64 << 20), ("1024", 1024), (None, 128 << 20)])
def test_a_stream_divides_files_as_the_session_says(session: SparkSession, said: str | None, size: int) -> None:
    if said is not None:
        session.conf.set("spark.sql.files.maxPartitionBytes", said)
    try:
        assert splits(session).most_bytes == size
    finally:
        session.conf.unset("spark.sql.files.maxPartitionBytes")
