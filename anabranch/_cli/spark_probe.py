"""Lets Spark write a small Parquet file at a location and read it again: its connector, its keys and its network are
not those of our own client.

Writes in a folder of its own below the location, and removes only that. Needs PySpark.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from pyspark.sql import SparkSession

from anabranch._cli.diagnosis import Check
from anabranch._cli.store_probe import cleanup_checks, own_folder
from anabranch._spark.frames.failures import reason_of
from anabranch._spark.reading.paths import spark_root
from anabranch._spark.sessions.connectors import check_reachable
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch.errors import AnabranchError

_NAME, _ROWS = "Spark at the store", 3
_ADVICE = "Spark reads and writes tables by a connector and keys of its own: see docs/concepts/stores.md."


def spark_checks(spark: SparkSession, location: str) -> Iterator[Check]:
    """Lets a session write and read below a location that our client can open."""
    store = open_store(location)
    with own_folder(store) as (folder, on_disk):
        yield check_write_and_read(spark, store.url, f"{folder}/spark")
        if on_disk is not None:
            shutil.rmtree(on_disk / "spark", ignore_errors=True)
        yield from _clean_up(store, folder)


def check_write_and_read(spark: SparkSession, root: str, folder: str) -> Check:
    """Lets Spark write a small file into a folder of a store, and read it again; leaves the file there."""
    try:
        place = f"{spark_root(spark, root)}/{folder}"
        spark.range(_ROWS).coalesce(1).write.parquet(place)
        count = spark.read.parquet(place).count()
    except AnabranchError as error:
        return Check(_NAME, "failed", error.message)
    except Exception as error:  # report whatever keeps Spark from the store
        return Check(_NAME, "failed", _reason(error, root), _ADVICE)
    if count != _ROWS:
        return Check(_NAME, "failed", f"of {_ROWS} rows that it wrote it read {count}", _ADVICE)
    return Check(_NAME, "ok", "it wrote a file and read it again")


def _reason(error: Exception, root: str) -> str:
    try:
        check_reachable(error, root)
    except AnabranchError as reached:
        return reached.message
    return reason_of(error)


def _clean_up(store: Store, folder: str) -> Iterator[Check]:
    """Removes what Spark has written to a store without folders; yields a check only if that fails."""
    try:
        names = [entry.name for entry in store.list_all(folder)]
    except AnabranchError as error:
        yield Check("cleaning up", "warning", error.message, f"Remove {folder} below {store.url} yourself.")
        return
    yield from cleanup_checks(store, names)
