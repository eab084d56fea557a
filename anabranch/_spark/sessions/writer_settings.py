"""Decides whether a file that Arrow writes is what the session's own Parquet writer would have written.

Knows names of settings, and the footer's entry on the calendar. Guarantee: if a session requires anything that Arrow
cannot do, this is detected.
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
    "spark.sql.legacy.parquet.int96RebaseModeInRead": "corrected",
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "corrected",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "corrected",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.parquetoutputcommitter",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": _COMMITS.lower(),
}
"""Settings with the values that a session must have, which are Spark's defaults since Spark 4."""
_HADOOP = ("parquet.", "spark.hadoop.parquet.", "spark.sql.sources.outputCommitterClass")
"""Prefixes of settings of Spark's own writer, too many to interpret."""
_were_not = per_object("sessions that said what only Spark's writer can do")


def may_be_plain(spark: SparkSession) -> bool:
    """False if the session is known to need Spark's writer; True if it does not, or if this has not been checked yet.
    The check takes 10 ms, during which the rows to be written can be computed; only sessions that have failed it before
    are checked right away.
    """
    return spark not in _were_not or are_plain(spark)


def are_plain(spark: SparkSession) -> bool:
    """Whether the session leaves Spark's writer at its defaults, or sets only what Arrow can do."""
    settings = list_settings(spark)
    has_writer_settings = any(name.startswith(_HADOOP) for name in settings)
    is_plain = not has_writer_settings and all(
        settings.get(name, required).lower() == required for name, required in _NEEDED.items()
    )
    if is_plain:
        _were_not.pop(spark, None)
    else:
        _were_not[spark] = True
    return is_plain


def footer_metadata(spark: SparkSession) -> dict[str, str]:
    """Key-value metadata of footers about Spark. Spark infers the calendar of dates from its version; without one a
    session may take them for Julian dates.
    """
    return {"org.apache.spark.version": spark.version.partition("-")[0]}
