"""Connectors: what Spark needs to reach a store, and what it says where that is missing.

Knows Hadoop's words, and its JARs beside Spark's; asks nothing of Spark. Guarantee: what a text says of another store,
or of another bucket, is never told of the table's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import PythonException

from anabranch._spark.sessions.consoles import spark_home
from anabranch.errors import MissingConnector, NoCredentials, NoSuchBucket


@dataclass(frozen=True)
class Connector:
    """What Spark needs for one kind of store.

    Attributes:
        package: has the connector; of Hadoop's the version is that of Spark's own Hadoop JARs.
        missing: what Spark says where it is not there.
        settings: give Spark credentials.
    """

    package: str
    missing: re.Pattern[str]
    settings: str


CONNECTORS = {
    "s3": Connector(
        "org.apache.hadoop:hadoop-aws",
        re.compile(r'Class org\.apache\.hadoop\.fs\.s3a\.\S+ not found|No FileSystem for scheme "?s3a?\b'),
        "spark.hadoop.fs.s3a.access.key and .secret.key, or fs.s3a.aws.credentials.provider",
    ),
    "abfss": Connector(
        "org.apache.hadoop:hadoop-azure",
        re.compile(r'Class org\.apache\.hadoop\.fs\.azurebfs\.\S+ not found|No FileSystem for scheme "?abfss?\b'),
        "spark.hadoop.fs.azure.account.key.<account>.dfs.core.windows.net",
    ),
    "gs": Connector(
        "org.apache.hadoop:hadoop-gcp, or before Hadoop 3.5 com.google.cloud.bigdataoss:gcs-connector",
        re.compile(
            r"Class (?:com\.google\.cloud\.hadoop\.fs\.gcs|org\.apache\.hadoop\.fs\.gs)\.\S+ not found"
            r'|No FileSystem for scheme "?gs\b'
        ),
        "spark.hadoop.fs.gs.auth.type and what it asks for",
    ),
}
"""By the scheme of a table's URL."""

_CLIENT = re.compile(r"hadoop-client-api-(\d[\w.-]*)\.jar")


def package_of(scheme: str) -> str | None:
    """The package of the connector for a scheme of tables' URLs; None where Spark brings it. One of Hadoop's own has
    the version of the Hadoop that lies with the Spark of this Python, if there is one.
    """
    connector = CONNECTORS.get(scheme)
    if connector is None:
        return None
    jars = (_CLIENT.fullmatch(each.name) for each in (spark_home() / "jars").glob("hadoop-client-api-*.jar"))
    versions = {found[1] for found in jars if found is not None}
    is_one = len(versions) == 1 and re.fullmatch(r"org\.apache\.hadoop:[\w-]+", connector.package)
    return f"{connector.package}:{versions.pop()}" if is_one else connector.package


_NO_CREDENTIALS = re.compile(
    "NoAuthWithAWSException|NoAwsCredentialsException|No AWS Credentials|KeyProviderException"
    "|Failure to initialize configuration"
)
_NO_BUCKET = re.compile(r"UnknownStoreException|NoSuchBucket|The specified (?:bucket|container) does not exist")
_BUCKET = re.compile(r"\b(?:s3a?|gs|abfss?)://([^/\s'`\":]+)")


def check_reached(error: Exception, table: str) -> None:
    """Raise an error where Spark's exception says that it cannot reach the store of a table.

    Raises:
        MissingConnector: the JAR is missing. NoCredentials, NoSuchBucket: so is what the name says.
    """
    store, text = table.partition(":")[0], str(error)
    connector = CONNECTORS.get(store)
    if connector is None or isinstance(error, PythonException) or "USER_RAISED_EXCEPTION" in text:
        return  # what a user's own code says is no answer of a store
    if connector.missing.search(text):
        raise MissingConnector(root=table, package=package_of(store)) from None
    if _NO_CREDENTIALS.search(text):
        raise NoCredentials(
            root=table, instead=f"Spark has credentials of its own, set {connector.settings}."
        ) from None
    buckets = {each.lower() for each in _BUCKET.findall(text)}
    if _NO_BUCKET.search(text) and (not buckets or table.partition("://")[2].partition("/")[0].lower() in buckets):
        raise NoSuchBucket(root=table) from None
