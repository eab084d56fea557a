"""A session that names delta-spark's own classes, in a process of its own: what `anabranch.install` makes of it.

Run as ``python -m tests.support.session_with_delta JARS FOLDER``, JARS being a list with commas, or empty. Prints a
line of JSON for each session: which formats are ours and how many rows a table has that was written, or the error.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import anabranch
from anabranch._spark.sessions.known_sessions import formats_of
from tests.support.spark_options import QUICK_JAVA

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def started(jars: str) -> SparkSession:
    """A session with delta-spark's extension, which may be there or not."""
    settings = {
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.jars": jars,
        "spark.log.level": "OFF",
        "spark.sql.extensions": EXTENSION,
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def told(spark: SparkSession, path: str) -> dict[str, object]:
    """What `install` does with a session, and whether a table can be written and read in it."""
    try:
        anabranch.install(anabranch.install(spark))
    except anabranch.errors.AnabranchError as error:
        return {"error": type(error).__name__, "message": error.message}
    ours = sorted(formats_of(spark))
    spark.range(3).write.format(ours[-1]).save(path)
    return {"formats": ours, "rows": spark.read.format(ours[-1]).load(path).count()}


def main() -> None:
    """Try the extension alone, and then the catalog, too."""
    jars, folder = sys.argv[1:]
    spark = started(jars)
    beside = spark.newSession()
    print(json.dumps(told(spark, f"{folder}/extension")))
    beside.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    print(json.dumps(told(beside, f"{folder}/catalog")))


if __name__ == "__main__":
    main()
