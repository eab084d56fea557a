"""A second real S3 server for tests: MinIO, on a free port of this machine, in its own process.

``tools/setup.py --servers`` brings it, where there is Go. MinIO decides *If-None-Match: \\** as one, under a lock of
the name, and checks each request's signature.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tests.storage.free_port import free_port
from tests.support.patience import PATIENCE
from tests.support.planted import SECRET
from tools import servers

KEY = "anykey"


def why_absent() -> str:
    """Why there is no such server here, or nothing where there is one."""
    return servers.why_absent("minio")


@contextlib.contextmanager
def serving(folder: Path, buckets: Sequence[str] = ("bucket",), secret: str = SECRET) -> Iterator[dict[str, str]]:
    """The environment in which ``s3://bucket`` is an empty bucket of a new server, whose files are in the folder."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(servers.program("minio")), "server", str(folder), "--address", url.removeprefix("http://")]
    account = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": secret, "MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **account}, **quiet) as server:
        try:
            for bucket in buckets:
                _make_bucket(url, server, bucket, secret)
            yield {
                "AWS_ENDPOINT": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_REGION": "us-east-1",
            }
        finally:
            server.kill()


def _make_bucket(url: str, server: subprocess.Popen[bytes], bucket: str, secret: str) -> None:
    """Make it as soon as the server answers."""
    named = {"aws_access_key_id": KEY, "aws_secret_access_key": secret, "region_name": "us-east-1"}
    client, until = boto3.client("s3", endpoint_url=url, **named), time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, "MinIO ended before it listened"
        try:
            client.create_bucket(Bucket=bucket)
            return
        except (BotoCoreError, ClientError):
            assert time.monotonic() < until, "MinIO does not listen"
            time.sleep(0.1)
