"""An installed session is installed by whichever Python object it is reached: libraries and PySpark make others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, SQLContext

import anabranch
from anabranch import DeltaTable
from tests.support.readers import deltalake_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.classic("these are ways to a classic session; on Connect a session is one object"),
]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


def again(session: SparkSession) -> SparkSession:
    return SparkSession(session.sparkContext)


def active(session: SparkSession) -> SparkSession:
    session.createDataFrame([(1,)], "id BIGINT")
    found = SparkSession.getActiveSession()
    assert found is not None
    return found


def of_old_context(session: SparkSession) -> SparkSession:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return SQLContext(session.sparkContext).sparkSession


def of_rows(session: SparkSession) -> SparkSession:
    return session.sparkContext.parallelize([(1,)]).toDF("id BIGINT").sparkSession


def batch_of(session: SparkSession, folder: Path, func: Callable[[DataFrame, int], Any]) -> None:
    """Run one batch of a stream, whose session is a clone."""
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([7], pa.int64())}), folder / "in" / "one.parquet")
    stream = session.readStream.schema("id BIGINT").parquet(str(folder / "in")).writeStream
    query = stream.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(func)
    query.trigger(availableNow=True).start().awaitTermination()


def check_doors(spark: SparkSession, path: str) -> None:
    """Each door of a session leads to Delta."""
    spark.range(1).write.format("delta").save(path)
    spark.range(1, 2).writeTo(f"delta.`{path}`").append()
    assert spark.read.format("delta").load(path).count() == spark.table(f"delta.`{path}`").count() == 2
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    DeltaTable.forPath(spark, path).update("id = 1", {"id": "5"})
    assert [list(each.values()) for each in deltalake_rows(path)] == [[5]]


@pytest.mark.whole
@pytest.mark.parametrize("reach", [again, active, of_old_context, of_rows])
def test_each_object_of_an_installed_session_leads_to_delta(
    session: SparkSession, tmp_path: Path, reach: Callable[[SparkSession], SparkSession]
) -> None:
    check_doors(reach(session), str(tmp_path / "t"))


def test_the_session_of_a_batch_stays_installed_when_the_stream_is_over(session: SparkSession, tmp_path: Path) -> None:
    """PySpark lets ``RDD.toDF`` make its frames in the session of the last batch; libraries keep the active one."""
    kept: list[SparkSession] = []

    def write(batch: DataFrame, _: int) -> None:
        check_doors(batch.sparkSession, str(tmp_path / "in-batch"))
        kept.extend([batch.sparkSession, active(batch.sparkSession)])

    batch_of(session, tmp_path, write)
    for number, each in enumerate((*kept, of_rows(session), again(session))):
        check_doors(each, str(tmp_path / f"t{number}"))


def test_an_old_context_reads_delta(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        context = SQLContext(session.sparkContext)
    context.range(3).write.format("delta").save(path)
    assert context.read.format("delta").load(path).count() == context.sql(f"SELECT * FROM delta.`{path}`").count() == 3
    assert context.readStream.format("delta").load(path).isStreaming


def test_a_temporary_view_follows_its_table_by_each_object(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    session.range(1).write.format("delta").save(path)
    again(session).sql(f"CREATE OR REPLACE TEMPORARY VIEW of_objects AS SELECT * FROM delta.`{path}`")
    for number, each in enumerate((session, again(session)), 2):
        each.range(1).write.format("delta").mode("append").save(path)
        assert each.sql("SELECT * FROM of_objects").count() == number
    session.catalog.dropTempView("of_objects")


def test_uninstalling_by_one_object_gives_everything_back_to_all(session: SparkSession, tmp_path: Path) -> None:
    before, path = dict(session.conf.getAll), str(tmp_path / "t")
    kept: list[SparkSession] = []
    batch_of(session, tmp_path, lambda batch, _: kept.append(batch.sparkSession))
    check_doors(kept[0], path)
    anabranch.uninstall(again(session))
    assert {name for name in before if name not in session.conf.getAll} == {
        name for name in before if name.startswith("spark.anabranch.")
    }
    assert not hasattr(type(session).sql, "anabranch_plain")
    assert not hasattr(SQLContext.read, "anabranch_plain")
    for each in (session, again(session)):
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            each.read.format("delta").load(path)


def test_a_new_session_is_installed_by_ours_and_is_not_by_itself(session: SparkSession, tmp_path: Path) -> None:
    check_doors(session.newSession(), str(tmp_path / "t"))
    new = unwrap(type(session).newSession)(session)
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        new.read.format("delta").load(str(tmp_path / "t"))


def test_a_library_that_uninstalls_the_session_of_its_batch_leaves_the_users(
    session: SparkSession, tmp_path: Path
) -> None:
    batch_of(session, tmp_path, lambda batch, _: anabranch.uninstall(batch.sparkSession))
    check_doors(session, str(tmp_path / "t"))
    check_doors(again(session), str(tmp_path / "u"))


def test_resetting_all_settings_uninstalls_nothing(spark: SparkSession, tmp_path: Path) -> None:
    session = anabranch.install(spark.newSession())
    session.sql("RESET")
    batch_of(session, tmp_path, lambda batch, _: check_doors(batch.sparkSession, str(tmp_path / "t")))
    anabranch.uninstall(session)
