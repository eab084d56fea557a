"""Opens a stream: the DataFrame of a table's rows, as they come.

Knows how Spark registers a data source in Python. Guarantee: reads only the session's settings; the source travels by
value, so that executors need no Anabranch.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anabranch._protocol.schema.types import to_arrow
from anabranch._protocol.sizes import size_of
from anabranch._spark.columns.months import numbers_schema, with_months
from anabranch._spark.columns.types import spark_schema
from anabranch._spark.sessions.session import is_connect
from anabranch._storage.store_settings import export_settings
from anabranch._streaming import arrow_rows, data_source
from anabranch._streaming.reading import Splits, StreamRead
from anabranch._streaming.tasks import columns_of
from anabranch.errors.process_state import PerObject, hold

_TASKS = 8
"""Number of tasks at once if the session does not report it, as on Spark Connect."""
_HOME = str(Path(__file__).resolve().parents[2])
_registered: PerObject[SparkSession, str] = hold("sessions with streams", "how they call the source")(PerObject())


def open_stream(spark: SparkSession, reader: Any, read: StreamRead) -> DataFrame:
    """The rows of a stream, through a ``reader`` of Spark's own (``spark.readStream``)."""
    if spark not in _registered:
        for module in (arrow_rows, data_source):
            cloudpickle.register_pickle_by_value(module)
        _registered[spark] = _register(spark)
    secrets = json.dumps(export_settings(read.table.partition(":")[0]))
    options = {data_source.REQUEST: read.to_json(), data_source.HOME: _HOME, data_source.SECRETS: secrets}
    columns = columns_of(read)
    to_arrow(columns)  # refuses a type that no source in Python can show, before the query begins
    schema = spark_schema(columns)
    rows: DataFrame = reader.format(_registered[spark]).schema(numbers_schema(schema)).options(**options).load()
    return with_months(rows, schema)


def _register(spark: SparkSession) -> str:
    """Registers the source in a session, and returns its name there: another one if the first is taken, since Spark
    looks for names in the session that was used last.
    """
    for number in itertools.count(1):
        name = data_source.NAME if number == 1 else f"{data_source.NAME}_{number}"
        try:
            spark.dataSource.register(data_source.with_name(name))
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        else:
            break
    return name


def splits(spark: SparkSession) -> Splits:
    """How the session divides files among tasks."""
    defaults = Splits()
    most_bytes = _bytes(spark, "spark.sql.files.maxPartitionBytes", defaults.most_bytes)
    return Splits(most_bytes, _bytes(spark, "spark.sql.files.openCostInBytes", defaults.open_bytes), _tasks(spark))


def _tasks(spark: SparkSession) -> int:
    parallelism = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    if parallelism is not None and parallelism.isdigit():
        return int(parallelism)
    return _TASKS if is_connect(spark) else spark.sparkContext.defaultParallelism


def _bytes(spark: SparkSession, key: str, default: int) -> int:
    """A setting in bytes; the default if it is missing or zero."""
    try:
        return size_of(spark.conf.get(key, None) or "")
    except ValueError:
        return default
