"""Connectors: what Spark needs to reach a store, and what it says where that is missing.

Knows Hadoop's words; asks nothing of Spark.
"""

from __future__ import annotations

import re

from anabranch.errors import MissingConnector, NoCredentials, NoSuchBucket

PACKAGES = {
    "s3": "org.apache.hadoop:hadoop-aws",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}
"""The package that has the connector for a store. Those of Hadoop have the version of Spark's own Hadoop JARs."""

_NO_CLASS = re.compile(r"Class (?:org\.apache|com\.google\.cloud)\.hadoop\S+ not found|No FileSystem for scheme")
_NO_CREDENTIALS = re.compile(
    "NoAuthWithAWSException|NoAwsCredentialsException|No AWS Credentials|KeyProviderException"
    "|Failure to initialize configuration"
)
_NO_BUCKET = re.compile(r"UnknownStoreException|NoSuchBucket|The specified (?:bucket|container) does not exist")
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
    if store not in PACKAGES:
        return
    if _NO_CLASS.search(text):
        raise MissingConnector(root=table, package=PACKAGES[store]) from None
    if _NO_CREDENTIALS.search(text):
        raise NoCredentials(root=table, instead=f"Spark has credentials of its own, set {_SETTINGS[store]}.") from None
    if _NO_BUCKET.search(text):
        raise NoSuchBucket(root=table) from None
