"""Settings of Spark's Parquet writer: whether a file of Arrow's is what this session's own writer would have written.

Knows names of settings, and what a footer says of the calendar. Guarantee: where a session says anything that Arrow
cannot do, it is known to.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from anabranch._spark.sessions.settings import list_settings
from anabranch.errors.process_state import per_object

_COMMITS = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
_NEEDED = {
    "spark.sql.files.maxRecordsPerFile": "0",
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
_were_not = per_object("sessions that said what only Spark's writer can do")


def may_be_plain(spark: SparkSession) -> bool:
    """Whether `are_plain` may say so: to ask it takes 10 ms, in which rows can be computed that it is asked about. Of a
    session of which it said otherwise, it is asked before.
    """
    return spark not in _were_not or are_plain(spark)


def are_plain(spark: SparkSession) -> bool:
    """Whether the session leaves Spark's writer as it is, or says what Arrow's can do."""
    said = list_settings(spark)
    own = any(name.startswith(_HADOOP) for name in said)
    found = not own and all(said.get(name, wanted).lower() == wanted for name, wanted in _NEEDED.items())
    if found:
        _were_not.pop(spark, None)
    else:
        _were_not[spark] = True
    return found


def footer_metadata(spark: SparkSession) -> dict[str, str]:
    """What a footer says of Spark. By its version Spark knows how days are counted; without one a session may take them
    for Julian ones.
    """
    return {"org.apache.spark.version": spark.version.partition("-")[0]}
