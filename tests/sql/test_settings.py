"""Settings of a session and options, by the doors that users type: honoured, refused by name, or warned of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._protocol import settings
from anabranch._protocol.compression import CODEC_PROPERTY, DEFAULT_CODEC
from anabranch._protocol.settings import DEFAULTS, PREFIX
from anabranch._spark.sessions import settings as reading
from anabranch.errors import UnknownOption, UnknownSetting
from anabranch.errors.process_state import forget
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark


class Sets:
    """Settings of a session for one test."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._set = spark, set[str]()

    def __call__(self, **values: str) -> None:
        for name, value in values.items():
            self.whole(PREFIX + name.replace("__", "."), value)

    def whole(self, name: str, value: str) -> None:
        self._set.add(name)
        self._spark.conf.set(name, value)

    def clear(self) -> None:
        for name in self._set:
            self._spark.conf.unset(name)


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture
def sets(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sets]:
    forget("settings warned of")
    monkeypatch.setattr(reading, "LISTED_S", 0.0)
    found = Sets(session)
    yield found
    found.clear()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def made(path: str) -> str:
    anabranch.append(path, [{"id": i, "x": i % 2} for i in range(4)])
    return path


def newest(path: str) -> dict[str, Any]:
    return anabranch.history(path, 1)[0]


def test_each_way_to_change_rows_is_done_once_for_a_numbered_application(
    session: SparkSession, sets: Sets, path: str
) -> None:
    made(path)
    sets(write__txnAppId="nightly", commitInfo__userMetadata="run")
    source = session.range(3, 5).withColumn("x", F.lit(0).cast("long"))
    ways = [
        lambda: session.sql(f"INSERT INTO delta.`{path}` VALUES (9, 9)"),
        lambda: session.sql(f"DELETE FROM delta.`{path}` WHERE id = 0"),
        lambda: session.sql(f"UPDATE delta.`{path}` SET x = 7 WHERE id = 1"),
        lambda: session.sql(
            f"MERGE INTO delta.`{path}` t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        ),
        lambda: source.write.format("delta").mode("append").save(path),
        lambda: source.writeTo(f"delta.`{path}`").append(),
        lambda: DeltaTable.forPath(session, path).delete("id = 3"),
        lambda: DeltaTable.forPath(session, path).update("id = 9", {"x": "8"}),
        lambda: DeltaTable.forPath(session, path).merge(source, "false").whenNotMatchedInsertAll().execute(),
    ]
    for number, way in enumerate(few_of(ways, 5), start=1):
        sets(write__txnVersion=str(number))
        way()
        way()
        assert (newest(path)["version"], newest(path)["userMetadata"]) == (number, "run")


def test_an_append_of_rows_in_memory_honours_the_settings_of_the_session_that_it_names(
    session: SparkSession, sets: Sets, path: str
) -> None:
    sets(write__txnAppId="nightly", write__txnVersion="1", commitInfo__userMetadata="run")
    sets.whole(DEFAULTS + "appendOnly", "true")
    rows = [{"id": 1, "x": 1}]
    assert [anabranch.append(path, rows, spark=session) for _ in range(2)] == [0, 0]
    assert newest(path)["userMetadata"] == "run"
    assert anabranch.table(path).detail()["properties"]["delta.appendOnly"] == "true"
    sets(write__txnVersion="2")
    assert [anabranch.table(path, spark=session).append(rows) for _ in range(2)] == [1, 1]
    sets.whole("anabranch.isolationLevel", "Serializable")
    assert anabranch.append(path, rows, spark=session, txn_app_id="nightly", txn_version=3) == 2
    assert newest(path)["isolationLevel"] == "Serializable"
    assert anabranch.append(path, rows) == 3
    assert "userMetadata" not in newest(path) or newest(path)["userMetadata"] is None


def test_the_options_of_a_write_count_more_and_the_version_is_reset_where_that_is_asked(
    session: SparkSession, sets: Sets, path: str
) -> None:
    made(path)
    sets(write__txnAppId="nightly", write__txnVersion="1", commitInfo__userMetadata="run")
    sets(write__txnVersion__autoReset__enabled="true")
    writer = session.range(1).withColumn("x", F.col("id")).write.format("delta").mode("append")
    writer.option("txnAppId", "other").option("txnVersion", 5).option("userMetadata", "ours").save(path)
    assert newest(path)["userMetadata"] == "ours"
    assert session.conf.get(settings.TXN_VERSION) == "1"  # not used
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    assert session.conf.get(settings.TXN_VERSION, None) is None
    with pytest.raises(errors.InvalidOption, match="go together"):
        session.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")


def test_every_door_that_makes_a_table_gives_it_the_defaults_of_the_session(
    session: SparkSession, sets: Sets, tmp_path: Path
) -> None:
    session.range(2).write.parquet(str(tmp_path / "e"))
    sets.whole(DEFAULTS + "appendOnly", "true")
    sets.whole(DEFAULTS + "feature.domainMetadata", "supported")
    session.sql(f"CREATE TABLE delta.`{tmp_path}/a` (id INT)")
    session.sql(f"CREATE OR REPLACE TABLE delta.`{tmp_path}/b` AS SELECT 1 AS id")
    session.range(1).write.format("delta").save(f"{tmp_path}/c")
    DeltaTable.create(session).location(f"{tmp_path}/d").addColumn("id", "INT").execute()
    DeltaTable.convertToDelta(session, f"parquet.`{tmp_path}/e`")
    session.range(1).writeTo(f"delta.`{tmp_path}/f`").using("delta").create()
    for name in "abcdef":
        detail = session.sql(f"DESCRIBE DETAIL delta.`{tmp_path}/{name}`").first()
        assert detail["properties"]["delta.appendOnly"] == "true", name
        assert "domainMetadata" in detail["tableFeatures"], name


def test_what_is_not_done_here_is_refused_before_anything_is_written(
    session: SparkSession, sets: Sets, path: str
) -> None:
    made(path)
    sets(delete__deletionVectors__persistent="false", restore__protocolDowngradeAllowed="true")
    for refused in (
        lambda: session.sql(f"DELETE FROM delta.`{path}`"),
        lambda: DeltaTable.forPath(session, path).delete(),
        lambda: DeltaTable.forPath(session, path).restoreToVersion(0),
    ):
        with pytest.raises(errors.UnsupportedSetting):
            refused()
    assert newest(path)["version"] == 0


@pytest.mark.parametrize("policy", ["LEGACY", "STRICT"])
def test_another_policy_of_fitting_values_is_refused_where_values_are_fitted(
    session: SparkSession, sets: Sets, path: str, policy: str
) -> None:
    made(path)
    sets.whole(settings.ASSIGNS, policy)
    source = session.range(1).withColumn("x", F.col("id"))
    for fits in (
        lambda: session.sql(f"INSERT INTO delta.`{path}` VALUES ('text', 1)"),
        lambda: session.sql(f"UPDATE delta.`{path}` SET x = 'text'"),
        lambda: DeltaTable.forPath(session, path).update(set={"x": "1"}),
        lambda: DeltaTable.forPath(session, path).merge(source, "false").whenNotMatchedInsertAll().execute(),
        lambda: source.write.insertInto(f"delta.`{path}`"),
    ):
        with pytest.raises(errors.UnsupportedSetting, match="storeAssignmentPolicy"):
            fits()
    assert newest(path)["version"] == 0
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    source.write.format("delta").mode("append").save(path)
    sets.whole(settings.ASSIGNS, "ANSI")
    session.sql(f"INSERT INTO delta.`{path}` VALUES (1, 1)")
    assert newest(path)["version"] == 3


def test_a_setting_that_nobody_documents_is_warned_of_once(session: SparkSession, sets: Sets, path: str) -> None:
    made(path)
    sets(no__such__setting="1", stalenessLimit="1h")
    with pytest.warns(UnknownSetting, match=r"no\.such\.setting") as warned:
        session.sql(f"INSERT INTO delta.`{path}` VALUES (9, 9)")
    assert sum(each.category is UnknownSetting for each in warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql(f"INSERT INTO delta.`{path}` VALUES (9, 9)")


def test_insert_by_name_finds_members_of_structs_by_name_at_every_depth(session: SparkSession, path: str) -> None:
    point = "STRUCT<x: INT, y: INT>"
    columns = f"a INT, s {point}, r ARRAY<{point}>, m MAP<STRING, STRUCT<p: {point}, q: STRING>>"
    session.sql(f"CREATE TABLE delta.`{path}` ({columns})")
    swapped = "named_struct('y', 10, 'X', 20)"
    rows = f"{swapped} AS s, 1 AS a, map('k', named_struct('q', 'w', 'p', {swapped})) AS m, array({swapped}, NULL) AS r"
    session.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT {rows}")
    session.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT 2 AS a")
    found = session.sql(f"SELECT s.x, s.y, r[0].x, r[1], m['k'].p.x, m['k'].q FROM delta.`{path}` WHERE a = 1").first()
    assert tuple(found) == (20, 10, 20, None, 20, "w")
    for wrong in ("named_struct('x', 1)", "named_struct('x', 1, 'y', 2, 'z', 3)"):
        with pytest.raises(errors.SchemaMismatch):
            session.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT 3 AS a, {wrong} AS s")
    assert newest(path)["version"] == 2


def test_options_of_writes_are_honoured_refused_or_warned_of(session: SparkSession, path: str) -> None:
    rows = session.range(10).coalesce(1)
    with pytest.warns(UnknownOption, match="nonsense"):
        rows.write.format("delta").option("maxRecordsPerFile", 5).option("compression", "gzip").option(
            "nonsense", "x"
        ).save(path)
    files = sorted(Path(path).rglob("*.parquet"))
    assert [len(files), *{"".join(each.suffixes[-2:]) for each in files}] == [2, ".gz.parquet"]
    for name, value in (("replaceOn", "true"), ("dataChange", "false"), ("writePartitionColumns", "true")):
        with pytest.raises((errors.InvalidOption, errors.NotBuilt)):
            rows.write.format("delta").mode("append").option(name, value).save(path)
    for writer in (rows.write.format("delta").bucketBy(2, "id"), rows.write.bucketBy(2, "id").format("delta")):
        with pytest.raises(errors.InvalidOption, match="bucketBy"):
            writer.mode("append").saveAsTable(f"delta.`{path}`")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.read.format("delta").option("ignoreDeletes", "true").load([path]).count() == 10
    with pytest.raises(errors.InvalidOption):
        session.read.format("delta").option("pathGlobFilter", "*").load(path)
    assert newest(path)["version"] == 0


def test_options_of_create_table_are_its_place_and_its_properties(session: SparkSession, tmp_path: Path) -> None:
    session.sql("DROP TABLE IF EXISTS made_by_options")
    session.sql(
        f"CREATE TABLE made_by_options (a INT) USING delta OPTIONS (path '{tmp_path}/o', 'delta.appendOnly' 'true')"
    )
    detail = session.sql("DESCRIBE DETAIL made_by_options").first()
    session.sql("DROP TABLE made_by_options")
    assert detail["location"].endswith("/o")
    assert detail["properties"]["delta.appendOnly"] == "true"


def test_where_the_session_says_so_tables_are_ours_without_a_format(
    session: SparkSession, sets: Sets, tmp_path: Path
) -> None:
    sets.whole("spark.sql.sources.default", "delta")
    session.range(2).write.save(str(tmp_path / "x"))
    assert session.read.load(str(tmp_path / "x")).count() == 2
    assert newest(str(tmp_path / "x"))["version"] == 0


def compressions(path: str) -> set[str]:
    files = [file for file in Path(path).rglob("*.parquet") if file.parent.name != "_delta_log"]
    return {pq.read_metadata(file).row_group(0).column(0).compression for file in files}


def test_the_sessions_compression_counts_if_it_is_set_and_the_table_names_none(
    session: SparkSession, sets: Sets, tmp_path: Path
) -> None:
    rows, feed = session.range(10), {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1"}
    one, named = str(tmp_path / "one"), str(tmp_path / "named")
    rows.write.format("delta").options(**feed).save(one)
    assert compressions(one) == {DEFAULT_CODEC.upper()}
    sets.whole(settings.COMPRESSES, "gzip")
    rows.write.format("delta").options(**feed).mode("overwrite").save(one)
    DeltaTable.forPath(session, one).update("id < 3", {"id": "id + 100"})
    assert compressions(one) == {DEFAULT_CODEC.upper(), "GZIP"}
    newest = [*Path(one, "_delta_log").glob("*2.checkpoint.parquet")]
    assert pq.read_metadata(newest[0]).row_group(0).column(0).compression == "GZIP"

    rows.write.format("delta").option(CODEC_PROPERTY, "zstd").save(named)
    assert compressions(named) == {"ZSTD"}
    rows.write.format("delta").mode("append").option("compression", "none").save(named)
    assert compressions(named) == {"ZSTD", "UNCOMPRESSED"}
    assert session.conf.get(settings.COMPRESSES) == "gzip"


def test_a_compression_of_the_session_that_cannot_be_written_is_refused(
    session: SparkSession, sets: Sets, path: str
) -> None:
    session.range(3).write.format("delta").mode("overwrite").save(path)
    sets.whole(settings.COMPRESSES, "brotli")
    with pytest.raises(errors.UnsupportedSetting, match=r"spark\.sql\.parquet\.compression\.codec"):
        session.range(3).write.format("delta").mode("append").save(path)
    assert session.read.format("delta").load(path).count() == 3
