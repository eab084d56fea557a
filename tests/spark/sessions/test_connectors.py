"""What Spark's exceptions say of a store that it cannot reach."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException, PythonException

from anabranch import errors
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.sessions.connectors import package_of
from anabranch._spark.sessions.consoles import spark_home


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
        (
            "gs://b/t",
            "ClassNotFoundException: Class org.apache.hadoop.fs.gs.GoogleHadoopFileSystem not found",
            errors.MissingConnector,
            "org.apache.hadoop:hadoop-gcp",
        ),
        ("gs://b/t", 'No FileSystem for scheme "gs"', errors.MissingConnector, "gcs-connector"),
        ("s3://b/t", "NoAuthWithAWSException: No AWS Credentials provided", errors.NoCredentials, "fs.s3a.access.key"),
        ("s3://b/t", "UnknownStoreException: `s3a://b/t': Bucket does not exist", errors.NoSuchBucket, "s3://b/t"),
    ],
)
def test_a_store_that_spark_cannot_reach_is_one_sentence(
    table: str, text: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said) as told, translate_errors("the scan", table):
        raise PySparkException(text)
    assert type(told.value) is kind


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("s3://b/t", "[USER_RAISED_EXCEPTION] NoSuchBucket: Class org.apache.hadoop.fs.s3a.X not found"),
        ("s3://b/t", 'No FileSystem for scheme "gs"'),
        ("s3://b/t", "Class org.apache.hadoop.io.compress.LzoCodec not found"),
        ("s3://b/t", "UnknownStoreException: `s3a://other/x': Bucket does not exist"),
    ],
)
def test_what_is_said_of_another_store_is_not_said_of_the_tables(table: str, text: str) -> None:
    with pytest.raises(errors.ExecutionFailed), translate_errors("the scan", table):
        raise PySparkException(text)


def test_the_package_that_is_missing_has_the_version_of_sparks_own_hadoop() -> None:
    (client,) = (spark_home() / "jars").glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    assert package_of("s3") == f"org.apache.hadoop:hadoop-aws:{version}"
    with (
        pytest.raises(errors.MissingConnector, match=f"hadoop-aws:{version} "),
        translate_errors("the scan", "s3://b/t"),
    ):
        raise PySparkException('No FileSystem for scheme "s3a"')


def test_what_a_function_of_the_user_raises_is_its_own() -> None:
    with pytest.raises(errors.ExecutionFailed), translate_errors("the scan", "s3://b/t"):
        raise PythonException("botocore.errorfactory.NoSuchBucket: The specified bucket does not exist")


def test_a_table_on_disk_needs_no_connector() -> None:
    with (
        pytest.raises(errors.ExecutionFailed),
        translate_errors("x = 'Class org.apache.hadoop.fs.X not found'", "file:///t"),
    ):
        raise PySparkException("the value 'Class org.apache.hadoop.fs.s3a.S3AFileSystem not found' is no number")
