"""Columns in their form for files: what Spark's writer can number, and what it cannot."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.schema.column_mapping import FIELD_ID, NESTED_IDS
from anabranch._protocol.schema.types import PHYSICAL_NAME, Array, Field
from anabranch._spark.columns.physical_names import to_file_column
from anabranch.errors import NotBuilt

pytestmark = pytest.mark.spark


def test_only_what_has_elements_keys_or_values_needs_field_ids_inside(spark: SparkSession) -> None:
    """delta-spark gives each column of such a table nested ids, which are empty where nothing lies inside."""
    plain = Field("id", "long", metadata={FIELD_ID: 1, PHYSICAL_NAME: "col-1", NESTED_IDS: {}})
    ids = {"col-2.element": 3}
    nested = Field("l", Array("long"), metadata={FIELD_ID: 2, PHYSICAL_NAME: "col-2", NESTED_IDS: ids})
    rows = spark.range(3).withColumn("l", F.array("id"))
    assert rows.select(to_file_column(plain, numbered_inside=True)).columns == ["col-1"]
    assert rows.select(to_file_column(nested, numbered_inside=False)).columns == ["col-2"]
    with pytest.raises(NotBuilt, match="array or map l"):
        to_file_column(nested, numbered_inside=True)
