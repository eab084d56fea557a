"""Connectors: what Spark needs to reach a store, and what it says where that is missing.

Knows Hadoop's words; asks nothing of Spark. Guarantee: what a text says of another store, or of another bucket, is
never told of the table's.
"""

from __future__ import annotations

import re

from pyspark.errors import PythonException

from anabranch.errors import MissingConnector, NoCredentials, NoSuchBucket

PACKAGES = {
    "s3": "org.apache.hadoop:hadoop-aws",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "org.apache.hadoop:hadoop-gcp, or before Hadoop 3.5 com.google.cloud.bigdataoss:gcs-connector",
}
"""The package that has the connector for a store. Those of Hadoop have the version of Spark's own Hadoop JARs."""

_NO_CLASS = {
    "s3": re.compile(r'Class org\.apache\.hadoop\.fs\.s3a\.\S+ not found|No FileSystem for scheme "?s3a?\b'),
    "abfss": re.compile(r'Class org\.apache\.hadoop\.fs\.azurebfs\.\S+ not found|No FileSystem for scheme "?abfss?\b'),
    "gs": re.compile(
        r"Class (?:com\.google\.cloud\.hadoop\.fs\.gcs|org\.apache\.hadoop\.fs\.gs)\.\S+ not found"
        r'|No FileSystem for scheme "?gs\b'
    ),
}
_NO_CREDENTIALS = re.compile(
    "NoAuthWithAWSException|NoAwsCredentialsException|No AWS Credentials|KeyProviderException"
    "|Failure to initialize configuration"
)
_NO_BUCKET = re.compile(r"UnknownStoreException|NoSuchBucket|The specified (?:bucket|container) does not exist")
_BUCKET = re.compile(r"\b(?:s3a?|gs|abfss?)://([^/\s'`\":]+)")
_SETTINGS = {
    "s3": "spark.hadoop.fs.s3a.access.key and .secret.key, or fs.s3a.aws.credentials.provider",
    "abfss": "spark.hadoop.fs.azure.account.key.<account>.dfs.core.windows.net",
    "gs": "spark.hadoop.fs.gs.auth.type and what it asks for",
}


def check_reached(error: Exception, table: str) -> None:
    """Raise an error where Spark's exception says that it cannot reach the store of a table.

    Raises:
        MissingConnector: the JAR is missing. NoCredentials, NoSuchBucket: so is what the name says.
    """
    store, text = table.partition(":")[0], str(error)
    if store not in PACKAGES or isinstance(error, PythonException) or "USER_RAISED_EXCEPTION" in text:
        return  # what a user's own code says is no answer of a store
    if _NO_CLASS[store].search(text):
        raise MissingConnector(root=table, package=PACKAGES[store]) from None
    if _NO_CREDENTIALS.search(text):
        raise NoCredentials(root=table, instead=f"Spark has credentials of its own, set {_SETTINGS[store]}.") from None
    buckets = {each.lower() for each in _BUCKET.findall(text)}
    if _NO_BUCKET.search(text) and (not buckets or table.partition("://")[2].partition("/")[0].lower() in buckets):
        raise NoSuchBucket(root=table) from None
