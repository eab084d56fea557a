"""What `medallion.py` imports to run on delta-spark: its `DeltaTable`, and a session set up as its documentation says.

Delta's JARs come with the command, as ``spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0`` brings them.
"""

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

__all__ = ["DeltaTable", "session"]


def session(app):
    """A session of delta-spark."""
    builder = SparkSession.builder.appName(app)
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    return builder.getOrCreate()
