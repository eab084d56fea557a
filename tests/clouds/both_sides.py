"""One side's settings suffice for both: ``… -m tests.clouds.both_sides STAGE SESSION FIRST SECOND``.

A process of its own, with no variable of a store in its environment. The session reaches ``bucket`` of the first
server by settings for all buckets, and ``second`` of the second server by settings for that bucket. What else the
second server has is reached by what one call is given.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from tests.clouds.verbs import session
from tests.support.planted import SECRET

Settings = dict[str, str]
WRONG = f"wrong {SECRET}"
RUN = uuid.uuid4().hex
"""A folder of this run: others use the same servers."""


def main(stage: str, master: str, configuration: str, second: str) -> None:
    """Run one stage."""
    assert not [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": tempfile.mkdtemp()}
    spark = session(master, settings | json.loads(configuration))
    STAGES[stage](spark, json.loads(second))
    print("all done")


def settings_of_the_session(spark: SparkSession, second: Settings) -> None:
    """Two buckets of two servers, in one statement too."""
    for place in ("s3a://bucket/t", "s3a://second/t"):
        spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, s STRING)")
        anabranch.append(place, [{"id": 1, "s": "appended"}], spark=spark)
        with anabranch.appender(place, spark=spark) as appender:
            appender.append([{"id": 2, "s": "gathered"}])
        spark.range(3, 4).selectExpr("id", "'frame' AS s").write.format("delta").mode("append").save(place)
        DeltaTable.forPath(spark, place).update("id = 1", {"s": "'updated'"})
        assert DeltaTable.isDeltaTable(spark, place)
        assert DeltaTable.forPath(spark, place).history().count() == 5
        assert sorted(spark.read.format("delta").load(place).toPandas()["id"]) == [1, 2, 3]
        assert anabranch.read(place, "id = 1", spark=spark).first()["s"] == "updated"
    spark.sql("MERGE INTO delta.`s3a://second/t` t USING (SELECT id + 1 AS id, s FROM delta.`s3a://bucket/t`) s "
              "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    assert sorted(spark.read.format("delta").load("s3a://second/t").toPandas()["id"]) == [1, 4]
    DeltaTable.forPath(spark, "s3a://bucket/t").clone("s3a://second/clone")
    assert spark.read.format("delta").load("s3a://second/clone").count() == 3
    spark.sql("CREATE TABLE named (id BIGINT) USING delta LOCATION 's3a://second/named'")
    spark.table("named").write.insertInto("named")
    assert spark.catalog.tableExists("named")


def settings_of_a_call(spark: SparkSession, second: Settings) -> None:
    """A bucket that the session knows nothing of, by ``hadoopConf`` and by options."""
    place, frame = f"s3a://third/{RUN}/t", spark.range(3)
    frame.write.format("delta").options(**second).save(place)
    frame.write.format("delta").options(**second).mode("overwrite").option("replaceWhere", "id < 3").save(place)
    with pytest.raises((errors.NoSuchBucket, errors.NoCredentials)):  # the session asks the first server
        spark.read.format("delta").load(place.replace("third", "second"))
    table = DeltaTable.forPath(spark, place, second)
    table.update("id = 1", {"id": "10L"})
    table.delete("id = 0")
    table.alias("t").merge(spark.range(2, 6).alias("s"), "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll(
    ).execute()  # fmt: skip
    table.optimize().executeCompaction()
    table.clone(f"s3a://third/{RUN}/clone")
    assert [row["id"] for row in table.toDF().orderBy("id").collect()] == [3, 4, 5, 10]
    assert spark.read.format("delta").options(**second, versionAsOf=1).load(place).count() == 3
    assert spark.read.format("delta").options(**second).load(f"s3a://third/{RUN}/clone").where("id = 3").count() == 1
    frame.writeTo(f"delta.`s3a://third/{RUN}/v2`").options(**second).using("delta").create()
    assert spark.read.format("delta").options(**second).load(f"s3a://third/{RUN}/v2").count() == 3


def streams_of_a_call(spark: SparkSession, second: Settings) -> None:
    """A table on one server is read as a stream into one on the other, by options and by the session's settings."""
    spark.range(5).write.format("delta").options(**second).save(f"s3a://third/{RUN}/s")
    rows = spark.readStream.format("delta").options(**second).load(f"s3a://third/{RUN}/s")
    for target in (f"s3a://bucket/{RUN}/streamed", f"s3a://third/{RUN}/streamed"):
        so_far = target.replace("third/", "bucket/third ") + " so far"
        writer = rows.writeStream.format("delta").option("checkpointLocation", so_far)
        given = writer.options(**second) if "third" in target else writer
        given.trigger(availableNow=True).start(target).awaitTermination()
    assert spark.read.format("delta").load(f"s3a://bucket/{RUN}/streamed").count() == 5
    assert spark.read.format("delta").options(**second).load(f"s3a://third/{RUN}/streamed").count() == 5


def storage_options_of_a_read(spark: SparkSession, second: Settings) -> None:
    """``anabranch.read`` hands them to both sides, or refuses them by name."""
    place = f"s3a://fourth/{RUN}/t"
    options = {
        "access_key_id": second["fs.s3a.access.key"],
        "secret_access_key": second["fs.s3a.secret.key"],
        "endpoint": second["fs.s3a.endpoint"],
        "allow_http": "true",
    }
    anabranch.append(place, [{"id": 1}], storage_options=options)
    assert anabranch.read(place, "id = 1", storage_options={**options, "timeout": "60s"}, spark=spark).count() == 1
    with pytest.raises(errors.NotBuilt, match="proxy_url"):
        anabranch.read(place, storage_options={**options, "proxy_url": "http://proxy"}, spark=spark)


def wrong_keys(spark: SparkSession, second: Settings) -> None:
    """A wrong secret is an error of ours without it, and spoils nothing for a handle with the right one."""
    place, wrong = f"s3a://fourth/{RUN}/wrong", {**second, "fs.s3a.secret.key": WRONG}
    spark.range(3).write.format("delta").options(**second).save(place)
    table, calls = DeltaTable.forPath(spark, place, second), list[Callable[[], Any]]()
    calls.append(lambda: DeltaTable.forPath(spark, place, wrong))
    calls.append(lambda: spark.read.format("delta").options(**wrong).load(place))
    calls.append(lambda: spark.readStream.format("delta").options(**wrong).load(place))
    calls.append(lambda: spark.range(1).write.format("delta").options(**wrong).mode("append").save(place))
    for call in calls:
        refused(call, errors.StorePermissionDenied)
    half = {name: value for name, value in wrong.items() if name != "fs.s3a.access.key"}
    refused(lambda: DeltaTable.forPath(spark, place, half), errors.InvalidOption)
    odd = {**second, "fs.s3a.encryption.key": SECRET}
    refused(lambda: DeltaTable.forPath(spark, place, odd), errors.NotBuilt)
    refused(lambda: spark.read.format("delta").options(**odd).load(place), errors.NotBuilt)
    os.environ["AWS_SESSION_TOKEN"] = SECRET
    refused(lambda: DeltaTable.forPath(spark, place, second), errors.InvalidOption)
    del os.environ["AWS_SESSION_TOKEN"]
    table.delete("id = 0")
    assert (table.toDF().count(), table.history().count()) == (2, 2)
    assert SECRET not in repr(table)


def refused(call: Callable[[], Any], error: type[Exception]) -> None:
    """Nothing that a user sees of the error shows a secret."""
    with pytest.raises(error) as caught:
        call()
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))


STAGES: dict[str, Callable[[SparkSession, Settings], None]] = {
    each.__name__: each
    for each in (
        settings_of_the_session,
        settings_of_a_call,
        streams_of_a_call,
        storage_options_of_a_read,
        wrong_keys,
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])
