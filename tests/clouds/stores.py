"""Each store as tests with Spark use it: a real server, where tables lie on it, and what tells both sides of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.clouds.running import s3_settings
from tests.storage import azurite, fake_gcs, mini_hdfs, minio_s3, moto_s3, tls_front
from tools import connectors

_AZURE = f"{azurite.ACCOUNT}.dfs.core.windows.net"
_MIB = 1 << 20
_NUMBERS = {
    "block.size": 64 * _MIB,
    "inputstream.inplace.seek.limit": 8 * _MIB,
    "inputstream.min.range.request.size": 2 * _MIB,
    "outputstream.buffer.size": 8 * _MIB,
    "outputstream.pipe.buffer.size": _MIB,
    "outputstream.upload.chunk.size": 8 * _MIB,
    "outputstream.upload.cache.size": 0,
}
"""Hadoop 3.5 has defaults of its own for these, in words such as 64m, which Google's connector takes for no numbers."""
_GOOGLE = "com.google.cloud.hadoop.fs.gcs"


@dataclass(frozen=True)
class Place:
    """Where tables lie; the settings of a session that reaches it, and the environment of a process that does.

    Attributes:
        trusts: options of every JVM of the session.
    """

    url: str
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    trusts: str = ""


@contextmanager
def disk(folder: Path) -> Iterator[Place]:
    """A folder of this machine."""
    yield Place(f"{folder}/disk")


@contextmanager
def moto(folder: Path) -> Iterator[Place]:
    """S3, as moto has it."""
    with moto_s3.serving() as environment:
        yield Place("s3a://bucket", s3_settings(environment), environment)


@contextmanager
def minio(folder: Path) -> Iterator[Place]:
    """S3, as MinIO has it."""
    with minio_s3.serving(folder) as environment:
        yield Place("s3a://bucket", s3_settings(environment), environment)


@contextmanager
def azure(folder: Path) -> Iterator[Place]:
    """Azurite behind TLS; it has the older of Azure's two services only."""
    with azurite.serving() as environment:
        port = urlsplit(environment["AZURE_STORAGE_ENDPOINT"]).port
        assert port is not None
        with tls_front.before(port, folder) as front:
            trust = {"trustStore": front.truststore, "trustStorePassword": tls_front.PASSWORD}
            told = {
                f"account.key.{_AZURE}": azurite.KEY,
                f"account.key.{azurite.ACCOUNT}.blob.core.windows.net": azurite.KEY,
                "abfs.endpoint": f"127.0.0.1:{front.port}",
                "ssl.channel.mode": "Default_JSSE",
                "networking.library": "JDK_HTTP_URL_CONNECTION",
                "fns.account.service.type": "BLOB",
                "account.hns.enabled": "false",
            }
            words = (f"-Djavax.net.ssl.{name}={value}" for name, value in trust.items())
            yield Place(f"abfss://container@{_AZURE}", _told("fs.azure", told), environment, " ".join(words))


@contextmanager
def google(folder: Path) -> Iterator[Place]:
    """fake-gcs-server; Spark speaks JSON to it."""
    with fake_gcs.serving() as environment:
        told = {
            "impl": f"{_GOOGLE}.GoogleHadoopFileSystem",
            "storage.root.url": f"{environment['GOOGLE_BASE_URL']}/",
            "project.id": "p",
            "auth.null.enable": "true",
            "auth.service.account.enable": "false",
            "outputstream.direct.upload.enable": "false",
            **{name: str(value) for name, value in _NUMBERS.items()},
        }
        abstract = {"spark.hadoop.fs.AbstractFileSystem.gs.impl": f"{_GOOGLE}.GoogleHadoopFS"}
        yield Place("gs://bucket", _told("fs.gs", told) | abstract, environment)


@contextmanager
def hdfs(folder: Path) -> Iterator[Place]:
    """Hadoop's own NameNode and DataNode."""
    with mini_hdfs.serving(folder / "hdfs") as url:
        yield Place(url)


@contextmanager
def default_hdfs(folder: Path) -> Iterator[Place]:
    """The same as the session's default: tables are named by paths without a scheme."""
    with mini_hdfs.serving(folder / "hdfs") as url:
        yield Place("", {"spark.hadoop.fs.defaultFS": url})


def _told(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    jars = {"spark.jars": ",".join(map(str, connectors.jars()))}
    return jars | {f"spark.hadoop.{prefix}.{name}": value for name, value in settings.items()}


def _no_connectors() -> str:
    return "" if connectors.jars() else "Spark's connectors are not here; `make clouds` brings them"


Store = tuple[Callable[[], str], Callable[[Path], AbstractContextManager[Place]]]
STORES: dict[str, Store] = {
    "disk": (lambda: "", disk),
    "S3 (moto)": (_no_connectors, moto),
    "S3 (MinIO)": (lambda: _no_connectors() or minio_s3.why_absent(), minio),
    "Azure": (lambda: _no_connectors() or azurite.why_absent() or tls_front.why_absent(), azure),
    "Google Cloud": (lambda: _no_connectors() or fake_gcs.why_absent(), google),
    "HDFS": (mini_hdfs.why_absent, hdfs),
    "HDFS as the default": (mini_hdfs.why_absent, default_hdfs),
}
"""Why there is none of a kind here, or nothing where there may be one; and how to have one."""
