"""What Spark's exceptions say of a store that it cannot reach."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from anabranch import errors
from anabranch.spark.failures import reported


@pytest.mark.parametrize(
    ("table", "text", "kind", "said"),
    [
        (
            "s3://bucket/t",
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            errors.MissingConnector,
            "org.apache.hadoop:hadoop-aws",
        ),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            "Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found",
            errors.MissingConnector,
            "org.apache.hadoop:hadoop-azure",
        ),
        ("gs://b/t", 'No FileSystem for scheme "gs"', errors.MissingConnector, "gcs-connector"),
        ("s3://b/t", "NoAuthWithAWSException: No AWS Credentials provided", errors.NoCredentials, "fs.s3a.access.key"),
        ("s3://b/t", "UnknownStoreException: `s3a://b/t': Bucket does not exist", errors.NoSuchBucket, "s3://b/t"),
    ],
)
def test_a_store_that_spark_cannot_reach_is_one_sentence(
    table: str, text: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said) as told, reported("the scan", table):
        raise PySparkException(text)
    assert type(told.value) is kind


def test_a_table_on_disk_needs_no_connector() -> None:
    with pytest.raises(errors.ExecutionFailed), reported("x = 'Class org.apache.hadoop.fs.X not found'", "file:///t"):
        raise PySparkException("the value 'Class org.apache.hadoop.fs.s3a.S3AFileSystem not found' is no number")
