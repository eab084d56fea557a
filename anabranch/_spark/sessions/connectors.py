"""Knows what Spark needs to reach a store, and recognises its errors when that is missing.

Knows Hadoop's names, and its JARs beside Spark's; does not query Spark. Guarantee: an error about another store, or
another bucket, is never reported as one of the table's.
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
        package: the package of the connector; for Hadoop's the version is that of Spark's own Hadoop JARs.
        missing: pattern of Spark's error if the connector is missing.
        settings: settings that give Spark credentials.
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
"""Connectors by the scheme of a table's URL."""

_CLIENT = re.compile(r"hadoop-client-api-(\d[\w.-]*)\.jar")


def package_of(scheme: str) -> str | None:
    """The package of the connector for a scheme of tables' URLs; None if Spark includes it. Hadoop's own package gets
    the version of the Hadoop JARs of this Python's Spark, if there is a single one.
    """
    connector = CONNECTORS.get(scheme)
    if connector is None:
        return None
    jars = (_CLIENT.fullmatch(jar.name) for jar in (spark_home() / "jars").glob("hadoop-client-api-*.jar"))
    versions = {match[1] for match in jars if match is not None}
    is_one = len(versions) == 1 and re.fullmatch(r"org\.apache\.hadoop:[\w-]+", connector.package)
    return f"{connector.package}:{versions.pop()}" if is_one else connector.package


_NO_CREDENTIALS = re.compile(
    "NoAuthWithAWSException|NoAwsCredentialsException|No AWS Credentials|KeyProviderException"
    "|Failure to initialize configuration"
)
_NO_BUCKET = re.compile(r"UnknownStoreException|NoSuchBucket|The specified (?:bucket|container) does not exist")
_BUCKET = re.compile(r"\b(?:s3a?|gs|abfss?)://([^/\s'`\":]+)")


def check_reachable(error: Exception, table: str) -> None:
    """Raise an error if Spark's exception shows that it cannot reach the store of a table.

    Raises:
        MissingConnector: the JAR is missing.
        NoCredentials: Spark has no credentials.
        NoSuchBucket: the bucket does not exist.
    """
    store, text = table.partition(":")[0], str(error)
    connector = CONNECTORS.get(store)
    if connector is None or isinstance(error, PythonException) or "USER_RAISED_EXCEPTION" in text:
        return  # an error in a user's own code does not come from a store
    if connector.missing.search(text):
        raise MissingConnector(root=table, package=package_of(store)) from None
    if _NO_CREDENTIALS.search(text):
        raise NoCredentials(
            root=table, instead=f"Spark has credentials of its own, set {connector.settings}."
        ) from None
    buckets = {bucket.lower() for bucket in _BUCKET.findall(text)}
    if _NO_BUCKET.search(text) and (not buckets or table.partition("://")[2].partition("/")[0].lower() in buckets):
        raise NoSuchBucket(root=table) from None
