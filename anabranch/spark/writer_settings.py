"""Settings of Spark's Parquet writer: whether a file of Arrow's is what this session's own writer would have written.

Knows names of settings, and what a footer says of the calendar. Guarantee: where a session says anything that Arrow
cannot do, it is known to.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

_COMMITS = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
_NEEDED = {
    "spark.sql.legacy.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.legacy.parquet.datetimeRebaseModeInWrite": "corrected",
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "corrected",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.parquetoutputcommitter",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": _COMMITS.lower(),
}
"""What a session must say, or leave at the default, which is the same since Spark 4."""
_HADOOP = ("parquet.", "spark.hadoop.parquet.", "spark.sql.sources.outputCommitterClass")
"""Settings of Spark's writer that begin so are its own; there is no reading them all."""


def are_plain(spark: SparkSession) -> bool:
    """Whether the session leaves Spark's writer as it is, or says what Arrow's can do."""
    said = spark.conf.getAll
    if any(name.startswith(_HADOOP) for name in said):
        return False
    return all(said.get(name, wanted).lower() == wanted for name, wanted in _NEEDED.items())


def said_version(spark: SparkSession) -> dict[str, str]:
    """What a footer says of Spark. By its version Spark knows how days are counted; without one a session may take them
    for Julian ones.
    """
    return {"org.apache.spark.version": spark.version.partition("-")[0]}
